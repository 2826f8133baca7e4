//! What the world tells the core. Every fact reaches the scheduling state as one [`Event`]; nothing else
//! writes to it. Objects are plain structs of owned data: whoever decodes the API server's JSON (the
//! scheduler's watchers, the scenario reader, a bench) fills them in, so the core knows no wire format.
//!
//! Amounts are in Volcano's stored units: cpu in milli, memory in bytes, `pods` in whole pods, every other
//! resource in milli of its unit ([`tephra_api::resource::stored_amount`]). Times are milliseconds since the
//! Unix epoch, 0 when the object carries none.

use std::sync::Arc;

use tephra_api::quantity::Quantity;
use tephra_api::suspension::Intent;

/// Requested or available amounts by resource name, sorted by name, each name once, never negative.
pub type Amounts = Vec<(String, i64)>;

/// Exact quantities by name, sorted by name, each name once: names of quotas, of which most are no resource of a node.
pub type Quantities = Vec<(String, Quantity)>;

/// Labels or annotations, sorted by key, each key once.
pub type Labels = Vec<(String, String)>;

/// Namespace and name of a namespaced object.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey {
    /// Namespace of the object.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
}

impl ObjectKey {
    /// Builds a key from its two parts.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl std::fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// One fact about the world. Events are applied in the order in which they arrive.
#[derive(Clone, Debug)]
pub enum Event {
    /// A node was added or changed.
    Node(NodeObject),
    /// The node of this name is gone.
    NodeDeleted(String),
    /// A pod was added or changed (any pod: ours, or one that only uses a node).
    Pod(PodObject),
    /// The pod of this uid is gone.
    PodDeleted(String),
    /// A PodGroup was added or changed.
    PodGroup(PodGroupObject),
    /// The PodGroup of this key is gone.
    PodGroupDeleted(ObjectKey),
    /// A queue was added or changed.
    Queue(QueueObject),
    /// The queue of this name is gone.
    QueueDeleted(String),
    /// A queue's policy was added or changed.
    QueuePolicy(QueuePolicyObject),
    /// The policy of the queue of this name is gone.
    QueuePolicyDeleted(String),
    /// A hypernode was added or changed.
    HyperNode(HyperNodeObject),
    /// The hypernode of this name is gone.
    HyperNodeDeleted(String),
    /// A priority class was added or changed.
    PriorityClass(PriorityClassObject),
    /// The priority class of this name is gone.
    PriorityClassDeleted(String),
    /// A namespace was added or its labels changed (namespace selectors of pod affinity read them).
    Namespace(NamespaceObject),
    /// The namespace of this name is gone.
    NamespaceDeleted(String),
    /// A PersistentVolumeClaim was added or changed.
    VolumeClaim(VolumeClaimObject),
    /// The PersistentVolumeClaim of this key is gone.
    VolumeClaimDeleted(ObjectKey),
    /// A PersistentVolume was added or changed.
    Volume(VolumeObject),
    /// The PersistentVolume of this name is gone.
    VolumeDeleted(String),
    /// A PodDisruptionBudget was added or changed.
    DisruptionBudget(DisruptionBudgetObject),
    /// The PodDisruptionBudget of this key is gone.
    DisruptionBudgetDeleted(ObjectKey),
    /// Whether PodDisruptionBudgets may be read.
    DisruptionBudgetsReadable(bool),
    /// A ResourceQuota was added or changed.
    ResourceQuota(ResourceQuotaObject),
    /// The ResourceQuota of this key is gone.
    ResourceQuotaDeleted(ObjectKey),
    /// The API server accepted our bind of this pod uid.
    BindOk(String),
    /// The API server refused our bind of this pod uid for good: the pod is not bound to that node.
    /// An unknown outcome is never reported as a failure; the binder reads the pod first.
    BindFailed {
        /// Pod uid.
        uid: String,
        /// Why, in words that a user reads in the pod's condition.
        message: String,
    },
    /// The API server accepted (or found done) our eviction of this pod uid.
    EvictOk(String),
    /// The API server refused our eviction of this pod uid.
    EvictFailed {
        /// Pod uid.
        uid: String,
        /// Why.
        message: String,
    },
}

/// A node as far as scheduling needs it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeObject {
    /// Name.
    pub name: String,
    /// Labels.
    pub labels: Labels,
    /// `spec.taints`.
    pub taints: Vec<Taint>,
    /// `spec.unschedulable`.
    pub unschedulable: bool,
    /// `status.allocatable` (plus oversubscription annotations) in stored units.
    pub allocatable: Amounts,
    /// Images present: every name of `status.images[].names` with its size in bytes.
    pub images: Vec<(String, i64)>,
}

