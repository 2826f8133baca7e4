//! Node columns. Nodes live in slots; slots are grouped in blocks of 64 lanes that the kernel reads at once.
//! A deleted node leaves its slot free, the lowest free slot is used first, and its ledger survives while
//! pods still claim to be on it. Amounts are exact integers; the hot columns hold the same integers as `f64`.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::resource::{Dim, NODE_LIMIT, PODS, Request};
use super::status::Status;
use crate::event::{Labels, Taint};
use crate::planted::{Bug, planted};

/// Slot of a node.
pub type NodeId = u32;
/// No node.
pub const NO_NODE: NodeId = u32::MAX;
/// Lanes of a block.
pub const LANES: usize = 64;
/// Lanes of a strip, the smallest part of a block that is evaluated: as many as the widest vectors hold.
pub const STRIP: usize = 8;
/// Strips of a block.
pub const STRIPS: usize = LANES / STRIP;

/// What a node is, apart from its amounts.
#[derive(Clone, Debug, Default)]
pub struct NodeIdentity {
    /// Name.
    pub name: Arc<str>,
    /// False while only pods mention the node: such a node takes nobody.
    pub known: bool,
    /// Labels.
    pub labels: Arc<Labels>,
    /// Taints.
    pub taints: Arc<Vec<Taint>>,
    /// Cordoned.
    pub unschedulable: bool,
    /// Images with sizes.
    pub images: Arc<Vec<(String, i64)>>,
}

impl NodeIdentity {
    /// The node exists and is not cordoned: only such nodes are capacity that queues could share (scenario
    /// cordoned-node-is-no-capacity).
    pub fn is_open(&self) -> bool {
        self.known && !self.unschedulable
    }
}

/// One dimension of all nodes: `f64` columns for the kernel, exact integers all the same.
#[derive(Clone, Debug, Default)]
pub struct Column {
    /// Allocatable.
    pub alloc: Vec<f64>,
    /// The rounded inverse of `alloc`, 0 where that is 0: the kernel multiplies instead of dividing.
    pub inverse: Vec<f64>,
    /// Requests of tasks that hold the node (everything but pipelined ones).
    pub used: Vec<f64>,
    /// Requests of tasks that are being deleted.
    pub releasing: Vec<f64>,
    /// Requests of tasks promised the node once room is freed.
    pub pipelined: Vec<f64>,
    /// What a new task can have now: the smaller of idle and future idle.
    pub free: Vec<f64>,
    /// What a task could have once releasing tasks are gone: idle + releasing - pipelined.
    pub future: Vec<f64>,
}

impl Column {
    /// What changes when a task comes or goes, and what that is computed from.
    pub fn amounts(&self) -> [&[f64]; 6] {
        let Self { alloc, used, releasing, pipelined, free, future, .. } = self;
        [alloc, used, releasing, pipelined, free, future]
    }

    /// What a task could have once every task that is leaving is gone, its place among the pods included.
    pub fn room_after(&self, slot: usize) -> f64 {
        self.alloc[slot] - self.used[slot] + self.releasing[slot] - self.pipelined[slot]
    }

    fn grow(&mut self, len: usize) {
        for column in [
            &mut self.alloc,
            &mut self.inverse,
            &mut self.used,
            &mut self.releasing,
            &mut self.pipelined,
            &mut self.free,
            &mut self.future,
        ] {
            column.resize(len, 0.0);
        }
    }

    fn refresh(&mut self, slot: usize, dim: Dim) {
        let idle = self.alloc[slot] - self.used[slot];
        let (free, future) = if dim == PODS {
            // The kubelet counts a terminating pod until it is gone, so its place cannot be promised (7.4).
            let left = idle - self.pipelined[slot];
            (left, left)
        } else {
            let future = idle + self.releasing[slot] - self.pipelined[slot];
            (if idle < future { idle } else { future }, future)
        };
        self.free[slot] = free;
        self.future[slot] = future;
    }
}

/// A set of nodes in the order in which they joined.
#[derive(Debug, Default)]
struct Touched {
    list: Vec<NodeId>,
    is_in: Vec<bool>,
}

/// All nodes.
#[derive(Debug, Default)]
pub struct Nodes {
    /// Columns by dimension, each padded to whole blocks.
    pub columns: Vec<Column>,
    /// Requests with Kubernetes' defaults for scores (cpu, memory), of all tasks incl. pipelined ones.
    pub nonzero: [Vec<f64>; 2],
    /// Identity by slot.
    pub identity: Vec<NodeIdentity>,
    /// First task on the node, `u32::MAX` for none.
    pub head: Vec<u32>,
    /// Number of tasks on the node, whatever their status.
    pub tasks: Vec<u32>,
    /// Static signature by slot.
    pub signature: Vec<u32>,
    /// Version by block; it only grows.
    pub version: Vec<u32>,
    /// Version by strip; it only grows.
    pub strip_version: Vec<u32>,
    /// Nodes that were touched since somebody began to listen, each once.
    touched: Option<Touched>,
    by_name: FxHashMap<Arc<str>, NodeId>,
    free_slots: std::collections::BTreeSet<NodeId>,
    slots: usize,
}

impl Nodes {
    /// Slots in use or free: the upper bound of node ids.
    pub fn len(&self) -> usize {
        self.slots
    }

    /// No node was ever seen.
    pub fn is_empty(&self) -> bool {
        self.slots == 0
    }

    /// Number of blocks.
    pub fn blocks(&self) -> usize {
        self.version.len()
    }

    /// Slot of a name.
    pub fn get(&self, name: &str) -> Option<NodeId> {
        self.by_name.get(name).copied()
    }

