//! The audit: what the demo promises, judged from the API server's history by the simulator's independent checker.

use std::process::ExitCode;

use serde_json::{Value, json};
use tephra_simulator::WriteRecord;
use tephra_simulator::checker::{self, Invariant, Rules};

use super::snapshot::Snapshot;

/// The promises: bound once (I1), no node above its size (I2), gangs whole (I3), no queue above its capability (I4).
const PROMISES: [Invariant; 4] = [Invariant::I1, Invariant::I2, Invariant::I3, Invariant::I4];
/// How late news of nodes and queues may reach the scheduler on a busy machine.
const STALENESS_MS: i64 = 2_000;

/// What the history contradicts; empty when all promises held.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Audit {
    pub(super) violations: Vec<String>,
}

impl Audit {
    /// Audits a complete history. `done`: everything has ended, no gang may be left in parts.
    pub(super) fn of(history: &[WriteRecord], done: bool) -> Self {
        let rules = Rules { staleness_ms: STALENESS_MS, at_rest: done, ..Rules::default() };
        let promised = |of: Invariant| of == Invariant::History || PROMISES.contains(&of);
        let violations = checker::check_with(history, &rules)
            .iter()
            .filter(|violation| promised(violation.invariant))
            .map(ToString::to_string)
            .collect();
        Self { violations }
    }

    /// Success only if all promises held and, where that was awaited, all samples have completed.
    pub(super) fn exit_code(&self, last: &Snapshot, until_done: bool) -> ExitCode {
        let good = self.violations.is_empty() && (last.done() || !until_done);
        if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

/// The figures of the demo as JSON.
pub(super) fn report(last: &Snapshot, audit: &Audit) -> Value {
    let teams: serde_json::Map<String, Value> = last
        .teams
        .iter()
        .map(|(name, team)| {
            let figures = json!({"pods": team.pods, "bound": team.bound, "completed": team.done,
                                 "gangs": team.gangs, "wholeGangs": team.whole});
            (name.clone(), figures)
        })
        .collect();
    let invariants = PROMISES.map(|invariant| invariant.to_string());
    json!({"done": last.done(), "teams": teams,
           "audit": {"invariants": invariants, "violations": audit.violations}})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::demo::samples::TEAMS;
    use crate::command::demo::snapshot::Team;

    fn snapshot(samples_done: usize) -> Snapshot {
        let team = Team { samples: 2, samples_done, ..Team::default() };
        Snapshot { teams: TEAMS.iter().map(|it| (it.name.to_owned(), team.clone())).collect() }
    }

    #[test]
    fn success_means_no_violation_and_where_awaited_all_samples_done() {
        let (good, bad) =
            (Audit { violations: vec![] }, Audit { violations: vec!["I1".to_owned()] });
        let success = |audit: &Audit, samples_done, until_done| {
            audit.exit_code(&snapshot(samples_done), until_done) == ExitCode::SUCCESS
        };
        assert!(success(&good, 2, true));
        assert!(!success(&good, 1, true));
        assert!(success(&good, 1, false));
        assert!(!success(&bad, 2, true));
        assert!(!success(&bad, 2, false));
    }
}
