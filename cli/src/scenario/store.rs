//! The objects of a simulated world, as JSON and in the order in which they came, with the events recorded on
//! them. It stands in for the API server: identity is kind, namespace and name.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use serde_json::{Map, Value};

/// Kinds without a namespace.
const CLUSTER_KINDS: &[&str] = &[
    "CSIDriver",
    "CSINode",
    "DeviceClass",
    "HyperNode",
    "Namespace",
    "Node",
    "NodeShard",
    "Numatopology",
    "PersistentVolume",
    "PriorityClass",
    "Queue",
    "QueuePolicy",
    "ResourceSlice",
    "StorageClass",
    "VolumeAttachment",
];

/// Identity of an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId {
    /// Kind.
    pub kind: String,
    /// Namespace, empty for kinds without one.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl ObjectId {
    /// Builds an identity; an absent or empty namespace is `default` where the kind has one.
    pub fn new(kind: &str, namespace: Option<&str>, name: &str) -> Self {
        let namespace = if CLUSTER_KINDS.contains(&kind) {
            ""
        } else {
            namespace.filter(|namespace| !namespace.is_empty()).unwrap_or("default")
        };
        Self { kind: kind.to_owned(), namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// Reads the identity of an object; `None` without a kind. A name that is no text reads as empty.
    pub fn of(object: &Value) -> Option<Self> {
        let text = |key: &str| object.get("metadata")?.get(key)?.as_str();
        let kind = object.get("kind")?.as_str()?;
        Some(Self::new(kind, text("namespace"), text("name").unwrap_or_default()))
    }

    /// Reads `Kind/name` or `Kind/namespace/name`.
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once('/')?;
        Some(match rest.split_once('/') {
            Some((namespace, name)) => Self::new(kind, Some(namespace), name),
            None => Self::new(kind, None, rest),
        })
    }

    /// `namespace/name`, or the name alone for kinds without a namespace.
    pub fn key(&self) -> String {
        if self.namespace.is_empty() {
            self.name.clone()
        } else {
            format!("{}/{}", self.namespace, self.name)
        }
    }
}

impl std::fmt::Display for ObjectId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.kind, self.key())
    }
}

/// An event recorded on an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Type `Warning`, else `Normal`.
    pub warning: bool,
    /// Reason.
    pub reason: String,
    /// Message.
    pub message: String,
}

/// All objects and their events.
#[derive(Debug, Default)]
pub struct Store {
    slots: Vec<Option<(ObjectId, Value)>>,
    index: FxHashMap<ObjectId, usize>,
    events: BTreeMap<ObjectId, Vec<Recorded>>,
}

impl Store {
    /// The object of this identity.
    pub fn get(&self, id: &ObjectId) -> Option<&Value> {
        self.slots[*self.index.get(id)?].as_ref().map(|(_, object)| object)
    }

    /// The object of this identity, to be changed.
    pub fn get_mut(&mut self, id: &ObjectId) -> Option<&mut Value> {
        self.slots[*self.index.get(id)?].as_mut().map(|(_, object)| object)
    }

    /// Creates or replaces an object; a replaced one keeps its place in the order.
    pub fn put(&mut self, id: ObjectId, object: Value) {
        if let Some(&slot) = self.index.get(&id) {
            self.slots[slot] = Some((id, object));
        } else {
            self.index.insert(id.clone(), self.slots.len());
            self.slots.push(Some((id, object)));
        }
    }

    /// Removes an object; its events stay.
    pub fn remove(&mut self, id: &ObjectId) -> Option<Value> {
        let slot = self.index.remove(id)?;
        self.slots[slot].take().map(|(_, object)| object)
    }

    /// All objects in order of creation.
    pub fn iter(&self) -> impl Iterator<Item = (&ObjectId, &Value)> {
        self.slots.iter().flatten().map(|(id, object)| (id, object))
    }

    /// All objects of a kind in order of creation.
    pub fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = (&'a ObjectId, &'a Value)> {
        self.iter().filter(move |(id, _)| id.kind == kind)
    }

    /// Records an event.
    pub fn record(&mut self, id: ObjectId, event: Recorded) {
        self.events.entry(id).or_default().push(event);
    }

    /// Events recorded on an object, oldest first.
    pub fn events(&self, id: &ObjectId) -> &[Recorded] {
        self.events.get(id).map_or(&[], Vec::as_slice)
    }

    /// Everything a user can read about an object: its conditions, then its events, one a line.
    pub fn text(&self, id: &ObjectId) -> String {
        let mut lines = Vec::new();
        let conditions = self.get(id).and_then(|object| object.pointer("/status/conditions"));
        for condition in conditions.and_then(Value::as_array).into_iter().flatten() {
            let part = |key: &str| condition.get(key).and_then(Value::as_str).unwrap_or_default();
            let (reason, message) = (part("reason"), part("message"));
            if !reason.is_empty() || !message.is_empty() {
                lines.push(format!("{} {reason}: {message}", part("type")));
            }
        }
        for event in self.events(id) {
            lines.push(format!("{}: {}", event.reason, event.message));
        }
        lines.join("\n")
    }
}

/// The JSON object under `key`, made when absent or when something else stands there; safe to index by key.
pub fn section<'a>(object: &'a mut Value, key: &str) -> &'a mut Value {
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let entry = &mut object[key];
    if !entry.is_object() {
        *entry = Value::Object(Map::new());
    }
    entry
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_nameless_namespace_is_default_and_nodes_have_none() {
        let pod = json!({"kind": "Pod", "metadata": {"name": "a"}});
        assert_eq!(ObjectId::of(&pod).expect("id").to_string(), "Pod/default/a");
        let node = json!({"kind": "Node", "metadata": {"name": "n", "namespace": "x"}});
        assert_eq!(ObjectId::of(&node).expect("id").to_string(), "Node/n");
        assert_eq!(ObjectId::parse("PodGroup/ns/j").expect("id").key(), "ns/j");
        assert_eq!(ObjectId::parse("PodGroup/j").expect("id").key(), "default/j");
    }

    #[test]
    fn a_replaced_object_keeps_its_place() {
        let mut store = Store::default();
        for name in ["a", "b"] {
            store.put(ObjectId::new("Node", None, name), json!({ "v": 1 }));
        }
        store.put(ObjectId::new("Node", None, "a"), json!({ "v": 2 }));
        let names: Vec<_> = store.iter().map(|(id, _)| id.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        store.remove(&ObjectId::new("Node", None, "a"));
        assert_eq!(store.of_kind("Node").count(), 1);
    }

    #[test]
    fn the_text_of_an_object_has_conditions_and_events() {
        let mut store = Store::default();
        let id = ObjectId::new("PodGroup", None, "j");
        let condition = json!({"type": "Unschedulable", "reason": "R", "message": "m 1"});
        store.put(id.clone(), json!({"status": {"conditions": [condition]}}));
        let event = Recorded { warning: true, reason: "E".to_owned(), message: "m 2".to_owned() };
        store.record(id.clone(), event);
        assert_eq!(store.text(&id), "Unschedulable R: m 1\nE: m 2");
    }

    #[test]
    fn a_section_replaces_what_is_no_object() {
        let mut object = json!({"status": "broken"});
        section(&mut object, "status")["phase"] = json!("Running");
        assert_eq!(object, json!({"status": {"phase": "Running"}}));
    }
}
