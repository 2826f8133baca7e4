//! PodTopologySpread. A *group* is the hard or the soft constraints of one template, with everything that decides
//! which nodes are counted for them; waiting pods of the template share it. A group keeps matching pods by
//! domain over the included nodes, and the emptiest domain, up to date with every placement.
//!
//! System default constraints (hostname and zone, soft, selected by Services) are left out: the core knows no
//! Services, and without one Kubernetes applies no defaults either.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::reason::StatefulReason;
use super::tally::{Tallies, TallyId};
use super::topology::{DomainCounts, KeyId, NodeFacts, Topology, ValueId};
use crate::event::{Labels, NodeSelectorTerm, PodSpec, SpreadConstraint, Toleration};
use crate::matching::label_selector;
use crate::matching::node_selector::required_affinity_matches;
use crate::matching::taints::first_untolerated;

/// Number of a group.
pub type GroupId = u32;

/// Identity of a group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GroupSpec {
    namespace: Arc<str>,
    constraints: Vec<SpreadConstraint>,
    node_selector: Labels,
    required_node_terms: Vec<NodeSelectorTerm>,
    tolerations: Vec<Toleration>,
}

impl GroupSpec {
    /// The hard or soft constraints of a spec; `None` if it has none. What no constraint honours is left out.
    pub fn of(spec: &PodSpec, namespace: &Arc<str>, hard: bool) -> Option<Self> {
        let constraints: Vec<SpreadConstraint> =
            spec.spread.iter().filter(|constraint| constraint.hard == hard).cloned().collect();
        if constraints.is_empty() {
            return None;
        }
        let by_affinity = constraints.iter().any(|constraint| constraint.honor_affinity);
        let by_taints = constraints.iter().any(|constraint| constraint.honor_taints);
        let mut group = Self {
            namespace: namespace.clone(),
            constraints,
            node_selector: Labels::new(),
            required_node_terms: Vec::new(),
            tolerations: Vec::new(),
        };
        if by_affinity {
            group.node_selector.clone_from(&spec.node_selector);
            group.required_node_terms.clone_from(&spec.required_node_terms);
        }
        if by_taints {
            group.tolerations.clone_from(&spec.tolerations);
        }
        Some(group)
    }

    /// Its constraints, in the order of the spec.
    pub fn constraints(&self) -> &[SpreadConstraint] {
        &self.constraints
    }
}

/// One constraint with its counts.
#[derive(Clone, Debug)]
struct Counted {
    tally: TallyId,
    key: KeyId,
    /// Bit by slot: the node is counted.
    included: Vec<u64>,
    /// Matching pods by domain, over counted nodes.
    pods: DomainCounts,
    /// Counted nodes by domain. A domain exists while it has one.
    nodes: DomainCounts,
    /// Domains by their number of pods: the first entry is the global minimum.
    levels: BTreeMap<i64, u32>,
    domains: u32,
}

impl Counted {
    fn includes(&self, slot: u32) -> bool {
        self.included.get(slot as usize / 64).is_some_and(|bits| bits >> (slot % 64) & 1 == 1)
    }

    fn set_included(&mut self, slot: u32, included: bool) {
        let word = slot as usize / 64;
        if self.included.len() <= word {
            self.included.resize(word + 1, 0);
        }
        let bit = 1 << (slot % 64);
        if included {
            self.included[word] |= bit;
        } else {
            self.included[word] &= !bit;
        }
    }

    fn level(&mut self, count: i64, sign: i32) {
        let domains = self.levels.entry(count).or_default();
        *domains = domains.wrapping_add_signed(sign);
        if *domains == 0 {
            self.levels.remove(&count);
        }
    }

    fn add_pods(&mut self, value: ValueId, amount: i64) {
        let before = self.pods.get(value);
        self.pods.add(value, amount);
        self.level(before, -1);
        self.level(before + amount, 1);
    }

