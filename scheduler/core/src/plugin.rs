//! What a plugin is: an implementation of [`Plugin`] in a file of its own. A plugin names the extension points
//! it takes part in ([`Hooks`]) and implements those methods; every other method keeps its neutral default.
//! A plugin may keep figures of its own, which it derives from the state when a session opens and follows
//! through [`Plugin::account`]. Plugins never see each other.

pub mod binpack;
pub mod capacity;
pub mod cdp;
pub mod conformance;
mod division;
pub mod drf;
pub mod gang;
pub mod network_topology_aware;
pub mod nodeorder;
pub mod overcommit;
pub mod pdb;
pub mod predicates;
pub mod priority;
pub mod proportion;
mod quota;
pub mod rescheduling;
pub mod reservation;
pub mod resourcequota;
pub mod sla;
pub mod suspend;
pub mod tdm;
#[cfg(test)]
pub(crate) mod test_world;
pub mod wfq;

use bitflags::bitflags;
use smallvec::SmallVec;
use tephra_api::conf::Arguments;

use crate::index::score::ScoreConfig;
use crate::matching::revocable::Zones;
use crate::matching::static_filter::PredicateSwitches;
use crate::state::State;
use crate::state::classes::ClassId;
use crate::state::hyper_nodes::{DomainId, Limit};
use crate::state::jobs::JobId;
use crate::state::nodes::NodeId;
use crate::state::queues::QueueId;
use crate::state::resource::Vector;
use crate::state::sub_jobs::SubJobId;
use crate::state::tasks::{NO_JOB, NO_TASK, TaskId};

bitflags! {
    /// Extension points (Volcano 3.6).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Hooks: u64 {
        /// Order of jobs.
        const JOB_ORDER = 1;
        /// Order of queues.
        const QUEUE_ORDER = 1 << 1;
        /// Order of queues as victims.
        const VICTIM_QUEUE_ORDER = 1 << 2;
        /// Order of tasks.
        const TASK_ORDER = 1 << 3;
        /// Order of sub-groups.
        const SUB_JOB_ORDER = 1 << 4;
        /// Order of clusters (no caller, as in Volcano).
        const CLUSTER_ORDER = 1 << 5;
        /// Node filters.
        const PREDICATE = 1 << 6;
        /// Node scores.
        const NODE_ORDER = 1 << 7;
        /// Choice of the best node.
        const BEST_NODE = 1 << 8;
        /// Score of hypernodes.
        const HYPER_NODE_ORDER = 1 << 9;
        /// Order in which hypernodes are tried.
        const HYPER_NODE_GRADIENT = 1 << 10;
        /// Queue above its share.
        const OVERUSED = 1 << 11;
        /// May a queue take these copies?
        const ALLOCATABLE = 1 << 12;
        /// May a queue take from others?
        const PREEMPTIVE = 1 << 13;
        /// Victims between jobs.
        const PREEMPTABLE = 1 << 14;
        /// Victims between queues.
        const RECLAIMABLE = 1 << 15;
        /// Victims of the gang actions.
        const UNIFIED_EVICTABLE = 1 << 16;
        /// Victims of shuffle; together with SHIELD, protection from it.
        const VICTIM_TASKS = 1 << 17;
        /// May the job be scheduled at all?
        const JOB_VALID = 1 << 18;
        /// May the job's statement be committed?
        const JOB_READY = 1 << 19;
        /// May the job keep room that is being freed?
        const JOB_PIPELINED = 1 << 20;
        /// Should the job preempt?
        const JOB_STARVING = 1 << 21;
        /// May the job be admitted?
        const JOB_ENQUEUEABLE = 1 << 22;
        /// The job was admitted.
        const JOB_ENQUEUED = 1 << 23;
        /// As JOB_READY for a sub-group.
        const SUB_JOB_READY = 1 << 24;
        /// As JOB_PIPELINED for a sub-group.
        const SUB_JOB_PIPELINED = 1 << 25;
        /// Job that nodes are reserved for (no caller, as in Volcano).
        const TARGET_JOB = 1 << 26;
        /// Reserved nodes (no caller, as in Volcano).
        const RESERVED_NODES = 1 << 27;
        /// Wants to hear of each placement.
        const ACCOUNT = 1 << 28;
        /// Figures of its own that must be derived when a session opens.
        const OPEN = 1 << 29;
        /// Its order of queues looks at other queues, too: after each turn all keys are computed anew.
        const JOINT_QUEUE_ORDER = 1 << 31;
        /// Says something about queues when a session ends.
        const QUEUE_WORDS = 1 << 32;
        /// Its answer about victims binds whatever tier decides (I5 stands above the tier rules, DESIGN.md 5).
        const SHIELD = 1 << 30;
    }
}

