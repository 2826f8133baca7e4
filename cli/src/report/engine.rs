//! Plays a plan against a scheduling core in virtual time. Time jumps from one happening to the next: a job arrives, a job
//! ends, or the scheduler is due to look again. After each of them the core runs a session, and its decisions are carried
//! out at once: bound pods run, a gang runs once all its pods do, evicted gangs go back to their queue.
//!
//! What stands in for the controllers: pods are created when their PodGroup is admitted, as Volcano's job controller does
//! it; a gang that loses a pod loses all of them, and its owner submits it again with its old place in the queue; what has
//! ended is removed.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};
use std::sync::Arc;

use tephra_api::conf::SchedulerConf;
use tephra_core::decision::{Decision, GangBind};
use tephra_core::event::{PodGroupPhase, PodGroupStatus, PodSpec};
use tephra_core::{Core, Options};

use super::account::Account;
use super::objects::{self, Gang, START_MS};
use super::plan::Plan;
use super::victim::Stop;

/// After a session that made new work for the scheduler (admitted pods, freed room), the next one follows so much later.
const FOLLOW_UP_MS: i64 = 100;

/// What became of a job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fate {
    /// When all its pods first ran.
    pub started_ms: Option<i64>,
    /// When it ended.
    pub ended_ms: Option<i64>,
    /// How often it was stopped.
    pub stops: u32,
}

/// What was thrown away, in units of service.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Losses {
    /// Work that had to be done again.
    pub lost: f64,
    /// Time that restarts took before work went on.
    pub restoring: f64,
    /// Pods whose eviction was decided.
    pub evicted_pods: u64,
    /// Jobs stopped by deleting their pods.
    pub evictions: u64,
    /// Jobs stopped with notice.
    pub suspensions: u64,
    /// Jobs that ran again after a stop.
    pub restarts: u64,
}

/// The outcome of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Fates in the order of the plan's jobs.
    pub fates: Vec<Fate>,
    /// Service and backlog.
    pub account: Account,
    /// What was thrown away.
    pub losses: Losses,
    /// Sessions that the core ran.
    pub sessions: u64,
    /// What the core's audit found at the end; empty when all is well.
    pub violations: Vec<String>,
}

/// Where a job is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    /// With its team: not submitted yet, or behind what the scheduler sees.
    #[default]
    Outside,
    /// Its PodGroup waits to be admitted.
    Submitted,
    /// Its pods wait for nodes.
    Admitted,
    /// All its pods run.
    Running,
    /// It has ended.
    Ended,
}

#[derive(Clone, Debug, Default)]
struct JobState {
    place: Place,
    life: u32,
    /// Pods bound in this life.
    bound: u32,
    /// When this life began to run.
    since_ms: i64,
    /// Progress that is safe.
    kept_ms: i64,
}

/// Plays a plan. `progress` is told the virtual time now and then.
pub fn play(plan: &Plan, conf: &SchedulerConf, progress: &mut dyn FnMut(i64)) -> Outcome {
    let mut run = Run::new(plan, conf);
    run.play(progress);
    Outcome {
        violations: run.core.audit().into_iter().map(|finding| finding.0).collect(),
        fates: run.fates,
        account: run.account,
        losses: run.losses,
        sessions: run.sessions,
    }
}

struct Run<'a> {
    plan: &'a Plan,
    core: Core,
    templates: Vec<Arc<PodSpec>>,
    charges: Vec<f64>,
    now_ms: i64,
    /// Next job of the plan to arrive.
    next: usize,
    /// Ends of running jobs: time, job, life.
    ends: BinaryHeap<Reverse<(i64, usize, u32)>>,
    /// When the scheduler looks again.
    wake_ms: i64,
    states: Vec<JobState>,
    /// Jobs by team that the scheduler does not see yet.
    outside: Vec<VecDeque<usize>>,
    /// Waiting jobs by team that it sees.
    seen: Vec<usize>,
    fates: Vec<Fate>,
    account: Account,
    losses: Losses,
    sessions: u64,
}

