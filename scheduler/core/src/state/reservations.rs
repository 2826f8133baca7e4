//! What is remembered of reservations between sessions: who has been the head of its queue since when, and the nodes kept
//! for whom from when on. Written by `session/reservation` alone; a restart begins with nothing.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::classes::ClassId;
use super::jobs::JobId;
use super::nodes::NodeId;
use super::queues::QueueId;
use super::resource::Request;

/// When a pod leaves its node, or room is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum When {
    /// At this time, in milliseconds since 1970.
    At(i64),
    /// Some day: nobody knows how long who is there runs.
    Someday,
    /// Not as long as the world stays as it is.
    Never,
}

/// What a gang needs to start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// Pods by class.
    pub classes: SmallVec<[(ClassId, u32); 2]>,
}

/// What is kept of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The node.
    pub node: NodeId,
    /// Classes that go there.
    pub classes: SmallVec<[ClassId; 2]>,
    /// What they ask for together.
    pub request: Request,
}

/// Room kept for a gang.
#[derive(Clone, Debug)]
pub struct Reservation {
    /// The gang.
    pub job: JobId,
    /// Uid of its PodGroup: rows of jobs are reused.
    pub uid: Arc<str>,
    /// Its queue.
    pub queue: QueueId,
    /// What it needs.
    pub demand: Demand,
    /// Where it is to go.
    pub claims: Vec<Claim>,
    /// Shadow time: from then on all of it is free.
    pub start: When,
    /// The room comes later than was thought: to be searched for anew.
    pub late: bool,
    /// What is withheld from others at the moment.
    pub withheld: Vec<(NodeId, Request)>,
}

/// A gang that waits at the head of its queue.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// Uid of its PodGroup.
    pub uid: Arc<str>,
    /// Since when it has been there, in milliseconds.
    pub since_ms: i64,
    /// It could not be given a reservation: it is passed over until then.
    pub passed_until_ms: i64,
}

/// Reservations and those who may get one.
#[derive(Debug, Default)]
pub struct Reservations {
    /// In the order in which they were given.
    pub held: Vec<Reservation>,
    /// By job.
    pub waiting: FxHashMap<JobId, Waiting>,
}
