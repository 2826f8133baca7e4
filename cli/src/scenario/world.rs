//! The simulated world around a core: objects instead of an API server, a clock that a story moves, pods that
//! start and stop by simple rules. Objects reach the core through the decoders of the real scheduler, and its
//! decisions come back as changed objects, so a scenario sees what a cluster would see.
//!
//! The rules: the clock starts where the scenario says and each session takes one second. A bound pod is
//! running before the next session. An evicted pod without grace period is gone before the next session, else
//! it carries a deletion time and stays until its grace period passed. No controllers run. A malformed
//! object is reported by an event on itself and otherwise ignored until it is mended.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use tephra_api::keys;
use tephra_core::decision::{Decision, GangBind, Notice, NoticeKind, PodRef};
use tephra_core::event::{Event, ObjectKey};
use tephra_core::{Core, Placement, Probe};

use super::config::Chosen;
use super::ingest::Ingest;
use super::store::{ObjectId, Recorded, Store, section};
use super::writeback;

/// One session's length on the scenario clock.
const SESSION_MS: i64 = 1_000;

/// 2026-01-01T01:00:00Z, where stories start that give no clock.
pub const DEFAULT_CLOCK_MS: i64 = 1_767_229_200_000;

/// How a world begins.
#[derive(Debug)]
pub struct Setup {
    /// Scheduler configuration.
    pub config: Chosen,
    /// Settings of the core.
    pub options: tephra_core::Options,
    /// Which pods are ours.
    pub ingest: Ingest,
    /// Start of the clock.
    pub clock_ms: i64,
    /// Objects without a creation time get the clock's; recorded files leave them equal instead.
    pub stamp_creation: bool,
}

/// A running story.
#[derive(Debug)]
pub struct World {
    core: Core,
    setup: Setup,
    store: Store,
    now_ms: i64,
    warnings: Vec<String>,
    refuse: BTreeSet<ObjectId>,
    binds: Vec<(ObjectId, String)>,
    evictions: Vec<ObjectId>,
    placements: Vec<Placement>,
    bound: Vec<ObjectId>,
    leaving: BTreeSet<ObjectId>,
    deleting: BTreeSet<ObjectId>,
    known_pods: BTreeSet<ObjectId>,
    violations: Vec<String>,
}

impl World {
    /// A world with nothing in it.
    pub fn new(setup: Setup) -> Self {
        let mut core = Core::new(setup.options.clone(), &setup.config.conf);
        let warnings = core.configure(&setup.config.conf);
        Self {
            core,
            store: Store::default(),
            now_ms: setup.clock_ms,
            warnings,
            refuse: BTreeSet::new(),
            binds: Vec::new(),
            evictions: Vec::new(),
            placements: Vec::new(),
            bound: Vec::new(),
            leaving: BTreeSet::new(),
            deleting: BTreeSet::new(),
            known_pods: BTreeSet::new(),
            violations: Vec::new(),
            setup,
        }
    }

    /// The queues `root` and `default`, Open, unless the story gives them.
    pub fn create_standard_queues(&mut self, given: &[Value]) {
        let ids: BTreeSet<ObjectId> = given.iter().filter_map(ObjectId::of).collect();
        for name in ["root", "default"] {
            if !ids.contains(&ObjectId::new("Queue", None, name)) {
                self.apply(json!({
                    "apiVersion": "scheduling.volcano.sh/v1beta1",
                    "kind": "Queue",
                    "metadata": {"name": name, "creationTimestamp": "2026-01-01T00:00:00Z"},
                    "spec": {"weight": 1, "reclaimable": true},
                    "status": {"state": "Open"},
                }));
            }
        }
    }

    /// Creates or replaces an object. Identity, status and binding that the API server would keep are kept.
    pub fn apply(&mut self, mut object: Value) {
        let Some(id) = ObjectId::of(&object) else { return };
        self.complete(&id, &mut object);
        if id.kind == "Pod" {
            self.known_pods.insert(id.clone());
            if writeback::gone_at(&object).is_some() {
                self.deleting.insert(id.clone());
            }
        }
        let old_uid = self.store.get(&id).map(uid_of);
        if let Some(old) = old_uid.filter(|old| *old != uid_of(&object)) {
            self.tell_deleted(&id, &old);
        }
        self.store.put(id.clone(), object);
        self.tell(&id);
    }