/// A weight among the arguments of a plugin: 1 when absent, and when it is negative.
fn weight(arguments: &Arguments, key: &str, warnings: &mut Vec<String>) -> f64 {
    match arguments.int(key, warnings) {
        Some(value) if value < 0 => {
            warnings.push(format!("argument {key} is negative: 1 is used"));
            1.0
        }
        Some(value) => value as f64,
        None => 1.0,
    }
}

/// Answer of a plugin that may have no opinion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vote {
    /// Yes.
    Permit,
    /// No opinion.
    Abstain,
    /// No.
    Reject,
}

/// A sort key: parts compare in order, smaller goes first. Comparators over tiers become one key, because the
/// first non-zero comparison is the first differing part.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct OrderKey(SmallVec<[i64; 4]>);

impl OrderKey {
    /// Appends a whole number.
    pub fn push(&mut self, part: i64) {
        self.0.push(part);
    }

    /// This key, then another.
    #[must_use]
    pub fn then(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// Appends a whole number of any size.
    pub fn push_wide(&mut self, part: i128) {
        // The lower half sorts as if it had no sign.
        self.0.extend([(part >> 64) as i64, (part as u64 ^ (1 << 63)) as i64]);
    }

    /// Appends a float; NaN goes last.
    pub fn push_f64(&mut self, part: f64) {
        // Bits of a float, as signed integers, sort like the float once negative ones are mirrored. Adding 0
        // turns the negative zero into the positive one.
        let bits = (part + 0.0).to_bits() as i64;
        self.0.push(if bits < 0 { i64::MIN.wrapping_sub(bits) } else { bits });
    }
}

/// Why a job is not valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// Reason in one word.
    pub reason: &'static str,
    /// Reason for a person.
    pub message: String,
}

/// Answer to "may this job be admitted?".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admission {
    /// The vote.
    pub vote: Vote,
    /// Text of the event on a rejected PodGroup.
    pub message: String,
    /// The cluster lacks room: more nodes would help, a higher quota would not.
    pub lacks_room: bool,
}

impl Admission {
    /// A vote without words.
    pub fn of(vote: Vote) -> Self {
        Self { vote, message: String::new(), lacks_room: false }
    }

    /// No, because of a limit that somebody set.
    pub fn limited(message: String) -> Self {
        Self { vote: Vote::Reject, message, lacks_room: false }
    }

    /// No, because the cluster is full.
    pub fn no_room(message: String) -> Self {
        Self { vote: Vote::Reject, message, lacks_room: true }
    }
}

/// Who asks for victims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvictFor {
    /// Another job of the queue.
    Preempt,
    /// Another queue.
    Reclaim,
    /// A gang, within the queue.
    GangPreempt,
    /// A gang, from other queues.
    GangReclaim,
    /// Nobody: plugins want pods moved.
    Shuffle,
}

