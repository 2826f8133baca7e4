//! Leaving out searches that cannot find anybody changes no decision: random clusters, once so and once with every search.

use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use tephra_api::conf::SchedulerConf;

use super::Preempt;
use crate::event::{
    Event, NodeObject, ObjectKey, PodGroupObject, PodGroupPhase, PodGroupStatus, PodObject,
    PodPhase, PodSpec, PriorityClassObject,
};
use crate::plugin::test_world::queue;
use crate::workload::amounts;
use crate::{Core, Options};

const PRIORITIES: [(&str, i32); 3] = [("low", 10), ("middle", 50), ("high", 100)];
const QUEUES: [&str; 2] = ["q0", "q1"];
/// Each on its own row: with plugin priority alone in its tier, with others beside it, with none, and with another tier behind it.
const TIERS: [&str; 4] = [
    "- plugins: [{name: priority}, {name: gang}, {name: conformance}]\n- plugins: [{name: predicates}]",
    "- plugins: [{name: priority}]\n- plugins: [{name: drf}, {name: predicates}]",
    "- plugins: [{name: gang}, {name: drf}]\n- plugins: [{name: predicates}]",
    "- plugins: [{name: priority}, {name: gang, enablePreemptable: false}]\n- plugins: [{name: drf, enablePreemptable: false}, {name: predicates}]",
];

#[derive(Clone, Debug)]
struct Gang {
    queue: usize,
    class: usize,
    min: usize,
    /// Cpus, the node where it runs, its own priority.
    pods: Vec<(i64, Option<usize>, i32)>,
}

fn gang() -> impl Strategy<Value = Gang> {
    let pod = (1..3_i64, prop::option::weighted(0.6, 0..3_usize), 0..3_i32);
    (0..2_usize, 0..3_usize, 1..4_usize, vec(pod, 1..5))
        .prop_map(|(queue, class, min, pods)| Gang { queue, class, min: min.min(pods.len()), pods })
}

fn build(core: &mut Core, gangs: &[Gang]) {
    for (name, value) in PRIORITIES {
        let name = name.to_owned();
        let class = PriorityClassObject { name, value, global_default: false };
        core.apply(Event::PriorityClass(class));
    }
    for name in QUEUES {
        core.apply(Event::Queue(queue(name, "")));
    }
    for number in 0..3 {
        core.apply(Event::Node(NodeObject {
            name: format!("n{number}"),
            allocatable: amounts(6_000, 1 << 36, 0, 50),
            ..NodeObject::default()
        }));
    }
    let mut free = [6_i64; 3];
    for (at, gang) in gangs.iter().enumerate() {
        let name = format!("g{at}");
        core.apply(Event::PodGroup(PodGroupObject {
            key: ObjectKey::new("ns", name.clone()),
            uid: name.clone(),
            created_ms: at as i64,
            queue: QUEUES[gang.queue].to_owned(),
            min_member: gang.min as i32,
            priority_class: PRIORITIES[gang.class].0.to_owned(),
            status: PodGroupStatus { phase: PodGroupPhase::Inqueue, ..PodGroupStatus::default() },
            ..PodGroupObject::default()
        }));
        for (number, &(cpus, node, priority)) in gang.pods.iter().enumerate() {
            let node = node.filter(|&node| free[node] >= cpus);
            node.into_iter().for_each(|node| free[node] -= cpus);
            let uid = format!("{name}-{number}");
            core.apply(Event::Pod(PodObject {
                key: ObjectKey::new("ns", uid.clone()),
                uid,
                ours: true,
                group: Some(name.clone()),
                priority: PRIORITIES[gang.class].1 + priority,
                preemptable: true,
                phase: if node.is_some() { PodPhase::Running } else { PodPhase::Pending },
                node: node.map(|node| format!("n{node}")),
                spec: Arc::new(PodSpec {
                    namespace: "ns".to_owned(),
                    requests: amounts(cpus * 1_000, 1 << 30, 0, 1),
                    ..PodSpec::default()
                }),
                ..PodObject::default()
            }));
        }
    }
}

/// Decisions of some sessions, and how many of them are evictions.
fn play(gangs: &[Gang], tiers: &str, thorough: bool) -> (String, usize) {
    let text = format!("actions: allocate, preempt\ntiers:\n{tiers}\n");
    let conf = SchedulerConf::parse(&text, crate::registry::action_names()).expect("valid");
    let mut core = Core::new(Options::default(), &conf);
    core.pipeline.actions.pop();
    core.pipeline.actions.push(Box::new(Preempt { thorough }));
    build(&mut core, gangs);
    let mut told = String::new();
    for now_ms in [1_000, 2_000] {
        told += &format!("{:?}\n", core.session(now_ms).decisions);
    }
    let evictions = told.matches("Evict {").count();
    (told, evictions)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn leaving_out_futile_searches_changes_no_decision(
        gangs in vec(gang(), 5..10),
        tiers in prop::sample::select(&TIERS[..]),
    ) {
        prop_assert_eq!(play(&gangs, tiers, false), play(&gangs, tiers, true));
    }
}

#[test]
fn the_random_clusters_have_evictions() {
    let runner = &mut proptest::test_runner::TestRunner::deterministic();
    let mut evictions = [0; TIERS.len()];
    for _ in 0..200 {
        let gangs = vec(gang(), 5..10).new_tree(runner).expect("a cluster").current();
        for (tiers, count) in TIERS.iter().zip(&mut evictions) {
            *count += play(&gangs, tiers, false).1;
        }
    }
    assert!(evictions.iter().all(|&count| count > 20), "{evictions:?}");
}
