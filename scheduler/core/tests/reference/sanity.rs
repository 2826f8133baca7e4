//! The reference by itself, on stories whose outcome is known without it.

use std::sync::Arc;

use tephra_api::conf::SchedulerConf;
use tephra_core::event::{
    Event, NodeObject, ObjectKey, PodGroupObject, PodGroupPhase, PodGroupStatus, PodObject,
    PodPhase, PodSpec, QueueObject, QueueState,
};

use crate::model::{Decided, Model};
use crate::objects::amounts;

const GIB: i64 = 1 << 30;

/// A model with queues of the given weights (`q0`, `q1`, ...) and nodes of the given cpus (`n0`, `n1`, ...).
fn cluster(weights: &[i32], cpus: &[i64]) -> Model {
    let mut model = Model::new(&SchedulerConf::volcano());
    for (number, weight) in weights.iter().enumerate() {
        model.apply(Event::Queue(QueueObject {
            name: format!("q{number}"),
            weight: *weight,
            state: QueueState::Open,
            ..QueueObject::default()
        }));
    }
    for (number, cpu) in cpus.iter().enumerate() {
        model.apply(Event::Node(NodeObject {
            name: format!("n{number}"),
            allocatable: amounts(&[("cpu", cpu * 1000), ("memory", 64 * GIB), ("pods", 20)]),
            ..NodeObject::default()
        }));
    }
    model
}

fn spec(cpu: i64) -> Arc<PodSpec> {
    Arc::new(PodSpec {
        requests: amounts(&[("cpu", cpu * 1000), ("memory", GIB), ("pods", 1)]),
        nonzero: [cpu * 1000, GIB],
        ..PodSpec::default()
    })
}

/// An admitted gang of equal pods.
fn gang(model: &mut Model, name: &str, queue: &str, min: i32, pods: u32, cpu: i64) {
    model.apply(Event::PodGroup(PodGroupObject {
        key: ObjectKey::new("ns", name),
        uid: name.to_owned(),
        queue: queue.to_owned(),
        min_member: min,
        status: PodGroupStatus { phase: PodGroupPhase::Inqueue, ..PodGroupStatus::default() },
        ..PodGroupObject::default()
    }));
    for number in 0..pods {
        model.apply(Event::Pod(PodObject {
            key: ObjectKey::new("ns", format!("{name}-w-{number}")),
            uid: format!("{name}-{number}"),
            ours: true,
            group: Some(name.to_owned()),
            spec: spec(cpu),
            ..PodObject::default()
        }));
    }
}

fn resident(model: &mut Model, node: &str, cpu: i64, leaving: bool) {
    model.apply(Event::Pod(PodObject {
        key: ObjectKey::new("ns", format!("resident-{node}")),
        uid: format!("resident-{node}"),
        phase: PodPhase::Running,
        deleting: leaving,
        node: Some(node.to_owned()),
        spec: spec(cpu),
        ..PodObject::default()
    }));
}

fn bound(decided: &Decided) -> Vec<(&str, &str)> {
    let binds = decided.binds.iter().flat_map(|(_, binds)| binds);
    binds.map(|(pod, node)| (pod.as_str(), node.as_str())).collect()
}

#[test]
fn a_gang_is_bound_whole_or_not_at_all() {
    let mut model = cluster(&[1], &[4, 4]);
    gang(&mut model, "fits", "q0", 2, 2, 3);
    assert_eq!(bound(&model.session(1_000)), [("fits-0", "n0"), ("fits-1", "n1")]);
    gang(&mut model, "waits", "q0", 3, 3, 1);
    let decided = model.session(1_000);
    assert_eq!(bound(&decided), []);
    assert_eq!(decided.refused, [ObjectKey::new("ns", "waits")]);
}

#[test]
fn equal_nodes_are_taken_in_the_order_in_which_they_came() {
    let mut model = cluster(&[1], &[4, 4, 4]);
    gang(&mut model, "g", "q0", 1, 1, 1);
    assert_eq!(bound(&model.session(1_000)), [("g-0", "n0")]);
}

#[test]
fn a_new_node_takes_the_lowest_slot_that_is_free() {
    let mut model = cluster(&[1], &[4, 4, 4]);
    model.apply(Event::NodeDeleted("n0".to_owned()));
    model.apply(Event::Node(NodeObject {
        name: "late".to_owned(),
        allocatable: amounts(&[("cpu", 4_000), ("memory", 64 * GIB), ("pods", 20)]),
        ..NodeObject::default()
    }));
    gang(&mut model, "g", "q0", 1, 1, 1);
    assert_eq!(bound(&model.session(1_000)), [("g-0", "late")]);
}

#[test]
fn queues_share_by_weight_when_both_want_everything() {
    let mut model = cluster(&[1, 3], &[8]);
    gang(&mut model, "one", "q0", 1, 8, 1);
    gang(&mut model, "three", "q1", 1, 8, 1);
    let decided = model.session(1_000);
    let of = |name: &str| bound(&decided).iter().filter(|(pod, _)| pod.starts_with(name)).count();
    assert_eq!((of("one"), of("three")), (2, 6));
}

#[test]
fn room_that_is_being_freed_is_kept_for_a_gang_until_the_session_ends() {
    let mut model = cluster(&[1], &[4, 4]);
    resident(&mut model, "n0", 4, true);
    resident(&mut model, "n1", 2, false);
    gang(&mut model, "first", "q0", 2, 2, 2);
    gang(&mut model, "later", "q0", 1, 1, 2);
    // One pod of the first gang holds the free half of n1, the other waits for n0: nothing is left for the later one.
    let decided = model.session(1_000);
    assert_eq!(bound(&decided), []);
    assert_eq!(decided.refused, []);
    model.apply(Event::PodDeleted("resident-n0".to_owned()));
    assert_eq!(bound(&model.session(1_000)).len(), 3);
}

#[test]
fn a_pending_gang_is_admitted_only_within_the_factor_of_the_cluster() {
    let mut model = cluster(&[1], &[10]);
    let mut ask = |name: &str, cpu: i64| {
        model.apply(Event::PodGroup(PodGroupObject {
            key: ObjectKey::new("ns", name),
            uid: name.to_owned(),
            created_ms: cpu,
            queue: "q0".to_owned(),
            min_member: 1,
            min_resources: Some(amounts(&[("cpu", cpu * 1000)])),
            ..PodGroupObject::default()
        }));
    };
    ask("a", 4);
    ask("b", 5);
    ask("c", 6);
    let decided = model.session(1_000);
    assert_eq!(decided.admitted, [ObjectKey::new("ns", "a"), ObjectKey::new("ns", "b")]);
}

#[test]
fn a_pod_without_requests_is_placed_by_backfill_if_one_more_pod_has_a_place() {
    let mut model = cluster(&[1], &[1]);
    resident(&mut model, "n0", 1, false);
    gang(&mut model, "free", "q0", 1, 1, 0);
    model.apply(Event::Pod(PodObject {
        key: ObjectKey::new("ns", "free-w-0"),
        uid: "free-0".to_owned(),
        ours: true,
        group: Some("free".to_owned()),
        ..PodObject::default()
    }));
    assert_eq!(bound(&model.session(1_000)), [("free-0", "n0")]);
}
