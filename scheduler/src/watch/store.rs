//! What a reader knows of one kind: for each object its version and a fingerprint, so that duplicates, late
//! events and heartbeats become no event, and objects that are missing from a new list become deletions.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

/// Deleted objects remembered, against late events that would bring them back.
const TOMBSTONES: usize = 4096;

/// Identity of an object within its kind. Canonical UUIDs take 16 bytes instead of a string: there may be a
/// million of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Id {
    Uuid(u128),
    Text(Box<str>),
}

impl Id {
    pub(crate) fn new(text: &str) -> Self {
        match canonical_uuid(text) {
            Some(number) => Self::Uuid(number),
            None => Self::Text(text.into()),
        }
    }

    /// The text it was made from.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Text(text) => text.to_string(),
            Self::Uuid(number) => {
                let mut text = format!("{number:032x}");
                for dash in [20, 16, 12, 8] {
                    text.insert(dash, '-');
                }
                text
            }
        }
    }
}

fn canonical_uuid(text: &str) -> Option<u128> {
    let bytes = text.as_bytes();
    if bytes.len() != 36 {
        return None;
    }
    bytes.iter().enumerate().try_fold(0_u128, |number, (at, byte)| match (at, byte) {
        (8 | 13 | 18 | 23, b'-') => Some(number),
        (8 | 13 | 18 | 23, _) => None,
        (_, b'0'..=b'9') => Some(number << 4 | u128::from(byte - b'0')),
        (_, b'a'..=b'f') => Some(number << 4 | u128::from(byte - b'a' + 10)),
        _ => None,
    })
}

#[derive(Clone, Copy, Debug)]
struct Known {
    version: u64,
    fingerprint: u64,
    list: u32,
}

/// What to make of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Tell the core.
    Tell,
    /// Older than what is known, or the same in all that matters.
    Ignore,
}

/// Versions and fingerprints of the objects of one kind.
#[derive(Debug, Default)]
pub(super) struct Store {
    known: FxHashMap<Id, Known>,
    gone: FxHashMap<Id, u64>,
    gone_order: VecDeque<Id>,
    list: u32,
}

impl Store {
    /// The object is known.
    pub(super) fn has(&self, id: &Id) -> bool {
        self.known.contains_key(id)
    }

    /// An object was added or changed. Version 0 means that the version is not known and is never compared.
    pub(super) fn set(&mut self, id: &Id, version: u64, fingerprint: u64) -> Verdict {
        if older(version, self.gone.get(id).copied()) {
            return Verdict::Ignore;
        }
        let list = self.list;
        match self.known.get_mut(id) {
            Some(known) if older(version, Some(known.version)) => {
                known.list = list;
                Verdict::Ignore
            }
            Some(known) => {
                let same = known.fingerprint == fingerprint;
                *known = Known { version, fingerprint, list };
                if same { Verdict::Ignore } else { Verdict::Tell }
            }
            None => {
                self.known.insert(id.clone(), Known { version, fingerprint, list });
                Verdict::Tell
            }
        }
    }

    /// An object was deleted, or does not matter any more.
    pub(super) fn remove(&mut self, id: &Id, version: u64) -> Verdict {
        let Some(known) = self.known.get(id) else { return Verdict::Ignore };
        if version != 0 && version < known.version {
            return Verdict::Ignore;
        }
        let version = version.max(known.version);
        self.known.remove(id);
        self.bury(id, version);
        Verdict::Tell
    }

    /// An object is there but could not be read: what was known of it stays.
    pub(super) fn keep(&mut self, id: &Id) {
        let list = self.list;
        if let Some(known) = self.known.get_mut(id) {
            known.list = list;
        }
    }

    /// A list begins: objects that it does not name are gone when it ends.
    pub(super) fn begin_list(&mut self) {
        self.list = self.list.wrapping_add(1);
    }

    /// The list has ended at `version`; returns what is gone, in a stable order.
    pub(super) fn end_list(&mut self, version: u64) -> Vec<Id> {
        let list = self.list;
        let gone = self.known.iter().filter(|(_, known)| known.list != list);
        let mut gone: Vec<Id> = gone.map(|(id, _)| id.clone()).collect();
        gone.sort_unstable();
        for id in &gone {
            self.known.remove(id);
            self.bury(id, version);
        }
        gone
    }

