//! Plugin `priority`: order by priority, preempt only downwards. Job priority comes from the PodGroup's
//! priority class, task priority from annotation or pod. No arguments.

use super::{EvictFor, Evictor, Figures, Hooks, OrderKey, Plugin, Vote};
use crate::state::State;
use crate::state::jobs::JobId;
use crate::state::status::Status;
use crate::state::tasks::{NO_JOB, TaskId};

/// The plugin.
#[derive(Debug)]
pub struct Priority;

impl Plugin for Priority {
    fn hooks(&self) -> Hooks {
        Hooks::JOB_ORDER
            | Hooks::TASK_ORDER
            | Hooks::SUB_JOB_ORDER
            | Hooks::PREEMPTABLE
            | Hooks::SHIELD
            | Hooks::UNIFIED_EVICTABLE
            | Hooks::JOB_STARVING
    }

    /// The state alone decides.
    fn figures(&self, _: &State) -> Option<Figures> {
        Some(Figures::default())
    }

    fn job_order(&self, state: &State, job: JobId, key: &mut OrderKey) {
        key.push(-i64::from(state.jobs[job as usize].priority));
    }

    fn task_order(&self, state: &State, task: TaskId, key: &mut OrderKey) {
        key.push(-i64::from(state.tasks[task].priority));
    }

    fn victims(&self, state: &State, evictor: &Evictor, keep: &mut Vec<TaskId>) -> Vote {
        if evictor.why == EvictFor::GangReclaim {
            return Vote::Permit;
        }
        let by = &state.tasks[evictor.task];
        if by.job == NO_JOB {
            keep.clear();
            return Vote::Permit;
        }
        let priority = state.jobs[by.job as usize].priority;
        keep.retain(|&task| {
            let victim = &state.tasks[task];
            match victim.job {
                NO_JOB => false,
                job if job == by.job => victim.priority < by.priority,
                job => state.jobs[job as usize].priority < priority,
            }
        });
        Vote::Permit
    }

    /// Counts only tasks that can still run (P2).
    fn job_starving(&self, state: &State, job: JobId) -> bool {
        state.jobs[job as usize].counts.of(Status::Pending) > 0
    }
}