    /// Deletes an object at once.
    pub fn delete(&mut self, id: &ObjectId) {
        if let Some(object) = self.store.remove(id) {
            self.tell_deleted(id, &uid_of(&object));
        }
        self.leaving.remove(id);
        self.deleting.remove(id);
        self.bound.retain(|bound| bound != id);
    }

    /// From now on every bind of this pod is refused.
    pub fn fail_bind(&mut self, pod: ObjectId) {
        self.refuse.insert(pod);
    }

    /// Moves the clock.
    pub fn advance(&mut self, ms: i64) {
        self.now_ms = self.now_ms.saturating_add(ms);
    }

    /// Throws the scheduler's memory away and rebuilds it from the objects.
    pub fn restart(&mut self) {
        self.settle();
        self.core = Core::new(self.setup.options.clone(), &self.setup.config.conf);
        let ids: Vec<ObjectId> = self.store.iter().map(|(id, _)| id.clone()).collect();
        for id in &ids {
            self.tell(id);
        }
        self.placements.clear();
    }

    /// Runs one session and carries its decisions out. True when it decided something or asks for another.
    pub fn session(&mut self) -> bool {
        self.settle();
        let report = self.core.session(self.now_ms);
        let busy = report.again || !report.decisions.is_empty();
        for decision in report.decisions {
            self.carry_out(decision);
        }
        self.placements = self.core.placements();
        self.now_ms = self.now_ms.saturating_add(SESSION_MS);
        busy
    }

    /// Lets time do its work: bound pods start, evicted pods go.
    fn settle(&mut self) {
        for id in std::mem::take(&mut self.leaving) {
            self.delete(&id);
        }
        for id in std::mem::take(&mut self.bound) {
            if let Some(object) = self.store.get_mut(&id) {
                writeback::set_running(object, self.now_ms);
                self.tell(&id);
            }
        }
        let store = &self.store;
        let now_ms = self.now_ms;
        let over = |id: &&ObjectId| {
            store.get(id).and_then(writeback::gone_at).is_none_or(|end| end <= now_ms)
        };
        let gone: Vec<ObjectId> = self.deleting.iter().filter(over).cloned().collect();
        for id in gone {
            self.delete(&id);
        }
    }

    fn annotate(&mut self, group: &ObjectKey, key: &str, text: Option<String>) {
        let id = ObjectId::new("PodGroup", Some(&group.namespace), &group.name);
        self.change(&id, |object, _| {
            let annotations = section(section(object, "metadata"), "annotations");
            annotations[key] = text.map_or(Value::Null, Value::from);
        });
    }

    fn carry_out(&mut self, decision: Decision) {
        match decision {
            Decision::Bind(bind) => self.bind(&bind),
            Decision::Evict { pod, reason } => self.evict(&pod, reason),
            Decision::PodGroupStatus { group, uid: _, status } => {
                let id = ObjectId::new("PodGroup", Some(&group.namespace), &group.name);
                self.change(&id, |object, _| writeback::set_group_status(object, &status));
            }
            Decision::PredictedStart { group, uid: _, start_ms } => {
                let text = start_ms.map(writeback::time_text);
                self.annotate(&group, keys::PREDICTED_START, text);
            }
            Decision::Suspend { group, uid: _, intent } => {
                self.annotate(&group, keys::SUSPEND, Some(intent.text()));
            }
            Decision::Withdraw { group, uid: _ } => self.annotate(&group, keys::SUSPEND, None),
            Decision::Resume { group, uid: _, id } => self.annotate(&group, keys::RESUME, Some(id)),
            Decision::QueueAllocated { queue, allocated } => {
                let id = ObjectId::new("Queue", None, &queue);
                self.change(&id, |object, _| writeback::set_queue_allocated(object, &allocated));
            }
            Decision::QueueFairness { queue, text } => {
                let id = ObjectId::new("Queue", None, &queue);
                self.change(&id, |object, _| writeback::set_fairness(object, text));
            }
            Decision::PodCondition { pod, reason, message, nominated } => {
                let id = writeback::pod_id(&pod);
                self.change(&id, |object, now_ms| {
                    writeback::set_condition(
                        object,
                        "PodScheduled",
                        "False",
                        reason,
                        &message,
                        now_ms,
                    );
                    if let Some(node) = &nominated {
                        section(object, "status")["nominatedNodeName"] =
                            if node.is_empty() { Value::Null } else { json!(&**node) };
                    }
                });
            }
            Decision::Notice(notice) => self.notice(notice),
        }
    }

