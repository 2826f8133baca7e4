//! The simulated world keeps its rules, whatever the core decides.

use std::sync::Arc;

use serde_json::{Value, json};
use tephra_scheduler::decode::Names;

use super::*;
use crate::scenario::story::OUR_NAMES;

fn world() -> World {
    let mut world = World::new(Setup {
        config: Chosen::of_scenario(None),
        options: tephra_core::Options::default(),
        ingest: Ingest::new(Names::new(OUR_NAMES)),
        clock_ms: DEFAULT_CLOCK_MS,
        stamp_creation: true,
    });
    world.create_standard_queues(&[]);
    world
}

fn pod(name: &str) -> Value {
    json!({
        "kind": "Pod",
        "metadata": {"name": name, "annotations": {"scheduling.k8s.io/group-name": "g"}},
        "spec": {
            "schedulerName": "volcano",
            "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}],
        },
    })
}

fn node(name: &str) -> Value {
    let allocatable = json!({"cpu": "4", "memory": "8Gi", "pods": "10"});
    json!({"kind": "Node", "metadata": {"name": name}, "status": {"allocatable": allocatable}})
}

fn group() -> Value {
    json!({"kind": "PodGroup", "metadata": {"name": "g"}, "spec": {"minMember": 1}})
}

fn id(name: &str) -> ObjectId {
    ObjectId::new("Pod", None, name)
}

fn reference(world: &World, name: &str) -> PodRef {
    let object = world.store().get(&id(name)).expect("pod");
    PodRef::new("default", name, uid_of(object))
}

fn text(world: &World, name: &str, pointer: &str) -> Option<String> {
    let object = world.store().get(&id(name))?;
    object.pointer(pointer).and_then(Value::as_str).map(ToOwned::to_owned)
}

#[test]
fn a_bound_pod_runs_before_the_next_session() {
    let mut world = world();
    for object in [node("n1"), group(), pod("a")] {
        world.apply(object);
    }
    world.session();
    assert_eq!(world.node_of(&id("a")), Some("n1"));
    assert_eq!(text(&world, "a", "/status/phase"), None);
    world.session();
    assert_eq!(text(&world, "a", "/status/phase").as_deref(), Some("Running"));
    assert_eq!(world.binds().len(), 1);
    assert!(world.violations().is_empty(), "{:?}", world.violations());
}

#[test]
fn an_evicted_pod_without_grace_is_gone_before_the_next_session() {
    let mut world = world();
    for object in [node("n1"), group(), pod("a")] {
        world.apply(object);
    }
    world.session();
    world.session();
    let victim = reference(&world, "a");
    world.carry_out(Decision::Evict { pod: victim, reason: "preempt" });
    assert_eq!(world.evictions(), [id("a")]);
    assert!(text(&world, "a", "/metadata/deletionTimestamp").is_some());
    world.session();
    assert!(world.store().get(&id("a")).is_none());
}

#[test]
fn an_evicted_pod_stays_for_its_grace_period() {
    let mut world = world();
    let mut slow = pod("a");
    slow["spec"]["terminationGracePeriodSeconds"] = json!(30);
    for object in [node("n1"), group(), slow] {
        world.apply(object);
    }
    world.session();
    world.session();
    let victim = reference(&world, "a");
    world.carry_out(Decision::Evict { pod: victim, reason: "preempt" });
    world.advance(29_000);
    world.session();
    assert!(world.store().get(&id("a")).is_some());
    world.session();
    assert!(world.store().get(&id("a")).is_none());
}

#[test]
fn a_refused_bind_leaves_the_pod_without_node() {
    let mut world = world();
    for object in [node("n1"), group(), pod("a")] {
        world.apply(object);
    }
    world.fail_bind(id("a"));
    world.session();
    assert_eq!(text(&world, "a", "/spec/nodeName"), None);
    assert!(world.binds().is_empty());
}

#[test]
fn a_replaced_pod_keeps_uid_binding_and_status() {
    let mut world = world();
    for object in [node("n1"), group(), pod("a")] {
        world.apply(object);
    }
    world.session();
    world.session();
    let uid = text(&world, "a", "/metadata/uid");
    world.apply(pod("a"));
    assert_eq!(text(&world, "a", "/metadata/uid"), uid);
    assert_eq!(text(&world, "a", "/spec/nodeName").as_deref(), Some("n1"));
    assert_eq!(text(&world, "a", "/status/phase").as_deref(), Some("Running"));
    world.session();
    assert_eq!(world.binds().len(), 1);
}

#[test]
fn a_pod_created_again_has_another_uid() {
    let mut world = world();
    world.apply(pod("a"));
    let first = text(&world, "a", "/metadata/uid");
    world.delete(&id("a"));
    world.apply(pod("a"));
    assert_ne!(text(&world, "a", "/metadata/uid"), first);
}

#[test]
fn a_bind_of_a_bound_pod_is_a_violation() {
    let mut world = world();
    for object in [node("n1"), group(), pod("a")] {
        world.apply(object);
    }
    world.session();
    let again = GangBind {
        group: tephra_core::event::ObjectKey::new("default", "g"),
        min_member: 1,
        ready_before: 0,
        group_created_ms: 0,
        binds: vec![(reference(&world, "a"), Arc::from("n1"))],
        created_ms: vec![0],
    };
    world.carry_out(Decision::Bind(again));
    assert!(world.violations().contains(&"default/a was bound twice".to_owned()));
}

#[test]
fn a_malformed_object_is_reported_once_and_the_rest_goes_on() {
    let mut world = world();
    let mut broken = pod("broken");
    broken["spec"]["containers"][0]["resources"]["requests"]["cpu"] = json!("much");
    for object in [node("n1"), group(), broken.clone(), broken, pod("a")] {
        world.apply(object);
    }
    world.session();
    assert_eq!(world.binds().len(), 1);
    let events = world.store().events(&id("broken"));
    assert_eq!(events.len(), 1, "{events:?}");
    assert!(events[0].message.contains("much"), "{events:?}");
}

#[test]
fn a_restart_forgets_nothing_that_the_objects_say() {
    let mut world = world();
    for object in [node("n1"), group(), pod("a")] {
        world.apply(object);
    }
    world.session();
    world.restart();
    world.session();
    assert_eq!(world.binds().len(), 1);
    assert_eq!(text(&world, "a", "/status/phase").as_deref(), Some("Running"));
    assert!(world.violations().is_empty(), "{:?}", world.violations());
}

#[test]
fn the_clock_moves_one_second_a_session() {
    let mut world = world();
    world.session();
    world.session();
    assert_eq!(world.now_ms, DEFAULT_CLOCK_MS + 2_000);
    assert_eq!(writeback::time_text(DEFAULT_CLOCK_MS), "2026-01-01T01:00:00Z");
}
