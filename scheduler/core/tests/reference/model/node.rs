//! A node in a session: its amounts, recomputed when the session opens and moved along by each placement.

use tephra_api::resource::{DimensionDefault, Resource};
use tephra_core::event::{HostPort, NodeObject};

use super::session::Task;
use super::vector::vector;
use super::world::Status;

/// One node.
#[derive(Clone, Debug)]
pub struct Node {
    pub object: NodeObject,
    pub allocatable: Resource,
    pub idle: Resource,
    pub used: Resource,
    /// Idle + releasing - pipelined.
    pub future: Resource,
    /// Requests that scores see: those of every task, pipelined ones too; plain, and with defaults.
    pub plain: Resource,
    pub nonzero: [i64; 2],
    /// Tasks of any kind.
    pub pods: i64,
    pub ports: Vec<HostPort>,
}

impl Node {
    /// A node without tasks.
    pub fn new(object: NodeObject) -> Self {
        let allocatable = vector(&object.allocatable);
        Self {
            object,
            idle: allocatable.clone(),
            future: allocatable.clone(),
            allocatable,
            used: Resource::default(),
            plain: Resource::default(),
            nonzero: [0; 2],
            pods: 0,
            ports: Vec::new(),
        }
    }

    /// Accounts for a task of the given status (2.4).
    pub fn add(&mut self, task: &Task, status: Status) {
        let request = &task.request;
        if status == Status::Pipelined {
            self.future.subtract(request);
        } else {
            self.idle.subtract(request);
            self.used.add(request);
            if status != Status::Releasing {
                self.future.subtract(request);
            }
        }
        self.plain.add(request);
        for (sum, amount) in self.nonzero.iter_mut().zip(task.spec.nonzero) {
            *sum += amount;
        }
        self.pods += 1;
        self.ports.extend(task.spec.host_ports.iter().cloned());
    }

    /// Takes back [`Node::add`].
    pub fn remove(&mut self, task: &Task, status: Status) {
        let request = &task.request;
        if status == Status::Pipelined {
            self.future.add(request);
        } else {
            self.idle.add(request);
            self.used.subtract(request);
            if status != Status::Releasing {
                self.future.add(request);
            }
        }
        self.plain.subtract(request);
        for (sum, amount) in self.nonzero.iter_mut().zip(task.spec.nonzero) {
            *sum -= amount;
        }
        self.pods -= 1;
        for port in &task.spec.host_ports {
            if let Some(at) = self.ports.iter().position(|taken| taken == port) {
                self.ports.remove(at);
            }
        }
    }

    /// The request fits what is free now.
    pub fn fits_idle(&self, request: &Resource) -> bool {
        request.less_equal(&self.idle, DimensionDefault::Zero)
    }

    /// The request fits what will be free once releasing tasks are gone.
    pub fn fits_future(&self, request: &Resource) -> bool {
        request.less_equal(&self.future, DimensionDefault::Zero)
    }
}