    fn bind(&mut self, bind: &GangBind) {
        for (pod, node) in &bind.binds {
            let id = writeback::pod_id(pod);
            let uid = pod.uid.to_string();
            let refusal = match self.store.get(&id) {
                None => Some("pod not found".to_owned()),
                Some(object) if uid_of(object) != uid => Some("pod has another uid".to_owned()),
                Some(object) if object.pointer("/spec/nodeName").is_some_and(Value::is_string) => {
                    self.violations.push(format!("{} was bound twice", id.key()));
                    Some("pod is already assigned to a node".to_owned())
                }
                Some(_) if self.refuse.contains(&id) => {
                    Some("admission webhook denied the request".to_owned())
                }
                Some(_) => None,
            };
            if let Some(message) = refusal {
                let message = format!("failed to bind to node {node}: {message}");
                self.core.apply(Event::BindFailed { uid, message });
                continue;
            }
            self.binds.push((id.clone(), node.to_string()));
            if let Some(object) = self.store.get_mut(&id) {
                writeback::set_bound(object, node, self.now_ms);
            }
            self.core.apply(Event::BindOk(uid));
            self.bound.push(id);
        }
    }

    fn evict(&mut self, pod: &PodRef, reason: &'static str) {
        let id = writeback::pod_id(pod);
        self.evictions.push(id.clone());
        let uid = pod.uid.to_string();
        let Some(object) = self.store.get_mut(&id) else {
            self.core.apply(Event::EvictFailed { uid, message: "pod not found".to_owned() });
            return;
        };
        let grace = writeback::grace_seconds(object);
        let message = format!("Pod is evicted, because of {reason}");
        writeback::set_condition(
            object,
            "DisruptionTarget",
            "True",
            "PreemptionByScheduler",
            &message,
            self.now_ms,
        );
        writeback::set_deleting(object, self.now_ms, grace);
        self.core.apply(Event::EvictOk(uid));
        if grace == 0 {
            self.leaving.insert(id);
        } else {
            self.deleting.insert(id.clone());
            self.tell(&id);
        }
    }

    fn notice(&mut self, notice: Notice) {
        let kind = match notice.kind {
            NoticeKind::Pod => "Pod",
            NoticeKind::PodGroup => "PodGroup",
            NoticeKind::Queue => "Queue",
            NoticeKind::Node => "Node",
            NoticeKind::HyperNode => "HyperNode",
        };
        let id = ObjectId::new(kind, Some(&notice.object.namespace), &notice.object.name);
        self.record(id, notice.warning, notice.reason, notice.message);
    }

    /// Changes an object if it exists and tells the core, as a watch would.
    fn change(&mut self, id: &ObjectId, change: impl FnOnce(&mut Value, i64)) {
        if let Some(object) = self.store.get_mut(id) {
            change(object, self.now_ms);
            self.tell(id);
        }
    }

    fn record(&mut self, id: ObjectId, warning: bool, reason: &str, message: String) {
        self.store.record(id, Recorded { warning, reason: reason.to_owned(), message });
    }

    /// Sends an object to the core through the scheduler's decoders.
    fn tell(&mut self, id: &ObjectId) {
        let Some(object) = self.store.get(id) else { return };
        match self.setup.ingest.event(object) {
            Ok(Some(event)) => self.core.apply(event),
            Ok(None) => {}
            Err(message) => {
                let reason = tephra_api::reasons::INVALID_OBJECT;
                let told = Recorded { warning: true, reason: reason.to_owned(), message };
                if !self.store.events(id).contains(&told) {
                    self.store.record(id.clone(), told);
                }
            }
        }
    }

