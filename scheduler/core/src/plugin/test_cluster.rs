//! A small cluster for tests of plugins: a state that hears of nodes, gangs and pods.

use std::sync::Arc;

use tephra_api::quantity::Quantity;

use super::{EvictFor, Evictor, Plugin};
use crate::event::{
    DisruptionBudgetObject, Event, LabelSelector, Labels, NodeObject, ObjectKey, Operator,
    PodGroupObject, PodObject, PodPhase, PodSpec, Quantities, Requirement,
};
use crate::state::State;
use crate::state::tasks::TaskId;

pub(super) fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect()
}

pub(super) fn quantities(pairs: &[(&str, &str)]) -> Quantities {
    let read = |text: &str| Quantity::parse(text).unwrap();
    pairs.iter().map(|(name, text)| ((*name).to_owned(), read(text))).collect()
}

/// A node of 4 cpu.
pub(super) fn node(name: &str, pairs: &[(&str, &str)]) -> Event {
    let amount = |name: &str, amount| (name.to_owned(), amount);
    Event::Node(NodeObject {
        name: name.to_owned(),
        labels: labels(pairs),
        allocatable: vec![amount("cpu", 4000), amount("memory", 1 << 34), amount("pods", 10)],
        ..NodeObject::default()
    })
}

/// A gang in namespace `ns`.
pub(super) fn group(name: &str) -> PodGroupObject {
    PodGroupObject { key: ObjectKey::new("ns", name), uid: name.to_owned(), ..Default::default() }
}

/// A running pod of 1 cpu in namespace `ns`; its uid is its name.
pub(super) fn pod(name: &str, group: &str, node: &str) -> PodObject {
    let requests = vec![("cpu".to_owned(), 1000), ("pods".to_owned(), 1)];
    PodObject {
        key: ObjectKey::new("ns", name),
        uid: name.to_owned(),
        ours: true,
        preemptable: true,
        group: Some(group.to_owned()),
        phase: PodPhase::Running,
        node: Some(node.to_owned()),
        spec: Arc::new(PodSpec { requests, ..PodSpec::default() }),
        ..PodObject::default()
    }
}

/// A budget in namespace `ns` for pods of an app.
pub(super) fn budget(name: &str, app: &str, allowed: u32) -> Event {
    let requirement =
        Requirement { key: "app".to_owned(), operator: Operator::In, values: vec![app.to_owned()] };
    Event::DisruptionBudget(DisruptionBudgetObject {
        key: ObjectKey::new("ns", name),
        selector: Some(LabelSelector { requirements: vec![requirement] }),
        allowed,
        ..DisruptionBudgetObject::default()
    })
}

pub(super) fn state(events: impl IntoIterator<Item = Event>) -> State {
    let mut state = State::new("default");
    events.into_iter().for_each(|event| state.apply(event));
    state
}

pub(super) fn tasks(state: &State, names: &[&str]) -> Vec<TaskId> {
    names.iter().map(|name| state.tasks.get(name).unwrap()).collect()
}

pub(super) fn names(state: &State, tasks: &[TaskId]) -> Vec<String> {
    tasks.iter().map(|&task| state.tasks[task].pod.name.to_string()).collect()
}

/// Names of the candidates whom a plugin lets go for a pod that preempts.
pub(super) fn victims(
    plugin: &impl Plugin,
    state: &State,
    by: &str,
    candidates: &[&str],
) -> Vec<String> {
    let task = state.tasks.get(by).unwrap();
    let evictor = Evictor { why: EvictFor::Preempt, job: state.tasks[task].job, task };
    let mut keep = tasks(state, candidates);
    plugin.victims(state, &evictor, &mut keep);
    names(state, &keep)
}
