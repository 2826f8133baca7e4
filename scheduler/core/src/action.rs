//! What an action is: a step of a session, in a file of its own.

pub mod allocate;
pub mod backfill;
pub mod enqueue;
pub mod gangpreempt;
pub mod gangreclaim;
pub mod preempt;
pub mod reclaim;

use tephra_api::conf::Arguments;
pub mod shuffle;

use crate::session::Session;

/// A step of a session.
pub trait Action: Send + std::fmt::Debug {
    /// Reads its arguments in `configurations`; what is wrong with them goes into `warnings`, the default stays.
    #[expect(unused_variables, reason = "most actions have no arguments")]
    fn configure(&mut self, arguments: &Arguments, warnings: &mut Vec<String>) {}

    /// Runs the step.
    fn run(&mut self, session: &mut Session<'_>);
}
