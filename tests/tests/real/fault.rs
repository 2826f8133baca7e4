//! Faults F1 to F13 of the fault matrix before the real server, each while pods are evicted and bound. The scheduler speaks
//! through the fault proxy; the independent checker judges what the server stored. Each fault is shown to have happened.

mod stage;

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::json;
use tephra_tests::proxy::{Active, Fault, Rule};
use tephra_tests::rig::audit_log::Record;
use tephra_tests::rig::identity::Identity;
use tephra_tests::rig::manifests::SYSTEM_NAMESPACE;
use tephra_tests::rig::nodes;
use tephra_tests::rig::patience::{PATIENCE, wait_until};
use tephra_tests::rig::program::{SCHEDULER_LEASE, SchedulerFlags};

use crate::case::cpus;
use crate::evict::running;
use crate::lease::assert_fenced;
use stage::Stage;

/// The whole story with rules that are in force from the moment when gangs ask for room; each is to strike.
async fn under(name: &'static str, rules: &[Rule]) {
    let Some(stage) = Stage::open(name).await else { return };
    let _scheduler = stage.scheduler();
    stage.fill().await;
    let rules: Vec<_> = rules.iter().map(|rule| stage.proxy.add(rule.clone())).collect();
    stage.ask().await;
    stage.settle().await;
    for rule in rules {
        assert!(rule.struck() > 0, "{rule:?} met nothing");
    }
}

