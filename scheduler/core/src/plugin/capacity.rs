//! Plugin `capacity`: each queue has a `deserved` amount set by its owner, may borrow beyond it up to its capability,
//! and gives back what others deserve. With `enableHierarchy` the queues form a tree (`state::queue_tree`): jobs run in
//! its leaves, and every queue above a leaf has its say.
//!
//! | argument | default |
//! | --- | --- |
//! | `ancestorReclaimLevel` | 0; levels above a queue that must be above their share, too, before the queue gives |
//! | `deservedByWeight` | false: queues that name no `deserved` share by weight what those leave that do, like plugin `proportion` |
//!
//! Quotas of device classes (`deviceclass/...`) are not enforced yet; they are no part of a queue's ordinary amounts (P30).

mod attributes;
mod by_weight;
#[cfg(test)]
mod tests;
mod victims;

use tephra_api::conf::Arguments;

use super::{
    Admission, Delta, EvictFor, Evictor, Figures, Hooks, OrderKey, Plugin, QueueShare, Vote, quota,
};
use crate::event::QueueState;
use crate::state::classes::ClassId;
use crate::state::fingerprint::mix;
use crate::state::jobs::JobId;
use crate::state::queues::QueueId;
use crate::state::resource::{Dim, Ledger, PODS, Vector, le};
use crate::state::tasks::TaskId;
use crate::state::{State, add, remaining_minimum};
use attributes::{Attributes, Sums};

pub use attributes::share;

/// The plugin.
#[derive(Debug, Default)]
pub struct Capacity {
    tree: bool,
    reclaim_level: u32,
    by_weight: bool,
    queues: Vec<Attributes>,
    sums: Vec<Sums>,
    /// What the attributes were derived from: `State::queue_epoch`, or where queues deserve by weight `State::quota_epoch`,
    /// and what nodes offer.
    derived_from: Option<(u64, Ledger)>,
}

impl Capacity {
    /// The queue and, in a tree, all above it.
    fn path<'s>(&self, state: &'s State, queue: QueueId) -> impl Iterator<Item = QueueId> + 's {
        let length = if self.tree { usize::MAX } else { 1 };
        state.queue_tree.up(queue).take(length)
    }

    /// Why a queue takes no jobs at all.
    fn refuses_all(&self, state: &State, queue: QueueId) -> Option<String> {
        let row = &state.queues[queue as usize];
        if row.state != QueueState::Open {
            return Some(format!("queue {} is not open", row.name));
        }
        if !self.tree {
            return None;
        }
        state.queue_fault(queue).or_else(|| {
            state.queue_tree.is_inner(queue).then(|| {
                format!("queue {} takes no jobs itself: other queues stand below it", row.name)
            })
        })
    }

    /// What a queue may reach in a dimension. For `pods` that is a limit only where a capability names it: otherwise it
    /// follows the nodes.
    fn ceiling(&self, state: &State, queue: QueueId, dim: Dim) -> Option<f64> {
        let real = &self.queues.get(queue as usize)?.real_capability;
        if self.tree {
            // What no queue above limits has no limit.
            return real.has(dim).then(|| real.get(dim));
        }
        let capability = state.queues[queue as usize].capability.as_ref();
        (dim != PODS || quota::declared(capability, dim).is_some()).then(|| real.get(dim))
    }

    /// With what a job claims at admission, what a queue has allocated and promised, less what running jobs could give.
    fn wanted(&self, queue: QueueId, min: &Vector, dim: Dim) -> f64 {
        let sums = &self.sums[queue as usize];
        min.get(dim) + sums.allocated.get(dim) as f64 + sums.inqueue.get(dim)
            - sums.elastic.get(dim)
    }

    /// One more pod of a class leaves the queue within its deserved amount in some dimension that the pod asks for.
    fn deserves_one_more(&self, state: &State, queue: QueueId, class: ClassId) -> bool {
        let deserved = &self.queues[queue as usize].deserved;
        let allocated = &self.sums[queue as usize].allocated;
        state.classes.list[class as usize].request.iter().any(|&(dim, amount)| {
            let after = allocated.get(dim) as f64 + amount as f64;
            dim != PODS && amount > 0 && le(after, deserved.get(dim))
        })
    }

    fn refresh_share(&mut self, queue: QueueId) {
        let attributes = &mut self.queues[queue as usize];
        attributes.share = share(&self.sums[queue as usize].allocated, &attributes.deserved);
    }
}

impl Plugin for Capacity {
    fn hooks(&self) -> Hooks {
        let hooks = Hooks::QUEUE_ORDER
            | Hooks::ALLOCATABLE
            | Hooks::PREEMPTIVE
            | Hooks::RECLAIMABLE
            | Hooks::UNIFIED_EVICTABLE
            | Hooks::SHIELD
            | Hooks::JOB_ENQUEUEABLE
            | Hooks::JOB_ENQUEUED
            | Hooks::ACCOUNT
            | Hooks::OPEN;
        if self.tree { hooks | Hooks::VICTIM_QUEUE_ORDER } else { hooks }
    }

