//! Jobs: a PodGroup with the pods that name it. Counters per status and role are kept up to date with every
//! change, so that the gang formulas of Volcano 2.5 are additions instead of walks over tasks.

use std::sync::Arc;
use tephra_api::reasons;

use smallvec::SmallVec;

use super::job_budget::JobBudget;
use super::nodes::NodeId;
use super::queues::QueueId;
use super::resource::{Ledger, Request, Vector};
use super::status::{Counts, Status};
use super::sub_jobs::{SubJobId, SubJobs};
use super::suspensions::Stage;
use super::tasks::TaskId;
use crate::event::{NetworkTopology, ObjectKey, PodGroupPhase, PodGroupStatus, Quantities};
use crate::session::futile::Futile;

/// Dense number of a job.
pub type JobId = u32;

/// Tasks of one role.
#[derive(Clone, Debug, Default)]
pub struct Role {
    /// Role number.
    pub role: u32,
    /// `minTaskMember` of the role, 0 when it names none.
    pub min: u32,
    /// Tasks by status.
    pub counts: Counts,
    /// Pending best-effort tasks that could start (they count as ready, 2.5).
    pub best_effort: u32,
}

/// What is known of the PodGroup.
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// Uid of the PodGroup.
    pub uid: Arc<str>,
    /// `namespace/name`: decides between jobs that are alike in everything else.
    pub id: Arc<str>,
    /// Creation time.
    pub created_ms: i64,
    /// Its place in the queue: its creation, or what suspensions have made of it.
    pub queued_ms: i64,
    /// `spec.minMember`.
    pub min_member: u32,
    /// Sum of `spec.minTaskMember`.
    pub min_task_total: u64,
    /// `spec.minResources`.
    pub min_resources: Option<Vector>,
    /// `spec.minResources` as written, for plugin `resourcequota`.
    pub min_quantities: Quantities,
    /// Hypernode that it is at home in, by its annotation.
    pub home: Option<Arc<str>>,
    /// `spec.priorityClassName`.
    pub priority_class: Arc<str>,
    /// How long it may wait, in milliseconds, by its annotation: for plugin `sla`.
    pub waiting_ms: Option<i64>,
    /// How long its pods are expected to run, in milliseconds, by its annotation.
    pub runtime_ms: Option<i64>,
    /// How long it takes to work on after a stop, in milliseconds, by its annotation; 0 when it says nothing.
    pub restart_ms: i64,
    /// Its predicted start as read from its annotation or told last.
    pub predicted_ms: Option<i64>,
    /// Annotation, then label, `volcano.sh/preemptable`, when there is one; unreadable is false.
    pub preemptable: Option<bool>,
    /// How many of its pods may be away, by its annotations: for plugin `tdm`.
    pub budget: JobBudget,
    /// Status as last read or decided; see [`Group::set_status`].
    pub status: PodGroupStatus,
    /// The status says that the gang is scheduled and complains of nothing.
    pub content: bool,
}

impl Group {
    /// Takes over a status.
    pub fn set_status(&mut self, status: PodGroupStatus) {
        let holds = |kind| status.conditions.iter().any(|c| c.kind == kind && c.status);
        self.content = holds(reasons::SCHEDULED) && !holds(reasons::UNSCHEDULABLE);
        self.status = status;
    }
}

/// One job.
#[derive(Clone, Debug, Default)]
pub struct Job {
    /// Namespace and name of the PodGroup.
    pub key: ObjectKey,
    /// The PodGroup, once it is known.
    pub group: Option<Group>,
    /// Queue (known or only named).
    pub queue: QueueId,
    /// Priority from the priority class.
    pub priority: i32,
    /// Phase in this session: the stored one, or `Inqueue` once admitted.
    pub phase: PodGroupPhase,
    /// Tasks, in no particular order.
    pub tasks: Vec<TaskId>,
    /// Tasks by status.
    pub counts: Counts,
    /// Roles with a minimum or with tasks, few.
    pub roles: SmallVec<[Role; 2]>,
    /// Pending best-effort tasks that could start; gated ones do not count (B20).
    pub best_effort: u32,
    /// Pending best-effort tasks that no node could take.
    pub stuck: u32,
    /// Requests of charged tasks (allocated class and pipelined).
    pub allocated: Ledger,
    /// Requests of pending tasks.
    pub pending: Ledger,
    /// Requests of gated tasks.
    pub gated: Ledger,
    /// What the job claims of its queue while admitted but not (fully) placed.
    pub claim: Vector,
    /// Allocation above `minResources`.
    pub elastic: Vector,
    /// Pods of the job that name our scheduler.
    pub ours: u32,
    /// Pods of other schedulers that name the group and have no node: such a group is left alone (B13).
    pub foreign: u32,
    /// Binds of its pods that were refused: it waits behind others for a while.
    pub bind_failures: u32,
    /// After repeated refusals of binds: not tried before this time.
    pub retry_at_ms: i64,
    /// How close to each other in the network its members must be.
    pub topology: Option<NetworkTopology>,
    /// Its sub-groups, if the PodGroup has policies for any.
    pub sub_jobs: Option<Box<SubJobs>>,
    /// Why admission was last refused, as told on the PodGroup.
    pub told_rejection: Option<Box<str>>,
    /// Pods evicted for it that the API server is not known to delete yet.
    pub victims_under_way: u32,
    /// Where it stands between running and running again, if it has to make room.
    pub suspension: Option<Box<Stage>>,
    /// The job is in the list of jobs whose derived values must be refreshed.
    pub dirty: bool,
    /// The job is in the list of jobs that came to their minimum or above it.
    pub turned: bool,
    /// The job is in the list of jobs that actions look at.
    pub active: bool,
    /// State of the world when the job was last refused for lack of room; unchanged means refused again.
    pub parked: Option<Parked>,
    /// Searches for room that found nobody to make any.
    pub futile: Vec<Futile>,
    /// The last session refused it for another reason than lack of room: a limit, a closed queue, missing members.
    pub held: bool,
    /// Since when sessions have seen it admitted without a pod that has a node.
    pub idle_since_ms: Option<i64>,
    /// Its pods did not come or found no room in time: it claims nothing of its queue until they do.
    pub lapsed: bool,
    /// Since when a session has seen it below its minimum with members left.
    pub broken_since_ms: Option<i64>,
    /// Places that members left, latest last, until a session sees the gang whole.
    pub left: Vec<LeftPlace>,
    /// When one of its pods was last given a node by this process.
    pub placed_ms: Option<i64>,
    /// Sessions that ended with it below its minimum, pods being there.
    pub sessions_below: u64,
    /// Row is in use.
    pub live: bool,
}

