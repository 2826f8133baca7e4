//! The rules once more, as plain loops over plain lists: what the counters are compared with.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::reason::StatefulReason;
use super::topology::{HOSTNAME_KEY, NodeFacts};
use super::{PlacedPod, Query};
use crate::event::{HostPort, LabelSelector, Labels, PodAffinityTerm, SpreadConstraint};
use crate::matching::label_selector::matches;
use crate::matching::labels::value;
use crate::matching::node_selector::required_affinity_matches;
use crate::matching::taints::first_untolerated;

type Pair = (String, String);

/// The world as lists.
#[derive(Clone, Debug, Default)]
pub(super) struct World {
    pub(super) nodes: BTreeMap<u32, NodeFacts>,
    pub(super) namespaces: BTreeMap<String, Labels>,
    pub(super) pods: BTreeMap<u32, PlacedPod>,
}

impl World {
    fn own_term_selects(
        &self,
        term: &PodAffinityTerm,
        owner: &str,
        ns: &str,
        labels: &Labels,
    ) -> bool {
        let by_selector = |selector: &LabelSelector| match self.namespaces.get(ns) {
            Some(known) => matches(selector, known),
            None => selector.requirements.is_empty(),
        };
        Self::term_selects(term, owner, ns, labels, by_selector)
    }

    fn existing_term_selects(
        &self,
        term: &PodAffinityTerm,
        owner: &str,
        ns: &str,
        labels: &Labels,
    ) -> bool {
        let none = Labels::new();
        let by_selector =
            |selector: &LabelSelector| matches(selector, self.namespaces.get(ns).unwrap_or(&none));
        Self::term_selects(term, owner, ns, labels, by_selector)
    }

    fn term_selects(
        term: &PodAffinityTerm,
        owner: &str,
        ns: &str,
        labels: &Labels,
        by_selector: impl Fn(&LabelSelector) -> bool,
    ) -> bool {
        let own = term.namespaces.is_empty() && term.namespace_selector.is_none() && ns == owner;
        let namespace_ok = own
            || term.namespaces.iter().any(|name| name == ns)
            || term.namespace_selector.as_ref().is_some_and(by_selector);
        namespace_ok && term.selector.as_ref().is_some_and(|selector| matches(selector, labels))
    }

    fn pair(&self, slot: u32, key: &str) -> Option<Pair> {
        let node = self.nodes.get(&slot)?;
        Some((key.to_owned(), value(&node.labels, key)?.to_owned()))
    }

    pub(super) fn reasons(&self, query: &Query<'_>, slot: u32) -> Vec<StatefulReason> {
        let mut reasons = Vec::new();
        let switches = query.switches;
        if switches.node_ports && self.port_taken(query, slot) {
            reasons.push(StatefulReason::Ports);
        }
        if switches.pod_affinity
            && let Err(reason) = self.pod_affinity(query, slot)
        {
            reasons.push(reason);
            if reason == StatefulReason::Affinity {
                return reasons;
            }
        }
        if switches.topology_spread
            && let Err(reason) = self.spread(query, slot)
        {
            reasons.push(reason);
        }
        reasons
    }

    fn port_taken(&self, query: &Query<'_>, slot: u32) -> bool {
        let any = |ip: &str| ip == "0.0.0.0";
        let clash = |a: &HostPort, b: &HostPort| {
            a.port == b.port
                && a.protocol == b.protocol
                && (a.ip == b.ip || any(&a.ip) || any(&b.ip))
        };
        let on_node = self.pods.values().filter(|pod| pod.node == slot);
        let mut taken = on_node.flat_map(|pod| &pod.spec.host_ports);
        taken.any(|used| query.spec.host_ports.iter().any(|wanted| clash(used, wanted)))
    }

    fn pod_affinity(&self, query: &Query<'_>, slot: u32) -> Result<(), StatefulReason> {
        let spec = query.spec;
        let mut near: BTreeMap<Pair, i64> = BTreeMap::new();
        let mut far: BTreeMap<Pair, i64> = BTreeMap::new();
        let mut repelled: BTreeMap<Pair, i64> = BTreeMap::new();
        for pod in self.pods.values() {
            let selects = |term: &PodAffinityTerm| {
                self.own_term_selects(term, query.namespace, &pod.namespace, &pod.labels)
            };
            if !spec.pod_affinity.is_empty() && spec.pod_affinity.iter().all(selects) {
                for term in &spec.pod_affinity {
                    if let Some(pair) = self.pair(pod.node, &term.topology_key) {
                        *near.entry(pair).or_default() += 1;
                    }
                }
            }
            for term in spec.pod_anti_affinity.iter().filter(|term| selects(term)) {
                if let Some(pair) = self.pair(pod.node, &term.topology_key) {
                    *far.entry(pair).or_default() += 1;
                }
            }
            for term in &pod.spec.pod_anti_affinity {
                let about_us =
                    self.existing_term_selects(term, &pod.namespace, query.namespace, query.labels);
                if let Some(pair) = self.pair(pod.node, &term.topology_key).filter(|_| about_us) {
                    *repelled.entry(pair).or_default() += 1;
                }
            }
        }
        let mut all_near = true;
        for term in &spec.pod_affinity {
            let Some(pair) = self.pair(slot, &term.topology_key) else {
                return Err(StatefulReason::Affinity);
            };
            all_near &= near.contains_key(&pair);
        }
        let first_of_its_kind = || {
            let itself =
                |term| self.own_term_selects(term, query.namespace, query.namespace, query.labels);
            near.is_empty() && spec.pod_affinity.iter().all(itself)
        };
        if !all_near && !first_of_its_kind() {
            return Err(StatefulReason::Affinity);
        }
        let in_domain = |pairs: &BTreeMap<Pair, i64>, key: &str| {
            self.pair(slot, key).is_some_and(|pair| pairs.contains_key(&pair))
        };
        if spec.pod_anti_affinity.iter().any(|term| in_domain(&far, &term.topology_key)) {
            return Err(StatefulReason::AntiAffinity);
        }
        let labels = self.nodes.get(&slot).map(|node| node.labels.clone()).unwrap_or_default();
        if labels.iter().any(|pair| repelled.contains_key(pair)) {
            return Err(StatefulReason::ExistingAntiAffinity);
        }
        Ok(())
    }

