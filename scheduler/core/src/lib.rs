//! The scheduling mathematics of Tephra: state, sessions, actions and plugins.
//!
//! Facts come in as [`event::Event`]s, a [`Core`] applies them to its state, and [`Core::session`] answers
//! with [`decision::Decision`]s. There is no I/O, no clock, no async and no randomness here: the same events
//! at the same times give the same decisions, which is what makes replay, tests and audits possible.

pub mod action;
pub mod decision;
pub mod event;
pub mod index;
pub mod laps;
pub mod matching;
pub mod overview;
pub mod pipeline;
pub mod plugin;
pub mod probe;
pub mod registry;
pub mod session;
pub mod state;
pub mod stateful;
pub mod workload;

pub use tephra_api::planted;

pub use probe::Probe;
pub use scheduler::{Audit, Core, Options, Placement, SessionReport};

mod audit;
mod scheduler;
