//! Action `enqueue`: admits PodGroups. Every pending PodGroup is asked about once per session; one that names no
//! `minResources` is admitted without a vote, unless its queue is not open (B15).
//!
//! Where gangs get reservations, lack of room keeps none of the first gangs of a queue out, as many as reservations look at: whoever is passed
//! over here for want of room, as a big gang always is while small ones keep the cluster full, would never come to the head of the line.

use rustc_hash::FxHashMap;

use tephra_api::reasons;

use super::Action;
use crate::decision::{Notice, NoticeKind};
use crate::event::{PodGroupPhase, QueueState};
use crate::plugin::{Admission, Vote};
use crate::session::order::Heaps;
use crate::session::{Refusal, Session};
use crate::state::jobs::JobId;
use crate::state::queues::QueueId;

/// The action.
#[derive(Debug)]
pub struct Enqueue;

impl Action for Enqueue {
    fn run(&mut self, session: &mut Session<'_>) {
        let mut heaps = Heaps::default();
        let near = session.pipeline.reservation.map_or(0, |rules| rules.scan);
        let mut admitted = Vec::new();
        for job in session.jobs() {
            let row = &session.state.jobs[job as usize];
            if !row.is_pending() {
                admitted.extend((near > 0 && row.awaits_room()).then_some(job));
            } else if session.has_queue(job) {
                heaps.push_job(session, job);
            } else {
                session.refusals.insert(job, Refusal::NoQueue);
            }
        }
        // Those who have been admitted take their places in the line.
        admitted.retain(|job| heaps.has_jobs_of(session.state.jobs[*job as usize].queue));
        admitted.into_iter().for_each(|job| heaps.push_job(session, job));
        let mut ahead: FxHashMap<QueueId, u32> = FxHashMap::default();
        while let Some(queue) = heaps.pop_queue() {
            let Some(job) = heaps.pop_job(queue) else { continue };
            let ahead = ahead.entry(queue).or_default();
            if !session.state.jobs[job as usize].is_pending() {
                *ahead += 1;
                heaps.push_queue(session, queue);
                continue;
            }
            let admission = ask(session, job, *ahead < near);
            if admission.vote == Vote::Reject {
                session.reject(job, admission);
                if session.state.queues[queue as usize].fifo {
                    // Nobody is admitted past the head; allocate will not serve them before it either.
                    heaps.drop_jobs(queue);
                }
            } else {
                *ahead += 1;
                session.admit(job);
            }
            heaps.push_queue(session, queue);
        }
    }
}

fn ask(session: &mut Session<'_>, job: JobId, near: bool) -> Admission {
    let row = &session.state.jobs[job as usize];
    let queue = &session.state.queues[row.queue as usize];
    if matches!(queue.state, QueueState::Closed | QueueState::Closing) {
        let message = format!("queue {} is not open", queue.name);
        session.refusals.insert(job, Refusal::QueueClosed);
        return Admission::limited(message);
    }
    if row.group.as_ref().is_some_and(|group| group.min_resources.is_some()) {
        session.pipeline.job_enqueueable(session.state, job, near)
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
