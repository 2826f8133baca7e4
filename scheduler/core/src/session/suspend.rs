//! Suspension instead of eviction (plugin `suspend`, `features.md` 2.2): which gangs may be asked to go, what they are asked, when
//! the wish is withdrawn, and how room is held for a gang that comes back until its pods take it over.
//!
//! The scheduler only writes what it wants on PodGroups. The suspension controller stops and starts owners; what it did comes
//! back with the PodGroup's annotations ([`crate::state::suspensions`]), so neither needs the other to be alive.

use std::sync::Arc;

use jiff::Timestamp;
use rustc_hash::FxHashMap;
use tephra_api::reasons;
use tephra_api::suspension::{Intent, Mode};

use super::Session;
use super::futile::order_of;
use super::hunt::{Hunt, Prey};
use super::statement::Op;
use crate::decision::{Decision, Notice, NoticeKind};
use crate::event::{CheckpointMode, PodGroupPhase, PreemptionMode};
use crate::plugin::EvictFor;
use crate::plugin::drf::dominant_share;
use crate::plugin::suspend::Rules;
use crate::state::jobs::{Job, JobId};
use crate::state::nodes::{NO_NODE, NodeId};
use crate::state::queues::QueueId;
use crate::state::resource::Ledger;
use crate::state::status::Status;
use crate::state::suspensions::{DAY_MS, Down, Leaving, Stage};
use crate::state::tasks::TaskId;
use crate::state::{Nomination, State};

/// What jobs lose when they are stopped.
#[derive(Debug)]
pub(crate) struct Losses {
    pub(super) by_job: FxHashMap<JobId, i64>,
    /// Stands for the order of jobs by it.
    pub(super) order: u64,
}

/// Looks at all suspensions before a session opens: wishes that nobody has any more are withdrawn, room whose owner does not
/// come is free, and pods that came back take over what was held for them. Without the plugin intents are somebody else's.
pub(crate) fn review(state: &mut State, rules: Option<Rules>) -> Vec<Decision> {
    let mut decisions = Vec::new();
    if let Some(rules) = rules {
        for job in Vec::from_iter(state.suspensions.leaving.iter().copied()) {
            review_intent(state, rules, job, &mut decisions);
        }
    }
    for job in Vec::from_iter(state.suspensions.down.iter().copied()) {
        hand_over(state, job);
    }
    decisions
}

fn review_intent(state: &mut State, rules: Rules, job: JobId, decisions: &mut Vec<Decision>) {
    let row = &state.jobs[job as usize];
    let Some(Stage::Leaving(leaving)) = row.suspension.as_deref() else { return };
    let Leaving { intent, withdrawn, recorded, .. } = leaving;
    if *recorded || *withdrawn || intent.is_a_persons() {
        return;
    }
    let patience_ms = intent.deadline.as_millisecond().saturating_add(rules.patience_ms);
    let ignored = state.now_ms > patience_ms;
    if is_wanted(state, &intent.by) && !ignored {
        return;
    }
    let Some(group) = &row.group else { return };
    let (key, uid, id) = (row.key.clone(), group.uid.to_string(), group.id.clone());
    if ignored {
        let message = format!(
            "asked to make room for {}, and nobody stopped it: is the suspension controller running?",
            intent.by
        );
        decisions.push(Decision::Notice(Notice {
            kind: NoticeKind::PodGroup,
            object: key.clone(),
            uid: uid.clone(),
            warning: true,
            reason: reasons::SUSPENSION_IGNORED,
            message,
        }));
        state.suspensions.spare(id, state.now_ms.saturating_add(rules.pair_cooldown_ms));
        state.prey_epoch += 1;
    }
    decisions.push(Decision::Withdraw { group: key, uid });
    match state.jobs[job as usize].suspension.as_deref_mut() {
        Some(Stage::Leaving(leaving)) if leaving.seen => leaving.withdrawn = true,
        _ => state.stay(job),
    }
}

/// The gang that asked still waits for the room that it was promised.
fn is_wanted(state: &State, by: &str) -> bool {
    let job = by.split_once('/').and_then(|(namespace, name)| state.job_named(namespace, name));
    job.is_some_and(|job| {
        let row = &state.jobs[job as usize];
        row.group.is_some() && row.tasks.iter().any(|task| state.nominated.contains_key(task))
    })
}

