//! Objects that nobody should write, in a running cluster: scheduler, controllers and kubelets over the in-process API
//! server, in virtual time. Each object gets a message that names what is wrong, and a gang before it and one
//! after it are scheduled as if it were not there. `docs/bad-input.md` lists what is tested where.

#![expect(clippy::unwrap_used, reason = "a failed step of a test is a failed test")]

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tephra_controller::ControllerOptions;
use tephra_scheduler::{Scheduler, SchedulerOptions};
use tephra_simulator::clock::VirtualClock;
use tephra_simulator::kubelet::{self, KubeletOptions};
use tephra_simulator::{ApiServer, ServerOptions};
use tokio_util::sync::CancellationToken;

const GROUP: &str = "scheduling.k8s.io/group-name";

/// A cluster of two nodes with 8 CPUs and 32 GiB each, and everything that runs in it.
struct Cluster {
    server: ApiServer,
    stop: CancellationToken,
    scheduler: tokio::task::JoinHandle<anyhow::Result<()>>,
    controllers: tokio::task::JoinHandle<anyhow::Result<()>>,
}

impl Cluster {
    async fn start() -> Self {
        let clock = Arc::new(VirtualClock::default());
        let options = ServerOptions { clock: clock.clone(), ..ServerOptions::default() };
        let server = ApiServer::new(options);
        for crd in tephra_api::scheduling::crds() {
            server.create_value(serde_json::to_value(crd).unwrap()).unwrap();
        }
        for name in ["n0", "n1"] {
            server.create_value(node(name, "8", "32Gi")).unwrap();
        }
        let stop = CancellationToken::new();
        let options = KubeletOptions { clock: clock.clone(), ..KubeletOptions::default() };
        tokio::spawn(kubelet::run(server.client_as("kubelets"), options, stop.clone()));
        let options =
            SchedulerOptions { lease: None, self_check: true, ..SchedulerOptions::default() };
        let scheduler = Scheduler::new(server.client_as("scheduler"), options, clock.clone());
        let scheduler = tokio::spawn(scheduler.run(stop.clone()));
        let controllers = tephra_controller::run(
            server.client_as("controller"),
            ControllerOptions::default(),
            clock,
            stop.clone(),
        );
        let controllers = tokio::spawn(controllers);
        let cluster = Self { server, stop, scheduler, controllers };
        cluster.gang("before", 2).await;
        cluster
    }

    async fn settle(&self) {
        tokio::time::sleep(Duration::from_secs(30)).await;
    }

    /// Puts objects into the store as they are: an older server, or one without our schemas, would have let them in.
    async fn put(&self, objects: impl IntoIterator<Item = Value>) {
        for object in objects {
            self.server.apply_value(object).unwrap();
        }
        self.settle().await;
    }

    /// A gang of pods with one CPU each.
    async fn gang(&self, name: &str, members: usize) {
        let pods =
            (0..members).map(|index| pod(&format!("{name}-{index}"), name, json!({"cpu": "1"})));
        self.put([group(name, json!({"minMember": members}))].into_iter().chain(pods)).await;
    }

    fn node_of(&self, pod: &str) -> String {
        let pod = self.server.get_value("pods", "default", pod).unwrap();
        pod["spec"]["nodeName"].as_str().unwrap_or_default().to_owned()
    }

    /// What conditions and events say about an object.
    fn said(&self, resource: &str, kind: &str, name: &str) -> String {
        let object = self.server.get_value(resource, "default", name).unwrap();
        let mut said = object["status"]["conditions"].to_string();
        for event in self.server.list_values("events") {
            let about = &event["involvedObject"];
            if about["kind"] == kind && about["name"] == name {
                said.push_str(event["message"].as_str().unwrap());
                said.push('\n');
            }
        }
        said
    }

    #[track_caller]
    fn assert_said(&self, resource: &str, kind: &str, name: &str, words: &[&str]) {
        let said = self.said(resource, kind, name);
        for word in words {
            assert!(said.contains(word), "{kind} {name}: {word:?} is not in {said}");
        }
    }

    /// A gang that comes last is scheduled, the one that came first still is, and everything ends cleanly.
    async fn undisturbed(self) {
        self.gang("after", 2).await;
        for gang in ["before", "after"] {
            for index in 0..2 {
                let node = self.node_of(&format!("{gang}-{index}"));
                assert!(["n0", "n1"].contains(&&*node), "{gang}-{index} is on {node:?}");
            }
            let group = self.server.get_value("podgroups", "default", gang).unwrap();
            assert_eq!(group["status"]["phase"], "Running", "{gang}");
        }
        self.stop.cancel();
        self.scheduler.await.unwrap().unwrap();
        self.controllers.await.unwrap().unwrap();
    }
}

fn node(name: &str, cpu: &str, memory: &str) -> Value {
    let size = json!({"cpu": cpu, "memory": memory, "pods": "1000"});
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"name": name}},
           "status": {"allocatable": size, "capacity": size}})
}

fn group(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
           "metadata": {"name": name, "namespace": "default"}, "spec": spec})
}

fn queue(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
           "metadata": {"name": name}, "spec": spec})
}

