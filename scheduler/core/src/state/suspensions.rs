//! Gangs that make room by being suspended, as far as the state knows of it. What annotations of PodGroups say comes in with
//! their events; `session/suspend` decides who goes, who comes back, and who gets the room that is held.
//!
//! A gang that is asked to go keeps its nodes until it is down, but its pods count as leaving from the moment of the decision. A gang
//! that is down has *phantoms* in place of pods: tasks of the recorded shapes that wait in its queue in its old order. Where
//! they find room they keep it, promised like any room, until the gang's pods are back to take it over.

use std::collections::BTreeSet;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use tephra_api::suspension::Intent;

use super::State;
use super::jobs::JobId;
use super::nodes::NO_NODE;
use super::queues::QueueId;
use super::resource::Ledger;
use super::status::Status;
use super::tasks::{NO_JOB, TaskId};
use crate::event::{ObjectKey, PodObject, PodPhase, Suspension, SuspensionRecord};

/// How long room is held for pods that do not come back, in milliseconds.
const HOLD_MS: i64 = 300_000;
/// A record is believed to speak of no more pods than this.
const MOST_MEMBERS: u32 = 1_000_000;
/// What is remembered of a suspension that is over: for so long it counts against the next.
pub const DAY_MS: i64 = 24 * 3_600_000;

/// Where a gang stands between running and running again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It is asked to go; its pods may still run.
    Leaving(Leaving),
    /// It is down, with phantoms in place of its pods.
    Down(Down),
    /// It may come back: its phantoms keep its room until then.
    Returning {
        /// Name of the PodGroup whose pods come.
        group: Arc<str>,
        /// Until when the room is kept.
        until_ms: i64,
    },
}

/// A gang that is asked to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaving {
    /// What it is asked.
    pub intent: Intent,
    /// The PodGroup was seen with the intent on it.
    pub seen: bool,
    /// The intent has been withdrawn, and the PodGroup was not yet seen without it.
    pub withdrawn: bool,
    /// It is being stopped: nothing can be withdrawn any more.
    pub recorded: bool,
}

/// A gang that is down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Down {
    /// Id of the suspension.
    pub id: String,
    /// Name of the PodGroup whose pods come back.
    pub group: Arc<str>,
    /// It was told that it may come back, by this scheduler or one before it.
    pub resumed: bool,
    /// A person wants it to stay down.
    pub hold: bool,
}

/// What is known of suspensions beside the jobs. Lost with a restart, save what records of gangs that are down say.
#[derive(Debug, Default)]
pub struct Suspensions {
    /// Jobs that are asked to go.
    pub leaving: BTreeSet<JobId>,
    /// Jobs that are down or whose room is held.
    pub down: BTreeSet<JobId>,
    /// When gangs were suspended in the last day, by `namespace/name` of the gang and of who made it go.
    past: FxHashMap<Arc<str>, Vec<(i64, Arc<str>)>>,
    /// Gangs that are left alone until a time, because nobody stopped them when they were asked to go.
    spared: FxHashMap<Arc<str>, i64>,
    /// Work that was lost since the last session opened.
    pub lost: Vec<Lost>,
}

/// Work of a gang that was stopped for one of another queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Queue of the gang.
    pub queue: QueueId,
    /// Queue of who made it go.
    pub to: QueueId,
    /// What the gang held.
    pub held: Ledger,
    /// For how long it did so in vain: since its last checkpoint, or its start.
    pub ms: i64,
}

impl Suspensions {
    /// A gang is being suspended.
    pub fn note(&mut self, gang: &str, by: &str, at_ms: i64) {
        let past = self.past.entry(gang.into()).or_default();
        past.retain(|&(known_ms, _)| at_ms.saturating_sub(known_ms) < DAY_MS);
        if past.iter().all(|(known_ms, known)| (*known_ms, &**known) != (at_ms, by)) {
            past.push((at_ms, by.into()));
        }
    }

    /// A gang is left alone until a time.
    pub fn spare(&mut self, gang: Arc<str>, until_ms: i64) {
        self.spared.insert(gang, until_ms);
    }

    /// Until when a gang is left alone.
    pub fn spared_until(&self, gang: &str) -> Option<i64> {
        self.spared.get(gang).copied()
    }

    /// How often a gang was suspended in the day before now.
    pub fn within_day(&self, gang: &str, now_ms: i64) -> u32 {
        let past = self.past.get(gang).into_iter().flatten();
        past.filter(|(at_ms, _)| now_ms.saturating_sub(*at_ms) < DAY_MS).count() as u32
    }

