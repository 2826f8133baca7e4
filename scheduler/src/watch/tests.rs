//! A reader against a scripted API server. Requests beyond the script hang, as an idle watch does.

use serde_json::json;
use tephra_api::clock::SystemClock;
use tephra_process::serve::MetricsText;

use super::kind::{HYPER_NODES, Nodes, Pods, QUEUES};
use super::*;
use crate::decode::Names;
use crate::scripted::{Answer, Script};

fn node(name: &str, version: u64, zone: &str) -> serde_json::Value {
    json!({"metadata": {"name": name, "resourceVersion": version.to_string(),
                        "labels": {"zone": zone}}})
}

fn list(version: u64, items: &[serde_json::Value]) -> Answer {
    Answer::json(
        200,
        &json!({"metadata": {"resourceVersion": version.to_string()}, "items": items}),
    )
}

fn watch(events: &[(&str, serde_json::Value)]) -> Answer {
    let line = |(kind, object): &(&str, serde_json::Value)| {
        format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n")
    };
    Answer::text(200, &events.iter().map(line).collect::<String>())
}

struct Read {
    told: Vec<String>,
    requests: Vec<String>,
}

/// Runs a reader over the script until it hangs on a request beyond it.
async fn read<K: Kind>(kind: K, answers: Vec<Answer>) -> Read {
    let count = answers.len() + 1;
    let script = Script::new(answers);
    let (feed, mut told) = mpsc::channel(1024);
    let shared = Shared {
        client: script.client(),
        feed,
        metrics: Arc::default(),
        clock: Arc::new(SystemClock),
        audit_period: Duration::from_secs(100_000),
        seed: 1,
    };
    let reader = tokio::spawn(run(kind, shared));
    while script.requests().len() < count {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    reader.abort();
    let mut lines = Vec::new();
    while let Some(feed) = told.recv().await {
        match feed {
            Feed::Events(events) => lines.extend(events.iter().map(short)),
            Feed::Synced(_) => lines.push("synced".to_owned()),
            Feed::Unsynced(_) => lines.push("unsynced".to_owned()),
            Feed::Rejected(error) => lines.push(format!("rejected {}", error.path)),
        }
    }
    Read { told: lines, requests: script.requests() }
}

fn short(event: &Event) -> String {
    match event {
        Event::Node(node) => {
            format!("{} {}", node.name, node.labels.first().map_or("", |l| l.1.as_str()))
        }
        Event::NodeDeleted(name) => format!("{name} gone"),
        Event::Pod(pod) => format!("{} {}", pod.key.name, pod.uid),
        Event::PodDeleted(uid) => format!("{uid} gone"),
        Event::HyperNode(object) => object.name.clone(),
        Event::HyperNodeDeleted(name) => format!("{name} gone"),
        other => format!("{other:?}"),
    }
}

fn nodes() -> Nodes {
    Nodes::new(Vec::new())
}

#[tokio::test(start_paused = true)]
async fn a_kind_is_listed_in_pages_and_then_watched_from_the_version_of_the_list() {
    let first = Answer::json(
        200,
        &json!({"metadata": {"resourceVersion": "10", "continue": "a+/="},
                "items": [node("a", 1, "x")]}),
    );
    let second = list(10, &[node("b", 2, "y")]);
    let read = read(nodes(), vec![first, second]).await;
    assert_eq!(read.told, ["a x", "b y", "synced"]);
    assert_eq!(read.requests[0], "GET /api/v1/nodes?limit=500");
    assert_eq!(read.requests[1], "GET /api/v1/nodes?limit=500&continue=a%2B%2F%3D");
    assert!(read.requests[2].contains("watch=true") && read.requests[2].contains("Version=10&"));
}

#[tokio::test(start_paused = true)]
async fn a_cluster_without_the_kind_of_hypernodes_has_none_until_it_comes() {
    let unknown = || Answer::json(404, &json!({"kind": "Status", "code": 404}));
    let object = json!({"metadata": {"name": "h", "resourceVersion": "3"}});
    let expired = Answer::json(410, &json!({"kind": "Status", "code": 410}));
    let answers = vec![unknown(), list(3, &[object]), expired, unknown()];
    let seen = read(HYPER_NODES, answers).await;
    assert_eq!(seen.told, ["synced", "h", "synced", "unsynced", "h gone", "synced"]);
    assert!(!seen.requests[1].contains("watch=true"), "{:?}", seen.requests);
    // Other kinds are needed: the reader goes on asking for them.
    let seen = read(QUEUES, vec![unknown(), unknown(), list(3, &[])]).await;
    assert_eq!(seen.told, ["synced"]);
}

#[tokio::test(start_paused = true)]
async fn changes_are_told_once_and_heartbeats_and_late_events_not_at_all() {
    let events = watch(&[
        ("MODIFIED", node("a", 11, "x")),
        ("MODIFIED", node("a", 12, "y")),
        ("MODIFIED", node("a", 12, "y")),
        ("MODIFIED", node("a", 9, "old")),
        ("BOOKMARK", json!({"metadata": {"resourceVersion": "50"}})),
    ]);
    let read = read(nodes(), vec![list(10, &[node("a", 5, "x")]), events]).await;
    assert_eq!(read.told, ["a x", "synced", "a y"]);
    assert!(read.requests[2].contains("resourceVersion=50&"));
}

#[tokio::test(start_paused = true)]
async fn an_expired_watch_lists_again_and_what_is_missing_is_gone() {
    let expired = watch(&[("ERROR", json!({"kind": "Status", "code": 410, "reason": "Expired"}))]);
    for end in [expired, Answer::status(410, "too old")] {
        let answers = vec![
            list(10, &[node("a", 5, "x"), node("b", 6, "x")]),
            end,
            list(20, &[node("a", 15, "y")]),
        ];
        let read = read(nodes(), answers).await;
        assert_eq!(read.told, ["a x", "b x", "synced", "unsynced", "a y", "b gone", "synced"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_broken_watch_resumes_from_the_last_version_without_a_list() {
    let answers = vec![
        list(10, &[]),
        watch(&[("ADDED", node("a", 11, "x"))]),
        Answer::Broken,
        Answer::status(503, "later"),
        watch(&[("DELETED", node("a", 12, "x"))]),
    ];
    let read = read(nodes(), answers).await;
    assert_eq!(read.told, ["synced", "a x", "a gone"]);
    assert!(read.requests[2..5].iter().all(|r| r.contains("resourceVersion=11&")));
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_fails_again_and_again_without_progress_lists_anew() {
    let mut answers = vec![list(10, &[node("a", 5, "x")])];
    answers.extend(vec![Answer::status(504, "too large resource version"); 5]);
    answers.push(list(12, &[node("a", 11, "y")]));
    let read = read(nodes(), answers).await;
    assert_eq!(read.told, ["a x", "synced", "unsynced", "a y", "synced"]);
}

#[tokio::test(start_paused = true)]
async fn a_list_older_than_what_was_seen_is_not_believed_unless_it_stays_so() {
    let gone = || Answer::status(410, "too old");
    let stale = || list(5, &[node("a", 3, "old")]);
    let answers =
        vec![list(10, &[node("a", 8, "x")]), gone(), stale(), list(20, &[node("a", 8, "x")])];
    let read_once = read(nodes(), answers).await;
    assert_eq!(read_once.told, ["a x", "synced", "unsynced", "unsynced", "synced"]);
    let answers = vec![list(10, &[node("a", 8, "x")]), gone(), stale(), stale(), stale(), stale()];
    let rolled_back = read(nodes(), answers).await;
    let unsynced = ["unsynced"; 4];
    assert_eq!(
        rolled_back.told,
        [&["a x", "synced"][..], &unsynced, &["a old", "synced"]].concat()
    );
}

#[tokio::test(start_paused = true)]
async fn a_malformed_object_costs_only_itself() {
    let bad = json!({"metadata": {"name": "bad", "resourceVersion": "6"},
                     "status": {"allocatable": {"cpu": "1Gib"}}});
    let read = read(nodes(), vec![list(10, &[bad, node("a", 5, "x")])]).await;
    assert_eq!(read.told, ["rejected status.allocatable.cpu", "a x", "synced"]);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_leaves_the_selector_is_gone() {
    let selector = vec![("zone".to_owned(), "x".to_owned())];
    let events = watch(&[("MODIFIED", node("a", 11, "y"))]);
    let answers = vec![list(10, &[node("a", 5, "x"), node("b", 6, "z")]), events];
    let read = read(Nodes::new(selector), answers).await;
    assert_eq!(read.told, ["a x", "synced", "a gone"]);
}

fn pod(
    name: &str,
    uid: &str,
    version: u64,
    node: &str,
    scheduler: &str,
    phase: &str,
) -> serde_json::Value {
    json!({"metadata": {"name": name, "namespace": "ns", "uid": uid,
                        "resourceVersion": version.to_string()},
           "spec": {"schedulerName": scheduler, "nodeName": node, "containers": [{"name": "c"}]},
           "status": {"phase": phase}})
}

#[tokio::test(start_paused = true)]
async fn pods_of_others_are_told_only_while_they_take_up_a_node() {
    let answers = vec![
        list(
            10,
            &[
                pod("mine", "m", 1, "", "volcano", "Pending"),
                pod("other", "o", 2, "", "default-scheduler", "Pending"),
            ],
        ),
        watch(&[
            ("MODIFIED", pod("other", "o", 11, "n", "default-scheduler", "Running")),
            ("MODIFIED", pod("other", "o", 12, "n", "default-scheduler", "Succeeded")),
            ("DELETED", pod("other", "o", 13, "n", "default-scheduler", "Succeeded")),
        ]),
    ];
    let read = read(Pods::new(Names::new(["volcano"])), answers).await;
    assert_eq!(read.told, ["mine m", "synced", "other o", "o gone"]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_recreated_under_its_name_is_another_pod() {
    let answers = vec![
        list(10, &[pod("a", "u1", 1, "", "volcano", "Pending")]),
        watch(&[
            ("DELETED", pod("a", "u1", 11, "", "volcano", "Pending")),
            ("ADDED", pod("a", "u2", 12, "", "volcano", "Pending")),
            ("MODIFIED", pod("a", "u1", 9, "n", "volcano", "Pending")),
        ]),
    ];
    let read = read(Pods::new(Names::new(["volcano"])), answers).await;
    assert_eq!(read.told, ["a u1", "synced", "u1 gone", "a u2"]);
}

#[tokio::test(start_paused = true)]
async fn an_event_lost_silently_is_found_by_the_next_comparison_with_a_list() {
    let script = Script::new(vec![
        list(10, &[node("a", 5, "x")]),
        watch(&[("BOOKMARK", json!({"metadata": {"resourceVersion": "30"}}))]),
    ]);
    let (feed, mut told) = mpsc::channel(1024);
    let metrics: Arc<Metrics> = Arc::default();
    let shared = Shared {
        client: script.client(),
        feed,
        metrics: metrics.clone(),
        clock: Arc::new(SystemClock),
        audit_period: Duration::from_secs(300),
        seed: 1,
    };
    let reader = tokio::spawn(run(nodes(), shared));
    // By then the second watch hangs in the script, as an idle one does.
    tokio::time::sleep(Duration::from_secs(290)).await;
    script.push(list(40, &[node("a", 20, "y")]));
    tokio::time::sleep(Duration::from_secs(110)).await;
    reader.abort();
    let mut events = Vec::new();
    while let Some(feed) = told.recv().await {
        if let Feed::Events(batch) = feed {
            events.extend(batch.iter().map(short));
        }
    }
    assert_eq!(events, ["a x", "a y"]);
    assert!(metrics.text().await.contains(r#"tephra_cache_drift_total{kind="Node"} 1"#));
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_a_kind_that_only_plugins_read_when_it_may_not_be_listed() {
    let refused = || Answer::status(403, "forbidden");
    let budgets = || super::kind::DISRUPTION_BUDGETS;
    let read_budgets = read(budgets(), vec![refused(), list(10, &[])]).await;
    let [unreadable, readable] =
        [false, true].map(|yes| short(&Event::DisruptionBudgetsReadable(yes)));
    assert_eq!(read_budgets.told, [&*unreadable, "synced", &*readable, "synced"]);
    let unknown = read(budgets(), vec![Answer::status(404, "no such kind"), list(10, &[])]).await;
    assert_eq!(unknown.told, ["synced", "synced"]);
    let busy = read(budgets(), vec![Answer::status(503, "later"), list(10, &[])]).await;
    assert_eq!(busy.told, ["synced"], "it will be there soon");
    assert_eq!(read(nodes(), vec![refused(), list(10, &[])]).await.told, ["synced"]);
}

#[tokio::test(start_paused = true)]
async fn sessions_go_on_while_a_kind_that_only_plugins_read_is_listed_again() {
    let expired = watch(&[("ERROR", json!({"kind": "Status", "code": 410, "reason": "Expired"}))]);
    let read =
        read(super::kind::RESOURCE_QUOTAS, vec![list(10, &[]), expired, list(20, &[])]).await;
    assert_eq!(read.told, ["synced", "synced"]);
}
