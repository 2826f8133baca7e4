//! How long pods of a kind ran: the last run times per queue and shape of pod. Filled from pods that ended well, read
//! where a pod does not say how long it will run. Bounded: the kind that ended longest ago is forgotten first.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHasher};

use super::queues::QueueId;
use crate::event::PodSpec;

/// A kind of pod.
pub type Template = u64;

/// Kinds that are remembered.
const MOST_TEMPLATES: usize = 4096;
/// Run times that are remembered of each.
const MOST_RUNS: usize = 16;

/// Pods of one queue that ask for the same and run the same images are of one kind.
pub fn template(queue: QueueId, spec: &PodSpec) -> Template {
    let mut hasher = FxHasher::default();
    (queue, &spec.requests, &spec.images).hash(&mut hasher);
    hasher.finish()
}

#[derive(Debug, Default)]
struct Runs {
    /// Latest last, in milliseconds.
    last: VecDeque<i64>,
    serial: u64,
}

/// Run times by kind.
#[derive(Debug, Default)]
pub struct RunTimes {
    /// Somebody reads them.
    kept: bool,
    /// Pods that ended since the last session, with their starts.
    ended: Vec<(Template, i64)>,
    runs: FxHashMap<Template, Runs>,
    by_age: BTreeMap<u64, Template>,
    serial: u64,
}

impl RunTimes {
    /// Says whether anybody reads them: else nothing is kept.
    pub fn keep(&mut self, kept: bool) {
        self.kept = kept;
        if !kept {
            *self = Self::default();
        }
    }

    /// A pod ended that had started then.
    pub fn ended(&mut self, template: Template, started_ms: i64) {
        if self.kept {
            self.ended.push((template, started_ms));
        }
    }

    /// Takes over what ended until now.
    pub fn see(&mut self, now_ms: i64) {
        for (template, started_ms) in std::mem::take(&mut self.ended) {
            self.add(template, (now_ms - started_ms).max(1));
        }
    }

    fn add(&mut self, template: Template, ran_ms: i64) {
        self.serial += 1;
        let runs = self.runs.entry(template).or_default();
        self.by_age.remove(&runs.serial);
        runs.serial = self.serial;
        self.by_age.insert(self.serial, template);
        if runs.last.len() == MOST_RUNS {
            runs.last.pop_front();
        }
        runs.last.push_back(ran_ms);
        if self.runs.len() > MOST_TEMPLATES
            && let Some((_, oldest)) = self.by_age.pop_first()
        {
            self.runs.remove(&oldest);
        }
    }

    /// The run time, in milliseconds, that so many per cent of the kind's last runs did not exceed; `None` without any.
    pub fn quantile(&self, template: Template, per_cent: u32) -> Option<i64> {
        let mut runs: Vec<i64> = self.runs.get(&template)?.last.iter().copied().collect();
        runs.sort_unstable();
        let rank = (runs.len() * per_cent as usize).div_ceil(100).max(1);
        runs.get(rank - 1).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(runs: &[i64]) -> RunTimes {
        let mut times = RunTimes::default();
        times.keep(true);
        runs.iter().for_each(|&run| times.ended(7, 1_000_000 - run));
        times.see(1_000_000);
        times
    }

    #[test]
    fn a_quantile_covers_so_many_of_the_latest_runs() {
        let times = filled(&[40, 10, 30, 20]);
        assert_eq!(times.quantile(7, 75), Some(30));
        assert_eq!(times.quantile(7, 100), Some(40));
        assert_eq!(times.quantile(7, 1), Some(10));
        assert_eq!(times.quantile(8, 75), None);
        let later: Vec<i64> = [900; 20].into_iter().chain([5; MOST_RUNS]).collect();
        assert_eq!(filled(&later).quantile(7, 100), Some(5));
    }

    #[test]
    fn the_kind_that_ended_longest_ago_is_forgotten() {
        let mut times = filled(&[10]);
        for other in 0..MOST_TEMPLATES as u64 {
            times.ended(1_000 + other, 0);
        }
        times.see(50);
        assert_eq!(times.quantile(7, 75), None);
        assert_eq!(times.quantile(1_000, 75), Some(50));
        assert_eq!(times.runs.len(), MOST_TEMPLATES);
        assert_eq!(times.by_age.len(), MOST_TEMPLATES);
    }

    #[test]
    fn nothing_is_kept_that_nobody_reads() {
        let mut times = filled(&[10]);
        times.keep(false);
        times.ended(7, 0);
        times.see(50);
        assert_eq!(times.quantile(7, 75), None);
    }
}
