//! Plugin `overcommit`: admits gangs until what is admitted exceeds the cluster by a factor.
//!
//! | argument | default |
//! | --- | --- |
//! | `overcommit-factor` | 1.2; below 1.0 becomes 1.2 |
//!
//! What an admitted gang still claims is reduced by what its pods already have, so nothing is counted twice (P59). A gang
//! whose queue deserves what it asks for is not kept out where queues can take back what others borrowed: see
//! [`Pipeline::job_enqueueable`](crate::pipeline::Pipeline::job_enqueueable).

use tephra_api::conf::Arguments;

use super::{Admission, Hooks, Plugin, Vote};
use crate::state::jobs::JobId;
use crate::state::resource::{PODS, Vector};
use crate::state::{State, add, remaining_minimum};

const DEFAULT_FACTOR: f64 = 1.2;

/// The plugin.
#[derive(Debug)]
pub struct Overcommit {
    factor: f64,
    idle: Vector,
    inqueue: Vector,
}

impl Default for Overcommit {
    fn default() -> Self {
        Self { factor: DEFAULT_FACTOR, idle: Vector::default(), inqueue: Vector::default() }
    }
}

impl Plugin for Overcommit {
    fn hooks(&self) -> Hooks {
        Hooks::JOB_ENQUEUEABLE | Hooks::JOB_ENQUEUED | Hooks::OPEN
    }

    fn configure(&mut self, arguments: &Arguments, warnings: &mut Vec<String>) {
        if let Some(factor) = arguments.float("overcommit-factor", warnings) {
            if factor < 1.0 || !factor.is_finite() {
                warnings.push(format!(
                    "overcommit-factor {factor} is below 1: {DEFAULT_FACTOR} is used"
                ));
            } else {
                self.factor = factor;
            }
        }
    }

    fn open(&mut self, state: &State) {
        self.idle = Vector::default();
        for (dim, amount) in state.total.iter() {
            let idle = amount as f64 * self.factor - state.used.get(dim) as f64;
            self.idle.set(dim, idle);
        }
        self.inqueue = Vector::default();
        // A job whose queue does not exist claims nothing (2.10).
        for queue in state.queues.iter().filter(|queue| queue.exists) {
            add(&mut self.inqueue, &queue.inqueue);
        }
    }

    fn job_enqueueable(&mut self, state: &State, job: JobId) -> Admission {
        let Some(min) =
            state.jobs[job as usize].group.as_ref().and_then(|g| g.min_resources.as_ref())
        else {
            return Admission::of(Vote::Permit);
        };
        let over: Vec<String> = min
            .dims()
            .filter(|&dim| dim != PODS && min.get(dim) > 0.0)
            .filter(|&dim| self.inqueue.get(dim) + min.get(dim) > self.idle.get(dim))
            .map(|dim| format!("overused {}", state.dims.name(dim)))
            .collect();
        if over.is_empty() {
            return Admission::of(Vote::Permit);
        }
        Admission::no_room(format!("resource in cluster is overused: {}", over.join(", ")))
    }

    fn job_enqueued(&mut self, state: &State, job: JobId) {
        let job = &state.jobs[job as usize];
        if let Some(min) = job.group.as_ref().and_then(|group| group.min_resources.as_ref()) {
            add(&mut self.inqueue, &remaining_minimum(job, min));
        }
    }
}
