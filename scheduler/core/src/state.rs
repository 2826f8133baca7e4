//! The scheduling state: what the API server said plus what was decided and not yet confirmed. Everything is
//! indexed by dense numbers. [`State`] is written by events ([`apply`]) and by the statement of a session
//! ([`State::place`], [`State::unplace`]); every other module reads.

pub mod apply;
pub mod classes;
pub mod disruption;
pub mod fingerprint;
pub mod hyper_nodes;
pub mod job_budget;
pub mod jobs;
pub mod nodes;
pub mod queue_policies;
pub mod queue_tree;
pub mod queues;
pub mod quotas;
pub mod reach;
pub mod reservations;
pub mod resource;
pub mod run_times;
pub mod status;
pub mod sub_jobs;
pub mod suspensions;
pub mod tasks;
pub mod volumes;
pub mod waiting;
pub mod warm;

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::tz::TimeZone;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use smallvec::SmallVec;

use crate::event::ObjectKey;
use crate::planted::{Bug, planted};
use crate::stateful::StatefulState;
use classes::Classes;
use disruption::Budgets;
use fingerprint::Fingerprint;
use hyper_nodes::HyperNodes;
use jobs::{Job, JobId};
use nodes::{NO_NODE, NodeId, Nodes};
use queue_policies::QueuePolicies;
use queue_tree::QueueTree;
use queues::{Queue, QueueId};
use quotas::Quotas;
use reach::Reach;
use reservations::Reservations;
use resource::{Dimensions, Ledger, Vector};
use run_times::RunTimes;
use status::Status;
use sub_jobs::NO_SUB_JOB;
use suspensions::Suspensions;
use tasks::{NO_JOB, NO_TASK, TaskId, Tasks};
use volumes::Volumes;

/// Everything that sessions decide on.
#[derive(Debug, Default)]
pub struct State {
    /// Resource names.
    pub dims: Dimensions,
    /// Nodes.
    pub nodes: Nodes,
    /// Pods.
    pub tasks: Tasks,
    /// Classes of pods.
    pub classes: Classes,
    /// PodGroups.
    pub jobs: Vec<Job>,
    /// Queues.
    pub queues: Vec<Queue>,
    /// Who stands above whom, as of the session's start.
    pub queue_tree: QueueTree,
    /// What teams ask of their queues.
    pub queue_policies: QueuePolicies,
    /// Nodes that are close to each other.
    pub hyper_nodes: HyperNodes,
    /// Volumes and claims.
    pub volumes: Volumes,
    /// PodDisruptionBudgets.
    pub budgets: Budgets,
    /// ResourceQuotas.
    pub quotas: Quotas,
    /// Host ports, pod affinity, spread.
    pub stateful: StatefulState,
    /// Every placed pod has been told to `stateful` (false until the first class needs it).
    pub stateful_fed: bool,
    /// Sum of the allocatable amounts of open nodes.
    pub total: Ledger,
    /// Requests of everything that holds an open node.
    pub used: Ledger,
    /// Tasks being deleted: where there are none, nothing can be pipelined.
    pub releasing: u32,
    /// Tasks that we evict, tentatively or for good, whose pods do not show it yet.
    pub evicting: BTreeSet<TaskId>,
    /// Pods that an earlier scheduler meant to evict and did not, until the next session looks at them. Rows may have gone.
    pub half_evicted: Vec<TaskId>,
    /// What pods hold that we evict and that the API server is not known to delete, by queue with all queues below. Empty when
    /// there are none, and while a plan of evictions is made: a plan binds nobody.
    pub leaving: Vec<Ledger>,
    /// Moves when room may have become free or a node changed.
    pub release_epoch: u64,
    /// Moves when a queue, its jobs' requests or the cluster total changed.
    pub quota_epoch: u64,
    /// Moves when a queue came, went, or its object changed.
    pub queue_epoch: u64,
    /// Moves when something changed of pods with nodes, their jobs or what protects them that neither [`State::placed`] nor the
    /// other epochs show.
    pub prey_epoch: u64,
    /// Which pods have nodes, and how they stand there.
    pub placed: Fingerprint,
    /// When the last cooldown ends of all pods that ever came.
    pub cooling_until_ms: i64,
    /// Time of the latest session, in milliseconds since 1970.
    pub now_ms: i64,
    /// Time zone of windows that are given as times of day; `None` is UTC.
    pub time_zone: Option<TimeZone>,
    /// Jobs whose derived values are stale.
    pub dirty_jobs: Vec<JobId>,
    /// Jobs that actions and status writing look at.
    pub active_jobs: Vec<JobId>,
    /// Queues whose status may have to be written.
    pub dirty_queues: Vec<QueueId>,
    /// Waiting pods that were promised a node, here or in their `status.nominatedNodeName`.
    pub nominated: FxHashMap<TaskId, Nomination>,
    /// Room that is kept for gangs at the head of the line, and who stands there.
    pub reservations: Reservations,
    /// Who is asked to go, and who is down.
    pub suspensions: Suspensions,
    /// How long pods of a kind ran.
    pub run_times: RunTimes,
    /// What nodes could offer if pods left.
    pub reach: Reach,
    /// Jobs that came to their minimum or above it since [`State::reach`] was brought up to date.
    pub turned_jobs: Vec<JobId>,
    /// Something changed since the last session.
    pub changed: bool,
    /// Queue of PodGroups that name none.
    pub default_queue: Arc<str>,
    job_by_key: hashbrown::HashMap<ObjectKey, JobId, FxBuildHasher>,
    free_jobs: Vec<JobId>,
    queue_by_name: FxHashMap<Arc<str>, QueueId>,
    roles: FxHashMap<Arc<str>, u32>,
    role_names: Vec<Arc<str>>,
    priority_classes: FxHashMap<Arc<str>, (i32, bool)>,
    label_sets: FxHashMap<Arc<crate::event::Labels>, ()>,
    texts: FxHashSet<Arc<str>>,
    foreign: FxHashMap<Arc<str>, JobId>,
}

