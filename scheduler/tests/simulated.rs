//! The whole scheduler against the in-process API server, in virtual time: gangs are bound, faults of single
//! requests are settled, and leadership moves without a write by the deposed.

#![expect(clippy::unwrap_used, reason = "a failed step of a test is a failed test")]

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tephra_scheduler::lease::LeaseOptions;
use tephra_scheduler::lease::step::Timings;
use tephra_scheduler::{Scheduler, SchedulerOptions};
use tephra_simulator::faults::{Fault, Faults, RequestInfo, WatchFault, WatchInfo};
use tephra_simulator::{ApiServer, ServerOptions, WriteRecord};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

struct Cluster {
    server: ApiServer,
    admin: kube::Client,
}

impl Cluster {
    fn with_nodes(count: usize) -> Self {
        let server = ApiServer::new(ServerOptions::default());
        let cluster = Self { admin: server.client_as("admin"), server };
        for crd in tephra_api::scheduling::crds() {
            cluster.create(serde_json::to_value(crd).unwrap());
        }
        cluster.create(json!({"apiVersion": "v1", "kind": "Namespace",
                              "metadata": {"name": "volcano-system"}}));
        cluster.create(queue("default"));
        for index in 0..count {
            cluster.create(node(&format!("n{index}")));
        }
        cluster
    }

    fn create(&self, object: Value) {
        self.server.create_value(object).unwrap();
    }

    async fn get(&self, path: &str) -> Value {
        let request = http::Request::get(path).body(Vec::new()).unwrap();
        self.admin.request(request).await.unwrap()
    }

    fn gang(&self, name: &str, members: usize) {
        let group = json!({
            "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
            "metadata": {"name": name, "namespace": "team"},
            "spec": {"minMember": members, "queue": "default",
                     "minResources": {"cpu": members.to_string()}},
            "status": {"phase": "Pending"},
        });
        self.create(group);
        for index in 0..members {
            let pod = json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": format!("{name}-{index}"), "namespace": "team",
                             "annotations": {"scheduling.k8s.io/group-name": name}},
                "spec": {"schedulerName": "volcano", "containers": [
                    {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]},
            });
            self.create(pod);
        }
    }

    async fn label_pod(&self, name: &str) {
        let request = http::Request::patch(format!("/api/v1/namespaces/team/pods/{name}"))
            .header("content-type", "application/merge-patch+json")
            .body(br#"{"metadata":{"labels":{"touched":"yes"}}}"#.to_vec())
            .unwrap();
        self.admin.request::<Value>(request).await.unwrap();
    }

    async fn bound(&self) -> usize {
        let pods = self.get("/api/v1/pods").await;
        let pods = pods["items"].as_array().unwrap();
        pods.iter().filter(|pod| pod["spec"]["nodeName"].is_string()).count()
    }

    async fn until_bound(&self, wanted: usize) {
        for _ in 0..2_400 {
            if self.bound().await == wanted {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("only {} of {wanted} pods are bound", self.bound().await);
    }

    fn start(&self, identity: &str, lease: bool) -> Running {
        let options = SchedulerOptions {
            lease: lease.then(|| LeaseOptions {
                namespace: "volcano-system".to_owned(),
                name: "volcano".to_owned(),
                identity: identity.to_owned(),
                timings: Timings::default(),
            }),
            ..SchedulerOptions::default()
        };
        let client = self.server.client_as(identity);
        let scheduler = Scheduler::new(client, options, self.server.clock());
        let stop = CancellationToken::new();
        Running { task: tokio::spawn(scheduler.run(stop.clone())), stop }
    }

    /// Binding requests, applied or not.
    fn binds(&self) -> Vec<WriteRecord> {
        let all = self.server.history().into_iter();
        all.filter(|write| write.subresource == "binding").collect()
    }
}

struct Running {
    task: JoinHandle<anyhow::Result<()>>,
    stop: CancellationToken,
}

impl Running {
    async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap().unwrap();
    }
}

fn queue(name: &str) -> Value {
    json!({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
           "metadata": {"name": name}, "spec": {"weight": 1, "reclaimable": true},
           "status": {"state": "Open"}})
}

fn node(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
           "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"},
                      "capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"}}})
}

