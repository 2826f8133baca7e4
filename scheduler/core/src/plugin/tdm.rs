//! Plugin `tdm` (time division multiplexing): nodes of a revocable zone (label `volcano.sh/revocable-zone`) are lent to revocable
//! pods at certain times of day; outside those times action `shuffle` takes the pods off them again.
//!
//! | argument | default |
//! | --- | --- |
//! | `tdm.revocable-zone.<zone>` | none: a window such as `10:00-21:00`, in the time zone of the scheduler |
//! | `tdm.evict.period` | `1m`: least time between two rounds of evictions |
//! | `tdm.overnight` | `fixed`: a window such as `22:00-6:00` lasts until the morning; `compat`: until midnight, as in Volcano (P65) |
//!
//! Filter and score depend on a node and a pod's template only, so they are judged with the other static ones
//! ([`crate::matching::revocable`]). How many pods of a gang may go at once is [`crate::state::job_budget`]'s business.

pub mod window;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use rustc_hash::FxHashMap;
use tephra_api::conf::Arguments;

use super::{Evictor, Figures, Hooks, OrderKey, Plugin, Vote};
use crate::event::Labels;
use crate::matching::revocable::{Zone, Zones, zone_of};
use crate::state::State;
use crate::state::jobs::JobId;
use crate::state::nodes::NO_NODE;
use crate::state::status::Status;
use crate::state::tasks::{NO_JOB, Task, TaskId};
use crate::state::waiting::positive_ms;
use window::{Window, WindowError};

const ZONE: &str = "tdm.revocable-zone.";
const PERIOD: &str = "tdm.evict.period";
const OVERNIGHT: &str = "tdm.overnight";

/// A zone as configured.
#[derive(Debug)]
struct Lent {
    name: String,
    /// The window as written, for messages.
    raw: String,
    window: Result<Window, WindowError>,
}

/// The plugin.
#[derive(Debug)]
pub struct Tdm {
    /// In order of their names.
    zones: Vec<Lent>,
    period_ms: i64,
    overnight: bool,
    /// When victims were last named.
    evicted_ms: Option<i64>,
}

impl Default for Tdm {
    fn default() -> Self {
        Self { zones: Vec::new(), period_ms: 60_000, overnight: true, evicted_ms: None }
    }
}

impl Tdm {
    fn is_open(&self, state: &State, window: Window) -> bool {
        let now = Timestamp::from_millisecond(state.now_ms).unwrap_or(Timestamp::UNIX_EPOCH);
        let now = state.time_zone.as_ref().unwrap_or(&TimeZone::UTC).to_datetime(now);
        let part = |part: i8| u32::from(part.unsigned_abs());
        let second = part(now.hour()) * 3600 + part(now.minute()) * 60 + part(now.second());
        window.contains(second, self.overnight)
    }

    /// The node belongs to a zone whose time is over. A window that cannot be read drives nobody away.
    fn is_over(&self, state: &State, labels: &Labels) -> bool {
        let Some(zone) = zone_of(labels) else { return false };
        let window = self.zones.iter().find(|known| known.name == zone).map(|known| &known.window);
        matches!(window, Some(Ok(window)) if !self.is_open(state, *window))
    }
}

impl Plugin for Tdm {
    fn hooks(&self) -> Hooks {
        Hooks::PREDICATE
            | Hooks::NODE_ORDER
            | Hooks::PREEMPTABLE
            | Hooks::VICTIM_TASKS
            | Hooks::JOB_ORDER
            | Hooks::JOB_PIPELINED
            | Hooks::JOB_STARVING
    }

    fn configure(&mut self, arguments: &Arguments, warnings: &mut Vec<String>) {
        for key in arguments.keys() {
            let Some((_, name)) = key.split_once(ZONE) else { continue };
            let Some(raw) = arguments.string(key, warnings) else { continue };
            let window = Window::parse(&raw);
            if let Err(error) = &window {
                warnings.push(format!("argument {key}: {error}; its nodes take nobody"));
            }
            self.zones.push(Lent { name: name.to_owned(), raw, window });
        }
        if let Some(text) = arguments.string(PERIOD, warnings) {
            match positive_ms(&text) {
                Some(period_ms) => self.period_ms = period_ms,
                None => warnings.push(format!(
                    "argument {PERIOD} must be a positive duration like 1m, not {text:?}: ignored"
                )),
            }
        }
        match arguments.string(OVERNIGHT, warnings).as_deref() {
            None | Some("fixed") => {}
            Some("compat") => self.overnight = false,
            Some(text) => warnings.push(format!(
                "argument {OVERNIGHT} must be fixed or compat, not {text:?}: ignored"
            )),
        }
    }

