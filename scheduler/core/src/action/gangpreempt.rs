//! Action `gangpreempt`: as preempt between jobs, for whole gangs: where the surplus of gangs of lower priority is not
//! enough, gangs go as a whole (4.7).

use tephra_api::conf::Arguments;

use super::Action;
use crate::plugin::EvictFor;
use crate::session::Session;
use crate::session::hunt::Prey;
use crate::session::order::Heaps;

/// The action.
#[derive(Debug)]
pub struct GangPreempt {
    whole_gangs: bool,
}

impl Default for GangPreempt {
    fn default() -> Self {
        Self { whole_gangs: true }
    }
}

impl Action for GangPreempt {
    fn configure(&mut self, arguments: &Arguments, warnings: &mut Vec<String>) {
        self.whole_gangs = allows_whole_gangs(arguments, warnings);
    }

    fn run(&mut self, session: &mut Session<'_>) {
        let mut heaps = Heaps::of(session, &session.hunters());
        while let Some(queue) = heaps.pop_queue() {
            while let Some(job) = heaps.pop_job(queue) {
                session.hunt_for(EvictFor::GangPreempt, Prey::Queue, job, self.whole_gangs);
            }
        }
    }
}

/// Reads the arguments of both gang actions: may gangs go as a whole?
pub(super) fn allows_whole_gangs(arguments: &Arguments, warnings: &mut Vec<String>) -> bool {
    let whole_gangs = arguments.bool("allowWholeBundle", warnings).unwrap_or(true);
    // Every domain is looked at, so the argument is read for its mistakes only.
    if arguments.int("maxDomains", warnings).is_some_and(|most| most <= 0) {
        warnings.push("argument maxDomains must be above 0: ignored".to_owned());
    }
    whole_gangs
}
