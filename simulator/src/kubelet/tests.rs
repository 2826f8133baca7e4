//! The simulated kubelets against the in-process API server, in paused time.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::time::sleep;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{KubeletOptions, run};
use crate::{ApiServer, ServerOptions, clock::VirtualClock};

struct Cluster {
    server: ApiServer,
    _running: DropGuard,
}

impl Cluster {
    fn start(options: KubeletOptions) -> Cluster {
        let clock = Arc::new(VirtualClock::default());
        let server =
            ApiServer::new(ServerOptions { clock: clock.clone(), ..ServerOptions::default() });
        let shutdown = CancellationToken::new();
        let options = KubeletOptions { clock, ..options };
        tokio::spawn(run(server.client_as("kubelet"), options, shutdown.clone()));
        Cluster { server, _running: shutdown.drop_guard() }
    }

    fn pod(&self, name: &str, annotations: Value, node: Option<&str>) {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "annotations": annotations},
            "spec": {"nodeName": node, "terminationGracePeriodSeconds": 30,
                "containers": [{"name": "c", "image": "i"}]},
        });
        self.server.apply_value(pod).unwrap();
    }

    fn phase(&self, name: &str) -> String {
        let pod = self.server.get_value("pods", "default", name).unwrap();
        pod["status"]["phase"].as_str().unwrap_or_default().to_owned()
    }

    fn writes(&self) -> Vec<(String, String, u16)> {
        let ours = self.server.history().into_iter().filter(|w| &*w.identity == "kubelet");
        ours.map(|w| (w.name, format!("{} {}", w.verb, w.subresource), w.outcome)).collect()
    }
}

async fn seconds(seconds: u64) {
    sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn a_bound_pod_runs_for_its_time_and_succeeds_with_two_writes() {
    let cluster =
        Cluster::start(KubeletOptions { start_delay_ms: 2000, ..KubeletOptions::default() });
    cluster.pod("a", json!({"tephra.sh/run-for": "1m"}), Some("n"));
    seconds(1).await;
    assert_eq!(cluster.phase("a"), "Pending");
    seconds(2).await;
    assert_eq!(cluster.phase("a"), "Running");
    seconds(57).await;
    assert_eq!(cluster.phase("a"), "Running");
    seconds(5).await;
    assert_eq!(cluster.phase("a"), "Succeeded");
    let patch = ("a".to_owned(), "patch status".to_owned(), 200);
    assert_eq!(cluster.writes(), [patch.clone(), patch]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_fails_when_it_is_told_to() {
    let cluster = Cluster::start(KubeletOptions::default());
    cluster.pod("a", json!({"rig/run-for": "5", "rig/exit-code": "3"}), Some("n"));
    seconds(10).await;
    assert_eq!(cluster.phase("a"), "Failed");
    let pod = cluster.server.get_value("pods", "default", "a").unwrap();
    let state = &pod["status"]["containerStatuses"][0]["state"];
    assert_eq!(state["terminated"]["exitCode"], 3);
}

#[tokio::test(start_paused = true)]
async fn pods_that_are_not_bound_are_not_touched_until_they_are() {
    let cluster = Cluster::start(KubeletOptions::default());
    cluster.pod("a", json!({}), None);
    seconds(10).await;
    assert_eq!(cluster.writes(), []);
    cluster.pod("a", json!({}), Some("n"));
    seconds(10).await;
    assert_eq!(cluster.phase("a"), "Running");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_pod_stays_for_its_grace_period_and_is_gone_after_it() {
    let cluster = Cluster::start(KubeletOptions::default());
    cluster.pod("a", json!({}), Some("n"));
    seconds(5).await;
    let pods: kube::Api<k8s_openapi::api::core::v1::Pod> =
        kube::Api::namespaced(cluster.server.client(), "default");
    pods.delete("a", &kube::api::DeleteParams::default()).await.unwrap();
    seconds(20).await;
    let pod = cluster.server.get_value("pods", "default", "a").unwrap();
    assert!(pod["metadata"]["deletionTimestamp"].is_string());
    seconds(20).await;
    assert_eq!(cluster.server.get_value("pods", "default", "a"), None);
}

#[tokio::test(start_paused = true)]
async fn only_nodes_with_the_annotation_are_played_when_asked() {
    let cluster =
        Cluster::start(KubeletOptions { only_simulated_nodes: true, ..KubeletOptions::default() });
    let node = |name: &str, annotations: Value| {
        json!({"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "annotations": annotations}})
    };
    cluster.server.create_value(node("real", json!({}))).unwrap();
    cluster.pod("real", json!({}), Some("real"));
    cluster.pod("late", json!({}), Some("simulated")); // its node appears after it
    seconds(5).await;
    let fake = json!({"kwok.x-k8s.io/node": "fake"});
    cluster.server.create_value(node("simulated", fake)).unwrap();
    seconds(5).await;
    assert_eq!((&*cluster.phase("real"), &*cluster.phase("late")), ("Pending", "Running"));
}

#[tokio::test(start_paused = true)]
async fn a_write_between_seeing_and_starting_a_pod_is_kept() {
    let cluster =
        Cluster::start(KubeletOptions { start_delay_ms: 1000, ..KubeletOptions::default() });
    cluster.pod("a", json!({}), Some("n"));
    sleep(Duration::from_millis(999)).await;
    let pods: kube::Api<k8s_openapi::api::core::v1::Pod> =
        kube::Api::namespaced(cluster.server.client(), "default");
    let condition =
        json!({"status": {"conditions": [{"type": "example.com/Late", "status": "True"}]}});
    let patch = kube::api::Patch::Strategic(condition);
    pods.patch_status("a", &kube::api::PatchParams::default(), &patch).await.unwrap();
    seconds(5).await;
    assert_eq!(cluster.phase("a"), "Running");
    let pod = cluster.server.get_value("pods", "default", "a").unwrap();
    let conditions = pod["status"]["conditions"].as_array().unwrap();
    assert!(conditions.iter().any(|c| c["type"] == "example.com/Late"), "{conditions:?}");
}

#[tokio::test(start_paused = true)]
async fn pods_that_are_due_together_start_in_the_order_of_their_names() {
    let cluster = Cluster::start(KubeletOptions { in_flight: 1, ..KubeletOptions::default() });
    for name in ["c", "a", "b"] {
        cluster.pod(name, json!({}), Some("n"));
    }
    seconds(5).await;
    let names: Vec<String> = cluster.writes().into_iter().map(|(name, _, _)| name).collect();
    assert_eq!(names, ["a", "b", "c"]);
}
