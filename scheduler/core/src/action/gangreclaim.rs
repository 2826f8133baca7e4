//! Action `gangreclaim`: as reclaim, for whole gangs: where their surplus is not enough, gangs of other queues go as a
//! whole (4.7).

use tephra_api::conf::Arguments;

use super::Action;
use super::gangpreempt::allows_whole_gangs;
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
        self.whole_gangs = allows_whole_gangs(arguments, warnings);
    }

    fn run(&mut self, session: &mut Session<'_>) {
        take_back(session, EvictFor::GangReclaim, self.whole_gangs);
    }
}
