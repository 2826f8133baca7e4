//! Queues exist, have a state and counts.

use serde_json::{Value, json};
use tephra_controller::ControllerOptions;

use crate::cluster::{Cluster, group, queue, settle};

fn state(cluster: &Cluster, name: &str) -> String {
    let queue = cluster.get("queues", name).unwrap();
    queue["status"]["state"].as_str().unwrap_or_default().to_owned()
}

/// Sets `status.state` as somebody with `kubectl edit --subresource=status` would.
async fn set_state(cluster: &Cluster, name: &str, state: &str) {
    let mut queue = cluster.get("queues", name).unwrap();
    queue["status"]["state"] = json!(state);
    cluster.apply([queue]).await;
}

#[tokio::test(start_paused = true)]
async fn root_and_default_exist_and_are_open_soon_after_the_start() {
    let cluster = Cluster::started().await;
    assert_eq!(cluster.names("queues"), ["default", "root"]);
    for (name, reclaimable) in [("root", false), ("default", true)] {
        let queue = cluster.get("queues", name).unwrap();
        assert_eq!(queue["spec"]["weight"], 1);
        assert_eq!(queue["spec"]["reclaimable"], reclaimable);
        assert_eq!(state(&cluster, name), "Open");
    }
    assert_eq!(cluster.get("queues", "default").unwrap()["spec"]["parent"], "root");
}