/// A taint of a node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Taint {
    /// Key.
    pub key: String,
    /// Value, empty when absent.
    pub value: String,
    /// Effect.
    pub effect: TaintEffect,
}

/// Effect of a taint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TaintEffect {
    /// `NoSchedule`.
    NoSchedule,
    /// `PreferNoSchedule`.
    PreferNoSchedule,
    /// `NoExecute`.
    NoExecute,
}

/// `status.phase` of a pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PodPhase {
    /// `Pending`, also when absent.
    #[default]
    Pending,
    /// `Running`.
    Running,
    /// `Succeeded`.
    Succeeded,
    /// `Failed`.
    Failed,
    /// `Unknown` and anything else.
    Unknown,
}

/// A pod as far as scheduling needs it.
#[derive(Clone, Debug, Default)]
pub struct PodObject {
    /// Namespace and name.
    pub key: ObjectKey,
    /// `metadata.uid`: the identity. A pod re-created under the same name is another pod.
    pub uid: String,
    /// Creation time.
    pub created_ms: i64,
    /// True when `spec.schedulerName` is one of ours: only such pods are placed by us.
    pub ours: bool,
    /// PodGroup name from annotation `scheduling.k8s.io/group-name`.
    pub group: Option<String>,
    /// Role from `volcano.sh/task-spec` (annotation, then label), empty when absent.
    pub role: String,
    /// Annotation `volcano.sh/task-priority`, else `spec.priority`, else 1 (B50).
    pub priority: i32,
    /// `spec.priority`, 0 when absent: what preemption compares.
    pub spec_priority: i32,
    /// `spec.priorityClassName`.
    pub priority_class: String,
    /// Annotation then label `volcano.sh/preemptable`; absent is true, unparsable is false.
    pub preemptable: bool,
    /// `spec.preemptionPolicy` is `Never`: nobody is evicted for it.
    pub never_preempts: bool,
    /// Until when its label, then annotation, `volcano.sh/cooldown-time` protects it: that long after it was scheduled,
    /// while it runs (plugin cdp).
    pub cooling_until_ms: Option<i64>,
    /// How long it is expected to run, by its annotation `tephra.sh/expected-runtime`, at most `spec.activeDeadlineSeconds`.
    pub runtime_ms: Option<i64>,
    /// When it last wrote a checkpoint, by its annotation.
    pub last_checkpoint_ms: Option<i64>,
    /// `status.startTime`.
    pub started_ms: Option<i64>,
    /// `status.phase`.
    pub phase: PodPhase,
    /// `metadata.deletionTimestamp` is set.
    pub deleting: bool,
    /// Condition `DisruptionTarget` says that a scheduler evicts it.
    pub evicted: bool,
    /// `spec.nodeName`.
    pub node: Option<String>,
    /// `status.nominatedNodeName`.
    pub nominated: Option<String>,
    /// `spec.schedulingGates` is not empty.
    pub gated: bool,
    /// `spec.activeDeadlineSeconds` is set: what quotas call a terminating pod.
    pub has_deadline: bool,
    /// Labels (pod affinity, topology spread and sub-groups select on them).
    pub labels: Labels,
    /// Names of PersistentVolumeClaims used (generic ephemeral volumes by their derived claim name).
    pub claims: Vec<String>,
    /// Parts that nothing here can place yet, in a user's words, e.g. `ResourceClaim "gpu"`. Not empty: held.
    pub unsupported: Vec<String>,
    /// Reason and message of a present condition `PodScheduled=False`.
    pub scheduled_condition: Option<(String, String)>,
    /// Everything that decides where the pod fits and how nodes score; pods of one template share it.
    pub spec: Arc<PodSpec>,
}

