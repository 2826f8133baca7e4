//! KubeRay: a suspended RayJob deletes its RayCluster and runs its entrypoint again later; a RayCluster deletes its pods.

use super::{SUSPEND, Switch};

pub(super) const SWITCHES: &[Switch] = &[
    Switch {
        group: "ray.io",
        kind: "RayJob",
        plural: "rayjobs",
        path: SUSPEND,
        loses_group: true,
        finished: |job| {
            let status = job["status"]["jobDeploymentStatus"].as_str();
            matches!(status, Some("Complete" | "Failed" | "ValidationFailed"))
        },
    },
    Switch {
        group: "ray.io",
        kind: "RayCluster",
        plural: "rayclusters",
        path: SUSPEND,
        loses_group: false,
        finished: |_| false,
    },
];
