//! The sums over many runs, and how they are told.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};
use tephra_simulator::checker::Violation;

use super::run::{Outcome, Plan};

/// Sums over seeds.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// Seeds that were run.
    pub seeds: u64,
    /// Requests answered and events delivered.
    pub steps: u64,
    /// Bindings that landed.
    pub bound: u64,
    /// Writes that the server was asked for.
    pub writes: u64,
    /// Virtual time.
    pub simulated: Duration,
    /// Faults by class.
    pub faults: BTreeMap<&'static str, u64>,
    /// What happened to gangs on their way down and back.
    pub happened: BTreeMap<&'static str, u64>,
    /// What was broken, by seed.
    pub failed: BTreeMap<u64, Vec<Violation>>,
}

impl Figures {
    /// Adds a run.
    pub fn add(&mut self, outcome: Outcome) {
        self.seeds += 1;
        self.steps += outcome.steps;
        self.bound += outcome.bound;
        self.writes += outcome.writes;
        self.simulated += Duration::from_millis(u64::try_from(outcome.virtual_ms).unwrap_or(0));
        for (class, count) in outcome.faults {
            *self.faults.entry(class).or_insert(0) += count;
        }
        for (what, count) in outcome.happened {
            *self.happened.entry(what).or_insert(0) += count;
        }
        if !outcome.violations.is_empty() {
            self.failed.insert(outcome.seed, outcome.violations);
        }
    }

    /// Broken promises in all.
    #[must_use]
    pub fn violations(&self) -> usize {
        self.failed.values().map(Vec::len).sum()
    }

    /// For people: figures, and for each seed that failed the command that replays it.
    #[must_use]
    pub fn text(&self, plan: Plan, wall: Duration) -> String {
        let mut text = format!(
            "{} seeds, {} steps, {} bindings, {} writes, {:.1} h of cluster time in {:.1} s\n",
            self.seeds,
            self.steps,
            self.bound,
            self.writes,
            self.simulated.as_secs_f64() / 3600.0,
            wall.as_secs_f64()
        );
        for (class, count) in self.faults.iter().chain(&self.happened) {
            let _ = writeln!(text, "  {count:>8} {class}");
        }
        for (seed, violations) in &self.failed {
            let _ = writeln!(text, "seed {seed}:");
            for violation in violations.iter().take(5) {
                let _ = writeln!(text, "  {violation}");
            }
            let _ = writeln!(text, "  replay: {}", plan.replay(*seed));
        }
        let _ = writeln!(text, "{} violations", self.violations());
        text
    }

    /// The same as JSON.
    #[must_use]
    pub fn json(&self, plan: Plan, wall: Duration) -> Value {
        let failed = self.failed.iter().map(|(seed, violations)| {
            let what: Vec<String> = violations.iter().map(ToString::to_string).collect();
            json!({"seed": seed, "violations": what, "replay": plan.replay(*seed)})
        });
        json!({
            "seeds": self.seeds, "steps": self.steps, "bindings": self.bound, "writes": self.writes,
            "simulatedSeconds": self.simulated.as_secs(), "wallSeconds": wall.as_secs_f64(),
            "faults": self.faults, "happened": self.happened, "violations": self.violations(),
            "failed": failed.collect::<Vec<_>>(),
        })
    }
}
