//! Gangs that started and lost members: after a crash between binds, a refused bind, or a failed node. They go first,
//! and for a while nobody else gets the places that they need to be whole again: where their waiting pods would
//! go, and where members stood that nobody has created again yet. Places are kept only inside a session; each
//! session keeps them anew.

use super::Session;
use super::order::pending_tasks;
use crate::event::QueueState;
use crate::state::classes::ClassId;
use crate::state::jobs::{JobId, LeftPlace};
use crate::state::status::Status;

/// For so long the places of a broken gang are kept for it (T_gang of the fault list, F10).
const PATIENCE_MS: i64 = 60_000;

impl Session<'_> {
    /// Broken gangs whose places are kept, in order. Notes which gangs broke and which are whole again.
    pub fn broken_gangs(&mut self) -> Vec<JobId> {
        let mut broken = Vec::new();
        for job in self.jobs() {
            if !self.has_queue(job) {
                continue;
            }
            let is_broken = self.is_broken(job);
            let row = &mut self.state.jobs[job as usize];
            if is_broken {
                row.broken_since_ms.get_or_insert(self.state.now_ms);
                if self.keeps_places(job) {
                    broken.push(job);
                }
            } else {
                row.broken_since_ms = None;
                row.left.clear();
            }
        }
        broken.sort_by_cached_key(|&job| std::cmp::Reverse(self.job_rank(job)));
        broken
    }

    /// A gang that started and is below its minimum; without plugin gang no minimum holds anywhere.
    pub(super) fn is_broken(&self, job: JobId) -> bool {
        self.pipeline.gang && self.state.jobs[job as usize].is_broken()
    }

    /// True while others must not take what the gang needs.
    pub fn keeps_places(&self, job: JobId) -> bool {
        let since = self.state.jobs[job as usize].broken_since_ms;
        since.is_some_and(|since| self.state.now_ms - since < PATIENCE_MS)
    }

    /// Copies of a class that a job's queue allows it. What a gang that began needs to be whole again was its queue's to give
    /// when it began: a fair share that has fallen since does not leave it in pieces, only a capability does.
    pub(super) fn allowance(&self, job: JobId, class: ClassId, count: u32) -> u32 {
        let queue = self.state.jobs[job as usize].queue;
        let allowed = self.pipeline.allocatable(self.state, queue, class, count);
        let row = &self.state.jobs[job as usize];
        if allowed == count || row.broken_since_ms.is_none() {
            return allowed;
        }
        let lacks = row.lacks();
        let capped = self.pipeline.capped(self.state, queue, class, lacks);
        if capped { allowed } else { allowed.max(lacks.min(count)) }
    }

    /// Takes what a broken gang that could not be mended needs out of reach of the others until the session ends.
    pub fn keep_places(&mut self, job: JobId) {
        let row = &self.state.jobs[job as usize];
        let queue = &self.state.queues[row.queue as usize];
        if matches!(queue.state, QueueState::Closed | QueueState::Closing) {
            return;
        }
        let there = row.counts.ready() + row.counts.of(Status::Pipelined) + row.best_effort;
        let mut missing = row.min_member().saturating_sub(there);
        let left = row.left.clone();
        let mut tasks = pending_tasks(self.state, job, false);
        self.sort_tasks(&mut tasks);
        for task in tasks {
            if missing > 0 && self.place_member(task) {
                missing -= 1;
            }
        }
        for place in left.into_iter().rev() {
            let node = &self.state.nodes.identity[place.node as usize];
            let fits = node.known
                && !node.unschedulable
                && self.state.nodes.fits(place.node, &place.request, true);
            if missing > 0 && fits {
                missing -= 1;
                self.keep(&place, 1);
                self.kept.push(place);
            }
        }
    }

    fn keep(&mut self, place: &LeftPlace, sign: i64) {
        let LeftPlace { node, request, nonzero } = place;
        self.state.nodes.account(*node, request, *nonzero, Status::Pipelined, sign);
    }

    /// Gives every kept place back.
    pub fn give_back_places(&mut self) {
        for place in std::mem::take(&mut self.kept) {
            self.keep(&place, -1);
        }
    }
}
