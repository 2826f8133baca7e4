//! Medians of all rounds, as JSON or as lines for people.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

use crate::Arguments;
use crate::measure::{Binds, Tephra};

/// The result; rates in pods per second, CPU in milliseconds per placed pod.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    nodes: u32,
    pods: usize,
    gang: u32,
    in_flight: u16,
    rounds: usize,
    release_build: bool,
    raw_per_s: f64,
    tephra_per_s: f64,
    /// `tephra_per_s / raw_per_s`.
    ratio: f64,
    raw_per_s_rounds: Vec<f64>,
    tephra_per_s_rounds: Vec<f64>,
    start_to_last_bind_s: f64,
    writes_per_pod: f64,
    /// Of the last round, by verb and resource.
    writes: BTreeMap<String, usize>,
    scheduler_cpu_ms_per_pod: f64,
    scheduler_peak_mib: u64,
    server_cpu_ms_per_pod_raw: f64,
    server_cpu_ms_per_pod_tephra: f64,
}

impl Report {
    pub(crate) fn new(arguments: &Arguments, rounds: &[(Binds, Tephra)]) -> Self {
        let of = |value: &dyn Fn(&(Binds, Tephra)) -> f64| -> Vec<f64> {
            rounds.iter().map(|round| rounded(value(round))).collect()
        };
        let raw = of(&|(raw, _)| raw.per_second());
        let tephra = of(&|(_, tephra)| tephra.binds.per_second());
        let (raw_per_s, tephra_per_s) = (median(&raw), median(&tephra));
        let milli_per_pod = |cpu: f64, pods: usize| cpu * 1000.0 / pods as f64;
        let writes = |tephra: &Tephra| tephra.writes.values().sum::<usize>() as f64;
        let last = rounds.last().map(|(_, tephra)| tephra);
        Self {
            nodes: arguments.nodes,
            pods: last.map_or(0, |tephra| tephra.binds.pods),
            gang: arguments.gang,
            in_flight: arguments.in_flight,
            rounds: rounds.len(),
            release_build: !cfg!(debug_assertions),
            raw_per_s,
            tephra_per_s,
            ratio: rounded(tephra_per_s / raw_per_s),
            raw_per_s_rounds: raw,
            tephra_per_s_rounds: tephra,
            start_to_last_bind_s: median(&of(&|(_, tephra)| tephra.start_to_last)),
            writes_per_pod: median(&of(&|(_, tephra)| writes(tephra) / tephra.binds.pods as f64)),
            writes: last.map(|tephra| tephra.writes.clone()).unwrap_or_default(),
            scheduler_cpu_ms_per_pod: median(&of(&|(_, tephra)| {
                milli_per_pod(tephra.cpu, tephra.binds.pods)
            })),
            scheduler_peak_mib: rounds.iter().map(|(_, it)| it.peak_mib).max().unwrap_or(0),
            server_cpu_ms_per_pod_raw: median(&of(&|(raw, _)| {
                milli_per_pod(raw.server_cpu, raw.pods)
            })),
            server_cpu_ms_per_pod_tephra: median(&of(&|(_, tephra)| {
                milli_per_pod(tephra.binds.server_cpu, tephra.binds.pods)
            })),
        }
    }

    pub(crate) fn table(&self) -> String {
        let mut text = format!(
            "{} pods in gangs of {} on {} nodes, {} binds in flight, median of {}\n\n",
            self.pods, self.gang, self.nodes, self.in_flight, self.rounds
        );
        let writes: Vec<String> =
            self.writes.iter().map(|(what, count)| format!("{count} {what}")).collect();
        let rows = [
            ("raw binds/s", format!("{:.0}", self.raw_per_s)),
            ("tephra binds/s", format!("{:.0}", self.tephra_per_s)),
            ("ratio", format!("{:.3}", self.ratio)),
            ("process start to last bind", format!("{:.2} s", self.start_to_last_bind_s)),
            ("API writes per placed pod", format!("{:.3}", self.writes_per_pod)),
            ("  of the last round", writes.join(", ")),
            ("scheduler CPU per placed pod", format!("{:.2} ms", self.scheduler_cpu_ms_per_pod)),
            ("scheduler peak memory", format!("{} MiB", self.scheduler_peak_mib)),
            ("server CPU per pod, raw", format!("{:.2} ms", self.server_cpu_ms_per_pod_raw)),
            ("server CPU per pod, tephra", format!("{:.2} ms", self.server_cpu_ms_per_pod_tephra)),
        ];
        for (name, value) in rows {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name:<30} {value}");
        }
        text
    }
}

fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

/// The middle value; the mean of the two middle ones of an even number.
fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN);
    if sorted.len() % 2 == 1 {
        return upper;
    }
    let lower = sorted.get((sorted.len() / 2).wrapping_sub(1)).copied().unwrap_or(f64::NAN);
    rounded(f64::midpoint(lower, upper))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_value_or_the_mean_of_two() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&[]).is_nan());
    }
}