/// A node promised to a waiting pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nomination {
    /// Name of the node.
    pub node: Arc<str>,
    /// Decided by this process: an event from before the write that tells it does not end it.
    pub ours: bool,
}

/// How long an admitted gang without pods keeps its claim.
const ABSENCE_MS: i64 = 60_000;
/// How long an admitted gang of which nothing finds room keeps its claim.
const FUTILITY_MS: i64 = 600_000;

/// An [`ObjectKey`] in two borrowed parts; hashes as the whole one does.
#[derive(Hash)]
struct BorrowedKey<'k> {
    namespace: &'k str,
    name: &'k str,
}

impl hashbrown::Equivalent<ObjectKey> for BorrowedKey<'_> {
    fn equivalent(&self, key: &ObjectKey) -> bool {
        self.namespace == key.namespace && self.name == key.name
    }
}

impl State {
    /// An empty state.
    pub fn new(default_queue: &str) -> Self {
        Self { default_queue: default_queue.into(), ..Self::default() }
    }

    /// Job of a key.
    pub fn job(&self, key: &ObjectKey) -> Option<JobId> {
        self.job_by_key.get(key).copied()
    }

    /// Job of a PodGroup whose key need not be put together.
    pub fn job_named(&self, namespace: &str, name: &str) -> Option<JobId> {
        self.job_by_key.get(&BorrowedKey { namespace, name }).copied()
    }

    /// Value of a priority class.
    pub fn priority_class(&self, name: &str) -> Option<i32> {
        self.priority_classes.get(name).map(|(value, _)| *value)
    }

    /// The priority class that the API server gives to pods that name none; of several the one of the lowest value.
    pub fn default_priority_class(&self) -> Option<&Arc<str>> {
        let defaults = self.priority_classes.iter().filter(|(_, (_, global))| *global);
        defaults.min_by_key(|(name, (value, _))| (*value, *name)).map(|(name, _)| name)
    }

