//! Plugin `proportion`: each queue's deserved share of the cluster by weighted water filling, used as its ceiling.
//! No arguments. Flat: `spec.parent` is ignored.
//!
//! Differences from Volcano: queues without jobs have a share too; a weight of 0 counts as 1.

use crate::event::QueueState;
use crate::plugin::division::{Part, divide};
use crate::plugin::quota::{self, at_least, imprint, real_capability, share_of};
use crate::plugin::{Admission, Delta, Figures, Hooks, OrderKey, Plugin, QueueShare, Vote};
use crate::state::State;
use crate::state::classes::ClassId;
use crate::state::fingerprint::mix;
use crate::state::jobs::JobId;
use crate::state::queues::{Queue, QueueId};
use crate::state::resource::{CPU, Dim, Ledger, MEMORY, PODS, Vector, le};

use super::Evictor;
use crate::state::tasks::{NO_JOB, TaskId};

/// What a queue may have.
#[derive(Clone, Debug, Default)]
struct Attributes {
    deserved: Vector,
    real_capability: Vector,
    share: f64,
}

/// The plugin.
#[derive(Debug, Default)]
pub struct Proportion {
    queues: Vec<Attributes>,
    epoch: u64,
}

impl Proportion {
    fn fill(&mut self, state: &State) {
        let total = Vector::from(&state.total);
        let mut guaranteed = Vector::default();
        for queue in state.queues.iter().filter(|queue| queue.exists) {
            crate::state::add(&mut guaranteed, &queue.guarantee);
        }
        let real = |queue: &Queue| {
            let capability = queue.capability.as_ref();
            real_capability(&total, &guaranteed, &queue.guarantee, capability)
        };
        let order = by_name(state);
        let part = |&at: &QueueId| {
            let queue = &state.queues[at as usize];
            Part {
                weight: f64::from(queue.weight),
                request: Vector::from(&queue.request),
                limit: real(queue),
                guarantee: queue.guarantee.clone(),
                absent: queue.jobs == 0 || !queue.exists,
            }
        };
        let parts: Vec<Part> = order.iter().map(part).collect();
        self.queues = vec![Attributes::default(); state.queues.len()];
        for ((&at, part), deserved) in order.iter().zip(&parts).zip(divide(total.clone(), &parts)) {
            let share = share_of(&state.queues[at as usize].allocated, &deserved);
            let real_capability = part.limit.clone();
            self.queues[at as usize] = Attributes { deserved, real_capability, share };
        }
    }
}

/// Queues in order of their names: rounding must not depend on the order in which they were seen.
pub(super) fn by_name(state: &State) -> Vec<QueueId> {
    let mut order: Vec<QueueId> = (0..state.queues.len() as QueueId).collect();
    order.sort_by(|&a, &b| state.queues[a as usize].name.cmp(&state.queues[b as usize].name));
    order
}

impl Plugin for Proportion {
    fn hooks(&self) -> Hooks {
        Hooks::QUEUE_ORDER
            | Hooks::OVERUSED
            | Hooks::ALLOCATABLE
            | Hooks::PREEMPTIVE
            | Hooks::RECLAIMABLE
            | Hooks::SHIELD
            | Hooks::JOB_ENQUEUEABLE
            | Hooks::ACCOUNT
            | Hooks::OPEN
    }

    fn open(&mut self, state: &State) {
        if self.epoch != state.quota_epoch || self.queues.len() != state.queues.len() {
            self.epoch = state.quota_epoch;
            self.fill(state);
        }
    }

    fn figures(&self, _: &State) -> Option<Figures> {
        let of_queue = |at: &Attributes| {
            mix([imprint(&at.deserved), imprint(&at.real_capability), at.share.to_bits()])
        };
        Some(Figures { exact: mix(self.queues.iter().map(of_queue)), drifting: Vec::new() })
    }

    fn account(&mut self, state: &State, delta: &Delta) {
        let at = delta.queue as usize;
        if let Some(attributes) = self.queues.get_mut(at) {
            attributes.share = share_of(&state.queues[at].allocated, &attributes.deserved);
        }
    }

    /// Higher priority first, then the smaller share.
    fn queue_order(&self, state: &State, queue: QueueId, key: &mut OrderKey) {
        key.push(-i64::from(state.queues[queue as usize].priority));
        key.push_f64(self.queues.get(queue as usize).map_or(0.0, |attributes| attributes.share));
    }

