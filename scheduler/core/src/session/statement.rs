//! The journal of tentative placements. Every operation changes the state at once and can be taken back; a
//! savepoint is a position in the journal. Committing a stretch turns it into binds; what is neither committed
//! nor taken back when the session ends was only promised (a gang waiting for room that is being freed), and is
//! taken back then.

use smallvec::SmallVec;

use super::Session;
use crate::decision::{Decision, GangBind, Notice, NoticeKind};
use crate::planted::{Bug, planted};
use crate::plugin::{Delta, EvictFor};
use crate::state::jobs::JobId;
use crate::state::nodes::NodeId;
use crate::state::status::Status;
use crate::state::tasks::TaskId;

/// A tentative operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// A waiting task got a node.
    Place {
        /// Task.
        task: TaskId,
        /// Its node.
        node: NodeId,
        /// On room that is still being freed.
        pipelined: bool,
    },
    /// A task is to leave its node.
    Evict {
        /// Task.
        task: TaskId,
        /// Its status before (B23: undoing restores exactly that).
        was: Status,
        /// For whom.
        why: EvictFor,
    },
}

impl Op {
    /// For whom somebody is to leave, if anybody is.
    fn evicts_for(&self) -> Option<EvictFor> {
        match *self {
            Self::Evict { why, .. } => Some(why),
            Self::Place { .. } => None,
        }
    }
}

/// Position in the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Savepoint(usize);

/// Operations that are neither committed nor taken back.
#[derive(Clone, Debug, Default)]
pub struct Journal {
    ops: Vec<Op>,
}

impl Journal {
    /// Current position.
    pub fn savepoint(&self) -> Savepoint {
        Savepoint(self.ops.len())
    }

    /// The very beginning.
    pub fn savepoint_at_start(&self) -> Savepoint {
        Savepoint(0)
    }

    /// Operations since a position.
    pub fn since(&self, at: Savepoint) -> &[Op] {
        &self.ops[at.0..]
    }

    /// Takes operations out, wherever they are.
    pub(super) fn extract(&mut self, is_wanted: impl Fn(&Op) -> bool) -> Vec<Op> {
        self.ops.extract_if(.., |op| is_wanted(op)).collect()
    }

    /// Replaces each operation since a position, or drops it.
    pub(super) fn rewrite(&mut self, from: Savepoint, replace: impl FnMut(Op) -> Option<Op>) {
        let ops = self.ops.split_off(from.0);
        self.ops.extend(ops.into_iter().filter_map(replace));
    }

    /// All operations that are open.
    pub fn open(&self) -> &[Op] {
        &self.ops
    }
}