    fn add_node(&mut self, value: ValueId) {
        if self.nodes.get(value) == 0 {
            self.domains += 1;
            self.level(self.pods.get(value), 1);
        }
        self.nodes.add(value, 1);
    }

    fn remove_node(&mut self, value: ValueId) {
        self.nodes.add(value, -1);
        if self.nodes.get(value) == 0 {
            self.domains -= 1;
            self.level(self.pods.get(value), -1);
        }
    }

    /// Pods in the emptiest domain; 0 while there are fewer domains than asked for.
    fn minimum(&self, min_domains: i32) -> i64 {
        if i64::from(self.domains) < i64::from(min_domains.max(1)) {
            return 0;
        }
        self.levels.first_key_value().map_or(0, |(count, _)| *count)
    }
}

/// The constraints of one [`GroupSpec`], counted.
#[derive(Clone, Debug)]
pub struct Group {
    spec: Arc<GroupSpec>,
    affinity: PodSpec,
    counted: Vec<Counted>,
    version: u64,
}

impl Group {
    /// Its identity.
    pub fn spec(&self) -> &GroupSpec {
        &self.spec
    }

    /// Tallies that it follows.
    pub fn tallies(&self) -> impl Iterator<Item = TallyId> + '_ {
        self.counted.iter().map(|counted| counted.tally)
    }

    /// Moves whenever a count may have changed.
    pub fn version(&self) -> u64 {
        self.version
    }

    fn has_all_keys(&self, slot: u32, topology: &Topology) -> bool {
        self.counted.iter().all(|counted| topology.value(counted.key, slot).is_some())
    }

    /// Node inclusion policies: `Honor` of affinity counts nodes that the pod could go to by selector and
    /// affinity, `Honor` of taints those whose hard taints it tolerates.
    fn admits(&self, constraint: &SpreadConstraint, node: &NodeFacts) -> bool {
        (!constraint.honor_affinity
            || required_affinity_matches(&self.affinity, Some(&node.name), &node.labels))
            && (!constraint.honor_taints
                || first_untolerated(&self.affinity.tolerations, &node.taints).is_none())
    }

    /// A node without pods appears.
    fn enter(&mut self, slot: u32, topology: &Topology) {
        self.version += 1;
        let Some(node) = topology.node(slot) else { return };
        if !self.has_all_keys(slot, topology) {
            return;
        }
        for at in 0..self.counted.len() {
            let admitted = self.admits(&self.spec.constraints[at], node);
            let counted = &mut self.counted[at];
            if admitted && let Some(value) = topology.value(counted.key, slot) {
                counted.set_included(slot, true);
                counted.add_node(value);
            }
        }
    }

    /// A node whose pods were uncounted disappears.
    fn leave(&mut self, slot: u32, topology: &Topology) {
        self.version += 1;
        for counted in &mut self.counted {
            if counted.includes(slot) {
                counted.set_included(slot, false);
                if let Some(value) = topology.value(counted.key, slot) {
                    counted.remove_node(value);
                }
            }
        }
    }

    fn bump(&mut self, constraint: u32, slot: u32, amount: i64, topology: &Topology) {
        let counted = &mut self.counted[constraint as usize];
        if counted.includes(slot)
            && let Some(value) = topology.value(counted.key, slot)
        {
            self.version += 1;
            counted.add_pods(value, amount);
        }
    }

    /// Filter PodTopologySpread (7.5) for a pod of which `self_match` tells which selectors match it: for each
    /// constraint `pods in the domain + 1 if it matches itself - minimum over domains <= maxSkew`.
    pub fn filter(
        &self,
        slot: u32,
        self_match: &[bool],
        topology: &Topology,
    ) -> Result<(), StatefulReason> {
        let constraints = self.spec.constraints.iter().zip(&self.counted).zip(self_match);
        for ((constraint, counted), &matches_itself) in constraints {
            let Some(value) = topology.value(counted.key, slot) else {
                return Err(StatefulReason::SpreadMissingLabel);
            };
            let skew = counted.pods.get(value) + i64::from(matches_itself)
                - counted.minimum(constraint.min_domains);
            if skew > i64::from(constraint.max_skew) {
                return Err(StatefulReason::Spread);
            }
        }
        Ok(())
    }

    /// Weight of each constraint, `ln(domains + 2)`: domains among `feasible` nodes that have every key, or,
    /// for the hostname, the number of those nodes.
    pub fn weights(&self, feasible: &[u32], topology: &Topology) -> Vec<f64> {
        let mut sizes = vec![0_usize; self.counted.len()];
        let mut seen: Vec<FxHashSet<ValueId>> = vec![FxHashSet::default(); self.counted.len()];
        for &slot in feasible.iter().filter(|&&slot| self.has_all_keys(slot, topology)) {
            for (at, counted) in self.counted.iter().enumerate() {
                let fresh = topology.is_hostname(counted.key)
                    || topology.value(counted.key, slot).is_some_and(|v| seen[at].insert(v));
                sizes[at] += usize::from(fresh);
            }
        }
        sizes.into_iter().map(|size| ((size + 2) as f64).ln()).collect()
    }

    /// Raw PodTopologySpread score: `round(sum of count * weight + maxSkew - 1)` in the order of the
    /// constraints; `None` for a node that lacks a key. Hostname counts the node's own pods, whether or not
    /// the node is included.
    pub fn raw_score(
        &self,
        slot: u32,
        weights: &[f64],
        tallies: &Tallies,
        topology: &Topology,
    ) -> Option<i64> {
        let mut score: f64 = 0.0;
        let constraints = self.spec.constraints.iter().zip(&self.counted).zip(weights);
        for ((constraint, counted), weight) in constraints {
            let value = topology.value(counted.key, slot)?;
            let count = if topology.is_hostname(counted.key) {
                tallies.get(counted.tally).map_or(0, |tally| tally.on_node(slot))
            } else {
                counted.pods.get(value)
            };
            score += count as f64 * weight + f64::from(constraint.max_skew.saturating_sub(1));
        }
        Some(score.round() as i64)
    }

    /// Counts of one constraint, for audits.
    pub fn count_of(&self, constraint: usize) -> SpreadCount<'_> {
        let counted = &self.counted[constraint];
        let minimum = counted.levels.first_key_value().map(|(count, _)| *count);
        SpreadCount { key: counted.key, pods: &counted.pods, domains: counted.domains, minimum }
    }
}

