//! Of several controllers one writes, and nobody writes without the right to.

use std::time::Duration;

use serde_json::json;
use tephra_controller::{ControllerOptions, install_crds, run_fenced};
use tephra_process::client::Clients;
use tephra_process::fence::Fence;
use tephra_process::lease::step::Timings;
use tephra_process::lease::{LeaseLost, LeaseOptions};
use tephra_simulator::faults::{Fault, Faults, RequestInfo};
use tephra_simulator::{ApiServer, ServerOptions};
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::cluster::{pod, settle};

struct Running {
    task: JoinHandle<anyhow::Result<()>>,
    fence: Fence,
    stop: CancellationToken,
}

async fn server() -> ApiServer {
    let server = ApiServer::new(ServerOptions::default());
    install_crds(server.client()).await.unwrap();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace",
                           "metadata": {"name": "volcano-system"}});
    server.create_value(namespace).unwrap();
    server
}

fn start(server: &ApiServer, identity: &str, lease: bool) -> Running {
    let lease = lease.then(|| LeaseOptions {
        namespace: "volcano-system".to_owned(),
        name: "vc-controller-manager".to_owned(),
        identity: identity.to_owned(),
        timings: Timings::default(),
    });
    let options = ControllerOptions { lease, ..ControllerOptions::default() };
    let clients = Clients::sharing(server.client_as(identity));
    let (fence, stop) = (clients.fence.clone(), CancellationToken::new());
    let task = tokio::spawn(run_fenced(clients, options, server.clock(), stop.clone()));
    Running { task, fence, stop }
}

/// Who wrote anything but leases and events, in order.
fn writers(server: &ApiServer) -> Vec<String> {
    let history = server.history().into_iter();
    let ours = history.filter(|it| !matches!(&*it.resource, "leases" | "events"));
    let mut writers: Vec<String> = ours.map(|it| it.identity.to_string()).collect();
    writers.retain(|writer| ["a", "b"].contains(&writer.as_str()));
    writers.dedup();
    writers
}

#[tokio::test(start_paused = true)]
async fn a_standby_writes_nothing_and_takes_over_at_once_when_the_leader_ends_cleanly() {
    let server = server().await;
    let first = start(&server, "a", true);
    settle().await;
    let second = start(&server, "b", true);
    server.create_value(pod("one", |_| ())).unwrap();
    settle().await;
    assert_eq!(server.list_values("podgroups").len(), 1);
    assert_eq!(writers(&server), ["a"]);
    first.stop.cancel();
    first.task.await.unwrap().unwrap();
    server.create_value(pod("two", |_| ())).unwrap();
    sleep(Duration::from_secs(5)).await;
    assert_eq!(server.list_values("podgroups").len(), 2);
    assert_eq!(writers(&server), ["a", "b"]);
    second.stop.cancel();
    second.task.await.unwrap().unwrap();
}

/// `a` does not reach the lease.
struct CutOff;

impl Faults for CutOff {
    fn on_request(&mut self, request: &RequestInfo<'_>) -> Fault {
        let lost = request.identity == "a" && request.resource == "leases";
        if lost { Fault::DropBefore } else { Fault::None }
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_renew_ends_and_another_goes_on() {
    let server = server().await;
    let first = start(&server, "a", true);
    settle().await;
    let second = start(&server, "b", true);
    server.set_faults(Box::new(CutOff));
    sleep(Duration::from_secs(30)).await;
    assert!(first.task.is_finished());
    assert!(first.task.await.unwrap().unwrap_err().is::<LeaseLost>());
    server.create_value(pod("one", |_| ())).unwrap();
    settle().await;
    assert_eq!(server.list_values("podgroups").len(), 1);
    assert_eq!(writers(&server), ["a", "b"]);
    second.stop.cancel();
    second.task.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_while_the_fence_is_closed() {
    let server = server().await;
    let controller = start(&server, "a", false);
    settle().await;
    assert_eq!(writers(&server), ["a"]);
    controller.fence.close();
    let before = server.history().len();
    server.create_value(pod("one", |_| ())).unwrap();
    settle().await;
    assert_eq!(server.list_values("podgroups").len(), 0);
    assert_eq!(server.history().len(), before + 1);
    controller.stop.cancel();
    controller.task.await.unwrap().unwrap();
}
