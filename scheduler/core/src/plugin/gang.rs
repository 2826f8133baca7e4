//! Plugin `gang`: all or nothing by `minMember` and role minimums. No arguments. (Its conditions on PodGroups are
//! written by the session's close, `session::close`.)

use rustc_hash::FxHashMap;
use tephra_api::reasons;

use super::{Evictor, Figures, Hooks, Invalid, OrderKey, Plugin, Vote};
use crate::planted::{Bug, planted};
use crate::state::State;
use crate::state::jobs::JobId;
use crate::state::sub_jobs::SubJobId;
use crate::state::tasks::{NO_JOB, TaskId};

/// The plugin.
#[derive(Debug)]
pub struct Gang;

impl Plugin for Gang {
    fn hooks(&self) -> Hooks {
        Hooks::JOB_VALID
            | Hooks::JOB_ORDER
            | Hooks::SUB_JOB_ORDER
            | Hooks::JOB_READY
            | Hooks::SUB_JOB_READY
            | Hooks::JOB_PIPELINED
            | Hooks::SUB_JOB_PIPELINED
            | Hooks::JOB_STARVING
            | Hooks::PREEMPTABLE
            | Hooks::SHIELD
            | Hooks::RECLAIMABLE
            | Hooks::UNIFIED_EVICTABLE
    }

    /// The state alone decides.
    fn figures(&self, _: &State) -> Option<Figures> {
        Some(Figures::default())
    }

    fn job_valid(&self, state: &State, job: JobId) -> Result<(), Invalid> {
        let job = &state.jobs[job as usize];
        if !job.roles_valid() {
            return Err(Invalid {
                reason: reasons::NOT_ENOUGH_PODS_OF_TASK,
                message: "Not enough valid pods of each task for gang-scheduling".to_owned(),
            });
        }
        if !job.sub_jobs_valid() {
            return Err(Invalid {
                reason: reasons::NOT_ENOUGH_PODS_OF_TASK,
                message: "Not enough valid subGroups of each task for gang-scheduling".to_owned(),
            });
        }
        let (valid, min) = (job.counts.valid(), job.min_member());
        if valid < min {
            return Err(Invalid {
                reason: reasons::NOT_ENOUGH_TASKS,
                message: format!(
                    "Not enough valid tasks for gang-scheduling, valid: {valid}, min: {min}"
                ),
            });
        }
        Ok(())
    }

    /// Gangs that are not ready go before ready ones (P8).
    fn job_order(&self, state: &State, job: JobId, key: &mut OrderKey) {
        key.push(i64::from(state.jobs[job as usize].is_ready()));
    }

    fn job_ready(&self, state: &State, job: JobId) -> bool {
        if planted(Bug::NoGangCheck) {
            return true;
        }
        state.jobs[job as usize].is_whole()
    }

    fn job_pipelined(&self, state: &State, job: JobId) -> Vote {
        let job = &state.jobs[job as usize];
        let promised = job.is_pipelined() && job.roles_pipelined() && job.sub_jobs_pipelined();
        if promised { Vote::Permit } else { Vote::Reject }
    }

    /// Sub-groups that are not ready go before ready ones.
    fn sub_job_order(&self, state: &State, job: JobId, sub_job: SubJobId, key: &mut OrderKey) {
        key.push(i64::from(self.sub_job_ready(state, job, sub_job)));
    }

    fn sub_job_ready(&self, state: &State, job: JobId, sub_job: SubJobId) -> bool {
        let sub_jobs = &state.jobs[job as usize].sub_jobs;
        sub_jobs.as_ref().is_none_or(|sub_jobs| sub_jobs.list[sub_job as usize].is_ready())
    }

    fn sub_job_pipelined(&self, state: &State, job: JobId, sub_job: SubJobId) -> Vote {
        let sub_jobs = &state.jobs[job as usize].sub_jobs;
        let promised =
            sub_jobs.as_ref().is_none_or(|sub_jobs| sub_jobs.list[sub_job as usize].is_pipelined());
        if promised { Vote::Permit } else { Vote::Reject }
    }

    fn job_starving(&self, state: &State, job: JobId) -> bool {
        state.jobs[job as usize].is_starving()
    }

    /// Per victim job, tasks are given in order as long as more than the minimum stays ready (P4, P5).
    fn victims(&self, state: &State, evictor: &Evictor, keep: &mut Vec<TaskId>) -> Vote {
        if evictor.why.is_of_gangs() {
            return Vote::Permit;
        }
        let mut left: FxHashMap<JobId, u32> = FxHashMap::default();
        keep.retain(|&task| {
            let job = state.tasks[task].job;
            if job == NO_JOB {
                return false;
            }
            let row = &state.jobs[job as usize];
            let left = left.entry(job).or_insert_with(|| row.counts.ready());
            let spare = *left > row.min_member();
            *left -= u32::from(spare);
            spare
        });
        Vote::Permit
    }
}
