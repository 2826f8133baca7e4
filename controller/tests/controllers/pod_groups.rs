//! Plain pods get PodGroups.

use std::time::Duration;

use serde_json::{Value, json};
use tephra_controller::ControllerOptions;
use tephra_simulator::faults::{Fault, Faults, RequestInfo, WatchFault, WatchInfo};
use tokio::time::sleep;

use crate::cluster::{CONTROLLER, Cluster, pod, pod_of, replica_set, settle};

const GROUP_NAME: &str = "scheduling.k8s.io/group-name";

fn group_of(cluster: &Cluster, pod: &str) -> String {
    let pod = cluster.get("pods", pod).unwrap();
    pod["metadata"]["annotations"][GROUP_NAME].as_str().unwrap_or_default().to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_bare_pod_gets_a_group_of_its_own_with_one_creation_and_one_patch() {
    let cluster = Cluster::started().await;
    let before = cluster.now();
    cluster.apply([pod("a", |_| ())]).await;

    let uid = cluster.get("pods", "a").unwrap()["metadata"]["uid"].clone();
    let name = format!("podgroup-{}", uid.as_str().unwrap());
    assert_eq!(group_of(&cluster, "a"), name);
    let group = cluster.get("podgroups", &name).unwrap();
    assert_eq!(group["spec"]["minMember"], 1);
    assert_eq!(group["spec"]["minResources"]["requests.cpu"], "1");
    assert_eq!(group["status"]["phase"], "Pending");
    assert_eq!(group["metadata"]["ownerReferences"][0]["uid"], uid);

    let writes: Vec<String> = cluster
        .writes_since(before)
        .iter()
        .filter(|write| write.resource != "queues")
        .map(|write| format!("{} {} {}", write.verb, write.resource, write.outcome))
        .collect();
    assert_eq!(writes, ["create podgroups 201", "patch pods 200"]);
}

#[tokio::test(start_paused = true)]
async fn the_group_goes_with_the_pod_that_owns_it() {
    let cluster = Cluster::started().await;
    cluster.apply([pod("a", |_| ())]).await;
    assert_eq!(cluster.names("podgroups").len(), 1);
    cluster.delete("pods", "default", "a").await;
    assert_eq!(cluster.names("podgroups"), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn pods_of_others_and_pods_with_a_group_are_never_touched() {
    let cluster = Cluster::started().await;
    let before = cluster.now();
    cluster
        .apply([
            pod("other", |pod| pod["spec"]["schedulerName"] = json!("default-scheduler")),
            pod("grouped", |pod| pod["metadata"]["annotations"][GROUP_NAME] = json!("mine")),
            pod("ended", |pod| pod["status"] = json!({"phase": "Succeeded"})),
        ])
        .await;
    assert!(cluster.writes_since(before).is_empty());
    assert_eq!(cluster.names("podgroups"), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn all_pods_of_a_replica_set_share_one_group_that_inherits_from_it() {
    let mut cluster = Cluster::prepared().await;
    let annotations = json!({
        "scheduling.volcano.sh/group-min-member": "3", "volcano.sh/preemptable": "true"});
    cluster.server.apply_value(replica_set("web", 3, annotations)).unwrap();
    let owner = cluster.get("replicasets", "web").unwrap();
    for name in ["web-a", "web-b", "web-c"] {
        cluster.server.apply_value(pod_of(&owner, name)).unwrap();
    }
    cluster.start(ControllerOptions::default());
    settle().await;

    let name = format!("podgroup-{}", owner["metadata"]["uid"].as_str().unwrap());
    assert_eq!(cluster.names("podgroups"), [name.as_str()]);
    for pod in ["web-a", "web-b", "web-c"] {
        assert_eq!(group_of(&cluster, pod), name);
    }
    let group = cluster.get("podgroups", &name).unwrap();
    assert_eq!(group["spec"]["minMember"], 3);
    assert_eq!(group["spec"]["minResources"]["cpu"], "3");
    assert_eq!(group["metadata"]["annotations"], json!({"volcano.sh/preemptable": "true"}));
    assert_eq!(group["metadata"]["ownerReferences"][0]["kind"], "ReplicaSet");
}

#[tokio::test(start_paused = true)]
async fn without_inheritance_the_minimum_is_one() {
    let mut cluster = Cluster::prepared().await;
    let annotations = json!({
        "scheduling.volcano.sh/group-min-member": "3", "volcano.sh/preemptable": "true"});
    cluster.server.apply_value(replica_set("web", 3, annotations)).unwrap();
    let owner = cluster.get("replicasets", "web").unwrap();
    cluster.server.apply_value(pod_of(&owner, "web-a")).unwrap();
    let options =
        ControllerOptions { inherit_owner_annotations: false, ..ControllerOptions::default() };
    cluster.start(options);
    settle().await;
    let group = cluster.get("podgroups", &group_of(&cluster, "web-a")).unwrap();
    assert_eq!(group["spec"]["minMember"], 1);
    assert!(group["metadata"].get("annotations").is_none_or(|a| *a == json!({})));
}

#[tokio::test(start_paused = true)]
async fn a_changed_minimum_reaches_the_group_and_leaves_its_queue_alone() {
    let cluster = Cluster::started().await;
    cluster.apply([replica_set("web", 2, json!({}))]).await;
    let owner = cluster.get("replicasets", "web").unwrap();
    cluster.apply([pod_of(&owner, "web-a"), pod_of(&owner, "web-b")]).await;
    let name = group_of(&cluster, "web-a");
    let mut group = cluster.get("podgroups", &name).unwrap();
    group["spec"]["queue"] = json!("team-a"); // as the namespace rule of the webhook does
    cluster.apply([group]).await;

    let before = cluster.now();
    cluster
        .apply([replica_set("web", 2, json!({"scheduling.volcano.sh/group-min-member": "2"}))])
        .await;
    let group = cluster.get("podgroups", &name).unwrap();
    assert_eq!(group["spec"]["minMember"], 2);
    assert_eq!(group["spec"]["minResources"]["cpu"], "2");
    assert_eq!(group["spec"]["queue"], "team-a");
    let patches = cluster.writes_since(before).iter().filter(|w| w.resource == "podgroups").count();
    assert_eq!(patches, 1);
}

#[tokio::test(start_paused = true)]
async fn a_workload_scaled_to_zero_loses_its_group_and_gets_a_new_one_when_scaled_up() {
    let cluster = Cluster::started().await;
    cluster.apply([replica_set("web", 1, json!({}))]).await;
    let owner = cluster.get("replicasets", "web").unwrap();
    cluster.apply([pod_of(&owner, "web-a")]).await;
    let name = group_of(&cluster, "web-a");

    cluster.delete("pods", "default", "web-a").await;
    cluster.apply([replica_set("web", 0, json!({}))]).await;
    assert_eq!(cluster.names("podgroups"), [""; 0]);

    cluster.apply([replica_set("web", 1, json!({})), pod_of(&owner, "web-b")]).await;
    assert_eq!(group_of(&cluster, "web-b"), name);
    assert_eq!(cluster.names("podgroups"), [name]);
}

#[tokio::test(start_paused = true)]
async fn status_changes_of_a_workload_cause_no_requests_at_all() {
    let cluster = Cluster::started().await;
    cluster.apply([replica_set("web", 1, json!({}))]).await;
    let owner = cluster.get("replicasets", "web").unwrap();
    cluster.apply([pod_of(&owner, "web-a")]).await;
    let before = cluster.server.requests();
    let mut counted = cluster.get("replicasets", "web").unwrap();
    counted["status"] = json!({"replicas": 1, "readyReplicas": 1});
    cluster.apply([counted]).await;
    assert_eq!(cluster.server.requests(), before);
}

#[tokio::test(start_paused = true)]
async fn a_crash_after_any_write_is_made_good_after_the_restart() {
    for crash_after in 1..=4 {
        let mut cluster = Cluster::prepared().await;
        cluster.server.apply_value(pod("a", |_| ())).unwrap();
        cluster.server.apply_value(pod("b", |_| ())).unwrap();
        cluster.server.crash_after_write(CONTROLLER, crash_after);
        cluster.start(ControllerOptions::default());
        settle().await;
        cluster.stop().await;
        cluster.server.revive(CONTROLLER);
        cluster.start(ControllerOptions::default());
        settle().await;
        for name in ["a", "b"] {
            let pod = cluster.get("pods", name).unwrap();
            let uid = pod["metadata"]["uid"].as_str().unwrap().to_owned();
            assert_eq!(group_of(&cluster, name), format!("podgroup-{uid}"), "after {crash_after}");
        }
        assert_eq!(cluster.names("podgroups").len(), 2, "after {crash_after}");
        assert_eq!(cluster.names("queues"), ["default", "root"], "after {crash_after}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_same_history_leads_to_the_same_requests() {
    async fn run() -> Vec<(u64, String, Value)> {
        let cluster = Cluster::started().await;
        cluster.apply((0..30).map(|i| pod(&format!("p{}", i * 7 % 30), |_| ()))).await;
        let writes = cluster.writes_since(0).into_iter();
        writes.map(|w| (w.rv, format!("{} {}", w.verb, w.name), (*w.body).clone())).collect()
    }
    let first = run().await;
    let of = |what: &str| first.iter().filter(|(_, write, _)| write.starts_with(what)).count();
    assert_eq!((of("create podgroup-"), of("patch p")), (30, 30));
    assert_eq!(first, run().await);
}

/// Answers the first `times` requests of the controllers that change `resource` with `fault`.
struct Refuse {
    resource: &'static str,
    fault: Fault,
    times: u32,
}

impl Faults for Refuse {
    fn on_request(&mut self, request: &RequestInfo<'_>) -> Fault {
        let meant = request.identity == CONTROLLER
            && request.is_write()
            && request.resource == self.resource;
        if !meant || self.times == 0 {
            return Fault::None;
        }
        self.times -= 1;
        self.fault
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_group_is_told_once_on_the_pod_and_tried_until_it_is_accepted() {
    let cluster = Cluster::started().await;
    let fault = Fault::Reject(403, None);
    cluster.server.set_faults(Box::new(Refuse { resource: "podgroups", fault, times: 12 }));
    cluster.apply([pod("a", |_| ())]).await;
    assert_eq!(group_of(&cluster, "a"), "");
    sleep(Duration::from_secs(120)).await;
    assert!(group_of(&cluster, "a").starts_with("podgroup-"));
    let events = cluster.server.list_values("events");
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["involvedObject"]["name"], "a");
    assert_eq!(events[0]["reason"], "FailedCreatePodGroup");
    assert_eq!(events[0]["type"], "Warning");
}

#[tokio::test(start_paused = true)]
async fn conflicts_and_lost_answers_change_nothing_about_the_outcome() {
    for fault in [
        Fault::Reject(409, None),
        Fault::Reject(500, None),
        Fault::DropAfter,
        Fault::DropBefore,
        Fault::Delay(700),
    ] {
        for resource in ["podgroups", "pods"] {
            let cluster = Cluster::started().await;
            cluster.server.set_faults(Box::new(Refuse { resource, fault, times: 3 }));
            cluster.apply([pod("a", |_| ()), pod("b", |_| ())]).await;
            sleep(Duration::from_secs(30)).await;
            assert_eq!(cluster.names("podgroups").len(), 2, "{fault:?} {resource}");
            for pod in ["a", "b"] {
                assert!(group_of(&cluster, pod).starts_with("podgroup-"), "{fault:?} {resource}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_of_the_same_name_never_gets_the_group_of_its_predecessor() {
    let cluster = Cluster::started().await;
    // The first pod's patch is held up until another pod has taken its name.
    let fault = Fault::Delay(700);
    cluster.server.set_faults(Box::new(Refuse { resource: "pods", fault, times: 1 }));
    cluster.server.apply_value(pod("a", |_| ())).unwrap();
    sleep(Duration::from_millis(300)).await;
    cluster.server.delete_value("pods", "default", "a").unwrap();
    cluster.apply([pod("a", |_| ())]).await;
    let uid = cluster.get("pods", "a").unwrap()["metadata"]["uid"].clone();
    assert_eq!(group_of(&cluster, "a"), format!("podgroup-{}", uid.as_str().unwrap()));
}

/// Loses the first `times` pod events of the controllers without a trace.
struct Lose(u32);

impl Faults for Lose {
    fn on_watch_event(&mut self, event: &WatchInfo<'_>) -> WatchFault {
        if event.identity != CONTROLLER || event.resource != "pods" || self.0 == 0 {
            return WatchFault::Deliver;
        }
        self.0 -= 1;
        WatchFault::Drop
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_whose_event_was_lost_is_found_by_the_next_full_list() {
    let cluster = Cluster::started().await;
    cluster.server.set_faults(Box::new(Lose(1)));
    cluster.apply([pod("a", |_| ())]).await;
    assert_eq!(group_of(&cluster, "a"), "");
    sleep(ControllerOptions::default().relist_period).await;
    assert!(group_of(&cluster, "a").starts_with("podgroup-"));
}