/// Counts of one constraint.
#[derive(Clone, Copy, Debug)]
pub struct SpreadCount<'g> {
    /// Topology key.
    pub key: KeyId,
    /// Matching pods by domain over the included nodes.
    pub pods: &'g DomainCounts,
    /// Domains with an included node.
    pub domains: u32,
    /// Fewest pods in a domain, if there is any.
    pub minimum: Option<i64>,
}

/// Which selectors of the constraints match the pod itself. Here the empty selector matches everybody.
pub fn self_matches(constraints: &[SpreadConstraint], labels: &Labels) -> Vec<bool> {
    constraints.iter().map(|c| label_selector::matches(&c.selector, labels)).collect()
}

/// PodTopologySpread score 0..100 of a raw one: 0 for an ignored node, 100 for all when `max` is 0, else
/// `100 * (max + min - raw) // max`. `min` and `max` are taken over the nodes that are not ignored, `max` at
/// least 0.
pub fn normalize_spread(raw: Option<i64>, min: i64, max: i64) -> i64 {
    let Some(raw) = raw else { return 0 };
    let full = crate::matching::MAX_NODE_SCORE;
    if max == 0 { full } else { full * (max + min - raw) / max }
}

/// All groups.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    list: Vec<Option<Group>>,
    free: Vec<GroupId>,
    by_spec: FxHashMap<Arc<GroupSpec>, GroupId>,
}

