//! What `/metrics` answers: registered metrics, series derived for this one answer, and figures of the process, in
//! the text format. Series that belong to objects are derived each time, so they vanish with their objects.

use std::collections::BTreeMap;

use prometheus::core::Collector as _;
use prometheus::process_collector::ProcessCollector;
use prometheus::proto::{Counter, Gauge, LabelPair, Metric, MetricFamily, MetricType};
use prometheus::{Registry, TextEncoder};

use super::{Family, Kind};

/// Content type of [`Page::text`].
pub const CONTENT_TYPE: &str = prometheus::TEXT_FORMAT;

/// One answer.
#[derive(Debug, Default)]
pub struct Page {
    derived: BTreeMap<&'static str, MetricFamily>,
}

impl Page {
    /// Adds a series: the values of the family's labels, in order, and its own value. Histograms are not derived.
    pub fn add(&mut self, family: &Family, labels: &[&str], value: f64) {
        debug_assert_eq!(family.labels.len(), labels.len(), "{}", family.name);
        let pair = |(name, value): (&&str, &&str)| {
            let mut pair = LabelPair::default();
            pair.set_name((*name).to_owned());
            pair.set_value((*value).to_owned());
            pair
        };
        let mut metric = Metric::from_label(family.labels.iter().zip(labels).map(pair).collect());
        let kind = match family.kind {
            Kind::Counter => {
                let mut counter = Counter::default();
                counter.set_value(value);
                metric.set_counter(counter);
                MetricType::COUNTER
            }
            Kind::Gauge | Kind::Histogram => {
                let mut gauge = Gauge::default();
                gauge.set_value(value);
                metric.set_gauge(gauge);
                MetricType::GAUGE
            }
        };
        let entry = self.derived.entry(family.name).or_insert_with(|| {
            let mut entry = MetricFamily::default();
            entry.set_name(family.name.to_owned());
            entry.set_help(family.help.to_owned());
            entry.set_field_type(kind);
            entry
        });
        entry.mut_metric().push(metric);
    }

    /// The text, by name, with what a registry holds.
    pub fn text(self, registry: &Registry) -> String {
        let process = ProcessCollector::for_self().collect();
        let mut families = registry.gather();
        families.extend(self.derived.into_values());
        families.extend(process.into_iter().filter(|family| !family.get_metric().is_empty()));
        families.sort_by(|a, b| a.name().cmp(b.name()));
        let mut text = String::new();
        if let Err(error) = TextEncoder::new().encode_utf8(&families, &mut text) {
            tracing::error!(%error, "could not encode metrics");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::super::volcano;
    use super::*;

    #[test]
    fn derived_and_registered_series_stand_together_by_name_with_their_types() {
        let registry = Registry::new();
        volcano::EVICTION_TRANSACTIONS.counters(&registry).with_label_values(&["reclaim"]).inc();
        let mut page = Page::default();
        page.add(&volcano::QUEUE_WEIGHT, &["a\"b"], 3.0);
        page.add(&volcano::JOB_RETRY_COUNTS, &["j"], 2.0);
        let text = page.text(&registry);
        let ours: Vec<&str> = text
            .lines()
            .filter(|line| line.contains("volcano_") && !line.contains("HELP"))
            .collect();
        assert_eq!(
            ours,
            [
                "# TYPE volcano_eviction_transactions_total counter",
                "volcano_eviction_transactions_total{action=\"reclaim\"} 1",
                "# TYPE volcano_job_retry_counts counter",
                "volcano_job_retry_counts{job_id=\"j\"} 2",
                "# TYPE volcano_queue_weight gauge",
                "volcano_queue_weight{queue_name=\"a\\\"b\"} 3",
            ]
        );
        assert!(text.contains("\nprocess_resident_memory_bytes "), "{text}");
    }
}
