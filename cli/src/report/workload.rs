//! Workload files: a pool, teams, what each team submits, and for how long. Every struct refuses keys it does not know.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use serde::{Deserialize, Deserializer};
use tephra_api::quantity::Quantity;

use super::plan::PodShape;
use super::victim::Checkpoints;
use crate::scenario::file::parse_duration;

/// A workload file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Workload {
    /// Name in the report.
    pub name: String,
    /// What it is for.
    #[serde(default)]
    pub description: String,
    /// How long it goes on. A trace without one is played to its last ending.
    #[serde(default)]
    pub horizon: Option<Span>,
    /// One run each.
    #[serde(default = "one_seed")]
    pub seeds: Vec<u64>,
    /// The nodes, all alike.
    #[serde(default)]
    pub pool: Option<Pool>,
    /// What every pod asks for.
    #[serde(default)]
    pub pod: Pod,
    /// Waiting jobs of a queue that the scheduler sees; all when absent.
    #[serde(default)]
    pub lookahead: Option<usize>,
    /// A session at least so often while something waits; 30 s when absent.
    #[serde(default)]
    pub wake: Option<Span>,
    /// The teams.
    #[serde(default)]
    pub queues: Vec<Queue>,
    /// The same load under other weights or checkpoints; one variant without changes when absent.
    #[serde(default)]
    pub variants: Vec<Variant>,
    /// A public trace instead of pool and queues.
    #[serde(default)]
    pub trace: Option<TraceFiles>,
}

/// Equal nodes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Pool {
    /// Number.
    pub nodes: u32,
    /// GPUs of each.
    pub gpus: u32,
    /// CPU of each.
    pub cpu: Amount,
    /// Memory of each.
    pub memory: Amount,
}

/// What a pod asks for.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Pod {
    /// GPUs.
    pub gpus: u32,
    /// CPU.
    pub cpu: Amount,
    /// Memory.
    pub memory: Amount,
}

impl Default for Pod {
    fn default() -> Self {
        let amount = |value| Amount(Quantity::from_value(value));
        Self { gpus: 1, cpu: amount(1), memory: amount(4 << 30) }
    }
}

impl Pod {
    /// In stored units.
    pub fn shape(&self) -> PodShape {
        PodShape {
            cpu_milli: self.cpu.0.milli_value(),
            memory: self.memory.0.value(),
            gpus: i64::from(self.gpus),
            models: Vec::new(),
        }
    }
}

/// A team's queue.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Queue {
    /// Name.
    pub name: String,
    /// Weight, 1 when absent.
    #[serde(default = "one")]
    pub weight: i32,
    /// What it submits.
    pub jobs: Vec<Stream>,
}

/// Jobs of one kind.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Stream {
    /// Pods of a job.
    pub gang: Gang,
    /// How long jobs run.
    pub runtime: Runtime,
    /// When they come.
    pub arrival: Arrival,
    /// What their owners say about their run time.
    #[serde(default)]
    pub estimate: Estimate,
}

/// Pods of a job.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Gang {
    /// Always so many.
    Fixed(u32),
    /// One of these, each as likely.
    Choice(Vec<u32>),
    /// Any number from the first to the second.
    Uniform(u32, u32),
}

impl Gang {
    /// Expected number.
    pub fn mean(&self) -> f64 {
        match self {
            Self::Fixed(size) => f64::from(*size),
            Self::Choice(sizes) => {
                sizes.iter().map(|&size| f64::from(size)).sum::<f64>() / sizes.len() as f64
            }
            Self::Uniform(from, to) => (f64::from(*from) + f64::from(*to)) / 2.0,
        }
    }

    fn is_sound(&self) -> bool {
        match self {
            Self::Fixed(size) => *size > 0,
            Self::Choice(sizes) => !sizes.is_empty() && sizes.iter().all(|&size| size > 0),
            Self::Uniform(from, to) => *from > 0 && from <= to,
        }
    }
}

