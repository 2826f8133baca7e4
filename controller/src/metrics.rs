//! Counters of the controllers, served on `/metrics`.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tephra_process::serve::MetricsText;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    controller: &'static str,
    result: &'static str,
}

/// All metrics of one controller process.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    reconciliations: Family<Labels, Counter>,
    leading: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("tephra_controller");
        let (reconciliations, leading) = (Family::default(), Gauge::default());
        registry.register(
            "reconciliations",
            "Reconciliations ended, by result",
            Family::clone(&reconciliations),
        );
        registry.register("leading", "This process holds the lease", Gauge::clone(&leading));
        Self { registry, reconciliations, leading }
    }
}

impl Metrics {
    /// A reconciliation has ended: `ok`, `conflict` (somebody else was faster) or `error`.
    pub(crate) fn reconciled(&self, controller: &'static str, result: &'static str) {
        self.reconciliations.get_or_create(&Labels { controller, result }).inc();
    }

    /// Whether this process leads.
    pub(crate) fn leading(&self, leading: bool) {
        self.leading.set(i64::from(leading));
    }
}

impl MetricsText for Metrics {
    fn registry(&self) -> &Registry {
        &self.registry
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
        let text = metrics.text();
        let line =
            r#"tephra_controller_reconciliations_total{controller="pg-controller",result="ok"} 2"#;
        assert!(text.contains(line), "{text}");
        assert!(text.contains("tephra_controller_leading 1\n"), "{text}");
    }
}
