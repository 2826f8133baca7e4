//! Which PodGroup a plain pod belongs to, and which of its owners pass their annotations on. Pure.

use k8s_openapi::{
    api::core::v1::Pod,
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};
use kube::ResourceExt;

use crate::mirror::Key;

/// The PodGroup of a workload with this uid.
pub(super) fn group_name(uid: &str) -> String {
    format!("podgroup-{uid}")
}

/// The PodGroup of a pod: named after its controller, so that all pods of one ReplicaSet, StatefulSet or Job share it, or
/// after the pod itself when nobody controls it.
pub(super) fn group_of(pod: &Pod) -> Key {
    let uid = match controller(&pod.metadata) {
        Some(owner) => owner.uid.clone(),
        None => pod.uid().unwrap_or_default(),
    };
    Key::new(pod.namespace().unwrap_or_default(), group_name(&uid))
}

/// The owner marked `controller: true`.
pub(super) fn controller(metadata: &ObjectMeta) -> Option<&OwnerReference> {
    metadata.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
}

/// Owners of the PodGroup: those of the pod if one of them controls it, else the pod. When the last of them is gone, the
/// PodGroup is collected.
pub(super) fn owners_of_group(pod: &Pod) -> Vec<OwnerReference> {
    if controller(&pod.metadata).is_some() {
        return pod.owner_references().to_vec();
    }
    vec![OwnerReference {
        api_version: "v1".into(),
        kind: "Pod".into(),
        name: pod.name_any(),
        uid: pod.uid().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }]
}

/// The plural of an owner that passes annotations on, with its API group; none for other kinds.
///
/// Volcano goes by the kind alone; here the API group counts too, or somebody's own `Job` would be looked up among those
/// of Kubernetes.
pub(super) fn inheritable(owner: &OwnerReference) -> Option<(&'static str, &'static str)> {
    let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
    match (group, owner.kind.as_str()) {
        ("apps", "ReplicaSet") => Some(("apps", "replicasets")),
        ("apps", "DaemonSet") => Some(("apps", "daemonsets")),
        ("apps", "StatefulSet") => Some(("apps", "statefulsets")),
        ("batch", "Job") => Some(("batch", "jobs")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(owners: serde_json::Value) -> Pod {
        serde_json::from_value(json!({"metadata": {
            "name": "p", "namespace": "ns", "uid": "pod-uid", "ownerReferences": owners,
        }}))
        .unwrap()
    }

    fn owner(kind: &str, uid: &str, controller: bool) -> serde_json::Value {
        json!({"apiVersion": "apps/v1", "kind": kind, "name": "o", "uid": uid, "controller": controller})
    }

    #[test]
    fn pods_of_one_controller_share_a_group_named_after_its_uid() {
        let pod = pod(json!([owner("Fleet", "f", false), owner("ReplicaSet", "r", true)]));
        assert_eq!(group_of(&pod), Key::new("ns", "podgroup-r"));
        let owners: Vec<String> = owners_of_group(&pod).into_iter().map(|o| o.uid).collect();
        assert_eq!(owners, ["f", "r"]);
    }

    #[test]
    fn a_pod_without_a_controller_has_a_group_of_its_own_that_it_owns() {
        for owners in [json!([]), json!([owner("Fleet", "f", false)])] {
            let pod = pod(owners);
            assert_eq!(group_of(&pod), Key::new("ns", "podgroup-pod-uid"));
            let owners = owners_of_group(&pod);
            assert_eq!(owners.len(), 1);
            assert_eq!((owners[0].kind.as_str(), owners[0].uid.as_str()), ("Pod", "pod-uid"));
            assert_eq!(
                (owners[0].controller, owners[0].block_owner_deletion),
                (Some(true), Some(true))
            );
        }
    }

    #[test]
    fn only_kubernetes_own_workloads_pass_annotations_on() {
        let of = |api_version: &str, kind: &str| {
            let owner = OwnerReference {
                api_version: api_version.into(),
                kind: kind.into(),
                ..OwnerReference::default()
            };
            inheritable(&owner).map(|(_, plural)| plural)
        };
        assert_eq!(of("apps/v1", "StatefulSet"), Some("statefulsets"));
        assert_eq!(of("batch/v1", "Job"), Some("jobs"));
        assert_eq!(of("batch.volcano.sh/v1alpha1", "Job"), None);
        assert_eq!(of("v1", "ReplicationController"), None);
    }
}
