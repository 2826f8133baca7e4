//! The story of suspensions: teams share a small cluster, gangs make room for others and come back, while dice break things.
//!
//! Configuration `tephra`; owners are Jobs, PyTorchJobs and plain pods, played by [`operators`] with the delays that the real
//! ones have; [`story`] has what people and bad luck do; [`tally`] counts from the history what really happened, each row of the fault
//! table of suspensions among it. The checker of the simulator judges the history (`simulator/src/checker/suspension.rs`).

mod acts;
pub(super) mod objects;
pub(super) mod operators;
mod story;
mod tally;

pub(super) use story::Story;
pub(super) use tally::tally;
