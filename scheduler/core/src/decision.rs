//! What a session decides. Decisions leave the core as plain owned data, in the order in which they must be
//! carried out; the scheduler's binder, evictor, status writer and event recorder do the rest and report back
//! with events. A decision is told once: the core remembers what it said and repeats only what changed.

use std::sync::Arc;

use tephra_api::suspension::Intent;

use crate::event::{Amounts, ObjectKey, PodGroupStatus};

/// A pod as the outside knows it: namespace, name and uid behind one shared pointer, since every decision about a
/// pod carries it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PodRef(Arc<PodIdentity>);

/// What a [`PodRef`] points to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PodIdentity {
    /// Namespace.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Box<str>,
    /// Uid: the precondition of every write.
    pub uid: Box<str>,
}

impl PodRef {
    /// A pod.
    pub fn new(
        namespace: impl Into<Arc<str>>,
        name: impl Into<Box<str>>,
        uid: impl Into<Box<str>>,
    ) -> Self {
        Self(Arc::new(PodIdentity {
            namespace: namespace.into(),
            name: name.into(),
            uid: uid.into(),
        }))
    }
}

impl std::ops::Deref for PodRef {
    type Target = PodIdentity;

    fn deref(&self) -> &PodIdentity {
        &self.0
    }
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// Bind these pods of one gang; all of them were placed by one commit.
    Bind(GangBind),
    /// Evict a pod: condition `DisruptionTarget`, then delete with a uid precondition.
    Evict {
        /// The victim.
        pod: PodRef,
        /// `preempt`, `reclaim`, `shuffle`, `gangpreempt` or `gangreclaim`.
        reason: &'static str,
    },
    /// Write this status of a PodGroup (only sent when it differs from what is stored).
    PodGroupStatus {
        /// The PodGroup.
        group: ObjectKey,
        /// Its uid.
        uid: String,
        /// Complete new status.
        status: PodGroupStatus,
    },
    /// Ask a gang to make room (annotation `tephra.sh/suspend` of its PodGroup): whoever carries that out suspends its owner.
    Suspend {
        /// The PodGroup.
        group: ObjectKey,
        /// Its uid.
        uid: String,
        /// What is asked.
        intent: Intent,
    },
    /// The room of a gang is no longer wanted: take the intent off its PodGroup.
    Withdraw {
        /// The PodGroup.
        group: ObjectKey,
        /// Its uid.
        uid: String,
    },
    /// Room is held for a gang that is down (annotation `tephra.sh/resume`): it may come back.
    Resume {
        /// The PodGroup.
        group: ObjectKey,
        /// Its uid.
        uid: String,
        /// Id of the suspension that ends.
        id: String,
    },
    /// Write when a PodGroup is predicted to start (annotation `tephra.sh/predicted-start`), or remove what was written.
    PredictedStart {
        /// The PodGroup.
        group: ObjectKey,
        /// Its uid.
        uid: String,
        /// The time in milliseconds since 1970; `None` removes it.
        start_ms: Option<i64>,
    },
    /// Write `status.allocated` of a queue (only sent on change), in stored units.
    QueueAllocated {
        /// The queue.
        queue: String,
        /// Sum of the requests of its allocated pods; cpu and memory always present.
        allocated: Amounts,
    },
    /// Write annotation `tephra.sh/fairness` of a queue.
    QueueFairness {
        /// The queue.
        queue: String,
        /// The new text.
        text: String,
    },
    /// Set condition `PodScheduled=False` (only sent when reason or message changed).
    PodCondition {
        /// The pod.
        pod: PodRef,
        /// `Unschedulable`, `Schedulable`, `SchedulerError`, ...
        reason: &'static str,
        /// Text for a user; the pods of one gang share it.
        message: Arc<str>,
        /// `status.nominatedNodeName` to set; the empty name removes it.
        nominated: Option<Arc<str>>,
    },
    /// Record an event.
    Notice(Notice),
}

/// The binds of one commit of one gang.
#[derive(Clone, Debug, PartialEq)]
pub struct GangBind {
    /// The PodGroup.
    pub group: ObjectKey,
    /// Minimum members of the gang when this was decided (invariant I3).
    pub min_member: i32,
    /// Members that were bound or being bound before this commit.
    pub ready_before: i32,
    /// When the PodGroup was created.
    pub group_created_ms: i64,
    /// Pods with their nodes.
    pub binds: Vec<(PodRef, Arc<str>)>,
    /// When each of these pods was created, in their order.
    pub created_ms: Vec<i64>,
}

/// Kind of object that a [`Notice`] is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NoticeKind {
    /// A pod.
    Pod,
    /// A PodGroup.
    PodGroup,
    /// A queue.
    Queue,
    /// A node.
    Node,
    /// A hypernode.
    HyperNode,
}

/// An event to record on an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Kind of the object.
    pub kind: NoticeKind,
    /// Its key (namespace empty for queues and nodes).
    pub object: ObjectKey,
    /// Its uid.
    pub uid: String,
    /// `Warning` (else `Normal`).
    pub warning: bool,
    /// Reason.
    pub reason: &'static str,
    /// Message, verbatim (B1).
    pub message: String,
}
