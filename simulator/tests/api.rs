//! The in-process API server as kube-rs sees it: objects, conflicts, lists, watches, patches, deletion.

use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, Pod};
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch,
    PatchParams, PostParams, Preconditions, PropagationPolicy, WatchEvent, WatchParams,
};
use kube::runtime::watcher;
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tephra_simulator::{ApiServer, ServerOptions};

fn server() -> ApiServer {
    ApiServer::new(ServerOptions::default())
}

fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    })
}

fn config_map(name: &str, labels: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default", "labels": labels},
    })
}

fn typed<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("fits the type")
}

fn code(error: kube::Error) -> (u16, String) {
    match error {
        kube::Error::Api(status) => (status.code, status.reason.clone()),
        other => panic!("not an API error: {other}"),
    }
}

fn message(error: kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}

fn maps(client: &Client) -> Api<ConfigMap> {
    Api::namespaced(client.clone(), "default")
}

fn pods(client: &Client) -> Api<Pod> {
    Api::namespaced(client.clone(), "default")
}

fn crd(status: bool) -> Value {
    let subresources = if status { json!({"status": {}}) } else { json!({}) };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "shortNames": ["th"]},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": subresources,
                "schema": {"openAPIV3Schema": {"type": "object"}},
                "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
            }],
        },
    })
}

fn things(client: &Client) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("example.com", "v1", "Thing");
    Api::namespaced_with(client.clone(), "default", &ApiResource::from_gvk(&kind))
}

fn thing(name: &str) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": name},
        "spec": {"size": 1, "unknown": {"kept": true}}, "status": {"phase": "X"}})
}

#[tokio::test(start_paused = true)]
async fn created_objects_carry_system_fields_and_exist_once() {
    let client = server().client();
    let api = maps(&client);
    let created = api
        .create(&PostParams::default(), &typed(config_map("a", &json!({}))))
        .await
        .expect("created");
    assert_eq!(created.metadata.uid.as_deref().map(str::len), Some(36));
    let stamp =
        serde_json::to_value(&created).expect("json")["metadata"]["creationTimestamp"].clone();
    assert_eq!(stamp, "2026-01-01T00:00:00Z");
    let again = api.create(&PostParams::default(), &typed(config_map("a", &json!({})))).await;
    assert_eq!(code(again.expect_err("exists")), (409, "AlreadyExists".into()));
    let absent = api.get("b").await.expect_err("absent");
    assert_eq!(code(absent), (404, "NotFound".into()));
    let elsewhere: Api<ConfigMap> = Api::namespaced(client, "nowhere");
    let mut object: ConfigMap = typed(config_map("a", &json!({})));
    object.metadata.namespace = None;
    let refused =
        elsewhere.create(&PostParams::default(), &object).await.expect_err("no namespace");
    assert_eq!(message(refused), "namespaces \"nowhere\" not found");
}

#[tokio::test(start_paused = true)]
async fn generated_names_repeat_with_the_seed() {
    let mut runs = Vec::new();
    for _ in 0..2 {
        let client = server().client();
        let mut object: ConfigMap = typed(config_map("", &json!({})));
        object.metadata.name = None;
        object.metadata.generate_name = Some("x-".into());
        let created = maps(&client).create(&PostParams::default(), &object).await.expect("created");
        assert_eq!(created.name_any().len(), 7);
        runs.push((created.name_any(), created.uid()));
    }
    assert_eq!(runs[0], runs[1]);
}

#[tokio::test(start_paused = true)]
async fn stale_updates_conflict_and_equal_ones_write_nothing() {
    let client = server().client();
    let api = maps(&client);
    let first = api
        .create(&PostParams::default(), &typed(config_map("a", &json!({}))))
        .await
        .expect("created");
    let mut changed = first.clone();
    changed.data = Some([("k".to_owned(), "v".to_owned())].into());
    let second = api.replace("a", &PostParams::default(), &changed).await.expect("current");
    assert!(second.resource_version() > first.resource_version());
    let stale = api.replace("a", &PostParams::default(), &changed).await.expect_err("stale");
    assert_eq!(code(stale), (409, "Conflict".into()));
    let same = api.replace("a", &PostParams::default(), &second).await.expect("no change");
    assert_eq!(same.resource_version(), second.resource_version());
}

