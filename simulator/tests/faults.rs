//! The fault hook, crashes and the history, as a fault simulation uses them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tephra_simulator::faults::{Fault, Faults, RequestInfo, WatchFault, WatchInfo};
use tephra_simulator::{ApiServer, ServerOptions};

/// Deals out faults from lists, one per request or event; afterwards nothing happens.
#[derive(Default)]
struct Script {
    requests: Vec<Fault>,
    events: Vec<WatchFault>,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Faults for Script {
    fn on_request(&mut self, r: &RequestInfo<'_>) -> Fault {
        let line = format!("{} {} {}/{}", r.identity, r.verb, r.resource, r.name);
        self.seen.lock().expect("lock").push(line);
        if r.verb == "watch" || self.requests.is_empty() {
            return Fault::None;
        }
        self.requests.remove(0)
    }

    fn on_watch_event(&mut self, _: &WatchInfo<'_>) -> WatchFault {
        if self.events.is_empty() { WatchFault::Deliver } else { self.events.remove(0) }
    }
}

fn map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}})).expect("fits")
}

fn maps(client: &Client) -> Api<ConfigMap> {
    Api::namespaced(client.clone(), "default")
}

async fn create(api: &Api<ConfigMap>, name: &str) -> Result<(), kube::Error> {
    api.create(&PostParams::default(), &map(name)).await.map(|_| ())
}

fn exists(server: &ApiServer, name: &str) -> bool {
    server.get_value("configmaps", "default", name).is_some()
}

#[tokio::test(start_paused = true)]
async fn request_faults_differ_in_what_is_applied_and_what_is_known() {
    let server = ApiServer::default();
    let api = maps(&server.client_as("me"));
    let seen = Arc::default();
    server.set_faults(Box::new(Script {
        requests: vec![
            Fault::Reject(429, Some(2)),
            Fault::DropBefore,
            Fault::DropAfter,
            Fault::Delay(5_000),
            Fault::HangAfter(1_000),
        ],
        seen: Arc::clone(&seen),
        ..Script::default()
    }));
    let Err(kube::Error::Api(status)) = create(&api, "a").await else { panic!("refused") };
    assert_eq!((status.code, status.reason.as_str()), (429, "TooManyRequests"));
    assert_eq!(status.details.as_ref().map(|d| d.retry_after_seconds), Some(2));
    assert!(!exists(&server, "a"));
    let lost = create(&api, "b").await.expect_err("lost");
    assert!(matches!(lost, kube::Error::Service(_)), "{lost:?}");
    assert!(!exists(&server, "b"));
    assert!(create(&api, "c").await.is_err() && exists(&server, "c"));
    let start = tokio::time::Instant::now();
    assert!(create(&api, "d").await.is_ok());
    assert_eq!(start.elapsed().as_secs(), 5);
    assert!(create(&api, "e").await.is_err() && exists(&server, "e"));
    assert_eq!(start.elapsed().as_secs(), 6);
    assert_eq!(seen.lock().expect("lock")[0], "me create configmaps/");
    let answered: Vec<(u16, bool)> = server
        .history()
        .iter()
        .filter(|r| &*r.identity == "me")
        .map(|r| (r.outcome, r.answered))
        .collect();
    assert_eq!(answered, [(429, true), (201, false), (201, true), (201, false)]);
}