    /// Queue of a name.
    pub fn queue(&self, name: &str) -> Option<QueueId> {
        self.queue_by_name.get(name).copied()
    }

    /// Name of a role number.
    pub fn role_name(&self, role: u32) -> &str {
        role.checked_sub(1).and_then(|at| self.role_names.get(at as usize)).map_or("", |name| name)
    }

    /// Marks a job for the next session.
    pub fn touch_job(&mut self, job: JobId) {
        let row = &mut self.jobs[job as usize];
        if !row.dirty {
            row.dirty = true;
            self.dirty_jobs.push(job);
        }
        self.activate(job);
        self.changed = true;
    }

    /// Puts a job on the list that actions look at.
    pub fn activate(&mut self, job: JobId) {
        let row = &mut self.jobs[job as usize];
        if !row.active {
            row.active = true;
            self.active_jobs.push(job);
        }
    }

    /// Says that room may have become free.
    pub fn released(&mut self) {
        self.release_epoch += 1;
        self.changed = true;
    }

    /// Gives a pending task a node: `Allocated` on free room, `Pipelined` on room still being freed.
    pub fn place(&mut self, task: TaskId, node: NodeId, status: Status) {
        debug_assert!(matches!(status, Status::Allocated | Status::Pipelined));
        self.set_status(task, status, node);
    }

    /// Takes back what [`State::place`] did.
    pub fn unplace(&mut self, task: TaskId) {
        self.set_status(task, Status::Pending, NO_NODE);
    }

    /// Marks a task as leaving its node.
    pub fn evict(&mut self, task: TaskId) {
        self.evicting.insert(task);
        let node = self.tasks[task].node;
        self.set_status(task, Status::Releasing, node);
    }

    /// Takes back what [`State::evict`] did.
    pub fn spare(&mut self, task: TaskId, was: Status) {
        self.evicting.remove(&task);
        let node = self.tasks[task].node;
        self.set_status(task, was, node);
    }

    /// Derives [`State::leaving`]. Until a victim is known to be deleted its quota is not free: whoever used it would bring the
    /// queue above its limit if the eviction failed (I4).
    pub fn derive_leaving(&mut self) {
        self.leaving.clear();
        for &task in &self.evicting {
            let row = &self.tasks[task];
            if row.evicted_for.is_none() || row.job == NO_JOB {
                continue;
            }
            self.leaving.resize(self.queues.len(), Ledger::default());
            let request = &self.classes.list[row.class as usize].request;
            for queue in self.queue_tree.up(self.jobs[row.job as usize].queue) {
                self.leaving[queue as usize].add_request(request, 1);
            }
        }
    }

    /// Says whether a waiting best-effort pod could start anywhere.
    pub fn set_stuck(&mut self, task: TaskId, stuck: bool) {
        if self.tasks[task].stuck != stuck {
            self.account(task, -1);
            self.tasks[task].stuck = stuck;
            self.account(task, 1);
            // How many others its gang needs, or can spare, has changed.
            self.prey_epoch += 1;
        }
    }

    /// Commits a tentative placement: the bind is under way from now on. Both statuses weigh the same in every
    /// ledger, so only the counters move.
    pub fn set_binding(&mut self, task: TaskId) {
        self.placed.add(fingerprint::of_placed(task, &self.tasks[task]), -1);
        let row = &mut self.tasks[task];
        let job = &mut self.jobs[row.job as usize];
        let role = job.role_mut(row.role);
        role.counts.leave(row.status);
        role.counts.enter(Status::Binding);
        job.counts.leave(row.status);
        job.counts.enter(Status::Binding);
        if let Some(sub_jobs) = &mut job.sub_jobs {
            sub_jobs.count(row.sub_job, row.status, false, -1);
            sub_jobs.count(row.sub_job, Status::Binding, false, 1);
        }
        row.status = Status::Binding;
        row.started_ms = self.now_ms;
        self.placed.add(fingerprint::of_placed(task, &self.tasks[task]), 1);
    }

