//! Custom resources of group `topology.volcano.sh` as Rust types: which nodes are close to each other in the network.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Nodes, or hypernodes of lower tiers, that are close to each other.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "topology.volcano.sh",
    version = "v1alpha1",
    kind = "HyperNode",
    plural = "hypernodes",
    singular = "hypernode",
    shortname = "hn",
    status = "HyperNodeStatus",
    derive = "Default",
    derive = "PartialEq",
    printcolumn = r#"{"name":"Tier","type":"string","jsonPath":".spec.tier"}"#,
    printcolumn = r#"{"name":"TierName","type":"string","jsonPath":".spec.tierName"}"#,
    printcolumn = r#"{"name":"NodeCount","type":"integer","jsonPath":".status.nodeCount"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct HyperNodeSpec {
    /// How far apart the members are: the lower, the closer.
    #[schemars(range(min = 0))]
    pub tier: i32,
    /// Name of the tier, which PodGroups may use instead of its number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub tier_name: Option<String>,
    /// What belongs to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub members: Option<Vec<Member>>,
}

/// Some members.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct Member {
    /// `Node` or `HyperNode`.
    #[serde(rename = "type")]
    #[schemars(extend("enum" = ["Node", "HyperNode"]))]
    pub type_: String,
    /// Which ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<MemberSelector>,
}

/// Names members in exactly one way; hypernodes only by `exactMatch`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend(
    "x-kubernetes-preserve-unknown-fields" = true,
    "x-kubernetes-validations" = [
        {
            "rule": "has(self.exactMatch) || has(self.regexMatch) || has(self.labelMatch)",
            "message": "Either ExactMatch or RegexMatch or LabelMatch must be specified"
        },
        {
            "rule": "(has(self.exactMatch) ? 1 : 0) + (has(self.regexMatch) ? 1 : 0) + (has(self.labelMatch) ? 1 : 0) <= 1",
            "message": "Only one of ExactMatch, RegexMatch, or LabelMatch can be specified"
        }
    ]
))]
pub struct MemberSelector {
    /// One member by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exact_match: Option<ExactMatch>,
    /// Nodes whose names have the pattern somewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regex_match: Option<RegexMatch>,
    /// Nodes by label; the empty selector selects none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub label_match: Option<LabelSelector>,
}

/// A name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExactMatch {
    /// Name of the member.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// A pattern.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RegexMatch {
    /// Pattern in RE2's syntax.
    #[schemars(length(min = 1))]
    pub pattern: String,
}

/// What is known of a hypernode.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct HyperNodeStatus {
    /// Members that are selected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub node_count: Option<i64>,
}