#[tokio::test(start_paused = true)]
async fn custom_resources_are_served_at_once_and_their_status_is_separate() {
    let server = server();
    server.create_value(crd(true)).expect("crd");
    let defined = server.get_value("crd", "", "things.example.com").expect("stored");
    let established = defined["status"]["conditions"]
        .as_array()
        .expect("conditions")
        .iter()
        .any(|c| c["type"] == "Established" && c["status"] == "True");
    assert!(established);
    let api = things(&server.client());
    let created = api.create(&PostParams::default(), &typed(thing("t"))).await.expect("created");
    assert_eq!(created.data.get("status"), None, "status comes through its subresource only");
    assert_eq!(created.data["spec"]["unknown"], json!({"kept": true}));
    assert_eq!(created.metadata.generation, Some(1));

    let status = json!({"spec": {"size": 9}, "status": {"phase": "Ready"}});
    let patched = api
        .patch_status("t", &PatchParams::default(), &Patch::Merge(&status))
        .await
        .expect("patched");
    assert_eq!(patched.data["spec"]["size"], 1);
    assert_eq!(patched.data["status"]["phase"], "Ready");
    assert_eq!(patched.metadata.generation, Some(1));

    let main = json!({"spec": {"size": 9}, "status": {"phase": "Lost"}});
    let patched =
        api.patch("t", &PatchParams::default(), &Patch::Merge(&main)).await.expect("patched");
    assert_eq!(patched.data["status"]["phase"], "Ready");
    assert_eq!(patched.metadata.generation, Some(2));

    let strategic = api
        .patch("t", &PatchParams::default(), &Patch::Strategic(&main))
        .await
        .expect_err("custom");
    assert_eq!(code(strategic).0, 415);
    server.delete_value("crd", "", "things.example.com").expect("deleted");
    assert_eq!(code(api.get("t").await.expect_err("gone")), (404, "NotFound".into()));
}

#[tokio::test(start_paused = true)]
async fn without_a_status_subresource_the_status_is_part_of_the_object() {
    let server = server();
    server.create_value(crd(false)).expect("crd");
    let api = things(&server.client());
    let created = api.create(&PostParams::default(), &typed(thing("t"))).await.expect("created");
    assert_eq!(created.data["status"]["phase"], "X");
    let status = json!({"status": {"phase": "Ready"}});
    let patched =
        api.patch("t", &PatchParams::default(), &Patch::Merge(&status)).await.expect("patched");
    assert_eq!(patched.data["status"]["phase"], "Ready");
    let refused = api
        .patch_status("t", &PatchParams::default(), &Patch::Merge(&status))
        .await
        .expect_err("none");
    assert_eq!(code(refused), (404, "NotFound".into()));
    let mut unversioned: DynamicObject = typed(thing("t"));
    unversioned.metadata.resource_version = None;
    let refused = api.replace("t", &PostParams::default(), &unversioned).await.expect_err("no rv");
    assert_eq!(code(refused), (422, "Invalid".into()));
}

