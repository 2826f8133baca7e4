//! I8: a gang that makes room is told before it is stopped, stays what it was, and comes back into room that is its own.
//!
//! Suspensions are judged by what the history says of annotations, switches and pods:
//!
//! | rule | file |
//! | --- | --- |
//! | an intent asks only who may be asked, is withdrawn only before the record stands, and the record stands before anything is stopped; it waits for acknowledgements or the deadline; a gang is stopped once for an intent | `protocol.rs` |
//! | what a person holds or has suspended is not let run; an owner keeps all but its switch and our annotations, and pods come back as they were | `people.rs` |
//! | nobody else's pods take the room that is freed for a gang or held for one that comes back; a gang that is down is not placed | `room.rs` |
//! | at rest nothing is left half way, and where everything had room everything has run | `rest.rs` |

mod people;
mod protocol;
mod rest;
mod room;
mod seen;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::cluster::{Cluster, Key};
use super::{Invariant, Programs, Rules, Violation};
use crate::history::WriteRecord;
use seen::{Intent, Record, annotation, switch_of};

/// The newest version of each object that matters here, by resource, namespace and name.
type Objects = BTreeMap<(String, String, String), Arc<Value>>;

/// All suspensions of a run.
pub(super) struct Suspensions {
    programs: Option<Programs>,
    objects: Objects,
    /// Bodies of pods that are gone, by namespace and name.
    former: BTreeMap<Key, Arc<Value>>,
    /// Ids of records that stood on a PodGroup.
    recorded: BTreeSet<String>,
    /// Ids of suspensions that the scheduler let come back.
    resumed: BTreeSet<String>,
    /// Owner (uid) and id: it was stopped for that.
    stopped: BTreeSet<(String, String)>,
    /// Who set the switch of an owner (uid) last.
    switched_by: BTreeMap<String, Arc<str>>,
    /// Since when an annotation of a PodGroup (with its key) stands as it is, Unix milliseconds.
    since_ms: BTreeMap<(Key, &'static str), i64>,
    claims: room::Claims,
}

/// One write: what an object was and is.
struct Change<'a> {
    record: &'a WriteRecord,
    before: Option<&'a Value>,
    after: Option<&'a Value>,
}

impl Change<'_> {
    fn key(&self) -> Key {
        (self.record.namespace.clone(), self.record.name.clone())
    }

    /// An annotation, before and after.
    fn text(&self, key: &str) -> (Option<&str>, Option<&str>) {
        let before = self.before.and_then(|object| annotation(object, key));
        (before, self.after.and_then(|object| annotation(object, key)))
    }
}

impl Suspensions {
    pub(super) fn new(rules: &Rules) -> Self {
        Self {
            programs: rules.suspension.clone(),
            objects: Objects::new(),
            former: BTreeMap::new(),
            recorded: BTreeSet::new(),
            resumed: BTreeSet::new(),
            stopped: BTreeSet::new(),
            switched_by: BTreeMap::new(),
            since_ms: BTreeMap::new(),
            claims: room::Claims::default(),
        }
    }

    fn is_scheduler(&self, identity: &str) -> bool {
        self.programs.as_ref().is_some_and(|it| identity.starts_with(&it.scheduler))
    }

    fn is_controller(&self, identity: &str) -> bool {
        self.programs.as_ref().is_some_and(|it| identity.starts_with(&it.controller))
    }

    /// Judges one write; `cluster` has taken it in.
    pub(super) fn judge(
        &mut self,
        cluster: &Cluster<'_>,
        record: &WriteRecord,
        found: &mut Vec<Violation>,
    ) {
        if self.programs.is_none() || !record.applied() {
            return;
        }
        let Some(after) = &record.after else { return };
        let place = (record.resource.clone(), record.namespace.clone(), record.name.clone());
        let matters = matches!(record.resource.as_str(), "podgroups" | "pods")
            || switch_of(&record.resource).is_some();
        if !matters {
            return;
        }
        let before =
            self.objects.get(&place).filter(|it| it["metadata"]["uid"] == *record.uid).cloned();
        let change =
            Change { record, before: before.as_deref(), after: record.exists.then_some(&**after) };
        let mut broken = Vec::new();
        match record.resource.as_str() {
            "podgroups" => self.judge_group(cluster, &change, &mut broken),
            "pods" => self.judge_pod(cluster, &change, &mut broken),
            _ => self.judge_owner(cluster, &change, &mut broken),
        }
        let named = |what: String| Violation {
            invariant: Invariant::I8,
            time_ms: record.time_ms,
            what: format!("{} {}/{}: {what}", record.resource, record.namespace, record.name),
        };
        found.extend(broken.into_iter().map(named));
        if record.exists {
            self.objects.insert(place, Arc::clone(after));
        } else {
            if record.resource == "pods" {
                self.former
                    .insert((record.namespace.clone(), record.name.clone()), Arc::clone(after));
            }
            self.objects.remove(&place);
        }
    }

