//! What the scheduler reads of a pod and a node, borrowed from the bytes of the API server. Fields that are not
//! named here are skipped by the parser. Affinity and spread constraints stay raw text: they are parsed only
//! for a template that was not seen before.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::text::{List, Pairs, QuantityText, Text};

/// Labels, annotations, selectors.
pub(crate) type TextMap<'a> = Pairs<'a, Text<'a>>;
/// A resource list as written.
pub(crate) type QuantityMap<'a> = Pairs<'a, QuantityText<'a>>;

/// `metadata`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct MetaView<'a> {
    #[serde(borrow)]
    pub(crate) name: Text<'a>,
    #[serde(borrow)]
    pub(crate) namespace: Text<'a>,
    #[serde(borrow)]
    pub(crate) uid: Text<'a>,
    #[serde(borrow)]
    pub(crate) resource_version: Text<'a>,
    #[serde(borrow)]
    pub(crate) creation_timestamp: Text<'a>,
    #[serde(borrow)]
    pub(crate) deletion_timestamp: Text<'a>,
    #[serde(borrow)]
    pub(crate) labels: TextMap<'a>,
    #[serde(borrow)]
    pub(crate) annotations: TextMap<'a>,
}

/// A pod.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct PodView<'a> {
    #[serde(borrow)]
    pub(crate) metadata: MetaView<'a>,
    #[serde(borrow)]
    pub(crate) spec: SpecView<'a>,
    #[serde(borrow)]
    pub(crate) status: Option<StatusView<'a>>,
}

/// `spec` of a pod.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct SpecView<'a> {
    #[serde(borrow)]
    pub(crate) node_name: Text<'a>,
    #[serde(borrow)]
    pub(crate) scheduler_name: Text<'a>,
    pub(crate) priority: Option<i64>,
    pub(crate) active_deadline_seconds: Option<i64>,
    #[serde(borrow)]
    pub(crate) preemption_policy: Text<'a>,
    #[serde(borrow)]
    pub(crate) priority_class_name: Text<'a>,
    #[serde(borrow)]
    pub(crate) node_selector: TextMap<'a>,
    #[serde(borrow)]
    pub(crate) tolerations: List<TolerationView<'a>>,
    #[serde(borrow)]
    pub(crate) affinity: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) topology_spread_constraints: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) containers: List<ContainerView<'a>>,
    #[serde(borrow)]
    pub(crate) init_containers: List<ContainerView<'a>>,
    #[serde(borrow)]
    pub(crate) overhead: QuantityMap<'a>,
    #[serde(borrow)]
    pub(crate) resources: Option<ResourcesView<'a>>,
    pub(crate) scheduling_gates: List<IgnoredAny>,
    #[serde(borrow)]
    pub(crate) volumes: List<VolumeView<'a>>,
    #[serde(borrow)]
    pub(crate) resource_claims: List<ClaimView<'a>>,
}

/// A container or init container.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ContainerView<'a> {
    #[serde(borrow)]
    pub(crate) name: Text<'a>,
    #[serde(borrow)]
    pub(crate) image: Text<'a>,
    #[serde(borrow)]
    pub(crate) restart_policy: Text<'a>,
    #[serde(borrow)]
    pub(crate) resources: Option<ResourcesView<'a>>,
    #[serde(borrow)]
    pub(crate) ports: List<PortView<'a>>,
}

/// `resources`: of limits only presence would matter, and the API server copies them into requests.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ResourcesView<'a> {
    #[serde(borrow)]
    pub(crate) requests: QuantityMap<'a>,
}

/// A port of a container.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct PortView<'a> {
    pub(crate) host_port: Option<i64>,
    #[serde(borrow, rename = "hostIP")]
    pub(crate) host_ip: Text<'a>,
    #[serde(borrow)]
    pub(crate) protocol: Text<'a>,
}

/// A toleration.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct TolerationView<'a> {
    #[serde(borrow)]
    pub(crate) key: Text<'a>,
    #[serde(borrow)]
    pub(crate) operator: Text<'a>,
    #[serde(borrow)]
    pub(crate) value: Text<'a>,
    #[serde(borrow)]
    pub(crate) effect: Text<'a>,
}

/// A volume, as far as it can hold a pod back.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct VolumeView<'a> {
    #[serde(borrow)]
    pub(crate) name: Text<'a>,
    #[serde(borrow)]
    pub(crate) persistent_volume_claim: Option<ClaimSourceView<'a>>,
    pub(crate) ephemeral: Option<IgnoredAny>,
}

/// `persistentVolumeClaim` of a volume.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ClaimSourceView<'a> {
    #[serde(borrow)]
    pub(crate) claim_name: Text<'a>,
}

/// An entry of `spec.resourceClaims`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ClaimView<'a> {
    #[serde(borrow)]
    pub(crate) name: Text<'a>,
}

/// `status` of a pod.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct StatusView<'a> {
    #[serde(borrow)]
    pub(crate) phase: Text<'a>,
    #[serde(borrow)]
    pub(crate) nominated_node_name: Text<'a>,
    #[serde(borrow)]
    pub(crate) start_time: Text<'a>,
    #[serde(borrow)]
    pub(crate) conditions: List<ConditionView<'a>>,
    #[serde(borrow)]
    pub(crate) container_statuses: List<ContainerStatusView<'a>>,
    #[serde(borrow)]
    pub(crate) resize: Text<'a>,
}

/// A condition.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ConditionView<'a> {
    #[serde(borrow, rename = "type")]
    pub(crate) kind: Text<'a>,
    #[serde(borrow)]
    pub(crate) status: Text<'a>,
    #[serde(borrow)]
    pub(crate) reason: Text<'a>,
    #[serde(borrow)]
    pub(crate) message: Text<'a>,
    #[serde(borrow, rename = "lastTransitionTime")]
    pub(crate) last_transition_time: Text<'a>,
}

/// What a kubelet has granted a container (in-place resize).
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ContainerStatusView<'a> {
    #[serde(borrow)]
    pub(crate) name: Text<'a>,
    #[serde(borrow)]
    pub(crate) resources: Option<ResourcesView<'a>>,
    #[serde(borrow)]
    pub(crate) allocated_resources: QuantityMap<'a>,
}

/// A node.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct NodeView<'a> {
    #[serde(borrow)]
    pub(crate) metadata: MetaView<'a>,
    #[serde(borrow)]
    pub(crate) spec: Option<NodeSpecView<'a>>,
    #[serde(borrow)]
    pub(crate) status: Option<NodeStatusView<'a>>,
}

/// `spec` of a node.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct NodeSpecView<'a> {
    #[serde(borrow)]
    pub(crate) taints: List<TaintView<'a>>,
    pub(crate) unschedulable: Option<bool>,
}

/// A taint.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct TaintView<'a> {
    #[serde(borrow)]
    pub(crate) key: Text<'a>,
    #[serde(borrow)]
    pub(crate) value: Text<'a>,
    #[serde(borrow)]
    pub(crate) effect: Text<'a>,
}

/// `status` of a node.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct NodeStatusView<'a> {
    #[serde(borrow)]
    pub(crate) allocatable: QuantityMap<'a>,
    #[serde(borrow)]
    pub(crate) images: List<ImageView<'a>>,
}

/// An image present on a node.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ImageView<'a> {
    #[serde(borrow)]
    pub(crate) names: List<Text<'a>>,
    pub(crate) size_bytes: Option<i64>,
}
