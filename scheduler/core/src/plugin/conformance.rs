//! Plugin `conformance`: system pods are nobody's victims. No arguments.

use super::{Evictor, Figures, Hooks, Plugin, Vote};
use crate::state::State;
use crate::state::tasks::TaskId;

/// The plugin.
#[derive(Debug)]
pub struct Conformance;

impl Plugin for Conformance {
    fn hooks(&self) -> Hooks {
        Hooks::SHIELD
            | Hooks::PREEMPTABLE
            | Hooks::RECLAIMABLE
            | Hooks::UNIFIED_EVICTABLE
            | Hooks::VICTIM_TASKS
    }

    /// The state alone decides.
    fn figures(&self, _: &State) -> Option<Figures> {
        Some(Figures::default())
    }

    /// Drops pods of the two system priority classes and of namespace `kube-system`.
    fn victims(&self, state: &State, _: &Evictor, keep: &mut Vec<TaskId>) -> Vote {
        keep.retain(|&task| !state.tasks[task].critical);
        Vote::Permit
    }
}
