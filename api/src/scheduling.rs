//! Custom resources of group `scheduling.volcano.sh` as Rust types. The definitions, with those of [`crate::topology`] and
//! [`crate::queue_policy`], in `deploy/crds` are
//! generated from them (`cargo run -p xtask -- codegen`). Fields that a newer client writes are preserved by the
//! server, because every level says so; whoever writes back must patch, never put a decoded object.

pub mod pod_group;
pub mod queue;
mod schema;

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt as _;

pub use pod_group::{PodGroup, PodGroupCondition, PodGroupSpec, PodGroupStatus};
pub use queue::{Queue, QueueSpec, QueueStatus};

/// Quantities by resource name, as written.
pub type ResourceMap = BTreeMap<String, serde_json::Value>;

/// Definitions of every custom resource, in a fixed order.
pub fn crds() -> Vec<CustomResourceDefinition> {
    let mut pod_groups = PodGroup::crd();
    for version in &mut pod_groups.spec.versions {
        // Volcano's PodGroup has no status subresource (C1): every client writes status with the object.
        version.subresources = None;
    }
    let mut definitions = vec![
        pod_groups,
        Queue::crd(),
        crate::topology::HyperNode::crd(),
        crate::queue_policy::QueuePolicy::crd(),
    ];
    definitions.iter_mut().for_each(schema::finish);
    definitions
}