#[tokio::test(start_paused = true)]
async fn lists_page_and_select() {
    let server = server();
    for i in 0..7 {
        let labels = json!({"parity": if i % 2 == 0 { "even" } else { "odd" }});
        server.create_value(config_map(&format!("m{i}"), &labels)).expect("created");
    }
    let api = maps(&server.client());
    let mut names = Vec::new();
    let mut params = ListParams::default().limit(3);
    loop {
        let page = api.list(&params).await.expect("page");
        names.extend(page.items.iter().map(ResourceExt::name_any));
        match page.metadata.continue_.filter(|c| !c.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => break,
        }
        // Changes between pages do not show in later pages.
        let name = format!("m{}x", names.len());
        server.create_value(config_map(&name, &json!({}))).expect("created");
    }
    assert_eq!(names, ["m0", "m1", "m2", "m3", "m4", "m5", "m6"]);
    let odd = api.list(&ListParams::default().labels("parity in (odd)")).await.expect("list");
    assert_eq!(odd.items.len(), 3);
    let one = api.list(&ListParams::default().fields("metadata.name=m3")).await.expect("list");
    assert_eq!(one.items.len(), 1);

    let first = api.list(&ListParams::default().limit(1)).await.expect("page");
    server.create_value(config_map("late", &json!({}))).expect("created");
    server.compact();
    let token = first.metadata.continue_.expect("more");
    let expired = api
        .list(&ListParams::default().limit(1).continue_token(&token))
        .await
        .expect_err("expired");
    assert_eq!(code(expired), (410, "Expired".into()));
}

async fn next(
    stream: &mut (impl futures::Stream<Item = kube::Result<WatchEvent<ConfigMap>>> + Unpin),
) -> (String, String) {
    match stream.try_next().await.expect("stream holds").expect("stream goes on") {
        WatchEvent::Added(o) => ("ADDED".into(), o.name_any()),
        WatchEvent::Modified(o) => ("MODIFIED".into(), o.name_any()),
        WatchEvent::Deleted(o) => ("DELETED".into(), o.name_any()),
        WatchEvent::Bookmark(b) => ("BOOKMARK".into(), b.metadata.resource_version),
        WatchEvent::Error(e) => ("ERROR".into(), e.code.to_string()),
    }
}

fn event(kind: &str, name: &str) -> (String, String) {
    (kind.into(), name.into())
}

#[tokio::test(start_paused = true)]
async fn watches_see_objects_enter_and_leave_their_selection() {
    let server = server();
    let api = maps(&server.client());
    let on = json!({"on": "1"});
    server.create_value(config_map("before", &on)).expect("created");
    let rv = server.resource_version().to_string();
    let params = WatchParams::default().labels("on=1").timeout(100);
    let mut stream = api.watch(&params, &rv).await.expect("watch").boxed();
    server.create_value(config_map("a", &json!({}))).expect("created");
    server.apply_value(config_map("a", &on)).expect("entered");
    server.apply_value(config_map("a", &json!({"on": "1", "x": "y"}))).expect("changed");
    server.apply_value(config_map("a", &json!({}))).expect("left");
    server.delete_value("cm", "default", "before").expect("deleted");
    assert_eq!(next(&mut stream).await, event("ADDED", "a"));
    assert_eq!(next(&mut stream).await, event("MODIFIED", "a"));
    assert_eq!(next(&mut stream).await, event("DELETED", "a"));
    assert_eq!(next(&mut stream).await, event("DELETED", "before"));
    // Bookmarks come while nothing happens, and the watch ends after its timeout.
    let rv = server.resource_version().to_string();
    assert_eq!(next(&mut stream).await, event("BOOKMARK", &rv));
    assert!(stream.try_next().await.expect("clean end").is_none());
}

#[tokio::test(start_paused = true)]
async fn watches_from_a_forgotten_version_get_410_in_the_form_asked_for() {
    let server = server();
    let api = maps(&server.client());
    server.create_value(config_map("a", &json!({}))).expect("created");
    let old = server.resource_version().to_string();
    server.create_value(config_map("b", &json!({}))).expect("created");
    let mut open = api.watch(&WatchParams::default(), &old).await.expect("watch").boxed();
    assert_eq!(next(&mut open).await, event("ADDED", "b"));
    server.compact();
    let mut stream = api.watch(&WatchParams::default(), &old).await.expect("watch").boxed();
    assert_eq!(next(&mut stream).await, event("ERROR", "410"));
    server.answer_gone_as_http(true);
    let refused = api.watch(&WatchParams::default(), &old).await.err().expect("refused");
    assert_eq!(code(refused), (410, "Expired".into()));
    // A watch that had seen everything before the compaction lives on.
    server.create_value(config_map("c", &json!({}))).expect("created");
    assert_eq!(next(&mut open).await, event("ADDED", "c"));
}