/// Gives the room that phantoms keep to the pods that they stand for, once enough of those are there for the gang to start.
fn hand_over(state: &mut State, job: JobId) {
    let row = &state.jobs[job as usize];
    let Some(Stage::Returning { group, until_ms }) = row.suspension.as_deref() else { return };
    if state.now_ms >= *until_ms {
        state.drop_phantoms(job, true);
        return;
    }
    let Some(heir) = state.job_named(&row.key.namespace, group) else { return };
    let mut pods: Vec<TaskId> = super::order::pending_tasks(state, heir, false);
    pods.retain(|task| !state.nominated.contains_key(task));
    let row = &state.jobs[heir as usize];
    if pods.is_empty() || (pods.len() as u32) < row.lacks() {
        return;
    }
    pods.sort_by_key(|&task| (state.tasks[task].number, state.tasks[task].pod.clone()));
    let mut phantoms: Vec<TaskId> = state.phantoms(job).collect();
    phantoms.sort_unstable();
    for pod in pods {
        let class = state.tasks[pod].class;
        let alike = phantoms.iter().position(|&phantom| state.tasks[phantom].class == class);
        // A pod that changed while it was away takes the room of another, if it can.
        let Some(at) = alike.or_else(|| phantoms.len().checked_sub(1)) else { break };
        let phantom = phantoms.remove(at);
        let node = state.tasks[phantom].node;
        state.drop_phantom(phantom);
        let node = state.nodes.identity[node as usize].name.clone();
        state.nominated.insert(pod, Nomination { node, ours: true });
    }
    if phantoms.is_empty() {
        state.drop_phantoms(job, true);
    }
    // It was admitted when its phantoms were.
    let row = &mut state.jobs[heir as usize];
    if row.phase == PodGroupPhase::Pending && row.group.is_some() {
        row.phase = PodGroupPhase::Inqueue;
    }
    state.touch_job(heir);
}

impl Job {
    /// It is down: phantoms stand for its pods.
    pub fn is_down(&self) -> bool {
        matches!(self.suspension.as_deref(), Some(Stage::Down(_)))
    }

    /// It is down, and a person wants it to stay so.
    pub fn is_on_hold(&self) -> bool {
        matches!(
            self.suspension.as_deref(),
            Some(Stage::Down(Down { hold: true, resumed: false, .. }))
        )
    }
}

