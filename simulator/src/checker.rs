//! The independent checker: judges a run by nothing but the API server's history.
//!
//! It shares no code with the scheduler: quantities, requests of pods, taints and the search for room are written
//! here a second time, as plainly as possible, so that one mistake cannot hide itself. Every write of the
//! history is replayed into a small model of the cluster (`cluster.rs`); each binding is judged when it lands,
//! the rest when the run has come to rest.
//!
//! | rule | says | file |
//! | --- | --- | --- |
//! | I1 | a pod is bound once, by its uid, and never moves | `binding.rs` |
//! | I2 | a node that takes a pod exists, admits it and has room for it | `binding.rs` |
//! | I3 | a gang starts only when its minimum has room, and does not stay half bound | `gang.rs` |
//! | I4 | a queue stays within its capability | `binding.rs` |
//! | I5 | only who may be evicted is, for somebody who may ask for it, and no gang is left in pieces | `eviction.rs` |
//! | I6 | at rest nothing waits that could be placed | `liveness.rs` |
//! | I7 | at rest statuses equal a recount | `status.rs` |
//! | I8 | who is suspended is asked first, comes back as it was, and gets the room that was kept for it | `suspension.rs` |
//! | I9 | only the holder of the lease writes | `lease.rs` |
//!
//! A scheduler cannot know what its watch has not told it yet. [`Rules::staleness_ms`] says how late news may
//! be: a node counts with its best version, and a foreign pod does not count, while the change is younger than
//! that. Nothing else is forgiven.

mod admits;
mod amounts;
mod binding;
mod cluster;
mod eviction;
mod gang;
mod lease;
mod liveness;
mod objects;
mod search;
mod status;
mod suspension;
#[cfg(test)]
mod tests;

use std::fmt;

use crate::history::WriteRecord;
use cluster::Cluster;

/// Which promise was broken (numbers of the project's list of invariants).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Invariant {
    /// The history itself has gaps, so nothing can be said.
    History,
    /// Bound once.
    I1,
    /// No node above its allocatable.
    I2,
    /// Gangs whole.
    I3,
    /// Queues within their capability.
    I4,
    /// Evictions are allowed and leave gangs whole or gone.
    I5,
    /// Nothing placeable is left waiting.
    I6,
    /// What is stored equals a recount.
    I7,
    /// Suspended with notice, resumed in its turn, unchanged.
    I8,
    /// One leader writes.
    I9,
    /// A crash leads to the same end. Judged by whoever runs one history with and one without.
    I11,
    /// No panic, no silent end, no busy loop. Judged by whoever runs the processes.
    I12,
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// One broken promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which one.
    pub invariant: Invariant,
    /// Simulated wall time of the write that broke it, in Unix milliseconds.
    pub time_ms: i64,
    /// What is wrong, with names and figures.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {} ms: {}", self.invariant, self.time_ms, self.what)
    }
}

/// Who writes what belongs to suspensions: the beginnings of their identities. Whoever else writes is a person or an operator.
#[derive(Clone, Debug)]
pub struct Programs {
    /// Decides who goes and who comes back.
    pub scheduler: String,
    /// Carries it out.
    pub controller: String,
}

/// What the checker may take for granted about a run.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Name in `spec.schedulerName` of the pods that are judged.
    pub scheduler_name: String,
    /// How late news of nodes, queues and foreign pods may reach the scheduler, in milliseconds.
    pub staleness_ms: i64,
    /// Whether the configuration enforces capabilities (plugin `proportion`); without it I4 is not judged.
    pub enforces_capability: bool,
    /// Whether the run has come to rest: I3 (second half), I6 and I7 are judged only then.
    pub at_rest: bool,
    /// Who suspends gangs; none: nobody does, and I8 is not judged.
    pub suspension: Option<Programs>,
    /// The configuration keeps free room for gangs at the head of the line (plugin `reservation`): I6 is judged only for a gang that
    /// waits alone.
    pub keeps_room: bool,
    /// All pods end by themselves and every gang has room on an empty cluster: at rest nothing waits, save what a person holds.
    pub all_ends: bool,
    /// When the run ended, in Unix milliseconds; none: at the last write.
    pub ended_ms: Option<i64>,
}

impl Default for Rules {
    /// Scheduler `volcano`, news at once, everything judged.
    fn default() -> Self {
        Self {
            scheduler_name: "volcano".to_owned(),
            staleness_ms: 0,
            enforces_capability: true,
            at_rest: true,
            suspension: None,
            keeps_room: false,
            all_ends: false,
            ended_ms: None,
        }
    }
}

/// Judges a complete history with the default [`Rules`].
#[must_use]
pub fn check(history: &[WriteRecord]) -> Vec<Violation> {
    check_with(history, &Rules::default())
}

/// Judges a complete history.
#[must_use]
pub fn check_with(history: &[WriteRecord], rules: &Rules) -> Vec<Violation> {
    let mut found = Vec::new();
    let gap = history.iter().zip(0_u64..).find(|(record, expected)| record.seq != *expected);
    if let Some((record, expected)) = gap {
        found.push(Violation {
            invariant: Invariant::History,
            time_ms: record.time_ms,
            what: format!("record {expected} is missing: the history was kept too short"),
        });
        return found;
    }
    let mut cluster = Cluster::new(rules);
    let mut binds = binding::Binds::default();
    let mut leases = lease::Leases::default();
    let mut suspensions = suspension::Suspensions::new(rules);
    let mut evictions = eviction::Evictions::default();
    for record in history {
        leases.judge(record, &mut found);
        let before = cluster.pods.get(&record.uid).cloned();
        cluster.apply(record);
        evictions.judge(&cluster, before.as_ref(), record, &mut found);
        suspensions.judge(&cluster, record, &mut found);
        if record.resource == "pods" && record.subresource == "binding" {
            binds.judge(&cluster, record, &mut found);
            if record.applied() {
                gang::judge_start(&cluster, record, &mut found);
            }
        }
    }
    found.append(&mut cluster.moved);
    if rules.at_rest {
        let last = history.last().map_or(0, |record| record.time_ms);
        cluster.now_ms = rules.ended_ms.unwrap_or(last);
        gang::judge_rest(&cluster, &mut found);
        evictions.judge_rest(&cluster, &mut found);
        liveness::judge(&cluster, &mut found);
        status::judge(&cluster, &mut found);
        suspensions.judge_rest(&cluster, &mut found);
    }
    found.sort_by_key(|violation| (violation.time_ms, violation.invariant));
    found
}
