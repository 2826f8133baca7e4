//! Every annotation, label, scheduling gate, finalizer and field-manager name, one constant each.
//!
//! Names under `volcano.sh`, `scheduling.k8s.io` and the like are Volcano's and keep its meaning; ours begin with
//! `tephra.sh/`. Code never spells such a string itself.

// Membership of pods in gangs and queues.

/// Annotation of a pod: name of its PodGroup.
pub const GROUP_NAME: &str = "scheduling.k8s.io/group-name";
/// Annotation of a pod: a newer spelling of [`GROUP_NAME`] that Volcano's scheduler core does not read.
pub const GROUP_NAME_ALTERNATIVE: &str = "scheduling.volcano.sh/group-name";
/// Annotation of a pod or namespace: queue of the PodGroup made for it.
pub const QUEUE_NAME: &str = "scheduling.volcano.sh/queue-name";
/// Annotation of a workload: `minMember` of the PodGroup made for its pods.
pub const GROUP_MIN_MEMBER: &str = "scheduling.volcano.sh/group-min-member";
/// Annotation of a workload: declared by Volcano, read by nothing.
pub const GROUP_MIN_RESOURCES: &str = "scheduling.volcano.sh/group-min-resources";
/// Scheduling gate, and the annotation by which a pod asks for it (value `true`).
pub const QUEUE_ALLOCATION_GATE: &str = "scheduling.volcano.sh/queue-allocation-gate";

// Pods of Volcano jobs.

/// Annotation, then label, of a pod: its role (task name) in the gang.
pub const TASK_SPEC: &str = "volcano.sh/task-spec";
/// Annotation and label of a pod: its index in its role.
pub const TASK_INDEX: &str = "volcano.sh/task-index";
/// Annotation of a pod: priority inside its job.
pub const TASK_PRIORITY: &str = "volcano.sh/task-priority";
/// Annotation and label of a pod: the job that made it.
pub const JOB_NAME: &str = "volcano.sh/job-name";
/// Label of a pod: namespace of the job that made it.
pub const JOB_NAMESPACE: &str = "volcano.sh/job-namespace";
/// Annotation and label of a job's pod: its queue.
pub const JOB_QUEUE_NAME: &str = "volcano.sh/queue-name";
/// Annotation of a pod: version of the job that made it.
pub const JOB_VERSION: &str = "volcano.sh/job-version";
/// Annotation of a pod: uid of the template that it was made from.
pub const TEMPLATE_UID: &str = "volcano.sh/template-uid";
/// Annotation of a pod: how often its job was retried.
pub const JOB_RETRY_COUNT: &str = "volcano.sh/job-retry-count";
/// Label of a pod: its partition inside its role.
pub const PARTITION_ID: &str = "volcano.sh/partition-id";
/// Annotation of a job and its pods: forwarded to another cluster.
pub const JOB_FORWARDING: &str = "volcano.sh/job-forwarding";
/// Label of a job: type that the command line shows.
pub const JOB_TYPE: &str = "volcano.sh/job-type";
/// Annotation of a pod that the job controller is about to delete (value `true`).
pub const CONTROLLER_OUT_OF_SYNC: &str = "volcano.sh/controller-out-of-sync";
/// Annotation and label of a job: the JobTemplate it was made from, `<ns>.<name>`.
pub const CREATED_BY_JOB_TEMPLATE: &str = "volcano.sh/createdByJobTemplate";
/// Annotation and label of a job: the JobFlow it belongs to, `<ns>.<name>`.
pub const CREATED_BY_JOB_FLOW: &str = "volcano.sh/createdByJobFlow";
/// Annotation of a job: when its CronJob was due, RFC 3339.
pub const CRONJOB_SCHEDULED_TIMESTAMP: &str = "volcano.sh/cronjob-scheduled-timestamp";
/// Annotation of a pod: rank for Ascend devices.
pub const HCCL_RANK_INDEX: &str = "hccl/rankIndex";

// Disruption, priority and waiting.

