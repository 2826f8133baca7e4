//! What the simulated kubelets remember of a bound pod.

use k8s_openapi::{
    api::core::v1::{Container, Pod, PodCondition},
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::ResourceExt;

/// Namespace and name of a pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) namespace: String,
    pub(super) name: String,
}

impl Key {
    pub(super) fn of(pod: &Pod) -> Key {
        Key { namespace: pod.namespace().unwrap_or_default(), name: pod.name_any() }
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// A container, as far as its status repeats its specification.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ContainerView {
    pub(super) name: String,
    pub(super) image: String,
    /// An init container that goes on beside the others.
    pub(super) sidecar: bool,
}

/// A bound pod.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PodView {
    pub(super) uid: String,
    /// resourceVersion as a number: versions of one object can be compared since Kubernetes 1.35.
    pub(super) version: u64,
    pub(super) node: String,
    /// `status.phase`, possibly empty.
    pub(super) phase: String,
    pub(super) containers: Vec<ContainerView>,
    pub(super) init_containers: Vec<ContainerView>,
    pub(super) conditions: Vec<PodCondition>,
    /// `status.startTime` in Unix milliseconds.
    pub(super) started_ms: Option<i64>,
    /// `metadata.deletionTimestamp` in Unix milliseconds: when the grace period ends.
    pub(super) delete_at_ms: Option<i64>,
    pub(super) grace_ms: i64,
    pub(super) run_for: Option<String>,
    pub(super) end_phase: Option<String>,
    pub(super) exit_code: Option<i32>,
}

impl PodView {
    /// None for a pod that is not bound.
    pub(super) fn of(pod: Pod) -> Option<PodView> {
        let either = |key: &str| {
            let annotations = pod.annotations();
            ["tephra.sh/", "rig/"]
                .iter()
                .find_map(|prefix| annotations.get(&format!("{prefix}{key}")))
                .cloned()
        };
        let (run_for, end_phase) = (either("run-for"), either("end-phase"));
        let exit_code = either("exit-code").and_then(|code| code.trim().parse().ok());
        let spec = pod.spec?;
        let status = pod.status.unwrap_or_default();
        Some(PodView {
            uid: pod.metadata.uid.unwrap_or_default(),
            version: pod.metadata.resource_version.and_then(|v| v.parse().ok()).unwrap_or(0),
            node: spec.node_name.filter(|node| !node.is_empty())?,
            phase: status.phase.unwrap_or_default(),
            containers: spec.containers.into_iter().map(container).collect(),
            init_containers: spec.init_containers.into_iter().flatten().map(container).collect(),
            conditions: status.conditions.unwrap_or_default(),
            started_ms: status.start_time.as_ref().map(millis),
            delete_at_ms: pod.metadata.deletion_timestamp.as_ref().map(millis),
            grace_ms: pod
                .metadata
                .deletion_grace_period_seconds
                .unwrap_or(0)
                .max(0)
                .saturating_mul(1000),
            run_for,
            end_phase,
            exit_code,
        })
    }
}

fn container(container: Container) -> ContainerView {
    ContainerView {
        sidecar: container.restart_policy.as_deref() == Some("Always"),
        name: container.name,
        image: container.image.unwrap_or_default(),
    }
}

fn millis(time: &Time) -> i64 {
    time.0.as_millisecond()
}