    /// Slots of known nodes in order.
    pub fn known(&self) -> impl Iterator<Item = NodeId> + '_ {
        (0..self.slots as NodeId).filter(|&id| self.identity[id as usize].known)
    }

    /// Makes room for dimensions that appeared.
    pub fn ensure_dimensions(&mut self, count: usize) {
        let len = self.version.len() * LANES;
        while self.columns.len() < count {
            let mut column = Column::default();
            column.grow(len);
            self.columns.push(column);
        }
    }

    /// Slot of a name, a new one (unknown, without amounts) if it has none.
    pub fn slot(&mut self, name: &str) -> NodeId {
        if let Some(id) = self.get(name) {
            return id;
        }
        let id = self.free_slots.pop_first().unwrap_or_else(|| {
            let id = self.slots as NodeId;
            self.slots += 1;
            if self.slots > self.version.len() * LANES {
                self.add_block();
            }
            id
        });
        let name: Arc<str> = name.into();
        self.identity[id as usize] = NodeIdentity { name: name.clone(), ..NodeIdentity::default() };
        self.by_name.insert(name, id);
        self.touch(id);
        id
    }

    fn add_block(&mut self) {
        self.version.push(1);
        self.strip_version.extend([1; STRIPS]);
        let len = self.version.len() * LANES;
        for column in &mut self.columns {
            column.grow(len);
        }
        for column in &mut self.nonzero {
            column.resize(len, 0.0);
        }
        self.identity.resize_with(len, NodeIdentity::default);
        self.head.resize(len, u32::MAX);
        self.tasks.resize(len, 0);
        self.signature.resize(len, 0);
    }

    /// Gives the slot back once the node is unknown and nobody is on it.
    pub fn release_if_empty(&mut self, id: NodeId) {
        let at = id as usize;
        if self.identity[at].known || self.tasks[at] > 0 {
            return;
        }
        let identity = std::mem::take(&mut self.identity[at]);
        if self.by_name.remove(&identity.name).is_some() {
            self.free_slots.insert(id);
        }
    }

    /// Says that something about the node changed.
    pub fn touch(&mut self, id: NodeId) {
        if let Some(touched) = &mut self.touched {
            if touched.is_in.len() <= id as usize {
                touched.is_in.resize(id as usize + 1, false);
            }
            if !std::mem::replace(&mut touched.is_in[id as usize], true) {
                touched.list.push(id);
            }
        }
        if planted(Bug::StaleIndexBlock) {
            return;
        }
        let [version, strip] =
            [&mut self.version[id as usize / LANES], &mut self.strip_version[id as usize / STRIP]];
        *version = version.wrapping_add(1);
        *strip = strip.wrapping_add(1);
    }

    /// Takes the nodes that were touched since the last call; `None` at the first call, from which on they are noted.
    pub fn take_touched(&mut self) -> Option<Vec<NodeId>> {
        let Some(touched) = &mut self.touched else {
            self.touched = Some(Touched::default());
            return None;
        };
        let list = std::mem::take(&mut touched.list);
        list.iter().for_each(|&id| touched.is_in[id as usize] = false);
        Some(list)
    }

    /// Allocatable amount in a dimension.
    pub fn allocatable(&self, id: NodeId, dim: Dim) -> i64 {
        self.columns.get(dim as usize).map_or(0, |column| column.alloc[id as usize] as i64)
    }

    /// What the tasks that hold the node ask for in a dimension.
    pub fn used(&self, id: NodeId, dim: Dim) -> i64 {
        self.columns.get(dim as usize).map_or(0, |column| column.used[id as usize] as i64)
    }

    /// Sets the allocatable amount of a dimension.
    pub fn set_allocatable(&mut self, id: NodeId, dim: Dim, amount: i64) {
        self.ensure_dimensions(dim as usize + 1);
        let column = &mut self.columns[dim as usize];
        let amount = amount.clamp(0, NODE_LIMIT) as f64;
        column.alloc[id as usize] = amount;
        column.inverse[id as usize] = if amount > 0.0 { 1.0 / amount } else { 0.0 };
        column.refresh(id as usize, dim);
    }

    /// Adds (`sign` 1) or removes (-1) a task of the given status to the ledgers of its node (2.4).
    pub fn account(
        &mut self,
        id: NodeId,
        request: &Request,
        nonzero: [i64; 2],
        status: Status,
        sign: i64,
    ) {
        let at = id as usize;
        for &(dim, amount) in request {
            let amount = (amount * sign) as f64;
            let column = &mut self.columns[dim as usize];
            if status == Status::Pipelined {
                column.pipelined[at] += amount;
            } else {
                column.used[at] += amount;
                if status == Status::Releasing {
                    column.releasing[at] += amount;
                }
            }
            column.refresh(at, dim);
        }
        for (column, amount) in self.nonzero.iter_mut().zip(nonzero) {
            column[at] += (amount * sign) as f64;
        }
        self.touch(id);
    }

    /// True when a request fits what is free now (`future`: once releasing tasks are gone). Cpu and memory
    /// are always compared, so a request of 0 does not fit a node that is over its allocatable (B49).
    pub fn fits(&self, id: NodeId, request: &Request, future: bool) -> bool {
        request.iter().all(|&(dim, amount)| {
            let column = &self.columns[dim as usize];
            let room = if future { &column.future } else { &column.free };
            amount as f64 <= room[id as usize]
        })
    }

    /// True when a request fits once every task that is leaving is gone.
    pub fn fits_after(&self, id: NodeId, request: &Request) -> bool {
        let room = |dim: Dim| self.columns[dim as usize].room_after(id as usize);
        request.iter().all(|&(dim, amount)| amount as f64 <= room(dim))
    }
}
