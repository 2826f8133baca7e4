//! What a scenario file may say: the union of the project's own format and of recorded decisions of the real
//! Volcano. Only shapes live here; reading is in [`super::file`], meaning in [`super::world`] and
//! [`super::expect`]. Every struct refuses keys it does not know, so a misspelt expectation is an error and
//! never a test that passes because it checks nothing.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// One document: a small cluster story and what must hold after it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Scenario {
    /// Name, unique among the files of a folder.
    pub name: Option<String>,
    /// Name of a recorded scenario.
    pub id: Option<String>,
    /// Where the story comes from: a public thread, a recorded test, or `own`.
    pub source: Option<String>,
    /// Short statement of what a recorded scenario is about.
    pub title: Option<String>,
    /// Group of related scenarios.
    pub theme: Option<String>,
    /// Part of the system under test.
    pub component: Option<String>,
    /// Why a user cares.
    pub description: Option<String>,
    /// Recorded: how much the original test looked at (`all`, `count`, `none`).
    pub checked: Option<String>,
    /// Wall time at the start, RFC 3339. Absent: 2026-01-01T01:00:00Z.
    pub clock: Option<String>,
    /// Scheduler configuration: text of a `volcano-scheduler.conf`, or the same as an object.
    pub conf: Option<Value>,
    /// Sessions to run when there are no steps; 1 when absent.
    pub cycles: Option<u32>,
    /// The story, step by step.
    pub steps: Option<Vec<Step>>,
    /// Objects that exist at the start.
    pub objects: Vec<Value>,
    /// What must hold at the end.
    pub expect: Option<Expect>,
    /// Notes about the real Volcano's behaviour; not judged.
    pub volcano: Option<Value>,
    /// Process flags of a recorded scenario. Its presence marks a recorded file: the world starts bare.
    pub scheduler_options: Option<SchedulerOptions>,
    /// Recorded: which node belongs to which hypernode, where it was given directly.
    pub hyper_node_view: Option<HyperNodeView>,
    /// Recorded: all outcomes seen where the original is not deterministic; a lower bound, not judged.
    pub accepted_outcomes: Option<Vec<Value>>,
    /// Recorded: what the first run did; not judged.
    pub observed: Option<Value>,
    /// Recorded: how often the expectation held; not judged.
    pub verified: Option<Value>,
    /// Recorded: session-level calls with their results.
    pub calls: Option<Vec<Call>>,
    /// Recorded: node shard that the original test set directly.
    pub shard: Option<Value>,
    /// Recorded: nominated hypernodes that the original test set directly.
    pub nominated_hyper_node: Option<Value>,
    /// Recorded: storage provisioners left out of volume counting.
    #[serde(rename = "ignoredCSIProvisioners")]
    pub ignored_csi_provisioners: Option<Value>,
    /// Recorded: plugins that the original test had registered.
    pub registered_plugins: Option<Value>,
    /// Recorded: plugins named by the original configuration without effect.
    pub unregistered_upstream: Option<Value>,
    /// Recorded: false when the calls depend on state that is no object.
    pub replayable: Option<bool>,
}

impl Scenario {
    /// True for files recorded from the real scheduler: they start bare and are judged exactly.
    pub fn recorded(&self) -> bool {
        self.scheduler_options.is_some()
    }

    /// Name to print: `name`, else `id`, else a placeholder.
    pub fn label(&self) -> &str {
        self.name.as_deref().or(self.id.as_deref()).unwrap_or("unnamed")
    }
}

/// One entry of a story; within an entry the fields act in the order in which they stand here.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Step {
    /// Objects to create or replace by kind, namespace and name.
    pub apply: Vec<Value>,
    /// Objects to delete.
    pub delete: Vec<Target>,
    /// Pods whose binds are refused from now on.
    pub fail_bind: Vec<String>,
    /// Moves the clock, e.g. `5m`.
    pub advance: Option<String>,
    /// Throws the scheduler's memory away and rebuilds it from the objects.
    pub restart: bool,
    /// Sessions to run.
    pub run: u32,
    /// What must hold now.
    pub check: Option<Expect>,
}

/// Names an object to delete.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Kind.
    pub kind: String,
    /// Namespace; the default namespace when absent, ignored for kinds without one.
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
}

