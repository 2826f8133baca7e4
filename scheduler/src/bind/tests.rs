//! The binder against a scripted API server: a list of answers, one per request, and a record of requests.

use std::sync::Arc;
use std::time::Duration;

use tephra_api::clock::SystemClock;
use tokio::time::Instant;

use super::*;
use crate::fence::Fence;
use crate::scripted::{Answer, Script};

fn bind() -> Bind {
    let pod = PodRef::new("ns", "a", "uid-a");
    Bind { pod, node: "n1".into(), created_ms: 0, decided: Instant::now() }
}

fn pod(uid: &str, node: Option<&str>) -> Answer {
    let pod = serde_json::json!({"metadata": {"uid": uid}, "spec": {"nodeName": node}});
    Answer::json(200, &pod)
}

async fn outcome(answers: Vec<Answer>) -> (Outcome, Vec<String>) {
    let script = Script::new(answers);
    let writer = Writer::new(script.client(), Fence::open(), Arc::default());
    let outcome = settle(&writer, &bind()).await;
    (outcome, script.requests())
}

const POST: &str = "POST /api/v1/namespaces/ns/pods/a/binding";
const GET: &str = "GET /api/v1/namespaces/ns/pods/a";

#[tokio::test(start_paused = true)]
async fn an_accepted_bind_takes_one_request_with_uid_and_node() {
    let script = Script::new(vec![Answer::status(201, "")]);
    let writer = Writer::new(script.client(), Fence::open(), Arc::default());
    assert_eq!(settle(&writer, &bind()).await, Outcome::Bound);
    assert_eq!(script.requests(), [POST]);
    let body: serde_json::Value = serde_json::from_slice(&script.bodies()[0]).unwrap();
    assert_eq!(body["metadata"]["uid"], "uid-a");
    assert_eq!(body["target"]["name"], "n1");
}

#[tokio::test(start_paused = true)]
async fn a_conflict_is_a_failure_unless_the_pod_is_already_on_our_node() {
    let refused = || Answer::status(409, "pod a is already assigned");
    let (result, requests) = outcome(vec![refused(), pod("uid-a", Some("n1"))]).await;
    assert_eq!((result, requests), (Outcome::Bound, vec![POST.to_owned(), GET.to_owned()]));
    let (result, _) = outcome(vec![refused(), pod("uid-a", Some("n2"))]).await;
    assert_eq!(
        result,
        Outcome::Failed("failed to bind to node n1: pod a is already assigned".to_owned())
    );
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_gone_fails_at_once() {
    let (result, requests) = outcome(vec![Answer::status(404, "pods \"a\" not found")]).await;
    let message = "failed to bind to node n1: pods \"a\" not found";
    assert_eq!((result, requests.len()), (Outcome::Failed(message.to_owned()), 1));
}

#[tokio::test(start_paused = true)]
async fn an_unknown_outcome_that_was_applied_is_not_sent_again() {
    let (result, requests) = outcome(vec![Answer::Broken, pod("uid-a", Some("n1"))]).await;
    assert_eq!((result, requests), (Outcome::Bound, vec![POST.to_owned(), GET.to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn an_unknown_outcome_that_was_not_applied_is_sent_again_to_the_same_node() {
    let answers = vec![Answer::status(500, "etcd"), pod("uid-a", None), Answer::status(201, "")];
    let (result, requests) = outcome(answers).await;
    assert_eq!(result, Outcome::Bound);
    assert_eq!(requests, [POST, GET, POST]);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_outcome_stays_open_while_the_server_is_away() {
    let answers = vec![Answer::Broken, Answer::Broken, Answer::Broken, pod("uid-a", Some("n1"))];
    let (result, requests) = outcome(answers).await;
    assert_eq!(result, Outcome::Bound);
    assert_eq!(requests, [POST, GET, GET, GET]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_recreated_under_the_same_name_fails_the_bind_of_its_predecessor() {
    let (result, _) = outcome(vec![Answer::Broken, pod("uid-b", Some("n1"))]).await;
    let message = "failed to bind to node n1: the pod was deleted and another one has its name";
    assert_eq!(result, Outcome::Failed(message.to_owned()));
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_honoured() {
    let start = Instant::now();
    let (result, requests) =
        outcome(vec![Answer::retry_after(429, 7), Answer::status(201, "")]).await;
    assert_eq!((result, requests.len()), (Outcome::Bound, 2));
    assert_eq!(start.elapsed(), Duration::from_secs(7));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_while_the_fence_is_closed() {
    let script = Script::new(vec![Answer::status(201, "")]);
    let writer = Writer::new(script.client(), Fence::closed(), Arc::default());
    assert_eq!(settle(&writer, &bind()).await, Outcome::Abandoned);
    assert!(script.requests().is_empty());
}

#[tokio::test(start_paused = true)]
async fn no_more_binds_than_the_limit_are_in_flight_and_all_are_reported() {
    let script = Script::slow(Duration::from_secs(1), vec![Answer::status(201, ""); 10]);
    let writer = Writer::new(script.client(), Fence::open(), Arc::default());
    let (send, queue) = mpsc::unbounded_channel();
    let (outcomes, mut reported) = mpsc::unbounded_channel();
    let binds: Vec<Bind> = (0..10)
        .map(|i| {
            let bind = bind();
            let pod = PodRef::new(&*bind.pod.namespace, &*bind.pod.name, &*format!("uid-{i}"));
            Bind { pod, ..bind }
        })
        .collect();
    send.send(binds).unwrap();
    drop(send);
    let watch = Watch { metrics: Arc::default(), clock: Arc::new(SystemClock) };
    run(queue, outcomes, writer, 3, watch).await;
    let mut uids = Vec::new();
    while let Some(Event::BindOk(uid)) = reported.recv().await {
        uids.push(uid);
    }
    assert_eq!(uids.len(), 10);
    assert_eq!(script.most_at_once(), 3);
}
