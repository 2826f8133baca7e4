//! Crash after every write: fixed small scenarios; for each write that the scheduler or the controller makes in one, a run in
//! which it dies right after that write, is started anew, and must bring the cluster to a good end.

mod scenarios;

use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use serde_json::{Value, json};
use tephra_api::conf::SchedulerConf;
use tephra_simulator::checker::{self, Invariant, Programs, Rules, Violation};
use tephra_simulator::{ApiServer, WriteRecord};
use tokio_util::sync::CancellationToken;

use super::cluster::Cluster;
use super::dice::Dice;
use super::process::{Process, Program};
use super::suspension::operators::Operators;
use super::weather::Sky;
pub use scenarios::{SCENARIOS, Scenario, Step};

/// Nothing is written for this long: the run has come to rest. Owners of gangs that are down are looked at each minute.
const QUIET: [Duration; 2] = [Duration::from_secs(45), Duration::from_secs(100)];
/// No scenario takes longer.
const PATIENCE: Duration = Duration::from_secs(1_800);
/// How late news may be: nothing is lost here, only a crash can delay it.
const STALENESS_MS: i64 = 1_000;

/// Who dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Victim {
    /// The scheduler.
    Scheduler,
    /// The controller.
    Controller,
}

impl Victim {
    fn name(self) -> &'static str {
        match self {
            Self::Scheduler => "scheduler",
            Self::Controller => "controller",
        }
    }
}

/// What was found over all scenarios and writes.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Scenarios that were run.
    pub scenarios: usize,
    /// Runs with a crash, one for each write.
    pub crashes: usize,
    /// Scenario, who died, after which of its writes, what was broken.
    pub failed: Vec<(&'static str, &'static str, u64, Vec<Violation>)>,
}

impl Report {
    /// Whether nothing was broken.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.failed.is_empty()
    }

    /// For people.
    #[must_use]
    pub fn text(&self, wall: Duration) -> String {
        let mut text = format!(
            "{} scenarios, {} crashes, one after each write, in {:.1} s\n",
            self.scenarios,
            self.crashes,
            wall.as_secs_f64()
        );
        for (scenario, victim, k, violations) in &self.failed {
            let _ = writeln!(text, "{scenario}: {victim} crashed after its write {k}:");
            for violation in violations {
                let _ = writeln!(text, "  {violation}");
            }
            let _ = writeln!(
                text,
                "  replay: cargo run --release -p tephra-tests --bin faults -- --crash-after-every-write \
                 --scenario {scenario}"
            );
        }
        let _ = writeln!(text, "{} runs with violations", self.failed.len());
        text
    }

    /// The same as JSON.
    #[must_use]
    pub fn json(&self, wall: Duration) -> Value {
        let failed = self.failed.iter().map(|(scenario, victim, k, violations)| {
            let what: Vec<String> = violations.iter().map(ToString::to_string).collect();
            json!({"scenario": scenario, "victim": victim, "afterWrite": k, "violations": what})
        });
        json!({"scenarios": self.scenarios, "crashes": self.crashes,
               "wallSeconds": wall.as_secs_f64(), "failed": failed.collect::<Vec<_>>()})
    }
}

/// Runs all scenarios, or the one of this name, without a crash and with one after each write.
///
/// # Errors
/// When there is no such scenario or a run cannot be carried out.
pub fn after_every_write(only: Option<&str>) -> anyhow::Result<Report> {
    let scenarios: Vec<&Scenario> =
        SCENARIOS.iter().filter(|it| only.is_none_or(|only| it.name == only)).collect();
    anyhow::ensure!(!scenarios.is_empty(), "there is no scenario {}", only.unwrap_or(""));
    let next = AtomicUsize::new(0);
    let report = Mutex::new(Ok(Report::default()));
    let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(scenario) = scenarios.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let part = all_crashes_of(scenario).with_context(|| scenario.name);
                    let mut report = report.lock().unwrap_or_else(PoisonError::into_inner);
                    match (part, &mut *report) {
                        (Ok(part), Ok(report)) => {
                            report.scenarios += part.scenarios;
                            report.crashes += part.crashes;
                            report.failed.extend(part.failed);
                        }
                        (Err(error), slot) => *slot = Err(error),
                        (Ok(_), Err(_)) => return,
                    }
                }
            });
        }
    });
    let mut report = report.into_inner().unwrap_or_else(PoisonError::into_inner)?;
    report.failed.sort_by_key(|(scenario, victim, k, _)| (*scenario, *victim, *k));
    Ok(report)
}

