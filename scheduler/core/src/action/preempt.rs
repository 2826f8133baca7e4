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

/// The action.
#[derive(Debug)]
pub struct Preempt;

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
        let strictly_below = session.pipeline.strictly_below(EvictFor::Preempt);
        let lowest = if strictly_below && !starving.is_empty() {
            session.lowest_with_prey()
        } else {
            FxHashMap::default()
        };
        while let Some(queue) = heaps.pop_queue() {
            while let Some(job) = heaps.pop_job(queue) {
                let priority = session.state.jobs[job as usize].priority;
                if strictly_below && lowest.get(&queue).is_none_or(|&lowest| lowest >= priority) {
                    continue;
                }
                session.hunt_for(EvictFor::Preempt, Prey::Queue, job, whole_gangs);
            }
            for &job in &starving {
                let row = &session.state.jobs[job as usize];
                if row.queue == queue && row.runs_pods() {
                    session.hunt_for(EvictFor::Preempt, Prey::Job, job, false);
                }
            }
        }
    }
}