/// Annotation, then label, of a pod or PodGroup: may be a victim of preemption and reclaim.
pub const PREEMPTABLE: &str = "volcano.sh/preemptable";
/// Annotation or label of a pod or PodGroup: how long after its start a pod is no victim.
pub const COOLDOWN_TIME: &str = "volcano.sh/cooldown-time";
/// Annotation of a pod or PodGroup, label of a node: time-shared zone.
pub const REVOCABLE_ZONE: &str = "volcano.sh/revocable-zone";
/// Annotation of a PodGroup: pods that must stay.
pub const JDB_MIN_AVAILABLE: &str = "volcano.sh/jdb-min-available";
/// Annotation of a PodGroup: pods that may go at once.
pub const JDB_MAX_UNAVAILABLE: &str = "volcano.sh/jdb-max-unavailable";
/// Annotation of a PodGroup: longest wait before it goes first.
pub const SLA_WAITING_TIME: &str = "volcano.sh/sla-waiting-time";
/// Annotation of a PodGroup: older spelling of [`SLA_WAITING_TIME`].
pub const SLA_WAITING_TIME_LEGACY: &str = "sla-waiting-time";

// Topology and devices.

/// Annotation of a pod: NUMA policy.
pub const NUMA_TOPOLOGY_POLICY: &str = "volcano.sh/numa-topology-policy";
/// Annotation of a pod: NUMA decision, written when binding.
pub const TOPOLOGY_DECISION: &str = "volcano.sh/topology-decision";
/// Annotation of a pod: `hard` or `soft` network topology of the PodGroup made for it.
pub const NETWORK_TOPOLOGY_MODE: &str = "volcano.sh/network-topology-mode";
/// Annotation of a pod: highest HyperNode tier of the PodGroup made for it.
pub const NETWORK_TOPOLOGY_HIGHEST_TIER: &str = "volcano.sh/network-topology-highest-tier";
/// Label of a HyperNode: where it was discovered.
pub const NETWORK_TOPOLOGY_SOURCE: &str = "volcano.sh/network-topology-source";
/// Annotation of a PodGroup: HyperNode of the whole job (compared by Volcano, never produced, B24).
pub const JOB_ALLOCATED_HYPERNODE: &str = "volcano.sh/job-allocated-hypernode";
/// Annotation of a pod: indices of the GPUs it may use.
pub const GPU_INDEX: &str = "volcano.sh/gpu-index";
/// Annotation of a pod: when its devices were chosen.
pub const PREDICATE_TIME: &str = "volcano.sh/predicate-time";

// Nodes.

/// Label of a node: it offers more than it has.
pub const OVERSUBSCRIPTION: &str = "volcano.sh/oversubscription";
/// Annotation of a node: additional cpu in milli.
pub const OVERSUBSCRIPTION_CPU: &str = "volcano.sh/oversubscription-cpu";
/// Annotation of a node: additional memory in bytes.
pub const OVERSUBSCRIPTION_MEMORY: &str = "volcano.sh/oversubscription-memory";
/// Annotation of a node: offline pods are being evicted from it.
pub const OFFLINE_JOB_EVICTING: &str = "volcano.sh/offline-job-evicting";
/// Label of a node: warm-up pool of sharding (value `true`).
pub const NODE_WARMUP: &str = "node.volcano.sh/warmup";
/// Label of a node: its host name.
pub const HOSTNAME: &str = "kubernetes.io/hostname";
/// Label of a node: its zone.
pub const TOPOLOGY_ZONE: &str = "topology.kubernetes.io/zone";
/// Label of a node: its region.
pub const TOPOLOGY_REGION: &str = "topology.kubernetes.io/region";

// Queues and pods of other controllers.

