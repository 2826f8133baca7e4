//! `tephra bench`: the core alone. Builds a synthetic cluster (not timed), runs whole sessions until nothing more is
//! bound (timed: opening, every action, commits, closing), then measures what a session costs after a small change.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::process::ExitCode;
use std::str::FromStr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use clap::{Args, ValueEnum};
use comfy_table::{Table, presets};
use serde::Serialize;
use tephra_api::conf::{PluginOption, SchedulerConf};
use tephra_core::decision::Decision;
use tephra_core::event::{Event, ObjectKey};
use tephra_core::workload::{
    BenchWorkload, DecisionHash, GANGS, TopologyWorkload, VolcanoWorkload, bench_workload,
    volcano_workload,
};
use tephra_core::{Core, Options};

use crate::scenario::config::Chosen;

// The reference scheduler of the core's tests: what it decides is what the core must decide.
mod preempt;
#[path = "../../../scheduler/core/tests/reference/model/mod.rs"]
#[allow(
    dead_code,
    unreachable_pub,
    missing_debug_implementations,
    reason = "shared with the tests of the core, which use all of it"
)]
mod reference;

/// Arguments of `tephra bench`.
#[derive(Clone, Debug, Args)]
pub struct BenchArgs {
    /// Nodes
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub nodes: u32,
    /// Resident pods; ten a node when absent (scenario core)
    #[arg(long, value_name = "P", value_parser = clap::value_parser!(u32).range(0..=20_000_000))]
    pub pods: Option<u32>,
    /// Size of the waiting gangs: they have an eighth to eight times as many pods (scenario core)
    #[arg(long, value_name = "K", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub gang: u32,
    /// core: a mixed GPU cluster, 1,000 waiting gangs of which about half cannot fit; preempt: a full GPU cluster and
    /// gangs that others must make room for; volcano-GxP: G gangs of P pods on an empty cluster of equal nodes, as the
    /// real Volcano was timed on; topology: gangs that must stay in one rack or spine
    #[arg(long, value_name = "NAME", default_value = "core")]
    pub scenario: Scenario,
    /// Configuration: builtin, volcano, tephra, or a file
    #[arg(long, value_name = "NAME|FILE")]
    pub conf: Option<String>,
    /// Seed of the mixed cluster
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Let the slow reference scheduler decide the same and compare the hashes; exit 1 when they differ
    #[arg(long)]
    pub reference: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    pub output: Format,
}

/// How figures are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A table for people.
    #[default]
    Table,
    /// One JSON object on one line.
    Json,
}

/// What is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scenario {
    /// The mixed cluster.
    Core,
    /// The full cluster.
    Preempt,
    /// Equal nodes, an empty cluster.
    Volcano {
        /// Gangs.
        gangs: u32,
        /// Pods of each.
        size: u32,
    },
    /// Racks and spines.
    Topology,
}

impl FromStr for Scenario {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "core" {
            return Ok(Self::Core);
        }
        if text == "preempt" {
            return Ok(Self::Preempt);
        }
        if text == "topology" {
            return Ok(Self::Topology);
        }
        text.strip_prefix("volcano-")
            .and_then(|rest| rest.split_once('x'))
            .and_then(|(gangs, size)| Some((gangs.parse().ok()?, size.parse().ok()?)))
            .filter(|&(gangs, size)| {
                gangs > 0 && size > 0 && u64::from(gangs) * u64::from(size) <= 20_000_000
            })
            .map(|(gangs, size)| Self::Volcano { gangs, size })
            .ok_or_else(|| {
                "expected core, preempt, topology, volcano-10x100, volcano-100x100 or another volcano-GANGSxPODS"
                    .to_owned()
            })
    }
}

impl std::fmt::Display for Scenario {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Core => f.write_str("core"),
            Self::Preempt => f.write_str("preempt"),
            Self::Topology => f.write_str("topology"),
            Self::Volcano { gangs, size } => write!(f, "volcano-{gangs}x{size}"),
        }
    }
}