/// Room on a node that a member of a gang had.
#[derive(Clone, Debug)]
pub struct LeftPlace {
    /// The node.
    pub node: NodeId,
    /// Request of the pod.
    pub request: Request,
    /// Its request with Kubernetes' defaults for scores.
    pub nonzero: [i64; 2],
}

/// Why trying again is pointless until something is released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parked {
    /// `State::release_epoch` at the refusal.
    pub release_epoch: u64,
    /// Pods that found a place in the trial.
    pub placed: u32,
    /// The first that found none.
    pub without: Option<TaskId>,
}

impl Job {
    /// Minimum members.
    pub fn min_member(&self) -> u32 {
        self.group.as_ref().map_or(0, |group| group.min_member)
    }

    /// Volcano `IsReady`.
    pub fn is_ready(&self) -> bool {
        self.counts.ready() + self.best_effort >= self.min_member()
    }

    /// Volcano `IsPipelined`.
    pub fn is_pipelined(&self) -> bool {
        self.counts.of(Status::Pipelined) + self.counts.ready() + self.best_effort
            >= self.min_member()
    }

    /// Volcano `IsStarving`.
    pub fn is_starving(&self) -> bool {
        self.counts.of(Status::Pipelined) + self.counts.ready() < self.min_member()
    }

    /// Role minimums apply only when `minMember` covers them (2.5).
    fn role_minimums_apply(&self) -> bool {
        self.group.as_ref().is_some_and(|group| u64::from(group.min_member) >= group.min_task_total)
    }

    fn roles_reach(&self, count: impl Fn(&Role) -> u32) -> bool {
        !self.role_minimums_apply() || self.roles.iter().all(|role| count(role) >= role.min)
    }

    /// How many members are missing at its minimum.
    pub fn lacks(&self) -> u32 {
        self.min_member().saturating_sub(self.counts.ready() + self.best_effort)
    }

    /// How many of a role are missing at its minimum.
    pub fn lacks_of_role(&self, role: u32) -> u32 {
        if !self.role_minimums_apply() {
            return 0;
        }
        let lacks = |row: &Role| row.min.saturating_sub(row.counts.ready() + row.best_effort);
        self.roles.iter().find(|row| row.role == role).map_or(0, lacks)
    }

    /// It has pods and is below its minimum, and has not come to its end.
    pub fn is_below(&self) -> bool {
        !self.tasks.is_empty() && self.phase != PodGroupPhase::Completed && !self.is_ready()
    }

    /// More pods are ready than the minimum.
    pub fn has_surplus(&self) -> bool {
        self.counts.ready() > self.min_member()
    }

    /// The hypernode that its PodGroup says it is at home in.
    pub fn named_home(&self) -> Option<&str> {
        self.group.as_ref()?.home.as_deref()
    }

    /// The gang is whole without one more pod of a role that is ready now.
    pub fn has_surplus_of(&self, role: u32) -> bool {
        let role = self.roles.iter().find(|row| row.role == role);
        let spare = |row: &Role| !self.role_minimums_apply() || row.counts.ready() > row.min;
        self.has_surplus() && role.is_none_or(spare)
    }

    /// Volcano `CheckTaskValid`.
    pub fn roles_valid(&self) -> bool {
        self.roles_reach(|role| role.counts.valid())
    }

    /// Volcano `CheckTaskReady`.
    pub fn roles_ready(&self) -> bool {
        self.roles_reach(|role| role.counts.ready() + role.best_effort)
    }

