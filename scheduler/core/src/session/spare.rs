//! Sparing: of a plan that works, every victim is put back that is not needed, the last one first, so that what is left is
//! inclusion-minimal (I5). Promised places may move to room that others leave anyway. A gang that goes as a whole is
//! spared as a whole, or down to what keeps it whole.

use super::Session;
use super::ranking::Ranking;
use super::statement::{Op, Savepoint};
use crate::state::classes::ClassId;
use crate::state::jobs::JobId;
use crate::state::nodes::NodeId;
use crate::state::resource::Request;
use crate::state::status::Status;
use crate::state::tasks::TaskId;

impl Session<'_> {
    /// Takes needless evictions since a position out of the journal.
    pub(super) fn spare_needless(&mut self, from: Savepoint) {
        let mut jobs: Vec<JobId> = Vec::new();
        for op in self.journal.since(from).iter().rev() {
            if let Op::Evict { task, .. } = op {
                let job = self.state.tasks[*task].job;
                if !jobs.contains(&job) {
                    jobs.push(job);
                }
            }
        }
        for job in jobs {
            self.spare_members(from, job);
        }
    }

    fn spare_members(&mut self, from: Savepoint, job: JobId) {
        let mut spared: Vec<Op> = Vec::new();
        let mut at = self.journal.since(from).len();
        while at > 0 {
            at -= 1;
            let op = self.journal.since(from)[at];
            let Op::Evict { task, was, .. } = op else { continue };
            if self.state.tasks[task].job == job && self.can_spare(from, task, was) {
                self.journal.remove(from, at);
                spared.push(op);
            }
        }
        let row = &self.state.jobs[job as usize];
        let gone = row.counts.allocated() as usize == spared.len();
        if gone && !spared.is_empty() && self.pipeline.gang && !(row.is_ready() && row.roles_ready())
        {
            // Too few to be a gang: they go with the others after all.
            for op in spared.into_iter().rev() {
                if let Op::Evict { task, why, .. } = op {
                    self.evict(task, why);
                }
            }
        }
    }

    /// Puts a victim back if the plan works all the same; its places may move.
    fn can_spare(&mut self, from: Savepoint, victim: TaskId, was: Status) -> bool {
        let row = &self.state.tasks[victim];
        let (node, class) = (row.node, row.class);
        let request = self.state.classes.list[class as usize].request.clone();
        let moved = self.move_away(from, node, &request);
        if self.state.nodes.fits_after(node, &request) {
            self.state.spare(victim, was);
            self.account(victim, 1);
            if self.plan_holds(from) {
                return true;
            }
            self.state.evict(victim);
            self.account(victim, -1);
        }
        for at in moved.into_iter().rev() {
            self.move_place(from, at, node);
        }
        false
    }

    /// Moves promised places from a node to room that is left elsewhere, until a request fits on the node. Gives the
    /// moved operations.
    fn move_away(&mut self, from: Savepoint, node: NodeId, request: &Request) -> Vec<usize> {
        let mut moved = Vec::new();
        for at in 0..self.journal.since(from).len() {
            if self.state.nodes.fits_after(node, request) {
                break;
            }
            let Op::Place { task, node: here, .. } = self.journal.since(from)[at] else { continue };
            if here != node || self.depends_on_pods(task) || self.has_volumes(task) {
                continue;
            }
            self.state.refresh_reach();
            let class = self.state.tasks[task].class;
            let mut ranking = Ranking::new(self.state, class, 0, None);
            ranking.exclude(self.state, node);
            if let Some(elsewhere) = ranking.best() {
                self.move_place(from, at, elsewhere);
                moved.push(at);
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
}
