//! Metrics: every family that a program of this project serves stands in one of the two tables, [`volcano`] (names and
//! labels that dashboards of Volcano read) and [`tephra`] (ours). A program makes its metrics from these entries, so
//! that names, labels and help texts exist once; documents, dashboards and alerts are checked against the same tables.
//!
//! Text format 0.0.4 is served and nothing else: in OpenMetrics a counter must end in `_total`, which would rename
//! Volcano's `job_retry_counts` and `total_preemption_attempts`.

pub mod page;
pub mod tephra;
pub mod volcano;

use prometheus::{
    GaugeVec, HistogramOpts, HistogramVec, IntCounterVec, IntGaugeVec, Opts, Registry,
};

pub use prometheus;

/// What a family counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It only grows.
    Counter,
    /// It goes up and down.
    Gauge,
    /// Observations in buckets.
    Histogram,
}

impl Kind {
    /// The word in a `# TYPE` line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// Bounds of a histogram: the first, the last, and how many there are, each the same factor above the one before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Buckets {
    /// First bound.
    pub min: f64,
    /// Last bound.
    pub max: f64,
    /// Number of bounds, at least 2.
    pub count: u32,
}

impl Buckets {
    /// The bounds, `min·(max/min)^(i/(count−1))`.
    pub fn bounds(self) -> Vec<f64> {
        let steps = f64::from(self.count.max(2) - 1);
        let factor = self.max / self.min;
        (0..self.count).map(|i| self.min * factor.powf(f64::from(i) / steps)).collect()
    }
}

/// Who serves a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    /// The scheduler.
    Scheduler,
    /// The controller.
    Controller,
}

/// One family of metrics.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// Full name.
    pub name: &'static str,
    /// What it counts.
    pub kind: Kind,
    /// Names of its labels.
    pub labels: &'static [&'static str],
    /// What it means, with its unit.
    pub help: &'static str,
    /// Bounds, for histograms.
    pub buckets: Option<Buckets>,
    /// Who serves it.
    pub server: Server,
}

/// An entry without buckets.
const fn plain(
    server: Server,
    kind: Kind,
    name: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
) -> Family {
    Family { name, kind, labels, help, buckets: None, server }
}

/// A histogram.
const fn histogram(
    server: Server,
    name: &'static str,
    labels: &'static [&'static str],
    (min, max, count): (f64, f64, u32),
    help: &'static str,
) -> Family {
    let buckets = Some(Buckets { min, max, count });
    Family { name, kind: Kind::Histogram, labels, help, buckets, server }
}

/// All families of all programs.
pub fn families() -> impl Iterator<Item = &'static Family> {
    volcano::FAMILIES.iter().chain(tephra::FAMILIES)
}

/// Why making a family cannot fail.
const SOUND: &str = "invariant: names and labels of the tables are valid and registered once";

impl Family {
    fn opts(&self) -> Opts {
        Opts::new(self.name, self.help)
    }

    /// Counters by the family's labels, registered.
    ///
    /// # Panics
    /// When the registry has it already.
    pub fn counters(&self, registry: &Registry) -> IntCounterVec {
        let made = IntCounterVec::new(self.opts(), self.labels).expect(SOUND);
        registry.register(Box::new(made.clone())).expect(SOUND);
        made
    }

    /// Gauges of whole numbers by the family's labels, registered.
    ///
    /// # Panics
    /// As [`Family::counters`].
    pub fn gauges(&self, registry: &Registry) -> IntGaugeVec {
        let made = IntGaugeVec::new(self.opts(), self.labels).expect(SOUND);
        registry.register(Box::new(made.clone())).expect(SOUND);
        made
    }

    /// Gauges of numbers by the family's labels, registered.
    ///
    /// # Panics
    /// As [`Family::counters`].
    pub fn float_gauges(&self, registry: &Registry) -> GaugeVec {
        let made = GaugeVec::new(self.opts(), self.labels).expect(SOUND);
        registry.register(Box::new(made.clone())).expect(SOUND);
        made
    }

    /// Histograms by the family's labels, registered.
    ///
    /// # Panics
    /// As [`Family::counters`].
    pub fn histograms(&self, registry: &Registry) -> HistogramVec {
        let bounds = self.buckets.map(Buckets::bounds).unwrap_or_default();
        let opts = HistogramOpts::from(self.opts()).buckets(bounds);
        let made = HistogramVec::new(opts, self.labels).expect(SOUND);
        registry.register(Box::new(made.clone())).expect(SOUND);
        made
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn bounds_grow_by_one_factor_from_the_first_to_the_last() {
        let bounds = Buckets { min: 1.0, max: 8.0, count: 4 }.bounds();
        let rounded: Vec<f64> = bounds.iter().map(|bound| (bound * 1e9).round() / 1e9).collect();
        assert_eq!(rounded, [1.0, 2.0, 4.0, 8.0]);
    }

    #[test]
    fn every_family_of_the_tables_can_be_made_and_none_stands_there_twice() {
        let registry = Registry::new();
        for family in families() {
            match family.kind {
                Kind::Counter => drop(family.counters(&registry)),
                Kind::Gauge => drop(family.gauges(&registry)),
                Kind::Histogram => drop(family.histograms(&registry)),
            }
            assert_eq!(family.kind == Kind::Histogram, family.buckets.is_some(), "{}", family.name);
        }
        let names: BTreeSet<&str> = families().map(|family| family.name).collect();
        assert_eq!(names.len(), families().count());
    }

    #[test]
    fn own_families_follow_the_conventions_of_names() {
        for family in tephra::FAMILIES {
            assert!(family.name.starts_with("tephra_"), "{}", family.name);
            let counts = family.name.ends_with("_total");
            assert_eq!(counts, family.kind == Kind::Counter, "{}", family.name);
            let per_object = ["pod", "pod_name", "job_id", "job_name", "node"];
            assert!(
                !family.labels.iter().any(|label| per_object.contains(label)),
                "{}",
                family.name
            );
        }
        assert!(volcano::FAMILIES.iter().all(|family| family.name.starts_with("volcano_")));
    }
}
