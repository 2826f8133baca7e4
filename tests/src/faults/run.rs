//! One seed from beginning to end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use tephra_simulator::WriteRecord;
use tephra_simulator::checker::{self, Invariant, Rules, Violation};

use super::cluster::Cluster;
use super::digest::digest;
use super::story::Story;
use super::weather::{Sky, Weather};

/// Nothing is written for this long: the run has come to rest. Longer than every pause between two attempts.
const QUIET: Duration = Duration::from_secs(75);
/// A run that has not come to rest after this much virtual time never will.
const PATIENCE: Duration = Duration::from_secs(3_600);
/// How late news may be: one audit, with attempts that fail.
pub const STALENESS_MS: i64 = 90_000;

/// How far a seed is run.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Requests answered and events delivered before the weather calms down.
    pub steps: u64,
}

/// What came of a seed.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The seed.
    pub seed: u64,
    /// Steps in all, with those after the weather had calmed down.
    pub steps: u64,
    /// Hash of the whole history.
    pub digest: u64,
    /// Faults dealt out, by class.
    pub faults: BTreeMap<&'static str, u64>,
    /// Bindings that landed.
    pub bound: u64,
    /// Records of the history.
    pub writes: u64,
    /// Virtual time that passed, in milliseconds.
    pub virtual_ms: i64,
    /// What was broken, empty when all is well.
    pub violations: Vec<Violation>,
    /// All writes.
    pub history: Vec<WriteRecord>,
}

/// Runs one seed on a runtime of its own.
///
/// # Errors
/// When the stage cannot be set up: a mistake of the simulation, not a finding.
pub fn run_seed(seed: u64, plan: Plan) -> anyhow::Result<Outcome> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .context("runtime")?;
    runtime.block_on(simulate(seed, plan))
}

async fn simulate(seed: u64, plan: Plan) -> anyhow::Result<Outcome> {
    let sky = Arc::new(Sky::default());
    let cluster = Cluster::new(seed)?;
    let server = cluster.server.clone();
    let started_ms = server.clock().now_ms();
    let mut story = Story::begin(seed, &cluster, Arc::clone(&sky))?;
    server.set_faults(Box::new(Weather::of(seed, Arc::clone(&sky))));
    while sky.steps() < plan.steps {
        story.act().await?;
    }
    sky.calm();
    story.calm().await?;
    let rested = cluster.rest(QUIET, PATIENCE).await;
    let ended_ms = server.clock().now_ms();
    let history = server.history();
    let rules = Rules {
        staleness_ms: STALENESS_MS,
        enforces_capability: story.enforces_capability(),
        at_rest: rested,
        ended_ms: Some(ended_ms),
        ..Rules::default()
    };
    let mut violations = checker::check_with(&history, &rules);
    let mut strange = |what: String| {
        violations.push(Violation { invariant: Invariant::I12, time_ms: ended_ms, what });
    };
    if !rested {
        strange(format!("after {PATIENCE:?} in calm weather something is still being written"));
    }
    story.end().await.into_iter().for_each(&mut strange);
    cluster.close().await;
    let bound = history.iter().filter(|it| it.subresource == "binding" && it.applied()).count();
    Ok(Outcome {
        seed,
        steps: sky.steps(),
        digest: digest(&history),
        faults: sky.dealt(),
        bound: bound as u64,
        writes: history.len() as u64,
        virtual_ms: ended_ms - started_ms,
        violations,
        history,
    })
}