fn pod(name: &str, group: &str, requests: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod",
           "metadata": {"name": name, "namespace": "default", "annotations": {GROUP: group}},
           "spec": {"schedulerName": "volcano", "containers": [
               {"name": "c", "image": "i", "resources": {"requests": requests}}]}})
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_no_amount_is_told_on_its_pod() {
    let cluster = Cluster::start().await;
    for (name, amount) in [("suffix", "1Gib"), ("negative", "-1"), ("word", "lots"), ("empty", "")]
    {
        cluster
            .put([
                group(name, json!({"minMember": 1})),
                pod(&format!("{name}-0"), name, json!({"memory": amount})),
            ])
            .await;
        assert_eq!(cluster.node_of(&format!("{name}-0")), "", "{amount:?}");
        cluster.assert_said("pods", "Pod", &format!("{name}-0"), &["memory"]);
        cluster.assert_said("pods", "Pod", &format!("{name}-0"), &[amount]);
    }
    cluster.undisturbed().await;
}

#[tokio::test(start_paused = true)]
async fn a_node_whose_size_is_no_amount_is_told_and_gets_no_pod() {
    let cluster = Cluster::start().await;
    cluster
        .put([node("n2", "8", "1Gib"), node("n3", "many", "1Gi"), node("n4", "-8", "1Gi")])
        .await;
    cluster.assert_said("nodes", "Node", "n2", &["1Gib", "memory"]);
    cluster.assert_said("nodes", "Node", "n3", &["many", "cpu"]);
    cluster.gang("many", 10).await;
    for index in 0..10 {
        let node = cluster.node_of(&format!("many-{index}"));
        assert!(["n0", "n1"].contains(&&*node), "{node}");
    }
    cluster.undisturbed().await;
}

#[tokio::test(start_paused = true)]
async fn a_queue_and_a_group_with_amounts_that_are_none_are_told_and_wait_alone() {
    let cluster = Cluster::start().await;
    cluster
        .put([
            queue("odd", json!({"weight": 1, "capability": {"cpu": "1Gib"}})),
            group("in-odd", json!({"minMember": 1, "queue": "odd"})),
            pod("in-odd-0", "in-odd", json!({"cpu": "1"})),
            group("asks", json!({"minMember": 1, "minResources": {"cpu": "1Gib"}})),
            pod("asks-0", "asks", json!({"cpu": "1"})),
        ])
        .await;
    cluster.assert_said("queues", "Queue", "odd", &["1Gib"]);
    cluster.assert_said("podgroups", "PodGroup", "asks", &["1Gib"]);
    cluster.undisturbed().await;
}

#[tokio::test(start_paused = true)]
async fn a_node_of_ten_to_the_eighteen_bytes_takes_pods_and_overflows_nothing() {
    let cluster = Cluster::start().await;
    cluster.put([node("vast", "8", "1000000000000000000")]).await;
    cluster
        .put([
            group("large", json!({"minMember": 2})),
            pod("large-0", "large", json!({"memory": "100Ti"})),
            pod("large-1", "large", json!({"memory": "100Ti"})),
            group("too-large", json!({"minMember": 1})),
            pod("too-large-0", "too-large", json!({"memory": "9223372036854775807"})),
        ])
        .await;
    assert_eq!(
        (cluster.node_of("large-0"), cluster.node_of("large-1")),
        ("vast".into(), "vast".into())
    );
    assert_eq!(cluster.node_of("too-large-0"), "");
    cluster.assert_said("podgroups", "PodGroup", "too-large", &["memory"]);
    cluster.server.delete_value("nodes", "", "vast").unwrap();
    cluster.undisturbed().await;
}