#[tokio::test(start_paused = true)]
async fn a_slow_watch_falls_out_of_the_window() {
    let server = ApiServer::new(ServerOptions { window: 2, ..ServerOptions::default() });
    let api = maps(&server.client());
    let rv = server.resource_version().to_string();
    let mut stream = api.watch(&WatchParams::default(), &rv).await.expect("watch").boxed();
    for name in ["a", "b", "c"] {
        server.create_value(config_map(name, &json!({}))).expect("created");
    }
    assert_eq!(next(&mut stream).await, event("ERROR", "410"));
}

/// Names in a watcher's store after `InitDone`, by applying its events.
async fn follow(config: watcher::Config, server: &ApiServer, until: &str) -> Vec<String> {
    let mut stream = watcher(maps(&server.client()), config).boxed();
    let mut names = std::collections::BTreeSet::new();
    let mut compacted = false;
    while let Some(event) = stream.next().await {
        match event {
            Ok(watcher::Event::Init) => names.clear(),
            Ok(watcher::Event::InitApply(o) | watcher::Event::Apply(o)) => {
                names.insert(o.name_any());
            }
            Ok(watcher::Event::Delete(o)) => {
                names.remove(&o.name_any());
            }
            Ok(watcher::Event::InitDone) if !compacted => {
                compacted = true;
                // Two changes that the watch will not see, for it will be told 410.
                server.set_window(1);
                server.delete_value("cm", "default", "m1").expect("deleted");
                server.create_value(config_map("n1", &json!({}))).expect("created");
                server.create_value(config_map(until, &json!({}))).expect("created");
            }
            Ok(watcher::Event::InitDone) | Err(_) => {}
        }
        if names.contains(until) && !names.contains("m1") {
            return names.into_iter().collect();
        }
    }
    panic!("the watcher ended");
}

#[tokio::test(start_paused = true)]
async fn kube_watchers_recover_from_410_in_both_list_styles() {
    for config in
        [watcher::Config::default().page_size(2), watcher::Config::default().streaming_lists()]
    {
        let server = server();
        for i in 0..5 {
            server.create_value(config_map(&format!("m{i}"), &json!({}))).expect("created");
        }
        let names = follow(config, &server, "z").await;
        assert_eq!(names, ["m0", "m2", "m3", "m4", "n1", "z"]);
    }
}

#[tokio::test(start_paused = true)]
async fn all_patch_types_apply_and_faulty_ones_are_told_apart() {
    let server = server();
    let api = pods(&server.client());
    server.create_value(pod("p")).expect("created");
    let params = PatchParams::default();
    let rv = api.get("p").await.expect("there").resource_version().expect("has one");
    let json_patch = |rv: &str| -> Patch<Value> {
        Patch::Json(typed(json!([
            {"op": "test", "path": "/metadata/resourceVersion", "value": rv},
            {"op": "add", "path": "/metadata/annotations", "value": {"a": "1"}},
        ])))
    };
    let patched = api.patch("p", &params, &json_patch(&rv)).await.expect("test holds");
    assert_eq!(patched.annotations().get("a").map(String::as_str), Some("1"));
    let failed = api.patch("p", &params, &json_patch(&rv)).await.expect_err("test fails");
    assert_eq!(code(failed), (422, "Invalid".into()));
    let merge = json!({"metadata": {"annotations": {"a": null, "b": "2"}, "resourceVersion": rv}});
    let stale = api.patch("p", &params, &Patch::Merge(&merge)).await.expect_err("old version");
    assert_eq!(code(stale), (409, "Conflict".into()));
    for reason in ["One", "Two"] {
        let strategic = json!({"status": {"conditions": [
            {"type": "PodScheduled", "status": "False", "reason": reason}]}});
        let patched = api
            .patch_status("p", &params, &Patch::Strategic(&strategic))
            .await
            .expect("merged by type");
        let conditions = patched.status.and_then(|s| s.conditions).expect("conditions");
        assert_eq!(conditions.len(), 1);
        assert_eq!(conditions[0].reason.as_deref(), Some(reason));
    }
    let absent = api.patch("q", &params, &Patch::Merge(&json!({}))).await.expect_err("absent");
    assert_eq!(code(absent), (404, "NotFound".into()));
}

