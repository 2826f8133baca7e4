//! Evictions that a scheduler decided on and did not live to finish. A gang leaves whole or not at all (I5): where some of it
//! is gone and somebody waits for the place of a member that is marked as a victim, the rest of it goes too.

use super::Session;
use crate::plugin::EvictFor;
use crate::state::jobs::JobId;
use crate::state::tasks::{NO_JOB, TaskId};

impl Session<'_> {
    /// Finishes what a scheduler before this one began.
    pub(super) fn finish_evictions(&mut self) {
        for task in std::mem::take(&mut self.state.half_evicted) {
            let row = &self.state.tasks[task];
            if !row.live || !row.status.is_allocated() || row.job == NO_JOB {
                continue;
            }
            if let Some(by) = self.waiter_for_place_of(task)
                && self.is_broken(row.job)
            {
                self.evict_rest(row.job, by);
            }
        }
    }

    /// The job of a pod that was promised the node that a pod is on.
    fn waiter_for_place_of(&self, task: TaskId) -> Option<JobId> {
        let node = &self.state.nodes.identity.get(self.state.tasks[task].node as usize)?.name;
        let promised = self.state.nominated.iter().filter(|(_, promise)| promise.node == *node);
        promised.map(|(&waiter, _)| self.state.tasks[waiter].job).min().filter(|&job| job != NO_JOB)
    }

    fn evict_rest(&mut self, gang: JobId, by: JobId) {
        let mut members = self.state.jobs[gang as usize].tasks.clone();
        members.retain(|&task| self.state.tasks[task].status.is_allocated());
        let from = self.journal.savepoint();
        members.into_iter().for_each(|task| self.evict(task, EvictFor::Preempt));
        self.commit(from, by);
    }
}
