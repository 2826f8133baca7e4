//! Puts the parts of a scheduler together: waits for the lease, starts readers and writers, runs the session
//! loop, and takes everything down again in order. Any part that ends by itself ends the whole: a scheduler with
//! a part missing would be wrong quietly.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use tephra_api::clock::Clock;
use tephra_core::{Core, Options};
use tephra_process::fence::Fence;
use tephra_process::flags::Addresses;
use tephra_process::leadership::Leadership;
use tephra_process::lease::LeaseLost;
use tephra_process::serve::Endpoints;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::decode::Names;
use crate::dispatch::{Dispatcher, Outbox};
use crate::health::{Health, Stage};
use crate::metrics::Metrics;
use crate::options::SchedulerOptions;
use crate::run::{LedgersDiffer, Pace, SessionLoop};
use crate::watch::Feed;
use crate::watch::kind::{
    DISRUPTION_BUDGETS, HYPER_NODES, NAMESPACES, Nodes, POD_GROUPS, PRIORITY_CLASSES, Pods,
    QUEUE_POLICIES, QUEUES, RESOURCE_QUOTAS, VOLUME_CLAIMS, VOLUMES,
};
use crate::write::Writer;
use crate::{backoff, bind, conf, events, evict, status, watch as watching};

/// Batches of events that readers may be ahead of the session loop.
const FEED: usize = 1024;
/// Evictions in flight at one time.
const EVICTIONS: usize = 16;

/// One scheduler process, or one inside a simulation.
pub struct Scheduler {
    client: kube::Client,
    write_client: kube::Client,
    fence: Fence,
    options: SchedulerOptions,
    clock: Arc<dyn Clock>,
    metrics: Arc<Metrics>,
    health: Arc<Health>,
}

