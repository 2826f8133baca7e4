//! Suspension against the in-process API server: what the other controllers of the same process see of it, kinds from
//! definitions, events. Lives of gangs are told in `src/controller/suspension/tests`.

use std::time::Duration;

use serde_json::{Value, json};
use tephra_simulator::clock::SIMULATION_START_MS;
use tokio::time::sleep;

use crate::cluster::{Cluster, group, pod, pod_of, settle};

const SUSPEND: &str = "tephra.sh/suspend";
const SUSPENDED: &str = "tephra.sh/suspended";

fn intent(mode: &str, seconds: i64) -> Value {
    let deadline = jiff::Timestamp::from_millisecond(SIMULATION_START_MS + seconds * 1000).unwrap();
    let intent = json!({"id": "s-1", "by": "ns/big", "reason": "Preempt", "mode": mode, "deadline": deadline.to_string()});
    json!(intent.to_string())
}

fn annotated(mut object: Value, key: &str, value: Value) -> Value {
    object["metadata"]["annotations"][key] = value;
    object
}

fn member(name: &str) -> Value {
    pod(name, |pod| {
        pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"] = json!("g");
        pod["spec"]["nodeName"] = json!("n");
        pod["status"] = json!({"phase": "Running"});
    })
}

async fn annotate(cluster: &Cluster, resource: &str, name: &str, key: &str, value: Value) {
    let object = cluster.get(resource, name).unwrap();
    cluster.apply([annotated(object, key, value)]).await;
}

fn texts(cluster: &Cluster, resource: &str, name: &str) -> Value {
    cluster.get(resource, name).unwrap()["metadata"]["annotations"].clone()
}

fn reasons(cluster: &Cluster) -> Vec<String> {
    let events = cluster.server.list_values("events");
    events.iter().map(|event| event["reason"].as_str().unwrap_or_default().to_owned()).collect()
}

/// The definition of Kubeflow's PyTorchJob, without a schema.
fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "pytorchjobs.kubeflow.org"},
        "spec": {
            "group": "kubeflow.org", "scope": "Namespaced",
            "names": {"kind": "PyTorchJob", "plural": "pytorchjobs", "singular": "pytorchjob", "listKind": "PyTorchJobList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
                {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
        },
    })
}

#[tokio::test(start_paused = true)]
async fn a_pytorch_job_is_suspended_by_its_own_switch_and_waits_in_a_pod_group_that_outlives_its_own()
 {
    let cluster = Cluster::started().await;
    cluster.apply([definition()]).await;
    let job = json!({
        "apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob",
        "metadata": {"name": "job", "namespace": "default"}, "spec": {"runPolicy": {}},
    });
    cluster.apply([job, group("g", "default", "Running")]).await;
    let owner = cluster.get("pytorchjobs", "job").unwrap();
    let pods = ["a", "b"].map(|name| {
        let mut pod = member(name);
        pod["metadata"]["ownerReferences"] =
            pod_of(&owner, name)["metadata"]["ownerReferences"].clone();
        pod
    });
    cluster.apply(pods).await;

    annotate(&cluster, "podgroups", "g", SUSPEND, intent("None", 60)).await;
    let job = cluster.get("pytorchjobs", "job").unwrap();
    assert_eq!(job["spec"]["runPolicy"]["suspend"], true);
    assert!(texts(&cluster, "podgroups", "g-suspended")[SUSPEND].is_string(), "its pods run still");
    for (resource, name) in [("pods", "a"), ("pods", "b"), ("podgroups", "g")] {
        cluster.delete(resource, "default", name).await;
    }
    let waits = cluster.get("podgroups", "g-suspended").unwrap();
    assert_eq!(waits["spec"]["minMember"], 1);
    assert_eq!(waits["metadata"]["annotations"][SUSPEND], Value::Null);
    let record: Value =
        serde_json::from_str(waits["metadata"]["annotations"][SUSPENDED].as_str().unwrap())
            .unwrap();
    assert_eq!((&record["group"], &record["members"][0]["count"]), (&json!("g"), &json!(2)));

    annotate(&cluster, "podgroups", "g-suspended", "tephra.sh/resume", json!("s-1")).await;
    assert_eq!(cluster.get("pytorchjobs", "job").unwrap()["spec"]["runPolicy"]["suspend"], false);
    assert_eq!(cluster.names("podgroups"), [""; 0]);
    assert_eq!(reasons(&cluster), ["Suspending", "Suspended", "Resuming", "Resumed"]);
}

#[tokio::test(start_paused = true)]
async fn a_plain_pod_with_the_pod_group_that_the_controller_made_comes_back_into_it() {
    let cluster = Cluster::started().await;
    let alone = pod("alone", |pod| {
        pod["metadata"]["annotations"]["tephra.sh/recreate"] = json!("true");
        pod["spec"]["nodeName"] = json!("n");
        pod["status"] = json!({"phase": "Running"});
    });
    cluster.apply([alone]).await;
    let [group] = &cluster.names("podgroups")[..] else { panic!("one PodGroup") };
    let before = cluster.get("pods", "alone").unwrap();
    annotate(&cluster, "podgroups", group, SUSPEND, intent("Ack", 3600)).await;
    let asked = texts(&cluster, "pods", "alone");
    assert_eq!(asked["tephra.sh/checkpoint-request"], "s-1;deadline=2026-01-01T01:00:00Z");
    annotate(&cluster, "pods", "alone", "tephra.sh/checkpoint-ack", json!("s-1")).await;
    assert_eq!(cluster.get("pods", "alone"), None);
    sleep(Duration::from_secs(600)).await;
    assert_eq!(cluster.names("podgroups"), [group.as_str()], "it was collected with its pod");

    annotate(&cluster, "podgroups", group, "tephra.sh/resume", json!("s-1")).await;
    let after = cluster.get("pods", "alone").unwrap();
    assert_ne!(before["metadata"]["uid"], after["metadata"]["uid"]);
    let owners = cluster.get("podgroups", group).unwrap()["metadata"]["ownerReferences"].clone();
    assert_eq!(owners[0]["uid"], after["metadata"]["uid"]);
    cluster.delete("pods", "default", "alone").await;
    assert_eq!(cluster.names("podgroups"), [""; 0], "it ends with its pod again");
}

#[tokio::test(start_paused = true)]
async fn an_intent_that_cannot_be_read_stops_nobody_and_is_told_once() {
    let cluster = Cluster::started().await;
    cluster.apply([group("g", "default", "Running"), member("a")]).await;
    let before = cluster.get("pods", "a");
    annotate(&cluster, "podgroups", "g", SUSPEND, json!("please")).await;
    annotate(&cluster, "podgroups", "g", "tephra.sh/hold", json!("user")).await;
    sleep(Duration::from_secs(3600)).await;
    assert_eq!(cluster.get("pods", "a"), before);
    assert_eq!(reasons(&cluster), ["InvalidSuspendIntent"]);
}

#[tokio::test(start_paused = true)]
async fn a_disruption_budget_keeps_a_plain_pod_until_the_deadline() {
    let cluster = Cluster::started().await;
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}},
    });
    let mut pod = member("a");
    pod["metadata"]["labels"] = json!({"app": "x"});
    cluster.apply([group("g", "default", "Running"), budget, pod]).await;
    annotate(&cluster, "podgroups", "g", SUSPEND, intent("None", 60)).await;
    assert!(cluster.get("pods", "a").is_some());
    sleep(Duration::from_secs(60)).await;
    settle().await;
    assert_eq!(cluster.get("pods", "a"), None);
    assert_eq!(reasons(&cluster), ["Suspending", "Evicted"]);
}
