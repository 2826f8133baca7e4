//! Action `reclaim`: queues below their share take back from queues above theirs (4.5). Which queue may take and which
//! pods may go is up to the quota plugins.

use super::Action;
use crate::plugin::EvictFor;
use crate::session::Session;
use crate::session::hunt::Prey;
use crate::session::order::Heaps;

/// The action.
#[derive(Debug)]
pub struct Reclaim;

impl Action for Reclaim {
    fn run(&mut self, session: &mut Session<'_>) {
        let whole_gangs = !session.pipeline.gang_protects(EvictFor::Reclaim);
        take_back(session, EvictFor::Reclaim, whole_gangs);
    }
}

/// Lets every queue that is not above its share take back for its starving jobs, queue by queue (B29).
pub(super) fn take_back(session: &mut Session<'_>, why: EvictFor, whole_gangs: bool) {
    let mut heaps = Heaps::of(session, &session.hunters());
    while let Some(queue) = heaps.pop_queue() {
        if session.pipeline.overused(session.state, queue) {
            continue;
        }
        while let Some(job) = heaps.pop_job(queue) {
            session.hunt_for(why, Prey::OtherQueues, job, whole_gangs);
        }
    }
}