impl Hooks {
    /// What a search for victims asks.
    pub const SEARCHED: Self = Self::JOB_ORDER
        .union(Self::QUEUE_ORDER)
        .union(Self::VICTIM_QUEUE_ORDER)
        .union(Self::TASK_ORDER)
        .union(Self::HYPER_NODE_ORDER)
        .union(Self::HYPER_NODE_GRADIENT)
        .union(Self::ALLOCATABLE)
        .union(Self::PREEMPTIVE)
        .union(Self::PREEMPTABLE)
        .union(Self::RECLAIMABLE)
        .union(Self::UNIFIED_EVICTABLE)
        .union(Self::JOB_PIPELINED)
        .union(Self::JOB_STARVING);
}

impl EvictFor {
    /// The extension point whose answers decide.
    pub fn hook(self) -> Hooks {
        match self {
            Self::Preempt => Hooks::PREEMPTABLE,
            Self::Reclaim => Hooks::RECLAIMABLE,
            Self::GangPreempt | Self::GangReclaim => Hooks::UNIFIED_EVICTABLE,
            Self::Shuffle => Hooks::VICTIM_TASKS,
        }
    }

    /// Gangs make room for gangs.
    pub fn is_of_gangs(self) -> bool {
        matches!(self, Self::GangPreempt | Self::GangReclaim)
    }

    /// A queue takes back what others have of its share.
    pub fn is_reclaim(self) -> bool {
        matches!(self, Self::Reclaim | Self::GangReclaim)
    }

    /// The reason in conditions and events (5.6).
    pub fn reason(self) -> &'static str {
        match self {
            Self::Preempt => "preempt",
            Self::Reclaim => "reclaim",
            Self::GangPreempt => "gangpreempt",
            Self::GangReclaim => "gangreclaim",
            Self::Shuffle => "shuffle",
        }
    }
}

/// For whom victims are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evictor {
    /// Which action asks.
    pub why: EvictFor,
    /// The job that needs room, [`NO_JOB`] for shuffle.
    pub job: JobId,
    /// The pod that needs room; for the gang actions the first waiting pod of the job, [`NO_TASK`] for shuffle.
    pub task: TaskId,
}

impl Evictor {
    /// Nobody waits: plugins want pods moved. Only shields are asked.
    pub const SHUFFLE: Self = Self { why: EvictFor::Shuffle, job: NO_JOB, task: NO_TASK };
}

/// A search for a hypernode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DomainSearch {
    /// How far apart the pods may be.
    pub limit: Limit,
    /// The hypernode that they must stay within; the root for none.
    pub within: DomainId,
    /// The lowest hypernode that holds all of them that run already.
    pub allocated: Option<DomainId>,
}

/// What a plugin says about a queue when a session ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueueWord {
    /// Annotation `tephra.sh/fairness` that the queue is to carry.
    Fairness(String),
    /// Something about the object is wrong, in words.
    Warning(String),
}

/// What a plugin that gives queues shares knows of a queue, for those who watch.
#[derive(Clone, Debug, Default)]
pub struct QueueShare {
    /// What it deserves.
    pub deserved: Vector,
    /// What it may reach; an absent dimension has no limit.
    pub real_capability: Vector,
    /// Largest part of its deserved amounts that it has.
    pub share: f64,
    /// It has all that it deserves.
    pub overused: bool,
}

/// A placement, an eviction, or the undoing of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delta {
    /// Class of the tasks.
    pub class: ClassId,
    /// Their job.
    pub job: JobId,
    /// Its queue.
    pub queue: QueueId,
    /// Number of tasks: negative when evicted or when a placement is undone.
    pub count: i64,
}

/// What a plugin's answers in a search for victims depend on, beyond what the state's epochs and [`State::placed`] show: what it
/// derives when a session opens from elsewhere, or from time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Stands for figures of which each change may change an answer.
    pub exact: u64,
    /// Figures that grow with time and only count in comparisons with each other; see [`Plugin::leeway`].
    pub drifting: Vec<i128>,
}

/// A plugin.
#[expect(unused_variables, reason = "defaults of extension points ignore their arguments")]
pub trait Plugin: Send + std::fmt::Debug {
    /// Extension points that it takes part in.
    fn hooks(&self) -> Hooks;

