//! What survives when a process is killed in the middle of its work.

use tephra_tests::rig::component::Component;
use tephra_tests::rig::patience::{PATIENCE, wait_for};

use crate::case::{Case, condition, cpus};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scheduler_killed_in_the_middle_loses_no_pod_binds_none_twice_and_leaves_gangs_whole() {
    // Room for 25 of 30 gangs: a gang cut in half must be completed before another one takes its place.
    let Some(mut case) = Case::open("killed", 25, cpus(10)).await else { return };
    let gangs: Vec<_> = (0..30).map(|index| case.gang(&format!("gang{index}"), 10, "1")).collect();
    case.create(&gangs).await;
    for moment in [35, 95, 165] {
        let mut scheduler = case.scheduler(&["--bind-concurrency=2"]);
        case.bound(moment).await;
        scheduler.kill();
        let bound = case.attempted().len();
        assert!(bound < 250, "killed too late to prove anything: {bound} bound");
    }
    let _scheduler = case.scheduler(&[]);
    case.bound(250).await;
    // The waiting gangs are told so, which takes a session that tried them.
    let whole = case.stored().await.expect("pods").by_gang();
    for gang in gangs.iter().filter(|gang| !whole.contains_key(&gang.name)) {
        case.pod_group_where(&gang.name, "told to wait", |group| {
            condition(group, "Unschedulable")["status"] == "True"
        })
        .await;
    }
    let bound = case.assert_bound_once(250).await;
    bound.assert_at_most_per_node(10);
    bound.assert_whole(10);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_api_server_killed_in_the_middle_costs_no_pod_and_no_gang() {
    let Some(mut case) = Case::open("outage", 20, cpus(10)).await else { return };
    let gangs: Vec<_> = (0..20).map(|index| case.gang(&format!("gang{index}"), 10, "1")).collect();
    case.create(&gangs).await;
    let mut scheduler = case.scheduler(&["--bind-concurrency=2"]);
    case.bound(35).await;
    case.rig.kill(Component::ApiServer).expect("it runs");
    let bound = case.attempted().len();
    assert!(bound < 200, "killed too late to prove anything: {bound} bound");
    case.rig.restart(Component::ApiServer).await.expect("it serves again");

    let bound = wait_for("200 pods bound", PATIENCE, async || {
        let bound = case.stored().await?;
        Ok(if bound.count() == 200 { Ok(bound) } else { Err(bound.count().to_string()) })
    });
    let bound = bound.await.expect("all are bound");
    bound.assert_at_most_per_node(10);
    bound.assert_whole(10);
    case.assert_none_bound_twice();
    assert!(scheduler.is_running(), "an outage shorter than a lease ends nobody");
}
