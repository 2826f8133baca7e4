//! Filters and scores that depend on pods elsewhere: host ports, inter-pod affinity, topology spread. The state
//! keeps what is placed where; a question is answered from a fresh count over the placed pods, so that pods
//! placed earlier in the same session are always seen (P34). Nothing here is fed or asked until the first
//! class that depends on other pods appears.

mod affinity;
mod ports;
pub mod reason;
mod spread;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::event::{Labels, PodAffinityTerm, PodSpec, Taint};
use crate::matching::label_selector;
use crate::matching::static_filter::PredicateSwitches;
use reason::StatefulReason;

/// A pod that has, or is promised, a node.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacedPod {
    /// Namespace.
    pub namespace: Arc<str>,
    /// Labels.
    pub labels: Arc<Labels>,
    /// Spec.
    pub spec: Arc<PodSpec>,
    /// Slot of its node.
    pub node: u32,
    /// Being deleted.
    pub terminating: bool,
}

#[derive(Clone, Debug, PartialEq)]
struct Node {
    name: String,
    labels: Labels,
    taints: Vec<Taint>,
}

/// What is placed where.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatefulState {
    pods: BTreeMap<u32, PlacedPod>,
    nodes: BTreeMap<u32, Node>,
    namespaces: BTreeMap<String, Labels>,
    /// Placed pods whose affinity terms concern other pods.
    opinionated: u32,
}

/// A waiting pod.
#[derive(Clone, Copy, Debug)]
pub struct Query<'q> {
    /// Namespace.
    pub namespace: &'q str,
    /// Labels.
    pub labels: &'q Labels,
    /// Spec.
    pub spec: &'q PodSpec,
    /// Filters that run.
    pub switches: &'q PredicateSwitches,
}

/// Answers for one waiting pod, counted once.
#[derive(Debug)]
pub struct Asked<'s> {
    state: &'s StatefulState,
    query: Query<'s>,
    affinity: affinity::Counts,
    spread: Vec<spread::Domains>,
}

fn has_opinion(spec: &PodSpec) -> bool {
    !spec.pod_anti_affinity.is_empty() || !spec.preferred_pod_affinity.is_empty()
}

impl StatefulState {
    /// A pod was placed; `task` is its number.
    pub fn add_pod(&mut self, task: u32, pod: &PlacedPod) {
        self.opinionated += u32::from(has_opinion(&pod.spec));
        if let Some(before) = self.pods.insert(task, pod.clone()) {
            self.opinionated -= u32::from(has_opinion(&before.spec));
        }
    }

    /// A pod lost its place.
    pub fn remove_pod(&mut self, task: u32) {
        if let Some(pod) = self.pods.remove(&task) {
            self.opinionated -= u32::from(has_opinion(&pod.spec));
        }
    }

    /// A node is known in this form.
    pub fn set_node(&mut self, slot: u32, name: &str, labels: &Labels, taints: &[Taint]) {
        let node = Node { name: name.to_owned(), labels: labels.clone(), taints: taints.to_vec() };
        self.nodes.insert(slot, node);
    }

    /// A node is gone.
    pub fn remove_node(&mut self, slot: u32) {
        self.nodes.remove(&slot);
    }

    /// A namespace has these labels.
    pub fn set_namespace(&mut self, name: &str, labels: &Labels) {
        self.namespaces.insert(name.to_owned(), labels.clone());
    }

    /// A namespace is gone.
    pub fn remove_namespace(&mut self, name: &str) {
        self.namespaces.remove(name);
    }

    /// Could any placed pod have an opinion on where this one goes?
    pub fn is_affected(&self, namespace: &str, labels: &Labels) -> bool {
        self.opinionated > 0
            && self.pods.values().any(|pod| {
                let spec = &pod.spec;
                spec.pod_anti_affinity
                    .iter()
                    .chain(spec.preferred_pod_affinity.iter().map(|(_, term)| term))
                    .any(|term| self.selects(term, &pod.namespace, namespace, labels))
            })
    }

    /// Counts everything that matters for a waiting pod.
    pub fn ask<'s>(&'s self, query: &Query<'s>) -> Asked<'s> {
        Asked {
            state: self,
            query: *query,
            affinity: affinity::Counts::of(self, query),
            spread: query.spec.spread.iter().map(|c| spread::Domains::of(self, query, c)).collect(),
        }
    }

    /// A term of a pod in namespace `owner` selects a pod.
    fn selects(&self, term: &PodAffinityTerm, owner: &str, namespace: &str, labels: &Labels) -> bool {
        let own = term.namespaces.is_empty() && term.namespace_selector.is_none();
        let in_namespace = if own { owner == namespace } else { false }
            || term.namespaces.iter().any(|name| name == namespace)
            || term.namespace_selector.as_ref().is_some_and(|selector| {
                let none = Labels::new();
                label_selector::matches(selector, self.namespaces.get(namespace).unwrap_or(&none))
            });
        in_namespace && label_selector::matches_optional(term.selector.as_ref(), labels)
    }

    /// Value of a node's label.
    fn domain(&self, node: u32, key: &str) -> Option<&str> {
        self.nodes.get(&node).and_then(|node| crate::matching::labels::value(&node.labels, key))
    }
}

impl Asked<'_> {
    /// May the pod go to a node, in the order of the filters (7.2)?
    ///
    /// # Errors
    /// The first reason against it.
    pub fn filter(&self, node: u32) -> Result<(), StatefulReason> {
        let (state, query) = (self.state, &self.query);
        if query.switches.node_ports && ports::conflict(state, query.spec, node) {
            return Err(StatefulReason::Ports);
        }
        if query.switches.pod_affinity {
            self.affinity.filter(state, query, node)?;
        }
        if query.switches.topology_spread {
            for (constraint, domains) in query.spec.spread.iter().zip(&self.spread) {
                if constraint.hard {
                    domains.filter(state, constraint, node)?;
                }
            }
        }
        Ok(())
    }

    /// Weighted scores of the given nodes, each 0..100 times its weight; `None` when nothing scores.
    pub fn scores(&self, nodes: &[u32], affinity: i64, spread: i64) -> Option<Vec<i64>> {
        let near = self.affinity.scores(self.state, nodes);
        let soft = spread::scores(self.state, &self.query, &self.spread, nodes);
        if near.is_none() && soft.is_none() {
            return None;
        }
        let part = |list: &Option<Vec<i64>>, at: usize| list.as_ref().map_or(0, |list| list[at]);
        Some(
            (0..nodes.len())
                .map(|at| affinity * part(&near, at) + spread * part(&soft, at))
                .collect(),
        )
    }
}

#[cfg(test)]
mod tests;
