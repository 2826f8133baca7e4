//! What the queues have in use, told where it differs from what their status says (3.3). Where a queue `root` exists,
//! every queue also counts what the queues below it have.

use smallvec::SmallVec;

use super::Session;
use crate::decision::Decision;
use crate::state::State;
use crate::state::queues::QueueId;
use crate::state::resource::{CPU, Ledger, MEMORY};

/// The queue that all others stand under.
const ROOT: &str = "root";

impl Session<'_> {
    pub(super) fn tell_queues(&mut self) {
        let dirty = std::mem::take(&mut self.state.dirty_queues);
        if dirty.is_empty() {
            return;
        }
        for id in dirty {
            self.state.queues[id as usize].dirty = false;
        }
        let sums = sums(self.state);
        for (queue, sum) in self.state.queues.iter_mut().zip(sums) {
            if !queue.exists || sum.same(&queue.told) {
                continue;
            }
            let dims = &self.state.dims;
            let mut allocated: Vec<(String, i64)> = sum
                .iter()
                .filter(|&(dim, amount)| amount != 0 || dim == CPU || dim == MEMORY)
                .map(|(dim, amount)| (dims.name(dim).to_string(), dims.to_stored(dim, amount)))
                .collect();
            allocated.sort();
            queue.told = sum;
            self.decisions
                .push(Decision::QueueAllocated { queue: queue.name.to_string(), allocated });
        }
    }
}

/// Per queue what it and all queues below it have in use.
fn sums(state: &State) -> Vec<Ledger> {
    let mut sums: Vec<Ledger> = state.queues.iter().map(|queue| queue.allocated.clone()).collect();
    let root = state.queue(ROOT).filter(|&root| state.queues[root as usize].exists);
    let Some(root) = root else { return sums };
    for (at, queue) in state.queues.iter().enumerate().filter(|(_, queue)| queue.exists) {
        let mut chain: SmallVec<[QueueId; 8]> = SmallVec::from_elem(at as QueueId, 1);
        while let Some(above) = parent(state, chain[chain.len() - 1], root) {
            if chain.contains(&above) {
                // Queues that stand under each other: nobody is above them.
                break;
            }
            for (dim, amount) in queue.allocated.iter() {
                sums[above as usize].add(dim, amount);
            }
            chain.push(above);
        }
    }
    sums
}

/// The queue above another; the root stands above those that name nobody, and a parent that does not exist ends the
/// chain (B35).
fn parent(state: &State, queue: QueueId, root: QueueId) -> Option<QueueId> {
    let row = &state.queues[queue as usize];
    match &*row.parent {
        _ if queue == root => None,
        "" => Some(root),
        name => state.queue(name).filter(|&parent| state.queues[parent as usize].exists),
    }
}
