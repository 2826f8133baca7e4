//! Reasons of events and conditions, and types of conditions: words that users grep for and autoscalers act on.
//!
//! All but those under "Tephra's own" are Volcano's or Kubernetes' and must not change.

// Events on pods.

/// A pod was bound, or a PodGroup became ready. Also the type of the PodGroup condition that says so.
pub const SCHEDULED: &str = "Scheduled";
/// A pod could not be placed.
pub const FAILED_SCHEDULING: &str = "FailedScheduling";
/// A pod is being evicted.
pub const EVICT: &str = "Evict";

// Events and conditions on PodGroups.

/// A gang cannot start yet. Also the type of the PodGroup condition that says so, and the pod condition reason
/// that autoscalers key on.
pub const UNSCHEDULABLE: &str = "Unschedulable";
/// Reason of the condition [`UNSCHEDULABLE`].
pub const NOT_ENOUGH_RESOURCES: &str = "NotEnoughResources";
/// Fewer pods exist than `minMember` asks for.
pub const NOT_ENOUGH_TASKS: &str = "NotEnoughTasks";
/// Fewer pods of one role exist than `minTaskMember` asks for.
pub const NOT_ENOUGH_PODS_OF_TASK: &str = "NotEnoughPodsOfTask";
/// A pod of the gang failed.
pub const POD_FAILED: &str = "PodFailed";
/// A pod of the gang was deleted.
pub const POD_DELETED: &str = "PodDeleted";
/// Reason of the condition [`SCHEDULED`].
pub const TASKS_READY: &str = "tasks in gang are ready to be scheduled";
/// Message of the event [`SCHEDULED`] on a PodGroup.
pub const POD_GROUP_READY: &str = "pod group is ready";

// Conditions on pods.

/// Type of the pod condition that tells whether a pod has a node.
pub const POD_SCHEDULED: &str = "PodScheduled";
/// The pod fits a node and waits for the rest of its gang.
pub const SCHEDULABLE: &str = "Schedulable";
/// Binding failed.
pub const SCHEDULER_ERROR: &str = "SchedulerError";
/// The pod has scheduling gates.
pub const SCHEDULING_GATED: &str = "SchedulingGated";
/// Type of the pod condition that announces an eviction.
pub const DISRUPTION_TARGET: &str = "DisruptionTarget";

// Leases and queues.

/// Leadership changed.
pub const LEADER_ELECTION: &str = "LeaderElection";
/// A queue was looked at, and that failed.
pub const SYNC_QUEUE: &str = "SyncQueue";
/// A queue was opened.
pub const OPEN_QUEUE: &str = "OpenQueue";
/// A queue was closed.
pub const CLOSE_QUEUE: &str = "CloseQueue";

// Tephra's own.

/// An object cannot be used as it is: the message names the field and its value.
pub const INVALID_OBJECT: &str = "InvalidObject";
/// A PodGroup names a queue that does not exist (B14).
pub const QUEUE_NOT_FOUND: &str = "QueueNotFound";
/// A PodGroup names a queue that is not open.
pub const QUEUE_CLOSED: &str = "QueueClosed";
/// A pod names a PodGroup that does not exist.
pub const POD_GROUP_NOT_FOUND: &str = "PodGroupNotFound";
/// A pod needs something that this scheduler cannot place yet.
pub const UNSUPPORTED: &str = "Unsupported";
/// A gang was asked to make room, and nobody stopped it in time.
pub const SUSPENSION_IGNORED: &str = "SuspensionIgnored";
/// The scheduler configuration was refused; the last good one stays.
pub const CONFIG_REJECTED: &str = "ConfigRejected";

/// Pod and PodGroup condition: the queue's limits keep it; more nodes would not help, and an autoscaler must not
/// add any (features.md 5.3).
pub const QUEUE_LIMITED: &str = "QueueLimited";
