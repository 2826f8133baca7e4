//! The seeded fault simulation: the whole scheduler and controller over the in-process API server, in virtual time.
//!
//! A seed stands for one run: a small cluster, a story told on it (gangs come and go, nodes vanish, processes crash; `story.rs`),
//! and the weather over it (lost, late and doubled events, refused and unanswered requests; `weather.rs`). Once the run has
//! taken its steps the weather calms down, everything comes to rest, and the independent checker of the simulator judges the
//! history. The same seed gives the same run, request by request: a finding is replayed with one command.
//!
//! `crash.rs` is the exhaustive half: fixed small scenarios in which a process dies after its k-th write, for each k.
//! What is injected and checked is told in `docs/faults.md`.

pub mod campaign;
pub mod cluster;
pub mod crash;
pub mod dice;
pub mod digest;
pub mod figures;
pub mod objects;
pub mod process;
pub mod run;
pub mod story;
mod suspension;
pub mod weather;

pub use campaign::campaign;
pub use figures::Figures;
pub use run::{Outcome, Plan, Theme, run_seed};
