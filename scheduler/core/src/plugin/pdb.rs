//! Plugin `pdb`: no eviction takes more pods than PodDisruptionBudgets allow. No arguments.
//!
//! A budget is used up by everything that we evict, in this session or before, until its controller has written it anew
//! (P94; [`crate::state::disruption`]). Pods that no budget covers are not this plugin's business, with labels or without (P93).

use rustc_hash::FxHashMap;

use super::{Evictor, Figures, Hooks, Plugin, Vote};
use crate::state::State;
use crate::state::tasks::{Task, TaskId};

/// The plugin.
#[derive(Debug)]
pub struct Pdb;

impl Plugin for Pdb {
    /// The gang actions respect budgets too (P95); shuffle is limited by them, and gets no victims proposed (P96).
    fn hooks(&self) -> Hooks {
        Hooks::SHIELD
            | Hooks::PREEMPTABLE
            | Hooks::RECLAIMABLE
            | Hooks::UNIFIED_EVICTABLE
            | Hooks::VICTIM_TASKS
    }

    /// What is left of a budget follows evictions that are over, and their age.
    fn figures(&self, state: &State) -> Option<Figures> {
        state.budgets.is_empty().then(Figures::default)
    }

    /// Drops pods of which not even one may go.
    fn victims(&self, state: &State, _: &Evictor, keep: &mut Vec<TaskId>) -> Vote {
        let mut left = Left::default();
        keep.retain(|&task| left.allows(state, task));
        Vote::Permit
    }

    fn ration(&self, state: &State, keep: &mut Vec<TaskId>) {
        let mut left = Left::default();
        keep.retain(|&task| {
            let allowed = left.allows(state, task);
            if allowed {
                left.take(state, task);
            }
            allowed
        });
    }
}

/// What is left of the budgets of the namespaces that were asked about, in the order of each namespace's budgets.
#[derive(Default)]
struct Left<'s>(FxHashMap<&'s str, Vec<i64>>);

impl<'s> Left<'s> {
    fn of(&mut self, state: &'s State, namespace: &'s str) -> &mut Vec<i64> {
        self.0.entry(namespace).or_insert_with(|| {
            let mut left: Vec<i64> = state
                .budgets
                .of(namespace)
                .iter()
                .map(|budget| budget.left(state.now_ms))
                .collect();
            for row in state.evicting.iter().map(|&task| &state.tasks[task]) {
                if *row.pod.namespace == *namespace {
                    covering(state, row).for_each(|at| left[at] -= 1);
                }
            }
            left
        })
    }

    /// Every budget that covers a pod has one left. Where budgets may not be read each pod may have one, used up (F24).
    fn allows(&mut self, state: &'s State, task: TaskId) -> bool {
        if state.budgets.unreadable {
            return false;
        }
        let row = &state.tasks[task];
        let left = self.of(state, &row.pod.namespace);
        covering(state, row).all(|at| left[at] > 0)
    }

    /// The pod goes.
    fn take(&mut self, state: &'s State, task: TaskId) {
        let row = &state.tasks[task];
        let left = self.of(state, &row.pod.namespace);
        covering(state, row).for_each(|at| left[at] -= 1);
    }
}

/// Places of the budgets that cover a pod, in the list of its namespace.
fn covering<'s>(state: &'s State, row: &'s Task) -> impl Iterator<Item = usize> {
    let budgets = state.budgets.of(&row.pod.namespace).iter().enumerate();
    let covers = budgets.filter(|(_, budget)| budget.covers(&row.pod.name, &row.labels));
    covers.map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{DisruptionBudgetObject, Event, LabelSelector, ObjectKey, PodObject};
    use crate::plugin::test_cluster::{budget, labels, names, node, pod, state, tasks, victims};
    use crate::state::status::Status;

    fn app(name: &str, app: &str) -> Event {
        Event::Pod(PodObject { labels: labels(&[("app", app)]), ..pod(name, "g", "n") })
    }

    /// Pods `a-0`, `a-1` of one app, `b-0` of another one and `bare` without labels.
    fn cluster(budgets: impl IntoIterator<Item = Event>) -> State {
        let pods =
            [app("a-0", "a"), app("a-1", "a"), app("b-0", "b"), Event::Pod(pod("bare", "g", "n"))];
        state(std::iter::once(node("n", &[])).chain(pods).chain(budgets))
    }

    #[test]
    fn while_budgets_may_not_be_read_nobody_is_evicted() {
        let mut state = cluster([]);
        assert_eq!(victims(&Pdb, &state, "b-0", &["a-0", "bare"]), ["a-0", "bare"]);
        state.apply(Event::DisruptionBudgetsReadable(false));
        assert!(victims(&Pdb, &state, "b-0", &["a-0", "bare"]).is_empty());
        state.apply(Event::DisruptionBudgetsReadable(true));
        assert_eq!(victims(&Pdb, &state, "b-0", &["a-0", "bare"]), ["a-0", "bare"]);
    }

    fn rationed(state: &State, candidates: &[&str]) -> Vec<String> {
        let mut keep = tasks(state, candidates);
        Pdb.ration(state, &mut keep);
        names(state, &keep)
    }

    const ALL: [&str; 4] = ["a-0", "a-1", "b-0", "bare"];

    #[test]
    fn as_many_go_as_the_budget_allows_and_pods_without_budget_or_labels_are_free() {
        let allowed = |count| rationed(&cluster([budget("x", "a", count)]), &ALL);
        assert_eq!(allowed(2), ALL);
        assert_eq!(allowed(1), ["a-0", "b-0", "bare"]);
        assert_eq!(allowed(0), ["b-0", "bare"]);
        assert_eq!(rationed(&cluster([]), &ALL), ALL);
    }

    #[test]
    fn a_vote_keeps_every_pod_of_which_one_may_go() {
        let voted = |count| victims(&Pdb, &cluster([budget("x", "a", count)]), "bare", &ALL);
        assert_eq!(voted(1), ALL);
        assert_eq!(voted(0), ["b-0", "bare"]);
    }

    #[test]
    fn a_pod_that_one_budget_holds_uses_up_nothing_of_another() {
        let all_but_one = DisruptionBudgetObject {
            key: ObjectKey::new("ns", "y"),
            selector: Some(LabelSelector::default()),
            allowed: 0,
            disrupted: vec!["a-1".to_owned()],
        };
        let state = cluster([budget("x", "a", 1), Event::DisruptionBudget(all_but_one)]);
        assert_eq!(rationed(&state, &["a-0", "a-1"]), ["a-1"]);
    }

    #[test]
    fn evictions_use_the_budget_up_until_they_are_taken_back_or_the_budget_is_written_again() {
        let mut state = cluster([budget("x", "a", 1)]);
        let [gone] = tasks(&state, &["a-0"])[..] else { panic!("one task") };
        state.evict(gone);
        assert!(rationed(&state, &["a-1"]).is_empty());
        state.spare(gone, Status::Running);
        assert_eq!(rationed(&state, &["a-1"]), ["a-1"]);

        state.evict(gone);
        state.tasks[gone].spared = Some(Status::Running);
        state.apply(Event::PodDeleted("a-0".to_owned()));
        assert!(rationed(&state, &["a-1"]).is_empty(), "its controller does not know yet");
        assert!(state.evicting.is_empty());
        state.apply(budget("x", "a", 1));
        assert_eq!(rationed(&state, &["a-1"]), ["a-1"]);
    }
}
