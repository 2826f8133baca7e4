//! What each queue deserves, may reach and has: derived from queue objects and ledgers when a session opens, never
//! from pods.

use crate::plugin::quota;
use crate::state::queues::Queue;
use crate::state::resource::{Dim, EPSILON, Ledger, MEMORY, Vector};
use crate::state::{State, add};

/// What a queue deserves and may reach.
#[derive(Clone, Debug, Default)]
pub(super) struct Attributes {
    /// `spec.deserved`, at least the guarantee.
    pub deserved: Vector,
    /// What it may reach. In a tree, what is absent has no limit.
    pub real_capability: Vector,
    /// Part of its deserved amounts that it has.
    pub share: f64,
}

/// What a queue has; in a tree also what the queues below it have.
#[derive(Clone, Debug, Default)]
pub(super) struct Sums {
    pub allocated: Ledger,
    pub inqueue: Vector,
    pub elastic: Vector,
}

/// Largest part of its deserved amounts that a queue has. 1 for a queue that deserves nothing: it goes after those
/// below their share and before those above (P24).
pub fn share(allocated: &Ledger, deserved: &Vector) -> f64 {
    if deserved.is_empty() { 1.0 } else { quota::share_of(allocated, deserved) }
}

/// What the nodes offer or hold. A node that holds more than it offers (a device failed, it was cordoned) counts with
/// what it holds, as its pods do in their queues: otherwise they would take room that others have.
pub(super) fn offered(state: &State) -> Ledger {
    let mut offered = state.total.clone();
    for node in state.nodes.known() {
        let open = state.nodes.identity[node as usize].is_open();
        for dim in 0..state.dims.len() as Dim {
            let counted = if open { state.nodes.allocatable(node, dim) } else { 0 };
            let excess = state.nodes.used(node, dim) - counted;
            if excess > 0 {
                offered.add(dim, i128::from(excess));
            }
        }
    }
    offered
}

/// `spec.deserved`, lifted to the guarantee.
fn deserved(queue: &Queue) -> Vector {
    let mut deserved = queue.deserved.clone().unwrap_or_default();
    for dim in queue.guarantee.dims() {
        deserved.set(dim, deserved.get(dim).max(queue.guarantee.get(dim)));
    }
    deserved
}

/// Queues that all stand side by side (6.1): deserved is capped by real capability, then lifted to the guarantee (P28).
pub(super) fn side_by_side(state: &State, offered: &Ledger) -> Vec<Attributes> {
    let total = Vector::from(offered);
    let mut guaranteed = Vector::default();
    for queue in state.queues.iter().filter(|queue| queue.exists) {
        add(&mut guaranteed, &queue.guarantee);
    }
    let attributes = |queue: &Queue| {
        let capability = queue.capability.as_ref();
        let real = quota::real_capability(&total, &guaranteed, &queue.guarantee, capability);
        let mut deserved = deserved(queue);
        for dim in deserved.dims().collect::<Vec<_>>() {
            let limit = if real.has(dim) { real.get(dim) } else { f64::INFINITY };
            let amount = deserved.get(dim).min(limit).max(queue.guarantee.get(dim));
            deserved.set(dim, amount);
        }
        Attributes { deserved, real_capability: real, share: 0.0 }
    };
    state.queues.iter().map(attributes).collect()
}

/// Queues in their tree (6.2 step 4), parents before children: a queue may reach what the one above may, less what its
/// siblings are guaranteed, and at most its own capability. The cluster's size is no limit: nodes are.
pub(super) fn in_tree(state: &State) -> Vec<Attributes> {
    let tree = &state.queue_tree;
    let mut promised = vec![Vector::default(); state.queues.len()];
    for queue in tree.downwards() {
        if let Some(parent) = tree.parent(queue) {
            add(&mut promised[parent as usize], &state.queues[queue as usize].guarantee);
        }
    }
    let mut all = vec![Attributes::default(); state.queues.len()];
    for queue in tree.downwards() {
        let row = &state.queues[queue as usize];
        let mut real = Vector::default();
        if let Some(parent) = tree.parent(queue) {
            let above = &all[parent as usize].real_capability;
            for dim in above.dims() {
                let free = (above.get(dim) - promised[parent as usize].get(dim)).max(0.0);
                real.set(dim, free + row.guarantee.get(dim));
            }
        }
        for dim in row.capability.iter().flat_map(Vector::dims) {
            if let Some(limit) = quota::declared(row.capability.as_ref(), dim) {
                real.set(dim, if real.has(dim) { real.get(dim).min(limit) } else { limit });
            }
        }
        all[queue as usize] =
            Attributes { deserved: deserved(row), real_capability: real, share: 0.0 };
    }
    all
}

/// What each queue has, and in a tree what those below it have.
pub(super) fn sums(state: &State, tree: bool) -> Vec<Sums> {
    let own = |queue: &Queue| Sums {
        allocated: queue.allocated.clone(),
        inqueue: queue.inqueue.clone(),
        elastic: queue.elastic.clone(),
    };
    let mut sums: Vec<Sums> = state.queues.iter().map(own).collect();
    if tree {
        state.queue_tree.add_up(&mut sums, |above, below| {
            above.allocated.add_all(&below.allocated);
            add(&mut above.inqueue, &below.inqueue);
            add(&mut above.elastic, &below.elastic);
        });
    }
    sums
}

impl Attributes {
    /// True when the queue deserves a mentionable amount in a dimension.
    pub(super) fn deserves(&self, dim: Dim) -> bool {
        self.deserved.get(dim) >= EPSILON
    }

    /// True when the deserved amount of a dimension is a limit for reclaim: cpu and memory from the tolerance on,
    /// scalars as soon as they are named.
    pub(super) fn governs(&self, dim: Dim) -> bool {
        if dim <= MEMORY { self.deserves(dim) } else { self.deserved.has(dim) }
    }
}
