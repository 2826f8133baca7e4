//! Affinity terms that placed pods own: required anti-affinity keeps matching newcomers out of a domain,
//! preferred terms pull or push them. Counted by domain of the owners and live, so a pod placed a moment ago
//! already counts (P34).

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::namespaces::Namespaces;
use super::term::{PodTerm, View};
use super::term_index::TermIndex;
use super::topology::{DomainCounts, KeyId, Topology};
use crate::event::{Labels, PodSpec};

/// Number of an owned term.
pub type OwnedId = u32;
/// Terms that one pod owns, with what it adds to the domain: 1 for anti-affinity, the weight for preferences.
pub type OwnedTerms = Arc<[(OwnedId, i64)]>;

/// What an owned term does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OwnedKind {
    /// Required anti-affinity.
    Repels,
    /// Preferred affinity (positive weight) or anti-affinity (negative).
    Prefers,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct OwnedSpec {
    term: PodTerm,
    key: KeyId,
    kind: OwnedKind,
}

/// A term with the domains of its owners.
#[derive(Clone, Debug)]
pub struct Owned {
    spec: Arc<OwnedSpec>,
    counts: DomainCounts,
    owners: u32,
    version: u64,
}

impl Owned {
    /// What it does.
    pub fn kind(&self) -> OwnedKind {
        self.spec.kind
    }

    /// Topology key.
    pub fn key(&self) -> KeyId {
        self.spec.key
    }

    /// Owners (or their summed weights) by domain.
    pub fn counts(&self) -> &DomainCounts {
        &self.counts
    }

    /// Placed pods that own it, on known nodes or not.
    pub fn owners(&self) -> u32 {
        self.owners
    }

    /// Moves whenever a count may have changed.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// True when it is about a pod with these labels in this namespace.
    pub fn selects(&self, namespace: &str, labels: &Labels, namespaces: &Namespaces) -> bool {
        self.spec.term.selects(namespace, labels, namespaces, View::OfExisting)
    }

    /// The pods it is about.
    pub fn term(&self) -> &PodTerm {
        &self.spec.term
    }
}

/// All owned terms.
#[derive(Clone, Debug, Default)]
pub struct OwnedTable {
    list: Vec<Option<Owned>>,
    free: Vec<OwnedId>,
    by_spec: FxHashMap<Arc<OwnedSpec>, OwnedId>,
    index: TermIndex,
    /// Terms by template, so that the next replica need not be read again. Holds the spec alive.
    by_template: FxHashMap<usize, (Arc<PodSpec>, Arc<str>, OwnedTerms)>,
}

/// Templates remembered; beyond this many the memory starts anew.
const TEMPLATE_LIMIT: usize = 1 << 14;

impl OwnedTable {
    /// Terms that a pod of this spec owns. Numbers of terms never seen before are pushed to `fresh`.
    pub fn terms_of(
        &mut self,
        spec: &Arc<PodSpec>,
        namespace: &Arc<str>,
        topology: &mut Topology,
        fresh: &mut Vec<OwnedId>,
    ) -> OwnedTerms {
        if spec.pod_anti_affinity.is_empty() && spec.preferred_pod_affinity.is_empty() {
            return OwnedTerms::default();
        }
        let template = Arc::as_ptr(spec) as usize;
        if let Some((_, owner, terms)) = self.by_template.get(&template)
            && owner == namespace
        {
            return terms.clone();
        }
        let repels = spec.pod_anti_affinity.iter().map(|term| (OwnedKind::Repels, 1, term));
        let prefers = spec
            .preferred_pod_affinity
            .iter()
            .map(|(weight, term)| (OwnedKind::Prefers, i64::from(*weight), term));
        let mut terms: Vec<(OwnedId, i64)> = Vec::new();
        for (kind, amount, term) in repels.chain(prefers) {
            let key = topology.key(&term.topology_key);
            let id = self.intern(
                OwnedSpec { term: PodTerm::of_affinity(term, namespace), key, kind },
                fresh,
            );
            terms.push((id, amount));
        }
        let terms: OwnedTerms = terms.into();
        if self.by_template.len() >= TEMPLATE_LIMIT {
            self.by_template.clear();
        }
        self.by_template.insert(template, (spec.clone(), namespace.clone(), terms.clone()));
        terms
    }

    fn intern(&mut self, spec: OwnedSpec, fresh: &mut Vec<OwnedId>) -> OwnedId {
        if let Some(&id) = self.by_spec.get(&spec) {
            return id;
        }
        let spec = Arc::new(spec);
        let owned =
            Owned { spec: spec.clone(), counts: DomainCounts::default(), owners: 0, version: 0 };
        let id = self.free.pop().unwrap_or_else(|| {
            self.list.push(None);
            self.list.len() as OwnedId - 1
        });
        self.index.insert(spec.term.anchor(), id);
        self.list[id as usize] = Some(owned);
        self.by_spec.insert(spec, id);
        fresh.push(id);
        id
    }

    /// A term by number.
    pub fn get(&self, id: OwnedId) -> Option<&Owned> {
        self.list.get(id as usize)?.as_ref()
    }

    /// Adds (`sign` 1) or removes (-1) one owner, on the domain of its node if that has one.
    pub fn count(&mut self, terms: &OwnedTerms, slot: u32, sign: i64, topology: &Topology) {
        for &(id, amount) in terms.iter() {
            let Some(owned) = self.list.get_mut(id as usize).and_then(Option::as_mut) else {
                continue;
            };
            owned.owners = owned.owners.wrapping_add_signed(sign as i32);
            owned.version += 1;
            if let Some(value) = topology.value(owned.spec.key, slot) {
                owned.counts.add(value, amount * sign);
            }
        }
    }

    /// Terms that are about a pod with these labels in this namespace.
    pub fn selecting<'t>(
        &'t self,
        namespace: &'t str,
        labels: &'t Labels,
        namespaces: &'t Namespaces,
    ) -> impl Iterator<Item = (OwnedId, &'t Owned)> {
        self.index
            .candidates(labels)
            .filter_map(|id| Some((id, self.get(id)?)))
            .filter(move |(_, owned)| owned.selects(namespace, labels, namespaces))
    }

    /// Forgets terms that nobody owns and `keep` does not ask for. Returns their numbers.
    pub fn sweep(&mut self, keep: impl Fn(OwnedId) -> bool) -> Vec<OwnedId> {
        let mut gone = Vec::new();
        for id in 0..self.list.len() as OwnedId {
            let idle = self.get(id).is_some_and(|owned| owned.owners == 0);
            if idle
                && !keep(id)
                && let Some(owned) = self.list[id as usize].take()
            {
                self.index.remove(owned.spec.term.anchor(), id);
                self.by_spec.remove(&owned.spec);
                gone.push(id);
            }
        }
        if !gone.is_empty() {
            self.by_template.clear();
            self.free.extend(&gone);
        }
        gone
    }

    /// Live terms.
    pub fn iter(&self) -> impl Iterator<Item = (OwnedId, &Owned)> {
        let entries = self.list.iter().enumerate();
        entries.filter_map(|(id, owned)| Some((id as OwnedId, owned.as_ref()?)))
    }
}
