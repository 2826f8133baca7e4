//! Plugin `proportion`: each queue's deserved share of the cluster by weighted water filling, used as its ceiling.
//! No arguments. Flat: `spec.parent` is ignored.
//!
//! Differences from Volcano: queues without jobs have a share too; a weight of 0 counts as 1.

use crate::event::QueueState;
use crate::plugin::quota::{self, at_least, real_capability, share_of};
use crate::plugin::{Admission, Delta, Hooks, OrderKey, Plugin, Vote};
use crate::state::State;
use crate::state::classes::ClassId;
use crate::state::jobs::JobId;
use crate::state::queues::QueueId;
use crate::state::resource::{CPU, Dim, EPSILON, Ledger, MEMORY, PODS, Vector, le};

use super::Evictor;
use crate::state::tasks::{NO_JOB, TaskId};

/// Noise of the water filling as part of an amount; it is at least the tolerance, below which a remainder is no longer
/// divided.
const NOISE_PART: f64 = 1e-12;

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
    /// Water filling (proportion step 7): in each round every queue that wants more gets its part by weight of
    /// what remains, capped by real capability and request, lifted to its guarantee.
    fn fill(&mut self, state: &State) {
        let total = Vector::from(&state.total);
        let mut guaranteed = Vector::default();
        for queue in state.queues.iter().filter(|queue| queue.exists) {
            crate::state::add(&mut guaranteed, &queue.guarantee);
        }
        self.queues.clear();
        let mut requests = Vec::with_capacity(state.queues.len());
        for queue in &state.queues {
            self.queues.push(Attributes {
                real_capability: real_capability(
                    &total,
                    &guaranteed,
                    &queue.guarantee,
                    queue.capability.as_ref(),
                ),
                ..Attributes::default()
            });
            requests.push(Vector::from(&queue.request));
        }
        let order = by_name(state);
        let mut remaining = total;
        let mut met = vec![false; state.queues.len()];
        for (met, queue) in met.iter_mut().zip(&state.queues) {
            *met = queue.jobs == 0 || !queue.exists;
        }
        // Each round meets a queue, changes what remains, or is the last one.
        loop {
            let weights: f64 = order
                .iter()
                .filter(|&&q| !met[q as usize])
                .map(|&q| f64::from(state.queues[q as usize].weight))
                .sum();
            if weights == 0.0 {
                break;
            }
            let before = remaining.clone();
            let mut given = Vector::default();
            for &q in &order {
                let at = q as usize;
                if met[at] {
                    continue;
                }
                let queue = &state.queues[at];
                let attributes = &mut self.queues[at];
                let old = attributes.deserved.clone();
                let ratio = f64::from(queue.weight) / weights;
                let mut dims: Vec<Dim> = vec![CPU, MEMORY];
                at_least(&mut dims, &before);
                at_least(&mut dims, &old);
                at_least(&mut dims, &queue.guarantee);
                for dim in dims {
                    let mut amount = old.get(dim) + before.get(dim) * ratio;
                    if attributes.real_capability.has(dim) {
                        amount = amount.min(attributes.real_capability.get(dim));
                    }
                    // A capability below the guarantee is still the ceiling (I4).
                    let lift = queue.guarantee.get(dim).min(attributes.real_capability.get(dim));
                    amount = amount.min(requests[at].get(dim)).max(lift);
                    attributes.deserved.set(dim, amount);
                    given.set(dim, given.get(dim) + amount - old.get(dim));
                }
                let satisfied = requests[at]
                    .dims()
                    .all(|dim| le(requests[at].get(dim), attributes.deserved.get(dim)));
                met[at] = satisfied || same(&attributes.deserved, &old);
            }
            for dim in given.dims() {
                let left = before.get(dim) - given.get(dim);
                remaining.set(dim, left.max(0.0));
            }
            if remaining.is_empty() || remaining == before {
                break;
            }
        }
        for (at, attributes) in self.queues.iter_mut().enumerate() {
            attributes.deserved = settled(&attributes.deserved);
            attributes.share = share_of(&state.queues[at].allocated, &attributes.deserved);
        }
    }
}

/// Adding parts leaves noise in the last bits, the rounds end while a little remains, and one bit too little would refuse a
/// pod that fits exactly: amounts that miss a whole unit by noise alone become that unit.
fn settled(deserved: &Vector) -> Vector {
    let mut settled = Vector::default();
    for dim in deserved.dims() {
        let amount = deserved.get(dim);
        let noise = (amount * NOISE_PART).max(EPSILON);
        let whole = amount.round();
        settled.set(dim, if (amount - whole).abs() <= noise { whole } else { amount });
    }
    settled
}

fn same(a: &Vector, b: &Vector) -> bool {
    a.dims().chain(b.dims()).all(|dim| a.get(dim) == b.get(dim))
}

/// Queues in order of their names: rounding must not depend on the order in which they were seen.
fn by_name(state: &State) -> Vec<QueueId> {
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
