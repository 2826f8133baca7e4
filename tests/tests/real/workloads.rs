//! Pods of every workload that Kubernetes has: the controller gives each workload a PodGroup, keeps it up to date, and takes it
//! away when the workload wants no pods any more.

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{
    Api, ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams,
};
use serde_json::{Value, json};
use tephra_tests::rig::patience::{PATIENCE, wait_for, wait_until};
use tephra_tests::rig::workload;

use crate::case::{Case, cpus};

/// A workload of 2 pods (a DaemonSet: one for each of 2 nodes).
fn workload_of(case: &Case, kind: &str) -> Value {
    let name = kind.to_lowercase();
    let labels = json!({"workload": name});
    let restart = if kind == "Job" { "Never" } else { "Always" };
    let template = json!({
        "metadata": {
            "labels": labels, "annotations": {"scheduling.volcano.sh/queue-name": case.name},
        },
        "spec": {
            "schedulerName": case.name, "restartPolicy": restart,
            "terminationGracePeriodSeconds": 0,
            "containers": [{
                "name": "main", "image": "registry.example/work:1",
                "resources": {"requests": {"cpu": "500m", "memory": "64Mi"}},
            }],
        },
    });
    let mut spec = json!({"template": template});
    match kind {
        "Job" => (spec["parallelism"], spec["completions"]) = (json!(2), json!(2)),
        "DaemonSet" => spec["selector"] = json!({"matchLabels": labels}),
        _ => {
            spec["replicas"] = json!(2);
            spec["selector"] = json!({"matchLabels": labels});
            if kind == "StatefulSet" {
                spec["podManagementPolicy"] = json!("Parallel");
            }
        }
    }
    json!({"metadata": {"name": name}, "spec": spec})
}

fn api(case: &Case, kind: &str) -> Api<DynamicObject> {
    let group = if kind == "Job" { "batch" } else { "apps" };
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
    Api::namespaced_with(case.client.clone(), case.name, &resource)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_kind_of_workload_has_one_pod_group_while_it_wants_pods() {
    let Some(mut case) = Case::open_managed("workloads", 2, cpus(8)).await else { return };
    let _scheduler = case.scheduler(&[]);
    let kinds = ["ReplicaSet", "StatefulSet", "DaemonSet", "Job"];
    let mut groups = Vec::new();
    for kind in kinds {
        let workload = serde_json::from_value(workload_of(&case, kind)).expect("a workload");
        let created = api(&case, kind).create(&PostParams::default(), &workload).await;
        groups.push(format!("podgroup-{}", created.expect("created").uid().expect("a uid")));
    }
    case.bound(8).await;
    let pods: Api<Pod> = Api::namespaced(case.client.clone(), case.name);
    for (kind, group) in kinds.iter().zip(&groups) {
        let runs = |group: &Value| group["status"]["running"] == 2;
        let stored = case.pod_group_where(group, "both pods run", runs).await;
        assert_eq!(stored["spec"]["queue"], case.name, "{kind}");
        let selector = ListParams::default().labels(&format!("workload={}", kind.to_lowercase()));
        for pod in pods.list(&selector).await.expect("pods") {
            assert_eq!(pod.annotations().get("scheduling.k8s.io/group-name"), Some(group));
        }
    }

    let patch = async |kind: &str, body: Value| {
        let patched = api(&case, kind)
            .patch(&kind.to_lowercase(), &PatchParams::default(), &Patch::Merge(&body))
            .await;
        patched.expect("patched");
    };
    let minimum =
        json!({"metadata": {"annotations": {"scheduling.volcano.sh/group-min-member": "2"}}});
    patch("ReplicaSet", minimum).await;
    let follows = |group: &Value| group["spec"]["minMember"] == 2;
    case.pod_group_where(&groups[0], "follows its workload", follows).await;

    let stored = workload::pod_groups(&case.client, case.name);
    for (kind, group) in kinds.iter().zip(&groups).take(2) {
        patch(kind, json!({"spec": {"replicas": 0}})).await;
        wait_until(
            &format!("the PodGroup of a {kind} without pods is gone"),
            PATIENCE,
            async || Ok(stored.get_opt(group).await?.is_none()),
        )
        .await
        .expect("gone");
    }
    wait_for("the others keep theirs", PATIENCE, async || {
        let mut left: Vec<_> =
            stored.list(&ListParams::default()).await?.iter().map(ResourceExt::name_any).collect();
        left.sort();
        let mut expected = groups[2..].to_vec();
        expected.sort();
        Ok(if left == expected { Ok(()) } else { Err(format!("{left:?}")) })
    })
    .await
    .expect("two are left");
}
