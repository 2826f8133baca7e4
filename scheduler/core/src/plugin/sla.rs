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

use tephra_api::conf::Arguments;

use super::{Admission, Figures, Hooks, OrderKey, Plugin, Vote};
use crate::state::State;
use crate::state::jobs::JobId;
use crate::state::waiting::positive_ms;

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

    /// The state decides, and [`Plugin::answers_until_ms`] tells of the deadline.
    fn figures(&self, _: &State) -> Option<Figures> {
        Some(Figures::default())
    }

    fn answers_until_ms(&self, state: &State, job: JobId) -> i64 {
        let deadline_ms = self.deadline_ms(state, job);
        deadline_ms.filter(|&deadline_ms| deadline_ms > state.now_ms).unwrap_or(i64::MAX)
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
