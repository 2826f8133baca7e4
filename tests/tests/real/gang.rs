//! Gangs start whole or not at all.

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;
use tephra_tests::rig::nodes;

use crate::case::{Case, condition, cpus};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gang_of_eight_is_bound_whole_or_not_at_all() {
    // Room for seven.
    let Some(mut case) = Case::open("whole", 7, cpus(2)).await else { return };
    let _scheduler = case.scheduler(&[]);
    case.create(&[case.gang("eight", 8, "2")]).await;
    case.pod_group_where("eight", "told to wait", |group| {
        condition(group, "Unschedulable")["status"] == "True"
    })
    .await;
    case.assert_bound_once(0).await;

    nodes::create(&case.client, case.name, 7..8, cpus(2)).await.expect("one more node");
    case.bound(8).await;
    case.assert_bound_once(8).await.assert_at_most_per_node(1);
    let group = case
        .pod_group_where("eight", "running", |group| {
            group["status"]["phase"] == "Running" && group["status"]["running"] == 8
        })
        .await;
    assert_eq!(condition(&group, "Scheduled")["status"], "True", "{group}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_gang_waits_with_a_true_condition_and_starts_when_the_first_ends() {
    let Some(mut case) = Case::open("second", 4, cpus(4)).await else { return };
    let _scheduler = case.scheduler(&[]);
    let (first, second) = (case.gang("first", 8, "2"), case.gang("second", 8, "2"));
    case.create(std::slice::from_ref(&first)).await;
    case.pod_group_where("first", "running", |group| {
        group["status"]["phase"] == "Running" && group["status"]["running"] == 8
    })
    .await;

    case.create(std::slice::from_ref(&second)).await;
    let waiting = case
        .pod_group_where("second", "told to wait for all eight", |group| {
            let unschedulable = condition(group, "Unschedulable");
            unschedulable["status"] == "True"
                && unschedulable["message"].to_string().contains("8/8 tasks in gang unschedulable")
        })
        .await;
    let told = condition(&waiting, "Unschedulable");
    assert_eq!(told["reason"], "NotEnoughResources");
    let message = told["message"].as_str().expect("a text");
    assert!(message.contains("8 Pending, 8 minAvailable"), "{message}");
    assert_ne!(condition(&waiting, "Scheduled")["status"], "True", "{waiting}");
    assert_ne!(waiting["status"]["phase"], "Running");
    case.assert_bound_once(8).await.assert_at_most_per_node(2);

    // Only now may the first end: kwok lets pods with this annotation finish.
    let pods: Api<Pod> = Api::namespaced(case.client.clone(), case.name);
    let finish = json!({"metadata": {"annotations": {"tephra.sh/run-for": "1s"}}});
    for (pod, _) in first.pods() {
        pods.patch(&pod, &PatchParams::default(), &Patch::Merge(&finish)).await.expect("patched");
    }
    case.bound(16).await;
    case.assert_bound_once(16).await.assert_at_most_per_node(4);
    case.pod_group_where("second", "running and told so", |group| {
        group["status"]["phase"] == "Running"
            && group["status"]["running"] == 8
            && condition(group, "Scheduled")["status"] == "True"
    })
    .await;
    case.pod_group_where("first", "complete", |group| {
        group["status"]["phase"] == "Completed" && group["status"]["succeeded"] == 8
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_gangs_of_twenty_are_all_bound_and_no_pod_twice() {
    // Exactly as much room as is asked for.
    let Some(mut case) = Case::open("fifty", 100, cpus(10)).await else { return };
    let _scheduler = case.scheduler(&[]);
    let gangs: Vec<_> = (0..50).map(|index| case.gang(&format!("gang{index}"), 20, "1")).collect();
    case.create(&gangs).await;
    case.bound(1000).await;
    let bound = case.assert_bound_once(1000).await;
    bound.assert_at_most_per_node(10);
    bound.assert_whole(20);
}
