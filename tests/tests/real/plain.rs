//! Pods without a PodGroup: the controller gives them one, and they run.

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::{Api, ListParams};
use tephra_tests::rig::workload::{self, PodTemplate};

use crate::case::{Case, cpus};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plain_pods_get_a_pod_group_each_and_run() {
    let Some(mut case) = Case::open("plain", 2, cpus(4)).await else { return };
    let _scheduler = case.scheduler(&[]);
    let template = PodTemplate {
        scheduler: case.name.to_owned(),
        cpu: "1".to_owned(),
        group: None,
        run_for: None,
    };
    let pods = (0..6).map(|index| (format!("plain-{index}"), template.clone()));
    workload::create_pods(&case.client, case.name, pods).await.expect("pods");
    case.bound(6).await;
    case.assert_bound_once(6).await.assert_at_most_per_node(4);

    let api: Api<Pod> = Api::namespaced(case.client.clone(), case.name);
    for pod in api.list(&ListParams::default()).await.expect("pods") {
        let uid = pod.uid().expect("a stored pod");
        let group = format!("podgroup-{uid}");
        assert_eq!(pod.annotations().get("scheduling.k8s.io/group-name"), Some(&group));
        let group = case
            .pod_group_where(&group, "running", |group| {
                group["status"]["phase"] == "Running" && group["status"]["running"] == 1
            })
            .await;
        assert_eq!(group["spec"]["minMember"], 1);
        assert_eq!(group["metadata"]["ownerReferences"][0]["uid"], uid);
    }
}