impl std::fmt::Debug for Scheduler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scheduler").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Scheduler {
    /// A scheduler that reads and writes through one client. Every write asks the fence first; a process that
    /// may be stopped and continued should add a second check at the socket with [`Scheduler::with_writer`].
    pub fn new(client: kube::Client, options: SchedulerOptions, clock: Arc<dyn Clock>) -> Self {
        let health = Arc::new(Health::new(options.schedule_period, options.conf_error.clone()));
        Self {
            write_client: client.clone(),
            client,
            fence: Fence::closed(),
            options,
            clock,
            metrics: Arc::default(),
            health,
        }
    }

    /// Uses another client for writes, whose sockets obey `fence` ([`tephra_process::client::fenced`]).
    #[must_use]
    pub fn with_writer(mut self, client: kube::Client, fence: Fence) -> Self {
        self.write_client = client;
        self.fence = fence;
        self
    }

    /// Counters, for whoever wants to read them while the scheduler runs.
    pub fn metrics(&self) -> Arc<Metrics> {
        self.metrics.clone()
    }

    /// State behind the health endpoints.
    pub fn health(&self) -> Arc<Health> {
        self.health.clone()
    }

    /// Runs until `shutdown` (then everything under way is finished, within limits, and the lease released).
    ///
    /// # Errors
    /// When the lease is lost, an address cannot be listened on, or a part of the scheduler fails: the process
    /// must end then, what it believed is void.
    pub async fn run(self, shutdown: CancellationToken) -> anyhow::Result<()> {
        let mut servers = self.serve().await?;
        let lease = self.options.lease.as_ref();
        let clock = self.clock.clone();
        let leading = Leadership::begin(self.client.clone(), lease, &self.fence, clock, &shutdown);
        let Some(mut leadership) = leading.await else { return Ok(()) };
        self.metrics.leading.set(1);
        self.health.enter(Stage::Syncing);
        // A configuration by name has no file that could be read anew.
        self.metrics.config_ok.set(i64::from(self.options.conf_error.is_none()));

        let (feed_send, feed) = mpsc::channel(FEED);
        let (outcomes_send, outcomes) = mpsc::unbounded_channel();
        let mut readers = self.readers(feed_send);
        let mut writers = JoinSet::new();
        let outbox = self.writers(&mut writers, outcomes_send);
        let (conf_send, conf) = watch::channel(None);
        if let Some(path) = self.options.conf_path.clone() {
            let (health, metrics) = (self.health.clone(), self.metrics.clone());
            readers.spawn(conf::watch_file(path, conf_send, health, metrics));
        }

        let sessions = self.session_loop(outbox, feed, outcomes, conf);
        let ended = {
            let mut sessions = std::pin::pin!(sessions.run(shutdown.clone()));
            tokio::select! {
                biased;
                lost = leadership.lost() => Ended::Lost(lost),
                ended = &mut sessions => ended.map_or_else(Ended::Wrong, |()| Ended::Stopped),
                part = readers.join_next() => Ended::Failed("a reader", part),
                part = writers.join_next() => Ended::Failed("a writer", part),
                Some(part) = servers.join_next() => Ended::Server(part),
            }
        };
        // The session loop is dropped: the writers' queues are closed now.
        self.health.enter(Stage::Ending);
        self.metrics.leading.set(0);
        if let Ended::Stopped = ended {
            readers.shutdown().await;
            finish(&mut writers, self.options.shutdown_patience).await;
            leadership.release().await;
        }
        self.fence.close();
        ended.result()
    }

    async fn serve(&self) -> anyhow::Result<JoinSet<anyhow::Result<()>>> {
        let endpoints = Endpoints { checks: self.health.clone(), metrics: self.metrics.clone() };
        let (health, metrics) = (self.options.health_address, self.options.metrics_address);
        endpoints.serve(Addresses { health, metrics }).await
    }

    fn readers(&self, feed: mpsc::Sender<Feed>) -> JoinSet<()> {
        let options = &self.options;
        let identity = options.lease.as_ref().map_or("", |lease| lease.identity.as_str());
        let shared = watching::Shared {
            client: self.client.clone(),
            feed,
            metrics: self.metrics.clone(),
            clock: self.clock.clone(),
            audit_period: options.audit_period,
            seed: backoff::seed(identity),
        };
        let names = Names::new(options.scheduler_names.iter().cloned());
        let mut readers = JoinSet::new();
        readers.spawn(watching::run(Nodes::new(options.node_selector.clone()), shared.clone()));
        readers.spawn(watching::run(Pods::new(names), shared.clone()));
        for kind in [
            POD_GROUPS,
            QUEUES,
            QUEUE_POLICIES,
            HYPER_NODES,
            NAMESPACES,
            VOLUME_CLAIMS,
            VOLUMES,
            DISRUPTION_BUDGETS,
            RESOURCE_QUOTAS,
        ] {
            readers.spawn(watching::run(kind, shared.clone()));
        }
        if options.priority_class {
            readers.spawn(watching::run(PRIORITY_CLASSES, shared));
        }
        readers
    }

    fn writers(
        &self,
        writers: &mut JoinSet<()>,
        outcomes: mpsc::UnboundedSender<tephra_core::event::Event>,
    ) -> Outbox {
        let writer =
            Writer::new(self.write_client.clone(), self.fence.clone(), self.metrics.clone());
        let (binds, bind_queue) = mpsc::unbounded_channel();
        let (evictions, evict_queue) = mpsc::unbounded_channel();
        let (statuses, status_queue) = mpsc::unbounded_channel();
        let (notices, notice_queue) = mpsc::unbounded_channel();
        let limit = self.options.bind_concurrency;
        let watch = bind::Watch { metrics: self.metrics.clone(), clock: self.clock.clone() };
        writers.spawn(bind::run(bind_queue, outcomes.clone(), writer.clone(), limit, watch));
        writers.spawn(evict::run(evict_queue, outcomes, writer.clone(), EVICTIONS));
        writers.spawn(status::run(status_queue, writer.clone(), self.options.status_concurrency));
        let (clock, metrics) = (self.clock.clone(), self.metrics.clone());
        writers.spawn(events::run(notice_queue, writer, self.options.component(), clock, metrics));
        Outbox { binds, evictions, statuses, notices }
    }

    fn session_loop(
        &self,
        outbox: Outbox,
        feed: mpsc::Receiver<Feed>,
        outcomes: mpsc::UnboundedReceiver<tephra_core::event::Event>,
        conf: watch::Receiver<Option<tephra_api::conf::SchedulerConf>>,
    ) -> SessionLoop {
        let options = &self.options;
        let core_options = Options {
            default_queue: options.default_queue.clone(),
            event_per_pod: options.event_per_pod,
            time_zone: Some(jiff::tz::TimeZone::system()),
        };
        let mut core = Core::new(core_options, &options.conf);
        for warning in core.configure(&options.conf) {
            tracing::warn!(%warning, "configuration");
        }
        let mut missing: std::collections::BTreeSet<&'static str> = [
            "Node",
            "Pod",
            "PodGroup",
            "Queue",
            "QueuePolicy",
            "HyperNode",
            "Namespace",
            "PersistentVolumeClaim",
            "PersistentVolume",
            "PodDisruptionBudget",
            "ResourceQuota",
        ]
        .into();
        if options.priority_class {
            missing.insert("PriorityClass");
        }
        SessionLoop {
            core,
            feed,
            outcomes,
            conf,
            dispatcher: Dispatcher::new(
                outbox,
                self.clock.clone(),
                options.component(),
                self.metrics.clone(),
            ),
            clock: self.clock.clone(),
            health: self.health.clone(),
            metrics: self.metrics.clone(),
            asked: self.metrics.open_desk(),
            pace: Pace {
                period: options.schedule_period,
                min_gap: options.min_gap,
                sync_timeout: options.resource_sync_timeout,
            },
            missing,
            missing_since: tokio::time::Instant::now(),
            self_check: options.self_check,
        }
    }
}

/// Why the scheduler ended.
enum Ended {
    Stopped,
    Wrong(LedgersDiffer),
    Lost(Option<LeaseLost>),
    Failed(&'static str, Option<Result<(), tokio::task::JoinError>>),
    Server(Result<anyhow::Result<()>, tokio::task::JoinError>),
}

impl Ended {
    fn result(self) -> anyhow::Result<()> {
        match self {
            Self::Stopped => Ok(()),
            Self::Wrong(differ) => Err(differ.into()),
            Self::Lost(Some(lost)) => Err(lost.into()),
            Self::Lost(None) => anyhow::bail!("the lease keeper has ended"),
            Self::Failed(what, Some(Err(error))) => Err(error).context(what),
            Self::Failed(what, _) => anyhow::bail!("{what} has ended"),
            Self::Server(Ok(result)) => result.context("an HTTP server has ended"),
            Self::Server(Err(error)) => Err(error).context("an HTTP server has failed"),
        }
    }
}

/// Lets writers finish what is queued, within `patience`.
async fn finish(writers: &mut JoinSet<()>, patience: Duration) {
    let all = async { while writers.join_next().await.is_some() {} };
    if tokio::time::timeout(patience, all).await.is_err() {
        tracing::warn!("some writes did not end in time; the next leader settles them");
    }
}
