//! Makes a plan of a workload: the jobs of each stream from the seed, independent of all other streams.

use anyhow::Context as _;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};
use rand_distr::{Distribution as _, Exp, LogNormal};

use super::plan::{Job, NodeShape, Plan, Team};
use super::trace;
use super::workload::{Arrival, Estimate, Gang, Runtime, Stream, Variant, Workload};

/// A session at least so often while something waits, unless the workload says otherwise.
const WAKE_MS: i64 = 30_000;
/// Shortest run of a job.
const SHORTEST_MS: i64 = 1_000;

/// The plan of one variant and seed.
///
/// # Errors
/// When a trace cannot be read, or a distribution is impossible.
pub fn plan(workload: &Workload, variant: &Variant, seed: u64) -> anyhow::Result<Plan> {
    let mut plan = Plan {
        nodes: Vec::new(),
        teams: Vec::new(),
        shapes: Vec::new(),
        jobs: Vec::new(),
        horizon_ms: workload.horizon.map_or(0, |span| span.0),
        lookahead: workload.lookahead.unwrap_or(usize::MAX),
        wake_ms: workload.wake.map_or(WAKE_MS, |span| span.0),
        checkpoints: variant.checkpoint.rules(),
    };
    if let Some(files) = &workload.trace {
        trace::fill(&mut plan, files, variant.weights.as_deref())?;
        return Ok(plan);
    }
    let pool = workload.pool.as_ref().context("pool: is missing")?;
    let node = NodeShape {
        cpu_milli: pool.cpu.0.milli_value(),
        memory: pool.memory.0.value(),
        gpus: i64::from(pool.gpus),
        model: String::new(),
    };
    plan.nodes = vec![node; pool.nodes as usize];
    plan.shapes = vec![workload.pod.shape()];
    plan.teams = workload
        .queues
        .iter()
        .enumerate()
        .map(|(at, queue)| Team {
            name: queue.name.clone(),
            weight: variant.weights.as_ref().map_or(queue.weight, |weights| weights[at]),
        })
        .collect();
    let targets = plan.targets();
    let one_pod = plan.charge(&Job {
        team: 0,
        arrival_ms: 0,
        pods: 1,
        shape: 0,
        runtime_ms: 1,
        estimate_ms: None,
    });
    for (team, queue) in workload.queues.iter().enumerate() {
        let pods = plan.capacity() * targets[team] / one_pod.max(f64::MIN_POSITIVE);
        for (number, stream) in queue.jobs.iter().enumerate() {
            let stream_seed = seed ^ ((team as u64) << 40) ^ ((number as u64) << 32);
            let mut rng = ChaCha8Rng::seed_from_u64(stream_seed);
            jobs(stream, team, pods, plan.horizon_ms, &mut rng, &mut plan.jobs)?;
        }
    }
    plan.jobs.sort_by_key(|job| (job.arrival_ms, job.team));
    Ok(plan)
}

/// The jobs of a stream whose queue's fair share is so many pods.
fn jobs(
    stream: &Stream,
    team: usize,
    fair_pods: f64,
    horizon_ms: i64,
    rng: &mut ChaCha8Rng,
    jobs: &mut Vec<Job>,
) -> anyhow::Result<()> {
    let job_work = stream.gang.mean() * stream.runtime.mean_ms();
    match stream.arrival {
        Arrival::Poisson { load } => {
            for at in poisson(load * fair_pods / job_work, horizon_ms, rng)? {
                jobs.push(job(stream, team, at as i64, rng)?);
            }
        }
        Arrival::Bursty { load, every, shift, within, share } => {
            let rate = load * fair_pods / job_work;
            let (every, shift) = (every.0 as f64, shift.0 as f64);
            let parts =
                [(share, within, shift), (1.0 - share, 1.0 - within, shift + within * every)];
            for (share, within, begin) in parts {
                if share <= 0.0 {
                    continue;
                }
                // Time goes on only inside the windows, where the work of the whole period comes.
                let window = within * every;
                let active_ms = horizon_ms as f64 * within + every;
                for active in poisson(rate * share / within, active_ms as i64, rng)? {
                    let period = (active / window).floor() - 1.0;
                    let at = period * every + begin + active % window;
                    if (0.0..horizon_ms as f64).contains(&at) {
                        jobs.push(job(stream, team, at as i64, rng)?);
                    }
                }
            }
        }
        Arrival::AtStart { load } => {
            let wanted = load * fair_pods * horizon_ms as f64;
            let mut work = 0.0;
            while work < wanted {
                let job = job(stream, team, 0, rng)?;
                work += f64::from(job.pods) * job.runtime_ms as f64;
                jobs.push(job);
            }
        }
    }
    Ok(())
}

/// Moments of a Poisson process with a rate per millisecond.
fn poisson(rate: f64, end_ms: i64, rng: &mut ChaCha8Rng) -> anyhow::Result<Vec<f64>> {
    let gap = Exp::new(rate).context("arrival: impossible rate")?;
    let mut moments = Vec::new();
    let mut at = gap.sample(rng);
    while at < end_ms as f64 {
        moments.push(at);
        at += gap.sample(rng);
    }
    Ok(moments)
}

fn job(stream: &Stream, team: usize, arrival_ms: i64, rng: &mut ChaCha8Rng) -> anyhow::Result<Job> {
    let pods = match &stream.gang {
        Gang::Fixed(size) => *size,
        Gang::Choice(sizes) => sizes[rng.random_range(0..sizes.len())],
        Gang::Uniform(from, to) => rng.random_range(*from..=*to),
    };
    let runtime_ms = match stream.runtime {
        Runtime::Fixed(span) => span.0,
        Runtime::Lognormal { mean, sigma } => {
            let mu = (mean.0 as f64).ln() - sigma * sigma / 2.0;
            LogNormal::new(mu, sigma).context("runtime: impossible distribution")?.sample(rng)
                as i64
        }
    };
    let runtime_ms = runtime_ms.max(SHORTEST_MS);
    let estimate_ms = match stream.estimate {
        Estimate::None => None,
        Estimate::Exact => Some(runtime_ms),
        Estimate::Off(by) => {
            let factor: f64 = rng.random_range(1.0 - by..=1.0 + by);
            Some((runtime_ms as f64 * factor) as i64)
        }
    };
    Ok(Job { team, arrival_ms, pods, shape: 0, runtime_ms, estimate_ms })
}