impl Groups {
    /// Number of a group that exists.
    pub fn find(&self, spec: &GroupSpec) -> Option<GroupId> {
        self.by_spec.get(spec).copied()
    }

    /// Makes a group. `tallies[i]` counts the pods of constraint `i` by node; the caller subscribes the group
    /// to it afterwards.
    pub fn create(
        &mut self,
        spec: GroupSpec,
        tallies: &[(TallyId, KeyId)],
        counts: &Tallies,
        topology: &Topology,
    ) -> GroupId {
        let fresh = |&(tally, key): &(TallyId, KeyId)| Counted {
            tally,
            key,
            included: Vec::new(),
            pods: DomainCounts::default(),
            nodes: DomainCounts::default(),
            levels: BTreeMap::new(),
            domains: 0,
        };
        let spec = Arc::new(spec);
        let mut group = Group {
            affinity: PodSpec {
                node_selector: spec.node_selector.clone(),
                required_node_terms: spec.required_node_terms.clone(),
                tolerations: spec.tolerations.clone(),
                ..PodSpec::default()
            },
            counted: tallies.iter().map(fresh).collect(),
            spec: spec.clone(),
            version: 0,
        };
        for slot in 0..topology.slots() {
            group.enter(slot, topology);
        }
        for (at, (tally, _)) in tallies.iter().enumerate() {
            let nodes = counts.get(*tally).into_iter().flat_map(|tally| tally.nodes());
            for (slot, count) in nodes {
                group.bump(at as u32, slot, count, topology);
            }
        }
        let id = self.free.pop().unwrap_or_else(|| {
            self.list.push(None);
            self.list.len() as GroupId - 1
        });
        self.list[id as usize] = Some(group);
        self.by_spec.insert(spec, id);
        id
    }

    /// A group by number.
    pub fn get(&self, id: GroupId) -> Option<&Group> {
        self.list.get(id as usize)?.as_ref()
    }

    /// Counts pods on a node for one constraint.
    pub fn bump(&mut self, id: GroupId, at: u32, slot: u32, amount: i64, topology: &Topology) {
        if let Some(group) = self.list.get_mut(id as usize).and_then(Option::as_mut) {
            group.bump(at, slot, amount, topology);
        }
    }

    /// The node of a slot, whose pods were uncounted, is about to change or go.
    pub fn leave_all(&mut self, slot: u32, topology: &Topology) {
        for group in self.list.iter_mut().flatten() {
            group.leave(slot, topology);
        }
    }

    /// The node of a slot changed; its pods are counted afterwards.
    pub fn enter_all(&mut self, slot: u32, topology: &Topology) {
        for group in self.list.iter_mut().flatten() {
            group.enter(slot, topology);
        }
    }

    /// Forgets groups that `keep` does not ask for.
    pub fn sweep(&mut self, keep: &FxHashSet<GroupId>) {
        for id in 0..self.list.len() as GroupId {
            if !keep.contains(&id)
                && let Some(group) = self.list[id as usize].take()
            {
                self.by_spec.remove(&group.spec);
                self.free.push(id);
            }
        }
    }

    /// Live groups.
    pub fn iter(&self) -> impl Iterator<Item = (GroupId, &Group)> {
        let entries = self.list.iter().enumerate();
        entries.filter_map(|(id, group)| Some((id as GroupId, group.as_ref()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::normalize_spread;

    #[test]
    fn the_emptiest_domain_scores_full_and_the_fullest_the_least() {
        assert_eq!(normalize_spread(Some(2), 2, 8), 100);
        assert_eq!(normalize_spread(Some(8), 2, 8), 25);
        assert_eq!(normalize_spread(Some(5), 2, 8), 62);
    }

    #[test]
    fn ignored_nodes_score_nothing_and_an_empty_cluster_scores_full() {
        assert_eq!(normalize_spread(None, 2, 8), 0);
        assert_eq!(normalize_spread(None, 0, 0), 0);
        assert_eq!(normalize_spread(Some(0), 0, 0), 100);
    }
}
