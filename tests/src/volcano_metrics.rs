//! Volcano's metrics of scheduler, PodGroups and queues, written down from its specification (core 6, controllers 2.2):
//! facts that the programs are held against.

/// Who serves a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// `vc-scheduler`.
    Scheduler,
    /// `vc-controller-manager`.
    Controller,
}

/// Name without `volcano_`, type, labels separated by blanks, and for histograms (first bound, last bound, how many).
pub type Row = (Program, &'static str, &'static str, &'static str, Option<(f64, f64, usize)>);

use Program::{Controller, Scheduler};

/// The table. Left out are families of objects that Tephra does not have: Volcano Jobs (`job_completed_phase_count`,
/// `job_failed_phase_count`, `controller_job_to_pod_creation_latency_milliseconds`), JobFlows (`jobflow_*`), shared GPUs
/// (`vgpu_*`), and those of the agent and the agent scheduler.
pub const TABLE: &[Row] = &[
    (Scheduler, "e2e_scheduling_latency_milliseconds", "histogram", "", Some((1.0, 5_000.0, 20))),
    (Scheduler, "open_session_duration_milliseconds", "histogram", "", Some((1.0, 5_000.0, 20))),
    (
        Scheduler,
        "e2e_job_scheduling_latency_milliseconds",
        "histogram",
        "",
        Some((100.0, 120_000.0, 30)),
    ),
    (Scheduler, "e2e_job_scheduling_duration", "gauge", "job_name queue job_namespace", None),
    (Scheduler, "e2e_job_scheduling_start_time", "gauge", "job_name queue job_namespace", None),
    (Scheduler, "e2e_job_scheduling_last_time", "gauge", "job_name queue job_namespace", None),
    (
        Scheduler,
        "plugin_scheduling_latency_milliseconds",
        "histogram",
        "plugin OnSession",
        Some((0.1, 100.0, 15)),
    ),
    (
        Scheduler,
        "action_scheduling_latency_milliseconds",
        "histogram",
        "action",
        Some((1.0, 2_000.0, 20)),
    ),
    (
        Scheduler,
        "task_scheduling_latency_milliseconds",
        "histogram",
        "stage",
        Some((50.0, 60_000.0, 30)),
    ),
    (
        Scheduler,
        "scheduling_stage_duration_milliseconds",
        "histogram",
        "stage",
        Some((0.1, 500.0, 20)),
    ),
    (Scheduler, "schedule_attempts_total", "counter", "result", None),
    (Scheduler, "pod_preemption_victims", "gauge", "", None),
    (Scheduler, "total_preemption_attempts", "counter", "", None),
    (Scheduler, "eviction_transactions_total", "counter", "action", None),
    (Scheduler, "unschedule_task_count", "gauge", "job_id", None),
    (Scheduler, "unschedule_job_count", "gauge", "", None),
    (Scheduler, "job_share", "gauge", "job_ns job_id", None),
    (Scheduler, "job_retry_counts", "counter", "job_id", None),
    (Scheduler, "namespace_share", "gauge", "namespace_name", None),
    (Scheduler, "namespace_weight", "gauge", "namespace_name", None),
    (Scheduler, "namespace_weighted_share", "gauge", "namespace_name", None),
    (Scheduler, "queue_allocated_milli_cpu", "gauge", "queue_name", None),
    (Scheduler, "queue_allocated_memory_bytes", "gauge", "queue_name", None),
    (Scheduler, "queue_allocated_scalar_resources", "gauge", "queue_name resource", None),
    (Scheduler, "queue_request_milli_cpu", "gauge", "queue_name", None),
    (Scheduler, "queue_request_memory_bytes", "gauge", "queue_name", None),
    (Scheduler, "queue_request_scalar_resources", "gauge", "queue_name resource", None),
    (Scheduler, "queue_deserved_milli_cpu", "gauge", "queue_name", None),
    (Scheduler, "queue_deserved_memory_bytes", "gauge", "queue_name", None),
    (Scheduler, "queue_deserved_scalar_resources", "gauge", "queue_name resource", None),
    (Scheduler, "queue_capacity_milli_cpu", "gauge", "queue_name", None),
    (Scheduler, "queue_capacity_memory_bytes", "gauge", "queue_name", None),
    (Scheduler, "queue_capacity_scalar_resources", "gauge", "queue_name resource", None),
    (Scheduler, "queue_real_capacity_milli_cpu", "gauge", "queue_name", None),
    (Scheduler, "queue_real_capacity_memory_bytes", "gauge", "queue_name", None),
    (Scheduler, "queue_real_capacity_scalar_resources", "gauge", "queue_name resource", None),
    (Scheduler, "queue_share", "gauge", "queue_name", None),
    (Scheduler, "queue_weight", "gauge", "queue_name", None),
    (Scheduler, "queue_overused", "gauge", "queue_name", None),
    (Controller, "queue_pod_group_inqueue_count", "gauge", "queue_name", None),
    (Controller, "queue_pod_group_pending_count", "gauge", "queue_name", None),
    (Controller, "queue_pod_group_running_count", "gauge", "queue_name", None),
    (Controller, "queue_pod_group_unknown_count", "gauge", "queue_name", None),
    (Controller, "queue_pod_group_completed_count", "gauge", "queue_name", None),
];