/// The figures, in the order in which they are printed.
#[derive(Clone, Debug, Serialize)]
struct Figures {
    scenario: String,
    nodes: u32,
    /// Resident pods.
    pods: u32,
    gang: u32,
    /// Pods bound.
    bound: u32,
    /// Gangs of which nothing was bound when no session bound anything any more.
    refused: u32,
    evicted: u32,
    /// Wall time of all sessions, the last one (that bound nothing) included.
    seconds: f64,
    pods_per_s: f64,
    /// Median time to take in a 0.1 % change and run a session for which nothing waits.
    open_ms: f64,
    /// Mean time of a session.
    session_ms: f64,
    /// Mean time per waiting gang.
    gang_ms: f64,
    rss_mib: f64,
    /// Hash of the ordered list of binds (pod uid, node).
    decision_hash: String,
}

/// Changes after which the opening of a session is measured; the median counts.
const ROUNDS: u32 = 9;

/// Runs the command on standard output.
pub fn run(args: BenchArgs) -> anyhow::Result<ExitCode> {
    let mut out = io::stdout().lock();
    if args.scenario == Scenario::Preempt {
        let conf = args.conf.is_some().then(|| configuration(&args)).transpose()?;
        let figures = preempt::measure(args.nodes, args.seed, conf)?;
        print(&figures, args.output, &mut out)?;
        return Ok(ExitCode::SUCCESS);
    }
    let figures = measure(&args)?;
    print(&figures, args.output, &mut out)?;
    if args.reference {
        let hash = reference_hash(&args)?;
        writeln!(io::stderr(), "reference scheduler: decision hash {hash}")?;
        if hash != figures.decision_hash {
            return Ok(ExitCode::from(1));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn print(figures: &impl Serialize, format: Format, out: &mut dyn Write) -> anyhow::Result<()> {
    if format == Format::Json {
        return Ok(writeln!(out, "{}", serde_json::to_string(figures)?)?);
    }
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    if let serde_json::Value::Object(map) = serde_json::to_value(figures)? {
        for (key, value) in map {
            table.add_row([key, value.as_str().map_or_else(|| value.to_string(), str::to_owned)]);
        }
    }
    Ok(writeln!(out, "{table}")?)
}

/// The configuration: as given, else what Volcano ships, or what it was timed with (that has no overcommit).
fn configuration(args: &BenchArgs) -> anyhow::Result<SchedulerConf> {
    if let Some(chosen) = &args.conf {
        let chosen = Chosen::of_flag(chosen)?;
        ensure!(chosen.error.is_none(), "{}", chosen.error.unwrap_or_default());
        return Ok(chosen.conf);
    }
    let mut conf = SchedulerConf::volcano();
    if args.scenario != Scenario::Core {
        for tier in &mut conf.tiers {
            tier.plugins.retain(|plugin| plugin.name != "overcommit");
        }
    }
    if args.scenario == Scenario::Topology
        && let Some(last) = conf.tiers.last_mut()
    {
        last.plugins.push(PluginOption::new("network-topology-aware"));
    }
    Ok(conf)
}

enum Workload {
    Mixed(BenchWorkload),
    Volcano(VolcanoWorkload),
    Topology(TopologyWorkload),
}

impl Workload {
    fn of(args: &BenchArgs) -> Self {
        match args.scenario {
            Scenario::Core | Scenario::Preempt => {
                Self::Mixed(bench_workload(args.nodes, residents(args), args.gang, args.seed))
            }
            Scenario::Volcano { gangs, size } => {
                Self::Volcano(volcano_workload(gangs, size, args.nodes))
            }
            Scenario::Topology => {
                Self::Topology(TopologyWorkload { nodes: args.nodes, size: args.gang })
            }
        }
    }

    fn build(&self, emit: &mut impl FnMut(Event)) {
        match self {
            Self::Mixed(workload) => {
                workload.residents(emit);
                workload.waiting(emit);
            }
            Self::Volcano(workload) => workload.events(emit),
            Self::Topology(workload) => workload.events(emit),
        }
    }

    /// Takes back what still waits, so that the next sessions have nothing to place.
    fn quieten(&self, emit: &mut impl FnMut(Event)) {
        match self {
            Self::Mixed(workload) => workload.withdraw(emit),
            Self::Volcano(workload) => workload.withdraw(emit),
            Self::Topology(workload) => workload.withdraw(emit),
        }
    }

    fn change(&self, round: u32, emit: &mut impl FnMut(Event)) {
        match self {
            Self::Mixed(workload) => workload.change(round, emit),
            Self::Volcano(workload) => workload.change(round, emit),
            Self::Topology(workload) => workload.change(round, emit),
        }
    }

    fn gangs(&self) -> u32 {
        match self {
            Self::Mixed(_) => GANGS,
            Self::Volcano(workload) => workload.gangs,
            Self::Topology(workload) => workload.gangs(),
        }
    }
}

fn residents(args: &BenchArgs) -> u32 {
    match args.scenario {
        Scenario::Core | Scenario::Preempt => {
            args.pods.unwrap_or_else(|| args.nodes.saturating_mul(10))
        }
        Scenario::Volcano { .. } | Scenario::Topology => 0,
    }
}

fn measure(args: &BenchArgs) -> anyhow::Result<Figures> {
    let workload = Workload::of(args);
    let mut core = Core::new(Options::default(), &configuration(args)?);
    workload.build(&mut |event| core.apply(event));

    let (mut bound, mut evicted, mut sessions) = (0, 0, 0_u32);
    let mut elapsed = Duration::ZERO;
    let mut hash = DecisionHash::default();
    let mut placed: BTreeSet<ObjectKey> = BTreeSet::new();
    loop {
        let start = Instant::now();
        let report = core.session(now_ms(sessions));
        elapsed += start.elapsed();
        sessions += 1;
        bound += report.bound;
        for decision in report.decisions {
            match decision {
                Decision::Bind(gang) => {
                    gang.binds.iter().for_each(|(pod, node)| hash.bind(&pod.uid, node));
                    placed.insert(gang.group);
                }
                Decision::Evict { .. } => evicted += 1,
                _ => {}
            }
        }
        if report.bound == 0 {
            break;
        }
    }
    let rss_mib = resident_mib()?;
    let gangs = workload.gangs();
    let seconds = elapsed.as_secs_f64();
    Ok(Figures {
        scenario: args.scenario.to_string(),
        nodes: args.nodes,
        pods: residents(args),
        gang: match args.scenario {
            Scenario::Core | Scenario::Preempt | Scenario::Topology => args.gang,
            Scenario::Volcano { size, .. } => size,
        },
        bound,
        refused: gangs - placed.len() as u32,
        evicted,
        seconds,
        pods_per_s: if seconds > 0.0 { f64::from(bound) / seconds } else { 0.0 },
        open_ms: opening_ms(&mut core, &workload, sessions),
        session_ms: seconds * 1e3 / f64::from(sessions),
        gang_ms: seconds * 1e3 / f64::from(gangs),
        rss_mib,
        decision_hash: hash.text(),
    })
}

/// Sessions are a second apart.
fn now_ms(session: u32) -> i64 {
    1_000_000 + i64::from(session) * 1_000
}

/// Median time of a session after a 0.1 % change: applying the change and the session, which has nothing to place.
fn opening_ms(core: &mut Core, workload: &Workload, sessions: u32) -> f64 {
    workload.quieten(&mut |event| core.apply(event));
    core.session(now_ms(sessions));
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|round| {
            let mut events = Vec::new();
            workload.change(round, &mut |event| events.push(event));
            let start = Instant::now();
            core.apply_all(events);
            core.session(now_ms(sessions + 1 + round));
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e3
}

/// Resident memory of this process.
fn resident_mib() -> anyhow::Result<f64> {
    let status =
        std::fs::read_to_string("/proc/self/status").context("reading /proc/self/status")?;
    let kib = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|rest| rest.split_whitespace().next())
        .and_then(|number| number.parse::<f64>().ok())
        .context("/proc/self/status names no VmRSS")?;
    Ok(kib / 1024.0)
}

/// Decision hash of the reference scheduler on the same workload.
fn reference_hash(args: &BenchArgs) -> anyhow::Result<String> {
    let conf = configuration(args)?;
    for action in &conf.actions {
        let known = ["enqueue", "allocate", "backfill"].contains(&action.as_str());
        ensure!(known, "the reference scheduler has no action {action}");
    }
    let mut model = reference::Model::new(&conf);
    Workload::of(args).build(&mut |event| model.apply(event));
    let mut hash = DecisionHash::default();
    loop {
        let decided = model.session(now_ms(0));
        if decided.binds.is_empty() {
            return Ok(hash.text());
        }
        for (pod, node) in decided.binds.iter().flat_map(|(_, binds)| binds) {
            hash.bind(pod, node);
        }
    }
}

#[cfg(test)]
mod tests;