    /// When a gang was suspended in the last day.
    pub fn times(&self, gang: &str) -> impl Iterator<Item = i64> + '_ {
        self.past.get(gang).into_iter().flatten().map(|&(at_ms, _)| at_ms)
    }

    /// When a gang was last suspended for another one.
    pub fn last(&self, gang: &str, by: &str) -> Option<i64> {
        let past = self.past.get(gang).into_iter().flatten();
        past.filter(|(_, known)| **known == *by).map(|&(at_ms, _)| at_ms).max()
    }
}

impl State {
    /// Takes over what a PodGroup's annotations say.
    pub(super) fn see_suspension(&mut self, job: JobId, told: Option<Box<Suspension>>) {
        let told = told.map(|told| *told).unwrap_or_default();
        match (told.record, told.intent) {
            (None, None) => self.set_free(job),
            (record, Some(intent)) => self.set_leaving(job, intent, record.is_some()),
            (Some(record), None) => {
                let resumed = told.resume.as_ref() == Some(&record.id);
                self.set_down(job, record, resumed, told.hold);
            }
        }
    }

    /// The gang's PodGroup is gone. Room that is held for the pods of another PodGroup stays held.
    pub(super) fn forget_suspension(&mut self, job: JobId) {
        let own_name = self.jobs[job as usize].key.name.clone();
        match self.jobs[job as usize].suspension.as_deref() {
            Some(Stage::Leaving(_)) => self.stay(job),
            Some(Stage::Down(down)) if *down.group != *own_name => self.set_free(job),
            Some(Stage::Down(_)) => self.drop_phantoms(job, true),
            Some(Stage::Returning { .. }) | None => {}
        }
    }

    fn set_free(&mut self, job: JobId) {
        match self.jobs[job as usize].suspension.as_deref() {
            // What was decided may not have reached the PodGroup yet.
            Some(Stage::Leaving(leaving)) if leaving.seen => self.stay(job),
            Some(Stage::Down(down)) => {
                let (group, until_ms) = (down.group.clone(), self.now_ms.saturating_add(HOLD_MS));
                let returning = Stage::Returning { group, until_ms };
                self.prey_epoch += 1;
                self.jobs[job as usize].suspension = Some(Box::new(returning));
                self.drop_phantoms(job, false);
            }
            _ => {}
        }
    }

    /// The gang is asked to go: its pods are leaving from now on.
    fn set_leaving(&mut self, job: JobId, intent: Intent, recorded: bool) {
        match self.jobs[job as usize].suspension.as_deref_mut() {
            Some(Stage::Leaving(leaving)) if leaving.intent.id == intent.id => {
                leaving.seen = true;
                if recorded && !std::mem::replace(&mut leaving.recorded, true) {
                    self.note_loss(job, &intent.by);
                }
            }
            _ => {
                self.drop_phantoms(job, true);
                let leaving = Leaving { intent, seen: true, withdrawn: false, recorded };
                self.begin_leaving(job, leaving);
            }
        }
        for task in self.jobs[job as usize].tasks.clone() {
            self.ask_to_leave(task);
        }
    }

    /// The gang is being stopped: what it did since its last checkpoint is lost.
    fn note_loss(&mut self, job: JobId, by: &str) {
        let by = by.split_once('/').and_then(|(namespace, name)| self.job_named(namespace, name));
        let Some(by) = by else { return };
        let (queue, to) = (self.jobs[job as usize].queue, self.jobs[by as usize].queue);
        if queue != to {
            let lost = Lost { queue, to, held: self.on_nodes(job), ms: self.unsaved_ms(job).0 };
            self.suspensions.lost.push(lost);
        }
    }

    /// What pods of a job hold on nodes, those that are leaving too.
    pub fn on_nodes(&self, job: JobId) -> Ledger {
        let mut held = Ledger::default();
        for &task in &self.jobs[job as usize].tasks {
            let row = &self.tasks[task];
            if row.node != NO_NODE && row.status != Status::Pipelined {
                held.add_request(&self.classes.list[row.class as usize].request, 1);
            }
        }
        held
    }

    /// Time since the last checkpoint or the start of a job that runs, and when the last checkpoint was.
    pub fn unsaved_ms(&self, job: JobId) -> (i64, Option<i64>) {
        let tasks = self.jobs[job as usize].tasks.iter().map(|&task| &self.tasks[task]);
        let running = tasks.filter(|row| row.node != NO_NODE);
        let (mut started_ms, mut saved_ms) = (0, 0);
        for row in running {
            started_ms = started_ms.max(row.started_ms);
            saved_ms = saved_ms.max(row.last_checkpoint_ms);
        }
        let saved = (saved_ms > 0).then_some(saved_ms.min(self.now_ms));
        let since_ms = self.now_ms - started_ms.max(saved_ms);
        (since_ms.max(0), saved)
    }

