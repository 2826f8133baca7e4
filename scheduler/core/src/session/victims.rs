//! The search for victims that preempt, reclaim and the gang actions share. A gang's waiting pods get promised places one
//! by one: the node that lacks least goes first, victims of the lowest priority before others, and on each node plugins
//! decide who may leave (Volcano 3.7) and the order of victims who does (3.8). Everything is an operation in the journal,
//! so a gang that cannot start leaves no trace; of a plan that works, every victim is spared that is not needed.

use std::cmp::Reverse;

use super::Session;
use super::ranking::Ranking;
use super::statement::{Op, Savepoint};
use crate::plugin::{EvictFor, Evictor, OrderKey};
use crate::state::classes::ClassId;
use crate::state::jobs::JobId;
use crate::state::nodes::{LANES, NodeId};
use crate::state::resource::{PODS, Request};
use crate::state::status::Status;
use crate::state::tasks::{NO_JOB, TaskId};

/// Whose pods may have to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prey {
    /// Pods of other jobs of the queue, of lower or equal priority.
    Queue,
    /// Pods of the job itself, of lower priority.
    Job,
    /// Pods of other queues that may be reclaimed from.
    OtherQueues,
}

/// A search for one job.
#[derive(Debug)]
pub struct Hunt {
    why: EvictFor,
    prey: Prey,
    job: JobId,
    /// Nodes with prey, where these are few and known.
    among: Option<Vec<u64>>,
    /// The last step of [`crate::state::reach::Reach`] that the search may go to.
    last: usize,
    /// Per class the step that is being searched.
    rankings: Vec<(ClassId, usize, Ranking)>,
}

