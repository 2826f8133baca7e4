//! One row a pod: where it went, or why it waits. The table that `tephra simulate` prints.

use serde::Serialize;
use serde_json::Value;

use super::store::{ObjectId, Store};
use super::world::World;

/// A pod at the end of a story.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// `namespace/name`.
    pub pod: String,
    /// PodGroup, empty without one.
    pub group: String,
    /// Queue of the PodGroup, empty when it names none.
    pub queue: String,
    /// Node, empty while it waits.
    pub node: String,
    /// `bound`, `running`, `pipelined`, `pending`, `evicted`, or the phase of a finished pod.
    pub state: String,
    /// Why it waits, in the words of its condition or events.
    pub why: String,
}

/// The rows of all pods, in the order of the objects.
pub fn rows(world: &World) -> Vec<Row> {
    let placements = world.placements();
    let store = world.store();
    let mut rows: Vec<Row> = Vec::new();
    for (id, object) in store.of_kind("Pod") {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let annotations = object.pointer("/metadata/annotations");
        let group = annotations.and_then(|all| all.get(tephra_api::keys::GROUP_NAME));
        let group = group.and_then(Value::as_str).unwrap_or_default();
        let mut node = text("/spec/nodeName").unwrap_or_default().to_owned();
        let state = if world.evictions().contains(id) {
            "evicted".to_owned()
        } else if world.just_bound().contains(id) {
            "bound".to_owned()
        } else if let Some(placed) = placements.get(id).filter(|placed| placed.pipelined) {
            node = placed.node.to_string();
            "pipelined".to_owned()
        } else {
            text("/status/phase").unwrap_or("Pending").to_lowercase()
        };
        let waits =
            matches!(state.as_str(), "pending" | "pipelined") && text("/spec/nodeName").is_none();
        let why = if waits { why(id, object, store) } else { String::new() };
        let queue = queue(&id.namespace, group, store);
        rows.push(Row { pod: id.key(), group: group.to_owned(), queue, node, state, why });
    }
    rows
}

fn queue(namespace: &str, group: &str, store: &Store) -> String {
    let group = store.get(&ObjectId::new("PodGroup", Some(namespace), group));
    let queue = group.and_then(|group| group.pointer("/spec/queue")).and_then(Value::as_str);
    queue.unwrap_or_default().to_owned()
}

/// The condition of the pod, else its last event, else the condition or last event of its PodGroup.
fn why(id: &ObjectId, object: &Value, store: &Store) -> String {
    let group = object.pointer("/metadata/annotations");
    let group = group.and_then(|all| all.get(tephra_api::keys::GROUP_NAME)).and_then(Value::as_str);
    let group = group.map(|group| ObjectId::new("PodGroup", Some(&id.namespace), group));
    let of_group = group.as_ref().and_then(|group| {
        store.get(group).and_then(condition).or_else(|| last_event(group, store))
    });
    condition(object).or_else(|| last_event(id, store)).or(of_group).unwrap_or_default()
}

fn condition(object: &Value) -> Option<String> {
    let conditions = object.pointer("/status/conditions")?.as_array()?;
    conditions.iter().rev().find_map(|condition| {
        let message = condition["message"].as_str().filter(|message| !message.is_empty())?;
        Some(format!("{}: {message}", condition["reason"].as_str().unwrap_or_default()))
    })
}

fn last_event(id: &ObjectId, store: &Store) -> Option<String> {
    let event = store.events(id).last()?;
    Some(format!("{}: {}", event.reason, event.message))
}