/// Annotation of a queue: path in the hierarchy of plugin `drf`.
pub const HIERARCHY: &str = "volcano.sh/hierarchy";
/// Annotation of a queue: weights along [`HIERARCHY`].
pub const HIERARCHY_WEIGHTS: &str = "volcano.sh/hierarchy-weights";
/// Annotation of a queue: `true` when it was closed because its parent was.
pub const CLOSED_BY_PARENT: &str = "volcano.sh/closed-by-parent";
/// Annotation of a pod: resource group of the admission configuration.
pub const RESOURCE_GROUP: &str = "volcano.sh/resource-group";
/// Annotation of a pod: colocation settings.
pub const COLOCATION_CONFIG: &str = "volcano.sh/colocation-config";
/// Annotation of a pod: name of its ColocationConfiguration.
pub const COLOCATION_CONFIG_NAME: &str = "volcano.sh/colocation-config-name";

// Tephra's own.

/// Prefix of every key of ours.
pub const TEPHRA_PREFIX: &str = "tephra.sh/";
/// Annotation of a PodGroup: W3C trace context of the job's life.
pub const TRACEPARENT: &str = "tephra.sh/traceparent";
/// Annotation of a PodGroup: the scheduler wants the gang to make room (JSON, `features.md` 2.2).
pub const SUSPEND: &str = "tephra.sh/suspend";
/// Annotation of an owner and its PodGroup: we suspended it; what it needs to come back (JSON).
pub const SUSPENDED: &str = "tephra.sh/suspended";
/// Annotation of a PodGroup: the scheduler holds room for the suspended gang, which may come back (value: id of the suspension).
pub const RESUME: &str = "tephra.sh/resume";
/// Annotation of an owner and its PodGroup: how often and how long it was suspended in its life (JSON).
pub const SUSPENSIONS: &str = "tephra.sh/suspensions";
/// Annotation of a running pod: write a checkpoint, `<id>;deadline=<RFC 3339>`.
pub const CHECKPOINT_REQUEST: &str = "tephra.sh/checkpoint-request";
/// Annotation that a pod writes on itself: the checkpoint of this id is written.
pub const CHECKPOINT_ACK: &str = "tephra.sh/checkpoint-ack";
/// Annotation that a pod writes on itself: when it last wrote a checkpoint, RFC 3339.
pub const LAST_CHECKPOINT: &str = "tephra.sh/last-checkpoint";
/// Annotation of a pod: the same, as proposed to Volcano.
pub const LAST_CHECKPOINT_VOLCANO: &str = "volcano.sh/last-checkpoint-time";
/// Annotation of an owner: who suspended it by hand (`user`); we never resume it.
pub const HOLD: &str = "tephra.sh/hold";
/// Value of [`HOLD`] that `tephra suspend` writes.
pub const HELD_BY_USER: &str = "user";
/// Annotation of a pod without an owner: after an eviction it is created again (value `true`).
pub const RECREATE: &str = "tephra.sh/recreate";
/// Annotation of a workload, PodGroup or pod: how long a restart takes before work goes on, a Go duration.
pub const RESTART_COST: &str = "tephra.sh/restart-cost";
/// Annotation of a workload, PodGroup or pod: how long it is expected to run, a Go duration.
pub const EXPECTED_RUNTIME: &str = "tephra.sh/expected-runtime";
/// Annotation of a PodGroup: when the scheduler expects to start it, RFC 3339.
pub const PREDICTED_START: &str = "tephra.sh/predicted-start";
/// Annotation of a queue: its turn as plugin `wfq` keeps it (JSON).
pub const FAIRNESS: &str = "tephra.sh/fairness";

// Names of programs and of what belongs to them.

/// Name that pods give in `spec.schedulerName` to be placed by us.
pub const SCHEDULER_NAME: &str = "volcano";
/// Queue of PodGroups that name none.
pub const DEFAULT_QUEUE: &str = "default";
/// Queue above all others.
pub const ROOT_QUEUE: &str = "root";

#[cfg(test)]
mod tests {
    #[test]
    fn every_key_has_one_constant() {
        let mut values: Vec<&str> = include_str!("keys.rs")
            .lines()
            .filter(|line| line.starts_with("pub const"))
            .filter_map(|line| line.split('"').nth(1))
            .collect();
        let all = values.len();
        values.sort_unstable();
        values.dedup();
        assert_eq!(values.len(), all);
        assert!(all > 50);
    }
}