impl Default for ObjectKey {
    fn default() -> Self {
        Self { namespace: "default".to_owned(), name: String::new() }
    }
}

/// The part of a pod that all pods of one template have in common: the core groups pods by it into classes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PodSpec {
    /// Namespace (pod affinity terms are relative to it).
    pub namespace: String,
    /// Effective request in stored units: containers, init containers, sidecars, overhead, pod-level
    /// resources, and `pods: 1` (Volcano 2.2). Names with amount 0 are kept.
    pub requests: Amounts,
    /// Request with Kubernetes' defaults for what is missing (100 m, 200 MiB per container): scores only
    /// (P50). Cpu in milli and memory in bytes.
    pub nonzero: [i64; 2],
    /// `spec.nodeSelector`.
    pub node_selector: Labels,
    /// Required node affinity: alternatives, each a conjunction. Empty: no requirement.
    pub required_node_terms: Vec<NodeSelectorTerm>,
    /// Preferred node affinity with weights 1..100.
    pub preferred_node_terms: Vec<(i32, NodeSelectorTerm)>,
    /// `spec.tolerations`.
    pub tolerations: Vec<Toleration>,
    /// It may use nodes of a revocable zone: annotation `volcano.sh/revocable-zone` is `*`, or without that one
    /// annotation `volcano.sh/preemptable` is true (plugin tdm).
    pub revocable: bool,
    /// Host ports in use.
    pub host_ports: Vec<HostPort>,
    /// Required inter-pod affinity.
    pub pod_affinity: Vec<PodAffinityTerm>,
    /// Required inter-pod anti-affinity.
    pub pod_anti_affinity: Vec<PodAffinityTerm>,
    /// Preferred inter-pod affinity with weights; anti-affinity has negative weights.
    pub preferred_pod_affinity: Vec<(i32, PodAffinityTerm)>,
    /// Topology spread constraints.
    pub spread: Vec<SpreadConstraint>,
    /// Images of containers and init containers, as written.
    pub images: Vec<String>,
}

/// A conjunction of requirements on a node. A term without requirements matches nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct NodeSelectorTerm {
    /// `matchExpressions` on labels.
    pub expressions: Vec<Requirement>,
    /// `matchFields`; the only known field is `metadata.name`.
    pub fields: Vec<Requirement>,
}

/// `key operator values`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Requirement {
    /// Label key or field name.
    pub key: String,
    /// Operator.
    pub operator: Operator,
    /// Values.
    pub values: Vec<String>,
}

/// Operator of a [`Requirement`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operator {
    /// Value is in the list.
    In,
    /// Value is absent or not in the list.
    NotIn,
    /// Key is present.
    Exists,
    /// Key is absent.
    DoesNotExist,
    /// Integer value is greater than the one listed.
    Gt,
    /// Integer value is less than the one listed.
    Lt,
    /// An operator that nobody knows: matches nothing.
    Invalid,
}

/// A toleration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Toleration {
    /// Key; empty with `exists` tolerates every key.
    pub key: String,
    /// Value, compared unless `exists`.
    pub value: String,
    /// Operator is `Exists` (else `Equal`).
    pub exists: bool,
    /// Effect; `None` tolerates all.
    pub effect: Option<TaintEffect>,
}

/// A port that a container takes on its host.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostPort {
    /// Port number.
    pub port: u16,
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: String,
    /// Address; `0.0.0.0` (also when absent) conflicts with every address.
    pub ip: String,
}

/// Selects pods by label, as `metav1.LabelSelector`. Empty selects all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct LabelSelector {
    /// All requirements (`matchLabels` become `In` with one value).
    pub requirements: Vec<Requirement>,
}

/// A term of inter-pod (anti-)affinity.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PodAffinityTerm {
    /// Pods selected; `None` (absent) selects none.
    pub selector: Option<LabelSelector>,
    /// Namespaces by name. Empty together with no `namespace_selector`: the pod's own namespace.
    pub namespaces: Vec<String>,
    /// Namespaces by label; `Some` of the empty selector selects all.
    pub namespace_selector: Option<LabelSelector>,
    /// Node label that names the domain.
    pub topology_key: String,
}

