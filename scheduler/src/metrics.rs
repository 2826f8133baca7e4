//! Counters of the scheduler's edge, served on `/metrics`. Families of the scheduling core and Volcano's names
//! come with the observability work; what is here costs nothing to keep.

use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use tephra_process::serve::MetricsText;

/// What a write does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
pub enum Verb {
    /// POST.
    Create,
    /// PATCH.
    Patch,
    /// DELETE.
    Delete,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WriteLabels {
    verb: Verb,
    resource: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabel {
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabel {
    kind: &'static str,
}

/// All metrics of one scheduler.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    writes: Family<WriteLabels, Counter>,
    binds: Family<ResultLabel, Counter>,
    rejected: Family<KindLabel, Counter>,
    drift: Family<KindLabel, Counter>,
    relists: Family<KindLabel, Counter>,
    /// Events on objects that were dropped by the rate limit or after errors.
    pub(crate) notices_dropped: Counter,
    /// Binds sent and not yet settled.
    pub(crate) binds_in_flight: Gauge,
    /// Sessions run.
    pub(crate) sessions: Counter,
    /// Length of a session, decisions handed out included.
    pub(crate) session_seconds: Histogram,
    /// 1 when the last reading of the configuration file was good.
    pub(crate) config_ok: Gauge<i64>,
    /// Readings of the configuration file that failed.
    pub(crate) config_errors: Counter,
    /// 1 while this process holds the lease.
    pub(crate) leading: Gauge,
    total_writes: AtomicU64,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// A fresh registry.
    pub fn new() -> Self {
        let buckets = exponential_buckets(0.000_1, 2.0, 20);
        let mut metrics = Self {
            registry: Registry::with_prefix("tephra"),
            writes: Family::default(),
            binds: Family::default(),
            rejected: Family::default(),
            drift: Family::default(),
            relists: Family::default(),
            notices_dropped: Counter::default(),
            binds_in_flight: Gauge::default(),
            sessions: Counter::default(),
            session_seconds: Histogram::new(buckets),
            config_ok: Gauge::default(),
            config_errors: Counter::default(),
            leading: Gauge::default(),
            total_writes: AtomicU64::new(0),
        };
        metrics.register();
        metrics
    }

    fn register(&mut self) {
        let r = &mut self.registry;
        r.register("api_writes", "Write requests sent to the API server", self.writes.clone());
        r.register("binds", "Binds settled, by result", self.binds.clone());
        r.register("rejected_objects", "Objects that could not be read", self.rejected.clone());
        r.register("cache_drift", "Changes that no watch event announced", self.drift.clone());
        r.register("relists", "Lists taken, the first one included", self.relists.clone());
        r.register("notices_dropped", "Events not recorded", self.notices_dropped.clone());
        r.register("binds_in_flight", "Binds not yet settled", self.binds_in_flight.clone());
        r.register("sessions", "Scheduling sessions run", self.sessions.clone());
        r.register("session_seconds", "Length of a session", self.session_seconds.clone());
        r.register("config_last_reload_success", "Last reload was good", self.config_ok.clone());
        r.register("config_reload_errors", "Reloads that failed", self.config_errors.clone());
        r.register("leading", "This process holds the lease", self.leading.clone());
    }

    pub(crate) fn api_write(&self, verb: Verb, path: &str) {
        self.total_writes.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let labels = WriteLabels { verb, resource: resource(path) };
        self.writes.get_or_create(&labels).inc();
    }

    pub(crate) fn bind(&self, result: &'static str) {
        self.binds.get_or_create(&ResultLabel { result }).inc();
    }

    pub(crate) fn rejected(&self, kind: &'static str) {
        self.rejected.get_or_create(&KindLabel { kind }).inc();
    }

    pub(crate) fn drift(&self, kind: &'static str, changes: u64) {
        self.drift.get_or_create(&KindLabel { kind }).inc_by(changes);
    }

    pub(crate) fn relist(&self, kind: &'static str) {
        self.relists.get_or_create(&KindLabel { kind }).inc();
    }

    /// Write requests sent so far, the lease aside.
    pub fn total_writes(&self) -> u64 {
        self.total_writes.load(std::sync::atomic::Ordering::Relaxed)
    }
}

impl MetricsText for Metrics {
    fn registry(&self) -> &Registry {
        &self.registry
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
mod tests {
    use super::*;

    #[test]
    fn writes_are_counted_by_verb_and_resource() {
        let metrics = Metrics::new();
        metrics.api_write(Verb::Create, "/api/v1/namespaces/a/pods/b/binding");
        metrics.api_write(Verb::Patch, "/api/v1/namespaces/a/pods/b/status?fieldManager=x");
        assert_eq!(metrics.total_writes(), 2);
        let text = metrics.text();
        assert!(
            text.contains(r#"tephra_api_writes_total{verb="Create",resource="pods/binding"} 1"#)
        );
        assert!(text.contains(r#"tephra_api_writes_total{verb="Patch",resource="pods/status"} 1"#));
    }
}
