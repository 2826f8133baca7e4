//! Filters and scores that depend on pods elsewhere: host ports, inter-pod affinity, topology spread. One
//! [`StatefulState`] is told of nodes, namespaces and placed pods, keeps counters, and answers questions about
//! waiting pods from them. Every change is invertible: adding a pod and removing it leaves every answer as it
//! was, so tentative placements are told and taken back like any other.
//!
//! Only the core's state may tell it something; plugins and actions ask. Hash maps are used for look-ups and
//! for feeding sums; no answer depends on their order.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use crate::event::{Labels, PodAffinityTerm, PodSpec, SpreadConstraint, Taint};
use crate::matching::static_filter::PredicateSwitches;

pub mod affinity;
pub mod ask;
pub mod audit;
pub mod namespaces;
pub mod owned;
pub mod pods;
pub mod ports;
pub mod reason;
pub mod spread;
pub mod standing;
pub mod tally;
pub mod term;
pub mod term_index;
pub mod topology;

#[cfg(test)]
mod affinity_tests;
#[cfg(test)]
mod behaviour_tests;
#[cfg(test)]
mod naive;
#[cfg(test)]
mod property_tests;
#[cfg(test)]
mod spread_tests;
#[cfg(test)]
mod test_world;

pub use ask::Asked;
pub use pods::PlacedPod;
pub use reason::StatefulReason;

use affinity::Counters;
use namespaces::Namespaces;
use owned::{OwnedId, OwnedTable};
use pods::{Placed, Pods};
use ports::Ports;
use spread::{GroupId, GroupSpec, Groups, self_matches};
use standing::{Asker, RequiredAffinity, Standing, StandingId, Standings};
use tally::{Tallies, TallyId, TallySpec};
use term::{PodTerm, View};
use topology::{KeyId, NodeFacts, Topology};

/// A question about a waiting pod.
#[derive(Clone, Copy, Debug)]
pub struct Query<'q> {
    /// Namespace of the pod.
    pub namespace: &'q Arc<str>,
    /// Its labels.
    pub labels: &'q Arc<Labels>,
    /// Its spec.
    pub spec: &'q Arc<PodSpec>,
    /// Filters that are on.
    pub switches: &'q PredicateSwitches,
}

/// Questions kept at least before unused ones are forgotten.
const SWEEP_FLOOR: usize = 4096;

/// Counters over placed pods.
#[derive(Clone, Debug, Default)]
pub struct StatefulState {
    topology: Topology,
    namespaces: Namespaces,
    pods: Pods,
    ports: Ports,
    tallies: Tallies,
    owned: OwnedTable,
    groups: Groups,
    standings: Standings,
    /// Questions asked so far.
    clock: u64,
    last_sweep: u64,
    sweep_at: usize,
}

impl StatefulState {
    /// True when placing a pod of this spec depends on other pods or matters to others by its own terms.
    pub fn wants(spec: &PodSpec) -> bool {
        !(spec.host_ports.is_empty()
            && spec.pod_affinity.is_empty()
            && spec.pod_anti_affinity.is_empty()
            && spec.preferred_pod_affinity.is_empty()
            && spec.spread.is_empty())
    }

    /// True when a placed pod's anti-affinity or preference is about a pod like this. A pod that is not
    /// affected and does not [`want`](Self::wants) to depend on others need not ask.
    pub fn is_affected(&self, namespace: &str, labels: &Labels) -> bool {
        self.owned.selecting(namespace, labels, &self.namespaces).any(|(_, term)| term.owners() > 0)
    }

    /// True while some question counts pods by label, so that every placed pod matters. Otherwise only pods
    /// that are [`wants`](Self::wants)ed do.
    pub fn needs_all_pods(&self) -> bool {
        self.tallies.iter().next().is_some()
    }

    /// Sets what a node is.
    pub fn set_node(
        &mut self,
        slot: u32,
        name: &Arc<str>,
        labels: &Arc<Labels>,
        taints: &Arc<Vec<Taint>>,
    ) {
        let facts =
            NodeFacts { name: name.clone(), labels: labels.clone(), taints: taints.clone() };
        if self.topology.node(slot) != Some(&facts) {
            self.replace_node(slot, Some(facts));
        }
    }

    /// Forgets a node. Pods that are still said to be on it count for no domain until it is back.
    pub fn remove_node(&mut self, slot: u32) {
        if self.topology.node(slot).is_some() {
            self.replace_node(slot, None);
        }
    }

