//! Everything that a scheduler process can be told, with Volcano's defaults. Flags fill it in (`flags.rs`); the
//! simulator and tests build it by hand.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use tephra_api::conf::SchedulerConf;

use crate::lease::LeaseOptions;

/// Settings of one scheduler.
#[derive(Clone, Debug)]
pub struct SchedulerOptions {
    /// Pods that name one of these schedulers are ours.
    pub scheduler_names: Vec<String>,
    /// The configuration to start with.
    pub conf: SchedulerConf,
    /// File that `conf` came from: it is watched, and good new content replaces `conf` between sessions.
    pub conf_path: Option<PathBuf>,
    /// Why the file could not be used at the start, for `/readyz?verbose`.
    pub conf_error: Option<String>,
    /// A session starts at the latest this long after the last one.
    pub schedule_period: Duration,
    /// Least time between the end of a session and the start of the next.
    pub min_gap: Duration,
    /// Longest wait for the lists of PodGroups, queues, classes and volumes; zero: no wait. Nothing is
    /// scheduled before nodes and pods are listed, however long that takes.
    pub resource_sync_timeout: Duration,
    /// How often each kind is compared with a fresh list, against events lost silently.
    pub audit_period: Duration,
    /// Queue of PodGroups that name none.
    pub default_queue: String,
    /// Read priority classes.
    pub priority_class: bool,
    /// Only nodes with one of these labels are used; empty: all.
    pub node_selector: Vec<(String, String)>,
    /// Tell `Scheduled` for each pod instead of once per PodGroup transition.
    pub event_per_pod: bool,
    /// Binds in flight at one time.
    pub bind_concurrency: usize,
    /// Status writes in flight at one time.
    pub status_concurrency: usize,
    /// Leader election; `None`: this process leads from the start.
    pub lease: Option<LeaseOptions>,
    /// Where `/healthz`, `/livez` and `/readyz` are served.
    pub health_address: Option<SocketAddr>,
    /// Where `/metrics` is served.
    pub metrics_address: Option<SocketAddr>,
    /// Recompute all ledgers after each session and end when one differs: for simulations and tests.
    pub self_check: bool,
    /// Longest wait for writes under way at a clean end.
    pub shutdown_patience: Duration,
}

impl Default for SchedulerOptions {
    fn default() -> Self {
        Self {
            scheduler_names: vec!["volcano".to_owned()],
            conf: SchedulerConf::builtin(),
            conf_path: None,
            conf_error: None,
            schedule_period: Duration::from_secs(1),
            min_gap: Duration::from_millis(5),
            resource_sync_timeout: Duration::from_secs(60),
            audit_period: Duration::from_secs(300),
            default_queue: "default".to_owned(),
            priority_class: true,
            node_selector: Vec::new(),
            event_per_pod: false,
            bind_concurrency: 32,
            status_concurrency: 8,
            lease: None,
            health_address: None,
            metrics_address: None,
            self_check: false,
            shutdown_patience: Duration::from_secs(5),
        }
    }
}

impl SchedulerOptions {
    /// Component name in events: the scheduler name when there is exactly one, else `volcano`.
    pub fn component(&self) -> String {
        match self.scheduler_names.as_slice() {
            [one] => one.clone(),
            _ => "volcano".to_owned(),
        }
    }
}
