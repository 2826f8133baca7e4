//! Faults F1 to F13 of the fault matrix before the real server, each while pods are evicted and bound. The scheduler speaks
//! through the fault proxy; the independent checker judges what the server stored. Each fault is shown to have happened.

mod stage;

use std::time::Duration;

use tephra_tests::proxy::{Active, Fault, Rule};
use tephra_tests::rig::patience::{PATIENCE, wait_until};

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
    under(
        "fault-conflict",
        &on_binds_and_evictions(Fault::Answer { code: 409, retry_after: None }, 2),
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f8_lost_answers_to_binds_and_evictions_cost_no_pod() {
    let Some(stage) = Stage::open("fault-lost").await else { return };
    let _scheduler = stage.scheduler();
    stage.fill().await;
    let rules = [("create", "pods/binding"), ("delete", "pods")]
        .map(|(verb, of)| stage.proxy.add(Rule::every(verb, of, Fault::LoseAnswer).times(2)));
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
