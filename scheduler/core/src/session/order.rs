//! Who goes first: heaps of queues and jobs whose keys are computed when they are pushed, and the order of
//! tasks inside a job. A queue's or job's key changes only by its own placements, and it is out of the heap while
//! it is being served, so keys in the heaps are always current.

use std::cmp::Reverse;
use std::sync::Arc;

use priority_queue::PriorityQueue;
use rustc_hash::{FxBuildHasher, FxHashMap};

use super::Session;
use crate::plugin::OrderKey;
use crate::state::State;
use crate::state::jobs::JobId;
use crate::state::queues::QueueId;
use crate::state::tasks::TaskId;

/// Plugins' key, then the older one, then the name.
type Rank = Reverse<(OrderKey, i64, Arc<str>)>;

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
    /// Adds a job; its queue joins with it.
    pub fn push_job(&mut self, session: &Session<'_>, job: JobId) {
        let queue = session.state.jobs[job as usize].queue;
        self.jobs.entry(queue).or_default().push(job, session.job_rank(job));
        if self.queues.get(&queue).is_none() {
            self.push_queue(session, queue);
        }
    }

    /// Puts a queue (back) into the heap.
    pub fn push_queue(&mut self, session: &Session<'_>, queue: QueueId) {
        self.queues.push(queue, session.queue_rank(queue));
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
    fn queue_rank(&self, queue: QueueId) -> Rank {
        let row = &self.state.queues[queue as usize];
        Reverse((self.pipeline.queue_order(self.state, queue), row.created_ms, row.name.clone()))
    }

    /// A gang that lost members after it had started goes before everything else of its queue, so that nobody
    /// takes the places it needs back; a job whose binds keep being refused goes behind (user-pain: gangs that
    /// stay below their minimum for ever; one bad pod that starves its queue).
    fn job_rank(&self, job: JobId) -> Rank {
        let row = &self.state.jobs[job as usize];
        let group = row.group.as_ref();
        let mut key = OrderKey::default();
        key.push(-i64::from(row.is_broken() && row.bind_failures == 0));
        key.push(i64::from(row.bind_failures));
        let key = key.then(self.pipeline.job_order(self.state, job));
        Reverse((
            key,
            group.map_or(0, |group| group.created_ms),
            group.map_or_else(|| "".into(), |group| group.uid.clone()),
        ))
    }

    /// Sorts tasks of a job: plugins' order, then the number at the end of the name, then age, then uid (3.8).
    pub fn sort_tasks(&self, tasks: &mut [TaskId]) {
        tasks.sort_by_cached_key(|&task| {
            let row = &self.state.tasks[task];
            let number = trailing_number(&row.pod.name);
            (
                self.pipeline.task_order(self.state, task),
                number.is_none(),
                number.unwrap_or(0),
                row.created_ms,
                row.pod.uid.clone(),
            )
        });
    }
}

/// Number after the last `-` of a name with at least three parts.
fn trailing_number(name: &str) -> Option<u64> {
    let mut parts = name.rsplit('-');
    let number = parts.next()?.parse().ok()?;
    parts.nth(1)?;
    Some(number)
}

/// Pending tasks of a job that allocate may place, in order.
pub fn pending_tasks(state: &State, job: JobId, best_effort: bool) -> Vec<TaskId> {
    use crate::state::status::Status;
    state.jobs[job as usize]
        .tasks
        .iter()
        .copied()
        .filter(|&task| {
            let row = &state.tasks[task];
            row.status == Status::Pending
                && row.ours
                && !row.gated
                && state.classes.list[row.class as usize].best_effort == best_effort
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::trailing_number;

    #[test]
    fn only_names_of_three_parts_have_a_number() {
        assert_eq!(trailing_number("train-worker-12"), Some(12));
        assert_eq!(trailing_number("worker-12"), None);
        assert_eq!(trailing_number("train-worker-x"), None);
        assert_eq!(trailing_number("a-b-99999999999999999999999"), None);
    }
}
