//! From when the run time of a pod counts that a reservation waits for.

use std::sync::Arc;

use tephra_api::conf::SchedulerConf;

use crate::decision::Decision;
use crate::event::{
    Event, NodeObject, ObjectKey, PodGroupObject, PodGroupPhase, PodGroupStatus, PodObject,
    PodPhase, PodSpec,
};
use crate::plugin::test_world::queue;
use crate::workload::amounts;
use crate::{Core, Options};

const MINUTE_MS: i64 = 60_000;

fn core() -> Core {
    let text = "actions: allocate\ntiers:\n- plugins: [{name: gang}, {name: reservation, arguments: {reservation.hold: 0s}}]\n- plugins: [{name: predicates}]\n";
    let conf = SchedulerConf::parse(text, crate::registry::action_names()).expect("valid");
    let mut core = Core::new(Options::default(), &conf);
    core.apply(Event::Queue(queue("default", "")));
    core.apply(Event::Node(NodeObject {
        name: "n1".to_owned(),
        allocatable: amounts(4_000, 1 << 36, 0, 50),
        ..NodeObject::default()
    }));
    core
}

fn group(name: &str, pods: i32) -> Event {
    Event::PodGroup(PodGroupObject {
        key: ObjectKey::new("ns", name),
        uid: name.to_owned(),
        min_member: pods,
        status: PodGroupStatus { phase: PodGroupPhase::Inqueue, ..PodGroupStatus::default() },
        ..PodGroupObject::default()
    })
}

fn pod(group: &str, number: usize, runs_on: Option<&str>) -> Event {
    let uid = format!("{group}-{number}");
    Event::Pod(PodObject {
        key: ObjectKey::new("ns", uid.clone()),
        uid,
        created_ms: MINUTE_MS,
        ours: true,
        group: Some(group.to_owned()),
        phase: if runs_on.is_some() { PodPhase::Running } else { PodPhase::Pending },
        node: runs_on.map(str::to_owned),
        runtime_ms: Some(10 * MINUTE_MS),
        spec: Arc::new(PodSpec {
            namespace: "ns".to_owned(),
            requests: amounts(2_000, 1 << 30, 0, 1),
            ..PodSpec::default()
        }),
        ..PodObject::default()
    })
}

#[test]
fn a_pod_whose_kubelet_is_silent_has_run_since_it_was_bound_not_since_it_waited() {
    let mut core = core();
    core.apply_all(vec![group("old", 1), pod("old", 0, None)]);
    core.session(30 * MINUTE_MS);
    core.apply(pod("old", 0, Some("n1")));
    core.apply_all(vec![group("big", 2), pod("big", 0, None), pod("big", 1, None)]);
    let decisions = core.session(31 * MINUTE_MS).decisions;
    let told: Vec<Option<i64>> = decisions
        .iter()
        .filter_map(|decision| match decision {
            Decision::PredictedStart { start_ms, .. } => Some(*start_ms),
            _ => None,
        })
        .collect();
    assert_eq!(told, [Some(40 * MINUTE_MS)]);
}

#[test]
fn a_gang_that_is_not_tried_again_is_told_of_the_same_pod_as_when_it_was() {
    let mut core = core();
    let running = pod("old", 0, Some("n1"));
    core.apply_all(vec![group("old", 1), running, group("big", 2)]);
    core.apply_all(vec![pod("big", 0, None), pod("big", 1, None)]);
    let mut told = |minute: i64| -> Vec<String> {
        let decisions = core.session(minute * MINUTE_MS).decisions;
        let statuses = decisions.into_iter().filter_map(|decision| match decision {
            Decision::PodGroupStatus { group, status, .. } if group.name == "big" => Some(status),
            _ => None,
        });
        let conditions = statuses.flat_map(|status| status.conditions);
        conditions.map(|condition| condition.message).collect()
    };
    let first = told(31);
    assert!(first[0].contains("Origin reason is big-1: "), "{first:?}");
    assert!(told(32).iter().all(|again| *again == first[0]));
}
