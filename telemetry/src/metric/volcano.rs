//! Families that Volcano serves, with its names, types, labels and buckets (core specification 6, controllers 2.2):
//! dashboards and alerts that read them go on working. Families of objects that Tephra does not have yet (Volcano
//! Jobs, JobFlows, vGPUs) are not here.

use super::Kind::{Counter, Gauge};
use super::Server::{Controller, Scheduler};
use super::{Family, histogram, plain};

/// Labels of what belongs to a queue.
const QUEUE: &[&str] = &["queue_name"];
/// Labels of a queue's amounts of one resource beyond cpu and memory.
const SCALAR: &[&str] = &["queue_name", "resource"];
/// Labels of a job's start.
const JOB: &[&str] = &["job_name", "queue", "job_namespace"];
/// `job_id` is the name of the PodGroup without its namespace (B34): that is what dashboards select by.
const JOB_ID: &[&str] = &["job_id"];
const NAMESPACE: &[&str] = &["namespace_name"];

/// Declares families as constants and lists them.
macro_rules! families {
    ($($constant:ident = $family:expr;)*) => {
        $(#[doc = concat!("See [`FAMILIES`]: `", stringify!($constant), "`.")] pub const $constant: Family = $family;)*
        /// All of them.
        pub const FAMILIES: &[Family] = &[$($constant),*];
    };
}
pub(super) use families;

families! {
    E2E_SCHEDULING_LATENCY = histogram(Scheduler, "volcano_e2e_scheduling_latency_milliseconds", &[], (1.0, 5_000.0, 20),
        "Length of a scheduling session, in milliseconds");
    OPEN_SESSION_DURATION = histogram(Scheduler, "volcano_open_session_duration_milliseconds", &[], (1.0, 5_000.0, 20),
        "Time until a session is open: what changed is taken in, plugins derive their figures; in milliseconds");
    E2E_JOB_SCHEDULING_LATENCY = histogram(Scheduler, "volcano_e2e_job_scheduling_latency_milliseconds", &[], (100.0, 120_000.0, 30),
        "From the creation of a PodGroup to each committed placement of one of its pods, in milliseconds");
    E2E_JOB_SCHEDULING_DURATION = plain(Scheduler, Gauge, "volcano_e2e_job_scheduling_duration", JOB,
        "From the creation of the PodGroup to the last placement of one of its pods, in milliseconds");
    E2E_JOB_SCHEDULING_START_TIME = plain(Scheduler, Gauge, "volcano_e2e_job_scheduling_start_time", JOB,
        "Creation of the PodGroup, in seconds since 1970");
    E2E_JOB_SCHEDULING_LAST_TIME = plain(Scheduler, Gauge, "volcano_e2e_job_scheduling_last_time", JOB,
        "Last placement of one of its pods, in seconds since 1970");
    PLUGIN_LATENCY = histogram(Scheduler, "volcano_plugin_scheduling_latency_milliseconds", &["plugin", "OnSession"], (0.1, 100.0, 15),
        "Time of a plugin when a session opens (OnSessionOpen) or closes (OnSessionClose), in milliseconds");
    ACTION_LATENCY = histogram(Scheduler, "volcano_action_scheduling_latency_milliseconds", &["action"], (1.0, 2_000.0, 20),
        "Time of an action in a session, in milliseconds");
    TASK_LATENCY = histogram(Scheduler, "volcano_task_scheduling_latency_milliseconds", &["stage"], (50.0, 60_000.0, 30),
        "From the creation of a pod to a stage: Watched, Assumed, PreBound, Bound; in milliseconds");
    STAGE_DURATION = histogram(Scheduler, "volcano_scheduling_stage_duration_milliseconds", &["stage"], (0.1, 500.0, 20),
        "Time of a stage: PreBind is the wait for a free place among the requests, Bind the request; in milliseconds");
    SCHEDULE_ATTEMPTS = plain(Scheduler, Counter, "volcano_schedule_attempts_total", &["result"],
        "Gangs that were tried: scheduled, or unschedulable; and binds that failed: error");
    PREEMPTION_VICTIMS = plain(Scheduler, Gauge, "volcano_pod_preemption_victims", &[],
        "Pods that might leave the last node on which evictions would make room");
    PREEMPTION_ATTEMPTS = plain(Scheduler, Counter, "volcano_total_preemption_attempts", &[],
        "Nodes on which evictions would make room, whether they were carried out or not");
    EVICTION_TRANSACTIONS = plain(Scheduler, Counter, "volcano_eviction_transactions_total", &["action"],
        "Plans of evictions that were carried out");
    UNSCHEDULE_TASK_COUNT = plain(Scheduler, Gauge, "volcano_unschedule_task_count", JOB_ID,
        "Pods that a gang lacks to its minimum");
    UNSCHEDULE_JOB_COUNT = plain(Scheduler, Gauge, "volcano_unschedule_job_count", &[],
        "Gangs with pods that are below their minimum");
    JOB_SHARE = plain(Scheduler, Gauge, "volcano_job_share", &["job_ns", "job_id"],
        "Largest part of the cluster that a job has in any resource");
    JOB_RETRY_COUNTS = plain(Scheduler, Counter, "volcano_job_retry_counts", JOB_ID,
        "Sessions that ended with the gang below its minimum");
    NAMESPACE_SHARE = plain(Scheduler, Gauge, "volcano_namespace_share", NAMESPACE,
        "Largest part of the cluster that the jobs of a namespace have in any resource");
    NAMESPACE_WEIGHT = plain(Scheduler, Gauge, "volcano_namespace_weight", NAMESPACE,
        "Weight of a namespace: always 1");
    NAMESPACE_WEIGHTED_SHARE = plain(Scheduler, Gauge, "volcano_namespace_weighted_share", NAMESPACE,
        "Share of a namespace divided by its weight");
    QUEUE_ALLOCATED_CPU = plain(Scheduler, Gauge, "volcano_queue_allocated_milli_cpu", QUEUE,
        "Cpu that pods of the queue have, in thousandths of a core");
    QUEUE_ALLOCATED_MEMORY = plain(Scheduler, Gauge, "volcano_queue_allocated_memory_bytes", QUEUE,
        "Memory that pods of the queue have, in bytes");
    QUEUE_ALLOCATED_SCALAR = plain(Scheduler, Gauge, "volcano_queue_allocated_scalar_resources", SCALAR,
        "Other resources that pods of the queue have: pods, and thousandths of all others");
    QUEUE_REQUEST_CPU = plain(Scheduler, Gauge, "volcano_queue_request_milli_cpu", QUEUE,
        "Cpu that pods of the queue have or wait for, in thousandths of a core");
    QUEUE_REQUEST_MEMORY = plain(Scheduler, Gauge, "volcano_queue_request_memory_bytes", QUEUE,
        "Memory that pods of the queue have or wait for, in bytes");
    QUEUE_REQUEST_SCALAR = plain(Scheduler, Gauge, "volcano_queue_request_scalar_resources", SCALAR,
        "Other resources that pods of the queue have or wait for: pods, and thousandths of all others");
    QUEUE_DESERVED_CPU = plain(Scheduler, Gauge, "volcano_queue_deserved_milli_cpu", QUEUE,
        "Cpu that the queue deserves, in thousandths of a core");
    QUEUE_DESERVED_MEMORY = plain(Scheduler, Gauge, "volcano_queue_deserved_memory_bytes", QUEUE,
        "Memory that the queue deserves, in bytes");
    QUEUE_DESERVED_SCALAR = plain(Scheduler, Gauge, "volcano_queue_deserved_scalar_resources", SCALAR,
        "Other resources that the queue deserves: pods, and thousandths of all others");
    QUEUE_CAPACITY_CPU = plain(Scheduler, Gauge, "volcano_queue_capacity_milli_cpu", QUEUE,
        "Cpu in the queue's capability, in thousandths of a core");
    QUEUE_CAPACITY_MEMORY = plain(Scheduler, Gauge, "volcano_queue_capacity_memory_bytes", QUEUE,
        "Memory in the queue's capability, in bytes");
    QUEUE_CAPACITY_SCALAR = plain(Scheduler, Gauge, "volcano_queue_capacity_scalar_resources", SCALAR,
        "Other resources in the queue's capability: pods, and thousandths of all others");
    QUEUE_REAL_CAPACITY_CPU = plain(Scheduler, Gauge, "volcano_queue_real_capacity_milli_cpu", QUEUE,
        "Cpu that the queue may reach now, in thousandths of a core");
    QUEUE_REAL_CAPACITY_MEMORY = plain(Scheduler, Gauge, "volcano_queue_real_capacity_memory_bytes", QUEUE,
        "Memory that the queue may reach now, in bytes");
    QUEUE_REAL_CAPACITY_SCALAR = plain(Scheduler, Gauge, "volcano_queue_real_capacity_scalar_resources", SCALAR,
        "Other resources that the queue may reach now: pods, and thousandths of all others");
    QUEUE_SHARE = plain(Scheduler, Gauge, "volcano_queue_share", QUEUE,
        "Largest part that the queue has of what it deserves in any resource");
    QUEUE_WEIGHT = plain(Scheduler, Gauge, "volcano_queue_weight", QUEUE,
        "Weight of the queue");
    QUEUE_OVERUSED = plain(Scheduler, Gauge, "volcano_queue_overused", QUEUE,
        "1 when the queue has all that it deserves, else 0");
    QUEUE_INQUEUE = plain(Controller, Gauge, "volcano_queue_pod_group_inqueue_count", QUEUE,
        "PodGroups of the queue in phase Inqueue");
    QUEUE_PENDING = plain(Controller, Gauge, "volcano_queue_pod_group_pending_count", QUEUE,
        "PodGroups of the queue in phase Pending");
    QUEUE_RUNNING = plain(Controller, Gauge, "volcano_queue_pod_group_running_count", QUEUE,
        "PodGroups of the queue in phase Running");
    QUEUE_UNKNOWN = plain(Controller, Gauge, "volcano_queue_pod_group_unknown_count", QUEUE,
        "PodGroups of the queue in phase Unknown");
    QUEUE_COMPLETED = plain(Controller, Gauge, "volcano_queue_pod_group_completed_count", QUEUE,
        "PodGroups of the queue in phase Completed");
}
