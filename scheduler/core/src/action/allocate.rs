//! Action `allocate`: gives admitted gangs their nodes, queue by queue and job by job. A gang is committed when it
//! is ready; from then on each turn places one more pod, so that surplus is interleaved between queues and jobs. A
//! gang that is only promised room keeps it until the session ends (B54).

use super::Action;
use crate::event::{PodGroupPhase, QueueState};
use crate::session::order::Heaps;
use crate::session::place::Outcome;
use crate::session::{Refusal, Session};
use crate::state::jobs::JobId;
use crate::state::queues::QueueId;

/// The action.
#[derive(Debug)]
pub struct Allocate;

impl Action for Allocate {
    fn run(&mut self, session: &mut Session<'_>) {
        let mut heaps = Heaps::default();
        for job in session.jobs() {
            if may_be_placed(session, job) {
                heaps.push_job(session, job);
            }
        }
        while let Some(queue) = heaps.pop_queue() {
            if session.pipeline.overused(session.state, queue) {
                for job in heaps.drop_jobs(queue) {
                    session.note_overused(queue, job);
                }
                continue;
            }
            let Some(job) = heaps.pop_job(queue) else { continue };
            let from = session.journal.savepoint();
            match session.place_job(job) {
                Outcome::Ready { more } => {
                    session.commit(from, job);
                    if more {
                        heaps.put_back(session, queue, job);
                    }
                }
                Outcome::Pipelined => {
                    session.refusals.insert(job, Refusal::Pipelined);
                }
                Outcome::Refused { refusal, lasting } => {
                    session.rollback(from);
                    session.refuse(job, refusal, lasting);
                    if session.state.queues[queue as usize].fifo {
                        // The head blocks its queue: nobody behind it is served in this session.
                        heaps.drop_jobs(queue);
                    }
                }
                Outcome::Nothing => session.rollback(from),
            }
            heaps.push_queue(session, queue);
        }
    }
}

/// Admits the job where nobody else does, and tells whether it has something to place.
fn may_be_placed(session: &mut Session<'_>, job: JobId) -> bool {
    if session.state.jobs[job as usize].is_pending() {
        if session.pipeline.admits {
            return false;
        }
        if session.has_queue(job) {
            session.state.jobs[job as usize].phase = PodGroupPhase::Inqueue;
            session.touched.push(job);
        }
    }
    if !session.has_queue(job) {
        session.refusals.insert(job, Refusal::NoQueue);
        return false;
    }
    let row = &session.state.jobs[job as usize];
    let queue = &session.state.queues[row.queue as usize];
    if matches!(queue.state, QueueState::Closed | QueueState::Closing) {
        session.refusals.insert(job, Refusal::QueueClosed);
        return false;
    }
    if session.pipeline.job_valid(session.state, job).is_err() {
        return false;
    }
    session.settle_best_effort(job);
    let row = &session.state.jobs[job as usize];
    if row.bind_failures > 1 && session.now_ms < row.retry_at_ms {
        return false;
    }
    if row.parked.is_some_and(|parked| parked.release_epoch == session.state.release_epoch) {
        return false;
    }
    session.has_placeable(job)
}

impl Session<'_> {
    fn note_overused(&mut self, queue: QueueId, job: JobId) {
        if self.refusals.contains_key(&job) || self.pipeline.job_ready(self.state, job) {
            return;
        }
        let Some(task) = self.first_pending(job) else { return };
        let class = self.state.tasks[task].class;
        if !self.pipeline.capped(self.state, queue, class, 1) && self.copies(class, 1) == 0 {
            self.refusals.insert(job, Refusal::Room { task, placed: 0 });
            return;
        }
        let message = self.pipeline.limit_reached(self.state, queue, class).unwrap_or_else(|| {
            format!("queue {} is above its share", self.state.queues[queue as usize].name)
        });
        self.refusals.insert(job, Refusal::Queue { task, message });
    }

    fn refuse(&mut self, job: JobId, refusal: Refusal, lasting: bool) {
        self.refused += 1;
        // What is only promised to others comes back when the session ends.
        let settled = self.journal.open().is_empty();
        if let Refusal::Room { placed, .. } = refusal
            && settled
            && lasting
        {
            // Nothing was released: trying again before something is would end the same way.
            let release_epoch = self.state.release_epoch;
            self.state.jobs[job as usize].parked =
                Some(crate::state::jobs::Parked { release_epoch, placed });
        }
        self.refusals.insert(job, refusal);
    }
}
