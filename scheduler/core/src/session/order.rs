//! Who goes first: heaps of queues and jobs whose keys are computed when they are pushed, and the order of
//! tasks inside a job. A job's key changes only by its own placements, and it is out of the heap while it is being
//! served, so its key is always current. A queue's key may change with the share of a queue above both; where it only
//! grows, the first one is looked at again after each turn, and else all are.

use std::cmp::{Ordering, Reverse};
use std::sync::Arc;

use priority_queue::PriorityQueue;
use rustc_hash::{FxBuildHasher, FxHashMap};

use super::Session;
use crate::plugin::OrderKey;
use crate::state::State;
use crate::state::jobs::JobId;
use crate::state::queues::QueueId;
use crate::state::status::Status;
use crate::state::tasks::{NO_NUMBER, TaskId};

/// Plugins' key, then the older one, then the name: of a queue its own, of a job `namespace/name` (Volcano's job id).
pub(super) type Rank = Reverse<(OrderKey, i64, Arc<str>)>;

/// Queues and their waiting jobs.
#[derive(Default)]
pub struct Heaps {
    queues: PriorityQueue<QueueId, Rank, FxBuildHasher>,
    jobs: FxHashMap<QueueId, PriorityQueue<JobId, Rank, FxBuildHasher>>,
}

impl std::fmt::Debug for Heaps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Heaps").field("queues", &self.queues.len()).finish_non_exhaustive()
    }
}

impl Heaps {
    /// These jobs and their queues.
    pub fn of(session: &Session<'_>, jobs: &[JobId]) -> Self {
        let mut heaps = Self::default();
        jobs.iter().for_each(|&job| heaps.push_job(session, job));
        heaps
    }

    /// Adds a job; its queue joins with it.
    pub fn push_job(&mut self, session: &Session<'_>, job: JobId) {
        let queue = session.state.jobs[job as usize].queue;
        self.jobs.entry(queue).or_default().push(job, session.job_rank(job));
        if self.queues.get(&queue).is_none() {
            self.queues.push(queue, session.queue_rank(queue));
        }
    }

    /// Puts a queue (back) into the heap, and the others where they belong after its turn.
    pub fn push_queue(&mut self, session: &Session<'_>, queue: QueueId) {
        self.queues.push(queue, session.queue_rank(queue));
        if session.pipeline.joint_queue_order {
            self.queues.iter_mut().for_each(|(queue, rank)| *rank = session.queue_rank(*queue));
        }
        while let Some((&first, rank)) = self.queues.peek() {
            let current = session.queue_rank(first);
            if *rank == current {
                break;
            }
            self.queues.change_priority(&first, current);
        }
    }

    /// Jobs of the queue are in it.
    pub fn has_jobs_of(&self, queue: QueueId) -> bool {
        self.queues.get(&queue).is_some()
    }

    /// Takes the first queue.
    pub fn pop_queue(&mut self) -> Option<QueueId> {
        self.queues.pop().map(|(queue, _)| queue)
    }

    /// Takes the first job of a queue.
    pub fn pop_job(&mut self, queue: QueueId) -> Option<JobId> {
        self.jobs.get_mut(&queue)?.pop().map(|(job, _)| job)
    }

    /// Puts a job back without touching its queue, which is being served.
    pub fn put_back(&mut self, session: &Session<'_>, queue: QueueId, job: JobId) {
        self.jobs.entry(queue).or_default().push(job, session.job_rank(job));
    }

    /// Takes all jobs of a queue out.
    pub fn drop_jobs(&mut self, queue: QueueId) -> Vec<JobId> {
        let mut jobs: Vec<JobId> = self
            .jobs
            .remove(&queue)
            .map(|heap| heap.into_iter().map(|(job, _)| job).collect())
            .unwrap_or_default();
        jobs.sort_unstable();
        jobs
    }
}

impl Session<'_> {
    pub(super) fn queue_rank(&self, queue: QueueId) -> Rank {
        let row = &self.state.queues[queue as usize];
        Reverse((self.pipeline.queue_order(self.state, queue), row.created_ms, row.name.clone()))
    }

    /// A gang that lost members after it had started goes before everything else of its queue, so that nobody
    /// takes the places it needs back; a job whose binds keep being refused goes behind (user-pain: gangs that
    /// stay below their minimum for ever; one bad pod that starves its queue).
    pub(super) fn job_rank(&self, job: JobId) -> Rank {
        let row = &self.state.jobs[job as usize];
        let group = row.group.as_ref();
        let mut key = OrderKey::default();
        key.push(-i64::from(self.is_broken(job) && row.bind_failures == 0));
        key.push(i64::from(row.bind_failures));
        let key = key.then(self.pipeline.job_order(self.state, job));
        Reverse((
            key,
            group.map_or(0, |group| group.queued_ms),
            group.map_or_else(|| "".into(), |group| group.id.clone()),
        ))
    }

    /// Sorts tasks of a job: plugins' order, then the number at the end of the name, then age, then uid (3.8). Age
    /// decides where only one of two names has a number.
    pub fn sort_tasks(&self, tasks: &mut Vec<TaskId>) {
        let mut keyed: Vec<(OrderKey, u64, i64, TaskId)> = tasks
            .iter()
            .map(|&task| {
                let row = &self.state.tasks[task];
                (self.pipeline.task_order(self.state, task), row.number, row.created_ms, task)
            })
            .collect();
        let uid = |task: TaskId| &self.state.tasks[task].pod.uid;
        let mixed = keyed.iter().any(|key| key.1 == NO_NUMBER)
            && keyed.iter().any(|key| key.1 != NO_NUMBER);
        keyed.sort_unstable_by(|a, b| {
            let number = if mixed { Ordering::Equal } else { a.1.cmp(&b.1) };
            a.0.cmp(&b.0).then(number).then(a.2.cmp(&b.2)).then_with(|| uid(a.3).cmp(uid(b.3)))
        });
        if mixed {
            keyed.chunk_by_mut(|a, b| a.0 == b.0).for_each(share_places_by_number);
        }
        tasks.clear();
        tasks.extend(keyed.into_iter().map(|(.., task)| task));
    }
}

/// Tasks by age, some with numbers: those with numbers share the places that they have among them by number. So
/// any two with numbers stand in that order, the others where their age puts them.
fn share_places_by_number(tasks: &mut [(OrderKey, u64, i64, TaskId)]) {
    let places: Vec<usize> = (0..tasks.len()).filter(|&at| tasks[at].1 != NO_NUMBER).collect();
    let mut numbered: Vec<_> = places.iter().map(|&at| tasks[at].clone()).collect();
    numbered.sort_by_key(|task| task.1);
    for (&at, task) in places.iter().zip(numbered) {
        tasks[at] = task;
    }
}

/// Pending tasks of a job that ask for room, or those that ask for nothing but a place.
pub fn pending(state: &State, job: JobId, best_effort: bool) -> impl Iterator<Item = TaskId> + '_ {
    let job = &state.jobs[job as usize];
    // Pods that come although their gang is down have to wait for it.
    let down = job.is_down();
    job.tasks.iter().copied().filter(move |&task| {
        let row = &state.tasks[task];
        row.status == Status::Pending
            && row.phantom == down
            && row.ours
            && !row.gated
            && state.classes.list[row.class as usize].best_effort == best_effort
    })
}

/// The same as a list.
pub fn pending_tasks(state: &State, job: JobId, best_effort: bool) -> Vec<TaskId> {
    pending(state, job, best_effort).collect()
}
