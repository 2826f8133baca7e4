//! When rounds begin, and which pods leave full nodes.

use serde_json::json;

use super::*;
use crate::event::{Event, NodeObject, PodObject, PriorityClassObject};
use crate::plugin::test_cluster::{names, node, pod, state, tasks};

const MINUTE: i64 = 60_000;

fn strategy(params: Value) -> LowNodeUtilization {
    let mut warnings = Vec::new();
    let read = LowNodeUtilization::read(&params, &mut warnings);
    assert!(warnings.is_empty(), "{warnings:?}");
    read
}

/// Nodes of 4 cpu: `full` with four pods of rising priority, `half` with two, `empty` with none.
fn cluster() -> State {
    let on_full =
        (0..4).map(|at| PodObject { priority: at, ..pod(&format!("f-{at}"), "g", "full") });
    let on_half = (0..2).map(|at| pod(&format!("h-{at}"), "g", "half"));
    let nodes = [node("full", &[]), node("half", &[]), node("empty", &[])];
    state(nodes.into_iter().chain(on_full.chain(on_half).map(Event::Pod)))
}

fn victims(state: &State, params: Value) -> Vec<String> {
    let running = tasks(state, &["f-3", "f-2", "f-1", "f-0", "h-0", "h-1"]);
    names(state, &strategy(params).victims(state, &running))
}

#[test]
fn the_least_important_pods_leave_a_high_node_until_it_is_below_its_target() {
    let params = json!({"thresholds": {"cpu": 25}, "targetThresholds": {"cpu": 60}});
    assert_eq!(victims(&cluster(), params), ["f-0", "f-1"]);
    let params = json!({"thresholds": {"cpu": 25}, "targetThresholds": {"cpu": 80}});
    assert_eq!(victims(&cluster(), params), ["f-0"]);
}

#[test]
fn no_more_leave_than_low_nodes_may_take() {
    // 30 percent of 4 cpu: the second pod uses up more than is left of it.
    let params = json!({"thresholds": {"cpu": 25}, "targetThresholds": {"cpu": 30}});
    assert_eq!(victims(&cluster(), params), ["f-0", "f-1"]);
}

#[test]
fn without_low_or_without_high_nodes_nobody_leaves() {
    let nobody = [""; 0];
    assert_eq!(victims(&cluster(), json!({})), nobody, "defaults: nobody is above 100 percent");
    let params = json!({"thresholds": {"cpu": 0}, "targetThresholds": {"cpu": 60}});
    assert_eq!(victims(&cluster(), params), nobody);
    let params = json!({
        "thresholds": {"cpu": 25}, "targetThresholds": {"cpu": 60}, "numberOfNodes": 1,
    });
    assert_eq!(victims(&cluster(), params), nobody, "one low node is not more than one");
    let mut state = cluster();
    let Event::Node(empty) = node("empty", &[]) else { panic!("a node") };
    state.apply(Event::Node(NodeObject { unschedulable: true, ..empty }));
    let params = json!({"thresholds": {"cpu": 25}, "targetThresholds": {"cpu": 60}});
    assert_eq!(victims(&state, params), nobody, "a cordoned node is not low");
}

#[test]
fn pods_at_or_above_the_threshold_priority_stay() {
    let with = |more: Value| {
        let mut params = json!({"thresholds": {"cpu": 25}, "targetThresholds": {"cpu": 30}});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        params
    };
    assert_eq!(victims(&cluster(), with(json!({"thresholdPriority": 1}))), ["f-0", "h-0"]);
    let mut state = cluster();
    let class = PriorityClassObject { name: "mid".to_owned(), value: 1, global_default: false };
    state.apply(Event::PriorityClass(class));
    let named = with(json!({"thresholdPriorityClassName": "mid", "thresholdPriority": 3}));
    assert_eq!(victims(&state, named), ["f-0", "h-0"]);
}

#[test]
fn pods_that_fit_on_no_low_node_stay_unless_that_is_switched_off() {
    let mut state = cluster();
    let Event::Node(empty) = node("empty", &[]) else { panic!("a node") };
    let allocatable =
        vec![("cpu".to_owned(), 900), ("memory".to_owned(), 1 << 34), ("pods".to_owned(), 10)];
    state.apply(Event::Node(NodeObject { allocatable, ..empty }));
    let params =
        |fit| json!({"thresholds": {"cpu": 25}, "targetThresholds": {"cpu": 60}, "nodeFit": fit});
    assert_eq!(victims(&state, params(true)), [""; 0]);
    assert_eq!(victims(&state, params(false)), ["f-0"]);
}

#[test]
fn the_interval_counts_from_the_first_session_and_is_used_up_only_when_asked() {
    let mut plugin = Rescheduling::default();
    let mut warnings = Vec::new();
    let strategies = json!([{"name": "lowNodeUtilization", "params": {
        "thresholds": {"cpu": 25, "pod": 50.5}, "targetThresholds": {"cpu": 80}}}]);
    let arguments = Arguments::new([
        ("interval".to_owned(), json!("2m")),
        ("metricsPeriod".to_owned(), json!("10m")),
        ("strategies".to_owned(), strategies),
    ]);
    plugin.configure(&arguments, &mut warnings);
    assert!(warnings.is_empty(), "{warnings:?}");
    let mut state = cluster();
    let running = tasks(&state, &["f-0", "f-1"]);
    let mut round = |ms, asked| {
        state.now_ms = ms;
        plugin.open(&state);
        asked && !plugin.victim_tasks(&state, &running).is_empty()
    };
    assert!(!round(10 * MINUTE, true), "the first session counts as a round");
    assert!(!round(12 * MINUTE, false), "nobody asks");
    assert!(round(13 * MINUTE, true));
    assert!(!round(15 * MINUTE - 1, true));
    assert!(round(15 * MINUTE, true));
}
