//! Overview of queues and jobs for those who watch: metrics today. They are derived when somebody asks, between
//! sessions, and nothing on the decision path reads them. Amounts are in Volcano's stored units.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::event::PodGroupPhase;
use crate::pipeline::Pipeline;
use crate::plugin::drf::dominant_share;
use crate::state::State;
use crate::state::jobs::{Job, JobId};
use crate::state::queues::{Queue, QueueId};
use crate::state::resource::{Dim, Ledger, Vector};

/// Jobs that get figures of their own. Whoever watches keeps some series for each of them, for as long as they exist.
pub const JOB_LIMIT: usize = 10_000;

/// Amounts by resource name.
pub type Named = Vec<(Arc<str>, f64)>;

/// Everything at one time.
#[derive(Clone, Debug, Default)]
pub struct Overview {
    /// Queues that exist, in no particular order.
    pub queues: Vec<QueueOverview>,
    /// Jobs, at most [`JOB_LIMIT`]: those that have not come to their end before others.
    pub jobs: Vec<JobOverview>,
    /// Jobs beyond that.
    pub jobs_left_out: usize,
    /// Share of the cluster that the jobs of each namespace have.
    pub namespaces: Vec<(Arc<str>, f64)>,
    /// Jobs with pods that are below their minimum.
    pub jobs_below: usize,
    /// Known nodes.
    pub nodes: usize,
    /// Known pods.
    pub pods: usize,
}

/// One queue.
#[derive(Clone, Debug)]
pub struct QueueOverview {
    /// Name.
    pub name: Arc<str>,
    /// Weight.
    pub weight: i32,
    /// A PodGroup names it.
    pub has_jobs: bool,
    /// What its pods have.
    pub allocated: Named,
    /// What its pods have or wait for.
    pub request: Named,
    /// `spec.capability`.
    pub capability: Option<Named>,
    /// What the plugin knows that gives queues shares.
    pub share: Option<ShareOverview>,
    /// Gangs that wait for admission or room.
    pub waiting: usize,
    /// How long the oldest of them waits that nothing but room or order keeps back, in milliseconds.
    pub oldest_wait_ms: i64,
}

/// The share of a queue.
#[derive(Clone, Debug)]
pub struct ShareOverview {
    /// What it deserves.
    pub deserved: Named,
    /// What it may reach.
    pub real_capability: Named,
    /// Largest part of what it deserves that it has.
    pub share: f64,
    /// It has all it deserves.
    pub overused: bool,
}

/// One job.
#[derive(Clone, Debug)]
pub struct JobOverview {
    /// Namespace of the PodGroup.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// Its queue.
    pub queue: Arc<str>,
    /// When it was created.
    pub created_ms: i64,
    /// When one of its pods last got a node from this process.
    pub placed_ms: Option<i64>,
    /// It has pods.
    pub has_pods: bool,
    /// It has come to its end.
    pub ended: bool,
    /// Members that it lacks to its minimum.
    pub missing: u32,
    /// Sessions that ended with it below its minimum.
    pub sessions_below: u64,
    /// Largest part of the cluster that it has.
    pub share: f64,
}

/// Derives everything.
pub(crate) fn overview(state: &State, pipeline: &Pipeline, now_ms: i64) -> Overview {
    let mut waits = vec![Waits::default(); state.queues.len()];
    let mut by_namespace: BTreeMap<&str, Ledger> = BTreeMap::new();
    let (mut active, mut ended) = (Vec::new(), Vec::new());
    let mut jobs_below = 0;
    for (id, job) in state.jobs.iter().enumerate() {
        if !job.live || job.group.is_none() || job.is_foreign() {
            continue;
        }
        by_namespace.entry(&job.key.namespace).or_default().add_all(&job.allocated);
        jobs_below += usize::from(job.is_below());
        waits[job.queue as usize].see(job, now_ms);
        if has_ended(job) { &mut ended } else { &mut active }.push(id as JobId);
    }
    let known = active.len() + ended.len();
    active.extend(ended);
    active.truncate(JOB_LIMIT);
    let namespaces = by_namespace.into_iter();
    Overview {
        queues: queues(state, pipeline, &waits),
        jobs_left_out: known - active.len(),
        jobs: active.into_iter().filter_map(|job| overview_of(state, job)).collect(),
        namespaces: namespaces
            .map(|(name, has)| (Arc::from(name), dominant_share(&has, &state.total)))
            .collect(),
        jobs_below,
        nodes: state.nodes.known().count(),
        pods: state.tasks.len(),
    }
}