#[tokio::test(start_paused = true)]
async fn an_existing_default_queue_is_left_as_it_is_and_a_deleted_one_comes_back() {
    let mut cluster = Cluster::prepared().await;
    let own = queue("default", json!({"weight": 7, "parent": "root", "capability": {"cpu": "4"}}));
    cluster.server.create_value(own).unwrap();
    cluster.start(ControllerOptions::default());
    settle().await;
    let spec = cluster.get("queues", "default").unwrap()["spec"].clone();
    assert_eq!((&spec["weight"], &spec["capability"]["cpu"]), (&json!(7), &json!("4")));

    cluster.delete("queues", "", "default").await;
    assert_eq!(cluster.get("queues", "default").unwrap()["spec"]["weight"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_new_queue_is_put_under_root_and_opened() {
    let cluster = Cluster::started().await;
    cluster.apply([queue("q", json!({"weight": 2}))]).await;
    assert_eq!(cluster.get("queues", "q").unwrap()["spec"]["parent"], "root");
    assert_eq!(state(&cluster, "q"), "Open");
}

#[tokio::test(start_paused = true)]
async fn pod_groups_are_counted_by_phase_under_the_queue_they_name_now() {
    let cluster = Cluster::started().await;
    cluster
        .apply([
            queue("q", json!({"weight": 1})),
            group("a", "q", "Pending"),
            group("b", "q", "Pending"),
            group("c", "q", "Inqueue"),
            group("d", "q", "Running"),
            group("e", "q", "Unknown"),
            group("f", "q", "Completed"),
            group("g", "", "Running"),
        ])
        .await;
    let counts = |name: &str| -> Vec<Value> {
        let status = cluster.get("queues", name).unwrap()["status"].clone();
        ["pending", "inqueue", "running", "unknown", "completed"]
            .iter()
            .map(|phase| status[phase].clone())
            .collect()
    };
    assert_eq!(counts("q"), [2, 1, 1, 1, 1]);
    assert_eq!(counts("default"), [0, 0, 1, 0, 0]);

    cluster.apply([group("a", "default", "Running")]).await;
    assert_eq!(counts("q"), [1, 1, 1, 1, 1]);
    assert_eq!(counts("default"), [0, 0, 2, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn many_changes_at_once_are_one_status_write_and_no_change_is_none() {
    let cluster = Cluster::started().await;
    cluster.apply([queue("q", json!({"weight": 1}))]).await;
    let before = cluster.now();
    cluster.apply((0..100).map(|i| group(&format!("g{i}"), "q", "Pending"))).await;
    assert_eq!(cluster.writes_since(before).len(), 1);

    let before = cluster.now();
    let mut same = group("g0", "q", "Pending");
    same["spec"]["minMember"] = json!(5);
    let mut scheduled = cluster.get("queues", "q").unwrap();
    scheduled["status"]["allocated"] = json!({"cpu": "1"});
    cluster.apply([same, scheduled]).await;
    assert_eq!(cluster.writes_since(before).len(), 0);
    let status = cluster.get("queues", "q").unwrap()["status"].clone();
    assert_eq!((&status["allocated"]["cpu"], &status["pending"]), (&json!("1"), &json!(100)));
}

#[tokio::test(start_paused = true)]
async fn a_closing_queue_is_closed_when_its_last_group_is_gone() {
    let cluster = Cluster::started().await;
    cluster.apply([queue("q", json!({"weight": 1})), group("a", "q", "Running")]).await;
    set_state(&cluster, "q", "Closing").await;
    assert_eq!(state(&cluster, "q"), "Closing");
    cluster.delete("podgroups", "default", "a").await;
    assert_eq!(state(&cluster, "q"), "Closed");
    cluster.apply([group("b", "q", "Pending")]).await;
    assert_eq!(state(&cluster, "q"), "Closed");
}

#[tokio::test(start_paused = true)]
async fn closing_a_queue_closes_the_tree_below_and_opening_it_opens_what_it_closed() {
    let cluster = Cluster::started().await;
    cluster
        .apply([
            queue("top", json!({"weight": 1})),
            queue("mid", json!({"weight": 1, "parent": "top"})),
            queue("leaf", json!({"weight": 1, "parent": "mid"})),
            queue("by-hand", json!({"weight": 1, "parent": "top"})),
            group("a", "leaf", "Running"),
        ])
        .await;
    set_state(&cluster, "by-hand", "Closed").await;
    set_state(&cluster, "top", "Closed").await;
    let states = || ["top", "mid", "leaf", "by-hand"].map(|name| state(&cluster, name));
    assert_eq!(states(), ["Closed", "Closed", "Closing", "Closed"]);
    let mark = |name: &str| {
        let queue = cluster.get("queues", name).unwrap();
        queue["metadata"]["annotations"]["volcano.sh/closed-by-parent"].clone()
    };
    assert_eq!((mark("mid"), mark("by-hand")), (json!("true"), Value::Null));

    set_state(&cluster, "top", "Open").await;
    assert_eq!(states(), ["Open", "Open", "Open", "Closed"]);
    assert_eq!((mark("mid"), mark("leaf")), (json!("false"), json!("false")));
}

#[tokio::test(start_paused = true)]
async fn a_queue_whose_parent_is_missing_still_gets_a_state_and_one_event_says_why() {
    let cluster = Cluster::started().await;
    cluster.apply([queue("q", json!({"weight": 1, "parent": "nowhere"}))]).await;
    assert_eq!(state(&cluster, "q"), "Open");
    tokio::time::sleep(std::time::Duration::from_secs(600)).await;
    let events = cluster.server.list_values("events");
    let texts: Vec<&str> = events.iter().map(|event| event["message"].as_str().unwrap()).collect();
    assert_eq!(
        texts,
        ["SyncQueue queue failed for parent queue nowhere of queue q does not exist"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_word_that_is_no_state_is_reported_and_kept() {
    let cluster = Cluster::started().await;
    cluster.apply([queue("q", json!({"weight": 1}))]).await;
    set_state(&cluster, "q", "Ajar").await;
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    assert_eq!(state(&cluster, "q"), "Ajar");
    let events = cluster.server.list_values("events");
    assert_eq!(events.len(), 1);
    assert!(events[0]["message"].as_str().unwrap().contains("`Ajar`"));
    set_state(&cluster, "q", "Closed").await;
    assert_eq!(state(&cluster, "q"), "Closed");
}

#[tokio::test(start_paused = true)]
async fn an_object_that_does_not_fit_its_type_costs_only_itself() {
    let mut cluster = Cluster::prepared().await;
    let mut odd = group("odd", "q", "Running");
    odd["spec"] = json!({"queue": 7, "minMember": "many", "minResources": ["cpu"]});
    odd["status"] = json!("fine");
    cluster.server.apply_value(odd).unwrap();
    cluster.server.apply_value(queue("strange", json!({"weight": "heavy", "parent": 3}))).unwrap();
    cluster.start(ControllerOptions::default());
    cluster.apply([queue("q", json!({"weight": 1})), group("a", "q", "Running")]).await;
    let status = cluster.get("queues", "q").unwrap()["status"].clone();
    assert_eq!((&status["state"], &status["running"]), (&json!("Open"), &json!(1)));
}

#[tokio::test(start_paused = true)]
async fn controllers_that_are_not_selected_do_nothing_and_run_ends_on_shutdown() {
    let mut cluster = Cluster::prepared().await;
    let options = ControllerOptions {
        controllers: "*,-queue-controller".parse().unwrap(),
        ..ControllerOptions::default()
    };
    cluster.start(options);
    settle().await;
    assert_eq!(cluster.names("queues"), [""; 0]);
    cluster.stop().await;
}