/// A topology spread constraint.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SpreadConstraint {
    /// `maxSkew`.
    pub max_skew: i32,
    /// Node label that names the domain.
    pub topology_key: String,
    /// `whenUnsatisfiable: DoNotSchedule` (else `ScheduleAnyway`).
    pub hard: bool,
    /// Pods counted; `matchLabelKeys` are already merged in by the reader.
    pub selector: LabelSelector,
    /// `minDomains`, 1 when absent.
    pub min_domains: i32,
    /// `nodeAffinityPolicy: Honor` (the default): only nodes that match the pod's affinity are counted.
    pub honor_affinity: bool,
    /// `nodeTaintsPolicy: Honor`: only nodes whose taints are tolerated are counted.
    pub honor_taints: bool,
}

/// `status.phase` of a PodGroup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PodGroupPhase {
    /// `Pending`, also when absent or unknown text.
    #[default]
    Pending,
    /// `Inqueue`.
    Inqueue,
    /// `Running`.
    Running,
    /// `Unknown`.
    Unknown,
    /// `Completed`.
    Completed,
}

impl PodGroupPhase {
    /// The text on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Inqueue => "Inqueue",
            Self::Running => "Running",
            Self::Unknown => "Unknown",
            Self::Completed => "Completed",
        }
    }

    /// Reads the text on the wire; anything unknown counts as `Pending`.
    pub fn parse(text: &str) -> Self {
        match text {
            "Inqueue" => Self::Inqueue,
            "Running" => Self::Running,
            "Unknown" => Self::Unknown,
            "Completed" => Self::Completed,
            _ => Self::Pending,
        }
    }
}

/// A condition of a PodGroup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupCondition {
    /// `type`.
    pub kind: String,
    /// `status` is `True`.
    pub status: bool,
    /// `transitionID`.
    pub transition_id: String,
    /// `lastTransitionTime`.
    pub since_ms: i64,
    /// `reason`.
    pub reason: String,
    /// `message`.
    pub message: String,
}

/// `status` of a PodGroup: read with the object, written by a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodGroupStatus {
    /// Phase.
    pub phase: PodGroupPhase,
    /// Conditions in the order of the object.
    pub conditions: Vec<GroupCondition>,
    /// Pods running.
    pub running: i32,
    /// Pods succeeded.
    pub succeeded: i32,
    /// Pods failed.
    pub failed: i32,
}

/// A PodGroup: the gang that the core calls a job.
#[derive(Clone, Debug, Default)]
pub struct PodGroupObject {
    /// Namespace and name.
    pub key: ObjectKey,
    /// `metadata.uid`.
    pub uid: String,
    /// Creation time.
    pub created_ms: i64,
    /// Its place in the queue, where suspensions have given it another than its creation.
    pub queued_ms: Option<i64>,

    /// `spec.queue`, empty when absent (the default queue then).
    pub queue: String,
    /// `spec.minMember`; negative values count as 0.
    pub min_member: i32,
    /// `spec.minTaskMember`, sorted by role.
    pub min_task_member: Vec<(String, i32)>,
    /// `spec.minResources` in stored units.
    pub min_resources: Option<Amounts>,
    /// `spec.minResources` as written: the names of quotas, of which most are no resource of a node.
    pub min_quantities: Quantities,
    /// `spec.priorityClassName`.
    pub priority_class: String,
    /// `spec.networkTopology`: how close to each other all members must be.
    pub topology: Option<NetworkTopology>,
    /// `spec.subGroupPolicy` in its order.
    pub sub_groups: Vec<SubGroupPolicy>,
    /// Annotations (small; plugins read their keys).
    pub annotations: Labels,
    /// Labels.
    pub labels: Labels,
    /// Status as stored.
    pub status: PodGroupStatus,
    /// What its annotations say of its suspension, if anything.
    pub suspension: Option<Box<Suspension>>,
}

/// What annotations of a PodGroup say of its suspension (`tephra_api::suspension`).
#[derive(Clone, Debug, Default)]
pub struct Suspension {
    /// It is asked to make room.
    pub intent: Option<Intent>,
    /// It is being stopped, or down.
    pub record: Option<SuspensionRecord>,
    /// The id of the suspension that it may come back from.
    pub resume: Option<String>,
    /// A person wants it to stay down.
    pub hold: bool,
}

