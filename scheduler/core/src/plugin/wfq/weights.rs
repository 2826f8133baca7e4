//! Shares and weights of queues, as integers.

use super::turns::{WEIGHT_ONE, WHOLE};
use crate::state::State;
use crate::state::queues::QueueId;
use crate::state::resource::Dim;

/// A share counts at most as so many clusters, so that no figure overflows.
const LARGEST: i128 = 1024;

/// The dominant share of amounts: the largest part that they are of the cluster in any dimension that it offers, in [`WHOLE`]s.
pub(super) fn dominant_share(state: &State, amounts: impl Iterator<Item = (Dim, i128)>) -> i128 {
    amounts
        .map(|(dim, amount)| match state.total.get(dim) {
            total if total > 0 => amount.clamp(0, total * LARGEST) * WHOLE / total,
            _ => 0,
        })
        .max()
        .unwrap_or(0)
}

/// Weights by queue. A queue whose policy reads it from there weighs the dominant share of what it deserves, if it names that. Its siblings that name
/// nothing divide what is left of what is above them by their `weight`, and never less than a hundredth of it; where no sibling names anything, each
/// weighs its `weight`.
pub(super) fn weights(state: &State, parent: impl Fn(QueueId) -> Option<QueueId>) -> Vec<i128> {
    let named: Vec<Option<i128>> = (0..state.queues.len() as QueueId)
        .map(|queue| {
            let row = &state.queues[queue as usize];
            let deserved = row.deserved.as_ref().filter(|_| row.exists)?;
            let share =
                dominant_share(state, deserved.dims().map(|dim| (dim, deserved.get(dim) as i128)));
            let reads = state.queue_policy(queue).weight_from_deserved;
            (reads && share > 0).then(|| (share * WEIGHT_ONE / WHOLE).max(1))
        })
        .collect();
    let mut deserved = vec![0; named.len()];
    let mut others = vec![0; named.len()];
    for (queue, row) in state.queues.iter().enumerate() {
        match (parent(queue as QueueId), named[queue]) {
            (Some(above), Some(weight)) => deserved[above as usize] += weight,
            (Some(above), None) if row.exists => others[above as usize] += i128::from(row.weight),
            _ => {}
        }
    }
    let weight = |(queue, row): (usize, &crate::state::queues::Queue)| {
        let own = i128::from(row.weight.max(1));
        match (named[queue], parent(queue as QueueId)) {
            (Some(weight), _) => weight,
            (None, Some(above)) if deserved[above as usize] > 0 => {
                let whole = named[above as usize].unwrap_or(WEIGHT_ONE);
                let left = (whole - deserved[above as usize]).max(whole / 100);
                (left * own / others[above as usize].max(1)).max(1)
            }
            _ => own * WEIGHT_ONE,
        }
    };
    state.queues.iter().enumerate().map(weight).collect()
}