impl Session<'_> {
    /// Nothing of the job is placed: it is about to go, or stays down, or not enough of its pods are back for the room that is
    /// held for them.
    pub(crate) fn rests(&self, job: JobId) -> bool {
        let row = &self.state.jobs[job as usize];
        match row.suspension.as_deref() {
            None => false,
            Some(Stage::Leaving(_)) => true,
            Some(Stage::Down(_)) => row.is_on_hold(),
            Some(Stage::Returning { .. }) => {
                let phantoms = self.state.phantoms(job).count() as u32;
                row.counts.valid() - phantoms < row.min_member()
            }
        }
    }

    /// Jobs that were told to come back and have lost the room that was held for them, as a restart does.
    pub(crate) fn returning_jobs(&self) -> Vec<JobId> {
        let mut jobs = Vec::from_iter(self.state.suspensions.down.iter().copied());
        jobs.retain(|&job| {
            let row = &self.state.jobs[job as usize];
            let resumed =
                matches!(row.suspension.as_deref(), Some(Stage::Down(down)) if down.resumed);
            resumed && !row.is_pending() && row.counts.of(Status::Pending) > 0
        });
        jobs
    }

    /// More gangs may be asked to go: not too much of the cluster is on its way out.
    pub(super) fn may_ask_gangs(&self) -> bool {
        let Some(rules) = self.pipeline.suspension else { return true };
        let mut leaving = Ledger::default();
        for &job in &self.state.suspensions.leaving {
            for &task in &self.state.jobs[job as usize].tasks {
                let row = &self.state.tasks[task];
                if row.status == Status::Releasing && row.node != NO_NODE {
                    leaving.add_request(&self.state.classes.list[row.class as usize].request, 1);
                }
            }
        }
        leaving.is_zero()
            || dominant_share(&leaving, &self.state.total) * 100.0 < f64::from(rules.budget)
    }

    /// May a pod have to go for a job, as far as policies and past suspensions say?
    pub(super) fn may_have_to_go(&self, hunt: &Hunt, task: TaskId) -> bool {
        let Some(rules) = self.pipeline.suspension else { return true };
        if hunt.prey == Prey::Job {
            return true;
        }
        let row = &self.state.tasks[task];
        let victim = &self.state.jobs[row.job as usize];
        let policy = self.state.queue_policy(victim.queue);
        let now_ms = self.state.now_ms;
        if policy.mode == PreemptionMode::Never || victim.suspension.is_some() {
            return false;
        }
        if row.started_ms > 0 && now_ms - row.started_ms < policy.min_runtime_ms {
            return false;
        }
        let hunter = &self.state.jobs[hunt.job as usize];
        let (Some(theirs), Some(own)) = (&victim.group, &hunter.group) else { return true };
        let past = &self.state.suspensions;
        if past.spared_until(&theirs.id).is_some_and(|until_ms| now_ms < until_ms) {
            return false;
        }
        let equals = hunter.priority <= victim.priority;
        if equals && past.within_day(&theirs.id, now_ms) >= policy.max_suspensions_per_day {
            return false;
        }
        if past.last(&own.id, &theirs.id).is_some_and(|at| now_ms - at < rules.pair_cooldown_ms) {
            return false;
        }
        // Whoever is gone before the victim is back need not make it go.
        let pause_ms = policy.grace_ms.saturating_add(theirs.restart_ms);
        own.runtime_ms.is_none_or(|runtime_ms| runtime_ms > pause_ms.saturating_mul(2))
    }

    /// When, after now, time alone may next change an answer of [`Session::may_have_to_go`], whoever asks: when minimum run times
    /// end, and rests of those who could be victims.
    pub(super) fn rests_until_ms(&self) -> i64 {
        if self.pipeline.suspension.is_none() {
            return i64::MAX;
        }
        let state = &*self.state;
        let running = state.jobs.iter().filter(|row| row.live && row.runs_pods());
        let ends = running.flat_map(|row| {
            let min_ms = state.queue_policy(row.queue).min_runtime_ms;
            let tasks = row.tasks.iter().filter(move |_| min_ms > 0);
            let runtimes =
                tasks.map(move |&task| state.tasks[task].started_ms.saturating_add(min_ms));
            let past = &state.suspensions;
            let rests = row.group.iter().flat_map(|group| {
                let days = past.times(&group.id).map(|at_ms| at_ms.saturating_add(DAY_MS));
                days.chain(past.spared_until(&group.id))
            });
            runtimes.chain(rests)
        });
        ends.filter(|&at_ms| at_ms > state.now_ms).min().unwrap_or(i64::MAX)
    }

    /// The same for what a job itself must not do: make those go for whom it went.
    pub(super) fn pairs_rest_until_ms(&self, job: JobId) -> i64 {
        let Some(rules) = self.pipeline.suspension else { return i64::MAX };
        let group = self.state.jobs[job as usize].group.iter();
        let times = group.flat_map(|group| self.state.suspensions.times(&group.id));
        let ends = times.map(|at_ms| at_ms.saturating_add(rules.pair_cooldown_ms));
        ends.filter(|&at_ms| at_ms > self.state.now_ms).min().unwrap_or(i64::MAX)
    }

    /// [`Losses`], reckoned once in a session; `None` where nobody is suspended.
    pub(super) fn know_losses(&mut self) -> Option<Arc<Losses>> {
        if self.pipeline.suspension.is_some() && self.losses.is_none() {
            let by_job = self.losses();
            let order = order_of(by_job.iter().map(|(&job, &loss)| (job, loss)));
            self.losses = Some(Arc::new(Losses { by_job, order }));
        }
        self.losses.clone()
    }

    /// What each running job loses when it is stopped now, as milliseconds of its dominant share (times 1000): its work since
    /// the last checkpoint, or since its start, and the time it needs to work on. Nobody gains by not saying when it wrote
    /// checkpoints: it is taken to write them as often as the jobs of its queue that do say so (the median).
    fn losses(&self) -> FxHashMap<JobId, i64> {
        let now_ms = self.state.now_ms;
        let jobs = self.state.jobs.iter().enumerate();
        let running: Vec<(JobId, i64, Option<i64>)> = jobs
            .filter(|(_, row)| row.live && row.runs_pods())
            .map(|(job, _)| {
                let (unsaved_ms, saved_ms) = self.state.unsaved_ms(job as JobId);
                (job as JobId, unsaved_ms, saved_ms)
            })
            .collect();
        let mut intervals: FxHashMap<QueueId, Vec<i64>> = FxHashMap::default();
        for &(job, _, saved_ms) in &running {
            if let Some(saved_ms) = saved_ms {
                let queue = self.state.jobs[job as usize].queue;
                intervals.entry(queue).or_default().push(now_ms - saved_ms);
            }
        }
        intervals.values_mut().for_each(|list| list.sort_unstable());
        let loss = |(job, mut unsaved_ms, saved_ms): (JobId, i64, Option<i64>)| {
            let row = &self.state.jobs[job as usize];
            let told = intervals.get(&row.queue).filter(|_| saved_ms.is_none());
            if let Some(told) = told {
                unsaved_ms = unsaved_ms.min(told[told.len() / 2]);
            }
            let restart_ms = row.group.as_ref().map_or(0, |group| group.restart_ms);
            let share = dominant_share(&row.allocated, &self.state.total);
            (job, (share * unsaved_ms.saturating_add(restart_ms) as f64 * 1000.0) as i64)
        };
        running.into_iter().map(loss).collect()
    }

    /// Of jobs that lose pods, those that lose all of them and are suspended.
    pub(super) fn suspended_by(&self, ops: &[Op]) -> Vec<JobId> {
        if self.pipeline.suspension.is_none() {
            return Vec::new();
        }
        let mut jobs = Vec::new();
        for op in ops {
            let Op::Evict { task, why, .. } = *op else { continue };
            let job = self.state.tasks[task].job;
            let row = &self.state.jobs[job as usize];
            let policy = self.state.queue_policy(row.queue);
            if why != EvictFor::Shuffle
                && row.group.is_some()
                && row.counts.allocated() == 0
                && policy.mode == PreemptionMode::Suspend
                && !jobs.contains(&job)
            {
                jobs.push(job);
            }
        }
        jobs
    }

    /// Asks a gang to go.
    pub(super) fn ask_gang_to_go(&mut self, by: JobId, job: JobId, why: EvictFor) {
        let row = &self.state.jobs[job as usize];
        let policy = self.state.queue_policy(row.queue);
        let mode = match policy.checkpoint {
            CheckpointMode::None => Mode::None,
            CheckpointMode::Signal => Mode::Signal,
            CheckpointMode::Ack => Mode::Ack,
        };
        let grace_ms = if mode == Mode::None { 0 } else { policy.grace_ms };
        let deadline_ms = self.state.now_ms.saturating_add(grace_ms);
        let Some(group) = &row.group else { return };
        let intent = Intent {
            id: format!("s-{}-{job}", self.id),
            by: self.state.jobs[by as usize].key.to_string(),
            reason: if why.is_reclaim() { "Reclaim" } else { "Preempt" }.to_owned(),
            deadline: Timestamp::from_millisecond(deadline_ms).unwrap_or(Timestamp::MAX),
            mode,
        };
        let (group, uid) = (row.key.clone(), group.uid.to_string());
        let leaving =
            Leaving { intent: intent.clone(), seen: false, withdrawn: false, recorded: false };
        self.state.begin_leaving(job, leaving);
        self.decisions.push(Decision::Suspend { group, uid, intent });
    }

    /// Phantoms have found room: they keep it, and the gang may come back.
    pub(super) fn hold(&mut self, job: JobId, placed: &[(TaskId, NodeId)]) {
        for &(task, node) in placed {
            self.state.set_status(task, Status::Pipelined, node);
        }
        self.state.touch_job(job);
        let row = &mut self.state.jobs[job as usize];
        row.parked = None;
        let Some(Stage::Down(down)) = row.suspension.as_deref_mut() else { return };
        if !std::mem::replace(&mut down.resumed, true) {
            let id = down.id.clone();
            let uid = row.group.as_ref().map_or_else(|| Arc::from(""), |group| group.uid.clone());
            let (group, uid) = (row.key.clone(), uid.to_string());
            self.decisions.push(Decision::Resume { group, uid, id });
        }
    }
}

#[cfg(test)]
mod tests;