#[tokio::test(start_paused = true)]
async fn long_dotted_and_numeric_names_are_names_and_empty_ones_are_none() {
    let cluster = Cluster::start().await;
    let long =
        format!("{}.{}.{}.{}", "a".repeat(63), "9".repeat(63), "z".repeat(63), "0".repeat(61));
    cluster
        .put([
            queue("1", json!({"weight": 1})),
            group(&long, json!({"minMember": 1, "queue": "1"})),
            pod(&long, &long, json!({"cpu": "1"})),
            group("0x7f", json!({"minMember": 1, "queue": ""})),
            pod("99999999999999999999999", "0x7f", json!({"cpu": "1"})),
            pod("no-group", "", json!({"cpu": "1"})),
        ])
        .await;
    for name in [&*long, "99999999999999999999999", "no-group"] {
        assert_ne!(cluster.node_of(name), "", "{name}");
    }
    let mut nameless = pod("x", "before", json!({"cpu": "1"}));
    nameless["metadata"]["name"] = json!("");
    let refusal = cluster.server.create_value(nameless).unwrap_err().to_string();
    assert!(refusal.contains("metadata.name: Required value"), "{refusal}");
    cluster.undisturbed().await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_of_400_containers_is_placed_by_the_sum_of_them() {
    let cluster = Cluster::start().await;
    let mut wide = pod("wide", "wide", json!({}));
    let container = |index| json!({"name": format!("c{index}"), "image": "i", "resources": {"requests": {"cpu": "17m"}}});
    wide["spec"]["containers"] = (0..400).map(container).collect();
    let mut wider = pod("wider", "wider", json!({}));
    let container = |index| json!({"name": format!("c{index}"), "image": "i", "resources": {"requests": {"cpu": "21m"}}});
    wider["spec"]["containers"] = (0..400).map(container).collect();
    let groups = ["wide", "wider"].map(|name| group(name, json!({"minMember": 1})));
    cluster.put(groups.into_iter().chain([wide, wider])).await;
    // 6.8 CPUs fit beside one pod of the first gang, 8.4 are more than a node has.
    assert_eq!(
        (cluster.node_of("wide").is_empty(), cluster.node_of("wider").is_empty()),
        (false, true)
    );
    cluster.assert_said("podgroups", "PodGroup", "wider", &["cpu"]);
    cluster.undisturbed().await;
}

#[tokio::test(start_paused = true)]
async fn a_missing_queue_is_named_on_the_group_and_not_created_for_it() {
    let cluster = Cluster::start().await;
    cluster
        .put([
            group("lost", json!({"minMember": 1, "queue": "reserach"})),
            pod("lost-0", "lost", json!({"cpu": "1"})),
        ])
        .await;
    assert_eq!(cluster.node_of("lost-0"), "");
    cluster.assert_said("podgroups", "PodGroup", "lost", &["reserach", "does not exist"]);
    assert_eq!(cluster.server.get_value("queues", "", "reserach"), None);
    cluster.put([queue("reserach", json!({"weight": 1}))]).await;
    assert_ne!(cluster.node_of("lost-0"), "", "it starts when the queue comes");
    cluster.undisturbed().await;
}

#[tokio::test(start_paused = true)]
async fn a_minimum_of_0_is_no_gang_and_the_largest_waits_for_ever() {
    let cluster = Cluster::start().await;
    cluster
        .put([
            group("none", json!({"minMember": 0})),
            pod("none-0", "none", json!({"cpu": "1"})),
            group("vast", json!({"minMember": i32::MAX})),
            pod("vast-0", "vast", json!({"cpu": "1"})),
        ])
        .await;
    assert_ne!(cluster.node_of("none-0"), "");
    assert_eq!(cluster.node_of("vast-0"), "");
    cluster.assert_said("podgroups", "PodGroup", "vast", &["2147483647"]);
    cluster.undisturbed().await;
}

#[tokio::test(start_paused = true)]
async fn a_gang_whose_pods_never_come_or_come_in_part_holds_no_node() {
    let cluster = Cluster::start().await;
    cluster
        .put([
            group("ghost", json!({"minMember": 16})),
            group("half", json!({"minMember": 2})),
            pod("half-0", "half", json!({"cpu": "7"})),
        ])
        .await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(cluster.node_of("half-0"), "");
    cluster.assert_said("podgroups", "PodGroup", "half", &["valid: 1, min: 2"]);
    cluster.gang("large", 12).await;
    assert!((0..12).all(|index| !cluster.node_of(&format!("large-{index}")).is_empty()));
    cluster.undisturbed().await;
}

#[tokio::test(start_paused = true)]
async fn a_minimum_on_a_workload_that_is_no_count_is_taken_as_one() {
    let cluster = Cluster::start().await;
    for (name, minimum) in
        [("word", "two"), ("negative", "-3"), ("huge", "2147483648"), ("empty", "")]
    {
        let owner = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": {"name": name, "namespace": "default",
                         "annotations": {"scheduling.volcano.sh/group-min-member": minimum}},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"app": name}}}});
        let uid = cluster.server.create_value(owner).unwrap()["metadata"]["uid"].clone();
        let mut pod = pod(&format!("{name}-0"), "", json!({"cpu": "1"}));
        pod["metadata"]["annotations"] = json!({});
        pod["metadata"]["ownerReferences"] = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet",
            "name": name, "uid": uid, "controller": true}]);
        cluster.put([pod]).await;
        assert_ne!(cluster.node_of(&format!("{name}-0")), "", "{minimum:?}");
        let made = format!("podgroup-{}", uid.as_str().unwrap());
        let made = cluster.server.get_value("podgroups", "default", &made).unwrap();
        assert_eq!(made["spec"]["minMember"], 1, "{minimum:?}");
    }
    cluster.undisturbed().await;
}

#[tokio::test(start_paused = true)]
async fn objects_of_the_wrong_shape_cost_only_themselves() {
    let cluster = Cluster::start().await;
    let mut shapeless =
        group("shapeless", json!({"minMember": "many", "queue": 7, "minResources": ["cpu"]}));
    shapeless["status"] = json!("fine");
    cluster
        .put([
            shapeless,
            pod("shapeless-0", "shapeless", json!({"cpu": "1"})),
            queue("heavy", json!({"weight": "heavy", "parent": 3})),
            group("by-name", json!("nothing")),
        ])
        .await;
    assert_eq!(cluster.node_of("shapeless-0"), "");
    cluster.assert_said("podgroups", "PodGroup", "shapeless", &["spec.queue"]);
    cluster.assert_said("queues", "Queue", "heavy", &["weight"]);
    cluster.undisturbed().await;
}
