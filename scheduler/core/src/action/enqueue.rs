//! Action `enqueue`: admits PodGroups. Every pending PodGroup is asked about once per session; one that names no
//! `minResources` is admitted without a vote, unless its queue is not open (B15).

use tephra_api::reasons;

use super::Action;
use crate::decision::{Notice, NoticeKind};
use crate::event::{PodGroupPhase, QueueState};
use crate::plugin::{Admission, Vote};
use crate::session::order::Heaps;
use crate::session::{Refusal, Session};
use crate::state::jobs::JobId;

/// The action.
#[derive(Debug)]
pub struct Enqueue;

impl Action for Enqueue {
    fn run(&mut self, session: &mut Session<'_>) {
        let mut heaps = Heaps::default();
        for job in session.jobs() {
            if !session.state.jobs[job as usize].is_pending() {
                continue;
            }
            if session.has_queue(job) {
                heaps.push_job(session, job);
            } else {
                session.refusals.insert(job, Refusal::NoQueue);
            }
        }
        while let Some(queue) = heaps.pop_queue() {
            let Some(job) = heaps.pop_job(queue) else { continue };
            let admission = ask(session, job);
            if admission.vote == Vote::Reject {
                session.reject(job, admission);
                if session.state.queues[queue as usize].fifo {
                    // Nobody is admitted past the head; allocate will not serve them before it either.
                    heaps.drop_jobs(queue);
                }
            } else {
                session.admit(job);
            }
            heaps.push_queue(session, queue);
        }
    }
}

fn ask(session: &mut Session<'_>, job: JobId) -> Admission {
    let row = &session.state.jobs[job as usize];
    let queue = &session.state.queues[row.queue as usize];
    if matches!(queue.state, QueueState::Closed | QueueState::Closing) {
        let message = format!("queue {} is not open", queue.name);
        session.refusals.insert(job, Refusal::QueueClosed);
        return Admission::limited(message);
    }
    if row.group.as_ref().is_some_and(|group| group.min_resources.is_some()) {
        session.pipeline.job_enqueueable(session.state, job)
    } else {
        Admission::of(Vote::Permit)
    }
}

impl Session<'_> {
    /// Lets a job compete for room.
    pub fn admit(&mut self, job: JobId) {
        self.pipeline.job_enqueued(self.state, job);
        let row = &mut self.state.jobs[job as usize];
        row.phase = PodGroupPhase::Inqueue;
        row.told_rejection = None;
        self.state.refresh_job(job);
        self.touched.push(job);
    }

    /// Tells once why a job is not admitted.
    fn reject(&mut self, job: JobId, admission: Admission) {
        let Admission { message, lacks_room, .. } = admission;
        let refusal = Refusal::NotAdmitted { message: message.clone(), lacks_room };
        self.refusals.entry(job).or_insert(refusal);
        let row = &mut self.state.jobs[job as usize];
        if row.told_rejection.as_deref() == Some(&*message) {
            return;
        }
        row.told_rejection = Some(message.as_str().into());
        if let Some(group) = &row.group {
            self.notices.push(Notice {
                kind: NoticeKind::PodGroup,
                object: row.key.clone(),
                uid: group.uid.to_string(),
                warning: false,
                reason: reasons::UNSCHEDULABLE,
                message,
            });
        }
    }
}
