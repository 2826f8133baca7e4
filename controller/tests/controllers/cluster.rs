//! A cluster of an API server and the controllers, and short ways to set it up and look at it.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tephra_controller::{ControllerOptions, install_crds, run};
use tephra_simulator::{ApiServer, ServerOptions, WriteRecord, clock::VirtualClock};
use tokio::{task::JoinHandle, time::sleep};
use tokio_util::sync::CancellationToken;

/// Identity of the controllers' client.
pub(crate) const CONTROLLER: &str = "controller";

pub(crate) struct Cluster {
    pub(crate) server: ApiServer,
    clock: Arc<VirtualClock>,
    shutdown: CancellationToken,
    running: Option<JoinHandle<anyhow::Result<()>>>,
}

impl Cluster {
    /// A server with the definitions installed, the controllers not started yet.
    pub(crate) async fn prepared() -> Cluster {
        let clock = Arc::new(VirtualClock::default());
        let server =
            ApiServer::new(ServerOptions { clock: clock.clone(), ..ServerOptions::default() });
        install_crds(server.client()).await.unwrap();
        Cluster { server, clock, shutdown: CancellationToken::new(), running: None }
    }

    /// The same with the controllers running and settled.
    pub(crate) async fn started() -> Cluster {
        let mut cluster = Cluster::prepared().await;
        cluster.start(ControllerOptions::default());
        settle().await;
        cluster
    }

    pub(crate) fn start(&mut self, options: ControllerOptions) {
        self.shutdown = CancellationToken::new();
        let client = self.server.client_as(CONTROLLER);
        self.running =
            Some(tokio::spawn(run(client, options, self.clock.clone(), self.shutdown.clone())));
    }

    /// Ends the controllers and waits for them.
    pub(crate) async fn stop(&mut self) {
        self.shutdown.cancel();
        if let Some(running) = self.running.take() {
            running.await.unwrap().unwrap();
        }
    }

    /// Creates or replaces objects and lets the controllers work.
    pub(crate) async fn apply(&self, objects: impl IntoIterator<Item = Value>) {
        for object in objects {
            self.server.apply_value(object).unwrap();
        }
        settle().await;
    }

    pub(crate) async fn delete(&self, resource: &str, namespace: &str, name: &str) {
        self.server.delete_value(resource, namespace, name).unwrap();
        settle().await;
    }

    pub(crate) fn get(&self, resource: &str, name: &str) -> Option<Value> {
        let cluster_wide = matches!(resource, "queues" | "nodes");
        self.server.get_value(resource, if cluster_wide { "" } else { "default" }, name)
    }

    /// Names of all objects of a kind, sorted.
    pub(crate) fn names(&self, resource: &str) -> Vec<String> {
        let objects = self.server.list_values(resource);
        let mut names: Vec<String> =
            objects.iter().map(|o| o["metadata"]["name"].as_str().unwrap().to_owned()).collect();
        names.sort();
        names
    }

    /// What the controllers wrote since `since` (a length of the history), applied or not.
    pub(crate) fn writes_since(&self, since: usize) -> Vec<WriteRecord> {
        let records = self.server.history_since(since as u64);
        records.into_iter().filter(|record| &*record.identity == CONTROLLER).collect()
    }

    pub(crate) fn now(&self) -> usize {
        self.server.history().len()
    }
}

/// Long enough for every reaction, gathering included.
pub(crate) async fn settle() {
    sleep(Duration::from_secs(2)).await;
}

pub(crate) fn pod(name: &str, changes: impl FnOnce(&mut Value)) -> Value {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "annotations": {}},
        "spec": {"schedulerName": "volcano", "containers": [
            {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]},
    });
    changes(&mut pod);
    pod
}

/// A pod that `owner` (an object of the server) controls.
pub(crate) fn pod_of(owner: &Value, name: &str) -> Value {
    pod(name, |pod| {
        pod["metadata"]["labels"] = owner["spec"]["selector"]["matchLabels"].clone();
        pod["metadata"]["ownerReferences"] = json!([{
            "apiVersion": owner["apiVersion"], "kind": owner["kind"],
            "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"], "controller": true,
        }]);
    })
}

pub(crate) fn replica_set(name: &str, replicas: i32, annotations: Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {"name": name, "namespace": "default", "annotations": annotations},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}},
                "spec": {"schedulerName": "volcano", "containers": [{"name": "c", "image": "i"}]}},
        },
    })
}

pub(crate) fn queue(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
        "metadata": {"name": name}, "spec": spec})
}

pub(crate) fn group(name: &str, queue: &str, phase: &str) -> Value {
    json!({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minMember": 1, "queue": queue}, "status": {"phase": phase}})
}
