//! A scheduler that is easy to believe: plain loops over plain structs, one task at a time, no index, no classes,
//! no counters kept over sessions. It takes the same events as `tephra_core::Core` and must reach the same
//! decisions; the property tests hold the two against each other.
//!
//! It knows the actions `enqueue`, `allocate` and `backfill` and the plugins priority, gang, conformance
//! (no part in these actions), overcommit, drf (job order), predicates (what depends on a node alone, host ports,
//! pod count, inter-pod affinity, topology spread), proportion, nodeorder and binpack, with default arguments.
//!
//! Rules (numbers are those of the Volcano specification, B and P are its oddities):
//!
//! 1. *Nodes* have slots. A slot is given when a node, or a pod that holds it, is first heard of; a node that is gone
//!    keeps its slot while pods are on it; the lowest free slot is used first. Among equal scores the lowest slot
//!    wins. All feasible nodes are scored (no sampling).
//! 2. *Node choice* (4.2.5): the nodes whose idle room fits go first; if there is none, those whose future room
//!    (idle + releasing - pipelined) fits, and the task is only pipelined. Future room must fit in any case.
//! 3. *Heaps* (3.8) always use current keys: queue and job are chosen when they are popped (B53 differs).
//!    Queues: proportion (higher priority, smaller share), then older, then name. Jobs: priority, then gangs that
//!    are not ready, then smaller dominant share, then older, then `namespace/name`. Tasks: higher priority, then
//!    the number at the end of the name, then older, then uid.
//! 4. *allocate* (4.2.3): pop queue; overused queues leave; pop job; place tasks until the job is ready (a job that
//!    is ready gets one task a turn); ready: commit; only pipelined: keep until the session ends, then undo;
//!    else undo at once and do not try again. Failed roles and `NeedContinueAllocating` as in 2.5, but a role
//!    has failed for one turn only (what is placed in between may be what its pods wait for), and pods without a role
//!    have none that could have failed: they may differ from each other.
//! 5. *Counting as ready*: pending best-effort tasks do; gated ones do not (B20), nor do those that no node could
//!    take when allocate looked at their gang.
//! 6. *Cluster total* is the allocatable sum of nodes that are not cordoned, and what is in use is counted on the
//!    same nodes: a cordoned node is no capacity that queues could share.
//! 7. *Claims* of admitted jobs are what `minResources` leaves after allocated and gated pods, in overcommit as in
//!    proportion (P59).
//! 8. *Pods as a quota*: a capability that names `pods` limits them; Volcano ignores it.
//! 9. *Closed queues*: a queue that is closed or closing admits nobody (B15) and places nobody.
//! 10. *Second chances*: a gang of several roles or pod shapes that does not fit in task order is tried with the
//!     shapes that have the fewest possible nodes first, then with the largest shapes first; where no pod's place depends on
//!     another pod, at last in every way there is.
//! 11. *Broken gangs* (some members ready, fewer than the minimum): for a minute they are served before all queues, and
//!     if they are not whole afterwards, room for as many waiting pods as they lack is kept for them until the session
//!     ends, else room where members were lost. After that they go before the other jobs of their queue, unless
//!     a bind of theirs was refused; jobs go behind others by the number of their refused binds, and after the second
//!     one allocate leaves them alone for a while.
//! 12. *Queues that are served in order* (`dequeueStrategy: fifo`): behind a gang that is not admitted nobody is, and behind
//!     one that waits for its admission or was refused nobody is placed.
//! 13. *Scores* of node affinity and taints are normalised over the nodes that pass the static filters, with
//!     room or without (core.md 7.3).

pub mod affinity;
pub mod allocate;
pub mod backfill;
pub mod close;
pub mod enqueue;
pub mod filter;
pub mod gang;
pub mod node;
pub mod order;
pub mod overcommit;
pub mod pack;
pub mod proportion;
pub mod score;
pub mod session;
pub mod vector;
pub mod world;

use tephra_api::conf::SchedulerConf;
use tephra_core::event::{Event, ObjectKey, PodGroupPhase, PodGroupStatus};

/// What a session of the reference decided.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decided {
    /// Commits in order: gang, and its pods (uid) with their nodes.
    pub binds: Vec<(ObjectKey, Vec<(String, String)>)>,
    /// Gangs that were admitted, in order.
    pub admitted: Vec<ObjectKey>,
    /// Gangs whose placement was tried and undone at once, in order.
    pub refused: Vec<ObjectKey>,
    /// Gangs whose every task found a place, yet which wait for members that cannot be tried (gated ones).
    pub incomplete: usize,
    /// Phase of every gang at the end.
    pub phases: Vec<(ObjectKey, PodGroupPhase)>,
}

/// The reference scheduler.
#[derive(Debug)]
pub struct Model {
    world: world::World,
    actions: Vec<String>,
    plugins: Vec<String>,
}

impl Model {
    /// A scheduler that knows nothing yet.
    pub fn new(conf: &SchedulerConf) -> Self {
        let plugins = conf.tiers.iter().flat_map(|tier| &tier.plugins).map(|p| p.name.clone());
        Self {
            world: world::World::default(),
            actions: conf.actions.clone(),
            plugins: plugins.collect(),
        }
    }

    /// Hears of a change.
    pub fn apply(&mut self, event: Event) {
        self.world.apply(event);
    }

    /// A PodGroup's status as somebody else wrote it.
    pub fn set_status(&mut self, key: &ObjectKey, status: &PodGroupStatus) {
        if let Some(group) = self.world.groups.get_mut(key) {
            group.status = status.clone();
        }
    }

    /// Runs one session.
    pub fn session(&mut self, now_ms: i64) -> Decided {
        self.world.see_refusals(now_ms);
        self.world.see_idle_claims(now_ms);
        let mut session = session::Session::open(&self.world, &self.plugins, &self.actions, now_ms);
        session.reserve_nominated();
        for action in &self.actions {
            match action.as_str() {
                "enqueue" => enqueue::run(&mut session),
                "allocate" => allocate::run(&mut session),
                "backfill" => backfill::run(&mut session),
                other => panic!("the reference has no action {other}"),
            }
        }
        for uid in std::mem::take(&mut session.given_up) {
            if let Some(pod) = self.world.pods.get_mut(&uid) {
                pod.object.nominated = None;
            }
        }
        close::run(&mut session, &mut self.world)
    }
}
