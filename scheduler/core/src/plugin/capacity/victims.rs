//! Who gives when a queue takes back what it deserves (6.4). A queue gives only what it has borrowed: pods in
//! dimensions of which it deserves nothing, or as long as it is above its deserved amount. Candidates are judged in
//! their order on running sums, so that one answer never takes a queue further down than it may go.

use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

use super::Capacity;
use crate::plugin::{EvictFor, Evictor, Vote};
use crate::state::State;
use crate::state::queues::QueueId;
use crate::state::resource::{Dim, Ledger, PODS, Request, asked, le};
use crate::state::tasks::{NO_JOB, TaskId};

impl Capacity {
    pub(super) fn reclaimable(
        &self,
        state: &State,
        evictor: &Evictor,
        keep: &mut Vec<TaskId>,
    ) -> Vote {
        let taker = state.jobs[evictor.job as usize].queue;
        let request = request_of(state, evictor.task);
        let mut judge = Judge {
            plugin: self,
            state,
            taker,
            asked: dims(request).filter(|&dim| dim != PODS).collect(),
            levels: if self.tree { self.reclaim_level as usize } else { 0 },
            left: FxHashMap::default(),
        };
        if !judge.stands(taker) {
            keep.clear();
            return Vote::Reject;
        }
        if evictor.why == EvictFor::GangReclaim {
            judge.levels = 0;
        }
        keep.retain(|&task| judge.takes(task, evictor.why == EvictFor::Reclaim));
        Vote::Permit
    }
}

/// How a pod stands in for what its queue does not deserve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Borrowed {
    /// The queue deserves what the pod has.
    No,
    /// The queue deserves nothing of the kind.
    ByKind,
    /// The queue has more than it deserves.
    ByAmount,
}

/// One answer about candidates.
struct Judge<'a> {
    plugin: &'a Capacity,
    state: &'a State,
    /// The queue that needs room.
    taker: QueueId,
    /// What its pod asks for, the number of pods aside.
    asked: Vec<Dim>,
    /// How many ancestors must be above their share, too.
    levels: usize,
    /// What queues would have left.
    left: FxHashMap<QueueId, Ledger>,
}

impl Judge<'_> {
    /// Decides on one candidate. `only_useful`: a pod that has nothing of what is asked for stays (step 2).
    fn takes(&mut self, task: TaskId, only_useful: bool) -> bool {
        let row = &self.state.tasks[task];
        if row.job == NO_JOB {
            return false;
        }
        let giver = self.state.jobs[row.job as usize].queue;
        let request = request_of(self.state, task);
        let useful = !only_useful || dims(request).any(|dim| self.asked.contains(&dim));
        if !useful || !self.stands(giver) {
            return false;
        }
        let apart = self.apart(giver);
        let gives = self.is_above_share(&apart, request) && self.keeps_guarantees(&apart, request);
        if gives {
            for queue in apart {
                let sums = &self.plugin.sums[queue as usize];
                let left = self.left.entry(queue).or_insert_with(|| sums.allocated.clone());
                left.add_request(request, -1);
            }
        }
        gives
    }

    /// The queue exists and, in a tree, has a place there.
    fn stands(&self, queue: QueueId) -> bool {
        self.state.queues[queue as usize].exists
            && (!self.plugin.tree || self.state.queue_tree.has_place(queue))
            && self.plugin.queues.len() > queue as usize
    }

    /// The giving queue and those above it that the taking one does not stand under: their sums change by what moves
    /// between the two.
    fn apart(&self, giver: QueueId) -> SmallVec<[QueueId; 8]> {
        let tree = &self.state.queue_tree;
        if !self.plugin.tree {
            return smallvec![giver];
        }
        let levels = tree.depth(giver) - tree.common_depth(self.taker, giver);
        tree.up(giver).take(levels as usize).collect()
    }

    fn has(&self, queue: QueueId) -> &Ledger {
        self.left.get(&queue).unwrap_or(&self.plugin.sums[queue as usize].allocated)
    }

    /// Without the pod no queue falls below its guarantee (I4); in a tree that goes for the queues above, too.
    fn keeps_guarantees(&self, apart: &[QueueId], request: &Request) -> bool {
        apart.iter().all(|&queue| {
            let guarantee = &self.state.queues[queue as usize].guarantee;
            let has = self.has(queue);
            guarantee.dims().all(|dim| {
                let left = has.get(dim) - i128::from(asked(request, dim));
                le(guarantee.get(dim), left as f64)
            })
        })
    }

    /// The queue of the pod is above its share, and so are the ancestors that count (steps 4 and 5).
    fn is_above_share(&self, apart: &[QueueId], request: &Request) -> bool {
        let Some((&giver, above)) = apart.split_first() else { return false };
        let borrowed = self.borrowed(giver, request);
        if borrowed == Borrowed::ByKind && self.family_shares(giver) {
            return false;
        }
        let mut above = above.iter().take(self.levels);
        borrowed != Borrowed::No
            && above.all(|&queue| self.borrowed(queue, request) != Borrowed::No)
    }

    /// Two queues with a common ancestor within the levels that count, of which the taking one deserves nothing of what
    /// it asks for: what they have belongs to that ancestor, and neither may take it from the other (step 4a).
    fn family_shares(&self, giver: QueueId) -> bool {
        let tree = &self.state.queue_tree;
        let near = |queue: QueueId| {
            tree.up(queue).skip(1).take(self.levels).filter(|&queue| tree.depth(queue) > 0)
        };
        let own = &self.plugin.queues[self.taker as usize];
        near(self.taker).any(|queue| near(giver).any(|other| other == queue))
            && !self.asked.iter().any(|&dim| own.deserves(dim))
    }

    /// Has the queue borrowed what the pod has? Where it deserves a part of what the pod has and the taker asks for, that
    /// part decides: who is below its share of what is scarce does not give because it has much of something else (P29).
    fn borrowed(&self, queue: QueueId, request: &Request) -> Borrowed {
        let own = &self.plugin.queues[queue as usize];
        if !dims(request).any(|dim| own.deserves(dim)) {
            return Borrowed::ByKind;
        }
        let has = self.has(queue);
        let governed = || dims(request).filter(|&dim| dim != PODS && own.governs(dim));
        let is_contended = governed().any(|dim| self.asked.contains(&dim));
        let above = |dim: Dim| {
            has.get(dim) as f64 > own.deserved.get(dim)
                && (!is_contended || self.asked.contains(&dim))
        };
        if governed().any(above) { Borrowed::ByAmount } else { Borrowed::No }
    }
}

fn request_of(state: &State, task: TaskId) -> &Request {
    &state.classes.list[state.tasks[task].class as usize].request
}

/// Dimensions that a request names.
fn dims(request: &Request) -> impl Iterator<Item = Dim> + '_ {
    request.iter().filter(|&&(_, amount)| amount > 0).map(|&(dim, _)| dim)
}