fn describe(event: WatchEvent<ConfigMap>) -> String {
    match event {
        WatchEvent::Added(o) => o.name_any(),
        WatchEvent::Error(e) => e.code.to_string(),
        other => format!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn watch_faults_lose_double_swap_delay_and_end_events() {
    let server = ApiServer::default();
    let api = maps(&server.client());
    server.set_faults(Box::new(Script {
        events: vec![
            WatchFault::Drop,
            WatchFault::Duplicate,
            WatchFault::Swap,
            WatchFault::Delay(60_000),
            WatchFault::Gone410,
        ],
        ..Script::default()
    }));
    let rv = server.resource_version().to_string();
    let mut stream = api.watch(&WatchParams::default(), &rv).await.expect("watch").boxed();
    for name in ["a", "b", "c", "d", "e", "f"] {
        create(&api, name).await.expect("created");
    }
    let start = tokio::time::Instant::now();
    let mut seen = Vec::new();
    while let Some(event) = stream.try_next().await.expect("clean") {
        seen.push((describe(event), start.elapsed().as_secs()));
    }
    let wanted = [("b", 0), ("b", 0), ("d", 0), ("c", 0), ("e", 60), ("410", 60)];
    assert_eq!(seen, wanted.map(|(name, at)| (name.to_owned(), at)));
}

#[tokio::test(start_paused = true)]
async fn lagging_lists_show_the_past_only_where_a_client_allows_it() {
    let server = ApiServer::default();
    let api = maps(&server.client());
    let first = server.resource_version();
    create(&api, "a").await.expect("created");
    create(&api, "b").await.expect("created");
    server.set_faults(Box::new(Script {
        requests: vec![Fault::Stale(1), Fault::Stale(1)],
        ..Script::default()
    }));
    let lagging = ListParams::default().at("0").matching(kube::api::VersionMatch::NotOlderThan);
    let stale = api.list(&lagging).await.expect("list");
    let names: Vec<String> = stale.items.iter().map(ResourceExt::name_any).collect();
    assert_eq!(names, ["a"]);
    assert_eq!(stale.metadata.resource_version, Some((first + 1).to_string()));
    let quorum = api.list(&ListParams::default()).await.expect("list");
    assert_eq!(quorum.items.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_process_can_crash_after_any_of_its_writes() {
    let server = ApiServer::default();
    let api = maps(&server.client_as("scheduler"));
    let other = maps(&server.client_as("other"));
    server.crash_after_write("scheduler", 2);
    let rv = server.resource_version().to_string();
    let mut stream = api.watch(&WatchParams::default(), &rv).await.expect("watch").boxed();
    create(&api, "a").await.expect("the first write");
    assert_eq!(describe(stream.try_next().await.expect("open").expect("event")), "a");
    let waiting = tokio::spawn({
        let server = server.clone();
        async move { server.crashed("scheduler").await }
    });
    assert!(create(&api, "b").await.is_err(), "nobody is left to hear the answer");
    assert!(exists(&server, "b"), "but the write counts");
    tokio::time::timeout(Duration::from_secs(1), waiting).await.expect("told").expect("joined");
    assert!(stream.try_next().await.is_err(), "its watches break");
    assert!(create(&api, "c").await.is_err() && !exists(&server, "c"));
    assert!(other.list(&ListParams::default()).await.is_ok(), "others live on");
    assert_eq!(server.writes_of("scheduler"), 2);
    server.revive("scheduler");
    create(&api, "c").await.expect("alive again");
}

#[tokio::test(start_paused = true)]
async fn the_history_holds_every_write_with_its_writer_in_order() {
    let server = ApiServer::default();
    let begin = server.history().len() as u64;
    let api = maps(&server.client_as("me"));
    create(&api, "a").await.expect("created");
    assert!(create(&api, "a").await.is_err());
    let patch = json!({"data": {"k": "v"}});
    api.patch("a", &PatchParams::default(), &Patch::Merge(&patch)).await.expect("patched");
    api.get("a").await.expect("reads leave no trace");
    let owner = server.get_value("cm", "default", "a").expect("there");
    let mut child: Value =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}});
    child["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "ConfigMap",
        "name": "a", "uid": owner["metadata"]["uid"]}]);
    server.create_value(child).expect("created");
    api.delete("a", &Default::default()).await.expect("deleted");
    let lines: Vec<String> = server
        .history_since(begin)
        .iter()
        .filter(|r| &*r.identity != "fixture")
        .map(|r| format!("{} {} {} {}", r.identity, r.verb, r.name, r.outcome))
        .collect();
    assert_eq!(
        lines,
        [
            "me create a 201",
            "me create  409",
            "me patch a 200",
            "me delete a 200",
            "garbage-collector delete b 200",
        ]
    );
    let patched = &server.history_since(begin + 2)[0];
    assert_eq!(*patched.body, patch);
    assert_eq!(patched.after.as_ref().map(|a| a["data"]["k"].clone()), Some(json!("v")));
    assert_eq!(
        patched.rv.to_string(),
        patched
            .after
            .as_ref()
            .map_or("", |a| a["metadata"]["resourceVersion"].as_str().expect("rv"))
    );
    let off = ApiServer::new(ServerOptions { history_limit: 0, ..ServerOptions::default() });
    create(&maps(&off.client()), "a").await.expect("created");
    assert!(off.history().is_empty());
}

/// Writers and watchers that race each other; what happened, line by line.
async fn race() -> Vec<String> {
    let server = ApiServer::default();
    let mut tasks = Vec::new();
    for i in 0..4 {
        let api = maps(&server.client_as(&format!("w{i}")));
        tasks.push(tokio::spawn(async move {
            let mut stream = api.watch(&WatchParams::default(), "0").await.expect("watch").boxed();
            for n in 0..20 {
                // Whoever sees a map first adds the next one; the others get 409.
                let name = match stream.try_next().await {
                    Ok(Some(event)) => describe(event),
                    _ => break,
                };
                let _ = create(&api, &format!("{name}.{n}")).await;
                tokio::time::sleep(Duration::from_millis(u64::from(n % 3 == 0))).await;
            }
        }));
    }
    create(&maps(&server.client()), "x").await.expect("created");
    for task in tasks {
        task.await.expect("joined");
    }
    let line = |r: &tephra_simulator::WriteRecord| {
        format!("{} {} {} {} {} {}", r.seq, r.time_ms, r.identity, r.name, r.uid, r.outcome)
    };
    server.history().iter().map(line).collect()
}

#[test]
fn concurrent_clients_in_paused_time_repeat_themselves_exactly() {
    let run = || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .expect("runtime");
        runtime.block_on(race())
    };
    let first = run();
    assert!(first.len() > 60, "{} records", first.len());
    assert!(first.iter().any(|line| line.ends_with("409")));
    for _ in 0..5 {
        assert_eq!(run(), first);
    }
}
