//! Evictions: room for who may ask for it, nothing taken from anybody else, and queues that are closed.

use std::path::PathBuf;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;
use tephra_tests::rig::identity::Identity;
use tephra_tests::rig::patience::{PATIENCE, wait_for};
use tephra_tests::rig::workload::{self, Gang};

use crate::case::{Case, condition, cpus};

/// A configuration with these actions; proportion decides on shares.
pub(crate) fn configuration(case: &Case, actions: &str) -> PathBuf {
    let text = format!(
        "actions: \"{actions}\"\ntiers:\n- plugins: [{{name: priority}}, {{name: gang}}, {{name: conformance}}]\n- plugins: [{{name: predicates}}, {{name: proportion}}, {{name: nodeorder}}]\n"
    );
    let path =
        std::env::temp_dir().join(format!("tephra-{}-{}.conf", case.name, std::process::id()));
    std::fs::write(&path, text).expect("the configuration is written");
    path
}

/// Pods of a gang that exist and are not being deleted.
async fn alive(case: &Case, gang: &str) -> usize {
    let pods: Api<Pod> = Api::namespaced(case.client.clone(), case.name);
    let list = pods.list(&ListParams::default()).await.expect("pods");
    let of_gang = |pod: &&Pod| {
        let name = pod.metadata.name.as_deref().unwrap_or("");
        name.rsplit_once('-').is_some_and(|(group, _)| group == gang)
    };
    let stays = |pod: &&Pod| pod.metadata.deletion_timestamp.is_none();
    list.iter().filter(of_gang).filter(stays).count()
}

/// Pods of the case that its schedulers deleted.
pub(crate) fn evicted(case: &mut Case) -> usize {
    let namespace = case.name;
    let deletes = case.writes().iter().filter(|record| {
        let of_case = record.object_ref.as_ref().is_some_and(|it| it.namespace == namespace);
        of_case && record.accepted() && record.verb == "delete" && record.resource() == "pods"
    });
    let ours = [Identity::SCHEDULER.user, Identity::RIVAL.user];
    deletes.filter(|record| ours.contains(&record.user())).count()
}

pub(crate) async fn running(case: &Case, gang: &str, pods: u64) {
    let what = format!("{pods} running");
    case.pod_group_where(gang, &what, |group| {
        group["status"]["phase"] == "Running" && group["status"]["running"] == pods
    })
    .await;
}

/// The PriorityClass of [`urgent`]; it may be there from an earlier case on the same server.
pub(crate) async fn create_urgent_class(case: &Case) {
    let classes: Api<PriorityClass> = Api::all(case.client.clone());
    let class = PriorityClass {
        metadata: kube::core::ObjectMeta { name: Some("urgent".to_owned()), ..Default::default() },
        value: 1_000,
        ..PriorityClass::default()
    };
    let _ = classes.create(&PostParams::default(), &class).await;
}

/// A gang of higher priority in the case's queue.
pub(crate) fn urgent(case: &Case, members: u32) -> Gang {
    Gang { priority_class: Some("urgent".to_owned()), ..case.gang("urgent", members, "1") }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_of_higher_priority_takes_the_place_of_one_spare_pod_of_a_lower_gang() {
    let Some(mut case) = Case::open("preempt", 1, cpus(3)).await else { return };
    create_urgent_class(&case).await;
    let conf = configuration(&case, "enqueue, allocate, preempt, backfill");
    let _scheduler = case.scheduler(&[&format!("--scheduler-conf={}", conf.display())]);

    let low = Gang { min_member: 1, ..case.gang("low", 3, "1") };
    case.create(std::slice::from_ref(&low)).await;
    running(&case, "low", 3).await;

    case.create(&[urgent(&case, 1)]).await;
    running(&case, "urgent", 1).await;
    running(&case, "low", 2).await;
    assert_eq!((alive(&case, "low").await, evicted(&mut case)), (2, 1));
    case.assert_none_bound_twice();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_takes_its_share_back_and_no_more() {
    let Some(mut case) = Case::open("reclaim", 1, cpus(4)).await else { return };
    let _ = workload::create_queue(&case.client, "reclaim-other").await;
    let conf = configuration(&case, "enqueue, allocate, reclaim, backfill");
    let _scheduler = case.scheduler(&[&format!("--scheduler-conf={}", conf.display())]);

    let borrower = Gang { min_member: 1, ..case.gang("borrower", 4, "1") };
    case.create(&[borrower]).await;
    running(&case, "borrower", 4).await;

    let owner = Gang { queue: "reclaim-other".to_owned(), ..case.gang("owner", 2, "1") };
    case.create(&[owner]).await;
    running(&case, "owner", 2).await;
    running(&case, "borrower", 2).await;
    assert_eq!((alive(&case, "borrower").await, evicted(&mut case)), (2, 2));
    case.assert_none_bound_twice();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_queue_lets_its_gangs_run_and_starts_none_until_it_is_open_again() {
    let Some(mut case) = Case::open("closing", 1, cpus(4)).await else { return };
    let _scheduler = case.scheduler(&[]);
    case.create(&[case.gang("before", 2, "1")]).await;
    running(&case, "before", 2).await;

    let closed = json!({"status": {"state": "Closed"}});
    let queues = workload::queues(&case.client);
    queues
        .patch_status(case.name, &PatchParams::default(), &Patch::Merge(&closed))
        .await
        .expect("closed");
    wait_for("the queue stays closed", PATIENCE, async || {
        let queue = serde_json::to_value(queues.get(case.name).await?)?;
        let state = queue["status"]["state"].as_str().unwrap_or("").to_owned();
        Ok(if matches!(&*state, "Closed" | "Closing") { Ok(()) } else { Err(state) })
    })
    .await
    .expect("closed");
    case.create(&[case.gang("after", 2, "1")]).await;
    let told = case
        .pod_group_where("after", "told why it waits", |group| {
            condition(group, "Unschedulable")["reason"] == "QueueClosed"
        })
        .await;
    assert_eq!(told["status"]["phase"], "Pending", "{told}");
    assert_eq!(alive(&case, "before").await, 2);
    case.assert_bound_once(2).await;

    workload::open_queue(&case.client, case.name).await.expect("open");
    running(&case, "after", 2).await;
    case.assert_bound_once(4).await.assert_whole(2);
}
