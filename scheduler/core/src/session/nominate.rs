//! Nominations: room that evictions free for a gang stays its own until it starts or gives up. The promise is kept in
//! the state and on the pods (`status.nominatedNodeName`), so that it outlives sessions and restarts. Each session
//! begins with taking nominated places out of the others' reach; allocate serves their gangs first.

use std::sync::Arc;

use tephra_api::reasons;

use super::Session;
use crate::decision::Decision;
use crate::event::QueueState;
use crate::session::statement::Op;
use crate::state::Nomination;
use crate::state::jobs::JobId;
use crate::state::nodes::NodeId;
use crate::state::status::Status;
use crate::state::tasks::{NO_JOB, TaskId, Told};

/// What a pod is told that waits for its victims to leave.
pub(super) const WAITS_FOR_ROOM: &str =
    "waits for room that is being freed, once minAvailable is satisfied";

impl Session<'_> {
    /// Promises a node to a pod beyond this session.
    pub(super) fn nominate(&mut self, task: TaskId, node: NodeId) {
        let node = self.state.nodes.identity[node as usize].name.clone();
        let nomination = Nomination { node: node.clone(), ours: true };
        self.state.nominated.insert(task, nomination);
        if self.state.tasks[task].phantom {
            return;
        }
        let told = self.told_to_wait.get_or_insert_with(|| {
            let (reason, message) = (reasons::UNSCHEDULABLE.into(), WAITS_FOR_ROOM.into());
            Arc::new(Told { reason, message })
        });
        let row = &mut self.state.tasks[task];
        row.told = Some(told.clone());
        self.decisions.push(Decision::PodCondition {
            pod: row.pod.clone(),
            reason: reasons::UNSCHEDULABLE,
            message: told.message.clone(),
            nominated: Some(node),
        });
    }

    /// Jobs with nominated pods that may use their places, first come first.
    fn nominated_jobs(&self) -> Vec<JobId> {
        let tasks = self.state.nominated.keys().map(|&task| self.state.tasks[task].job);
        let mut jobs: Vec<JobId> = tasks.filter(|&job| job != NO_JOB).collect();
        jobs.sort_unstable();
        jobs.dedup();
        jobs.retain(|&job| {
            let row = &self.state.jobs[job as usize];
            row.live
                && !row.is_pending()
                && !row.is_foreign()
                && self.has_queue(job)
                && self.state.queues[row.queue as usize].state == QueueState::Open
        });
        jobs.sort_by_cached_key(|&job| std::cmp::Reverse(self.job_rank(job)));
        jobs
    }

    /// Takes nominated places out of the others' reach.
    pub(super) fn reserve_nominated(&mut self) {
        if self.state.nominated.is_empty() {
            return;
        }
        for job in self.nominated_jobs() {
            if self.pipeline.job_valid(self.state, job).is_err() {
                continue;
            }
            let mut tasks = super::order::pending_tasks(self.state, job, false);
            tasks.retain(|task| self.state.nominated.contains_key(task));
            self.sort_tasks(&mut tasks);
            let queue = self.state.jobs[job as usize].queue;
            for task in tasks {
                let class = self.state.tasks[task].class;
                // What its victims still hold in its own queue would count twice.
                if self.held(task).is_none()
                    && (self.waits_for_victims(job)
                        || self.pipeline.allocatable(self.state, queue, class, 1) > 0)
                    && let Some((node, _)) = self.nominated_place(task)
                {
                    self.place(task, node, true);
                    self.reserved.push(job);
                }
            }
        }
        self.reserved.dedup();
    }

    /// Victims of the job still count for their queues, since the API server is not known to delete them: its places stay
    /// reserved, and it does not start yet (I4).
    pub(crate) fn waits_for_victims(&self, job: JobId) -> bool {
        self.state.jobs[job as usize].victims_under_way > 0
    }

    /// Gives a job its own nominated places back, to be placed anew.
    pub(crate) fn take_back_reserved(&mut self, job: JobId) {
        let state = &*self.state;
        let mine = |op: &Op| matches!(op, Op::Place { task, .. } if state.tasks[*task].job == job);
        for op in self.journal.extract(mine).into_iter().rev() {
            self.undo(op);
        }
    }

    /// The gang cannot use what was freed for it: its nominations end.
    pub(crate) fn give_up_nominations(&mut self, job: JobId) {
        let mut given_up = self.state.jobs[job as usize].tasks.clone();
        given_up.retain(|task| self.state.nominated.remove(task).is_some());
        self.denominated.extend(given_up);
    }

    /// What is to be written of a pod's nomination together with its condition: the empty name removes it.
    pub(super) fn nomination_to_tell(&mut self, task: TaskId) -> Option<Arc<str>> {
        let ended = self.denominated.remove(&task) && !self.state.nominated.contains_key(&task);
        (ended && self.state.tasks[task].status == Status::Pending).then(|| "".into())
    }
}