    pub(super) fn affinity_raw(&self, query: &Query<'_>, slot: u32) -> i64 {
        let mut score: BTreeMap<Pair, i64> = BTreeMap::new();
        for pod in self.pods.values() {
            for (weight, term) in &query.spec.preferred_pod_affinity {
                if self.own_term_selects(term, query.namespace, &pod.namespace, &pod.labels)
                    && let Some(pair) = self.pair(pod.node, &term.topology_key)
                {
                    *score.entry(pair).or_default() += i64::from(*weight);
                }
            }
            for (weight, term) in &pod.spec.preferred_pod_affinity {
                if self.existing_term_selects(term, &pod.namespace, query.namespace, query.labels)
                    && let Some(pair) = self.pair(pod.node, &term.topology_key)
                {
                    *score.entry(pair).or_default() += i64::from(*weight);
                }
            }
        }
        let labels = self.nodes.get(&slot).map(|node| node.labels.clone()).unwrap_or_default();
        labels.iter().filter_map(|pair| score.get(pair)).sum()
    }

    fn constraints<'q>(query: &Query<'q>, hard: bool) -> Vec<&'q SpreadConstraint> {
        query.spec.spread.iter().filter(|constraint| constraint.hard == hard).collect()
    }

    fn has_keys(node: &NodeFacts, constraints: &[&SpreadConstraint]) -> bool {
        constraints.iter().all(|c| value(&node.labels, &c.topology_key).is_some())
    }

    fn matching_on(&self, slot: u32, constraint: &SpreadConstraint, query: &Query<'_>) -> i64 {
        if constraint.selector.requirements.is_empty() {
            return 0;
        }
        let counts = |pod: &&PlacedPod| {
            pod.node == slot
                && !pod.terminating
                && *pod.namespace == **query.namespace
                && matches(&constraint.selector, &pod.labels)
        };
        self.pods.values().filter(counts).count() as i64
    }

    /// Pods by domain over the nodes that count for a constraint.
    fn domains(
        &self,
        query: &Query<'_>,
        constraint: &SpreadConstraint,
        constraints: &[&SpreadConstraint],
    ) -> BTreeMap<String, i64> {
        let mut domains = BTreeMap::new();
        for (&slot, node) in &self.nodes {
            let affinity = !constraint.honor_affinity
                || required_affinity_matches(query.spec, Some(&node.name), &node.labels);
            let taints = !constraint.honor_taints
                || first_untolerated(&query.spec.tolerations, &node.taints).is_none();
            if affinity
                && taints
                && Self::has_keys(node, constraints)
                && let Some(domain) = value(&node.labels, &constraint.topology_key)
            {
                *domains.entry(domain.to_owned()).or_default() +=
                    self.matching_on(slot, constraint, query);
            }
        }
        domains
    }

    fn spread(&self, query: &Query<'_>, slot: u32) -> Result<(), StatefulReason> {
        let constraints = Self::constraints(query, true);
        for constraint in &constraints {
            let Some((_, domain)) = self.pair(slot, &constraint.topology_key) else {
                return Err(StatefulReason::SpreadMissingLabel);
            };
            let domains = self.domains(query, constraint, &constraints);
            let enough = domains.len() >= constraint.min_domains.max(1) as usize;
            let minimum = if enough { domains.values().min().copied().unwrap_or(0) } else { 0 };
            let own = i64::from(matches(&constraint.selector, query.labels));
            let here = domains.get(&domain).copied().unwrap_or(0);
            if here + own - minimum > i64::from(constraint.max_skew) {
                return Err(StatefulReason::Spread);
            }
        }
        Ok(())
    }

    pub(super) fn spread_raw(
        &self,
        query: &Query<'_>,
        feasible: &[u32],
    ) -> Option<Vec<Option<i64>>> {
        let constraints = Self::constraints(query, false);
        if constraints.is_empty() {
            return None;
        }
        let scored: Vec<u32> = feasible
            .iter()
            .copied()
            .filter(|slot| self.nodes.get(slot).is_some_and(|n| Self::has_keys(n, &constraints)))
            .collect();
        let raw = |&slot: &u32| {
            if !scored.contains(&slot) {
                return None;
            }
            let mut sum = 0.0_f64;
            for constraint in &constraints {
                let key = constraint.topology_key.as_str();
                let (_, domain) = self.pair(slot, key)?;
                let (count, size) = if key == HOSTNAME_KEY {
                    (self.matching_on(slot, constraint, query), scored.len())
                } else {
                    let among: BTreeSet<Pair> =
                        scored.iter().filter_map(|&slot| self.pair(slot, key)).collect();
                    let domains = self.domains(query, constraint, &constraints);
                    (domains.get(&domain).copied().unwrap_or(0), among.len())
                };
                sum += count as f64 * ((size + 2) as f64).ln() + f64::from(constraint.max_skew - 1);
            }
            Some(sum.round() as i64)
        };
        Some(feasible.iter().map(raw).collect())
    }
}

/// Shorthand for a node.
pub(super) fn facts(name: &str, pairs: &[(&str, &str)]) -> NodeFacts {
    let labels = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    NodeFacts { name: name.into(), labels: Arc::new(labels), taints: Arc::default() }
}
