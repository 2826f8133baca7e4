//! QueuePolicy, the custom resource of group `tephra.sh`: what a team may ask of its queue beyond what Volcano's Queue can say. Cluster scoped and
//! named like its Queue; what it does not say is inherited from the nearest queue above that says it, so no field has a default. Durations are Go's (`90s`, `1h30m`).

use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// How a queue takes its turn and how it gives way.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "tephra.sh",
    version = "v1alpha1",
    kind = "QueuePolicy",
    plural = "queuepolicies",
    singular = "queuepolicy",
    shortname = "qp",
    derive = "Default",
    derive = "PartialEq",
    printcolumn = r#"{"name":"Mode","type":"string","jsonPath":".spec.preemption.mode"}"#,
    printcolumn = r#"{"name":"Checkpoint","type":"string","jsonPath":".spec.preemption.checkpoint.mode"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct QueuePolicySpec {
    /// How jobs of the queue make room.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preemption: Option<PreemptionPolicy>,
    /// How the queue takes its turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fairness: Option<FairnessPolicy>,
}

/// How jobs of a queue make room for others.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct PreemptionPolicy {
    /// `Suspend` (also where no queue above says anything): the owner is suspended and comes back by itself. `Evict`: pods are deleted, as Volcano
    /// does. `Never`: the queue's jobs make no room.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Evict", "Suspend", "Never"]))]
    pub mode: Option<String>,
    /// A job runs at least this long, unless its own queue is above its capability.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "duration")]
    pub min_runtime: Option<String>,
    /// A job that was suspended so often within 24 hours is no victim of its equals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1000))]
    pub max_suspensions_per_day: Option<i32>,
    /// What happens before a job is stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<CheckpointPolicy>,
}

/// What happens before a job is stopped.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend(
    "x-kubernetes-preserve-unknown-fields" = true,
    "x-kubernetes-validations" = [{
        "rule": "!has(self.grace) || duration(self.grace) <= duration('15m')",
        "message": "grace must be at most 15m"
    }]
))]
pub struct CheckpointPolicy {
    /// `None`: stop at once. `Signal`: ask for a checkpoint and wait for the grace time. `Ack`: until every pod says it is done, at most the grace time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["None", "Signal", "Ack"]))]
    pub mode: Option<String>,
    /// How long the pods may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "duration")]
    pub grace: Option<String>,
}

/// How a queue takes its turn among its siblings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct FairnessPolicy {
    /// `Weight`: the Queue's weight. `Deserved`: the dominant share of what it deserves, its weight when it names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Weight", "Deserved"]))]
    pub weight_from: Option<String>,
    /// How much turn an idle queue may save up, as time of its full share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "duration")]
    pub credit_window: Option<String>,
    /// How far, as time of its full share, the queue may be ahead of its waiting siblings before it must wait for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "duration")]
    pub burst: Option<String>,
    /// How long a job must wait to pass one of its queue with a priority one higher; absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "duration")]
    pub wait_priority: Option<String>,
}

/// Schema of a duration in Go's notation, not negative.
fn duration(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "nullable": true,
        "maxLength": 32,
        "pattern": r"^(0|([0-9]+(\.[0-9]+)?(ms|s|m|h))+)$"
    })
}