/// How long jobs run.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Runtime {
    /// Always so long.
    Fixed(Span),
    /// Lognormal with this mean; `sigma` is the standard deviation of the logarithm.
    Lognormal {
        /// Mean.
        mean: Span,
        /// Spread, 1 when absent.
        #[serde(default = "unit")]
        sigma: f64,
    },
}

impl Runtime {
    /// Mean in milliseconds.
    pub fn mean_ms(&self) -> f64 {
        match self {
            Self::Fixed(span) | Self::Lognormal { mean: span, .. } => span.0 as f64,
        }
    }
}

/// When jobs come. `load` is the offered work as a multiple of the queue's share of the pool by weight.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Arrival {
    /// At random moments.
    Poisson {
        /// Offered work.
        load: f64,
    },
    /// Most of the work in one part of each period.
    Bursty {
        /// Offered work.
        load: f64,
        /// Length of a period.
        every: Span,
        /// When in the period the burst begins.
        #[serde(default)]
        shift: Span,
        /// Part of the period that the burst takes.
        within: f64,
        /// Part of the work that comes in the burst, all when absent.
        #[serde(default = "unit")]
        share: f64,
    },
    /// Everything is there at the start: the queue is backlogged until it has had so much.
    AtStart {
        /// Work over the whole horizon.
        load: f64,
    },
}

/// What owners say about the run time.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Estimate {
    /// Nothing.
    #[default]
    None,
    /// The truth.
    Exact,
    /// The truth times any factor between 1 - x and 1 + x.
    Off(f64),
}

/// The same load under other circumstances.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Variant {
    /// Name in the report.
    pub name: String,
    /// Weights in the order of the queues.
    #[serde(default)]
    pub weights: Option<Vec<i32>>,
    /// How jobs write checkpoints; never when absent.
    #[serde(default)]
    pub checkpoint: Checkpoint,
}

/// How jobs write checkpoints.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Checkpoint {
    /// After so much work.
    pub every: Option<Span>,
    /// On notice, losing so much.
    pub on_notice: Option<Span>,
    /// How long a restart takes.
    pub restore: Span,
}

impl Checkpoint {
    /// In milliseconds.
    pub fn rules(&self) -> Checkpoints {
        Checkpoints {
            every_ms: self.every.map(|span| span.0),
            on_notice_ms: self.on_notice.map(|span| span.0),
            restore_ms: self.restore.0,
        }
    }
}

/// The files of a trace.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct TraceFiles {
    /// Pods: `openb_pod_list_*.csv`.
    pub pods: PathBuf,
    /// Nodes: `openb_node_list_*.csv`.
    pub nodes: PathBuf,
    /// Only the first so many nodes, to make room scarce.
    #[serde(default)]
    pub take_nodes: Option<usize>,
}

/// A length of time in milliseconds, written `30s`, `15m`, `300h`; never negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span(pub i64);

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let ms = parse_duration(&text).map_err(serde::de::Error::custom)?;
        if ms < 0 {
            return Err(serde::de::Error::custom(format!("{text} is negative")));
        }
        Ok(Self(ms))
    }
}

/// A Kubernetes quantity.
#[derive(Clone, Copy, Debug)]
pub struct Amount(pub Quantity);

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Quantity::parse(&text).map(Self).map_err(serde::de::Error::custom)
    }
}

fn one() -> i32 {
    1
}

fn unit() -> f64 {
    1.0
}

fn one_seed() -> Vec<u64> {
    vec![1]
}

