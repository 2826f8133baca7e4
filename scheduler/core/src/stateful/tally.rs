//! Tallies: how many placed pods match the terms of a pod that waits for a place, by domain. A tally exists
//! while some waiting pod asks for it and follows every pod that is placed or taken away.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::namespaces::Namespaces;
use super::pods::{PlacedPod, Pods};
use super::spread::{GroupId, Groups};
use super::term::{Anchor, PodTerm, View, joint_anchor};
use super::term_index::TermIndex;
use super::topology::{DomainCounts, KeyId, Topology, ValueId};

/// Number of a tally.
pub type TallyId = u32;

/// Which pods are counted, and where.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TallySpec {
    /// A pod counts when every one of these selects it (required affinity wants one pod that matches all).
    pub terms: Vec<PodTerm>,
    /// Topology keys to count by, each once; none for spread.
    pub keys: Vec<KeyId>,
    /// For spread constraints: terminating pods do not count, and counts are kept by node.
    pub spread: bool,
}

/// Counts of one [`TallySpec`].
#[derive(Clone, Debug)]
pub struct Tally {
    spec: Arc<TallySpec>,
    by_domain: Vec<DomainCounts>,
    anywhere: i64,
    by_node: FxHashMap<u32, i64>,
    groups: Vec<(GroupId, u32)>,
    version: u64,
}

impl Tally {
    /// What is counted.
    pub fn spec(&self) -> &TallySpec {
        &self.spec
    }

    /// Pods in a domain of one of the tally's keys.
    pub fn in_domain(&self, key: KeyId, value: ValueId) -> i64 {
        self.counts(key).map_or(0, |counts| counts.get(value))
    }

    /// Pods by domain of one of the tally's keys.
    pub fn counts(&self, key: KeyId) -> Option<&DomainCounts> {
        let at = self.spec.keys.iter().position(|&known| known == key)?;
        self.by_domain.get(at)
    }

    /// Pods in any domain of any key, once per key.
    pub fn anywhere(&self) -> i64 {
        self.anywhere
    }

    /// Pods on a node (spread only).
    pub fn on_node(&self, slot: u32) -> i64 {
        self.by_node.get(&slot).copied().unwrap_or(0)
    }

    /// Nodes with pods (spread only), in no particular order.
    pub fn nodes(&self) -> impl Iterator<Item = (u32, i64)> + '_ {
        self.by_node.iter().map(|(&slot, &count)| (slot, count))
    }

    /// Moves whenever a count may have changed.
    pub fn version(&self) -> u64 {
        self.version
    }

    fn selects(&self, pod: &PlacedPod, namespaces: &Namespaces) -> bool {
        !(self.spec.spread && pod.terminating)
            && self
                .spec
                .terms
                .iter()
                .all(|term| term.selects(&pod.namespace, &pod.labels, namespaces, View::OfIncoming))
    }

    fn bump(&mut self, slot: u32, sign: i64, topology: &Topology, groups: &mut Groups) {
        self.version += 1;
        for (&key, counts) in self.spec.keys.iter().zip(&mut self.by_domain) {
            if let Some(value) = topology.value(key, slot) {
                counts.add(value, sign);
                self.anywhere += sign;
            }
        }
        if self.spec.spread {
            let count = self.by_node.entry(slot).or_default();
            *count += sign;
            if *count == 0 {
                self.by_node.remove(&slot);
            }
            for &(group, constraint) in &self.groups {
                groups.bump(group, constraint, slot, sign, topology);
            }
        }
    }
}

/// All tallies.
#[derive(Clone, Debug, Default)]
pub struct Tallies {
    list: Vec<Option<Tally>>,
    free: Vec<TallyId>,
    by_spec: FxHashMap<Arc<TallySpec>, TallyId>,
    index: TermIndex,
}