    fn replace_node(&mut self, slot: u32, facts: Option<NodeFacts>) {
        let on_it = self.pods.on_node(slot);
        for placed in &on_it {
            self.count(placed, -1);
        }
        self.groups.leave_all(slot, &self.topology);
        self.topology.replace(slot, facts);
        self.groups.enter_all(slot, &self.topology);
        for placed in &on_it {
            self.count(placed, 1);
        }
    }

    /// Sets the labels of a namespace.
    pub fn set_namespace(&mut self, name: &str, labels: &Labels) {
        if self.namespaces.labels(name) != Some(labels) {
            self.replace_namespace(name, Some(labels));
        }
    }

    /// Forgets a namespace.
    pub fn remove_namespace(&mut self, name: &str) {
        if self.namespaces.labels(name).is_some() {
            self.replace_namespace(name, None);
        }
    }

    fn replace_namespace(&mut self, name: &str, labels: Option<&Labels>) {
        let readers = self.tallies.reading_namespace_labels();
        let members: Vec<Arc<Placed>> = if readers.is_empty() {
            Vec::new()
        } else {
            self.pods.in_namespace(name).cloned().collect()
        };
        self.count_in(&readers, &members, -1);
        self.namespaces.replace(name, labels);
        self.count_in(&readers, &members, 1);
        for standing in self.standings.iter_mut().filter(|s| &*s.asker.namespace == name) {
            standing.listen(&self.owned, &self.namespaces);
            if let Some(affinity) = &mut standing.affinity {
                affinity.matches_itself = matches_itself(&standing.asker, &self.namespaces);
            }
        }
    }

    fn count_in(&mut self, tallies: &[TallyId], pods: &[Arc<Placed>], sign: i64) {
        for placed in pods {
            for &id in tallies {
                let (namespaces, topology) = (&self.namespaces, &self.topology);
                self.tallies.count_in(
                    id,
                    &placed.pod,
                    sign,
                    namespaces,
                    topology,
                    &mut self.groups,
                );
            }
        }
    }

    /// A pod is on a node, or is there in another way than before.
    pub fn add_pod(&mut self, task: u32, pod: &PlacedPod) {
        if self.pods.get(task).is_some_and(|placed| placed.pod == *pod) {
            return;
        }
        self.remove_pod(task);
        let mut fresh = Vec::new();
        let owned = self.owned.terms_of(&pod.spec, &pod.namespace, &mut self.topology, &mut fresh);
        self.spread_word(&fresh);
        let placed = Arc::new(Placed { pod: pod.clone(), owned });
        self.count(&placed, 1);
        self.pods.insert(task, placed);
    }

    /// The pod of a task is on no node any more. Does nothing for a task that has none.
    pub fn remove_pod(&mut self, task: u32) {
        if let Some(placed) = self.pods.remove(task) {
            self.count(&placed, -1);
        }
    }

    fn count(&mut self, placed: &Placed, sign: i64) {
        let pod = &placed.pod;
        if sign > 0 {
            self.ports.add(pod.node, &pod.spec.host_ports);
        } else {
            self.ports.remove(pod.node, &pod.spec.host_ports);
        }
        self.tallies.count(pod, sign, &self.namespaces, &self.topology, &mut self.groups);
        self.owned.count(&placed.owned, pod.node, sign, &self.topology);
    }

    /// Tells standing questions of terms that were not there when they were resolved.
    fn spread_word(&mut self, fresh: &[OwnedId]) {
        for &id in fresh {
            let Some(term) = self.owned.get(id) else { continue };
            for standing in self.standings.iter_mut() {
                let asker = &standing.asker;
                if term.selects(&asker.namespace, &asker.labels, &self.namespaces) {
                    standing.hear_of(id, term.kind());
                }
            }
        }
    }

