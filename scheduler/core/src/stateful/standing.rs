//! Standing questions: one per kind of waiting pod (namespace, labels, spec). A question is resolved once into
//! the tallies, owned terms and groups that answer it, and these follow every placement; asking about a node
//! is then a handful of look-ups.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::namespaces::Namespaces;
use super::owned::{OwnedId, OwnedKind, OwnedTable, OwnedTerms};
use super::spread::GroupId;
use super::tally::TallyId;
use super::topology::KeyId;
use crate::event::{Labels, PodSpec};

/// Number of a standing question.
pub type StandingId = u32;

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Asker {
    /// Namespace of the pod.
    pub namespace: Arc<str>,
    /// Its labels.
    pub labels: Arc<Labels>,
    /// Its spec.
    pub spec: Arc<PodSpec>,
}

/// Required affinity: one tally counts the pods that match all terms, by every key.
#[derive(Clone, Debug)]
pub struct RequiredAffinity {
    /// Pods that match all terms.
    pub tally: TallyId,
    /// Key of each term.
    pub keys: Vec<KeyId>,
    /// The pod matches its own terms, so the first of its kind may go anywhere that has the keys.
    pub matches_itself: bool,
}

/// A question with what answers it.
#[derive(Clone, Debug)]
pub struct Standing {
    /// Who asks.
    pub asker: Asker,
    /// Required affinity.
    pub affinity: Option<RequiredAffinity>,
    /// Own required anti-affinity.
    pub anti_affinity: Vec<(TallyId, KeyId)>,
    /// Own preferences with weights.
    pub preferred: Vec<(TallyId, KeyId, i64)>,
    /// Required anti-affinity of placed pods that is about this pod.
    pub repelled_by: Vec<OwnedId>,
    /// Preferences of placed pods that are about this pod.
    pub preferred_by: Vec<OwnedId>,
    /// Terms that the pod will own once placed.
    pub owned: OwnedTerms,
    /// Hard spread constraints, and which of them count the pod itself.
    pub hard: Option<(GroupId, Vec<bool>)>,
    /// Soft spread constraints.
    pub soft: Option<GroupId>,
    /// Moves when the lists above change.
    pub version: u64,
    /// When it was asked last.
    pub asked: u64,
}

impl Standing {
    /// Enters a term of placed pods that is about this pod.
    pub fn hear_of(&mut self, id: OwnedId, kind: OwnedKind) {
        self.version += 1;
        match kind {
            OwnedKind::Repels => self.repelled_by.push(id),
            OwnedKind::Prefers => self.preferred_by.push(id),
        }
    }

    /// Looks all terms of placed pods up anew.
    pub fn listen(&mut self, owned: &OwnedTable, namespaces: &Namespaces) {
        // Versions of terms add to that of the question: those of terms dropped here must stay in the sum.
        let dropped = self.repelled_by.drain(..).chain(self.preferred_by.drain(..));
        self.version += dropped.filter_map(|id| Some(owned.get(id)?.version())).sum::<u64>() + 1;
        let asker = self.asker.clone();
        for (id, term) in owned.selecting(&asker.namespace, &asker.labels, namespaces) {
            self.hear_of(id, term.kind());
        }
    }

    /// Tallies that answer it (those of groups aside).
    pub fn tallies(&self) -> impl Iterator<Item = TallyId> + '_ {
        let required = self.affinity.iter().map(|affinity| affinity.tally);
        let repels = self.anti_affinity.iter().map(|(tally, _)| *tally);
        required.chain(repels).chain(self.preferred.iter().map(|(tally, _, _)| *tally))
    }

    /// Groups that answer it.
    pub fn groups(&self) -> impl Iterator<Item = GroupId> + '_ {
        self.hard.iter().map(|(group, _)| *group).chain(self.soft)
    }
}

/// Questions that stand.
#[derive(Clone, Debug, Default)]
pub struct Standings {
    list: Vec<Option<Standing>>,
    free: Vec<StandingId>,
    by_asker: FxHashMap<Asker, StandingId>,
}

impl Standings {
    /// Number of a question that stands.
    pub fn find(&self, asker: &Asker) -> Option<StandingId> {
        self.by_asker.get(asker).copied()
    }

    /// A question by number.
    pub fn get(&self, id: StandingId) -> Option<&Standing> {
        self.list.get(id as usize)?.as_ref()
    }

    /// A question by number.
    pub fn get_mut(&mut self, id: StandingId) -> Option<&mut Standing> {
        self.list.get_mut(id as usize)?.as_mut()
    }

    /// Enters a question.
    pub fn insert(&mut self, standing: Standing) -> StandingId {
        let id = self.free.pop().unwrap_or_else(|| {
            self.list.push(None);
            self.list.len() as StandingId - 1
        });
        self.by_asker.insert(standing.asker.clone(), id);
        self.list[id as usize] = Some(standing);
        id
    }

    /// Number of questions.
    pub fn count(&self) -> usize {
        self.by_asker.len()
    }

    /// Questions, in order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &Standing> {
        self.list.iter().flatten()
    }

    /// Questions, in order of their numbers.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Standing> {
        self.list.iter_mut().flatten()
    }

    /// Forgets questions that were not asked after `since`.
    pub fn sweep(&mut self, since: u64) {
        for id in 0..self.list.len() as StandingId {
            if self.get(id).is_some_and(|standing| standing.asked <= since)
                && let Some(standing) = self.list[id as usize].take()
            {
                self.by_asker.remove(&standing.asker);
                self.free.push(id);
            }
        }
    }
}
