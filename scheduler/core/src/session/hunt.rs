//! The search for room that preempt, reclaim and the gang actions share. A gang's waiting pods get promised places one by
//! one: the node that lacks least goes first, victims of the lowest priority before others, surplus pods before whole
//! gangs. Everything is an operation in the journal, so a gang that cannot start leaves no trace; of a plan that works,
//! every victim is spared that is not needed ([`super::spare`]). Who may leave is decided in [`super::victims`].

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::futile::Search;
use super::ranking::{Question, Ranking, copies};
use super::statement::{Op, Savepoint};
use super::suspend::Losses;
use super::{Refusal, Session};
use crate::event::QueueState;
use crate::plugin::{EvictFor, Evictor};
use crate::state::classes::ClassId;
use crate::state::jobs::JobId;
use crate::state::nodes::{LANES, NO_NODE, NodeId};
use crate::state::queues::QueueId;
use crate::state::reach::Leaving;
use crate::state::resource::PODS;
use crate::state::status::Status;
use crate::state::tasks::{NO_TASK, TaskId};

/// Whose pods may have to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prey {
    /// Pods of other jobs of the queue.
    Queue,
    /// Pods of the job itself.
    Job,
    /// Pods of other queues.
    OtherQueues,
}

/// A search for one job.
#[derive(Debug)]
pub struct Hunt {
    pub(super) why: EvictFor,
    pub(super) prey: Prey,
    pub(super) job: JobId,
    /// Gangs may go as a whole where their surplus is not enough.
    whole_gangs: bool,
    /// Nodes with prey, where these are few and known.
    among: Option<Vec<u64>>,
    /// The last step of [`crate::state::reach::Reach`] that the search may go to.
    last: usize,
    stages: Vec<Stage>,
    /// What jobs lose when they are stopped, where they are suspended: of equals the one that loses least goes first.
    pub(super) losses: Option<Arc<Losses>>,
}

/// How far the search has gone for the pods of a class.
#[derive(Debug)]
pub(super) struct Stage {
    class: ClassId,
    /// Step of [`crate::state::reach::Reach`]: victims are of low priority first.
    pub(super) step: usize,
    /// Whole gangs go too.
    pub(super) whole: bool,
    ranking: Ranking,
}

