//! The model: what exists at each moment of the history, and what existed shortly before.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::amounts::Amounts;
use super::objects::{Group, Node, NodeVersion, Pod, Queue};
use super::{Invariant, Rules, Violation};
use crate::history::WriteRecord;

/// The queue that all others stand under.
const ROOT: &str = "root";

/// Namespace and name.
pub(super) type Key = (String, String);

/// A queue, and since when its owner wants it so.
struct QueueVersion {
    since_ms: i64,
    spec: Value,
    queue: Option<Queue>,
}

/// The model.
pub(super) struct Cluster<'a> {
    pub(super) rules: &'a Rules,
    pub(super) now_ms: i64,
    pub(super) pods: BTreeMap<String, Pod>,
    /// Pods that are gone, with the time.
    pub(super) gone: Vec<(i64, Pod)>,
    /// All versions, oldest first.
    pub(super) nodes: BTreeMap<String, Vec<NodeVersion>>,
    pub(super) groups: BTreeMap<Key, Group>,
    /// When the size, queue or existence of a PodGroup changed after it had appeared.
    pub(super) group_changed_ms: BTreeMap<Key, i64>,
    queues: BTreeMap<String, Vec<QueueVersion>>,
    priorities: BTreeMap<String, i64>,
    /// Most members of a PodGroup that were bound at one time.
    pub(super) most_bound: BTreeMap<Key, usize>,
    /// Pods whose node changed.
    pub(super) moved: Vec<Violation>,
    /// A controller runs: it makes PodGroups for plain pods and counts PodGroups in queues.
    pub(super) has_controller: bool,
}

impl<'a> Cluster<'a> {
    pub(super) fn new(rules: &'a Rules) -> Self {
        Self {
            rules,
            now_ms: 0,
            pods: BTreeMap::new(),
            gone: Vec::new(),
            nodes: BTreeMap::new(),
            groups: BTreeMap::new(),
            group_changed_ms: BTreeMap::new(),
            queues: BTreeMap::new(),
            priorities: BTreeMap::new(),
            most_bound: BTreeMap::new(),
            moved: Vec::new(),
            has_controller: false,
        }
    }

    /// Takes in one write.
    pub(super) fn apply(&mut self, record: &WriteRecord) {
        self.now_ms = record.time_ms;
        if !record.applied() {
            return;
        }
        let Some(after) = &record.after else { return };
        let object = record.exists.then_some(&**after);
        match (record.group.as_str(), record.resource.as_str()) {
            ("", "pods") => self.pod(&record.uid, object),
            ("", "nodes") => self.node(&record.name, object),
            ("scheduling.k8s.io", "priorityclasses") => {
                let value = object.and_then(|object| object["value"].as_i64()).unwrap_or(0);
                self.priorities.insert(record.name.clone(), value);
            }
            ("scheduling.volcano.sh", "podgroups") => {
                self.group((record.namespace.clone(), record.name.clone()), object);
            }
            ("scheduling.volcano.sh", "queues") => {
                self.has_controller |= record.body["status"]["pending"].is_number();
                self.queue(&record.name, object);
            }
            _ => {}
        }
    }

    fn pod(&mut self, uid: &str, object: Option<&Value>) {
        let before = self.pods.remove(uid);
        let Some(object) = object else {
            self.gone.extend(before.map(|pod| (self.now_ms, pod)));
            return;
        };
        let mut pod = Pod::read(object);
        let (bound_ms, old) = match &before {
            Some(pod) => (pod.bound_ms, pod.node.as_str()),
            None => (self.now_ms, ""),
        };
        pod.created_ms = before.as_ref().map_or(self.now_ms, |pod| pod.created_ms);
        pod.bound_ms = if pod.node == old { bound_ms } else { self.now_ms };
        if !old.is_empty() && pod.node != old {
            self.moved.push(Violation {
                invariant: Invariant::I1,
                time_ms: self.now_ms,
                what: format!("{} moved from node {old} to {:?}", pod.title(), pod.node),
            });
        }
        let group = (pod.namespace.clone(), pod.group.clone());
        self.pods.insert(uid.to_owned(), pod);
        if !group.1.is_empty() {
            let bound = self.members(&group).filter(|pod| !pod.node.is_empty()).count();
            let most = self.most_bound.entry(group).or_insert(0);
            *most = bound.max(*most);
        }
    }

    fn node(&mut self, name: &str, object: Option<&Value>) {
        let version = NodeVersion { since_ms: self.now_ms, node: object.map(Node::read) };
        self.nodes.entry(name.to_owned()).or_default().push(version);
    }

    fn group(&mut self, key: Key, object: Option<&Value>) {
        let group = object.map(Group::read);
        let before = self.groups.get(&key);
        let shape = |group: &Group| (group.min_member, group.queue.clone());
        let is_new = before.is_none() && !self.group_changed_ms.contains_key(&key);
        if !is_new && before.map(shape) != group.as_ref().map(shape) {
            self.group_changed_ms.insert(key.clone(), self.now_ms);
        }
        match group {
            Some(group) => self.groups.insert(key, group),
            None => self.groups.remove(&key),
        };
    }

