//! Plugin `drf`: among jobs, the one with the smaller dominant share goes first, and one whose share stays at most that
//! of another may take its place. No arguments. With `enableHierarchy` queues have places in a weighted tree that their
//! annotations describe ([`hierarchy`]), which orders queues and says which queue may take back from which.

mod hierarchy;
#[cfg(test)]
mod tests;

use rustc_hash::FxHashMap;

use super::{Delta, EvictFor, Evictor, Figures, Hooks, OrderKey, Plugin, Vote};
use crate::state::State;
use crate::state::jobs::JobId;
use crate::state::queues::QueueId;
use crate::state::resource::{Ledger, share};
use crate::state::tasks::{NO_JOB, TaskId};
use hierarchy::Hierarchy;

/// Shares that differ by less are equal.
const SHARE_DELTA: f64 = 1e-6;

/// The plugin.
#[derive(Debug, Default)]
pub struct Drf {
    hierarchy: Option<Hierarchy>,
}

/// Largest part that `allocated` is of the cluster in any dimension, `pods` included (P13).
pub fn dominant_share(allocated: &Ledger, total: &Ledger) -> f64 {
    let mut largest = 0.0;
    for (dim, amount) in total.iter() {
        if amount > 0 {
            let part = share(allocated.get(dim) as f64, amount as f64);
            if part > largest {
                largest = part;
            }
        }
    }
    largest
}

impl Plugin for Drf {
    fn hooks(&self) -> Hooks {
        let flat = Hooks::JOB_ORDER | Hooks::PREEMPTABLE;
        if self.hierarchy.is_none() {
            return flat;
        }
        flat | Hooks::QUEUE_ORDER
            | Hooks::JOINT_QUEUE_ORDER
            | Hooks::RECLAIMABLE
            | Hooks::ACCOUNT
            | Hooks::OPEN
    }

    fn enable_hierarchy(&mut self) {
        self.hierarchy = Some(Hierarchy::default());
    }

    fn open(&mut self, state: &State) {
        if let Some(hierarchy) = &mut self.hierarchy {
            *hierarchy = Hierarchy::derive(state);
        }
    }

    /// The tree moves with everything that jobs ask for.
    fn figures(&self, _: &State) -> Option<Figures> {
        self.hierarchy.is_none().then(Figures::default)
    }

    fn account(&mut self, state: &State, delta: &Delta) {
        if let Some(hierarchy) = &mut self.hierarchy {
            let request = &state.classes.list[delta.class as usize].request;
            hierarchy.add(delta.job, request, delta.count);
        }
    }

    fn job_order(&self, state: &State, job: JobId, key: &mut OrderKey) {
        key.push_f64(dominant_share(&state.jobs[job as usize].allocated, &state.total));
    }

    /// At each level of the tree what still wants something goes first, then the smaller share by weight.
    fn queue_order(&self, _: &State, queue: QueueId, key: &mut OrderKey) {
        for (saturated, share) in self.hierarchy.iter().flat_map(|tree| tree.standing(queue)) {
            key.push(i64::from(saturated));
            key.push_f64(share);
        }
    }

    fn victims(&self, state: &State, evictor: &Evictor, keep: &mut Vec<TaskId>) -> Vote {
        match (evictor.why, &self.hierarchy) {
            (EvictFor::Preempt, _) => preemptable(state, evictor, keep),
            (EvictFor::Reclaim, Some(hierarchy)) => reclaimable(hierarchy, state, evictor, keep),
            _ => return Vote::Abstain,
        }
        Vote::Permit
    }
}

/// Pods of jobs that stay, without them, at or above the share that the taking job would have with its pod (4.1). A
/// candidate weighs on the next ones of its job, also when it is spared.
fn preemptable(state: &State, evictor: &Evictor, keep: &mut Vec<TaskId>) {
    let request = |task: TaskId| &state.classes.list[state.tasks[task].class as usize].request;
    let mut own = state.jobs[evictor.job as usize].allocated.clone();
    own.add_request(request(evictor.task), 1);
    let own = dominant_share(&own, &state.total);
    let mut left: FxHashMap<JobId, Ledger> = FxHashMap::default();
    keep.retain(|&task| {
        let job = state.tasks[task].job;
        if job == NO_JOB {
            return false;
        }
        let left = left.entry(job).or_insert_with(|| state.jobs[job as usize].allocated.clone());
        left.add_request(request(task), -1);
        let theirs = dominant_share(left, &state.total);
        own < theirs || (own - theirs).abs() <= SHARE_DELTA
    });
}

/// Pods whose queue would still stand behind the taking one if the pod changed hands (4.2 step 6). Each candidate is
/// judged alone.
fn reclaimable(hierarchy: &Hierarchy, state: &State, evictor: &Evictor, keep: &mut Vec<TaskId>) {
    let request = |task: TaskId| &state.classes.list[state.tasks[task].class as usize].request;
    let taker = state.jobs[evictor.job as usize].queue;
    let mut trial = hierarchy.clone();
    trial.add(evictor.job, request(evictor.task), 1);
    keep.retain(|&task| {
        let job = state.tasks[task].job;
        if job == NO_JOB {
            return false;
        }
        trial.add(job, request(task), -1);
        let giver = state.jobs[job as usize].queue;
        let goes_first = trial.goes_before(taker, giver);
        trial.add(job, request(task), 1);
        goes_first
    });
}