    /// Volcano `CheckTaskPipelined`.
    pub fn roles_pipelined(&self) -> bool {
        self.roles_reach(|role| {
            role.counts.ready() + role.counts.of(Status::Pipelined) + role.best_effort
        })
    }

    /// Volcano `CheckSubJobValid`: every policy has as many sub-groups as it needs.
    pub fn sub_jobs_valid(&self) -> bool {
        self.sub_jobs.as_ref().is_none_or(|sub_jobs| sub_jobs.reach(|_| true))
    }

    /// Volcano `CheckSubJobReady`.
    pub fn sub_jobs_ready(&self) -> bool {
        self.sub_jobs.as_ref().is_none_or(|sub_jobs| sub_jobs.reach(|row| row.is_ready()))
    }

    /// Volcano `CheckSubJobPipelined`.
    pub fn sub_jobs_pipelined(&self) -> bool {
        self.sub_jobs.as_ref().is_none_or(|sub_jobs| sub_jobs.reach(|row| row.is_pipelined()))
    }

    /// Every minimum is reached: of the gang, of its roles and of its sub-groups (P6).
    pub fn is_whole(&self) -> bool {
        self.is_ready() && self.roles_ready() && self.sub_jobs_ready()
    }

    /// Where it may go depends on the network, or its pods form sub-groups.
    pub fn is_structured(&self) -> bool {
        self.topology.is_some() || self.sub_jobs.is_some()
    }

    /// Its sub-groups each have a place in the network of their own.
    pub fn has_sub_topology(&self) -> bool {
        self.sub_jobs.as_ref().is_some_and(|sub_jobs| {
            self.topology.is_some()
                || sub_jobs.policies.iter().any(|policy| policy.topology.is_some())
        })
    }

    /// Volcano `IsPending`: not admitted yet.
    pub fn is_pending(&self) -> bool {
        self.group.is_none() || self.phase == PodGroupPhase::Pending
    }

    /// Admitted with a claim, but nobody has created a pod of it.
    pub fn is_absent(&self) -> bool {
        self.tasks.is_empty() && self.claims_in_vain()
    }

    /// Some of its pods have nodes and are not leaving: they could be asked to.
    pub fn runs_pods(&self) -> bool {
        self.counts.of(Status::Bound) + self.counts.of(Status::Running) > 0
    }

    /// Some of its pods have, or had, nodes.
    pub fn has_placed(&self) -> bool {
        self.counts.total() > self.counts.of(Status::Pending)
    }

    /// Admitted and below its minimum, and more than scheduling gates or pods that nobody creates keeps it from starting.
    pub fn awaits_room(&self) -> bool {
        let comes =
            if self.tasks.is_empty() { !self.lapsed } else { !self.pending.same(&self.gated) };
        self.phase == PodGroupPhase::Inqueue && self.lacks() > 0 && comes
    }

    /// Admitted with a claim, but none of its pods has a node.
    pub fn claims_in_vain(&self) -> bool {
        let claims = self.group.as_ref().is_some_and(|group| group.min_resources.is_some());
        let waits = self.counts.of(Status::Pending) > 0 && self.counts.allocated() == 0;
        claims && self.phase == PodGroupPhase::Inqueue && (waits || self.tasks.is_empty())
    }

    /// A gang that started and lost members: below its minimum with members already bound.
    pub fn is_broken(&self) -> bool {
        let ready = self.counts.ready();
        ready > 0 && ready < self.min_member()
    }

    /// All pods that name the group belong to other schedulers: it is left alone (B13).
    pub fn is_foreign(&self) -> bool {
        self.ours == 0 && (self.foreign > 0 || !self.tasks.is_empty())
    }

    /// Entry of a role, made when missing.
    pub fn role_mut(&mut self, role: u32) -> &mut Role {
        let at = match self.roles.iter().position(|r| r.role == role) {
            Some(at) => at,
            None => {
                self.roles.push(Role { role, ..Role::default() });
                self.roles.len() - 1
            }
        };
        &mut self.roles[at]
    }

    /// May placement, of a sub-group if one is given, go on after tasks of `failed` roles found no node (2.5
    /// `NeedContinueAllocating`)?
    pub fn may_continue(&self, sub_job: Option<SubJobId>, failed: &[u32]) -> bool {
        let min = self.min_member();
        if min >= self.tasks.len() as u32 {
            return false;
        }
        if let (Some(sub_job), Some(sub_jobs)) = (sub_job, &self.sub_jobs) {
            let row = &sub_jobs.list[sub_job as usize];
            return row.min < row.counts.total();
        }
        if !self.role_minimums_apply() {
            let others: u32 = self
                .roles
                .iter()
                .filter(|role| role.role == 0 || !failed.contains(&role.role))
                .map(|role| role.counts.of(Status::Pending))
                .sum();
            return self.counts.ready() + others >= min;
        }
        self.roles
            .iter()
            .filter(|role| failed.contains(&role.role))
            .all(|role| role.min == 0 || role.counts.ready() + role.best_effort >= role.min)
    }
}
