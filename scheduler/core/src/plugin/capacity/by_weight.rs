//! What queues deserve that name nothing (argument `deservedByWeight`): of what the queue above deserves, or of the cluster, what
//! is left by those that name amounts, divided by weight among those that want it.

use super::attributes::Attributes;
use crate::plugin::division::{Part, divide};
use crate::plugin::proportion::by_name;
use crate::state::State;
use crate::state::queues::QueueId;
use crate::state::resource::{Ledger, Vector};

/// Fills in what queues deserve that name nothing.
pub(super) fn fill(state: &State, tree: bool, offered: &Ledger, queues: &mut [Attributes]) {
    let mut requests: Vec<Ledger> =
        state.queues.iter().map(|queue| queue.request.clone()).collect();
    let mut siblings: Vec<Vec<QueueId>> = vec![Vec::new(); state.queues.len()];
    let whole = Vector::from(offered);
    if !tree {
        share_out(state, &whole, &by_name(state), &requests, queues);
        return;
    }
    state.queue_tree.add_up(&mut requests, |above, below| above.add_all(below));
    for queue in by_name(state) {
        if let Some(parent) = state.queue_tree.parent(queue) {
            siblings[parent as usize].push(queue);
        }
    }
    for queue in state.queue_tree.downwards() {
        let has_parent = state.queue_tree.parent(queue).is_some();
        let amount =
            if has_parent { queues[queue as usize].deserved.clone() } else { whole.clone() };
        share_out(state, &amount, &siblings[queue as usize], &requests, queues);
    }
}

fn share_out(
    state: &State,
    amount: &Vector,
    siblings: &[QueueId],
    requests: &[Ledger],
    queues: &mut [Attributes],
) {
    let names = |&queue: &QueueId| state.queues[queue as usize].deserved.is_some();
    let mut left = amount.clone();
    for &queue in siblings.iter().filter(|queue| names(queue)) {
        let deserved = &queues[queue as usize].deserved;
        for dim in left.dims().collect::<Vec<_>>() {
            left.set(dim, (left.get(dim) - deserved.get(dim)).max(0.0));
        }
    }
    let sharers: Vec<QueueId> = siblings.iter().copied().filter(|queue| !names(queue)).collect();
    let part = |&queue: &QueueId| {
        let row = &state.queues[queue as usize];
        Part {
            weight: f64::from(row.weight),
            request: Vector::from(&requests[queue as usize]),
            limit: queues[queue as usize].real_capability.clone(),
            guarantee: row.guarantee.clone(),
            absent: !row.exists,
        }
    };
    let parts: Vec<Part> = sharers.iter().map(part).collect();
    for (queue, deserved) in sharers.into_iter().zip(divide(left, &parts)) {
        queues[queue as usize].deserved = deserved;
    }
}