    /// A pod ended well: the next session knows how long it ran.
    pub fn note_end(&mut self, task: TaskId) {
        let row = &self.tasks[task];
        if row.job == NO_JOB || !row.ours || row.started_ms == 0 {
            return;
        }
        let queue = self.jobs[row.job as usize].queue;
        let template = run_times::template(queue, &self.classes.list[row.class as usize].spec);
        self.run_times.ended(template, row.started_ms);
    }

    /// Moves a task to a status and node; every ledger follows.
    pub fn set_status(&mut self, task: TaskId, status: Status, node: NodeId) {
        self.account(task, -1);
        self.leave_node(task);
        let row = &mut self.tasks[task];
        row.status = status;
        row.node = node;
        self.enter_node(task);
        self.account(task, 1);
    }

    /// Adds or removes a task's numbers in its job and queue.
    fn account(&mut self, task: TaskId, sign: i64) {
        let row = &self.tasks[task];
        if row.status != Status::Pending {
            self.placed.add(fingerprint::of_placed(task, row), sign);
        }
        if row.job == NO_JOB {
            return;
        }
        let class = &self.classes.list[row.class as usize];
        let job = &mut self.jobs[row.job as usize];
        let unlimited = row.status == Status::Pending && class.best_effort && !row.gated;
        let (best_effort, stuck) = (unlimited && !row.stuck, unlimited && row.stuck);
        let had_surplus = job.has_surplus();
        let role = job.role_mut(row.role);
        if sign > 0 {
            role.counts.enter(row.status);
            role.best_effort += u32::from(best_effort);
            job.counts.enter(row.status);
            job.best_effort += u32::from(best_effort);
            job.stuck += u32::from(stuck);
        } else {
            role.counts.leave(row.status);
            role.best_effort -= u32::from(best_effort);
            job.counts.leave(row.status);
            job.best_effort -= u32::from(best_effort);
            job.stuck -= u32::from(stuck);
        }
        let turns = job.has_surplus() != had_surplus;
        if row.sub_job != NO_SUB_JOB
            && let Some(sub_jobs) = &mut job.sub_jobs
        {
            sub_jobs.count(row.sub_job, row.status, best_effort, sign);
        }
        let queue = &mut self.queues[job.queue as usize];
        let counts_for_queue = job.group.is_some();
        if row.status.is_charged() {
            job.allocated.add_request(&class.request, sign);
            if counts_for_queue {
                let times = if planted(Bug::DoubleCount) { 2 } else { 1 };
                queue.allocated.add_request(&class.request, sign * times);
                queue.request.add_request(&class.request, sign);
            }
        } else if row.status == Status::Pending {
            job.pending.add_request(&class.request, sign);
            if counts_for_queue {
                queue.request.add_request(&class.request, sign);
            }
        }
        if row.gated && row.status == Status::Pending {
            job.gated.add_request(&class.request, sign);
        }
        if turns {
            let job = row.job;
            self.note_turn(job);
        }
    }

    fn enter_node(&mut self, task: TaskId) {
        let row = &self.tasks[task];
        if row.node == NO_NODE || !row.status.occupies() {
            return;
        }
        let (node, status, class_id) = (row.node, row.status, row.class);
        let class = &self.classes.list[class_id as usize];
        self.nodes.account(node, &class.request, class.spec.nonzero, status, 1);
        if status != Status::Pipelined && self.nodes.identity[node as usize].is_open() {
            self.used.add_request(&class.request, 1);
        }
        if status == Status::Releasing {
            self.releasing += 1;
        }
        let head = self.nodes.head[node as usize];
        self.tasks[task].links = [NO_TASK, head];
        if head != NO_TASK {
            self.tasks[head].links[0] = task;
        }
        self.nodes.head[node as usize] = task;
        self.nodes.tasks[node as usize] += 1;
        if self.stateful_fed {
            self.tell_stateful(task);
        }
    }

