//! Plugin `sla`: gangs that have waited too long are admitted, go first and collect room.
//!
//! | argument | default |
//! | --- | --- |
//! | `sla-waiting-time` | none: a Go duration such as `1h30m`, for gangs whose PodGroup names none |
//!
//! A PodGroup's own time is its annotation `volcano.sh/sla-waiting-time`, else `sla-waiting-time`; what cannot be read or is
//! not positive counts as absent. Being a vote, the permit helps only in an earlier tier than the plugins that would
//! reject (P62): there it admits a gang past `overcommit` and `proportion`, and lets it hold whatever room it finds until
//! the session ends, so that younger gangs cannot take it away for ever (P63).

use jiff::SignedDuration;
use tephra_api::conf::Arguments;
use tephra_api::keys;

use super::{Admission, Hooks, OrderKey, Plugin, Vote};
use crate::event::Labels;
use crate::state::State;
use crate::state::jobs::JobId;

const WAITING_TIME: &str = "sla-waiting-time";

/// The plugin.
#[derive(Debug, Default)]
pub struct Sla {
    /// Time that gangs may wait if their PodGroup says nothing, in milliseconds.
    waiting_ms: Option<i64>,
}

impl Sla {
    /// When a job has waited long enough; `None` when it may wait for ever.
    fn deadline_ms(&self, state: &State, job: JobId) -> Option<i64> {
        let group = state.jobs[job as usize].group.as_ref()?;
        let waiting_ms = group.waiting_ms.or(self.waiting_ms)?;
        Some(group.created_ms.saturating_add(waiting_ms))
    }

    fn vote(&self, state: &State, job: JobId) -> Vote {
        match self.deadline_ms(state, job) {
            Some(deadline_ms) if state.now_ms >= deadline_ms => Vote::Permit,
            _ => Vote::Abstain,
        }
    }
}

impl Plugin for Sla {
    fn hooks(&self) -> Hooks {
        Hooks::JOB_ORDER | Hooks::JOB_ENQUEUEABLE | Hooks::JOB_PIPELINED
    }

    fn configure(&mut self, arguments: &Arguments, warnings: &mut Vec<String>) {
        let Some(text) = arguments.string(WAITING_TIME, warnings) else { return };
        self.waiting_ms = positive_ms(&text);
        if self.waiting_ms.is_none() {
            warnings.push(format!(
                "argument {WAITING_TIME} must be a positive duration like 1h30m, not {text:?}: ignored"
            ));
        }
    }

    /// The earlier deadline first, jobs without one last.
    fn job_order(&self, state: &State, job: JobId, key: &mut OrderKey) {
        key.push(self.deadline_ms(state, job).unwrap_or(i64::MAX));
    }

    fn job_enqueueable(&mut self, state: &State, job: JobId) -> Admission {
        Admission::of(self.vote(state, job))
    }

    fn job_pipelined(&self, state: &State, job: JobId) -> Vote {
        self.vote(state, job)
    }
}

/// The waiting time that annotations of a PodGroup name, in milliseconds (core 2.5).
pub fn annotated(annotations: &Labels) -> Option<i64> {
    [keys::SLA_WAITING_TIME, keys::SLA_WAITING_TIME_LEGACY].into_iter().find_map(|key| {
        let (_, text) = annotations.iter().find(|(name, _)| name == key)?;
        positive_ms(text)
    })
}

fn positive_ms(text: &str) -> Option<i64> {
    let duration: SignedDuration = text.parse().ok()?;
    i64::try_from(duration.as_millis()).ok().filter(|&ms| ms > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn annotations(list: &[(&str, &str)]) -> Labels {
        list.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn the_newer_annotation_wins_and_what_is_no_positive_duration_is_absent() {
        let (new, old) = (keys::SLA_WAITING_TIME, keys::SLA_WAITING_TIME_LEGACY);
        let cases = [
            (annotations(&[(new, "1h30m")]), Some(5_400_000)),
            (annotations(&[(old, "2m"), (new, "300ms")]), Some(300)),
            (annotations(&[(old, "1.5s")]), Some(1_500)),
            (annotations(&[(new, "soon"), (old, "1s")]), Some(1_000)),
            (annotations(&[(new, "0s")]), None),
            (annotations(&[(new, "-3m")]), None),
            (annotations(&[(new, "90")]), None),
        ];
        for (list, waiting_ms) in cases {
            assert_eq!(annotated(&list), waiting_ms, "{list:?}");
        }
    }
}