impl Session<'_> {
    /// Places a task tentatively.
    pub fn place(&mut self, task: TaskId, node: NodeId, pipelined: bool) {
        let status = if pipelined { Status::Pipelined } else { Status::Allocated };
        self.state.place(task, node, status);
        self.journal.ops.push(Op::Place { task, node, pipelined });
        self.account(task, 1);
    }

    /// Evicts a task tentatively: its room counts as being freed from now on.
    pub fn evict(&mut self, task: TaskId, why: EvictFor) {
        let was = self.state.tasks[task].status;
        self.state.evict(task);
        self.journal.ops.push(Op::Evict { task, was, why });
        self.account(task, -1);
    }

    pub(super) fn account(&mut self, task: TaskId, count: i64) {
        let row = &self.state.tasks[task];
        let queue = self.state.jobs[row.job as usize].queue;
        let delta = Delta { class: row.class, job: row.job, queue, count };
        self.pipeline.account(self.state, &delta);
    }

    /// Takes back everything since a savepoint, latest first.
    pub fn rollback(&mut self, to: Savepoint) {
        while self.journal.ops.len() > to.0 {
            let Some(op) = self.journal.ops.pop() else { return };
            if planted(Bug::SkippedUndo) && self.journal.ops.len() == to.0 {
                continue;
            }
            self.undo(op);
        }
    }

    /// Takes back an operation that is no longer in the journal.
    pub(super) fn undo(&mut self, op: Op) {
        match op {
            Op::Place { task, .. } => {
                self.state.unplace(task);
                self.account(task, -1);
            }
            Op::Evict { task, was, .. } => {
                self.state.spare(task, was);
                self.account(task, 1);
            }
        }
    }

    /// Commits what was done for a job since a savepoint: placed tasks are being bound from now on, victims are
    /// leaving; promised places stay open until the session ends. Places that were promised together with evictions
    /// are nominations: they are kept for their pods in later sessions.
    pub fn commit(&mut self, from: Savepoint, job: JobId) {
        let ops: SmallVec<[Op; 8]> = self.journal.ops.drain(from.0..).collect();
        let evicting = ops.iter().any(|op| matches!(op, Op::Evict { .. }));
        let mut placed: SmallVec<[(TaskId, NodeId); 8]> = SmallVec::new();
        // A nomination is told before the evictions that it is for.
        for &op in &ops {
            match op {
                Op::Place { task, node, pipelined: false } => placed.push((task, node)),
                Op::Place { task, node, pipelined: true } => {
                    if evicting {
                        self.nominate(task, node);
                    }
                    self.journal.ops.push(op);
                }
                Op::Evict { .. } => {}
            }
        }
        let mut suspended = self.suspended_by(&ops);
        if let Some(why) = ops.iter().find_map(|op| op.evicts_for()) {
            self.efforts.plans.push(why.reason());
        }
        for op in ops {
            if let Op::Evict { task, was, why } = op {
                let victim = self.state.tasks[task].job;
                if let Some(at) = suspended.iter().position(|&gang| gang == victim) {
                    self.ask_gang_to_go(job, suspended.swap_remove(at), why);
                }
                self.carry_out_eviction(job, task, was, why);
            }
        }
        let phantoms = placed.iter().copied().filter(|&(task, _)| self.state.tasks[task].phantom);
        let phantoms: SmallVec<[(TaskId, NodeId); 8]> = phantoms.collect();
        if !phantoms.is_empty() {
            placed.retain(|(task, _)| !self.state.tasks[*task].phantom);
            self.hold(job, &phantoms);
        }
        if !placed.is_empty() {
            self.bind(job, &placed);
        }
    }

    fn bind(&mut self, job: JobId, placed: &[(TaskId, NodeId)]) {
        let row = &self.state.jobs[job as usize];
        let ready_before = row.counts.ready().saturating_sub(placed.len() as u32);
        let mut bind = GangBind {
            group: row.key.clone(),
            min_member: row.min_member() as i32,
            ready_before: ready_before as i32,
            group_created_ms: row.group.as_ref().map_or(0, |group| group.created_ms),
            binds: Vec::with_capacity(placed.len()),
            created_ms: Vec::with_capacity(placed.len()),
        };
        for &(task, node) in placed {
            // Allocated and Binding weigh the same in every ledger: only the counters move.
            self.state.set_binding(task);
            let pod = self.state.tasks[task].pod.clone();
            let node = self.state.nodes.identity[node as usize].name.clone();
            if self.event_per_pod {
                let message =
                    format!("Successfully assigned {}/{} to {node}", pod.namespace, pod.name);
                self.notices.push(Notice {
                    kind: NoticeKind::Pod,
                    object: crate::event::ObjectKey::new(&*pod.namespace, &*pod.name),
                    uid: pod.uid.to_string(),
                    warning: false,
                    reason: tephra_api::reasons::SCHEDULED,
                    message,
                });
            }
            bind.binds.push((pod, node));
            bind.created_ms.push(self.state.tasks[task].created_ms);
        }
        self.bound += bind.binds.len() as u32;
        self.state.touch_job(job);
        // What the gang still needs has changed.
        self.state.jobs[job as usize].parked = None;
        self.state.jobs[job as usize].placed_ms = Some(self.state.now_ms);
        let queue = self.state.jobs[job as usize].queue;
        self.state.touch_queue(queue);
        self.touched.push(job);
        self.decisions.push(Decision::Bind(bind));
    }

    /// From now on the victim is leaving, also in later sessions, until the API server says otherwise.
    fn carry_out_eviction(&mut self, by: JobId, task: TaskId, was: Status, why: EvictFor) {
        self.state.jobs[by as usize].victims_under_way += 1;
        let row = &mut self.state.tasks[task];
        row.spared = Some(was);
        row.evicted_for = Some(by);
        let (pod, job) = (row.pod.clone(), row.job);
        self.state.released();
        self.state.touch_job(job);
        let queue = self.state.jobs[job as usize].queue;
        self.state.touch_queue(queue);
        self.evicted += 1;
        // Pods of a gang that is suspended are its owner's to stop.
        if self.state.jobs[job as usize].suspension.is_none() {
            self.decisions.push(Decision::Evict { pod, reason: why.reason() });
        }
    }
}