fn all_crashes_of(scenario: &Scenario) -> anyhow::Result<Report> {
    let mut report = Report { scenarios: 1, ..Report::default() };
    let calm = run(scenario, None)?;
    if !calm.violations.is_empty() {
        report.failed.push((scenario.name, "nobody", 0, calm.violations));
        return Ok(report);
    }
    for victim in [Victim::Scheduler, Victim::Controller] {
        for k in 1..=writes_of(&calm.history, &first_life(victim)) {
            report.crashes += 1;
            let end = run(scenario, Some((victim, k)))?;
            let mut violations = end.violations;
            if end.bound != calm.bound {
                let what = format!("{} pods are bound, without a crash {}", end.bound, calm.bound);
                violations.push(Violation { invariant: Invariant::I11, time_ms: 0, what });
            }
            if !violations.is_empty() {
                report.failed.push((scenario.name, victim.name(), k, violations));
            }
        }
    }
    Ok(report)
}

fn first_life(victim: Victim) -> String {
    format!("{}-1", victim.name())
}

/// Writes of a process up to its last that is no renewal of its lease.
fn writes_of(history: &[WriteRecord], identity: &str) -> u64 {
    let own = history.iter().filter(|it| &*it.identity == identity && it.applied());
    own.zip(1..).filter(|(it, _)| it.resource != "leases").last().map_or(0, |(_, number)| number)
}

struct End {
    history: Vec<WriteRecord>,
    violations: Vec<Violation>,
    /// Pods that have a node, and those that had one and ended.
    bound: usize,
}

fn run(scenario: &Scenario, crash: Option<(Victim, u64)>) -> anyhow::Result<End> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .context("runtime")?;
    runtime.block_on(play(scenario, crash))
}

async fn play(scenario: &Scenario, crash: Option<(Victim, u64)>) -> anyhow::Result<End> {
    let cluster = Cluster::new(0)?;
    let server = cluster.server.clone();
    let sky = Arc::new(Sky::default());
    sky.calm();
    let mut script = (scenario.script)();
    while script.first().is_some_and(|(at, _)| *at == 0) {
        perform(&server, script.remove(0).1)?;
    }
    if let Some((victim, k)) = crash {
        server.crash_after_write(&first_life(victim), k);
    }
    let start = |name: &str, program: Program| {
        Process::start(&server, name, program, Dice::new(0, 0), Arc::clone(&sky))
    };
    let mut options = Cluster::scheduler(true);
    let (stop, mut programs) = (CancellationToken::new(), None);
    if scenario.suspends {
        options.conf = SchedulerConf::tephra();
        programs = Some(Programs {
            scheduler: "scheduler".to_owned(),
            controller: "controller".to_owned(),
        });
    }
    let operators = Operators::start(&server, Dice::new(0, 1), stop.clone());
    let processes =
        [start("controller", Program::Controller), start("scheduler", Program::Scheduler(options))];
    let started = tokio::time::Instant::now();
    for (at, step) in script {
        tokio::time::sleep_until(started + Duration::from_millis(at)).await;
        perform(&server, step)?;
    }
    let rested = cluster.rest(QUIET[usize::from(scenario.suspends)], PATIENCE).await;
    let ended_ms = server.clock().now_ms();
    let history = server.history();
    let rules = Rules {
        staleness_ms: STALENESS_MS,
        ended_ms: Some(ended_ms),
        all_ends: programs.is_some(),
        keeps_room: programs.is_some(),
        suspension: programs,
        ..Rules::default()
    };
    let mut violations = checker::check_with(&history, &rules);
    let mut strange = |what: String| {
        violations.push(Violation { invariant: Invariant::I12, time_ms: ended_ms, what });
    };
    if !rested {
        strange(format!("after {PATIENCE:?} something is still being written"));
    }
    stop.cancel();
    if let Err(error) = operators.await {
        strange(format!("the operators failed: {error}"));
    }
    for process in processes {
        let vita = Arc::clone(&process.vita);
        process.stop().await;
        vita.strange_ends().into_iter().for_each(&mut strange);
    }
    let pods = server.list_values("pods");
    let bound = pods.iter().filter(|pod| pod["spec"]["nodeName"].is_string()).count();
    cluster.close().await;
    Ok(End { history, violations, bound })
}

fn perform(server: &ApiServer, step: Step) -> anyhow::Result<()> {
    match step {
        Step::Create(object) => server.create_value(object).map(drop)?,
        Step::Delete(resource, namespace, name) => {
            server.delete_value(resource, namespace, name)?;
        }
    }
    Ok(())
}
