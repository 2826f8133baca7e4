//! Plugin `pdb`: no eviction takes more pods than PodDisruptionBudgets allow. No arguments.
//!
//! A budget is used up by everything that we evict, in this session or before, until its controller has written it anew
//! (P94; [`crate::state::disruption`]). Pods that no budget covers are not this plugin's business, with labels or without (P93).

use rustc_hash::FxHashMap;

use super::{Evictor, Hooks, Plugin, Vote};
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
            let mut left: Vec<i64> =
                state.budgets.of(namespace).iter().map(|budget| budget.left(state.now_ms)).collect();
            for row in state.evicting.iter().map(|&task| &state.tasks[task]) {
                if *row.pod.namespace == *namespace {
                    covering(state, row).for_each(|at| left[at] -= 1);
                }
            }
            left
        })
    }

    /// Every budget that covers a pod has one left.
    fn allows(&mut self, state: &'s State, task: TaskId) -> bool {
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