/// A gang that is down, as far as scheduling needs to know.
#[derive(Clone, Debug, Default)]
pub struct SuspensionRecord {
    /// Id of the suspension.
    pub id: String,
    /// `namespace/name` of the gang that made it go.
    pub by: String,
    /// When it was stopped.
    pub at_ms: i64,
    /// Name of the PodGroup whose pods come back: another one where this PodGroup stands in for one that was deleted.
    pub group: String,
    /// Its pods: how many of each shape. Names and uids mean nothing.
    pub members: Vec<(u32, Arc<PodObject>)>,
}

/// `networkTopology` of a PodGroup or a sub-group policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkTopology {
    /// `mode: hard`, also when absent; else `soft`.
    pub hard: bool,
    /// `highestTierAllowed`.
    pub highest_tier: Option<i32>,
    /// `highestTierName`, empty when absent.
    pub highest_tier_name: String,
}

/// A kind of sub-group of a PodGroup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubGroupPolicy {
    /// `name`.
    pub name: String,
    /// `subGroupSize`: members that a sub-group needs, 1 when absent; values below 0 count as 0.
    pub size: i32,
    /// `minSubGroups`: sub-groups that the gang needs; values below 0 count as 0.
    pub min_sub_groups: i32,
    /// `labelSelector`; `None` (absent) selects all pods.
    pub selector: Option<LabelSelector>,
    /// `matchLabelKeys`: labels whose values tell the sub-groups apart. Without any, no pod belongs to one (B19).
    pub match_label_keys: Vec<String>,
    /// `networkTopology` of each sub-group.
    pub topology: Option<NetworkTopology>,
}

/// A hypernode: nodes that are close to each other in the network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HyperNodeObject {
    /// Name.
    pub name: String,
    /// `metadata.uid`.
    pub uid: String,
    /// `spec.tier`: the lower, the closer.
    pub tier: i32,
    /// `spec.tierName`, empty when absent.
    pub tier_name: String,
    /// `spec.members`.
    pub members: Vec<HyperNodeMember>,
}

/// Members of a hypernode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HyperNodeMember {
    /// `type: HyperNode` (else `Node`).
    pub is_hyper_node: bool,
    /// Which ones.
    pub selector: MemberSelector,
}

/// How a hypernode names its members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberSelector {
    /// `exactMatch.name`.
    Exact(String),
    /// `regexMatch.pattern`, found anywhere in the name.
    Regex(String),
    /// `labelMatch`; the empty selector selects nothing.
    Labels(LabelSelector),
    /// None of the three.
    None,
}

/// `status.state` of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum QueueState {
    /// `Open`.
    Open,
    /// `Closed`.
    Closed,
    /// `Closing`.
    Closing,
    /// `Unknown`, and absent.
    #[default]
    Unknown,
}

/// A queue.
#[derive(Clone, Debug, Default)]
pub struct QueueObject {
    /// Name.
    pub name: String,
    /// `metadata.uid`.
    pub uid: String,
    /// Creation time.
    pub created_ms: i64,
    /// `spec.weight`; values below 1 count as 1.
    pub weight: i32,
    /// `spec.priority`.
    pub priority: i32,
    /// `spec.parent`, empty when absent.
    pub parent: String,
    /// `spec.capability`.
    pub capability: Option<Amounts>,
    /// `spec.deserved`.
    pub deserved: Option<Amounts>,
    /// `spec.guarantee.resource`.
    pub guarantee: Option<Amounts>,
    /// `spec.reclaimable`, absent is true.
    pub reclaimable: bool,
    /// `spec.dequeueStrategy` is `fifo`.
    pub fifo: bool,
    /// `status.state`.
    pub state: QueueState,
    /// `status.allocated` as stored, in stored units.
    pub allocated: Amounts,
    /// Annotations (hierarchy keys).
    pub annotations: Labels,
}

/// A priority class.
#[derive(Clone, Debug, Default)]
pub struct PriorityClassObject {
    /// Name.
    pub name: String,
    /// `value`.
    pub value: i32,
    /// `globalDefault`.
    pub global_default: bool,
}