    fn judge_group(
        &mut self,
        cluster: &Cluster<'_>,
        change: &Change<'_>,
        broken: &mut Vec<String>,
    ) {
        let key = change.key();
        for name in [seen::SUSPEND, seen::SUSPENDED, seen::RESUME, seen::HOLD] {
            let (before, after) = change.text(name);
            if before != after {
                self.since_ms.insert((key.clone(), name), change.record.time_ms);
            }
        }
        let by = &change.record.identity;
        if self.is_scheduler(by) {
            self.judge_wish(cluster, change, broken);
        } else if self.is_controller(by) {
            self.judge_record(cluster, change, broken);
        }
        self.judge_hold_stays(change, broken);
        let record = change.after.and_then(Record::of);
        if let Some(record) = &record {
            self.recorded.insert(record.id.clone());
        }
        if let (Some(id), Some(_)) = (change.text(seen::RESUME).1, &record) {
            self.resumed.insert(id.to_owned());
        }
        self.note_claims(change);
    }

    fn judge_pod(&mut self, cluster: &Cluster<'_>, change: &Change<'_>, broken: &mut Vec<String>) {
        let record = change.record;
        if record.subresource == "binding" && self.is_scheduler(&record.identity) {
            self.judge_place(cluster, change, broken);
        }
        if !self.is_controller(&record.identity) {
            return;
        }
        let leaves = |pod: Option<&Value>| {
            pod.is_none_or(|pod| !pod["metadata"]["deletionTimestamp"].is_null())
        };
        if change.before.is_none() && record.verb == "create" && record.subresource.is_empty() {
            self.judge_return(cluster, change, broken);
        } else if leaves(change.after) && change.before.is_some_and(|pod| !leaves(Some(pod))) {
            self.judge_eviction(cluster, change, broken);
        }
    }

    fn judge_owner(
        &mut self,
        cluster: &Cluster<'_>,
        change: &Change<'_>,
        broken: &mut Vec<String>,
    ) {
        let Some(switch) = switch_of(&change.record.resource) else { return };
        let on = |object: Option<&Value>| {
            object.is_some_and(|it| it.pointer(switch) == Some(&Value::Bool(true)))
        };
        let (was, is) = (on(change.before), on(change.after));
        if self.is_controller(&change.record.identity) {
            self.judge_unchanged(change, switch, broken);
            match (was, is) {
                (false, true) => self.judge_stop(change, broken),
                (true, false) => self.judge_run(cluster, change, broken),
                _ => {}
            }
        }
        if was != is {
            self.switched_by.insert(change.record.uid.clone(), Arc::clone(&change.record.identity));
        }
    }

    /// PodGroups that exist.
    fn groups(&self) -> impl Iterator<Item = (Key, &Value)> {
        self.objects
            .iter()
            .filter(|((resource, ..), _)| resource == "podgroups")
            .map(|((_, namespace, name), group)| ((namespace.clone(), name.clone()), &**group))
    }

    fn group(&self, key: &Key) -> Option<&Value> {
        let place = ("podgroups".to_owned(), key.0.clone(), key.1.clone());
        self.objects.get(&place).map(|group| &**group)
    }

    /// The PodGroup of this gang that carries a record: its own, or the one that stands in for it.
    fn waiting_for(&self, gang: &Key) -> Option<(Key, Record)> {
        let stand_in = (gang.0.clone(), format!("{}-suspended", gang.1));
        let of_gang = |key: &Key| {
            let record = Record::of(self.group(key)?)?;
            (record.group == gang.1).then(|| (key.clone(), record))
        };
        of_gang(&stand_in).or_else(|| of_gang(gang))
    }

    /// An annotation of a PodGroup stands as it is for so long that everybody must have heard of it.
    fn is_known(&self, cluster: &Cluster<'_>, key: &Key, name: &'static str) -> bool {
        self.since_ms.get(&(key.clone(), name)).is_none_or(|&at| cluster.is_known(at))
    }

    fn intent(&self, key: &Key) -> Option<Intent> {
        Intent::of(self.group(key)?)
    }
}