    /// Notes that a gang is asked to go.
    pub fn begin_leaving(&mut self, job: JobId, leaving: Leaving) {
        let gang = self.jobs[job as usize].key.to_string();
        self.suspensions.note(&gang, &leaving.intent.by, self.now_ms);
        self.jobs[job as usize].suspension = Some(Box::new(Stage::Leaving(leaving)));
        self.prey_epoch += 1;
        self.suspensions.leaving.insert(job);
    }

    /// A pod of a gang that is asked to go counts as leaving. Pods that are leaving already, or wait, do not change.
    pub(super) fn ask_to_leave(&mut self, task: TaskId) {
        let row = &self.tasks[task];
        if row.job == NO_JOB || !matches!(row.status, Status::Bound | Status::Running) {
            return;
        }
        let job = row.job;
        let Some(Stage::Leaving(leaving)) = self.jobs[job as usize].suspension.as_deref() else {
            return;
        };
        let by = leaving.intent.by.split_once('/');
        let by = by.and_then(|(namespace, name)| self.job_named(namespace, name));
        let was = row.status;
        self.evict(task);
        let row = &mut self.tasks[task];
        (row.spared, row.evicted_for) = (Some(was), by);
        if let Some(by) = by {
            self.jobs[by as usize].victims_under_way += 1;
        }
        self.released();
        self.touch_job(job);
    }

    /// The gang need not go: its pods stay where they are.
    pub fn stay(&mut self, job: JobId) {
        self.prey_epoch += 1;
        self.suspensions.leaving.remove(&job);
        self.jobs[job as usize].suspension = None;
        for task in self.jobs[job as usize].tasks.clone() {
            self.stays(task);
        }
    }

    fn set_down(&mut self, job: JobId, record: SuspensionRecord, resumed: bool, hold: bool) {
        self.prey_epoch += 1;
        self.suspensions.leaving.remove(&job);
        match self.jobs[job as usize].suspension.as_deref_mut() {
            Some(Stage::Down(down)) if down.id == record.id => {
                (down.resumed, down.hold) = (down.resumed || resumed, hold);
                return;
            }
            _ => self.drop_phantoms(job, true),
        }
        let gang = self.jobs[job as usize].key.to_string();
        self.suspensions.note(&gang, &record.by, record.at_ms);
        let down =
            Down { id: record.id.clone(), group: record.group.as_str().into(), resumed, hold };
        self.jobs[job as usize].suspension = Some(Box::new(Stage::Down(down)));
        self.suspensions.down.insert(job);
        let shapes = record.members.iter().flat_map(|(count, pod)| (0..*count).map(move |_| pod));
        for (number, shape) in shapes.take(MOST_MEMBERS as usize).enumerate() {
            self.add_phantom(job, &record.id, number, shape);
        }
        self.unpark(job);
        self.released();
    }

    fn add_phantom(&mut self, job: JobId, id: &str, number: usize, shape: &PodObject) {
        let ObjectKey { namespace, name } = self.jobs[job as usize].key.clone();
        let uid = format!("{namespace}/{name}/{id}/{number}");
        let phantom = PodObject {
            key: ObjectKey { namespace, name: format!("{name}-{number}") },
            uid: uid.clone(),
            ours: true,
            group: None,
            phase: PodPhase::Pending,
            node: None,
            nominated: None,
            gated: false,
            deleting: false,
            evicted: false,
            scheduled_condition: None,
            ..shape.clone()
        };
        self.set_pod(phantom);
        let Some(task) = self.tasks.get(&uid) else { return };
        self.tasks[task].phantom = true;
        self.join_job(task, job);
        self.account(task, 1);
        self.touch_job(job);
    }

    /// Phantoms of a job.
    pub fn phantoms(&self, job: JobId) -> impl Iterator<Item = TaskId> + '_ {
        let tasks = self.jobs[job as usize].tasks.iter().copied();
        tasks.filter(|&task| self.tasks[task].phantom)
    }

    /// Removes the phantoms of a job that keep no room, or all of them. A gang without any is an ordinary one.
    pub fn drop_phantoms(&mut self, job: JobId, held_too: bool) {
        if self.jobs[job as usize].suspension.is_none() {
            return;
        }
        self.prey_epoch += 1;
        let mut phantoms: Vec<TaskId> = self.phantoms(job).collect();
        let keeps = phantoms.len();
        phantoms.retain(|&task| held_too || self.tasks[task].node == NO_NODE);
        if phantoms.len() == keeps {
            self.jobs[job as usize].suspension = None;
            self.suspensions.down.remove(&job);
        }
        phantoms.into_iter().for_each(|task| self.drop_phantom(task));
    }

    /// Removes a phantom; the room that it kept is free.
    pub fn drop_phantom(&mut self, task: TaskId) {
        let uid = self.tasks[task].pod.uid.clone();
        self.remove_pod(&uid);
    }
}