impl Session<'_> {
    /// Makes room for what a job lacks, or changes nothing.
    pub fn hunt_for(&mut self, why: EvictFor, prey: Prey, job: JobId, whole_gangs: bool) {
        if !self.pipeline.job_starving(self.state, job) {
            return;
        }
        let whole_gangs = whole_gangs && self.may_ask_gangs();
        let search = Search { why, prey, whole_gangs };
        if self.is_futile(job, search) {
            return;
        }
        self.searches += 1;
        self.looks_at_victims = false;
        self.pipeline.begin_search();
        let leaving = std::mem::take(&mut self.state.leaving);
        if self.hunt_anywhere(why, prey, job, whole_gangs) {
            self.state.derive_leaving();
        } else {
            self.state.leaving = leaving;
            self.note_futile(job, search);
        }
    }

    fn hunt_anywhere(&mut self, why: EvictFor, prey: Prey, job: JobId, whole_gangs: bool) -> bool {
        if self.state.jobs[job as usize].topology.is_none() {
            return self.hunt_here(why, prey, job, whole_gangs);
        }
        // Each hypernode that could hold the gang, in the order in which allocate tries them (B46: never outside).
        self.domains(job).into_iter().any(|domain| {
            let hunt = |session: &mut Self| session.hunt_here(why, prey, job, whole_gangs);
            self.seeing_only(&[domain], hunt)
        })
    }

    /// A search on the nodes that are seen; true when it succeeds.
    fn hunt_here(&mut self, why: EvictFor, prey: Prey, job: JobId, whole_gangs: bool) -> bool {
        let queue = self.state.jobs[job as usize].queue;
        let mut tasks = self.waiting_pods(job);
        if prey == Prey::OtherQueues {
            let mut known: Option<(ClassId, bool)> = None;
            tasks.retain(|&task| {
                let class = self.state.tasks[task].class;
                let answer = known.filter(|(of, _)| *of == class).map_or_else(
                    || self.pipeline.preemptive(self.state, queue, class),
                    |(_, answer)| answer,
                );
                known = Some((class, answer));
                answer
            });
        }
        if tasks.is_empty() {
            return false;
        }
        let mut hunt = self.begin_hunt(why, prey, job, whole_gangs);
        if self.is_hopeless(&hunt, &tasks) {
            return false;
        }
        self.looks_at_victims = true;
        hunt.losses = self.know_losses();
        self.sort_tasks(&mut tasks);
        let from = self.journal.savepoint();
        for task in tasks {
            if !self.pipeline.job_starving(self.state, job) {
                break;
            }
            let class = self.state.tasks[task].class;
            if prey != Prey::OtherQueues || self.pipeline.preemptive(self.state, queue, class) {
                self.make_room(&mut hunt, task);
            }
        }
        self.settle_hunt(from, job)
    }

    /// Jobs that may make others leave, in a stable order.
    pub fn hunters(&self) -> Vec<JobId> {
        let mut jobs = self.jobs();
        jobs.retain(|&job| self.may_hunt(job));
        jobs
    }

    /// The job is admitted, valid, in an open queue, and starves.
    fn may_hunt(&self, job: JobId) -> bool {
        let row = &self.state.jobs[job as usize];
        let queue = &self.state.queues[row.queue as usize];
        let open = queue.exists && !matches!(queue.state, QueueState::Closed | QueueState::Closing);
        let backs_off = row.bind_failures > 1 && self.state.now_ms < row.retry_at_ms;
        open && !row.is_pending()
            && !row.has_sub_topology()
            && !backs_off
            && !self.rests(job)
            && self.pipeline.job_valid(self.state, job).is_ok()
            && self.pipeline.job_starving(self.state, job)
    }

    /// Waiting pods of a job, best-effort ones included.
    fn waiting_pods(&self, job: JobId) -> Vec<TaskId> {
        let mut tasks = super::order::pending_tasks(self.state, job, false);
        tasks.extend(super::order::pending(self.state, job, true));
        tasks
    }

    /// By queue the lowest priority of its jobs that have pods to give: where only lower priorities may be evicted, nobody needs to look for
    /// prey whose priority is not above that.
    pub fn lowest_with_prey(&self) -> FxHashMap<QueueId, i32> {
        let mut lowest: FxHashMap<QueueId, i32> = FxHashMap::default();
        for row in self.state.jobs.iter().filter(|row| row.live && row.runs_pods()) {
            let lowest = lowest.entry(row.queue).or_insert(row.priority);
            *lowest = row.priority.min(*lowest);
        }
        lowest
    }

    fn begin_hunt(&mut self, why: EvictFor, prey: Prey, job: JobId, whole_gangs: bool) -> Hunt {
        self.state.refresh_reach();
        let priority = self.state.jobs[job as usize].priority;
        let reach = &self.state.reach;
        let last = match prey {
            Prey::Queue if self.pipeline.only_below(why) => reach.below(priority),
            Prey::Queue => reach.below(priority.saturating_add(1)),
            Prey::OtherQueues if !self.may_be_given(why, job) => 0,
            Prey::Job | Prey::OtherQueues => reach.last(),
        };
        let among = match prey {
            Prey::Queue => self.nodes_of_queue(job),
            Prey::Job => Some(self.nodes_of(&[job])),
            Prey::OtherQueues => None,
        };
        Hunt { why, prey, job, whole_gangs, among, last, stages: Vec::new(), losses: None }
    }

    /// There is a queue from which the job may take: without one only room that needs no victims is left.
    fn may_be_given(&self, why: EvictFor, job: JobId) -> bool {
        let evictor = Evictor { why, job, task: NO_TASK };
        let own = self.state.jobs[job as usize].queue;
        self.state.queues.iter().enumerate().any(|(queue, row)| {
            let queue = queue as QueueId;
            queue != own
                && !row.allocated.is_zero()
                && !self.pipeline.spares(self.state, &evictor, queue)
        })
    }

    /// Even if everybody left who might, too few of these pods would find room.
    fn is_hopeless(&mut self, hunt: &Hunt, tasks: &[TaskId]) -> bool {
        let row = &self.state.jobs[hunt.job as usize];
        let promised = row.counts.of(Status::Pipelined);
        let need = if self.pipeline.gang { row.lacks().saturating_sub(promised) } else { 0 };
        let mut classes: Vec<(ClassId, u64)> = Vec::new();
        for &task in tasks {
            let class = self.state.tasks[task].class;
            match classes.iter_mut().find(|(known, _)| *known == class) {
                Some((_, count)) => *count += 1,
                None => classes.push((class, 1)),
            }
        }
        let mut found = 0;
        classes.into_iter().all(|(class, count)| {
            let question = self.question(hunt, class, hunt.last, hunt.whole_gangs);
            found += copies(self.state, &question, count).min(count);
            found < u64::from(need.max(1))
        })
    }

    fn question<'h>(
        &self,
        hunt: &'h Hunt,
        class: ClassId,
        step: usize,
        whole_gangs: bool,
    ) -> Question<'h> {
        let anyone = whole_gangs || hunt.prey == Prey::Job || !self.pipeline.gang;
        Question {
            class,
            step,
            leaving: if anyone { Leaving::Anyone } else { Leaving::Surplus },
            backend: self.backend,
            among: hunt.among.as_deref(),
            within: self.scope.clone(),
        }
    }

    fn stage(&self, hunt: &Hunt, class: ClassId, step: usize, whole: bool) -> Stage {
        let ranking = Ranking::new(self.state, self.question(hunt, class, step, whole));
        Stage { class, step, whole, ranking }
    }

    /// Promises a waiting pod a place, for which others may have to leave. False when there is none.
    fn make_room(&mut self, hunt: &mut Hunt, task: TaskId) -> bool {
        if self.held(task).is_some() {
            return false;
        }
        let class = self.state.tasks[task].class;
        let alone = self.state.tasks[task].never_preempts;
        let at = match hunt.stages.iter().position(|stage| stage.class == class) {
            Some(at) => at,
            None => {
                // Nodes where nobody has to leave come first at every step.
                let step = if alone { 0 } else { self.next_step(hunt, 0) };
                hunt.stages.push(self.stage(hunt, class, step, false));
                hunt.stages.len() - 1
            }
        };
        loop {
            let stage = &hunt.stages[at];
            let Some(node) = stage.ranking.best() else {
                match self.next_stage(hunt, at).filter(|_| !alone) {
                    Some(next) => hunt.stages[at] = next,
                    None => return false,
                }
                continue;
            };
            let from = self.journal.savepoint();
            if self.make_room_on(hunt, stage, task, node) {
                self.see_changes(hunt, from);
                return true;
            }
            hunt.stages[at].ranking.exclude(self.state, node);
        }
    }

    /// What is tried when no node is left: victims of higher priority, then whole gangs.
    fn next_stage(&self, hunt: &Hunt, at: usize) -> Option<Stage> {
        let Stage { class, step, whole, .. } = hunt.stages[at];
        let (step, whole) = match (step < hunt.last, whole) {
            (true, whole) => (self.next_step(hunt, step), whole),
            (false, false) if hunt.whole_gangs && hunt.last > 0 => (self.next_step(hunt, 0), true),
            _ => return None,
        };
        Some(self.stage(hunt, class, step, whole))
    }

    /// Steps between nothing and everything matter only where low priorities shall go first.
    fn next_step(&self, hunt: &Hunt, step: usize) -> usize {
        let next = if hunt.prey == Prey::Queue { self.state.reach.after(step) } else { hunt.last };
        next.min(hunt.last)
    }

    /// Evicts on one node until the pod fits there, and promises it the place.
    fn make_room_on(&mut self, hunt: &Hunt, stage: &Stage, task: TaskId, node: NodeId) -> bool {
        if !self.volumes_allow(task, node) {
            return false;
        }
        let request = self.state.classes.list[stage.class as usize].request.clone();
        let queue = self.state.jobs[hunt.job as usize].queue;
        let from = self.journal.savepoint();
        let mut victims: Option<std::vec::IntoIter<TaskId>> = None;
        loop {
            if self.state.nodes.fits_after(node, &request)
                && self.pipeline.allocatable(self.state, queue, stage.class, 1) > 0
                && self.pods_allow_later(task, node)
            {
                self.place(task, node, true);
                return true;
            }
            if victims.is_none() {
                let allowed = self.allowed_victims(hunt, stage, task, node);
                if !self.suffice(node, &request, &allowed) {
                    return false;
                }
                if matches!(hunt.why, EvictFor::Preempt | EvictFor::GangPreempt) {
                    self.efforts.attempts += 1;
                    self.efforts.last_victims = Some(allowed.len() as u32);
                }
                victims = Some(allowed.into_iter());
            }
            let Some(victim) = victims.as_mut().and_then(Iterator::next) else {
                self.rollback(from);
                return false;
            };
            for leaving in self.with_companions(hunt, stage, task, victim) {
                self.evict(leaving, hunt.why);
            }
        }
    }

    /// Looks again at the nodes that operations since a position changed.
    fn see_changes(&mut self, hunt: &mut Hunt, from: Savepoint) {
        let node_of = |op: &Op| match *op {
            Op::Place { node, .. } => node,
            Op::Evict { task, .. } => self.state.tasks[task].node,
        };
        let mut nodes: Vec<NodeId> = self.journal.since(from).iter().map(node_of).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes.iter().for_each(|&node| self.state.refresh_reach_of(node));
        for stage in &mut hunt.stages {
            stage.ranking.see_changes(self.state, stage.class, &nodes);
        }
    }

    /// Ends a search: the plan is carried out if the gang can start with it, else nothing has happened. Room that is there
    /// without anybody leaving is not this search's to give: allocate and backfill know what a queue may have (B43).
    fn settle_hunt(&mut self, from: Savepoint, job: JobId) -> bool {
        if self.pipeline.job_pipelined(self.state, job) {
            self.spare_needless(from);
        }
        let evicts = self.journal.since(from).iter().any(|op| matches!(op, Op::Evict { .. }));
        if !evicts || !self.pipeline.job_pipelined(self.state, job) {
            self.rollback(from);
            return false;
        }
        self.commit(from, job);
        self.state.jobs[job as usize].parked = None;
        self.refusals.insert(job, Refusal::Pipelined);
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
                let runs = matches!(row.status, Status::Bound | Status::Running);
                if runs && row.node != NO_NODE {
                    bits[row.node as usize / LANES] |= 1_u64 << (row.node as usize % LANES);
                }
            }
        }
        bits
    }
}