/// Waits until a rule has struck so often.
async fn struck(rule: &Active, times: u64) {
    let enough = async || Ok(rule.struck() >= times);
    wait_until("the fault has happened", PATIENCE, enough).await.expect("a fault");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f1_an_outage_in_the_middle_of_evictions_costs_no_pod() {
    let Some(stage) = Stage::open("fault-outage").await else { return };
    let mut scheduler = stage.scheduler();
    stage.fill().await;
    let evictions = stage.proxy.add(Rule::every("delete", "pods", Fault::Reset).skip(1));
    stage.ask().await;
    struck(&evictions, 1).await;
    let requests = stage.proxy.add(Rule::every("", "", Fault::Reset));
    let events = stage.proxy.add(Rule::every("watch", "", Fault::Cut));
    struck(&events, 1).await;
    struck(&requests, 5).await;
    stage.proxy.calm();
    stage.settle().await;
    assert!(scheduler.is_running(), "an outage ends nobody that has no lease");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f2_watches_that_end_or_break_off_in_a_line_are_resumed() {
    let rules = [
        Rule::every("watch", "pods", Fault::Cut).times(2),
        Rule::every("watch", "pods", Fault::Truncate).times(2),
        Rule::every("watch", "podgroups", Fault::Cut).times(1),
    ];
    under("fault-cut", &rules).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f3_expired_watches_are_listed_anew() {
    let rules =
        ["pods", "podgroups", "queues"].map(|of| Rule::every("watch", of, Fault::Expire).times(2));
    under("fault-expired", &rules).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f4_a_list_older_than_what_is_known_empties_no_node() {
    let rules = [
        Rule::every("watch", "pods", Fault::Expire).times(1),
        Rule::every("list", "pods", Fault::Stale).times(1),
    ];
    under("fault-stale", &rules).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f5_events_left_out_are_made_good_by_the_next_of_the_same_pod() {
    // The first changes are conditions of victims and of waiting pods, never a pod's last news.
    let lost = Rule::every("watch", "pods", Fault::Drop).naming(r#""type":"MODIFIED""#).times(2);
    under("fault-dropped", &[lost]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f6_events_told_twice_change_nothing() {
    let rules =
        ["pods", "podgroups", "queues"].map(|of| Rule::every("watch", of, Fault::Duplicate));
    under("fault-twice", &rules).await;
}

/// Rules for one fault each on binds and on evictions.
fn on_binds_and_evictions(fault: Fault, times: u64) -> [Rule; 2] {
    [("create", "pods/binding"), ("delete", "pods")]
        .map(|(verb, of)| Rule::every(verb, of, fault).times(times))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f7_binds_and_evictions_refused_by_a_conflict_are_settled() {
    let conflict = Fault::Answer { code: 409, retry_after: None };
    under("fault-conflict", &on_binds_and_evictions(conflict, 2)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f8_lost_answers_to_binds_and_evictions_cost_no_pod() {
    let Some(stage) = Stage::open("fault-lost").await else { return };
    let _scheduler = stage.scheduler();
    stage.fill().await;
    let rules = on_binds_and_evictions(Fault::LoseAnswer, 2).map(|rule| stage.proxy.add(rule));
    stage.ask().await;
    stage.settle().await;
    assert_eq!(rules.map(|rule| rule.struck()), [2, 2]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f9_a_busy_server_is_asked_again() {
    let refused = |code, retry_after| Fault::Answer { code, retry_after };
    let rules = [
        on_binds_and_evictions(refused(429, Some(1)), 1),
        on_binds_and_evictions(refused(503, None), 1),
        on_binds_and_evictions(Fault::Delay(Duration::from_secs(2)), 2),
    ];
    under("fault-busy", &rules.concat()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f10_a_scheduler_killed_between_the_binds_of_a_gang_leaves_it_whole() {
    let Some(stage) = Stage::open("fault-killed").await else { return };
    let mut first = stage.scheduler();
    stage.fill().await;
    let binds = stage.proxy.add(Rule::every("create", "pods/binding", Fault::Reset).skip(1));
    stage.ask().await;
    struck(&binds, 1).await;
    first.kill();
    stage.proxy.calm();
    let _second = stage.scheduler();
    stage.settle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f11_a_scheduler_cut_off_from_its_lease_amid_evictions_hands_over() {
    let Some(mut stage) = Stage::open("fault-deposed").await else { return };
    let flags = SchedulerFlags { lease: true, ..stage.flags() };
    let mut first = stage.case.start_scheduler(&flags);
    stage.fill().await;
    let rival = SchedulerFlags { identity: Identity::RIVAL, kubeconfig: None, ..flags };
    let _second = stage.case.start_scheduler(&rival);
    let refused = Fault::Answer { code: 503, retry_after: None };
    let evictions = stage.proxy.add(Rule::every("delete", "pods", refused).skip(1));
    let renewals = stage.proxy.add(Rule::every("", "leases", Fault::Reset));
    stage.ask().await;
    struck(&evictions, 1).await;
    struck(&renewals, 1).await;
    let status = first.ended(PATIENCE).await.expect("it ends without its lease");
    assert!(!status.success(), "{status}");
    running(&stage.case, "owner", 2).await;
    assert_fenced(&mut stage.case);
    stage.settle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f12_a_lease_taken_by_a_stranger_with_a_fast_clock_is_waited_for_by_ones_own() {
    let Some(mut stage) = Stage::open("fault-stranger").await else { return };
    let flags = SchedulerFlags { lease: true, ..stage.flags() };
    let mut first = stage.case.start_scheduler(&flags);
    stage.fill().await;
    let ahead = jiff::Timestamp::now() + Duration::from_secs(600);
    let taken = json!({"spec": {"holderIdentity": "stranger", "renewTime": format!("{ahead:.6}")}});
    let leases: Api<Lease> = Api::namespaced(stage.case.client.clone(), SYSTEM_NAMESPACE);
    leases
        .patch(SCHEDULER_LEASE, &PatchParams::default(), &Patch::Merge(&taken))
        .await
        .expect("taken");
    let status = first.ended(PATIENCE).await.expect("it ends without its lease");
    assert!(!status.success(), "{status}");

    let before = stage.case.writes().len();
    let _second = stage.case.start_scheduler(&flags);
    stage.ask().await;
    running(&stage.case, "owner", 2).await;
    let ours = |record: &&Record| record.user() == Identity::SCHEDULER.user && record.accepted();
    let next = stage.case.writes()[before..].iter().find(ours).expect("it writes");
    assert_eq!(next.resource(), "leases", "its first write takes the lease: {next:?}");
    stage.settle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f13_nodes_that_go_or_are_cordoned_while_binds_are_under_way_come_back_whole() {
    let Some(stage) = Stage::open("fault-node").await else { return };
    let (client, name) = (stage.case.client.clone(), stage.case.name);
    let _scheduler = stage.scheduler();
    stage.fill().await;
    let slow = Fault::Delay(Duration::from_secs(2));
    let binds = stage.proxy.add(Rule::every("create", "pods/binding", slow));
    nodes::create(&client, name, 2..3, cpus(4)).await.expect("a third node");
    stage.case.create(&[stage.case.gang("late", 4, "1")]).await;
    struck(&binds, 4).await;
    let nodes: Api<Node> = Api::all(client.clone());
    let third = nodes::node_name(name, 2);
    nodes.delete(&third, &DeleteParams::default()).await.expect("deleted");
    wait_until("the pods are bound to a node that is gone", PATIENCE, async || {
        Ok(stage.case.stored().await?.by_gang().get("late") == Some(&4))
    })
    .await
    .expect("bound");
    nodes::create(&client, name, 2..3, cpus(4)).await.expect("the third node again");
    running(&stage.case, "late", 4).await;

    let asked = binds.struck();
    stage.ask().await;
    struck(&binds, asked + 1).await;
    let cordon = async |unschedulable: bool| {
        let patch = json!({"spec": {"unschedulable": unschedulable}});
        for index in 0..2 {
            let node = nodes::node_name(name, index);
            let patch = Patch::Merge(&patch);
            nodes.patch(&node, &PatchParams::default(), &patch).await.expect("patched");
        }
    };
    cordon(true).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    cordon(false).await;
    stage.settle_with(4).await;
}