/// Expectations. Absent keys are not checked.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Expect {
    /// Pod to node, or to a list of allowed nodes. Own files: at least these; empty means nothing is bound.
    /// Recorded files: exactly these.
    pub bind: Option<BTreeMap<String, OneOrMany>>,
    /// Pods bound at some time.
    pub bound: Option<Vec<String>>,
    /// Pods never bound.
    pub pending: Option<Vec<String>>,
    /// Number of binds.
    pub bind_count: Option<usize>,
    /// Exactly these pods were evicted, in any order.
    pub evict: Option<Vec<String>>,
    /// Number of evictions.
    pub evict_count: Option<usize>,
    /// Only pods of this list were evicted.
    pub evict_within: Option<Vec<String>>,
    /// Own files: pod to the node on whose freed room it waits. Recorded files: PodGroup to nodes; at least one
    /// of its pods waits, each on one of these.
    pub pipelined: Option<BTreeMap<String, OneOrMany>>,
    /// Phase of PodGroups.
    pub pod_group_phase: Option<BTreeMap<String, String>>,
    /// Reason of the pod condition `PodScheduled`.
    pub pod_reason: Option<BTreeMap<String, String>>,
    /// Reason that the pod condition `PodScheduled` must not have.
    pub pod_reason_not: Option<BTreeMap<String, String>>,
    /// Status of queues.
    pub queue_status: Option<BTreeMap<String, QueueExpect>>,
    /// Words in conditions or events of objects.
    pub message: Option<Vec<Words>>,
    /// Words that conditions and events of objects must not have.
    pub message_not: Option<Vec<Words>>,
    /// At most so many events on an object.
    pub event_count_max: Option<BTreeMap<String, usize>>,
    /// All bound, each on another node.
    pub distinct_nodes: Option<Vec<String>>,
    /// Each list bound completely or not at all.
    pub whole_groups: Option<Vec<Vec<String>>>,
    /// The configuration was refused with these words.
    pub config_error: Option<Contains>,
    /// The configuration was accepted with a warning that has these words.
    pub config_warning: Option<Contains>,
    /// PodGroup to task status to number of pods.
    pub task_status_count: Option<BTreeMap<String, BTreeMap<String, usize>>>,
    /// Binds per hypernode of the lowest tier, sorted, without zeroes.
    pub bind_counts_per_hyper_node: Option<Vec<usize>>,
    /// Several outcomes are right: one of these must hold.
    pub any_of: Option<Vec<Expect>>,
}

/// A single text or a list of allowed texts.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(untagged, expecting = "expected a node name or a list of node names")]
pub enum OneOrMany {
    /// One.
    One(String),
    /// Any of these.
    Many(Vec<String>),
}

impl OneOrMany {
    /// The allowed texts.
    pub fn as_slice(&self) -> &[String] {
        match self {
            Self::One(text) => std::slice::from_ref(text),
            Self::Many(texts) => texts,
        }
    }

    /// True when `text` is allowed.
    pub fn allows(&self, text: &str) -> bool {
        self.as_slice().iter().any(|allowed| allowed == text)
    }
}

impl std::fmt::Display for OneOrMany {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.as_slice().join(" or "))
    }
}

/// Expected status of a queue.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct QueueExpect {
    /// `status.state`.
    pub state: Option<String>,
    /// `status.allocated`: quantities, compared by value; absent in the status counts as 0.
    pub allocated: Option<BTreeMap<String, Scalar>>,
}

/// A quantity written as text or as a plain number.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "expected a quantity")]
pub enum Scalar {
    /// As text.
    Text(String),
    /// As a number.
    Number(serde_json::Number),
}

impl std::fmt::Display for Scalar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Number(number) => write!(f, "{number}"),
        }
    }
}

/// Words to look for on an object.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Words {
    /// `Kind/name` or `Kind/namespace/name`.
    pub object: String,
    /// The words; case matters.
    pub contains: Vec<String>,
}

/// Words to look for in one text.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contains {
    /// The words; case matters.
    pub contains: Vec<String>,
}

/// Process flags of a recorded run.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct SchedulerOptions {
    /// `--default-queue`.
    pub default_queue: Option<String>,
    /// `--csi-storage`.
    #[serde(rename = "enableCSIStorage")]
    pub enable_csi_storage: Option<bool>,
    /// `--priority-class`.
    pub enable_priority_class: Option<bool>,
    /// `--minimum-feasible-nodes`; sampling is not done here.
    pub min_nodes_to_find: Option<i64>,
    /// `--minimum-percentage-nodes-to-find`.
    pub min_percentage_of_nodes_to_find: Option<i64>,
    /// `--percentage-nodes-to-find`.
    pub percentage_of_nodes_to_find: Option<i64>,
    /// `--sharding-mode`.
    pub sharding_mode: Option<String>,
    /// `--shard-name`.
    pub shard_name: Option<String>,
}

/// Membership of nodes in hypernodes as a recorded test set it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct HyperNodeView {
    /// Hypernode to its nodes.
    pub members: BTreeMap<String, Vec<String>>,
    /// Tier (as text) to its hypernodes.
    pub tiers: BTreeMap<String, Vec<String>>,
}

/// A recorded call of a session-level function.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Call {
    /// Name, e.g. `framework.Session.NodeOrderFn`.
    #[serde(rename = "fn")]
    pub function: String,
    /// Arguments by name.
    #[serde(default)]
    pub args: Value,
    /// Arguments after the call.
    #[serde(default)]
    pub args_after: Value,
    /// Result; null also stands for "no error".
    #[serde(default)]
    pub result: Value,
}
