//! Faults F1 to F13 of the fault matrix before the real server, each while pods are evicted and bound. The scheduler speaks
//! through the fault proxy; the independent checker judges what the server stored. Each fault is shown to have happened.

mod stage;

use tephra_tests::proxy::{Fault, Rule};

use stage::Stage;

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