impl Workload {
    /// Reads a file. Paths of a trace are relative to it.
    ///
    /// # Errors
    /// When it cannot be read, has an unknown key or an impossible value.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read the workload {}", path.display()))?;
        let mut workload =
            Self::parse(&text).with_context(|| format!("the workload {}", path.display()))?;
        let folder = path.parent().unwrap_or_else(|| Path::new("."));
        if let Some(trace) = &mut workload.trace {
            trace.pods = folder.join(&trace.pods);
            trace.nodes = folder.join(&trace.nodes);
        }
        Ok(workload)
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// As [`Workload::read`].
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        let mut workload: Self = serde_saphyr::from_str(text)?;
        if workload.variants.is_empty() {
            workload.variants.push(Variant { name: "plain".to_owned(), ..Variant::default() });
        }
        workload.check()?;
        Ok(workload)
    }

    /// A workload that is only a trace.
    pub fn of_trace(name: String, trace: TraceFiles) -> Self {
        Self {
            name,
            description: String::new(),
            horizon: None,
            seeds: one_seed(),
            pool: None,
            pod: Pod::default(),
            lookahead: None,
            wake: None,
            queues: Vec::new(),
            variants: vec![Variant { name: "plain".to_owned(), ..Variant::default() }],
            trace: Some(trace),
        }
    }

    fn check(&self) -> anyhow::Result<()> {
        ensure!(!self.seeds.is_empty(), "seeds: names none");
        let horizon = self.horizon.map(|span| span.0);
        ensure!(horizon != Some(0), "horizon: must be longer than nothing");
        ensure!(self.wake != Some(Span(0)), "wake: must be longer than nothing");
        ensure!(self.lookahead != Some(0), "lookahead: must be at least 1");
        if self.trace.is_some() {
            ensure!(
                self.pool.is_none() && self.queues.is_empty(),
                "trace: replaces pool and queues"
            );
            return Ok(());
        }
        let pool = self.pool.as_ref().context("pool: is missing")?;
        ensure!(horizon.is_some(), "horizon: is missing");
        ensure!((1..=100_000).contains(&pool.nodes), "pool.nodes: must be from 1 to 100000");
        ensure!(!self.queues.is_empty(), "queues: names none");
        for (at, queue) in self.queues.iter().enumerate() {
            ensure!(queue.weight > 0, "queues[{at}].weight: must be at least 1");
            ensure!(!queue.name.is_empty(), "queues[{at}].name: is empty");
            let twice = self.queues[..at].iter().any(|other| other.name == queue.name);
            ensure!(!twice, "queues[{at}].name: {} is there twice", queue.name);
            for (number, stream) in queue.jobs.iter().enumerate() {
                stream.check().with_context(|| format!("queues[{at}].jobs[{number}]"))?;
            }
        }
        for (at, variant) in self.variants.iter().enumerate() {
            let Some(weights) = &variant.weights else { continue };
            let fits = weights.len() == self.queues.len() && weights.iter().all(|&w| w > 0);
            ensure!(fits, "variants[{at}].weights: one weight above 0 for each queue");
        }
        Ok(())
    }
}

impl Stream {
    fn check(&self) -> anyhow::Result<()> {
        ensure!(self.gang.is_sound(), "gang: sizes must be at least 1");
        ensure!(self.runtime.mean_ms() >= 1000.0, "runtime: must be at least 1s");
        if let Runtime::Lognormal { sigma, .. } = self.runtime {
            ensure!((0.0..=5.0).contains(&sigma), "runtime.sigma: must be from 0 to 5");
        }
        let load = match self.arrival {
            Arrival::Poisson { load } | Arrival::AtStart { load } => load,
            Arrival::Bursty { load, every, within, share, shift } => {
                ensure!(within > 0.0 && within <= 1.0, "arrival.within: must be in (0, 1]");
                ensure!((0.0..=1.0).contains(&share), "arrival.share: must be from 0 to 1");
                ensure!(
                    share == 1.0 || within < 1.0,
                    "arrival.share: nothing is outside the burst"
                );
                ensure!(every.0 > 0, "arrival.every: must be longer than nothing");
                ensure!(shift.0 <= every.0, "arrival.shift: is longer than the period");
                load
            }
        };
        ensure!(load > 0.0 && load <= 100.0, "arrival.load: must be above 0 and at most 100");
        if let Estimate::Off(by) = self.estimate {
            ensure!((0.0..1.0).contains(&by), "estimate.off: must be from 0 to below 1");
        }
        Ok(())
    }
}