impl Session<'_> {
    /// Begins a search.
    pub fn hunt(&mut self, why: EvictFor, prey: Prey, job: JobId) -> Hunt {
        self.state.refresh_reach();
        let priority = self.state.jobs[job as usize].priority;
        let reach = &self.state.reach;
        let last = match prey {
            Prey::Queue => reach.below(priority.saturating_add(1)),
            Prey::Job | Prey::OtherQueues => reach.last(),
        };
        let among = match prey {
            Prey::Queue => self.nodes_of_queue(job),
            Prey::Job => Some(self.nodes_of(&[job])),
            Prey::OtherQueues => None,
        };
        Hunt { why, prey, job, among, last, rankings: Vec::new() }
    }

    /// Even if everybody left who might, too few of these pods would find room.
    pub fn is_hopeless(&mut self, hunt: &Hunt, tasks: &[TaskId], need: u32) -> bool {
        let mut classes: Vec<(ClassId, u64)> = Vec::new();
        for &task in tasks {
            let class = self.state.tasks[task].class;
            match classes.iter_mut().find(|(known, _)| *known == class) {
                Some((_, count)) => *count += 1,
                None => classes.push((class, 1)),
            }
        }
        let mut found = 0;
        for (class, count) in classes {
            let ranking = Ranking::new(self.state, class, hunt.last, hunt.among.as_deref());
            found += ranking.copies(self.state, count).min(count);
            if found >= u64::from(need) {
                return false;
            }
        }
        true
    }

    /// Promises a waiting pod a place, for which others may have to leave. False when nobody has to or may.
    pub fn make_room(&mut self, hunt: &mut Hunt, task: TaskId) -> bool {
        if self.held(task).is_some() {
            return false;
        }
        let class = self.state.tasks[task].class;
        let alone = self.state.tasks[task].never_preempts;
        let at = match hunt.rankings.iter().position(|(known, ..)| *known == class) {
            Some(at) => at,
            None => {
                let ranking = Ranking::new(self.state, class, 0, hunt.among.as_deref());
                hunt.rankings.push((class, 0, ranking));
                hunt.rankings.len() - 1
            }
        };
        loop {
            let (_, step, ranking) = &mut hunt.rankings[at];
            let step_now = *step;
            let Some(node) = ranking.best() else {
                // Steps between nothing and everything matter only where low priorities shall go first.
                let next = if hunt.prey == Prey::Queue { step_now + 1 } else { hunt.last };
                if step_now >= hunt.last || alone {
                    return false;
                }
                let ranking = Ranking::new(self.state, class, next, hunt.among.as_deref());
                hunt.rankings[at] = (class, next, ranking);
                continue;
            };
            if self.make_room_on(hunt, step_now, task, node) {
                self.state.refresh_reach_of(node);
                for (.., ranking) in &mut hunt.rankings {
                    ranking.evaluate(self.state, node as usize / LANES);
                }
                return true;
            }
            hunt.rankings[at].2.exclude(self.state, node);
        }
    }

    /// Evicts on one node until the pod fits there, and promises it the place.
    fn make_room_on(&mut self, hunt: &Hunt, step: usize, task: TaskId, node: NodeId) -> bool {
        if !self.volumes_allow(task, node) {
            return false;
        }
        let class = self.state.tasks[task].class;
        let request = self.state.classes.list[class as usize].request.clone();
        let queue = self.state.jobs[hunt.job as usize].queue;
        let from = self.journal.savepoint();
        let mut victims: Option<std::vec::IntoIter<TaskId>> = None;
        loop {
            if self.state.nodes.fits_after(node, &request)
                && self.pipeline.allocatable(self.state, queue, class, 1) > 0
                && self.pods_allow_later(task, node)
            {
                self.place(task, node, true);
                return true;
            }
            if victims.is_none() {
                let allowed = self.allowed_victims(hunt, step, task, node);
                if !self.suffice(node, &request, &allowed) {
                    return false;
                }
                victims = Some(allowed.into_iter());
            }
            match victims.as_mut().and_then(Iterator::next) {
                Some(victim) => self.evict(victim, hunt.why),
                None => {
                    self.rollback(from);
                    return false;
                }
            }
        }
    }

    /// Who may leave a node for a pod, first victim first.
    fn allowed_victims(&self, hunt: &Hunt, step: usize, task: TaskId, node: NodeId) -> Vec<TaskId> {
        let limit = self.state.reach.limit(step);
        let mut candidates: Vec<TaskId> =
            self.state.tasks_on(node).filter(|&it| self.is_prey(hunt, limit, task, it)).collect();
        if candidates.is_empty() {
            return candidates;
        }
        self.sort_victims(hunt.job, &mut candidates);
        let evictor = Evictor { why: hunt.why, job: hunt.job, task };
        self.pipeline.victims(self.state, &evictor, &candidates)
    }

    /// May this pod be asked to leave at all? What is left to ask is up to the plugins.
    fn is_prey(&self, hunt: &Hunt, limit: i32, by: TaskId, candidate: TaskId) -> bool {
        let row = &self.state.tasks[candidate];
        let running = match hunt.prey {
            Prey::OtherQueues => row.status == Status::Running,
            Prey::Queue | Prey::Job => matches!(row.status, Status::Bound | Status::Running),
        };
        if !running || !row.preemptable || row.job == NO_JOB {
            return false;
        }
        let best_effort = |task: TaskId| {
            self.state.classes.list[self.state.tasks[task].class as usize].best_effort
        };
        if best_effort(by) && !best_effort(candidate) && hunt.prey != Prey::OtherQueues {
            return false;
        }
        let (mine, theirs) =
            (&self.state.jobs[hunt.job as usize], &self.state.jobs[row.job as usize]);
        if theirs.group.is_none() || theirs.priority > limit {
            return false;
        }
        match hunt.prey {
            Prey::Queue => {
                row.job != hunt.job
                    && theirs.queue == mine.queue
                    && theirs.priority <= mine.priority
            }
            Prey::Job => row.job == hunt.job && row.priority < self.state.tasks[by].priority,
            Prey::OtherQueues => {
                theirs.queue != mine.queue && self.state.queues[theirs.queue as usize].reclaimable
            }
        }
    }

    /// All of these together leave room enough.
    fn suffice(&self, node: NodeId, request: &Request, victims: &[TaskId]) -> bool {
        request.iter().all(|&(dim, amount)| {
            let held = |task: &TaskId| {
                let class = self.state.tasks[*task].class;
                let request = &self.state.classes.list[class as usize].request;
                request.iter().find(|(other, _)| *other == dim).map_or(0, |&(_, amount)| amount)
            };
            let leaving: i64 = victims.iter().map(held).sum();
            let room = self.state.nodes.columns[dim as usize].room_after(node as usize);
            amount as f64 <= room + leaving as f64
        })
    }

    /// Sorts candidates so that the first one leaves first (3.8): by their queues, then the job that would be placed
    /// last, then the pod that would be placed last.
    pub fn sort_victims(&self, preemptor: JobId, victims: &mut [TaskId]) {
        let own = self.state.jobs[preemptor as usize].queue;
        victims.sort_by_cached_key(|&task| {
            let row = &self.state.tasks[task];
            let queue = self.state.jobs[row.job as usize].queue;
            let by_queue = if queue == own {
                (None, None)
            } else {
                match self.pipeline.victim_queue_order(self.state, own, queue) {
                    Some(key) => (Some(key), None),
                    None => (None, Some(self.queue_rank_for_victims(queue))),
                }
            };
            let by_task: (OrderKey, u64, i64) =
                (self.pipeline.task_order(self.state, task), row.number, row.created_ms);
            (
                by_queue,
                Reverse(self.pipeline.job_order(self.state, row.job)),
                Reverse(by_task),
                Reverse(row.pod.clone()),
            )
        });
    }

    /// Spares every victim of a plan that turns out not to be needed, the last one first.
    pub fn spare_needless(&mut self, from: Savepoint) {
        let mut at = self.journal.since(from).len();
        while at > 0 {
            at -= 1;
            let Op::Evict { task, was, .. } = self.journal.since(from)[at] else { continue };
            if self.can_spare(from, task, was) {
                self.journal.remove(from, at);
            }
        }
    }

    /// Puts a victim back if the plan works all the same; its places may move.
    fn can_spare(&mut self, from: Savepoint, victim: TaskId, was: Status) -> bool {
        let row = &self.state.tasks[victim];
        let (node, class) = (row.node, row.class);
        let request = self.state.classes.list[class as usize].request.clone();
        let moved = self.move_away(from, node, &request);
        let fits = self.state.nodes.fits_after(node, &request);
        if fits {
            self.undo(Op::Evict { task: victim, was, why: EvictFor::Preempt });
            if self.plan_holds(from) {
                return true;
            }
            self.state.evict(victim);
            self.account(victim, -1);
        }
        for (at, back) in moved.into_iter().rev() {
            self.move_place(from, at, back);
        }
        false
    }

    /// Moves promised places from a node to room that is left elsewhere, until a request fits on the node. Gives the
    /// moved operations with the nodes where they were.
    fn move_away(
        &mut self,
        from: Savepoint,
        node: NodeId,
        request: &Request,
    ) -> Vec<(usize, NodeId)> {
        let mut moved = Vec::new();
        for at in 0..self.journal.since(from).len() {
            if self.state.nodes.fits_after(node, request) {
                break;
            }
            let Op::Place { task, node: here, .. } = self.journal.since(from)[at] else { continue };
            if here != node || self.depends_on_pods(task) || self.has_volumes(task) {
                continue;
            }
            let class = self.state.tasks[task].class;
            self.state.refresh_reach();
            let mut ranking = Ranking::new(self.state, class, 0, None);
            ranking.exclude(self.state, node);
            if let Some(elsewhere) = ranking.best() {
                self.move_place(from, at, elsewhere);
                moved.push((at, node));
            }
        }
        moved
    }

    fn move_place(&mut self, from: Savepoint, at: usize, node: NodeId) {
        if let Some(Op::Place { task, .. }) = self.journal.set_node(from, at, node) {
            self.state.unplace(task);
            self.state.place(task, node, Status::Pipelined);
        }
    }

    /// The queue may still take, and other pods still allow, every place of the plan.
    fn plan_holds(&mut self, from: Savepoint) -> bool {
        let mut asked: Vec<ClassId> = Vec::new();
        for at in 0..self.journal.since(from).len() {
            let Op::Place { task, node, .. } = self.journal.since(from)[at] else { continue };
            let row = &self.state.tasks[task];
            let (class, queue) = (row.class, self.state.jobs[row.job as usize].queue);
            let depends = self.depends_on_pods(task);
            if !depends && asked.contains(&class) {
                continue;
            }
            asked.push(class);
            self.state.unplace(task);
            self.account(task, -1);
            let holds = self.pipeline.allocatable(self.state, queue, class, 1) > 0
                && (!depends || self.pods_allow_later(task, node));
            self.state.place(task, node, Status::Pipelined);
            self.account(task, 1);
            if !holds {
                return false;
            }
        }
        true
    }

    /// Nodes where other jobs of a job's queue have pods, unless that is most of them anyway.
    fn nodes_of_queue(&self, job: JobId) -> Option<Vec<u64>> {
        let row = &self.state.jobs[job as usize];
        let pods = self.state.queues[row.queue as usize].allocated.get(PODS);
        if pods > self.state.nodes.len() as i128 / 4 {
            return None;
        }
        let others: Vec<JobId> = (0..self.state.jobs.len() as JobId)
            .filter(|&other| {
                let other = &self.state.jobs[other as usize];
                other.live && other.queue == row.queue && other.priority <= row.priority
            })
            .collect();
        Some(self.nodes_of(&others))
    }

    fn nodes_of(&self, jobs: &[JobId]) -> Vec<u64> {
        let mut bits = vec![0; self.state.nodes.blocks()];
        for &job in jobs {
            for &task in &self.state.jobs[job as usize].tasks {
                let row = &self.state.tasks[task];
                if matches!(row.status, Status::Bound | Status::Running) {
                    bits[row.node as usize / LANES] |= 1_u64 << (row.node as usize % LANES);
                }
            }
        }
        bits
    }
}
