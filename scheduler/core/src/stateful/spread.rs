//! PodTopologySpread (7.5, 8). Constraints come from the pod alone: the cluster-wide defaults for pods without any
//! need Services and ReplicaSets, which the core does not know.

use std::collections::BTreeMap;

use super::reason::StatefulReason;
use super::{Query, StatefulState};
use crate::event::SpreadConstraint;
use crate::matching::label_selector;
use crate::matching::node_selector::required_affinity_matches;
use crate::matching::taints::first_untolerated;

const HOSTNAME: &str = "kubernetes.io/hostname";

/// Matching pods per domain of one constraint.
#[derive(Debug, Default)]
pub(super) struct Domains {
    pods: BTreeMap<String, i64>,
    matches_itself: bool,
}

impl Domains {
    pub(super) fn of(
        state: &StatefulState,
        query: &Query<'_>,
        constraint: &SpreadConstraint,
    ) -> Self {
        let included = |slot: &u32| {
            state.nodes.get(slot).is_some_and(|node| {
                let near = !constraint.honor_affinity
                    || required_affinity_matches(query.spec, Some(&node.name), &node.labels);
                let tolerated = !constraint.honor_taints
                    || first_untolerated(&query.spec.tolerations, &node.taints).is_none();
                near && tolerated
            })
        };
        let mut pods = BTreeMap::new();
        for slot in state.nodes.keys().filter(|slot| included(slot)) {
            if let Some(value) = state.domain(*slot, &constraint.topology_key) {
                pods.entry(value.to_owned()).or_insert(0);
            }
        }
        for pod in state.pods.values() {
            let counts = !pod.terminating
                && *pod.namespace == *query.namespace
                && included(&pod.node)
                && label_selector::matches(&constraint.selector, &pod.labels);
            if counts && let Some(value) = state.domain(pod.node, &constraint.topology_key) {
                *pods.entry(value.to_owned()).or_default() += 1;
            }
        }
        let matches_itself = label_selector::matches(&constraint.selector, query.labels);
        Self { pods, matches_itself }
    }

    pub(super) fn filter(
        &self,
        state: &StatefulState,
        constraint: &SpreadConstraint,
        node: u32,
    ) -> Result<(), StatefulReason> {
        let Some(value) = state.domain(node, &constraint.topology_key) else {
            return Err(StatefulReason::SpreadMissingLabel);
        };
        let few = (self.pods.len() as i64) < i64::from(constraint.min_domains);
        let least = if few { 0 } else { self.pods.values().copied().min().unwrap_or(0) };
        let here = self.pods.get(value).copied().unwrap_or(0);
        let skew = here + i64::from(self.matches_itself) - least;
        if skew > i64::from(constraint.max_skew) { Err(StatefulReason::Spread) } else { Ok(()) }
    }
}

/// Scores of the soft constraints: emptier domains are better; nodes without a key get 0.
pub(super) fn scores(
    state: &StatefulState,
    query: &Query<'_>,
    domains: &[Domains],
    nodes: &[u32],
) -> Option<Vec<i64>> {
    let soft: Vec<(&SpreadConstraint, &Domains)> =
        query.spec.spread.iter().zip(domains).filter(|(constraint, _)| !constraint.hard).collect();
    if soft.is_empty() {
        return None;
    }
    let ignored = |node: u32| soft.iter().any(|(c, _)| state.domain(node, &c.topology_key).is_none());
    let mut raw: Vec<Option<i64>> = Vec::with_capacity(nodes.len());
    let counted: Vec<u32> = nodes.iter().copied().filter(|&node| !ignored(node)).collect();
    let weight = |key: &str| {
        let mut values: Vec<&str> = counted.iter().filter_map(|&node| state.domain(node, key)).collect();
        values.sort_unstable();
        values.dedup();
        let count = if key == HOSTNAME { counted.len() } else { values.len() };
        (count as f64 + 2.0).ln()
    };
    let weights: Vec<f64> = soft.iter().map(|(c, _)| weight(&c.topology_key)).collect();
    for &node in nodes {
        raw.push((!ignored(node)).then(|| {
            let sum: f64 = soft
                .iter()
                .zip(&weights)
                .map(|((constraint, domains), weight)| {
                    let value = state.domain(node, &constraint.topology_key).unwrap_or_default();
                    let count = domains.pods.get(value).copied().unwrap_or(0);
                    count as f64 * weight + f64::from(constraint.max_skew - 1)
                })
                .sum();
            sum.round() as i64
        }));
    }
    let (min, max) = (raw.iter().flatten().min().copied(), raw.iter().flatten().max().copied());
    let (min, max) = (min.unwrap_or(0), max.unwrap_or(0));
    let scaled = |value: Option<i64>| match value {
        None => 0,
        Some(_) if max == 0 => 100,
        Some(value) => 100 * (max + min - value) / max,
    };
    Some(raw.into_iter().map(scaled).collect())
}