    fn zones(&self, state: &State) -> Option<Zones> {
        let closed = |zone: &Lent| match &zone.window {
            Ok(window) if self.is_open(state, *window) => None,
            Ok(_) => Some(format!("current time beyond revocable zone {}:{}", zone.name, zone.raw)),
            Err(error) => Some(error.to_string()),
        };
        let list = self.zones.iter().map(|zone| Zone {
            name: zone.name.as_str().into(),
            closed: closed(zone).map(Into::into),
        });
        Some(Zones { list: list.collect(), ..Zones::default() })
    }

    /// Windows that open or close change which nodes may be used, and so the state.
    fn figures(&self, _: &State) -> Option<Figures> {
        Some(Figures::default())
    }

    /// Jobs that may not be victims go first.
    fn job_order(&self, state: &State, job: JobId, key: &mut OrderKey) {
        key.push(i64::from(is_preemptable(state, job)));
    }

    /// Whoever may be preempted or revoked preempts nobody; the others may take preemptable pods off nodes that are
    /// nobody's to revoke, of each job as many as may go at once.
    fn victims(&self, state: &State, evictor: &Evictor, keep: &mut Vec<TaskId>) -> Vote {
        let by = &state.tasks[evictor.task];
        if by.preemptable || state.classes.list[by.class as usize].spec.revocable {
            keep.clear();
            return Vote::Reject;
        }
        let mut allowances = Allowances::default();
        keep.retain(|&task| {
            let row = &state.tasks[task];
            is_movable(row)
                && node_labels(state, row).is_some_and(|labels| zone_of(labels).is_none())
                && allowances.take(state, row)
        });
        Vote::Permit
    }

    fn victim_tasks(&mut self, state: &State, running: &[TaskId]) -> Vec<TaskId> {
        if self.evicted_ms.is_some_and(|last| state.now_ms - last < self.period_ms) {
            return Vec::new();
        }
        self.evicted_ms = Some(state.now_ms);
        let mut allowances = Allowances::default();
        let goes = |&task: &TaskId| {
            let row = &state.tasks[task];
            is_movable(row)
                && node_labels(state, row).is_some_and(|labels| self.is_over(state, labels))
                && allowances.take(state, row)
        };
        running.iter().copied().filter(goes).collect()
    }

    fn job_pipelined(&self, state: &State, job: JobId) -> Vote {
        if state.jobs[job as usize].is_pipelined() { Vote::Permit } else { Vote::Reject }
    }

    fn job_starving(&self, state: &State, job: JobId) -> bool {
        let waits = state.jobs[job as usize].counts.of(Status::Pending) > 0;
        waits && !is_preemptable(state, job)
    }
}

/// What jobs may still lose in one round.
#[derive(Default)]
struct Allowances(FxHashMap<JobId, u32>);

impl Allowances {
    /// The pod goes, if its job can spare one more.
    fn take(&mut self, state: &State, row: &Task) -> bool {
        let job = &state.jobs[row.job as usize];
        let budget = job.group.as_ref().map(|group| group.budget).unwrap_or_default();
        let left = self.0.entry(row.job).or_insert_with(|| budget.victims(&job.counts));
        let goes = *left > 0;
        *left -= u32::from(goes);
        goes
    }
}

fn is_movable(row: &Task) -> bool {
    row.preemptable && row.status == Status::Running && row.job != NO_JOB
}

/// Labels of the pod's node, if that is known.
fn node_labels<'s>(state: &'s State, row: &Task) -> Option<&'s Labels> {
    if row.node == NO_NODE {
        return None;
    }
    let node = &state.nodes.identity[row.node as usize];
    node.known.then_some(&*node.labels)
}

/// A job is preemptable only if it says so, unlike a pod.
fn is_preemptable(state: &State, job: JobId) -> bool {
    let group = state.jobs[job as usize].group.as_ref();
    group.and_then(|group| group.preemptable).unwrap_or(false)
}

#[cfg(test)]
mod tests;