/// Does one thing to the first binding request of each pod.
struct FirstBind {
    fault: Fault,
    seen: std::collections::BTreeSet<String>,
}

impl FirstBind {
    fn each(fault: Fault) -> Box<Self> {
        Box::new(Self { fault, seen: Default::default() })
    }
}

impl Faults for FirstBind {
    fn on_request(&mut self, request: &RequestInfo<'_>) -> Fault {
        let first = request.subresource == "binding" && self.seen.insert(request.name.to_owned());
        if first { self.fault } else { Fault::None }
    }
}

#[tokio::test(start_paused = true)]
async fn a_gang_is_bound_with_one_write_a_pod_and_a_larger_one_waits_with_a_condition() {
    let cluster = Cluster::with_nodes(2);
    cluster.gang("small", 4);
    cluster.gang("large", 9);
    let scheduler = cluster.start("a", false);
    cluster.until_bound(4).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(cluster.bound().await, 4);
    assert_eq!(cluster.binds().len(), 4);
    let path = "/apis/scheduling.volcano.sh/v1beta1/namespaces/team/podgroups";
    let large = cluster.get(&format!("{path}/large")).await;
    let conditions = large["status"]["conditions"].to_string();
    assert!(
        conditions.contains("Unschedulable") || large["status"]["phase"] == "Pending",
        "{large}"
    );
    let events = cluster.get("/api/v1/namespaces/team/events").await;
    let told = events["items"].as_array().unwrap().iter();
    let scheduled = told.filter(|event| event["reason"] == "Scheduled").count();
    assert!(scheduled <= 1, "{events}");
    scheduler.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_refused_bind_is_decided_anew_and_no_pod_is_bound_twice() {
    let cluster = Cluster::with_nodes(2);
    cluster.server.set_faults(FirstBind::each(Fault::Reject(409, None)));
    cluster.gang("g", 4);
    let scheduler = cluster.start("a", false);
    cluster.until_bound(4).await;
    let applied = cluster.binds().into_iter().filter(WriteRecord::applied).count();
    assert_eq!(applied, 4);
    scheduler.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_bind_whose_answer_was_lost_is_settled_by_a_read_and_not_sent_again() {
    let cluster = Cluster::with_nodes(2);
    cluster.server.set_faults(FirstBind::each(Fault::DropAfter));
    cluster.gang("g", 4);
    let scheduler = cluster.start("a", false);
    cluster.until_bound(4).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(cluster.binds().len(), 4);
    scheduler.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_bind_that_never_reached_the_server_is_sent_again_to_the_same_node() {
    let cluster = Cluster::with_nodes(2);
    cluster.server.set_faults(FirstBind::each(Fault::DropBefore));
    cluster.gang("g", 4);
    let scheduler = cluster.start("a", false);
    cluster.until_bound(4).await;
    assert_eq!(cluster.binds().into_iter().filter(WriteRecord::applied).count(), 4);
    scheduler.stop().await;
}

/// Every pod event reaches the watches two seconds late.
struct LatePods;

impl Faults for LatePods {
    fn on_watch_event(&mut self, event: &WatchInfo<'_>) -> WatchFault {
        if event.resource == "pods" { WatchFault::Delay(2_000) } else { WatchFault::Deliver }
    }
}

#[tokio::test(start_paused = true)]
async fn events_from_before_a_bind_that_arrive_after_it_do_not_bind_the_pod_again() {
    let cluster = Cluster::with_nodes(0);
    cluster.gang("g", 4);
    let scheduler = cluster.start("a", false);
    tokio::time::sleep(Duration::from_secs(3)).await;
    cluster.server.set_faults(Box::new(LatePods));
    for index in 0..4 {
        cluster.label_pod(&format!("g-{index}")).await;
    }
    cluster.create(node("n0"));
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!((cluster.bound().await, cluster.binds().len()), (4, 4));
    scheduler.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_cut_off_ends_and_writes_nothing_after_its_successor_leads() {
    let cluster = Cluster::with_nodes(4);
    let first = cluster.start("a", true);
    cluster.gang("one", 4);
    cluster.until_bound(4).await;
    let second = cluster.start("b", true);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(cluster.binds().iter().all(|bind| &*bind.identity == "a"));
    cluster.server.kill("a");
    cluster.gang("two", 4);
    assert!(first.task.await.unwrap().unwrap_err().to_string().contains("lost the lease"));
    cluster.server.revive("a");
    cluster.until_bound(8).await;
    let writes = cluster.server.history();
    let taken = writes
        .iter()
        .find(|write| write.resource == "leases" && write.applied() && &*write.identity == "b")
        .unwrap();
    let late = writes.iter().filter(|write| write.seq > taken.seq && &*write.identity == "a");
    assert_eq!(late.count(), 0);
    second.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_clean_end_hands_the_lease_over_at_once() {
    let cluster = Cluster::with_nodes(2);
    let first = cluster.start("a", true);
    cluster.gang("one", 4);
    cluster.until_bound(4).await;
    first.stop().await;
    let lease = "/apis/coordination.k8s.io/v1/namespaces/volcano-system/leases/volcano";
    assert_eq!(cluster.get(lease).await["spec"]["holderIdentity"].as_str().unwrap_or(""), "");
    let start = tokio::time::Instant::now();
    let second = cluster.start("b", true);
    cluster.gang("two", 4);
    cluster.until_bound(8).await;
    assert!(start.elapsed() < Duration::from_secs(5));
    second.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_scheduler_restarted_at_any_moment_completes_the_gang() {
    for writes in 1..8 {
        let cluster = Cluster::with_nodes(2);
        cluster.gang("g", 4);
        cluster.server.crash_after_write("a", writes);
        let first = cluster.start("a", false);
        let died = tokio::time::timeout(Duration::from_secs(30), cluster.server.crashed("a")).await;
        first.task.abort();
        let second = cluster.start("b", false);
        cluster.until_bound(4).await;
        let applied = cluster.binds().into_iter().filter(WriteRecord::applied).count();
        assert_eq!(applied, 4, "crash after write {writes} (happened: {})", died.is_ok());
        second.stop().await;
    }
}

#[test]
fn the_scheduler_and_its_future_can_move_between_threads() {
    fn assert_send<T: Send>(_: &T) {}
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let _guard = runtime.enter();
    let server = ApiServer::new(ServerOptions::default());
    let scheduler =
        Scheduler::new(server.client(), SchedulerOptions::default(), Arc::clone(&server.clock()));
    assert_send(&scheduler);
    assert_send(&scheduler.run(CancellationToken::new()));
}

/// Cuts `a` off from its lease for nine seconds; the renewal after that is answered three seconds late.
struct LateRenewal {
    cut_off: std::ops::Range<i64>,
}

impl Faults for LateRenewal {
    fn on_request(&mut self, request: &RequestInfo<'_>) -> Fault {
        match request.time_ms {
            _ if request.resource != "leases" || request.identity != "a" => Fault::None,
            now if now < self.cut_off.start => Fault::None,
            now if now < self.cut_off.end => Fault::DropBefore,
            _ => Fault::Delay(3_000),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_renewal_lands_after_the_deadline_ends_although_it_holds_the_lease() {
    let cluster = Cluster::with_nodes(2);
    let scheduler = cluster.start("a", true);
    cluster.gang("g", 4);
    cluster.until_bound(4).await;
    let now = cluster.server.clock().now_ms();
    cluster.server.set_faults(Box::new(LateRenewal { cut_off: now..now + 9_000 }));
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert!(scheduler.task.is_finished());
    assert!(scheduler.task.await.unwrap().unwrap_err().to_string().contains("lost the lease"));
}