    fn configure(&mut self, arguments: &Arguments, warnings: &mut Vec<String>) {
        self.by_weight = arguments.bool("deservedByWeight", warnings).unwrap_or(false);
        let Some(level) = arguments.int("ancestorReclaimLevel", warnings) else { return };
        self.reclaim_level = u32::try_from(level).unwrap_or_else(|_| {
            warnings.push(format!("ancestorReclaimLevel {level} is out of range: 0 is used"));
            0
        });
    }

    fn enable_hierarchy(&mut self) {
        self.tree = true;
    }

    fn open(&mut self, state: &State) {
        // The nodes are no limit for queues in a tree.
        let asks_nodes = !self.tree || self.by_weight;
        let offered = if asks_nodes { attributes::offered(state) } else { Ledger::default() };
        let epoch_now = if self.by_weight { state.quota_epoch } else { state.queue_epoch };
        let fresh = self
            .derived_from
            .as_ref()
            .is_some_and(|(epoch, before)| *epoch == epoch_now && before.same(&offered));
        if !fresh {
            self.queues = if self.tree {
                attributes::in_tree(state)
            } else {
                attributes::side_by_side(state, &offered)
            };
            if self.by_weight {
                by_weight::fill(state, self.tree, &offered, &mut self.queues);
            }
            self.derived_from = Some((epoch_now, offered));
        }
        self.sums = attributes::sums(state, self.tree);
        for queue in 0..self.queues.len() as QueueId {
            self.refresh_share(queue);
        }
    }

    /// What queues have follows from where pods stand, but what they deserve may move with what others ask for.
    fn figures(&self, _: &State) -> Option<Figures> {
        let of_queue =
            |at: &Attributes| mix([&at.deserved, &at.real_capability].map(quota::imprint));
        Some(Figures { exact: mix(self.queues.iter().map(of_queue)), drifting: Vec::new() })
    }

    /// Ancestors follow at once, with their shares (P25).
    fn account(&mut self, state: &State, delta: &Delta) {
        let request = &state.classes.list[delta.class as usize].request;
        for queue in self.path(state, delta.queue) {
            if let Some(sums) = self.sums.get_mut(queue as usize) {
                sums.allocated.add_request(request, delta.count);
                self.refresh_share(queue);
            }
        }
    }

    fn job_enqueued(&mut self, state: &State, job: JobId) {
        let row = &state.jobs[job as usize];
        let Some(min) = row.group.as_ref().and_then(|group| group.min_resources.as_ref()) else {
            return;
        };
        let claim = remaining_minimum(row, min);
        for queue in self.path(state, row.queue) {
            if let Some(sums) = self.sums.get_mut(queue as usize) {
                add(&mut sums.inqueue, &claim);
            }
        }
    }

    /// Higher priority first, then the smaller share, then those that deserve something (P24). In a tree leaves go
    /// first, and two leaves compare by the queues above them that stand side by side; of equal ones the older.
    fn queue_order(&self, state: &State, queue: QueueId, key: &mut OrderKey) {
        key.push(-i64::from(state.queues[queue as usize].priority));
        let push = |queue: QueueId, key: &mut OrderKey| {
            let Some(attributes) = self.queues.get(queue as usize) else { return };
            key.push_f64(attributes.share);
            key.push(i64::from(attributes.deserved.is_empty()));
        };
        if !self.tree {
            return push(queue, key);
        }
        key.push(i64::from(state.queue_tree.is_inner(queue)));
        let mut path: Vec<QueueId> = self.path(state, queue).collect();
        path.reverse();
        for &at in path.iter().skip(1) {
            push(at, key);
            key.push(i64::from(state.queue_tree.rank(at)));
        }
    }

    /// Overused is a queue that has all it deserves in every dimension of it.
    fn queue_share(&self, _: &State, queue: QueueId) -> Option<QueueShare> {
        let Attributes { deserved, real_capability, share } =
            self.queues.get(queue as usize)?.clone();
        let allocated = &self.sums.get(queue as usize)?.allocated;
        let has = |dim| le(deserved.get(dim), allocated.get(dim) as f64);
        let overused = !deserved.is_empty() && deserved.dims().all(has);
        Some(QueueShare { deserved, real_capability, share, overused })
    }

    /// The closest relatives of the queue in need give first.
    fn victim_queue_order(
        &self,
        state: &State,
        preemptor: QueueId,
        victim: QueueId,
        key: &mut OrderKey,
    ) {
        key.push(-i64::from(state.queue_tree.common_depth(preemptor, victim)));
    }

