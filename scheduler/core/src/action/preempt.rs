//! Action `preempt`: waiting pods of a queue make others of the same queue leave, first between jobs, then inside a job
//! (4.4). Victims go only for a gang that can start once they are gone.

use super::Action;
use crate::plugin::EvictFor;
use crate::session::Session;
use crate::session::order::Heaps;
use crate::session::victims::Prey;
use crate::state::jobs::JobId;

/// The action.
#[derive(Debug)]
pub struct Preempt;

impl Action for Preempt {
    fn run(&mut self, session: &mut Session<'_>) {
        let mut heaps = Heaps::default();
        let mut starving = Vec::new();
        for job in session.jobs() {
            if session.may_hunt(job) {
                heaps.push_job(session, job);
                starving.push(job);
            }
        }
        while let Some(queue) = heaps.pop_queue() {
            while let Some(job) = heaps.pop_job(queue) {
                session.hunt_for(EvictFor::Preempt, Prey::Queue, job);
            }
            for &job in &starving {
                if session.state.jobs[job as usize].queue == queue {
                    session.hunt_for(EvictFor::Preempt, Prey::Job, job);
                }
            }
        }
    }
}

impl Session<'_> {
    /// Makes room for a job up to its minimum, or changes nothing.
    fn hunt_for(&mut self, why: EvictFor, prey: Prey, job: JobId) {
        if !self.pipeline.job_starving(self.state, job) {
            return;
        }
        let tasks = self.waiting_in_order(job);
        let mut hunt = self.hunt(why, prey, job);
        if self.is_hopeless(&hunt, &tasks, self.needed(job)) {
            return;
        }
        let from = self.journal.savepoint();
        for task in tasks {
            if !self.pipeline.job_starving(self.state, job) {
                break;
            }
            self.make_room(&mut hunt, task);
        }
        self.settle_hunt(from, prey, job);
    }
}