    /// Whether a change would be news although the watch has already passed its version.
    pub(super) fn drifted(&self, id: &Id, version: u64, fingerprint: u64, passed: u64) -> bool {
        version != 0
            && version <= passed
            && self.known.get(id).is_none_or(|known| known.fingerprint != fingerprint)
            && !self.gone.contains_key(id)
    }

    /// The server went back in time: versions known so far mean nothing any more.
    pub(super) fn forget_versions(&mut self) {
        self.known.values_mut().for_each(|known| known.version = 0);
        self.gone.clear();
        self.gone_order.clear();
    }

    /// Number of objects known.
    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    fn bury(&mut self, id: &Id, version: u64) {
        if version == 0 {
            return;
        }
        if self.gone.insert(id.clone(), version).is_none() {
            self.gone_order.push_back(id.clone());
        }
        if self.gone_order.len() > TOMBSTONES
            && let Some(oldest) = self.gone_order.pop_front()
        {
            self.gone.remove(&oldest);
        }
    }
}

/// Whether a change of `version` brings nothing new to one who knows `known`.
fn older(version: u64, known: Option<u64>) -> bool {
    version != 0 && known.is_some_and(|known| version <= known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_round_trip_and_only_canonical_uuids_are_packed() {
        let uuid = "0f14d0ab-9605-4a62-a9e4-5ed26688389b";
        assert!(matches!(Id::new(uuid), Id::Uuid(_)));
        for text in [uuid, "0F14D0AB-9605-4A62-A9E4-5ED26688389B", "uid-1", "", "ns/ä"] {
            assert_eq!(Id::new(text).text(), text);
        }
    }

    #[test]
    fn duplicates_and_late_events_are_ignored_and_heartbeats_tell_nothing() {
        let mut store = Store::default();
        let id = Id::new("a");
        assert_eq!(store.set(&id, 5, 1), Verdict::Tell);
        assert_eq!(store.set(&id, 5, 1), Verdict::Ignore);
        assert_eq!(store.set(&id, 4, 2), Verdict::Ignore);
        assert_eq!(store.set(&id, 6, 1), Verdict::Ignore);
        assert_eq!(store.set(&id, 7, 2), Verdict::Tell);
    }

    #[test]
    fn a_late_change_does_not_bring_a_deleted_object_back_but_a_new_one_does() {
        let mut store = Store::default();
        let id = Id::new("a");
        store.set(&id, 5, 1);
        assert_eq!(store.remove(&id, 4), Verdict::Ignore);
        assert_eq!(store.remove(&id, 9), Verdict::Tell);
        assert_eq!(store.remove(&id, 9), Verdict::Ignore);
        assert_eq!(store.set(&id, 8, 2), Verdict::Ignore);
        assert_eq!(store.set(&id, 10, 2), Verdict::Tell);
    }

    #[test]
    fn objects_missing_from_a_list_are_gone_and_unreadable_ones_are_not() {
        let mut store = Store::default();
        let [a, b, c] = ["a", "b", "c"].map(Id::new);
        for id in [&a, &b, &c] {
            store.set(id, 1, 1);
        }
        store.begin_list();
        store.set(&a, 1, 1);
        store.keep(&b);
        assert_eq!(store.end_list(9), [c]);
        assert_eq!(store.len(), 2);
    }

    #[test]
    fn drift_is_a_difference_that_the_watch_should_have_told() {
        let mut store = Store::default();
        let id = Id::new("a");
        store.set(&id, 5, 1);
        assert!(store.drifted(&id, 7, 2, 8));
        assert!(!store.drifted(&id, 9, 2, 8));
        assert!(!store.drifted(&id, 7, 1, 8));
    }

    #[test]
    fn after_a_rollback_older_versions_count_again() {
        let mut store = Store::default();
        let id = Id::new("a");
        store.set(&id, 500, 1);
        store.forget_versions();
        assert_eq!(store.set(&id, 3, 2), Verdict::Tell);
    }
}