    /// Asks about a waiting pod. The first question of its kind costs a pass over the pods that its terms
    /// select; the next ones a look-up.
    pub fn ask(&mut self, query: &Query<'_>) -> Asked<'_> {
        self.clock += 1;
        let asker = Asker {
            namespace: query.namespace.clone(),
            labels: query.labels.clone(),
            spec: query.spec.clone(),
        };
        let id = match self.standings.find(&asker) {
            Some(id) => id,
            None => {
                if self.standings.count() >= self.sweep_at.max(SWEEP_FLOOR) {
                    self.sweep();
                }
                self.resolve(asker)
            }
        };
        if let Some(standing) = self.standings.get_mut(id) {
            standing.asked = self.clock;
        }
        Asked::new(self, id, *query.switches)
    }

    fn resolve(&mut self, asker: Asker) -> StandingId {
        let spec = asker.spec.clone();
        let namespace = &asker.namespace;
        let mut fresh = Vec::new();
        let owned = self.owned.terms_of(&spec, namespace, &mut self.topology, &mut fresh);
        self.spread_word(&fresh);
        let affinity = (!spec.pod_affinity.is_empty()).then(|| {
            let keys: Vec<KeyId> = spec
                .pod_affinity
                .iter()
                .map(|term| self.topology.key(&term.topology_key))
                .collect();
            RequiredAffinity {
                tally: self.tally(own_terms(&asker), &keys, false),
                keys,
                matches_itself: matches_itself(&asker, &self.namespaces),
            }
        });
        let mut single = |term: &PodAffinityTerm| {
            let key = self.topology.key(&term.topology_key);
            let tally = self.tally(vec![PodTerm::of_affinity(term, namespace)], &[key], false);
            (tally, key)
        };
        let anti_affinity = spec.pod_anti_affinity.iter().map(&mut single).collect();
        let preferred = spec
            .preferred_pod_affinity
            .iter()
            .map(|(weight, term)| {
                let (tally, key) = single(term);
                (tally, key, i64::from(*weight))
            })
            .collect();
        let hard = GroupSpec::of(&spec, namespace, true).map(|group| {
            let itself = self_matches(group.constraints(), &asker.labels);
            (self.group(group, namespace), itself)
        });
        let soft = GroupSpec::of(&spec, namespace, false).map(|group| self.group(group, namespace));
        let mut standing = Standing {
            asker,
            affinity,
            anti_affinity,
            preferred,
            repelled_by: Vec::new(),
            preferred_by: Vec::new(),
            owned,
            hard,
            soft,
            version: 0,
            asked: self.clock,
        };
        standing.listen(&self.owned, &self.namespaces);
        self.standings.insert(standing)
    }

    fn tally(&mut self, terms: Vec<PodTerm>, keys: &[KeyId], spread: bool) -> TallyId {
        let mut keys = keys.to_vec();
        keys.sort_unstable();
        keys.dedup();
        self.tallies.intern(
            TallySpec { terms, keys, spread },
            &mut self.pods,
            &self.namespaces,
            &self.topology,
            &mut self.groups,
        )
    }

    fn group(&mut self, spec: GroupSpec, namespace: &Arc<str>) -> GroupId {
        if let Some(id) = self.groups.find(&spec) {
            return id;
        }
        let tally_of = |constraint: &SpreadConstraint| {
            let term = PodTerm::of_spread(constraint, namespace);
            (self.tally(vec![term], &[], true), self.topology.key(&constraint.topology_key))
        };
        let tallies: Vec<(TallyId, KeyId)> = spec.constraints().iter().map(tally_of).collect();
        let id = self.groups.create(spec, &tallies, &self.tallies, &self.topology);
        for (at, (tally, _)) in tallies.iter().enumerate() {
            self.tallies.subscribe(*tally, id, at as u32);
        }
        id
    }

    /// Forgets questions that nobody asked since the last sweep, and the counters that only they needed. Runs
    /// by itself when many questions stand.
    pub fn sweep(&mut self) {
        self.standings.sweep(self.last_sweep);
        self.last_sweep = self.clock;
        self.sweep_at = 2 * self.standings.count();
        let groups: FxHashSet<GroupId> = self.standings.iter().flat_map(Standing::groups).collect();
        let followed =
            groups.iter().filter_map(|&id| self.groups.get(id)).flat_map(|g| g.tallies());
        let tallies: FxHashSet<TallyId> =
            self.standings.iter().flat_map(Standing::tallies).chain(followed).collect();
        self.groups.sweep(&groups);
        self.tallies.sweep(&tallies, &self.groups);
        self.pods.retain_keys(&self.tallies.anchor_keys());
        let wanted: FxHashSet<OwnedId> =
            self.standings.iter().flat_map(|s| s.owned.iter().map(|(id, _)| *id)).collect();
        let gone: FxHashSet<OwnedId> =
            self.owned.sweep(|id| wanted.contains(&id)).into_iter().collect();
        for standing in self.standings.iter_mut() {
            standing.repelled_by.retain(|id| !gone.contains(id));
            standing.preferred_by.retain(|id| !gone.contains(id));
        }
    }

    fn counters(&self) -> Counters<'_> {
        Counters { tallies: &self.tallies, owned: &self.owned, topology: &self.topology }
    }
}

fn own_terms(asker: &Asker) -> Vec<PodTerm> {
    let terms = asker.spec.pod_affinity.iter();
    terms.map(|term| PodTerm::of_affinity(term, &asker.namespace)).collect()
}

fn matches_itself(asker: &Asker, namespaces: &Namespaces) -> bool {
    own_terms(asker)
        .iter()
        .all(|term| term.selects(&asker.namespace, &asker.labels, namespaces, View::OfIncoming))
}
