//! Plugin `cdp` (cooldown protection): a pod is nobody's victim for a while after it was scheduled, so that what was evicted and
//! placed again does not move at once. The time is its label, else its annotation, `volcano.sh/cooldown-time`; one that cannot be
//! read protects nobody. No arguments.

use super::{Evictor, Figures, Hooks, Plugin, Vote};
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

    /// The end of a cooldown is not looked for: as long as any may last, nothing is certain.
    fn figures(&self, state: &State) -> Option<Figures> {
        (state.cooling_until_ms <= state.now_ms).then(Figures::default)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Event, PodObject, PodPhase};
    use crate::plugin::test_cluster::{node, pod, state, victims};

    #[test]
    fn a_pod_in_its_cooldown_is_no_victim_while_it_runs() {
        let cooling =
            |name, until_ms| PodObject { cooling_until_ms: Some(until_ms), ..pod(name, "g", "n") };
        let starting = PodObject { phase: PodPhase::Pending, ..cooling("starting", 2_000) };
        let pods =
            [cooling("cools", 1_001), cooling("cooled", 1_000), starting, pod("plain", "g", "n")];
        let mut state = state(std::iter::once(node("n", &[])).chain(pods.map(Event::Pod)));
        state.now_ms = 1_000;
        let all = ["cools", "plain", "starting", "cooled"];
        assert_eq!(victims(&Cdp, &state, "plain", &all), ["plain", "starting", "cooled"]);
    }
}