impl Tallies {
    /// Number of a tally; a new one counts the pods that are placed already.
    pub fn intern(
        &mut self,
        spec: TallySpec,
        pods: &mut Pods,
        namespaces: &Namespaces,
        topology: &Topology,
        groups: &mut Groups,
    ) -> TallyId {
        if let Some(&id) = self.by_spec.get(&spec) {
            return id;
        }
        let spec = Arc::new(spec);
        let mut tally = Tally {
            spec: spec.clone(),
            by_domain: vec![DomainCounts::default(); spec.keys.len()],
            anywhere: 0,
            by_node: FxHashMap::default(),
            groups: Vec::new(),
            version: 0,
        };
        let anchor = joint_anchor(&spec.terms);
        pods.visit(anchor, |placed| {
            if tally.selects(&placed.pod, namespaces) {
                tally.bump(placed.pod.node, 1, topology, groups);
            }
        });
        let id = self.free.pop().unwrap_or_else(|| {
            self.list.push(None);
            self.list.len() as TallyId - 1
        });
        self.index.insert(anchor, id);
        self.list[id as usize] = Some(tally);
        self.by_spec.insert(spec, id);
        id
    }

    /// A tally by number.
    pub fn get(&self, id: TallyId) -> Option<&Tally> {
        self.list.get(id as usize)?.as_ref()
    }

    /// Tells a spread group about every change of a tally from now on.
    pub fn subscribe(&mut self, id: TallyId, group: GroupId, constraint: u32) {
        if let Some(tally) = self.list[id as usize].as_mut() {
            tally.groups.push((group, constraint));
        }
    }

    /// Adds (`sign` 1) or removes (-1) a pod to every tally that counts it.
    pub fn count(
        &mut self,
        pod: &PlacedPod,
        sign: i64,
        namespaces: &Namespaces,
        topology: &Topology,
        groups: &mut Groups,
    ) {
        let Self { list, index, .. } = self;
        for id in index.candidates(&pod.labels) {
            if let Some(tally) = list[id as usize].as_mut()
                && tally.selects(pod, namespaces)
            {
                tally.bump(pod.node, sign, topology, groups);
            }
        }
    }

    /// As [`Tallies::count`] for one tally.
    pub fn count_in(
        &mut self,
        id: TallyId,
        pod: &PlacedPod,
        sign: i64,
        namespaces: &Namespaces,
        topology: &Topology,
        groups: &mut Groups,
    ) {
        if let Some(tally) = self.list[id as usize].as_mut()
            && tally.selects(pod, namespaces)
        {
            tally.bump(pod.node, sign, topology, groups);
        }
    }

    /// Tallies whose terms read the labels of namespaces.
    pub fn reading_namespace_labels(&self) -> Vec<TallyId> {
        let reads = |tally: &Tally| tally.spec.terms.iter().any(PodTerm::reads_namespace_labels);
        self.iter().filter(|(_, tally)| reads(tally)).map(|(id, _)| id).collect()
    }

    /// Forgets tallies that `keep` does not ask for, and groups that are gone.
    pub fn sweep(&mut self, keep: &FxHashSet<TallyId>, groups: &Groups) {
        for id in 0..self.list.len() as TallyId {
            let slot = &mut self.list[id as usize];
            if let Some(tally) = slot.as_mut().filter(|_| keep.contains(&id)) {
                tally.groups.retain(|&(group, _)| groups.get(group).is_some());
            } else if let Some(tally) = slot.take() {
                self.index.remove(joint_anchor(&tally.spec.terms), id);
                self.by_spec.remove(&tally.spec);
                self.free.push(id);
            }
        }
    }

    /// Label keys that tallies anchor on.
    pub fn anchor_keys(&self) -> FxHashSet<String> {
        let anchors = self.iter().filter_map(|(_, tally)| match joint_anchor(&tally.spec.terms) {
            Anchor::Label(requirement) => Some(requirement.key.clone()),
            Anchor::Nowhere | Anchor::Anywhere => None,
        });
        anchors.collect()
    }

    /// Live tallies.
    pub fn iter(&self) -> impl Iterator<Item = (TallyId, &Tally)> {
        let entries = self.list.iter().enumerate();
        entries.filter_map(|(id, tally)| Some((id as TallyId, tally.as_ref()?)))
    }
}
