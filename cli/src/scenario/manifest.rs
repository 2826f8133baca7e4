//! Schedules plain Kubernetes manifests: all objects of all files form one cluster. What the PodGroup
//! controller and a user's cluster would add is added: the queues `root` and `default`, our scheduler's
//! name on pods that name none, and a PodGroup of its own for each of our pods that has none.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tephra_scheduler::decode::Names;

use super::config::Chosen;
use super::ingest::Ingest;
use super::store::{ObjectId, section};
use super::story::{OUR_NAMES, Outcome, Overrides};
use super::verdict::Verdict;
use super::world::{DEFAULT_CLOCK_MS, Setup, World};

/// Sessions at most, when the number is not given: a cluster without controllers comes to rest long before.
const MOST_SESSIONS: u32 = 100;

/// Kinds that a simulated cluster takes into account.
const KNOWN_KINDS: &[&str] = &[
    "HyperNode",
    "Namespace",
    "Node",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Pod",
    "PodGroup",
    "PriorityClass",
    "Queue",
    "QueuePolicy",
];

/// Schedules the objects until nothing changes any more, or for the number of sessions asked for.
pub fn run(objects: &[Value], overrides: &Overrides) -> (Outcome, World) {
    let config = overrides.config.clone().unwrap_or_else(|| Chosen::of_scenario(None));
    let mut world = World::new(Setup {
        config,
        options: tephra_core::Options::default(),
        ingest: Ingest::new(Names::new(OUR_NAMES)),
        clock_ms: DEFAULT_CLOCK_MS,
        stamp_creation: true,
    });
    world.create_standard_queues(objects);
    let mut ignored = BTreeSet::new();
    for object in objects {
        let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
        if !KNOWN_KINDS.contains(&kind) {
            ignored.insert(kind.to_owned());
        }
        let mut object = object.clone();
        if let Some(group) = prepare(&mut object) {
            world.apply(group);
        }
        world.apply(object);
    }
    match overrides.cycles {
        Some(cycles) => {
            for _ in 0..cycles {
                world.session();
            }
        }
        None => {
            for _ in 0..MOST_SESSIONS {
                if !world.session() {
                    break;
                }
            }
        }
    }
    let verdict = Verdict::Skipped("plain manifests expect nothing".to_owned());
    let mut outcome = Outcome::of_world("manifests", verdict, &world);
    outcome
        .notes
        .extend(ignored.iter().map(|kind| format!("objects of kind {kind} have no effect here")));
    (outcome, world)
}

/// Completes a pod; answers the PodGroup that it needs when it has none.
fn prepare(object: &mut Value) -> Option<Value> {
    let id = ObjectId::of(object).filter(|id| id.kind == "Pod" && !id.name.is_empty())?;
    let spec = section(object, "spec");
    let name = spec.get("schedulerName").and_then(Value::as_str).unwrap_or_default();
    let placed = spec.get("nodeName").is_some_and(Value::is_string);
    if name.is_empty() && !placed {
        spec["schedulerName"] = json!(OUR_NAMES[0]);
    } else if !OUR_NAMES.contains(&name) {
        return None;
    }
    let priority_class = spec.get("priorityClassName").cloned();
    let annotations = section(section(object, "metadata"), "annotations");
    if annotations.get(tephra_api::keys::GROUP_NAME).is_some() {
        return None;
    }
    let group = format!("podgroup-{}", id.name);
    annotations[tephra_api::keys::GROUP_NAME] = json!(group);
    let queue = annotations.get(tephra_api::keys::QUEUE_NAME).cloned();
    Some(json!({
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": group, "namespace": id.namespace},
        "spec": {
            "minMember": 1,
            "queue": queue.unwrap_or_else(|| json!("default")),
            "priorityClassName": priority_class.unwrap_or_else(|| json!("")),
        },
    }))
}
