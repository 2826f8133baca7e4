//! What one simulated run is made of, whoever made it: a generator from a seed, or a trace. All times are milliseconds
//! since the start of the run.

use super::victim::Checkpoints;

/// A node of the simulated pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeShape {
    /// Milli-CPU.
    pub cpu_milli: i64,
    /// Bytes.
    pub memory: i64,
    /// Whole GPUs.
    pub gpus: i64,
    /// GPU model, empty when nobody asks for one.
    pub model: String,
}

/// What each pod of a job asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PodShape {
    /// Milli-CPU.
    pub cpu_milli: i64,
    /// Bytes.
    pub memory: i64,
    /// Whole GPUs.
    pub gpus: i64,
    /// GPU models it accepts; empty: any.
    pub models: Vec<String>,
}

/// A team.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Team {
    /// Name of its queue.
    pub name: String,
    /// Weight of its queue, at least 1.
    pub weight: i32,
}

/// A gang that arrives, waits, runs and ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Index of its team.
    pub team: usize,
    /// When it is submitted.
    pub arrival_ms: i64,
    /// Pods, all of which it needs.
    pub pods: u32,
    /// Index of the shape of its pods.
    pub shape: usize,
    /// How long it runs when nobody stops it, at least 1.
    pub runtime_ms: i64,
    /// What its owner says about that.
    pub estimate_ms: Option<i64>,
}

/// One run: the same plan and the same configuration give the same decisions.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The pool.
    pub nodes: Vec<NodeShape>,
    /// The teams.
    pub teams: Vec<Team>,
    /// Shapes of pods.
    pub shapes: Vec<PodShape>,
    /// Jobs by arrival.
    pub jobs: Vec<Job>,
    /// When the run ends.
    pub horizon_ms: i64,
    /// Waiting jobs of a queue that the scheduler sees, the oldest first; the others are still with their team.
    pub lookahead: usize,
    /// A session is run at least so often while something waits.
    pub wake_ms: i64,
    /// What a stopped job keeps.
    pub checkpoints: Checkpoints,
}

impl Plan {
    /// What counts as service: GPUs, or cores in a pool without any.
    pub fn capacity(&self) -> f64 {
        let gpus: i64 = self.nodes.iter().map(|node| node.gpus).sum();
        if gpus > 0 {
            return gpus as f64;
        }
        self.nodes.iter().map(|node| node.cpu_milli as f64 / 1000.0).sum()
    }

    /// What a job holds of the capacity while it runs.
    pub fn charge(&self, job: &Job) -> f64 {
        let shape = &self.shapes[job.shape];
        let has_gpus = self.nodes.iter().any(|node| node.gpus > 0);
        let each = if has_gpus { shape.gpus as f64 } else { shape.cpu_milli as f64 / 1000.0 };
        each * f64::from(job.pods)
    }

    /// Each team's part of all weights.
    pub fn targets(&self) -> Vec<f64> {
        let sum: f64 = self.teams.iter().map(|team| f64::from(team.weight)).sum();
        self.teams.iter().map(|team| f64::from(team.weight) / sum).collect()
    }
}
