//! What stands in the text.

use std::sync::Arc;

use tephra_core::laps::Efforts;
use tephra_core::overview::{JobOverview, QueueOverview, ShareOverview};

use super::*;

fn lines(text: &str, part: &str) -> Vec<String> {
    let found = text.lines().filter(|line| !line.starts_with('#') && line.contains(part));
    found.map(str::to_owned).collect()
}

#[test]
fn writes_are_counted_by_verb_and_resource() {
    let metrics = Metrics::new();
    metrics.api_write(Verb::Create, "/api/v1/namespaces/a/pods/b/binding");
    metrics.api_write(Verb::Patch, "/api/v1/namespaces/a/pods/b/status?fieldManager=x");
    assert_eq!(metrics.total_writes(), 2);
    assert_eq!(
        lines(&metrics.page(None), "tephra_api_writes"),
        [
            r#"tephra_api_writes_total{resource="pods/binding",verb="Create"} 1"#,
            r#"tephra_api_writes_total{resource="pods/status",verb="Patch"} 1"#
        ]
    );
}

#[test]
fn a_session_counts_what_it_refused_and_what_evictions_took() {
    let metrics = Metrics::new();
    let efforts = Efforts { attempts: 3, last_victims: Some(2), plans: vec!["preempt", "reclaim"] };
    let report = SessionReport { refused: 4, efforts, ..SessionReport::default() };
    metrics.session(&report, std::time::Duration::from_millis(1));
    metrics.session(&SessionReport::default(), std::time::Duration::from_millis(1));
    let text = metrics.page(None);
    assert_eq!(lines(&text, "tephra_sessions_total"), ["tephra_sessions_total 2"]);
    assert_eq!(
        lines(&text, "attempts"),
        [
            r#"volcano_schedule_attempts_total{result="unschedulable"} 4"#,
            "volcano_total_preemption_attempts 3",
        ]
    );
    assert_eq!(lines(&text, "victims"), ["volcano_pod_preemption_victims 2"]);
    assert_eq!(
        lines(&text, "transactions"),
        [
            r#"volcano_eviction_transactions_total{action="preempt"} 1"#,
            r#"volcano_eviction_transactions_total{action="reclaim"} 1"#,
        ]
    );
}

#[test]
fn a_placement_is_timed_for_each_pod_from_its_creation_and_from_that_of_its_group() {
    let metrics = Metrics::new();
    let gang = GangBind {
        group: tephra_core::event::ObjectKey::new("ns", "g"),
        min_member: 2,
        ready_before: 0,
        group_created_ms: 1_000,
        binds: Vec::new(),
        created_ms: vec![2_000, 3_000],
    };
    metrics.placed(&gang, 4_000);
    let text = metrics.page(None);
    assert_eq!(
        lines(&text, "job_scheduling_latency_milliseconds_sum"),
        ["volcano_e2e_job_scheduling_latency_milliseconds_sum 6000"]
    );
    let assumed = lines(&text, r#"_milliseconds_sum{stage="Assumed"}"#);
    assert_eq!(
        assumed,
        [r#"volcano_task_scheduling_latency_milliseconds_sum{stage="Assumed"} 3000"#]
    );
}

fn job(namespace: &str, name: &str) -> JobOverview {
    JobOverview {
        namespace: namespace.into(),
        name: name.into(),
        queue: "q".into(),
        created_ms: 1_000,
        placed_ms: Some(3_000),
        has_pods: true,
        ended: false,
        missing: 1,
        sessions_below: 5,
        share: 0.25,
    }
}

#[test]
fn jobs_of_one_name_in_two_namespaces_give_no_series_twice() {
    let overview = Overview { jobs: vec![job("a", "j"), job("b", "j")], ..Overview::default() };
    let text = Metrics::new().page(Some(Arc::new(overview)));
    assert_eq!(lines(&text, "retry"), [r#"volcano_job_retry_counts{job_id="j"} 5"#]);
    assert_eq!(
        lines(&text, "job_share"),
        [
            r#"volcano_job_share{job_ns="a",job_id="j"} 0.25"#,
            r#"volcano_job_share{job_ns="b",job_id="j"} 0.25"#,
        ]
    );
    assert_eq!(
        lines(&text, "scheduling_duration").first().map(String::as_str),
        Some(
            r#"volcano_e2e_job_scheduling_duration{job_name="j",queue="q",job_namespace="a"} 2000"#
        )
    );
}

#[test]
fn a_queue_without_jobs_has_its_allocation_and_no_share() {
    let amounts = |cpu: f64, gpu: f64| vec![("cpu".into(), cpu), ("gpu".into(), gpu)];
    let queue = |name: &str, has_jobs| QueueOverview {
        name: name.into(),
        weight: 2,
        has_jobs,
        allocated: amounts(500.0, 1000.0),
        request: Vec::new(),
        capability: None,
        share: Some(ShareOverview {
            deserved: amounts(1000.0, 0.0),
            real_capability: Vec::new(),
            share: 0.5,
            overused: false,
        }),
        waiting: 1,
        oldest_wait_ms: 1_500,
    };
    let queues = vec![queue("idle", false), queue("used", true)];
    let text = Metrics::new().page(Some(Arc::new(Overview { queues, ..Overview::default() })));
    assert_eq!(lines(&text, "queue_share"), [r#"volcano_queue_share{queue_name="used"} 0.5"#]);
    assert_eq!(
        lines(&text, "allocated_scalar"),
        [
            r#"volcano_queue_allocated_scalar_resources{queue_name="idle",resource="gpu"} 1000"#,
            r#"volcano_queue_allocated_scalar_resources{queue_name="used",resource="gpu"} 1000"#,
        ]
    );
    assert_eq!(
        lines(&text, "oldest").first().map(String::as_str),
        Some(r#"tephra_queue_oldest_wait_seconds{queue_name="idle"} 1.5"#)
    );
}