    /// Copies that keep the queue and all above it within their real capability.
    fn allocatable(&self, state: &State, queue: QueueId, class: ClassId, count: u32) -> u32 {
        if self.refuses_all(state, queue).is_some() {
            return 0;
        }
        self.path(state, queue).fold(count, |count, at| {
            let Some(sums) = self.sums.get(at as usize).filter(|_| count > 0) else { return 0 };
            quota::copies(
                state,
                at,
                &sums.allocated,
                |dim| self.ceiling(state, at, dim),
                class,
                count,
            )
        })
    }

    fn limit_reached(
        &self,
        state: &State,
        queue: QueueId,
        class: ClassId,
        count: u32,
    ) -> Option<String> {
        self.refuses_all(state, queue).or_else(|| {
            self.path(state, queue).find_map(|at| {
                let used = &self.sums.get(at as usize)?.allocated;
                let name = &state.queues[at as usize].name;
                quota::reached(state, name, used, |dim| self.ceiling(state, at, dim), class, count)
            })
        })
    }

    fn capped(&self, state: &State, queue: QueueId, class: ClassId, count: u32) -> bool {
        self.refuses_all(state, queue).is_some()
            || self.path(state, queue).any(|at| {
                let capability = state.queues[at as usize].capability.as_ref();
                self.sums.get(at as usize).is_some_and(|sums| {
                    quota::capped(state, &sums.allocated, capability, class, count)
                })
            })
    }

    /// The queue itself may take the pod (its ancestors are asked when it is placed, P33), and it or one of the ancestors
    /// that count deserves it.
    fn preemptive(&self, state: &State, queue: QueueId, class: ClassId) -> bool {
        let Some(sums) = self.sums.get(queue as usize) else { return false };
        let ceiling = |dim| self.ceiling(state, queue, dim);
        if self.refuses_all(state, queue).is_some()
            || quota::copies(state, queue, &sums.allocated, ceiling, class, 1) == 0
        {
            return false;
        }
        let levels = if self.tree { self.reclaim_level as usize } else { 0 };
        self.path(state, queue)
            .take(levels + 1)
            .filter(|&at| at == queue || state.queue_tree.depth(at) > 0)
            .any(|at| self.deserves_one_more(state, at, class))
    }

    fn victims(&self, state: &State, evictor: &Evictor, keep: &mut Vec<TaskId>) -> Vote {
        match evictor.why {
            EvictFor::Preempt | EvictFor::Shuffle => Vote::Abstain,
            EvictFor::GangPreempt => Vote::Permit,
            EvictFor::Reclaim | EvictFor::GangReclaim => self.reclaimable(state, evictor, keep),
        }
    }

    /// Each queue from the leaf to the root must have room for `minResources`. What a queue deserves it gets even if
    /// the queues above are full: others have borrowed it, and reclaim will bring it back.
    fn job_enqueueable(&mut self, state: &State, job: JobId) -> Admission {
        let row = &state.jobs[job as usize];
        if let Some(message) = self.refuses_all(state, row.queue) {
            return Admission::limited(message);
        }
        let Some(min) = row.group.as_ref().and_then(|group| group.min_resources.as_ref()) else {
            return Admission::of(Vote::Permit);
        };
        let entitled = self.entitled(state, job);
        for queue in self.path(state, row.queue) {
            let wanted = |dim| match entitled && queue != row.queue {
                true => min.get(dim),
                false => self.wanted(queue, min, dim),
            };
            let short =
                quota::insufficient(state, min, wanted, |dim| self.ceiling(state, queue, dim));
            if short.is_empty() {
                continue;
            }
            let mut message = format!("queue resource quota insufficient: {}", short.join(", "));
            if queue != row.queue {
                message =
                    format!("{message} in queue {} above it", state.queues[queue as usize].name);
            }
            return Admission::limited(message);
        }
        Admission::of(Vote::Permit)
    }

    /// With the job the queue would have and have promised at most what it deserves, in every dimension of which it
    /// deserves something.
    fn entitled(&self, state: &State, job: JobId) -> bool {
        let row = &state.jobs[job as usize];
        let Some(min) = row.group.as_ref().and_then(|group| group.min_resources.as_ref()) else {
            return false;
        };
        let at = row.queue as usize;
        let (Some(attributes), Some(sums)) = (self.queues.get(at), self.sums.get(at)) else {
            return false;
        };
        let deserved = &attributes.deserved;
        let mut governed = min
            .dims()
            .filter(|&dim| dim != PODS && min.get(dim) > 0.0 && deserved.has(dim))
            .peekable();
        governed.peek().is_some()
            && governed.all(|dim| {
                let after = min.get(dim) + sums.allocated.get(dim) as f64 + sums.inqueue.get(dim);
                le(after, deserved.get(dim))
            })
    }
}