/// A namespace.
#[derive(Clone, Debug, Default)]
pub struct NamespaceObject {
    /// Name.
    pub name: String,
    /// Labels.
    pub labels: Labels,
}

/// A PersistentVolumeClaim.
#[derive(Clone, Debug, Default)]
pub struct VolumeClaimObject {
    /// Namespace and name.
    pub key: ObjectKey,
    /// `spec.volumeName` when the claim is fully bound (phase `Bound`), else `None`.
    pub volume: Option<String>,
    /// `metadata.deletionTimestamp` is set.
    pub deleting: bool,
}

/// A PersistentVolume.
#[derive(Clone, Debug, Default)]
pub struct VolumeObject {
    /// Name.
    pub name: String,
    /// `spec.nodeAffinity.required.nodeSelectorTerms`; empty: usable everywhere.
    pub node_terms: Vec<NodeSelectorTerm>,
}

/// A PodDisruptionBudget.
#[derive(Clone, Debug, Default)]
pub struct DisruptionBudgetObject {
    /// Namespace and name.
    pub key: ObjectKey,
    /// `spec.selector`; absent selects nothing, empty selects every pod of the namespace.
    pub selector: Option<LabelSelector>,
    /// `status.disruptionsAllowed`; 0 when absent, negative, or older than the budget's specification.
    pub allowed: u32,
    /// Names in `status.disruptedPods`, sorted: evictions that `allowed` counts already.
    pub disrupted: Vec<String>,
}

/// A ResourceQuota.
#[derive(Clone, Debug, Default)]
pub struct ResourceQuotaObject {
    /// Namespace and name.
    pub key: ObjectKey,
    /// `status.hard`.
    pub hard: Quantities,
    /// `status.used`.
    pub used: Quantities,
    /// `spec.scopes` and `spec.scopeSelector`: it counts pods that match all of them.
    pub scopes: Vec<QuotaScope>,
}

/// Which pods a ResourceQuota counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuotaScope {
    /// Pods that request neither cpu nor memory (`BestEffort`), or the others (`NotBestEffort`).
    BestEffort(bool),
    /// Pods with `activeDeadlineSeconds` (`Terminating`), or the others (`NotTerminating`).
    Terminating(bool),
    /// Pods by the name of their priority class. Only `In`, `NotIn`, `Exists` and `DoesNotExist` ever match.
    PriorityClass(Operator, Vec<String>),
    /// Pods whose affinity or anti-affinity looks into other namespaces.
    CrossNamespacePodAffinity,
    /// A scope of other objects (`VolumeAttributesClass`), or one that nobody knows yet: counts no pods.
    NotOfPods,
}

/// A QueuePolicy: what it does not say is inherited from the queue above. Times are milliseconds, never negative.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueuePolicyObject {
    /// Name: that of its queue.
    pub name: String,
    /// How jobs of the queue make room.
    pub mode: Option<PreemptionMode>,
    /// A job runs at least this long before it must make room.
    pub min_runtime_ms: Option<i64>,
    /// A job suspended so often within a day is no victim of its equals.
    pub max_suspensions_per_day: Option<u32>,
    /// What a job is asked before it is stopped.
    pub checkpoint: Option<CheckpointMode>,
    /// How long it may take to answer.
    pub grace_ms: Option<i64>,
    /// The queue's weight is the dominant share of what it deserves (else its weight).
    pub weight_from_deserved: Option<bool>,
    /// Turn that an idle queue may save up.
    pub credit_window_ms: Option<i64>,
    /// How far the queue may be ahead of its siblings.
    pub burst_ms: Option<i64>,
    /// Waiting time that equals one step of priority.
    pub wait_priority_ms: Option<i64>,
}

/// How jobs of a queue make room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PreemptionMode {
    /// Their owner is suspended and resumed.
    #[default]
    Suspend,
    /// Their pods are deleted.
    Evict,
    /// Not at all.
    Never,
}

/// What a job is asked before it is stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CheckpointMode {
    /// Nothing.
    #[default]
    None,
    /// To write a checkpoint; it gets the whole grace time.
    Signal,
    /// To write a checkpoint and to say so; it is stopped when all its pods have, at the latest after the grace time.
    Ack,
}
