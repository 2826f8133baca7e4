//! Action `backfill`: places pods that ask for nothing but a place. They are filtered like others, but room is only
//! a matter of the number of pods on a node.

use super::Action;
use crate::session::Session;
use crate::session::order::{Heaps, pending_tasks};
use crate::state::jobs::JobId;

/// The action.
#[derive(Debug)]
pub struct Backfill;

impl Action for Backfill {
    fn run(&mut self, session: &mut Session<'_>) {
        let mut heaps = Heaps::default();
        for job in session.jobs() {
            let row = &session.state.jobs[job as usize];
            if !row.is_pending()
                && session.has_queue(job)
                && session.pipeline.job_valid(session.state, job).is_ok()
                && !pending_tasks(session.state, job, true).is_empty()
            {
                heaps.push_job(session, job);
            }
        }
        // A queue is drained before the next one (4.3).
        while let Some(queue) = heaps.pop_queue() {
            while let Some(job) = heaps.pop_job(queue) {
                fill(session, job);
            }
        }
    }
}

/// Places a job's best-effort pods; they are bound once the gang is ready.
fn fill(session: &mut Session<'_>, job: JobId) {
    let mut tasks = pending_tasks(session.state, job, true);
    session.sort_tasks(&mut tasks);
    let from = session.journal.savepoint();
    for task in tasks {
        if session.held(task).is_none()
            && let Some(node) = session.find_place(task)
        {
            session.place(task, node, false);
        }
    }
    if session.pipeline.job_ready(session.state, job) {
        session.commit(from, job);
    }
}
