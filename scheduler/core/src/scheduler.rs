//! The façade of the crate: one [`Core`] owns the scheduling state, takes events in, runs sessions, and hands
//! decisions out. It is the only writer of the state.

use tephra_api::conf::SchedulerConf;

use crate::decision::Decision;
use crate::event::Event;

/// Settings that do not come from the scheduler configuration file.
#[derive(Clone, Debug)]
pub struct Options {
    /// Queue of PodGroups that name none (`--default-queue`).
    pub default_queue: String,
    /// Tell `Scheduled` once per pod instead of once per PodGroup transition.
    pub event_per_pod: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { default_queue: "default".to_owned(), event_per_pod: false }
    }
}

/// What one session did.
#[derive(Clone, Debug, Default)]
pub struct SessionReport {
    /// Decisions in the order in which they must be carried out.
    pub decisions: Vec<Decision>,
    /// Pods placed and committed.
    pub bound: u32,
    /// Gangs that were tried and could not be placed.
    pub refused: u32,
    /// True when something is still waiting that a later session might place without any new event
    /// (for example a gang admitted in this session after allocate had run).
    pub again: bool,
}

/// One finding of an audit: a ledger that differs from a recomputation (I7), a node over its allocatable (I2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Audit(pub String);
