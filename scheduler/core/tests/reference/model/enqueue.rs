//! Action `enqueue` (4.1): every pending gang is asked about once, queue by queue.

use std::collections::BTreeMap;

use tephra_core::event::{PodGroupPhase, QueueState};

use super::session::Session;

/// Runs the action.
pub fn run(session: &mut Session) {
    let mut waiting: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (at, job) in session.jobs.iter().enumerate() {
        let jobs = waiting.entry(job.queue.clone()).or_default();
        if session.is_pending(at) {
            jobs.push(at);
        }
    }
    while let Some(queue) = session.best_queue(waiting.keys()) {
        let Some(jobs) = waiting.get_mut(&queue) else { return };
        let Some(job) = session.best_job(jobs) else {
            waiting.remove(&queue);
            continue;
        };
        jobs.retain(|&other| other != job);
        let remaining = session.remaining_minimum(job);
        let row = &session.jobs[job];
        let admitted = !session.closed(&queue)
            && (row.min_resources.is_none()
                || (session.overcommit.enqueueable(row)
                    && session.proportion.enqueueable(row, &remaining)));
        if admitted {
            session.overcommit.enqueued(&remaining);
            session.jobs[job].phase = PodGroupPhase::Inqueue;
            session.admitted.push(session.jobs[job].group.key.clone());
        } else if session.queues[&queue].fifo {
            // Nobody passes the head.
            waiting.remove(&queue);
        }
    }
}

impl Session {
    /// The queue takes nobody.
    pub fn closed(&self, queue: &str) -> bool {
        matches!(self.queues[queue].state, QueueState::Closed | QueueState::Closing)
    }
}