#[tokio::test(start_paused = true)]
async fn applying_creates_then_updates_and_records_the_manager() {
    let client = server().client();
    let api = maps(&client);
    let params = PatchParams::apply("me");
    let config = |data: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data});
    let created = api
        .patch("a", &params, &Patch::Apply(&config(json!({"x": "1", "y": "2"}))))
        .await
        .expect("created");
    let again = api
        .patch("a", &params, &Patch::Apply(&config(json!({"x": "1", "y": "2"}))))
        .await
        .expect("same");
    assert_eq!(created.resource_version(), again.resource_version());
    let less =
        api.patch("a", &params, &Patch::Apply(&config(json!({"x": "1"})))).await.expect("less");
    assert_eq!(less.data, Some([("x".to_owned(), "1".to_owned())].into()));
    assert_eq!(less.managed_fields()[0].manager.as_deref(), Some("me"));
    let other = api
        .patch("a", &PatchParams::apply("you"), &Patch::Apply(&config(json!({"x": "3"}))))
        .await
        .expect_err("conflict");
    assert_eq!(code(other), (409, "Conflict".into()));
}

async fn bind(client: &Client, name: &str, node: &str, uid: Option<&str>) -> kube::Result<Value> {
    let mut metadata = json!({"name": name});
    if let Some(uid) = uid {
        metadata["uid"] = uid.into();
    }
    let body = json!({"apiVersion": "v1", "kind": "Binding", "metadata": metadata,
        "target": {"apiVersion": "v1", "kind": "Node", "name": node}});
    let request = http::Request::post(format!("/api/v1/namespaces/default/pods/{name}/binding"))
        .header("content-type", "application/json")
        .body(body.to_string().into_bytes())
        .expect("request");
    client.request(request).await
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_bound_once_and_only_if_it_is_the_one_meant() {
    let server = server();
    let client = server.client();
    server.create_value(pod("p")).expect("created");
    let other = bind(&client, "p", "n1", Some("other-uid")).await.expect_err("another pod");
    assert_eq!(code(other), (409, "Conflict".into()));
    let status = bind(&client, "p", "n1", None).await.expect("bound");
    assert_eq!(status["status"], "Success");
    let bound = server.get_value("pods", "default", "p").expect("there");
    assert_eq!(bound["spec"]["nodeName"], "n1");
    assert_eq!(bound["status"]["conditions"][0]["type"], "PodScheduled");
    assert_eq!(bound["status"]["conditions"][0]["status"], "True");
    let again = bind(&client, "p", "n2", None).await.expect_err("bound");
    assert_eq!(
        message(again),
        "Operation cannot be fulfilled on pods/binding \"p\": pod p is already assigned to node \"n1\""
    );
    assert_eq!(code(bind(&client, "q", "n1", None).await.expect_err("absent")).0, 404);
    let mut gated = pod("g");
    gated["spec"]["schedulingGates"] = json!([{"name": "x"}]);
    server.create_value(gated).expect("created");
    assert_eq!(code(bind(&client, "g", "n1", None).await.expect_err("gated")).0, 409);
}

#[tokio::test(start_paused = true)]
async fn bound_pods_are_deleted_gracefully_and_unbound_ones_at_once() {
    let server = server();
    let client = server.client();
    let api = pods(&client);
    server.create_value(pod("free")).expect("created");
    api.delete("free", &DeleteParams::default()).await.expect("deleted");
    assert!(server.get_value("pods", "default", "free").is_none());

    server.create_value(pod("p")).expect("created");
    bind(&client, "p", "n1", None).await.expect("bound");
    api.delete("p", &DeleteParams::default()).await.expect("marked");
    let marked = server.get_value("pods", "default", "p").expect("still there");
    assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 30);
    assert_eq!(marked["metadata"]["deletionTimestamp"], "2026-01-01T00:00:30Z");
    api.delete("p", &DeleteParams::default()).await.expect("again");
    assert_eq!(
        server.get_value("pods", "default", "p"),
        Some(marked),
        "a second delete changes nothing"
    );
    let refused = api
        .delete(
            "p",
            &DeleteParams {
                preconditions: Some(Preconditions {
                    uid: Some("other".into()),
                    ..Preconditions::default()
                }),
                ..DeleteParams::default()
            },
        )
        .await
        .expect_err("another uid");
    assert_eq!(code(refused), (409, "Conflict".into()));
    api.delete("p", &DeleteParams::default().grace_period(0)).await.expect("killed");
    assert!(server.get_value("pods", "default", "p").is_none());
}

