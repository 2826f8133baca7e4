//! What the scheduler serves on `/metrics`. Counters and histograms are kept where things happen, outside the core;
//! series of queues and jobs are derived from the core's [`Overview`] when somebody asks ([`overview`]), so that they cost
//! nothing between two scrapes and vanish with their objects.

mod desk;
mod overview;
mod stopwatch;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tephra_core::SessionReport;
use tephra_core::decision::GangBind;
use tephra_core::overview::Overview;
use tephra_process::serve::MetricsText;
use tephra_telemetry::metric::page::{CONTENT_TYPE, Page};
use tephra_telemetry::metric::prometheus::{
    Histogram, HistogramVec, IntCounter, IntCounterVec, IntGauge, Registry,
};
use tephra_telemetry::metric::{tephra, volcano};

pub(crate) use desk::{Ask, Desk};
pub(crate) use stopwatch::Stopwatch;

/// What a write does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// POST.
    Create,
    /// PATCH.
    Patch,
    /// DELETE.
    Delete,
}

/// How far a pod is on its way to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Its first event came.
    Watched,
    /// A node was chosen.
    Assumed,
    /// Its bind is about to be sent.
    PreBound,
    /// The API server has confirmed.
    Bound,
}

/// All metrics of one scheduler.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    desk: Desk,
    writes: IntCounterVec,
    binds: IntCounterVec,
    evictions: IntCounterVec,
    suspensions: IntCounterVec,
    rejected: IntCounterVec,
    drift: IntCounterVec,
    relists: IntCounterVec,
    attempts: IntCounterVec,
    plans: IntCounterVec,
    preemption_attempts: IntCounter,
    preemption_victims: IntGauge,
    sessions: IntCounter,
    session_seconds: Histogram,
    session_latency: Histogram,
    open_duration: Histogram,
    plugin_latency: HistogramVec,
    action_latency: HistogramVec,
    stage_duration: HistogramVec,
    task_latency: [Histogram; 4],
    job_latency: Histogram,
    total_writes: AtomicU64,
    /// Events on objects that were dropped by the rate limit or after errors.
    pub(crate) notices_dropped: IntCounter,
    /// Binds sent and not yet settled.
    pub(crate) binds_in_flight: IntGauge,
    /// 1 when the last reading of the configuration file was good.
    pub(crate) config_ok: IntGauge,
    /// Readings of the configuration file that failed.
    pub(crate) config_errors: IntCounter,
    /// 1 while this process holds the lease.
    pub(crate) leading: IntGauge,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// A fresh registry.
    pub fn new() -> Self {
        let registry = Registry::new();
        let r = &registry;
        const NONE: &[&str; 0] = &[];
        let task_latency = volcano::TASK_LATENCY.histograms(r);
        let stages = ["Watched", "Assumed", "PreBound", "Bound"];
        tephra::SCHEDULER_BUILD.gauges(r).with_label_values(&[env!("CARGO_PKG_VERSION")]).set(1);
        Self {
            desk: Desk::default(),
            writes: tephra::API_WRITES.counters(r),
            binds: tephra::BINDS.counters(r),
            evictions: tephra::EVICTIONS.counters(r),
            suspensions: tephra::SUSPENSIONS.counters(r),
            rejected: tephra::REJECTED_OBJECTS.counters(r),
            drift: tephra::CACHE_DRIFT.counters(r),
            relists: tephra::RELISTS.counters(r),
            attempts: volcano::SCHEDULE_ATTEMPTS.counters(r),
            plans: volcano::EVICTION_TRANSACTIONS.counters(r),
            preemption_attempts: volcano::PREEMPTION_ATTEMPTS.counters(r).with_label_values(NONE),
            preemption_victims: volcano::PREEMPTION_VICTIMS.gauges(r).with_label_values(NONE),
            sessions: tephra::SESSIONS.counters(r).with_label_values(NONE),
            session_seconds: tephra::SESSION_SECONDS.histograms(r).with_label_values(NONE),
            session_latency: volcano::E2E_SCHEDULING_LATENCY.histograms(r).with_label_values(NONE),
            open_duration: volcano::OPEN_SESSION_DURATION.histograms(r).with_label_values(NONE),
            plugin_latency: volcano::PLUGIN_LATENCY.histograms(r),
            action_latency: volcano::ACTION_LATENCY.histograms(r),
            stage_duration: volcano::STAGE_DURATION.histograms(r),
            task_latency: stages.map(|stage| task_latency.with_label_values(&[stage])),
            job_latency: volcano::E2E_JOB_SCHEDULING_LATENCY.histograms(r).with_label_values(NONE),
            total_writes: AtomicU64::new(0),
            notices_dropped: tephra::NOTICES_DROPPED.counters(r).with_label_values(NONE),
            binds_in_flight: tephra::BINDS_IN_FLIGHT.gauges(r).with_label_values(NONE),
            config_ok: tephra::CONFIG_OK.gauges(r).with_label_values(NONE),
            config_errors: tephra::CONFIG_ERRORS.counters(r).with_label_values(NONE),
            leading: tephra::LEADING.gauges(r).with_label_values(NONE),
            registry,
        }
    }

    pub(crate) fn api_write(&self, verb: Verb, path: &str) {
        self.total_writes.fetch_add(1, Ordering::Relaxed);
        let verb = match verb {
            Verb::Create => "Create",
            Verb::Patch => "Patch",
            Verb::Delete => "Delete",
        };
        self.writes.with_label_values(&[verb, resource(path)]).inc();
    }

    /// A bind is settled: `bound`, `failed` or `abandoned`.
    pub(crate) fn bind(&self, result: &'static str) {
        self.binds.with_label_values(&[result]).inc();
        if result == "failed" {
            self.attempts.with_label_values(&["error"]).inc();
        }
    }

    /// A pod is to leave, because of this action.
    pub(crate) fn evicted(&self, action: &'static str) {
        self.evictions.with_label_values(&[action]).inc();
    }

    /// A step in the life of a suspension was decided: `asked`, `withdrawn` or `resumed`.
    pub(crate) fn suspension(&self, step: &'static str) {
        self.suspensions.with_label_values(&[step]).inc();
    }

    pub(crate) fn rejected(&self, kind: &'static str) {
        self.rejected.with_label_values(&[kind]).inc();
    }

    pub(crate) fn drift(&self, kind: &'static str, changes: u64) {
        self.drift.with_label_values(&[kind]).inc_by(changes);
    }

    pub(crate) fn relist(&self, kind: &'static str) {
        self.relists.with_label_values(&[kind]).inc();
    }

    /// A pod reached a stage; times in milliseconds since 1970, 0 where the creation is not known.
    pub(crate) fn reached(&self, stage: Stage, created_ms: i64, now_ms: i64) {
        if created_ms > 0 {
            self.task_latency[stage as usize].observe((now_ms - created_ms) as f64);
        }
    }

    /// How long a stage took: `PreBind` or `Bind`.
    pub(crate) fn took(&self, stage: &'static str, time: std::time::Duration) {
        self.stage_duration.with_label_values(&[stage]).observe(stopwatch::millis(time));
    }

    /// Pods of a gang got nodes.
    pub(crate) fn placed(&self, gang: &GangBind, now_ms: i64) {
        for &created_ms in &gang.created_ms {
            self.reached(Stage::Assumed, created_ms, now_ms);
            if gang.group_created_ms > 0 {
                self.job_latency.observe((now_ms - gang.group_created_ms) as f64);
            }
        }
        self.attempts.with_label_values(&["scheduled"]).inc();
    }

    /// A session has ended, and its decisions are handed out.
    pub(crate) fn session(&self, report: &SessionReport, took: std::time::Duration) {
        self.sessions.inc();
        self.session_seconds.observe(took.as_secs_f64());
        if report.refused > 0 {
            let refused = u64::from(report.refused);
            self.attempts.with_label_values(&["unschedulable"]).inc_by(refused);
        }
        let efforts = &report.efforts;
        for action in &efforts.plans {
            self.plans.with_label_values(&[action]).inc();
        }
        self.preemption_attempts.inc_by(u64::from(efforts.attempts));
        if let Some(victims) = efforts.last_victims {
            self.preemption_victims.set(i64::from(victims));
        }
    }

    /// Where the session loop finds who asks for overview.
    pub(crate) fn open_desk(&self) -> tokio::sync::mpsc::Receiver<Ask> {
        self.desk.open()
    }

    /// Write requests sent so far, the lease aside.
    pub fn total_writes(&self) -> u64 {
        self.total_writes.load(Ordering::Relaxed)
    }

    fn page(&self, overview: Option<Arc<Overview>>) -> String {
        let mut page = Page::default();
        if let Some(overview) = overview {
            overview::fill(&mut page, &overview);
        }
        page.text(&self.registry)
    }
}

impl MetricsText for Metrics {
    const CONTENT_TYPE: &'static str = CONTENT_TYPE;

    async fn text(&self) -> String {
        self.page(self.desk.ask().await)
    }
}

/// The resource that a path writes to: a bounded set of label values.
fn resource(path: &str) -> &'static str {
    let path = path.split('?').next().unwrap_or_default();
    let known = [
        ("/binding", "pods/binding"),
        ("/events", "events"),
        ("/podgroups/", "podgroups"),
        ("/queues/", "queues/status"),
        ("/pods/", "pods"),
    ];
    let contains = |part: &str| path.contains(part) || path.ends_with(part);
    if path.contains("/pods/") && path.ends_with("/status") {
        return "pods/status";
    }
    known.iter().find(|(part, _)| contains(part)).map_or("other", |(_, name)| name)
}

#[cfg(test)]
mod tests;