/// Who waits in a queue.
#[derive(Clone, Copy, Debug, Default)]
struct Waits {
    jobs: usize,
    oldest_ms: i64,
}

impl Waits {
    fn see(&mut self, job: &Job, now_ms: i64) {
        if has_ended(job) || (!job.is_pending() && !job.awaits_room()) {
            return;
        }
        self.jobs += 1;
        let created_ms = job.group.as_ref().map_or(now_ms, |group| group.created_ms);
        if !job.held {
            self.oldest_ms = self.oldest_ms.max(now_ms - created_ms);
        }
    }
}

fn has_ended(job: &Job) -> bool {
    job.phase == PodGroupPhase::Completed
}

fn queues(state: &State, pipeline: &Pipeline, waits: &[Waits]) -> Vec<QueueOverview> {
    let queues = state.queues.iter().zip(waits).enumerate();
    let existing = queues.filter(|(_, (queue, _))| queue.exists);
    existing
        .map(|(id, (queue, waits))| overview_of_queue(state, pipeline, id, queue, waits))
        .collect()
}

fn overview_of_queue(
    state: &State,
    pipeline: &Pipeline,
    id: usize,
    queue: &Queue,
    waits: &Waits,
) -> QueueOverview {
    let share = pipeline.queue_share(state, id as QueueId).map(|share| ShareOverview {
        deserved: named(state, &share.deserved),
        real_capability: named(state, &share.real_capability),
        share: share.share,
        overused: share.overused,
    });
    let sum = |ledger: &Ledger| {
        let stored = |(dim, amount)| stored(state, dim, amount);
        ledger.iter().map(stored).collect()
    };
    QueueOverview {
        name: queue.name.clone(),
        weight: queue.weight,
        has_jobs: queue.jobs > 0,
        allocated: sum(&queue.allocated),
        request: sum(&queue.request),
        capability: queue.capability.as_ref().map(|capability| named(state, capability)),
        share,
        waiting: waits.jobs,
        oldest_wait_ms: waits.oldest_ms,
    }
}

/// Amounts that have an end: what has no limit is absent.
fn named(state: &State, vector: &Vector) -> Named {
    let finite = vector.dims().filter(|&dim| vector.get(dim).is_finite());
    finite.map(|dim| stored(state, dim, vector.get(dim) as i128)).collect()
}

fn stored(state: &State, dim: Dim, amount: i128) -> (Arc<str>, f64) {
    (state.dims.name(dim).clone(), state.dims.to_stored(dim, amount) as f64)
}

fn overview_of(state: &State, id: JobId) -> Option<JobOverview> {
    let job = &state.jobs[id as usize];
    Some(JobOverview {
        namespace: job.key.namespace.as_str().into(),
        name: job.key.name.as_str().into(),
        queue: state.queues[job.queue as usize].name.clone(),
        created_ms: job.group.as_ref()?.created_ms,
        placed_ms: job.placed_ms,
        has_pods: !job.tasks.is_empty(),
        ended: has_ended(job),
        missing: if job.is_below() { job.lacks() } else { 0 },
        sessions_below: job.sessions_below,
        share: dominant_share(&job.allocated, &state.total),
    })
}

#[cfg(test)]
mod tests;