    fn leave_node(&mut self, task: TaskId) {
        let row = &self.tasks[task];
        if row.node == NO_NODE || !row.status.occupies() {
            return;
        }
        let (node, status, [before, after]) = (row.node, row.status, row.links);
        let class = &self.classes.list[row.class as usize];
        self.nodes.account(node, &class.request, class.spec.nonzero, status, -1);
        if status != Status::Pipelined && self.nodes.identity[node as usize].is_open() {
            self.used.add_request(&class.request, -1);
        }
        if status == Status::Releasing {
            self.releasing -= 1;
        }
        if before == NO_TASK {
            self.nodes.head[node as usize] = after;
        } else {
            self.tasks[before].links[1] = after;
        }
        if after != NO_TASK {
            self.tasks[after].links[0] = before;
        }
        self.nodes.tasks[node as usize] -= 1;
        if self.stateful_fed {
            self.stateful.remove_pod(task);
        }
    }

    /// Tasks on a node.
    pub fn tasks_on(&self, node: NodeId) -> impl Iterator<Item = TaskId> + '_ {
        let mut at = self.nodes.head[node as usize];
        std::iter::from_fn(move || {
            let task = at;
            if task == NO_TASK {
                return None;
            }
            at = self.tasks[task].links[1];
            Some(task)
        })
    }

    fn tell_stateful(&mut self, task: TaskId) {
        let row = &self.tasks[task];
        let class = &self.classes.list[row.class as usize];
        let placed = crate::stateful::PlacedPod {
            namespace: row.pod.namespace.clone(),
            labels: row.labels.clone(),
            spec: class.spec.clone(),
            node: row.node,
            terminating: row.status == Status::Releasing,
        };
        self.stateful.add_pod(task, &placed);
    }

    /// The stateful filters forget these placed tasks for a moment.
    pub fn hide_from_filters(&mut self, tasks: &[TaskId]) {
        if self.stateful_fed {
            tasks.iter().for_each(|&task| self.stateful.remove_pod(task));
        }
    }

    /// Undoes [`State::hide_from_filters`].
    pub fn show_to_filters(&mut self, tasks: &[TaskId]) {
        if self.stateful_fed {
            tasks.iter().for_each(|&task| self.tell_stateful(task));
        }
    }

    /// Asks the stateful filters about a waiting pod, under the filters that run.
    pub fn ask_about(
        &mut self,
        task: TaskId,
        switches: &crate::matching::static_filter::PredicateSwitches,
    ) -> crate::stateful::Asked<'_> {
        let row = &self.tasks[task];
        self.stateful.ask(&crate::stateful::Query {
            namespace: &row.pod.namespace,
            labels: &row.labels,
            spec: &self.classes.list[row.class as usize].spec,
            switches,
        })
    }

    /// Tells every placed pod to the stateful filters: from now on they follow each change. Called when the
    /// first class that depends on pods elsewhere appears, so that clusters without any pay nothing.
    pub fn feed_stateful(&mut self) {
        if self.stateful_fed {
            return;
        }
        self.stateful_fed = true;
        for slot in 0..self.nodes.len() as NodeId {
            self.tell_stateful_node(slot);
        }
        let placed: Vec<TaskId> = self
            .tasks
            .live()
            .filter(|(_, row)| row.node != NO_NODE && row.status.occupies())
            .map(|(id, _)| id)
            .collect();
        for task in placed {
            self.tell_stateful(task);
        }
    }

    /// Tells the stateful filters what a node is.
    fn tell_stateful_node(&mut self, slot: NodeId) {
        let node = &self.nodes.identity[slot as usize];
        if node.known {
            self.stateful.set_node(slot, &node.name, &node.labels, &node.taints);
        } else {
            self.stateful.remove_node(slot);
        }
    }

    /// Notes which admitted gangs have started nothing. Admission is a promise to those who create pods soon and fit: a
    /// gang without pods keeps room from others for [`ABSENCE_MS`], one whose pods find no room for [`FUTILITY_MS`].
    pub fn see_idle_claims(&mut self) {
        let now_ms = self.now_ms;
        let mut changed: SmallVec<[JobId; 8]> = SmallVec::new();
        for &job in &self.active_jobs {
            let row = &mut self.jobs[job as usize];
            let idle = row.live && row.claims_in_vain();
            if !idle && row.idle_since_ms.is_none() {
                continue;
            }
            row.idle_since_ms = idle.then(|| row.idle_since_ms.unwrap_or(now_ms));
            let patience_ms = if row.tasks.is_empty() { ABSENCE_MS } else { FUTILITY_MS };
            let lapsed = row.idle_since_ms.is_some_and(|since| now_ms - since >= patience_ms);
            if std::mem::replace(&mut row.lapsed, lapsed) != lapsed {
                changed.push(job);
            }
        }
        changed.into_iter().for_each(|job| self.touch_job(job));
    }

    /// Refreshes what derives from a job's counters: its claim on the queue and its elastic part. Runs when a
    /// session opens, for jobs that changed (proportion steps 4-6; P59: an admitted job's bound pods are not
    /// claimed a second time).
    pub fn refresh_job(&mut self, id: JobId) {
        let job = &mut self.jobs[id as usize];
        job.dirty = false;
        let queue = &mut self.queues[job.queue as usize];
        subtract(&mut queue.inqueue, &job.claim);
        subtract(&mut queue.elastic, &job.elastic);
        job.claim = claim_of(job);
        job.elastic = elastic_of(job);
        add(&mut queue.inqueue, &job.claim);
        add(&mut queue.elastic, &job.elastic);
        self.quota_epoch += 1;
    }
}

