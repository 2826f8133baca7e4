//! One seed from beginning to end, whichever story it tells.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use tephra_simulator::WriteRecord;
use tephra_simulator::checker::{self, Invariant, Rules, Violation};

use super::cluster::Cluster;
use super::digest::digest;
use super::story::Story;
use super::suspension;
use super::weather::{Sky, Weather};

/// How late news may be: one audit, with attempts that fail.
pub const STALENESS_MS: i64 = 90_000;

/// What a run is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Theme {
    /// Pods, gangs, nodes and queues come, change and go.
    #[default]
    Cluster,
    /// Gangs make room for others and come back.
    Suspension,
}

/// How far a seed is run.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// What is told.
    pub theme: Theme,
    /// Requests answered and events delivered before the weather calms down.
    pub steps: u64,
}

impl Plan {
    /// The command that runs one seed again.
    #[must_use]
    pub fn replay(&self, seed: u64) -> String {
        let story = match self.theme {
            Theme::Cluster => "",
            Theme::Suspension => " --story suspension",
        };
        let steps = self.steps;
        format!(
            "cargo run --release -p tephra-tests --bin faults --{story} --seed {seed} --steps {steps}"
        )
    }
}

/// A story that a seed tells on a cluster.
pub(crate) trait Tale: Sized {
    /// Nothing is written for this long: the run has come to rest. Longer than every pause between two attempts.
    const QUIET: Duration;
    /// A run that has not come to rest after this much virtual time never will.
    const PATIENCE: Duration;

    /// Sets the stage and starts the processes.
    fn begin(seed: u64, cluster: &Cluster, sky: Arc<Sky>) -> anyhow::Result<Self>;
    /// What happens to requests and events on their way.
    fn weather(&self, seed: u64) -> Weather;
    /// The next act, and the time until then.
    async fn act(&mut self) -> anyhow::Result<()>;
    /// The last act, once the weather has calmed down.
    async fn calm(&mut self) -> anyhow::Result<()>;
    /// What the checker may take for granted.
    fn rules(&self) -> Rules;
    /// Ends all processes; returns what was strange about them.
    async fn end(self) -> Vec<String>;
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
    /// What happened to gangs on their way down and back, by what it was; only in stories of suspensions.
    pub happened: BTreeMap<&'static str, u64>,
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
    match plan.theme {
        Theme::Cluster => runtime.block_on(simulate::<Story>(seed, plan)),
        Theme::Suspension => {
            let mut outcome = runtime.block_on(simulate::<suspension::Story>(seed, plan))?;
            outcome.happened = suspension::tally(&outcome.history);
            Ok(outcome)
        }
    }
}

async fn simulate<T: Tale>(seed: u64, plan: Plan) -> anyhow::Result<Outcome> {
    let sky = Arc::new(Sky::default());
    let cluster = Cluster::new(seed)?;
    let server = cluster.server.clone();
    let started_ms = server.clock().now_ms();
    let mut story = T::begin(seed, &cluster, Arc::clone(&sky))?;
    server.set_faults(Box::new(story.weather(seed)));
    while sky.steps() < plan.steps {
        story.act().await?;
    }
    sky.calm();
    story.calm().await?;
    let rested = cluster.rest(T::QUIET, T::PATIENCE).await;
    let ended_ms = server.clock().now_ms();
    let history = server.history();
    let rules = Rules { at_rest: rested, ended_ms: Some(ended_ms), ..story.rules() };
    let mut violations = checker::check_with(&history, &rules);
    let mut strange = |what: String| {
        violations.push(Violation { invariant: Invariant::I12, time_ms: ended_ms, what });
    };
    if !rested {
        strange(format!(
            "after {:?} in calm weather something is still being written",
            T::PATIENCE
        ));
    }
    story.end().await.into_iter().for_each(&mut strange);
    cluster.close().await;
    let bound = history.iter().filter(|it| it.subresource == "binding" && it.applied()).count();
    Ok(Outcome {
        seed,
        steps: sky.steps(),
        digest: digest(&history),
        faults: sky.dealt(),
        happened: BTreeMap::new(),
        bound: bound as u64,
        writes: history.len() as u64,
        virtual_ms: ended_ms - started_ms,
        violations,
        history,
    })
}