#[tokio::test(start_paused = true)]
async fn finalizers_hold_an_object_until_the_last_is_gone() {
    let server = server();
    let api = maps(&server.client());
    let mut object = config_map("a", &json!({}));
    object["metadata"]["finalizers"] = json!(["x/y"]);
    server.create_value(object).expect("created");
    let rv = server.resource_version().to_string();
    let mut stream = api.watch(&WatchParams::default(), &rv).await.expect("watch").boxed();
    api.delete("a", &DeleteParams::default()).await.expect("marked");
    assert!(api.get("a").await.expect("held").metadata.deletion_timestamp.is_some());
    let add = json!({"metadata": {"finalizers": ["x/y", "z"]}});
    let refused =
        api.patch("a", &PatchParams::default(), &Patch::Merge(&add)).await.expect_err("too late");
    assert_eq!(code(refused), (422, "Invalid".into()));
    let none = json!({"metadata": {"finalizers": null}});
    api.patch("a", &PatchParams::default(), &Patch::Merge(&none)).await.expect("released");
    assert_eq!(code(api.get("a").await.expect_err("gone")).0, 404);
    assert_eq!(next(&mut stream).await, event("MODIFIED", "a"));
    assert_eq!(next(&mut stream).await, event("DELETED", "a"));
}

fn owned(name: &str, owner: &Value, blocks: bool) -> Value {
    let mut object = config_map(name, &json!({}));
    object["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"], "blockOwnerDeletion": blocks,
    }]);
    object
}