impl<'a> Run<'a> {
    fn new(plan: &'a Plan, conf: &SchedulerConf) -> Self {
        let mut core = Core::new(Options::default(), conf);
        core.apply_all(objects::world(plan));
        let weights = plan.teams.iter().map(|team| f64::from(team.weight)).collect();
        Self {
            plan,
            core,
            templates: plan.shapes.iter().map(objects::template).collect(),
            charges: plan.jobs.iter().map(|job| plan.charge(job)).collect(),
            now_ms: 0,
            next: 0,
            ends: BinaryHeap::new(),
            wake_ms: 0,
            states: vec![JobState::default(); plan.jobs.len()],
            outside: vec![VecDeque::new(); plan.teams.len()],
            seen: vec![0; plan.teams.len()],
            fates: vec![Fate::default(); plan.jobs.len()],
            account: Account::new(weights, plan.horizon_ms),
            losses: Losses::default(),
            sessions: 0,
        }
    }

    fn play(&mut self, progress: &mut dyn FnMut(i64)) {
        while let Some(at_ms) = self.next_happening().filter(|&at| at < self.plan.horizon_ms) {
            self.account.advance(at_ms);
            self.now_ms = at_ms;
            self.end_jobs();
            self.take_arrivals();
            self.session();
            progress(at_ms);
        }
        self.account.advance(self.plan.horizon_ms);
        self.now_ms = self.plan.horizon_ms;
        for job in 0..self.states.len() {
            if self.states[job].place == Place::Running {
                self.account_restore(job);
            }
        }
        progress(self.now_ms);
    }

    fn next_happening(&self) -> Option<i64> {
        let arrival = self.plan.jobs.get(self.next).map(|job| job.arrival_ms);
        let end = self.ends.peek().map(|Reverse((at, ..))| *at);
        let wake = (self.account.waiting() > 0).then_some(self.wake_ms);
        [arrival, end, wake].into_iter().flatten().min().map(|at| at.max(self.now_ms))
    }

    fn end_jobs(&mut self) {
        while let Some(&Reverse((at_ms, job, life))) = self.ends.peek() {
            if at_ms > self.now_ms {
                break;
            }
            self.ends.pop();
            let state = &mut self.states[job];
            // It was stopped since.
            if state.life != life || state.place != Place::Running {
                continue;
            }
            state.place = Place::Ended;
            self.account_restore(job);
            self.fates[job].ended_ms = Some(self.now_ms);
            self.account.stops(self.plan.jobs[job].team, self.charges[job]);
            self.remove(job);
        }
    }

    fn take_arrivals(&mut self) {
        while let Some(job) = self.plan.jobs.get(self.next) {
            if job.arrival_ms > self.now_ms {
                break;
            }
            let team = job.team;
            self.account.waits(team);
            self.outside[team].push_back(self.next);
            self.submit_more(team);
            self.next += 1;
        }
    }

    /// Submits a team's next jobs as long as the scheduler looks at that many.
    fn submit_more(&mut self, team: usize) {
        while self.seen[team] < self.plan.lookahead {
            let Some(job) = self.outside[team].pop_front() else { return };
            self.submit(job);
        }
    }

    fn submit(&mut self, job: usize) {
        self.seen[self.plan.jobs[job].team] += 1;
        self.states[job].place = Place::Submitted;
        self.core.apply(self.gang(job).group(self.plan, PodGroupStatus::default()));
    }

    fn gang(&self, job: usize) -> Gang {
        Gang { job, life: self.states[job].life }
    }

    fn remove(&mut self, job: usize) {
        let gang = self.gang(job);
        for event in gang.pods_deleted(self.plan.jobs[job].pods) {
            self.core.apply(event);
        }
        self.core.apply(gang.group_deleted());
    }

    fn session(&mut self) {
        self.sessions += 1;
        let report = self.core.session(START_MS + self.now_ms);
        let mut victims = BTreeSet::new();
        let mut more = report.again;
        for decision in report.decisions {
            match decision {
                Decision::Bind(bind) => self.bind(&bind),
                Decision::Evict { pod, .. } => {
                    self.losses.evicted_pods += 1;
                    let gang = Gang::of_name(&pod.uid).filter(|gang| self.is_current(*gang));
                    victims.extend(gang.map(|gang| gang.job));
                }
                Decision::PodGroupStatus { group, status, .. } => {
                    more |= self.group_status(&group.name, status);
                }
                Decision::QueueAllocated { .. }
                | Decision::PodCondition { .. }
                | Decision::Notice(_)
                | Decision::PredictedStart { .. }
                | Decision::QueueFairness { .. } => {}
            }
        }
        more |= !victims.is_empty();
        for job in victims {
            self.stop(job, Stop::Deleted);
        }
        let wait_ms = if more { FOLLOW_UP_MS } else { self.plan.wake_ms };
        self.wake_ms = self.now_ms + wait_ms;
    }

