//! Who may be asked to leave for a pod, and in which order: what the action looks at at all, what plugins allow (Volcano
//! 3.7), the order of victims (3.8), and I5: nobody of higher priority goes, and whoever's gang would fall below its
//! minimum goes with all of it or not at all.

use std::cmp::Reverse;

use super::Session;
use super::hunt::{Hunt, Prey, Stage};
use super::suspend::Losses;
use crate::plugin::{EvictFor, Evictor, OrderKey};
use crate::state::jobs::JobId;
use crate::state::nodes::{NO_NODE, NodeId};
use crate::state::queues::QueueId;
use crate::state::resource::{Request, asked};
use crate::state::status::Status;
use crate::state::tasks::{NO_JOB, TaskId};

/// Where a pod stands in the order in which its job places pods.
type LastPlaced = (OrderKey, u64, i64);

impl Session<'_> {
    /// Who may leave a node for a pod, first victim first.
    pub(super) fn allowed_victims(
        &self,
        hunt: &Hunt,
        stage: &Stage,
        task: TaskId,
        node: NodeId,
    ) -> Vec<TaskId> {
        let limit = self.state.reach.limit(stage.step);
        let mut candidates: Vec<TaskId> = self
            .state
            .tasks_on(node)
            .filter(|&it| self.is_prey(hunt, task, it) && self.priority_of_job_of(it) <= limit)
            .collect();
        if candidates.is_empty() {
            return candidates;
        }
        self.sort_victims(hunt.job, hunt.losses.as_deref(), &mut candidates);
        if self.pipeline.gang && hunt.why.is_of_gangs() {
            candidates.sort_by_key(|&it| !self.is_surplus(it));
        }
        self.ask_plugins(hunt, task, &candidates)
    }

    fn ask_plugins(&self, hunt: &Hunt, task: TaskId, candidates: &[TaskId]) -> Vec<TaskId> {
        let evictor = Evictor { why: hunt.why, job: hunt.job, task };
        self.pipeline.victims(self.state, &evictor, candidates)
    }

    fn priority_of_job_of(&self, task: TaskId) -> i32 {
        self.state.jobs[self.state.tasks[task].job as usize].priority
    }

    /// May this pod be asked to leave at all? (4.4.1, 4.5, 4.7.)
    fn is_prey(&self, hunt: &Hunt, by: TaskId, candidate: TaskId) -> bool {
        let row = &self.state.tasks[candidate];
        let running = match hunt.prey {
            Prey::OtherQueues => row.status == Status::Running,
            Prey::Queue | Prey::Job => matches!(row.status, Status::Bound | Status::Running),
        };
        if !running || !row.preemptable || row.job == NO_JOB || row.node == NO_NODE {
            return false;
        }
        let (mine, theirs) =
            (&self.state.jobs[hunt.job as usize], &self.state.jobs[row.job as usize]);
        let Some(group) = &theirs.group else { return false };
        if !self.may_have_to_go(hunt, candidate) {
            return false;
        }
        let best_effort = |task: TaskId| {
            self.state.classes.list[self.state.tasks[task].class as usize].best_effort
        };
        if hunt.why == EvictFor::Preempt && best_effort(by) && !best_effort(candidate) {
            return false;
        }
        if hunt.why.is_of_gangs() && group.preemptable == Some(false) {
            return false;
        }
        match hunt.prey {
            Prey::Queue => {
                let lower = match hunt.why {
                    EvictFor::GangPreempt => theirs.priority < mine.priority,
                    _ => theirs.priority <= mine.priority,
                };
                lower && row.job != hunt.job && theirs.queue == mine.queue
            }
            Prey::Job => row.job == hunt.job && row.priority < self.state.tasks[by].priority,
            Prey::OtherQueues => {
                theirs.queue != mine.queue && self.state.queues[theirs.queue as usize].reclaimable
            }
        }
    }

    /// The gang of a pod is whole without it.
    fn is_surplus(&self, task: TaskId) -> bool {
        let row = &self.state.tasks[task];
        let job = &self.state.jobs[row.job as usize];
        !self.pipeline.gang || job.has_surplus_of(row.role)
    }

    /// A victim, with its whole gang where that would no longer be whole; nobody where that is not allowed.
    pub(super) fn with_companions(
        &self,
        hunt: &Hunt,
        stage: &Stage,
        by: TaskId,
        victim: TaskId,
    ) -> Vec<TaskId> {
        let row = &self.state.tasks[victim];
        if row.status == Status::Releasing {
            // It left with somebody else of its gang.
            return Vec::new();
        }
        if hunt.prey == Prey::Job || self.is_surplus(victim) {
            return vec![victim];
        }
        if !stage.whole {
            return Vec::new();
        }
        let mut gang: Vec<TaskId> = self.state.jobs[row.job as usize]
            .tasks
            .iter()
            .copied()
            .filter(|&task| self.state.tasks[task].status.is_allocated())
            .collect();
        self.sort_victims(hunt.job, hunt.losses.as_deref(), &mut gang);
        let all = gang.iter().all(|&task| self.is_prey(hunt, by, task))
            && self.ask_plugins(hunt, by, &gang).len() == gang.len();
        if all { gang } else { Vec::new() }
    }

    /// All of these together leave room enough.
    pub(super) fn suffice(&self, node: NodeId, request: &Request, victims: &[TaskId]) -> bool {
        request.iter().all(|&(dim, amount)| {
            let held = |task: &TaskId| {
                let class = self.state.tasks[*task].class;
                let request = &self.state.classes.list[class as usize].request;
                asked(request, dim)
            };
            let leaving: i64 = victims.iter().map(held).sum();
            let room = self.state.nodes.columns[dim as usize].room_after(node as usize);
            amount as f64 <= room + leaving as f64
        })
    }

    /// Sorts candidates so that the first one leaves first (3.8): by their queues, then, where gangs are suspended, the one of
    /// the lowest priority that loses least, then the job that would be placed last, then the pod that would be placed last.
    pub(crate) fn sort_victims(
        &self,
        preemptor: JobId,
        losses: Option<&Losses>,
        victims: &mut [TaskId],
    ) {
        let ranks = self.ranks_of_victims(preemptor, losses, victims);
        let rank = |task: TaskId| {
            let job = self.state.tasks[task].job;
            ranks.iter().find(|(known, _)| *known == job).map_or(0, |&(_, rank)| rank)
        };
        let mut keyed: Vec<(usize, Reverse<LastPlaced>, TaskId)> = victims
            .iter()
            .map(|&task| {
                let row = &self.state.tasks[task];
                let key = (self.pipeline.task_order(self.state, task), row.number, row.created_ms);
                (rank(task), Reverse(key), task)
            })
            .collect();
        keyed.sort_unstable_by(|one, other| {
            let pods = || self.state.tasks[other.2].pod.cmp(&self.state.tasks[one.2].pod);
            (one.0, &one.1).cmp(&(other.0, &other.1)).then_with(pods)
        });
        victims.iter_mut().zip(keyed).for_each(|(place, (_, _, task))| *place = task);
    }

    /// Which of the jobs of some pods gives first. Jobs are few and pods are many, and this runs for each node that is looked at.
    fn ranks_of_victims(
        &self,
        preemptor: JobId,
        losses: Option<&Losses>,
        victims: &[TaskId],
    ) -> Vec<(JobId, usize)> {
        let mut jobs: Vec<JobId> = victims.iter().map(|&task| self.state.tasks[task].job).collect();
        jobs.sort_unstable();
        jobs.dedup();
        let own = self.state.jobs[preemptor as usize].queue;
        let mut queues: Vec<QueueId> =
            jobs.iter().map(|&job| self.state.jobs[job as usize].queue).collect();
        queues.sort_unstable();
        queues.dedup();
        let by_queue = |&queue: &QueueId| {
            (queue != own).then(|| {
                let key = self.pipeline.victim_queue_order(self.state, own, queue);
                let reversed = key.is_none().then(|| self.queue_rank(queue));
                (key, reversed)
            })
        };
        let by_queue: Vec<_> = queues.iter().map(by_queue).collect();
        let by_job = |job: JobId| {
            let row = &self.state.jobs[job as usize];
            let queue = queues.binary_search(&row.queue).ok().map(|at| &by_queue[at]);
            let loss =
                losses.map(|losses| (row.priority, losses.by_job.get(&job).copied().unwrap_or(0)));
            (queue, loss, Reverse(self.pipeline.job_order(self.state, job)))
        };
        let mut keyed: Vec<_> = jobs.into_iter().map(|job| (by_job(job), job)).collect();
        keyed.sort_unstable();
        let mut rank = 0;
        let ranked = (0..keyed.len()).map(|at| {
            rank += usize::from(at > 0 && keyed[at].0 != keyed[at - 1].0);
            (keyed[at].1, rank)
        });
        ranked.collect()
    }
}