#[tokio::test(start_paused = true)]
async fn dependents_follow_their_owner_as_the_propagation_policy_says() {
    let server = server();
    let api = maps(&server.client());
    let exists = |name: &str| server.get_value("cm", "default", name).is_some();

    let owner = server.create_value(config_map("bg", &json!({}))).expect("created");
    let child = server.create_value(owned("bg-1", &owner, true)).expect("created");
    server.create_value(owned("bg-2", &child, true)).expect("created");
    api.delete("bg", &DeleteParams::background()).await.expect("deleted");
    assert!(!exists("bg") && !exists("bg-1") && !exists("bg-2"));

    let owner = server.create_value(config_map("or", &json!({}))).expect("created");
    server.create_value(owned("or-1", &owner, true)).expect("created");
    let orphan = DeleteParams {
        propagation_policy: Some(PropagationPolicy::Orphan),
        ..DeleteParams::default()
    };
    api.delete("or", &orphan).await.expect("deleted");
    assert!(!exists("or") && exists("or-1"));
    let kept = server.get_value("cm", "default", "or-1").expect("kept");
    assert!(kept["metadata"].get("ownerReferences").is_none());

    let owner = server.create_value(config_map("fg", &json!({}))).expect("created");
    let mut child = owned("fg-1", &owner, true);
    child["metadata"]["finalizers"] = json!(["x/y"]);
    server.create_value(child).expect("created");
    api.delete("fg", &DeleteParams::foreground()).await.expect("marked");
    assert!(exists("fg") && exists("fg-1"), "the owner waits for what blocks it");
    let none = json!({"metadata": {"finalizers": []}});
    api.patch("fg-1", &PatchParams::default(), &Patch::Merge(&none)).await.expect("released");
    assert!(!exists("fg") && !exists("fg-1"));

    let gone = json!({"metadata": {"name": "never", "uid": "no-such-uid"}});
    server.create_value(owned("late", &gone, false)).expect("created");
    assert!(!exists("late"), "an owner that does not exist takes its dependent along");
}

#[tokio::test(start_paused = true)]
async fn a_namespace_takes_its_contents_along() {
    let server = server();
    let client = server.client();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    for name in ["free", "bound"] {
        let mut object = pod(name);
        object["metadata"]["namespace"] = json!("team");
        if name == "bound" {
            object["spec"]["nodeName"] = json!("n1");
        }
        server.create_value(object).expect("created");
    }
    namespaces.delete("team", &DeleteParams::default()).await.expect("begun");
    assert!(server.get_value("pods", "team", "free").is_none());
    let ending = server.get_value("ns", "", "team").expect("waits for the bound pod");
    assert_eq!(ending["status"]["phase"], "Terminating");
    let api: Api<Pod> = Api::namespaced(client, "team");
    let mut late = pod("late");
    late["metadata"]["namespace"] = json!("team");
    let refused = api.create(&PostParams::default(), &typed(late)).await.expect_err("ending");
    assert_eq!(code(refused), (403, "Forbidden".into()));
    api.delete("bound", &DeleteParams::default().grace_period(0)).await.expect("killed");
    assert!(server.get_value("ns", "", "team").is_none());
}

#[tokio::test(start_paused = true)]
async fn events_are_one_store_with_two_faces() {
    use k8s_openapi::api::core::v1::Event as CoreEvent;
    use k8s_openapi::api::events::v1::Event as NewEvent;
    let client = server().client();
    let new: Api<NewEvent> = Api::namespaced(client.clone(), "default");
    let event: NewEvent = typed(json!({
        "metadata": {"name": "e"}, "reason": "Scheduled", "note": "bound", "type": "Normal",
        "regarding": {"kind": "Pod", "name": "p", "namespace": "default", "uid": "u"},
        "eventTime": "2026-01-01T00:00:00.000000Z", "action": "Binding",
        "reportingController": "tephra", "reportingInstance": "tephra-0",
    }));
    new.create(&PostParams::default(), &event).await.expect("created");
    let core: Api<CoreEvent> = Api::namespaced(client, "default");
    let about = ListParams::default().fields("involvedObject.uid=u,reason=Scheduled");
    let found = core.list(&about).await.expect("list");
    assert_eq!(found.items.len(), 1);
    assert_eq!(found.items[0].message.as_deref(), Some("bound"));
}

