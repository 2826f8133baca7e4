//! What the controllers serve on `/metrics`.

use tephra_process::serve::MetricsText;
use tephra_telemetry::metric::page::{CONTENT_TYPE, Page};
use tephra_telemetry::metric::prometheus::{IntCounterVec, IntGauge, IntGaugeVec, Registry};
use tephra_telemetry::metric::{tephra, volcano};

/// PodGroups of a queue by phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PodGroupCounts {
    pub(crate) inqueue: i32,
    pub(crate) pending: i32,
    pub(crate) running: i32,
    pub(crate) unknown: i32,
    pub(crate) completed: i32,
}

/// All metrics of one controller process.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    reconciliations: IntCounterVec,
    leading: IntGauge,
    /// In the order of [`PodGroupCounts`].
    pod_groups: [IntGaugeVec; 5],
}

impl Default for Metrics {
    fn default() -> Self {
        let registry = Registry::new();
        let r = &registry;
        const NONE: &[&str; 0] = &[];
        tephra::CONTROLLER_BUILD.gauges(r).with_label_values(&[env!("CARGO_PKG_VERSION")]).set(1);
        let pod_groups = [
            volcano::QUEUE_INQUEUE,
            volcano::QUEUE_PENDING,
            volcano::QUEUE_RUNNING,
            volcano::QUEUE_UNKNOWN,
            volcano::QUEUE_COMPLETED,
        ];
        Self {
            reconciliations: tephra::RECONCILIATIONS.counters(r),
            leading: tephra::CONTROLLER_LEADING.gauges(r).with_label_values(NONE),
            pod_groups: pod_groups.map(|family| family.gauges(r)),
            registry,
        }
    }
}

impl Metrics {
    /// A reconciliation has ended: `ok`, `conflict` (somebody else was faster) or `error`.
    pub(crate) fn reconciled(&self, controller: &'static str, result: &'static str) {
        self.reconciliations.with_label_values(&[controller, result]).inc();
    }

    /// Whether this process leads.
    pub(crate) fn leading(&self, leading: bool) {
        self.leading.set(i64::from(leading));
    }

    /// A queue has these PodGroups.
    pub(crate) fn queue(&self, name: &str, counts: PodGroupCounts) {
        let PodGroupCounts { inqueue, pending, running, unknown, completed } = counts;
        let counts = [inqueue, pending, running, unknown, completed];
        for (family, count) in self.pod_groups.iter().zip(counts) {
            family.with_label_values(&[name]).set(i64::from(count));
        }
    }

    /// A queue is gone.
    pub(crate) fn queue_gone(&self, name: &str) {
        for family in &self.pod_groups {
            // An error says that there was none.
            let _ = family.remove_label_values(&[name]);
        }
    }

    fn page(&self) -> String {
        Page::default().text(&self.registry)
    }
}

impl MetricsText for Metrics {
    const CONTENT_TYPE: &'static str = CONTENT_TYPE;

    async fn text(&self) -> String {
        self.page()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reconciliations_are_counted_by_controller_and_result() {
        let metrics = Metrics::default();
        metrics.reconciled("pg-controller", "ok");
        metrics.reconciled("pg-controller", "ok");
        metrics.leading(true);
        let text = metrics.page();
        let line =
            r#"tephra_controller_reconciliations_total{controller="pg-controller",result="ok"} 2"#;
        assert!(text.contains(line), "{text}");
        assert!(text.contains("tephra_controller_leading 1\n"), "{text}");
    }

    #[test]
    fn counts_of_a_queue_last_as_long_as_the_queue() {
        let metrics = Metrics::default();
        metrics.queue("q", PodGroupCounts { pending: 3, ..PodGroupCounts::default() });
        let counts =
            |text: &str| text.lines().filter(|line| line.contains("{queue_name=\"q\"}")).count();
        let text = metrics.page();
        assert!(
            text.contains("volcano_queue_pod_group_pending_count{queue_name=\"q\"} 3\n"),
            "{text}"
        );
        assert_eq!(counts(&text), 5);
        metrics.queue_gone("q");
        assert_eq!(counts(&metrics.page()), 0);
    }
}