    fn queue_share(&self, _: &State, queue: QueueId) -> Option<QueueShare> {
        let Attributes { deserved, real_capability, share } =
            self.queues.get(queue as usize)?.clone();
        Some(QueueShare { deserved, real_capability, share, overused: false })
    }

    /// Nothing deserved is left in any dimension (P16, P18).
    fn overused(&self, state: &State, queue: QueueId) -> bool {
        let deserved = &self.queues[queue as usize].deserved;
        let allocated = &state.queues[queue as usize].allocated;
        let mut dims: Vec<Dim> = vec![CPU, MEMORY];
        at_least(&mut dims, deserved);
        dims.into_iter().all(|dim| le(deserved.get(dim), allocated.get(dim) as f64))
    }

    /// Copies that keep the queue within its deserved amounts, in the dimensions that the class asks for. `pods`
    /// counts too: a limit of pods that nobody enforces would surprise its owner.
    fn allocatable(&self, state: &State, queue: QueueId, class: ClassId, count: u32) -> u32 {
        let row = &state.queues[queue as usize];
        if row.state != QueueState::Open {
            return 0;
        }
        let Some(attributes) = self.queues.get(queue as usize) else { return 0 };
        let ceiling = |dim| attributes.ceiling(dim, row.capability.as_ref());
        quota::copies(state, queue, &row.allocated, ceiling, class, count)
    }

    fn limit_reached(
        &self,
        state: &State,
        queue: QueueId,
        class: ClassId,
        count: u32,
    ) -> Option<String> {
        let row = &state.queues[queue as usize];
        if row.state != QueueState::Open {
            return Some(format!("queue {} is not open", row.name));
        }
        let attributes = self.queues.get(queue as usize)?;
        let ceiling = |dim| attributes.ceiling(dim, row.capability.as_ref());
        quota::reached(state, &row.name, &row.allocated, ceiling, class, count)
    }

    fn capped(&self, state: &State, queue: QueueId, class: ClassId, count: u32) -> bool {
        let row = &state.queues[queue as usize];
        row.state != QueueState::Open
            || quota::capped(state, &row.allocated, row.capability.as_ref(), class, count)
    }

    fn preemptive(&self, state: &State, queue: QueueId, class: ClassId) -> bool {
        self.allocatable(state, queue, class, 1) == 1
    }

    /// A queue gives as long as it has more than it deserves.
    fn victims(&self, state: &State, _: &Evictor, keep: &mut Vec<TaskId>) -> Vote {
        let mut allocated: Vec<Option<Ledger>> = vec![None; state.queues.len()];
        keep.retain(|&task| {
            let row = &state.tasks[task];
            if row.job == NO_JOB {
                return false;
            }
            let queue = state.jobs[row.job as usize].queue as usize;
            let left =
                allocated[queue].get_or_insert_with(|| state.queues[queue].allocated.clone());
            let deserved = &self.queues[queue].deserved;
            let within = left.iter().all(|(dim, amount)| le(amount as f64, deserved.get(dim)));
            if !within {
                left.add_request(&state.classes.list[row.class as usize].request, -1);
            }
            !within
        });
        Vote::Permit
    }

    fn job_enqueueable(&mut self, state: &State, job: JobId) -> Admission {
        let row = &state.jobs[job as usize];
        let queue = &state.queues[row.queue as usize];
        if queue.state != QueueState::Open {
            return Admission::limited(format!("queue {} is not open", queue.name));
        }
        let Some(min) = row.group.as_ref().and_then(|group| group.min_resources.as_ref()) else {
            return Admission::of(Vote::Permit);
        };
        let real = &self.queues[row.queue as usize].real_capability;
        let wanted = |dim| {
            min.get(dim) + queue.allocated.get(dim) as f64 + queue.inqueue.get(dim)
                - queue.elastic.get(dim)
        };
        let short = quota::insufficient(state, min, wanted, |dim| Some(real.get(dim)));
        if short.is_empty() {
            return Admission::of(Vote::Permit);
        }
        Admission::limited(format!("queue resource quota insufficient: {}", short.join(", ")))
    }
}

impl Attributes {
    /// What the queue may reach: its deserved amount. For `pods` it is a limit only where the queue's capability names
    /// it: otherwise it follows the nodes.
    fn ceiling(&self, dim: Dim, capability: Option<&Vector>) -> Option<f64> {
        if dim == PODS {
            quota::declared(capability, dim).map(|_| self.real_capability.get(dim))
        } else {
            Some(self.deserved.get(dim))
        }
    }
}
