//! Action `backfill`: places pods that ask for nothing but a place. They are filtered like others, but room is only
//! a matter of the number of pods on a node.

use super::Action;
use crate::event::QueueState;
use crate::session::order::{Heaps, pending_tasks};
use crate::session::{Refusal, Session};
use crate::state::jobs::JobId;

/// The action.
#[derive(Debug)]
pub struct Backfill;

impl Action for Backfill {
    fn run(&mut self, session: &mut Session<'_>) {
        let mut heaps = Heaps::default();
        for job in session.jobs() {
            if may_be_filled(session, job) {
                heaps.push_job(session, job);
            }
        }
        // A queue is drained before the next one (4.3).
        while let Some(queue) = heaps.pop_queue() {
            while let Some(job) = heaps.pop_job(queue) {
                session.withhold_from(job);
                fill(session, job);
            }
        }
        session.lift();
    }
}

fn may_be_filled(session: &Session<'_>, job: JobId) -> bool {
    let row = &session.state.jobs[job as usize];
    let queue = &session.state.queues[row.queue as usize];
    !row.is_pending()
        && queue.exists
        && !matches!(queue.state, QueueState::Closed | QueueState::Closing)
        && session.pipeline.job_valid(session.state, job).is_ok()
        && row.best_effort + row.stuck > 0
}

/// Places a job's best-effort pods; they are bound once the gang is ready. One that finds no place does not count
/// as ready, so it cannot carry the others over the minimum.
fn fill(session: &mut Session<'_>, job: JobId) {
    let mut tasks = pending_tasks(session.state, job, true);
    session.sort_tasks(&mut tasks);
    let from = session.journal.savepoint();
    let mut refusal = None;
    for task in tasks {
        let problem = match session.held(task) {
            Some(message) => Refusal::Held { task, message },
            None => match session.find_place(task) {
                Some(node) => {
                    session.place(task, node, false);
                    continue;
                }
                None => {
                    if session.depends_on_pods(task) {
                        session.keep_reasons(task);
                    }
                    Refusal::Room { task, placed: 0 }
                }
            },
        };
        session.state.set_stuck(task, true);
        refusal.get_or_insert(problem);
    }
    let placed = session.journal.since(from).len() as u32;
    if session.pipeline.job_ready(session.state, job) {
        session.commit(from, job);
    }
    if let Some(mut refusal) = refusal.filter(|_| !session.is_parked(job)) {
        if let Refusal::Room { placed: fit, .. } = &mut refusal {
            *fit = placed;
        }
        session.refusals.entry(job).or_insert(refusal);
    }
}