    /// Reads the arguments; what is wrong with them goes into `warnings`, the default stays.
    fn configure(&mut self, arguments: &Arguments, warnings: &mut Vec<String>) {}

    /// The switch `enableHierarchy` of the plugin is on. Told before [`Plugin::hooks`] is asked.
    fn enable_hierarchy(&mut self) {}

    /// Sets the filters it contributes (called when `PREDICATE` is enabled).
    fn filters(&self, switches: &mut PredicateSwitches) {}

    /// Sets the node scores it contributes (called when `NODE_ORDER` is enabled).
    fn scores(&self, config: &mut ScoreConfig) {}

    /// Revocable zones of nodes as they are at the time of the session; `None` for plugins that know of none.
    fn zones(&self, state: &State) -> Option<Zones> {
        None
    }

    /// Gangs that make room as a whole are suspended, by these rules.
    fn suspension(&self) -> Option<suspend::Rules> {
        None
    }

    /// Gangs at the head of the line get reservations, by these rules.
    fn reservation(&self) -> Option<reservation::Rules> {
        None
    }

    /// Derives figures of its own when a session opens.
    fn open(&mut self, state: &State) {}

    /// What its answers in searches for victims depend on; `None`: it cannot tell, and searches that failed are repeated. Plugins
    /// that say nothing in such searches are not asked.
    fn figures(&self, state: &State) -> Option<Figures> {
        None
    }

    /// The moment, after now, from which on time alone may change its answers in a search for this job.
    fn answers_until_ms(&self, state: &State, job: JobId) -> i64 {
        i64::MAX
    }

    /// A search for victims begins: from now on it keeps its [`Plugin::leeway`].
    fn begin_search(&mut self) {}

    /// So far its drifting figures may move against each other with every answer since the search began staying the same: by less
    /// than this.
    fn leeway(&self) -> i128 {
        i128::MAX
    }

    /// Follows placements and evictions.
    fn account(&mut self, state: &State, delta: &Delta) {}

    /// Part of the key that orders jobs.
    fn job_order(&self, state: &State, job: JobId, key: &mut OrderKey) {}

    /// Part of the key that orders queues.
    fn queue_order(&self, state: &State, queue: QueueId, key: &mut OrderKey) {}

    /// What it knows of a queue's share, as of the last session; `None` for plugins that give none.
    fn queue_share(&self, state: &State, queue: QueueId) -> Option<QueueShare> {
        None
    }

    /// Part of the key that orders queues as victims of a queue that needs room: the smaller key gives first.
    fn victim_queue_order(
        &self,
        state: &State,
        preemptor: QueueId,
        victim: QueueId,
        key: &mut OrderKey,
    ) {
    }

    /// Part of the key that orders tasks of a job.
    fn task_order(&self, state: &State, task: TaskId, key: &mut OrderKey) {}

    /// Part of the key that orders sub-groups of a job.
    fn sub_job_order(&self, state: &State, job: JobId, sub_job: SubJobId, key: &mut OrderKey) {}

    /// Hypernodes that may be tried, in groups, the first group first.
    fn hyper_node_gradient(&self, state: &State, search: &DomainSearch) -> Vec<Vec<DomainId>> {
        vec![vec![search.within]]
    }

    /// Adds to the scores of hypernodes for the pods of a job, or of one of its sub-groups; the highest is the best.
    fn hyper_node_order(
        &mut self,
        state: &State,
        job: JobId,
        sub_job: Option<SubJobId>,
        domains: &[DomainId],
        scores: &mut [f64],
    ) {
    }

    /// Scores of nodes that depend on where other pods of the job run, in the order of the nodes; `None`: nothing to say.
    fn node_order(&mut self, state: &State, task: TaskId, nodes: &[NodeId]) -> Option<Vec<f64>> {
        None
    }

    /// Queue above its share: it gets nothing in this action.
    fn overused(&self, state: &State, queue: QueueId) -> bool {
        false
    }

