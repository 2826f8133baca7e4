//! The journal of tentative placements. Every operation changes the state at once and can be taken back; a
//! savepoint is a position in the journal. Committing a stretch turns it into binds; what is neither committed
//! nor taken back when the session ends was only promised (a gang waiting for room that is being freed), and is
//! taken back then.

use smallvec::SmallVec;

use super::Session;
use crate::decision::{Decision, GangBind, Notice, NoticeKind};
use crate::planted::{Bug, planted};
use crate::plugin::Delta;
use crate::state::jobs::JobId;
use crate::state::nodes::NodeId;
use crate::state::status::Status;
use crate::state::tasks::TaskId;

/// A placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    /// Task.
    pub task: TaskId,
    /// Its node.
    pub node: NodeId,
    /// On room that is still being freed.
    pub pipelined: bool,
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
        self.journal.ops.push(Op { task, node, pipelined });
        self.account(task, 1);
    }

    fn account(&mut self, task: TaskId, count: i64) {
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
            self.state.unplace(op.task);
            self.account(op.task, -1);
        }
    }

    /// Commits what was placed for a job since a savepoint: placed tasks are being bound from now on; promised
    /// ones stay open until the session ends.
    pub fn commit(&mut self, from: Savepoint, job: JobId) {
        let ops: SmallVec<[Op; 8]> = self.journal.ops.drain(from.0..).collect();
        let row = &self.state.jobs[job as usize];
        let placed = ops.iter().filter(|op| !op.pipelined).count() as u32;
        let ready_before = row.counts.ready().saturating_sub(placed);
        let mut bind = GangBind {
            group: row.key.clone(),
            min_member: row.min_member() as i32,
            ready_before: ready_before as i32,
            binds: Vec::with_capacity(placed as usize),
        };
        for op in ops {
            if op.pipelined {
                self.journal.ops.push(op);
                continue;
            }
            // Allocated and Binding weigh the same in every ledger: only the counters move.
            self.state.set_binding(op.task);
            let pod = self.state.tasks[op.task].pod.clone();
            let node = self.state.nodes.identity[op.node as usize].name.clone();
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
        }
        if !bind.binds.is_empty() {
            self.bound += bind.binds.len() as u32;
            self.state.touch_job(job);
            // What the gang still needs has changed.
            self.state.jobs[job as usize].parked = None;
            let queue = self.state.jobs[job as usize].queue;
            self.state.touch_queue(queue);
            self.touched.push(job);
            self.decisions.push(Decision::Bind(bind));
        }
    }
}
