//! The scenarios: each a script of what appears and goes at which time.

mod suspensions;

use serde_json::{Value, json};

use crate::faults::objects::{self, GPU, NAMESPACE, Pod, Request};

/// A scenario.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// Its name on the command line.
    pub name: &'static str,
    /// What happens, with milliseconds after the start, in order.
    pub script: fn() -> Vec<(u64, Step)>,
    /// Configuration `tephra`, under which gangs are suspended, and operators that make the pods of jobs.
    pub suspends: bool,
}

const fn scenario(name: &'static str, script: fn() -> Vec<(u64, Step)>) -> Scenario {
    Scenario { name, script, suspends: false }
}

const fn suspension(name: &'static str, script: fn() -> Vec<(u64, Step)>) -> Scenario {
    Scenario { name, script, suspends: true }
}

/// One change of the cluster.
#[derive(Clone, Debug)]
pub enum Step {
    /// An object appears.
    Create(Value),
    /// An object goes: resource, namespace, name.
    Delete(&'static str, &'static str, &'static str),
}

/// All scenarios.
pub const SCENARIOS: [Scenario; 15] = [
    scenario("one-gang", one_gang),
    scenario("more-than-the-minimum", more_than_the_minimum),
    scenario("two-gangs-room-for-one", two_gangs_room_for_one),
    scenario("two-gangs-that-just-fit", two_gangs_that_just_fit),
    scenario("queue-limit", queue_limit),
    scenario("two-queues", two_queues),
    scenario("plain-pods", plain_pods),
    scenario("plain-pods-and-a-gang", plain_pods_and_a_gang),
    scenario("node-lost", node_lost),
    scenario("one-after-the-other", one_after_the_other),
    scenario("pods-before-their-group", pods_before_their_group),
    scenario("pod-replaced", pod_replaced),
    suspension("suspended-job", suspensions::job),
    suspension("suspended-pytorch-job", suspensions::pytorch_job),
    suspension("suspended-plain-pods", suspensions::plain_pods),
];

fn node(name: &str, cpu: &str) -> (u64, Step) {
    let allocatable = json!({"cpu": cpu, "memory": "16Gi", "pods": "20", GPU: "4"});
    (0, Step::Create(objects::node(name, "east", &allocatable, false)))
}

fn pod(name: String, group: &str, runs_s: Option<u64>) -> Pod {
    Pod { name, group: group.to_owned(), request: Request::cpu("1"), runs_s, ..Pod::default() }
}

fn group(name: &str, queue: &str, min: u64) -> Step {
    let resources = json!({"cpu": min.to_string()});
    Step::Create(objects::gang(name, queue, min, &resources, ""))
}

/// A PodGroup with `size` pods of one cpu.
fn gang(
    at: u64,
    name: &str,
    queue: &str,
    min: u64,
    size: u64,
    runs_s: Option<u64>,
) -> Vec<(u64, Step)> {
    let mut steps = vec![(at, group(name, queue, min))];
    let pods = (0..size).map(|i| Step::Create(pod(format!("{name}-{i}"), name, runs_s).json()));
    steps.extend(pods.map(|step| (at, step)));
    steps
}

fn plain(count: u64, queue: &str) -> Vec<(u64, Step)> {
    let pods =
        (0..count).map(|i| Pod { queue: queue.to_owned(), ..pod(format!("plain-{i}"), "", None) });
    pods.map(|pod| (0, Step::Create(pod.json()))).collect()
}

fn queue(name: &str, weight: u64, capability: &Value) -> (u64, Step) {
    (0, Step::Create(objects::queue(name, weight, capability)))
}

fn one_gang() -> Vec<(u64, Step)> {
    [vec![node("n0", "2"), node("n1", "2")], gang(0, "a", "default", 4, 4, None)].concat()
}

fn more_than_the_minimum() -> Vec<(u64, Step)> {
    [vec![node("n0", "2"), node("n1", "2")], gang(0, "a", "default", 3, 6, None)].concat()
}

fn two_gangs_room_for_one() -> Vec<(u64, Step)> {
    [
        vec![node("n0", "2"), node("n1", "2")],
        gang(0, "a", "default", 3, 3, None),
        gang(0, "b", "default", 3, 3, None),
    ]
    .concat()
}

fn two_gangs_that_just_fit() -> Vec<(u64, Step)> {
    [
        vec![node("n0", "3"), node("n1", "3")],
        gang(0, "a", "default", 3, 3, None),
        gang(0, "b", "default", 3, 3, None),
    ]
    .concat()
}

fn queue_limit() -> Vec<(u64, Step)> {
    [
        vec![node("n0", "8"), queue("small", 1, &json!({"cpu": "3"}))],
        gang(0, "a", "small", 3, 3, None),
        gang(0, "b", "small", 2, 2, None),
    ]
    .concat()
}

fn two_queues() -> Vec<(u64, Step)> {
    [
        vec![node("n0", "4"), node("n1", "4")],
        vec![queue("one", 1, &Value::Null), queue("three", 3, &Value::Null)],
        gang(0, "a", "one", 2, 2, None),
        gang(0, "b", "three", 3, 3, None),
        gang(0, "c", "three", 3, 3, None),
    ]
    .concat()
}

fn plain_pods() -> Vec<(u64, Step)> {
    [vec![node("n0", "4")], plain(3, "")].concat()
}

fn plain_pods_and_a_gang() -> Vec<(u64, Step)> {
    [
        vec![node("n0", "3"), node("n1", "3"), queue("other", 1, &Value::Null)],
        plain(2, "other"),
        gang(0, "a", "default", 4, 4, None),
    ]
    .concat()
}

fn node_lost() -> Vec<(u64, Step)> {
    [
        vec![node("n0", "2"), node("n1", "2")],
        gang(0, "a", "default", 4, 4, None),
        vec![(30, Step::Delete("nodes", "", "n1"))],
        vec![(5_000, node("n2", "2").1)],
    ]
    .concat()
}

fn one_after_the_other() -> Vec<(u64, Step)> {
    [
        vec![node("n0", "2"), node("n1", "2")],
        gang(0, "a", "default", 4, 4, Some(5)),
        gang(1_000, "b", "default", 4, 4, Some(5)),
    ]
    .concat()
}

fn pods_before_their_group() -> Vec<(u64, Step)> {
    let mut script = vec![node("n0", "2"), node("n1", "2")];
    script.extend((0..2).map(|i| (0, Step::Create(pod(format!("a-{i}"), "a", None).json()))));
    script.push((1_000, group("a", "default", 4)));
    script.extend((2..4).map(|i| (2_000, Step::Create(pod(format!("a-{i}"), "a", None).json()))));
    script
}

fn pod_replaced() -> Vec<(u64, Step)> {
    [
        vec![node("n0", "2"), node("n1", "2")],
        gang(0, "a", "default", 4, 4, None),
        vec![
            (20, Step::Delete("pods", NAMESPACE, "a-1")),
            (20, Step::Create(pod("a-1".to_owned(), "a", None).json())),
            (4_000, Step::Delete("pods", NAMESPACE, "a-2")),
            (4_500, Step::Create(pod("a-2".to_owned(), "a", None).json())),
        ],
    ]
    .concat()
}
