//! Queues with the sums that quota plugins read. Sums follow every change of a task, so opening a session
//! never walks pods. A queue that is only named by a PodGroup has a row too, with `exists` false.

use std::sync::Arc;

use super::resource::{Ledger, Vector};
use crate::event::QueueState;

/// Dense number of a queue.
pub type QueueId = u32;

/// One queue.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    /// Name.
    pub name: Arc<str>,
    /// Uid.
    pub uid: Arc<str>,
    /// The Queue object exists.
    pub exists: bool,
    /// Creation time.
    pub created_ms: i64,
    /// `spec.weight`, at least 1.
    pub weight: i32,
    /// `spec.priority`.
    pub priority: i32,
    /// `spec.parent`, empty for none.
    pub parent: Arc<str>,
    /// Annotation `volcano.sh/hierarchy`: the path in the tree of plugin `drf`, empty for none.
    pub hierarchy: Arc<str>,
    /// Annotation `volcano.sh/hierarchy-weights`: the weights along that path.
    pub hierarchy_weights: Arc<str>,
    /// Annotation `tephra.sh/fairness`, for plugin `wfq`.
    pub fairness: Arc<str>,
    /// `spec.capability`.
    pub capability: Option<Vector>,
    /// `spec.guarantee.resource`.
    pub guarantee: Vector,
    /// `spec.deserved`.
    pub deserved: Option<Vector>,
    /// `spec.reclaimable`.
    pub reclaimable: bool,
    /// `spec.dequeueStrategy: fifo`.
    pub fifo: bool,
    /// `status.state`.
    pub state: QueueState,
    /// Jobs with a PodGroup that name it.
    pub jobs: u32,
    /// Requests of its charged tasks.
    pub allocated: Ledger,
    /// Requests of its allocated-class and pending tasks.
    pub request: Ledger,
    /// Sum of the claims of its admitted jobs.
    pub inqueue: Vector,
    /// Sum of its jobs' allocation above `minResources`.
    pub elastic: Vector,
    /// `status.allocated` as last read or told, in core units.
    pub told: Ledger,
    /// The allocation may differ from what was told.
    pub dirty: bool,
}