    /// How many of `count` copies of a class the queue may take now.
    fn allocatable(&self, state: &State, queue: QueueId, class: ClassId, count: u32) -> u32 {
        count
    }

    /// Why [`Plugin::allocatable`] does not say `count`, for messages.
    fn limit_reached(
        &self,
        state: &State,
        queue: QueueId,
        class: ClassId,
        count: u32,
    ) -> Option<String> {
        None
    }

    /// A limit that somebody set keeps the queue from taking `count` copies, however many nodes there are.
    fn capped(&self, state: &State, queue: QueueId, class: ClassId, count: u32) -> bool {
        false
    }

    /// May the queue take room from others for this class?
    fn preemptive(&self, state: &State, queue: QueueId, class: ClassId) -> bool {
        true
    }

    /// Keeps the tasks that may be victims, in their order; `Abstain` when it does not care.
    fn victims(&self, state: &State, evictor: &Evictor, keep: &mut Vec<TaskId>) -> Vote {
        Vote::Abstain
    }

    /// A shield that keeps every pod of one queue from another: what [`Plugin::victims`] would say of each of them.
    fn spares(&self, state: &State, evictor: &Evictor, giver: QueueId) -> bool {
        false
    }

    /// Keeps as many victims as may go together, in their order. Asked last, about those that no vote and no shield objects
    /// to, so that nobody counts who stays anyway (P94).
    fn ration(&self, state: &State, keep: &mut Vec<TaskId>) {}

    /// Running tasks that it wants evicted, whoever waits (action shuffle).
    fn victim_tasks(&mut self, state: &State, running: &[TaskId]) -> Vec<TaskId> {
        Vec::new()
    }

    /// May the job be scheduled at all?
    fn job_valid(&self, state: &State, job: JobId) -> Result<(), Invalid> {
        Ok(())
    }

    /// May the job's statement be committed?
    fn job_ready(&self, state: &State, job: JobId) -> bool {
        true
    }

    /// May the job keep the room it was promised?
    fn job_pipelined(&self, state: &State, job: JobId) -> Vote {
        Vote::Abstain
    }

    /// May what was placed for a sub-group be kept?
    fn sub_job_ready(&self, state: &State, job: JobId, sub_job: SubJobId) -> bool {
        true
    }

    /// May a sub-group keep the room it was promised?
    fn sub_job_pipelined(&self, state: &State, job: JobId, sub_job: SubJobId) -> Vote {
        Vote::Abstain
    }

    /// Should the job preempt?
    fn job_starving(&self, state: &State, job: JobId) -> bool {
        false
    }

    /// May the job be admitted?
    fn job_enqueueable(&mut self, state: &State, job: JobId) -> Admission {
        Admission::of(Vote::Abstain)
    }

    /// The job's queue deserves what the job needs: where queues take back what they deserve, lack of room in the cluster
    /// is no reason to refuse it.
    fn entitled(&self, state: &State, job: JobId) -> bool {
        false
    }

    /// The job was admitted.
    fn job_enqueued(&mut self, state: &State, job: JobId) {}

    /// What is to be told about queues at the end of a session, after promises were taken back.
    fn queue_words(&mut self, state: &State) -> Vec<(QueueId, QueueWord)> {
        Vec::new()
    }
}

#[cfg(test)]
mod test_cluster;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_floats_sort_like_the_floats() {
        let floats = [f64::NEG_INFINITY, -2.5, -0.1, -0.0, 0.1, 3.0, f64::INFINITY];
        let keys: Vec<OrderKey> = floats
            .iter()
            .map(|&float| {
                let mut key = OrderKey::default();
                key.push_f64(float);
                key
            })
            .collect();
        assert!(keys.is_sorted(), "{keys:?}");
        let (mut a, mut b) = (OrderKey::default(), OrderKey::default());
        a.push_f64(-0.0);
        b.push_f64(0.0);
        assert_eq!(a, b);
    }
}
