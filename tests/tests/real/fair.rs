//! Two teams of weights 3 and 1 and 300 jobs of theirs, under configuration `tephra`: while both have jobs that wait, starts follow the
//! weights; a team that was idle gets its turn at once when it comes, and no more than its share.

use std::collections::BTreeSet;
use std::ops::Range;

use jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use tephra_tests::rig::audit_log::Record;
use tephra_tests::rig::workload::{self, Gang};

use crate::case::{Case, cpus};

/// Jobs that run at the same time.
const PLACES: u32 = 16;
/// How long a job runs: long beside what a bind takes, so that shares of starts are shares of service.
const RUN_FOR: &str = "2s";

/// Creates jobs of one pod of one cpu that end by themselves.
async fn submit(case: &Case, queue: &str, team: &str, jobs: Range<u32>) {
    let job = |number| Gang {
        queue: queue.to_owned(),
        run_for: Some(RUN_FOR.to_owned()),
        ..case.gang(&format!("{team}{number}"), 1, "1")
    };
    case.create(&jobs.map(job).collect::<Vec<_>>()).await;
}

/// Pods of the case in the order in which their bindings were accepted.
fn starts(case: &mut Case) -> Vec<(Timestamp, String)> {
    let namespace = case.name;
    let records = case.writes().iter().filter(|record| record.accepted());
    let of_case = |record: &Record| {
        let (of, pod, _) = record.binding()?;
        (of == namespace).then(|| (record.answered, pod.to_owned()))
    };
    let mut starts: Vec<_> = records.filter_map(of_case).collect();
    starts.sort();
    starts
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn starts_of_two_teams_follow_their_weights_and_an_idle_team_gets_its_turn_at_once() {
    let Some(mut case) = Case::open("fair", 1, cpus(PLACES)).await else { return };
    let weight = json!({"spec": {"weight": 3}});
    let queues = workload::queues(&case.client);
    let by = PatchParams::default();
    queues.patch(case.name, &by, &Patch::Merge(&weight)).await.expect("weight 3");
    let _ = workload::create_queue(&case.client, "fair-light").await;

    submit(&case, case.name, "heavy", 0..240).await;
    let _scheduler = case.scheduler(&["--scheduler-conf=tephra"]);
    case.bound(40).await;
    submit(&case, "fair-light", "light", 0..1).await;
    let came = Timestamp::now();
    submit(&case, "fair-light", "light", 1..60).await;
    case.bound(300).await;

    let starts = starts(&mut case);
    assert_eq!(starts.iter().map(|(_, pod)| pod).collect::<BTreeSet<_>>().len(), 300);
    assert_eq!(starts.len(), 300, "each job starts once");
    let light: Vec<usize> = (0..300).filter(|&at| starts[at].1.starts_with("light")).collect();
    let (first, places) = (light[0], PLACES as usize);
    let passed = starts[..first].iter().filter(|(at, _)| *at > came).count();
    assert!(passed <= places, "{passed} of the others went first: {light:?}");
    let early = light.iter().filter(|&&at| at < first + places).count();
    assert!(early <= 5, "about a quarter of the places, not {early}: {light:?}");
    // Both teams have jobs that wait for 14 rounds from its first start.
    let end = first + 14 * places;
    let share = light.iter().filter(|&&at| at < end).count() as f64 / (end - first) as f64;
    assert!((share - 0.25).abs() <= 0.03 * 0.25, "{share}: {light:?}");
    case.assert_none_bound_twice();
}