#[tokio::test(start_paused = true)]
async fn evictions_respect_disruption_budgets() {
    let server = server();
    let client = server.client();
    for name in ["a", "b"] {
        let mut object = pod(name);
        object["metadata"]["labels"] = json!({"app": "x"});
        object["spec"]["nodeName"] = json!("n");
        object["status"] =
            json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
        server.create_value(object).expect("created");
    }
    server
        .create_value(json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": "pdb"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}},
        }))
        .expect("created");
    let api = pods(&client);
    api.evict("a", &Default::default()).await.expect("one may go");
    let evicted = server.get_value("pods", "default", "a").expect("graceful");
    assert!(evicted["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(evicted["status"]["conditions"][1]["type"], "DisruptionTarget");
    let refused = api.evict("b", &Default::default()).await.expect_err("the last stays");
    assert_eq!(code(refused), (429, "TooManyRequests".into()));
}

#[tokio::test(start_paused = true)]
async fn discovery_and_version_serve_kube_rs() {
    let server = server();
    server.create_value(crd(true)).expect("crd");
    let client = server.client();
    assert_eq!(client.apiserver_version().await.expect("version").git_version, "v1.35.3");
    for aggregated in [false, true] {
        let discovery = kube::Discovery::new(client.clone());
        let discovery =
            if aggregated { discovery.run_aggregated().await } else { discovery.run().await };
        let discovery = discovery.expect("discovered");
        let kind = GroupVersionKind::gvk("example.com", "v1", "Thing");
        let (resource, capabilities) = discovery.resolve_gvk(&kind).expect("known");
        assert_eq!(resource.plural, "things");
        assert!(capabilities.subresources.iter().any(|(r, _)| r.plural == "status"));
    }
}

#[tokio::test(start_paused = true)]
async fn faulty_requests_get_a_clear_400() {
    let client = server().client();
    let send = |body: &'static str| {
        let request = http::Request::post("/api/v1/namespaces/default/configmaps")
            .header("content-type", "application/json")
            .body(body.as_bytes().to_vec())
            .expect("request");
        client.request::<Value>(request)
    };
    for (body, part) in [
        ("{\"metadata\":", "couldn't parse JSON: EOF while parsing"),
        ("[]", "not a JSON object"),
        ("{\"kind\":\"Pod\"}", "the kind in the data (Pod) does not match"),
    ] {
        let error = send(body).await.expect_err("refused");
        assert!(error.to_string().contains(part), "{error}");
        assert_eq!(code(error).0, 400);
    }
    let nodes: Api<Node> = Api::all(client);
    let bad: Node = typed(json!({"metadata": {"name": "Bad_Name"}}));
    let error = nodes.create(&PostParams::default(), &bad).await.expect_err("bad name");
    assert_eq!(code(error), (422, "Invalid".into()));
}

#[tokio::test(start_paused = true)]
async fn watches_of_a_dropped_resource_end() {
    let server = server();
    server.create_value(crd(true)).expect("crd");
    let api = things(&server.client());
    let rv = server.resource_version().to_string();
    let mut stream = api.watch(&WatchParams::default(), &rv).await.expect("watch").boxed();
    server.delete_value("crd", "", "things.example.com").expect("deleted");
    let end = tokio::time::timeout(Duration::from_secs(5), stream.try_next()).await;
    assert!(end.expect("at once").expect("clean").is_none());
    server.create_value(crd(true)).expect("back again");
    assert!(api.create(&PostParams::default(), &typed(thing("t"))).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn kubectls_watches_get_tables_and_metadata_watches_get_metadata() {
    use futures::AsyncBufReadExt;
    let server = server();
    server.create_value(pod("p")).expect("created");
    for (accept, kind) in [
        ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", "Table"),
        ("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", "PartialObjectMetadata"),
    ] {
        let request = http::Request::get("/api/v1/namespaces/default/pods?watch=1")
            .header("accept", accept)
            .body(Vec::new())
            .expect("request");
        let stream = server.client().request_stream(request).await.expect("watch");
        let mut lines = Box::pin(stream.lines());
        let line = lines.try_next().await.expect("open").expect("event");
        let event: Value = serde_json::from_str(&line).expect("json");
        assert_eq!(event["type"], "ADDED");
        assert_eq!(event["object"]["kind"], kind);
    }
}
