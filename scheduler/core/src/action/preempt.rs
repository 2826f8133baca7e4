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
    #[cfg(test)]
    thorough: bool,
}

/// Who need not search.
#[derive(Debug, Default)]
struct Futile {
    /// Only lower priorities may be evicted: by queue the lowest among those that have pods to give.
    lowest: Option<FxHashMap<QueueId, i32>>,
}

impl Futile {
    /// No job of the queue that has pods to give has a lower priority.
    fn among_jobs(&self, session: &Session<'_>, queue: QueueId, job: JobId) -> bool {
        let priority = session.state.jobs[job as usize].priority;
        let nobody = |lowest: &i32| *lowest >= priority;
        self.lowest.as_ref().is_some_and(|known| known.get(&queue).is_none_or(nobody))
    }
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
        let futile = self.futile(session, &starving);
        while let Some(queue) = heaps.pop_queue() {
            while let Some(job) = heaps.pop_job(queue) {
                if futile.among_jobs(session, queue, job) {
                    continue;
                }
                session.hunt_for(EvictFor::Preempt, Prey::Queue, job, whole_gangs);
            }
            for &job in &starving {
                let row = &session.state.jobs[job as usize];
                if row.queue == queue && (row.runs_pods() || self.is_thorough()) {
                    session.hunt_for(EvictFor::Preempt, Prey::Job, job, false);
                }
            }
        }
    }
}

impl Preempt {
    fn futile(&self, session: &Session<'_>, starving: &[JobId]) -> Futile {
        let known = session.pipeline.strictly_below(EvictFor::Preempt) && !starving.is_empty();
        let known = known && !self.is_thorough();
        Futile { lowest: known.then(|| session.lowest_with_prey()) }
    }

    #[cfg(test)]
    fn is_thorough(&self) -> bool {
        self.thorough
    }

    #[cfg(not(test))]
    fn is_thorough(&self) -> bool {
        false
    }
}