    fn queue(&mut self, name: &str, object: Option<&Value>) {
        let spec = object.map_or(Value::Null, |object| object["spec"].clone());
        let queue = object.map(Queue::read);
        let versions = self.queues.entry(name.to_owned()).or_default();
        match versions.last_mut() {
            // Only what its owner asks for makes a new version; the status changes all the time.
            Some(last) if last.spec == spec => last.queue = queue,
            _ => versions.push(QueueVersion { since_ms: self.now_ms, spec, queue }),
        }
    }

    /// A node as it is now.
    pub(super) fn node_now(&self, name: &str) -> Option<&Node> {
        self.nodes.get(name)?.last()?.node.as_ref()
    }

    /// Versions of a node that a scheduler may believe in at the moment, newest first.
    pub(super) fn believable<'b>(
        &'b self,
        versions: &'b [NodeVersion],
    ) -> impl Iterator<Item = Option<&'b Node>> {
        let horizon = self.now_ms - self.rules.staleness_ms;
        let current = versions.iter().rposition(|version| version.since_ms <= horizon);
        versions[current.unwrap_or(0)..].iter().rev().map(|version| version.node.as_ref())
    }

    /// Versions of a queue that a scheduler may believe in at the moment.
    pub(super) fn believable_queues(&self, name: &str) -> Vec<&Queue> {
        let horizon = self.now_ms - self.rules.staleness_ms;
        let Some(versions) = self.queues.get(name) else { return Vec::new() };
        let current = versions.iter().rposition(|version| version.since_ms <= horizon);
        let from = current.unwrap_or(0);
        versions[from..].iter().filter_map(|version| version.queue.as_ref()).collect()
    }

    /// Value of a priority class; 0 for none.
    pub(super) fn priority(&self, class: &str) -> i64 {
        self.priorities.get(class).copied().unwrap_or(0)
    }

    /// Queues that exist, by name.
    pub(super) fn queues_now(&self) -> impl Iterator<Item = (&str, &Queue)> {
        self.queues
            .iter()
            .filter_map(|(name, versions)| Some((name.as_str(), versions.last()?.queue.as_ref()?)))
    }

    pub(super) fn queue_now(&self, name: &str) -> Option<&Queue> {
        self.queues.get(name)?.last()?.queue.as_ref()
    }

    /// Whether something happened too long ago to be news.
    pub(super) fn is_known(&self, time_ms: i64) -> bool {
        time_ms <= self.now_ms - self.rules.staleness_ms
    }

    /// Pods of a PodGroup that exist, ours only.
    pub(super) fn members(&self, key: &Key) -> impl Iterator<Item = &Pod> {
        let (namespace, name) = key.clone();
        self.pods
            .values()
            .filter(move |pod| pod.group == name && pod.namespace == namespace && self.is_ours(pod))
    }

    /// A PodGroup is suspended, and nobody holds it so.
    pub(super) fn is_down(&self, key: &Key) -> bool {
        let down = self.groups.get(key).and_then(|group| group.down.as_ref());
        down.is_some_and(|down| !down.held)
    }

    pub(super) fn is_ours(&self, pod: &Pod) -> bool {
        pod.scheduler == self.rules.scheduler_name
    }

    /// What pods hold of a node now. Foreign pods that a scheduler may not have heard of do not count.
    pub(super) fn used_on(&self, node: &str) -> Amounts {
        let mut used = Amounts::default();
        for pod in self.pods.values().filter(|pod| pod.occupies() && pod.node == node) {
            if self.is_ours(pod) || self.is_known(pod.bound_ms) {
                used.add(&pod.request, 1);
            }
        }
        used
    }

    /// Queue of a pod by its PodGroup.
    pub(super) fn queue_of(&self, pod: &Pod) -> Option<&str> {
        let key = (pod.namespace.clone(), pod.group.clone());
        self.groups.get(&key).map(|group| group.queue.as_str())
    }

    /// What pods of a queue hold. One that is being deleted still fills its node, but its queue may use the quota
    /// again at once (Volcano counts tasks of the allocated class only, spec 3.3).
    pub(super) fn used_by(&self, queue: &str) -> Amounts {
        let mut used = Amounts::default();
        let holds = |pod: &&Pod| pod.occupies() && !pod.deleting && self.is_ours(pod);
        let ours = self.pods.values().filter(holds);
        for pod in ours.filter(|pod| self.queue_of(pod) == Some(queue)) {
            used.add(&pod.request, 1);
        }
        used
    }

    /// What pods of a queue and of all queues below it hold. Only where a queue `root` exists do queues stand below
    /// others: below it those that name no parent.
    pub(super) fn used_below(&self, queue: &str) -> Amounts {
        let has_root = self.queue_now(ROOT).is_some();
        let mut family = BTreeSet::from([queue]);
        while let Some((child, _)) = self.queues_now().find(|(name, row)| {
            let parent = if row.parent.is_empty() { ROOT } else { &row.parent };
            has_root && *name != ROOT && !family.contains(name) && family.contains(parent)
        }) {
            family.insert(child);
        }
        let mut used = Amounts::default();
        family.into_iter().for_each(|queue| used.add(&self.used_by(queue), 1));
        used
    }
}
