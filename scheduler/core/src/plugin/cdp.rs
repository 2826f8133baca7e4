//! Plugin `cdp` (cooldown protection): a pod is nobody's victim for a while after it was scheduled, so that what was evicted and
//! placed again does not move at once. The time is its label, else its annotation, `volcano.sh/cooldown-time`; one that cannot be
//! read protects nobody. No arguments.

use super::{Evictor, Hooks, Plugin, Vote};
use crate::state::State;
use crate::state::status::Status;
use crate::state::tasks::TaskId;

/// The plugin.
#[derive(Debug)]
pub struct Cdp;

impl Plugin for Cdp {
    /// The gang actions and shuffle respect the cooldown too (P82).
    fn hooks(&self) -> Hooks {
        Hooks::SHIELD
            | Hooks::PREEMPTABLE
            | Hooks::RECLAIMABLE
            | Hooks::UNIFIED_EVICTABLE
            | Hooks::VICTIM_TASKS
    }

    /// The clock starts when the pod was scheduled, and protects it once it runs (P81).
    fn victims(&self, state: &State, _: &Evictor, keep: &mut Vec<TaskId>) -> Vote {
        keep.retain(|&task| {
            let row = &state.tasks[task];
            let cools = row.cooling_until_ms.is_some_and(|until_ms| until_ms > state.now_ms);
            !(cools && row.status == Status::Running)
        });
        Vote::Permit
    }
}
