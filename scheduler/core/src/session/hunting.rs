//! What the actions that evict have in common around a search for victims: who may search, for which pods, and what
//! becomes of the plan.

use super::statement::{Op, Savepoint};
use super::victims::Prey;
use super::{Refusal, Session};
use crate::event::QueueState;
use crate::state::jobs::JobId;
use crate::state::status::Status;
use crate::state::tasks::TaskId;

impl Session<'_> {
    /// The job is admitted, valid, in an open queue, and starves.
    pub fn may_hunt(&self, job: JobId) -> bool {
        let row = &self.state.jobs[job as usize];
        let queue = &self.state.queues[row.queue as usize];
        !row.is_pending()
            && queue.exists
            && !matches!(queue.state, QueueState::Closed | QueueState::Closing)
            && !row.has_topology
            && !(row.bind_failures > 1 && self.state.now_ms < row.retry_at_ms)
            && self.pipeline.job_valid(self.state, job).is_ok()
            && self.pipeline.job_starving(self.state, job)
    }

    /// Waiting pods of a job, best-effort ones included, in the order in which they are placed.
    pub fn waiting_in_order(&self, job: JobId) -> Vec<TaskId> {
        let mut tasks = super::order::pending_tasks(self.state, job, false);
        tasks.extend(super::order::pending(self.state, job, true));
        self.sort_tasks(&mut tasks);
        tasks
    }

    /// How many more pods must be promised a place before the job can start.
    pub fn needed(&self, job: JobId) -> u32 {
        if !self.pipeline.gang {
            return 1;
        }
        let row = &self.state.jobs[job as usize];
        row.lacks().saturating_sub(row.counts.of(Status::Pipelined)).max(1)
    }

    /// Ends a search: the plan is carried out if the gang can start with it, else nothing has happened.
    pub fn settle_hunt(&mut self, from: Savepoint, prey: Prey, job: JobId) {
        let placed = self.journal.since(from).iter().any(|op| matches!(op, Op::Place { .. }));
        if !placed || !self.pipeline.job_pipelined(self.state, job) {
            self.rollback(from);
            return;
        }
        self.spare_needless(from);
        let evicts = self.journal.since(from).iter().any(|op| matches!(op, Op::Evict { .. }));
        if prey == Prey::OtherQueues && !evicts {
            // Room that is there is not reclaim's to give: allocate knows what the queue may have (4.5).
            self.rollback(from);
            return;
        }
        self.commit(from, job);
        self.state.jobs[job as usize].parked = None;
        self.refusals.insert(job, Refusal::Pipelined);
    }
}
