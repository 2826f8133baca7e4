//! Action `gangreclaim`: as reclaim, for whole gangs: where their surplus is not enough, gangs of other queues go as a
//! whole (4.7).

use tephra_api::conf::Arguments;

use super::Action;
use super::reclaim::take_back;
use crate::plugin::EvictFor;
use crate::session::Session;

/// The action.
#[derive(Debug)]
pub struct GangReclaim {
    whole_gangs: bool,
}

impl Default for GangReclaim {
    fn default() -> Self {
        Self { whole_gangs: true }
    }
}

impl Action for GangReclaim {
    fn configure(&mut self, arguments: &Arguments, warnings: &mut Vec<String>) {
        self.whole_gangs = arguments.bool("allowWholeBundle", warnings).unwrap_or(true);
        // Every domain is looked at, so the argument is read for its mistakes only.
        if arguments.int("maxDomains", warnings).is_some_and(|most| most <= 0) {
            warnings.push("argument maxDomains must be above 0: ignored".to_owned());
        }
    }

    fn run(&mut self, session: &mut Session<'_>) {
        take_back(session, EvictFor::GangReclaim, self.whole_gangs);
    }
}
