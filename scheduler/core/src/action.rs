//! What an action is: a step of a session, in a file of its own.

pub mod allocate;
pub mod backfill;
pub mod enqueue;
pub mod shuffle;

use crate::session::Session;

/// A step of a session.
pub trait Action: Send + std::fmt::Debug {
    /// Runs the step.
    fn run(&mut self, session: &mut Session<'_>);
}