/// Exact sums from stored amounts.
fn state_ledger(dims: &mut Dimensions, amounts: &crate::event::Amounts) -> Ledger {
    let mut ledger = Ledger::default();
    for (name, stored) in amounts {
        if let Some(dim) = dims.intern(name) {
            ledger.add(dim, i128::from(dims.to_core(dim, *stored)));
        }
    }
    ledger
}

/// `into += what`, dimension by dimension.
pub fn add(into: &mut Vector, what: &Vector) {
    for dim in what.dims() {
        into.set(dim, into.get(dim) + what.get(dim));
    }
}

/// `from -= what`, dimension by dimension.
pub fn subtract(from: &mut Vector, what: &Vector) {
    for dim in what.dims() {
        from.set(dim, from.get(dim) - what.get(dim));
    }
}

/// Volcano `GetInqueueResource` minus gated pods: what an admitted job still needs to reach `minResources`.
/// A job without any pod that could come to life claims nothing, nor does one whose claim has lapsed.
pub fn claim_of(job: &Job) -> Vector {
    use crate::event::PodGroupPhase::{Inqueue, Running};
    let Some(group) = &job.group else { return Vector::default() };
    let Some(min) = &group.min_resources else { return Vector::default() };
    let claims = match job.phase {
        Inqueue => !job.lapsed,
        Running => job.counts.allocated() >= group.min_member,
        _ => false,
    };
    if claims { remaining_minimum(job, min) } else { Vector::default() }
}

/// Part of `min` that neither allocated nor gated pods account for.
pub fn remaining_minimum(job: &Job, min: &Vector) -> Vector {
    let mut left = Vector::default();
    for dim in min.dims() {
        let missing = (min.get(dim) - job.allocated.get(dim) as f64).max(0.0);
        left.set(dim, (missing - job.gated.get(dim) as f64).max(0.0));
    }
    left
}

fn elastic_of(job: &Job) -> Vector {
    let mut above = Vector::default();
    let Some(group) = &job.group else { return above };
    let none = Vector::default();
    let min = group.min_resources.as_ref().unwrap_or(&none);
    for (dim, amount) in job.allocated.iter() {
        let surplus = amount as f64 - min.get(dim);
        if surplus > 0.0 {
            above.set(dim, surplus);
        }
    }
    above
}