    fn tell_deleted(&mut self, id: &ObjectId, uid: &str) {
        if let Some(event) = Ingest::deletion(id, uid) {
            self.core.apply(event);
        }
    }

    /// Fills in what the API server would: namespace, uid, creation time; and keeps of a replaced object
    /// what a new manifest does not say.
    fn complete(&self, id: &ObjectId, object: &mut Value) {
        let old = self.store.get(id);
        let metadata = section(object, "metadata");
        if !id.namespace.is_empty() {
            metadata["namespace"] = json!(id.namespace);
        }
        if metadata.get("uid").and_then(Value::as_str).is_none_or(str::is_empty) {
            metadata["uid"] = json!(old.map_or_else(|| self.fresh_uid(id), uid_of));
        }
        if self.setup.stamp_creation && metadata.get("creationTimestamp").is_none_or(Value::is_null)
        {
            let kept = old.and_then(|old| old.pointer("/metadata/creationTimestamp")).cloned();
            metadata["creationTimestamp"] =
                kept.unwrap_or_else(|| json!(writeback::time_text(self.now_ms)));
        }
        let same = old.filter(|old| uid_of(old) == uid_of(object));
        let Some(old) = same else { return };
        if object.get("status").is_none()
            && let Some(status) = old.get("status")
        {
            object["status"] = status.clone();
        }
        let node = old.pointer("/spec/nodeName").filter(|node| node.is_string());
        if id.kind == "Pod"
            && let Some(node) = node
            && object.pointer("/spec/nodeName").is_none()
        {
            section(object, "spec")["nodeName"] = node.clone();
        }
    }

    /// `namespace-name`, with a number when a pod of this name was there before.
    fn fresh_uid(&self, id: &ObjectId) -> String {
        let base = match id.kind.as_str() {
            "Pod" => id.key().replace('/', "-"),
            kind => format!("{}-{}", kind.to_lowercase(), id.key().replace('/', "-")),
        };
        if self.known_pods.contains(id) { format!("{base}-{}", self.now_ms) } else { base }
    }

    /// The objects and their events.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Questions to the core, for calls of a recorded scenario.
    pub fn probe(&mut self) -> Probe<'_> {
        self.core.probe(self.now_ms)
    }

    /// Every bind so far, in order.
    pub fn binds(&self) -> &[(ObjectId, String)] {
        &self.binds
    }

    /// Node of a pod's bind, the last one when a name was bound again.
    pub fn node_of(&self, pod: &ObjectId) -> Option<&str> {
        let mut newest_first = self.binds.iter().rev();
        newest_first.find(|(id, _)| id == pod).map(|(_, node)| node.as_str())
    }

    /// Every eviction so far, in order.
    pub fn evictions(&self) -> &[ObjectId] {
        &self.evictions
    }

    /// Tentative placements of the last session: pod identity to placement.
    pub fn placements(&self) -> BTreeMap<ObjectId, &Placement> {
        self.placements.iter().map(|placed| (writeback::pod_id(&placed.pod), placed)).collect()
    }

    /// True when the story had a pod of this name at some time.
    pub fn knows_pod(&self, pod: &ObjectId) -> bool {
        self.known_pods.contains(pod)
    }

    /// The configuration this world runs with.
    pub fn config(&self) -> &Chosen {
        &self.setup.config
    }

    /// Words with which the configuration was refused.
    pub fn config_error(&self) -> Option<&str> {
        self.setup.config.error.as_deref()
    }

    /// Warnings about an accepted configuration.
    pub fn config_warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Broken invariants that this world saw, plus findings of the core's own audit.
    pub fn violations(&self) -> Vec<String> {
        let mut all = self.violations.clone();
        all.extend(self.core.audit().into_iter().map(|finding| finding.0));
        all
    }

    /// Pods bound by the last session, which start only before the next one.
    pub fn just_bound(&self) -> &[ObjectId] {
        &self.bound
    }
}

/// `metadata.uid`, empty when absent.
fn uid_of(object: &Value) -> String {
    object.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;
