//! Action `preempt`: waiting pods of a queue make others of the same queue leave, first between jobs, then inside a job
//! (4.4). Victims go only for a gang that can start once they are gone.
//!
//! The search behind it looks at all nodes and asks the filters about what is left when the victims are gone, so
//! Volcano's second mode (`enableTopologyAwarePreemption`, 4.4.4) is the only one here, and its arguments have no effect.

use rustc_hash::FxHashMap;
use tephra_api::conf::Arguments;

use super::Action;
use crate::plugin::EvictFor;
use crate::session::Session;
use crate::session::hunt::Prey;
use crate::session::order::Heaps;
use crate::state::jobs::JobId;
use crate::state::queues::QueueId;

#[cfg(test)]
mod tests;

/// The action.
#[derive(Debug, Default)]
pub struct Preempt {
    /// Searches even where nobody can be found: what tests compare with.
    thorough: bool,
}

impl Action for Preempt {
    fn configure(&mut self, arguments: &Arguments, warnings: &mut Vec<String>) {
        arguments.bool("enableTopologyAwarePreemption", warnings);
        for name in [
            "topologyAwarePreemptWorkerNum",
            "minCandidateNodesPercentage",
            "minCandidateNodesAbsolute",
            "maxCandidateNodesAbsolute",
        ] {
            arguments.int(name, warnings);
        }
    }

    fn run(&mut self, session: &mut Session<'_>) {
        let starving = session.hunters();
        let mut heaps = Heaps::of(session, &starving);
        let whole_gangs = !session.pipeline.gang_protects(EvictFor::Preempt);
        let lowest = self.lowest_with_prey(session, &starving);
        while let Some(queue) = heaps.pop_queue() {
            while let Some(job) = heaps.pop_job(queue) {
                let priority = session.state.jobs[job as usize].priority;
                let nobody_is_below = |lowest: &FxHashMap<QueueId, i32>| {
                    lowest.get(&queue).is_none_or(|&lowest| lowest >= priority)
                };
                if !lowest.as_ref().is_some_and(nobody_is_below) {
                    session.hunt_for(EvictFor::Preempt, Prey::Queue, job, whole_gangs);
                }
            }
            for &job in &starving {
                let row = &session.state.jobs[job as usize];
                if row.queue == queue && (row.runs_pods() || self.thorough) {
                    session.hunt_for(EvictFor::Preempt, Prey::Job, job, false);
                }
            }
        }
    }
}

impl Preempt {
    /// Where only lower priorities may be evicted: by queue the lowest among its jobs that have pods to give.
    fn lowest_with_prey(
        &self,
        session: &Session<'_>,
        starving: &[JobId],
    ) -> Option<FxHashMap<QueueId, i32>> {
        let asked = !self.thorough && !starving.is_empty();
        let strictly = asked && session.pipeline.strictly_below(EvictFor::Preempt);
        strictly.then(|| session.lowest_with_prey())
    }
}
