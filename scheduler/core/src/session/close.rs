//! The end of a session: promises are taken back, and what changed is told. Phases, conditions and counts of
//! PodGroups (3.4, 7.2), conditions of waiting pods (features.md 5.3) and allocations of queues are compared
//! with what is stored; only differences become decisions.

use std::sync::Arc;

use tephra_api::reasons;

use super::reasons::Words;
use super::{Refusal, Session};
use crate::decision::{Decision, Notice, NoticeKind};
use crate::event::{GroupCondition, PodGroupPhase, PodGroupStatus};
use crate::laps::Laps;
use crate::state::jobs::JobId;
use crate::state::nodes::NO_NODE;
use crate::state::status::Status;
use crate::state::tasks::{TaskId, Told};

impl Session<'_> {
    /// Ends the session.
    pub fn close(&mut self, laps: &mut dyn Laps) {
        self.give_back_places();
        let start = self.journal.savepoint_at_start();
        self.rollback(start);
        let mut words = Words::default();
        for job in self.jobs() {
            let held = self.is_held(job);
            let row = &mut self.state.jobs[job as usize];
            row.held = held;
            row.sessions_below += u64::from(row.is_below());
            self.tell_job(job, &mut words);
        }
        self.tell_queues();
        self.tell_turns(laps);
        for notice in std::mem::take(&mut self.notices) {
            self.decisions.push(Decision::Notice(notice));
        }
    }

    /// More room, or another order, would not help the job.
    fn is_held(&self, job: JobId) -> bool {
        let row = &self.state.jobs[job as usize];
        let lacks_members = !row.is_pending() && row.tasks.len() < row.min_member() as usize;
        lacks_members
            || match self.refusals.get(&job) {
                None | Some(Refusal::Room { .. } | Refusal::Pipelined) => false,
                Some(Refusal::NotAdmitted { lacks_room, .. }) => !lacks_room,
                Some(_) => true,
            }
    }

    fn tell_job(&mut self, job: JobId, words: &mut Words) {
        if self.is_as_told(job) {
            return;
        }
        let mut status = self.status_of(job);
        let row = &self.state.jobs[job as usize];
        let Some(group) = &row.group else { return };
        let mut unschedulable = None;
        let below = self.is_below_minimum(job);
        if self.pipeline.gang && !row.tasks.is_empty() {
            if row.is_whole() {
                if !has(&group.status, reasons::SCHEDULED) {
                    set(
                        &mut status,
                        self.condition(reasons::SCHEDULED, reasons::TASKS_READY, String::new()),
                    );
                }
            } else if below && (row.counts.of(Status::Pending) > 0 || row.counts.ready() > 0) {
                unschedulable = self.obstacle(job, words);
            }
        } else if self.is_kept_out(job) {
            unschedulable = self.obstacle(job, words);
        }
        let row = &self.state.jobs[job as usize];
        let Some(group) = &row.group else { return };
        let uid = group.uid.to_string();
        if let Some((reason, message)) = &unschedulable {
            let condition = self.condition(reasons::UNSCHEDULABLE, reason, message.clone());
            let same = group.status.conditions.iter().any(|old| {
                old.kind == condition.kind
                    && old.status
                    && old.reason == condition.reason
                    && old.message == condition.message
            });
            if !same {
                set(&mut status, condition);
                self.notices.push(Notice {
                    kind: NoticeKind::PodGroup,
                    object: row.key.clone(),
                    uid: uid.clone(),
                    warning: true,
                    reason: reasons::UNSCHEDULABLE,
                    message: message.clone(),
                });
            }
        } else if row.is_whole() || (row.tasks.is_empty() && !row.is_pending()) {
            for condition in &mut status.conditions {
                // The gang has what it waited for, or is admitted: an old complaint must not stand beside it.
                if condition.kind == reasons::UNSCHEDULABLE {
                    condition.status = false;
                }
            }
        }
        status.phase = self.phase_of(job, below);
        let row = &self.state.jobs[job as usize];
        let Some(group) = &row.group else { return };
        if status != group.status {
            let became_ready =
                !has(&group.status, reasons::SCHEDULED) && has(&status, reasons::SCHEDULED);
            if became_ready {
                self.notices.push(Notice {
                    kind: NoticeKind::PodGroup,
                    object: row.key.clone(),
                    uid: uid.clone(),
                    warning: false,
                    reason: reasons::SCHEDULED,
                    message: "pod group is ready".to_owned(),
                });
            }
            self.decisions.push(Decision::PodGroupStatus {
                group: row.key.clone(),
                uid,
                status: status.clone(),
            });
            let row = &mut self.state.jobs[job as usize];
            row.phase = status.phase;
            if let Some(group) = &mut row.group {
                group.set_status(status);
            }
            self.state.refresh_job(job);
        }
        self.tell_pods(job, words);
    }

    /// Something that somebody set keeps it from being admitted, which concerns also a group without pods.
    fn is_kept_out(&self, job: JobId) -> bool {
        matches!(
            self.refusals.get(&job),
            Some(
                Refusal::NoQueue
                    | Refusal::QueueClosed
                    | Refusal::NotAdmitted { lacks_room: false, .. }
            )
        )
    }

    /// A whole gang whose PodGroup says so, and nothing else is to be said: most jobs, most of the time.
    fn is_as_told(&self, job: JobId) -> bool {
        let row = &self.state.jobs[job as usize];
        let Some(group) = &row.group else { return true };
        let count = |status| row.counts.of(status) as i32;
        self.pipeline.gang
            && group.content
            && group.status.running == count(Status::Running)
            && group.status.succeeded == count(Status::Succeeded)
            && group.status.failed == count(Status::Failed)
            && !row.tasks.is_empty()
            && row.is_whole()
            && !self.refusals.contains_key(&job)
            && group.status.phase == self.phase_of(job, false)
    }

    fn condition(&self, kind: &str, reason: &str, message: String) -> GroupCondition {
        GroupCondition {
            kind: kind.to_owned(),
            status: true,
            transition_id: self.id.clone(),
            since_ms: self.state.now_ms,
            reason: reason.to_owned(),
            message,
        }
    }

    /// Counts as they are now, everything else as stored.
    fn status_of(&self, job: JobId) -> PodGroupStatus {
        let row = &self.state.jobs[job as usize];
        let stored = row.group.as_ref().map(|group| group.status.clone()).unwrap_or_default();
        let count = |status| row.counts.of(status) as i32;
        PodGroupStatus {
            running: count(Status::Running),
            succeeded: count(Status::Succeeded),
            failed: count(Status::Failed),
            ..stored
        }
    }

    /// A gang with pods that is not ready, also not counting those that are just leaving their nodes (B12).
    fn is_below_minimum(&self, job: JobId) -> bool {
        let row = &self.state.jobs[job as usize];
        if !self.pipeline.gang || row.tasks.is_empty() || row.is_whole() {
            return false;
        }
        let leaving = self.leaving(job);
        leaving == 0 || row.counts.ready() + row.best_effort + leaving < row.min_member()
    }

    /// Pods of a job that are being deleted and still on a node.
    fn leaving(&self, job: JobId) -> u32 {
        let row = &self.state.jobs[job as usize];
        if row.counts.of(Status::Releasing) == 0 {
            return 0;
        }
        let on_node = |&&task: &&TaskId| {
            let row = &self.state.tasks[task];
            row.status == Status::Releasing && row.node != NO_NODE
        };
        row.tasks.iter().filter(on_node).count() as u32
    }

    /// Phase of a PodGroup (3.4). Pods that are being deleted on a node still count as scheduled, so that a
    /// terminating gang is not queued a second time (B12).
    fn phase_of(&self, job: JobId, below: bool) -> PodGroupPhase {
        let row = &self.state.jobs[job as usize];
        let of = |status| row.counts.of(status);
        let completed = of(Status::Failed) + of(Status::Succeeded);
        let releasing = self.leaving(job);
        let scheduled = of(Status::Running) + of(Status::Bound) + completed;
        let min = row.min_member();
        if of(Status::Running) > 0 && below {
            PodGroupPhase::Unknown
        } else if scheduled + releasing >= min && releasing > 0 {
            PodGroupPhase::Running
        } else if scheduled >= min && scheduled == completed {
            PodGroupPhase::Completed
        } else if scheduled >= min {
            PodGroupPhase::Running
        } else if row.phase == PodGroupPhase::Inqueue {
            PodGroupPhase::Inqueue
        } else if row.phase == PodGroupPhase::Completed && row.tasks.is_empty() {
            // Its pods were cleaned up after they had ended: it is not queued again.
            PodGroupPhase::Completed
        } else {
            PodGroupPhase::Pending
        }
    }

    /// Reason and text of the `Unschedulable` condition, if the job waits for something that is known.
    fn obstacle(&mut self, job: JobId, words: &mut Words) -> Option<(&'static str, String)> {
        let queue = self.state.queues[self.state.jobs[job as usize].queue as usize].name.clone();
        match self.refusals.get(&job) {
            Some(Refusal::NoQueue) => {
                return Some((
                    reasons::QUEUE_NOT_FOUND,
                    format!("queue \"{queue}\" does not exist"),
                ));
            }
            Some(Refusal::QueueClosed) => {
                return Some((
                    reasons::QUEUE_CLOSED,
                    format!("queue \"{queue}\" is not open: it is closed or closing"),
                ));
            }
            _ => {}
        }
        let row = &self.state.jobs[job as usize];
        if let Some(told) = &row.told_rejection
            && row.is_pending()
        {
            let told = format!("not admitted: {told} (queue {queue})");
            if row.tasks.is_empty() {
                return Some((reasons::NOT_ENOUGH_RESOURCES, told));
            }
            let sentence = self.gang_sentence(job, words);
            return Some((reasons::NOT_ENOUGH_RESOURCES, format!("{sentence}. {told}")));
        }
        if let Err(invalid) = self.pipeline.job_valid(self.state, job) {
            let sentence = self.gang_sentence(job, words);
            return Some((invalid.reason, format!("{sentence}. {}", invalid.message)));
        }
        if row.is_pending() {
            return None;
        }
        if !self.refusals.contains_key(&job) {
            // Not looked at in this session, because nothing changed for it: what was told stands.
            let stored = row.group.as_ref()?.status.conditions.iter();
            let old = stored.rev().find(|c| c.kind == reasons::UNSCHEDULABLE && c.status)?;
            let reason = [reasons::NOT_ENOUGH_RESOURCES, reasons::QUEUE_LIMITED]
                .into_iter()
                .find(|known| *known == old.reason)?;
            return Some((reason, old.message.clone()));
        }
        let reason = match self.refusals.get(&job) {
            Some(Refusal::Queue { .. }) => reasons::QUEUE_LIMITED,
            _ => reasons::NOT_ENOUGH_RESOURCES,
        };
        Some((reason, self.gang_sentence(job, words)))
    }

    /// Conditions of the waiting pods of a gang that was refused: all of them get the same reason, also those
    /// that would fit alone, so that an autoscaler sees the whole gang; pods over their queue's limit never look
    /// as if more nodes would help (features.md 5.3).
    fn tell_pods(&mut self, job: JobId, words: &mut Words) {
        let Some(refusal) = self.refusals.get(&job).cloned() else {
            return;
        };
        if self.pipeline.job_ready(self.state, job)
            && !matches!(
                refusal,
                Refusal::Room { .. } | Refusal::Queue { .. } | Refusal::Held { .. }
            )
        {
            return;
        }
        let queue = self.state.queues[self.state.jobs[job as usize].queue as usize].name.clone();
        let (reason, message) = match refusal.clone() {
            Refusal::Room { task, .. } => (reasons::UNSCHEDULABLE, self.node_reasons(task, words)),
            Refusal::Queue { message, .. } => (reasons::QUEUE_LIMITED, message),
            Refusal::Held { message, .. } => (reasons::UNSUPPORTED, message),
            Refusal::NotAdmitted { message, lacks_room } => {
                let reason =
                    if lacks_room { reasons::UNSCHEDULABLE } else { reasons::QUEUE_LIMITED };
                (reason, format!("its group is not admitted: {message}"))
            }
            // These pods lack nothing themselves.
            Refusal::Members => return,
            Refusal::NoQueue => {
                (reasons::QUEUE_LIMITED, format!("queue \"{queue}\" does not exist"))
            }
            Refusal::QueueClosed => {
                (reasons::QUEUE_LIMITED, format!("queue \"{queue}\" is not open"))
            }
            Refusal::Pipelined => {
                (reasons::UNSCHEDULABLE, super::nominate::WAITS_FOR_ROOM.to_owned())
            }
        };
        let all = told(reason, message);
        // Pods of another kind than the one without a node are told how the gang stands, and who that one is.
        let alike = match refusal {
            Refusal::Room { task, .. } if !self.pipeline.job_ready(self.state, job) => {
                Some(self.state.tasks[task].class)
            }
            _ => None,
        };
        let mut others: Option<Arc<Told>> = None;
        for task in self.waiting(job) {
            // A pod that is itself held says so, whatever keeps its gang.
            match self.held(task) {
                Some(own) => {
                    self.tell_pod(task, reasons::UNSUPPORTED, &told(reasons::UNSUPPORTED, own));
                }
                None if alike.is_none_or(|class| class == self.state.tasks[task].class) => {
                    self.tell_pod(task, reason, &all);
                }
                None => {
                    let text = match others.take() {
                        Some(text) => text,
                        None => told(reason, self.fit_error(job, words)),
                    };
                    self.tell_pod(task, reason, &text);
                    others = Some(text);
                }
            }
        }
    }

    fn waiting(&self, job: JobId) -> Vec<TaskId> {
        let mut tasks: Vec<TaskId> = self.state.jobs[job as usize]
            .tasks
            .iter()
            .copied()
            .filter(|&task| {
                let row = &self.state.tasks[task];
                row.status == Status::Pending && row.ours && !row.gated && !row.phantom
            })
            .collect();
        tasks.sort_unstable();
        tasks
    }

    /// Tells, before anything is tried again, which binds the API server refused, and lets jobs with repeated
    /// refusals wait a little longer each time.
    pub fn tell_bind_errors(&mut self) {
        for job in self.jobs() {
            let failures = self.state.jobs[job as usize].bind_failures;
            if failures == 0 {
                continue;
            }
            let mut fresh = false;
            for task in self.waiting(job) {
                if let Some(error) = self.state.tasks[task].bind_error.take() {
                    fresh = true;
                    self.tell_pod(
                        task,
                        reasons::SCHEDULER_ERROR,
                        &told(reasons::SCHEDULER_ERROR, error),
                    );
                }
            }
            if fresh {
                let pause_ms = 1000_i64 << failures.saturating_sub(2).min(6);
                self.state.jobs[job as usize].retry_at_ms = self.state.now_ms + pause_ms;
            }
        }
    }

    fn tell_pod(&mut self, task: TaskId, reason: &'static str, told: &Arc<Told>) {
        let nominated = self.nomination_to_tell(task);
        let row = &mut self.state.tasks[task];
        if nominated.is_none() && row.told.as_ref() == Some(told) {
            return;
        }
        row.told = Some(told.clone());
        self.decisions.push(Decision::PodCondition {
            pod: row.pod.clone(),
            reason,
            message: told.message.clone(),
            nominated,
        });
    }
}

fn told(reason: &str, message: impl Into<Arc<str>>) -> Arc<Told> {
    Arc::new(Told { reason: reason.into(), message: message.into() })
}

fn has(status: &PodGroupStatus, kind: &str) -> bool {
    status.conditions.iter().any(|condition| condition.kind == kind && condition.status)
}

/// Puts a condition in the place of the one of its type. A new complaint ends an old success and the other way
/// round, so that the two never stand side by side as true.
fn set(status: &mut PodGroupStatus, condition: GroupCondition) {
    for other in &mut status.conditions {
        if other.kind != condition.kind {
            other.status = false;
        }
    }
    match status.conditions.iter_mut().find(|old| old.kind == condition.kind) {
        Some(old) => *old = condition,
        None => status.conditions.push(condition),
    }
}
