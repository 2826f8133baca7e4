//! A cluster without programs: the API server under a virtual clock, the kinds and objects that are always there, and kubelets.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tephra_scheduler::SchedulerOptions;
use tephra_scheduler::lease::LeaseOptions;
use tephra_scheduler::lease::step::Timings;
use tephra_simulator::clock::VirtualClock;
use tephra_simulator::kubelet::{self, KubeletOptions};
use tephra_simulator::{ApiServer, ServerOptions};
use tokio_util::sync::CancellationToken;

use super::objects::queue;
use super::process::AUDIT;
use super::weather::KUBELETS;

/// The stage of a run.
#[derive(Debug)]
pub struct Cluster {
    /// The API server.
    pub server: ApiServer,
    kubelets: tokio::task::JoinHandle<()>,
    stop: CancellationToken,
}

impl Cluster {
    /// A cluster with kubelets, the custom kinds and queue `default`, and nothing else. Needs a paused tokio runtime.
    ///
    /// # Errors
    /// When the server refuses one of these objects.
    pub fn new(seed: u64) -> anyhow::Result<Self> {
        let clock = Arc::new(VirtualClock::default());
        let options = ServerOptions {
            clock: clock.clone(),
            seed,
            history_limit: 2_000_000,
            ..ServerOptions::default()
        };
        let server = ApiServer::new(options);
        for crd in tephra_api::scheduling::crds() {
            server.create_value(serde_json::to_value(crd)?)?;
        }
        server.create_value(json!({"apiVersion": "v1", "kind": "Namespace",
                                   "metadata": {"name": "volcano-system"}}))?;
        server.create_value(queue("default", 1, &Value::Null))?;
        let stop = CancellationToken::new();
        let options = KubeletOptions { clock, ..KubeletOptions::default() };
        let kubelets = kubelet::run(server.client_as(KUBELETS), options, stop.clone());
        Ok(Self { server, kubelets: tokio::spawn(kubelets), stop })
    }

    /// Options of a scheduler in this cluster.
    #[must_use]
    pub fn scheduler(elected: bool) -> SchedulerOptions {
        let lease = LeaseOptions {
            namespace: "volcano-system".to_owned(),
            name: "volcano".to_owned(),
            identity: String::new(),
            timings: Timings::default(),
        };
        SchedulerOptions {
            lease: elected.then_some(lease),
            audit_period: AUDIT,
            self_check: true,
            ..SchedulerOptions::default()
        }
    }

    /// Waits until nothing but leases is written for `quiet` of virtual time; false when that does not happen within `limit`.
    pub async fn rest(&self, quiet: Duration, limit: Duration) -> bool {
        let start = tokio::time::Instant::now();
        let (mut since, mut seen) = (start, 0);
        while since.elapsed() < quiet {
            if start.elapsed() >= limit {
                return false;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
            let new = self.server.history_since(seen);
            seen += new.len() as u64;
            if new.iter().any(|record| record.resource != "leases") {
                since = tokio::time::Instant::now();
            }
        }
        true
    }

    /// Ends the kubelets.
    pub async fn close(self) {
        self.stop.cancel();
        // They end when they are told to.
        let _ = self.kubelets.await;
    }
}
