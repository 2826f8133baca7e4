//! Action `reclaim`: queues below their share take back from queues above theirs (4.5). Which queue may take and which
//! pods may go is up to the quota plugins.

use super::Action;
use crate::plugin::EvictFor;
use crate::session::Session;
use crate::session::order::Heaps;
use crate::session::victims::Prey;
use crate::state::jobs::JobId;

/// The action.
#[derive(Debug)]
pub struct Reclaim;

impl Action for Reclaim {
    fn run(&mut self, session: &mut Session<'_>) {
        let mut heaps = Heaps::default();
        for job in session.jobs() {
            if session.may_hunt(job) {
                heaps.push_job(session, job);
            }
        }
        while let Some(queue) = heaps.pop_queue() {
            if session.pipeline.overused(session.state, queue) {
                continue;
            }
            while let Some(job) = heaps.pop_job(queue) {
                reclaim_for(session, job);
            }
        }
    }
}

fn reclaim_for(session: &mut Session<'_>, job: JobId) {
    let queue = session.state.jobs[job as usize].queue;
    let tasks = session.waiting_in_order(job);
    let mut hunt = session.hunt(EvictFor::Reclaim, Prey::OtherQueues, job);
    if session.is_hopeless(&hunt, &tasks, session.needed(job)) {
        return;
    }
    let from = session.journal.savepoint();
    for task in tasks {
        if !session.pipeline.job_starving(session.state, job) {
            break;
        }
        let class = session.state.tasks[task].class;
        if session.pipeline.preemptive(session.state, queue, class) {
            session.make_room(&mut hunt, task);
        }
    }
    session.settle_hunt(from, Prey::OtherQueues, job);
}
