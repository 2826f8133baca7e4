//! What belongs to another scheduler is left alone.

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};
use tephra_tests::rig::identity::Identity;
use tephra_tests::rig::workload::{self, Gang};

use crate::case::{Case, cpus};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_group_of_another_schedulers_pods_is_left_alone() {
    let Some(mut case) = Case::open("foreign", 2, cpus(8)).await else { return };
    let theirs = Gang { scheduler: "another".to_owned(), ..case.gang("theirs", 2, "1") };
    // Pods first: a PodGroup without pods belongs to nobody yet.
    workload::create_pods(&case.client, case.name, theirs.pods()).await.expect("pods");
    workload::create_pod_groups(&case.client, case.name, std::slice::from_ref(&theirs))
        .await
        .expect("the PodGroup");
    let _scheduler = case.scheduler(&[]);
    case.create(&[case.gang("ours", 4, "1")]).await;
    case.pod_group_where("ours", "running", |group| group["status"]["running"] == 4).await;
    case.create(&[case.gang("ours-later", 4, "1")]).await;
    case.pod_group_where("ours-later", "running", |group| group["status"]["running"] == 4).await;

    case.assert_bound_once(8).await.assert_at_most_per_node(8);
    let namespace = case.name;
    let touched: Vec<_> = case
        .writes()
        .iter()
        .filter(|record| Identity::is_ours(record.user()))
        .filter(|record| record.names("podgroups", namespace, "theirs"))
        .collect();
    assert!(touched.is_empty(), "{touched:#?}");
    let stored = case.pod_group("theirs").await;
    assert!(stored.get("status").is_none_or(serde_json::Value::is_null), "{stored}");
    let pods: Api<Pod> = Api::namespaced(case.client.clone(), case.name);
    for pod in pods.list(&ListParams::default()).await.expect("pods") {
        let spec = pod.spec.expect("a spec");
        if spec.scheduler_name.as_deref() == Some("another") {
            assert_eq!(spec.node_name, None);
        }
    }
}