    /// Whether this is the job's present life.
    fn is_current(&self, gang: Gang) -> bool {
        self.states.get(gang.job).is_some_and(|state| {
            state.life == gang.life && !matches!(state.place, Place::Outside | Place::Ended)
        })
    }

    /// Writes a PodGroup's status; creates the pods of one that was admitted. True when it did.
    fn group_status(&mut self, name: &str, status: PodGroupStatus) -> bool {
        let Some(gang) = Gang::of_name(name).filter(|gang| self.is_current(*gang)) else {
            return false;
        };
        let admitted = status.phase != PodGroupPhase::Pending
            && self.states[gang.job].place == Place::Submitted;
        self.core.apply(gang.group(self.plan, status));
        if admitted {
            self.states[gang.job].place = Place::Admitted;
            let job = &self.plan.jobs[gang.job];
            let spec = &self.templates[job.shape];
            let pods = (0..job.pods).map(|number| gang.pod(self.plan, spec, number, None));
            self.core.apply_all(pods.collect());
        }
        admitted
    }

    fn bind(&mut self, bind: &GangBind) {
        let gang = Gang::of_name(&bind.group.name).filter(|gang| self.is_current(*gang));
        let Some(gang) = gang else { return };
        let job = &self.plan.jobs[gang.job];
        for (pod, node) in &bind.binds {
            let Some(number) = Gang::number_of(&pod.uid) else { continue };
            let spec = &self.templates[job.shape];
            let runs = Some((&**node, self.now_ms));
            self.core.apply(gang.pod(self.plan, spec, number, runs));
            self.states[gang.job].bound += 1;
        }
        if self.states[gang.job].bound == job.pods {
            self.start(gang);
        }
    }

    /// All pods of a gang run.
    fn start(&mut self, gang: Gang) {
        let job = &self.plan.jobs[gang.job];
        let state = &mut self.states[gang.job];
        state.place = Place::Running;
        state.since_ms = self.now_ms;
        let mut rest_ms = job.runtime_ms - state.kept_ms;
        if state.life > 0 {
            rest_ms += self.plan.checkpoints.restore_ms;
            self.losses.restarts += 1;
        }
        self.ends.push(Reverse((self.now_ms + rest_ms, gang.job, gang.life)));
        self.fates[gang.job].started_ms.get_or_insert(self.now_ms);
        self.account.starts(job.team, self.charges[gang.job]);
        self.seen[job.team] -= 1;
        self.submit_more(job.team);
    }

    /// Counts what the present life spent on coming back; answers how long it worked since.
    fn account_restore(&mut self, job: usize) -> i64 {
        let state = &self.states[job];
        let ran_ms = self.now_ms - state.since_ms;
        let restore_ms = if state.life > 0 { self.plan.checkpoints.restore_ms } else { 0 };
        self.losses.restoring += self.charges[job] * ran_ms.min(restore_ms) as f64;
        (ran_ms - restore_ms).max(0)
    }

    /// A job loses its pods and goes back to its queue.
    fn stop(&mut self, job: usize, stop: Stop) {
        let team = self.plan.jobs[job].team;
        match stop {
            Stop::Deleted => self.losses.evictions += 1,
            Stop::Noticed => self.losses.suspensions += 1,
        }
        self.remove(job);
        if self.states[job].place == Place::Running {
            let worked_ms = self.account_restore(job);
            let kept_ms = self.states[job].kept_ms;
            let progress_ms = kept_ms + worked_ms;
            let safe_ms = self.plan.checkpoints.keep(progress_ms, kept_ms, stop);
            self.losses.lost += self.charges[job] * (progress_ms - safe_ms) as f64;
            self.states[job].kept_ms = safe_ms;
            self.account.stops(team, self.charges[job]);
            self.account.waits(team);
        } else {
            self.seen[team] -= 1;
        }
        self.fates[job].stops += 1;
        self.states[job].life += 1;
        self.states[job].bound = 0;
        self.submit(job);
    }
}
