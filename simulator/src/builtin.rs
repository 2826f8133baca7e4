//! The table of built-in resources: one row each, plus the objects a fresh cluster has.
//!
//! A resource that needs no behaviour of its own is added by adding a row.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::resource::{ResourceType, ScalePaths, Version, api_version};

/// One row. `flags` holds `n` namespaced, `s` status subresource, `c` scale subresource, `k` keeps status on create,
/// `a` category `all`.
struct Row {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    short: &'static [&'static str],
    flags: &'static str,
}

const fn row(
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    short: &'static [&'static str],
    flags: &'static str,
) -> Row {
    Row { group, version, kind, plural, short, flags }
}

const RBAC: &str = "rbac.authorization.k8s.io";
const STORAGE: &str = "storage.k8s.io";
const HOOKS: &str = "admissionregistration.k8s.io";
const DRA: &str = "resource.k8s.io";

const ROWS: &[Row] = &[
    row("", "v1", "Pod", "pods", &["po"], "nsa"),
    row("", "v1", "Node", "nodes", &["no"], "sk"),
    row("", "v1", "Namespace", "namespaces", &["ns"], "s"),
    row("", "v1", "Event", "events", &["ev"], "n"),
    row("", "v1", "ConfigMap", "configmaps", &["cm"], "n"),
    row("", "v1", "Secret", "secrets", &[], "n"),
    row("", "v1", "Service", "services", &["svc"], "nsa"),
    row("", "v1", "ServiceAccount", "serviceaccounts", &["sa"], "n"),
    row("", "v1", "Endpoints", "endpoints", &["ep"], "n"),
    row("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", &["pvc"], "ns"),
    row("", "v1", "PersistentVolume", "persistentvolumes", &["pv"], "s"),
    row("", "v1", "ResourceQuota", "resourcequotas", &["quota"], "ns"),
    row("", "v1", "LimitRange", "limitranges", &["limits"], "n"),
    row("", "v1", "PodTemplate", "podtemplates", &[], "n"),
    row("", "v1", "ReplicationController", "replicationcontrollers", &["rc"], "nsca"),
    row("apps", "v1", "Deployment", "deployments", &["deploy"], "nsca"),
    row("apps", "v1", "ReplicaSet", "replicasets", &["rs"], "nsca"),
    row("apps", "v1", "StatefulSet", "statefulsets", &["sts"], "nsca"),
    row("apps", "v1", "DaemonSet", "daemonsets", &["ds"], "nsa"),
    row("apps", "v1", "ControllerRevision", "controllerrevisions", &[], "n"),
    row("batch", "v1", "Job", "jobs", &[], "nsa"),
    row("batch", "v1", "CronJob", "cronjobs", &["cj"], "nsa"),
    row("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", &["pc"], ""),
    row("coordination.k8s.io", "v1", "Lease", "leases", &[], "n"),
    row("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", &["pdb"], "ns"),
    row(STORAGE, "v1", "StorageClass", "storageclasses", &["sc"], ""),
    row(STORAGE, "v1", "CSINode", "csinodes", &[], ""),
    row(STORAGE, "v1", "CSIDriver", "csidrivers", &[], ""),
    row(STORAGE, "v1", "CSIStorageCapacity", "csistoragecapacities", &[], "n"),
    row(STORAGE, "v1", "VolumeAttachment", "volumeattachments", &[], "s"),
    row(CRD_GROUP, "v1", CRD_KIND, "customresourcedefinitions", &["crd", "crds"], "s"),
    row(RBAC, "v1", "Role", "roles", &[], "n"),
    row(RBAC, "v1", "RoleBinding", "rolebindings", &[], "n"),
    row(RBAC, "v1", "ClusterRole", "clusterroles", &[], ""),
    row(RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings", &[], ""),
    row("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", &["netpol"], "n"),
    row("networking.k8s.io", "v1", "Ingress", "ingresses", &["ing"], "ns"),
    row("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", &[], "n"),
    row("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", &[], ""),
    row(
        "autoscaling",
        "v2",
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
        &["hpa"],
        "nsa",
    ),
    row(HOOKS, "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", &[], ""),
    row(HOOKS, "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", &[], ""),
    row(HOOKS, "v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies", &[], "s"),
    row(
        HOOKS,
        "v1",
        "ValidatingAdmissionPolicyBinding",
        "validatingadmissionpolicybindings",
        &[],
        "",
    ),
    row(DRA, "v1", "ResourceClaim", "resourceclaims", &[], "ns"),
    row(DRA, "v1", "ResourceClaimTemplate", "resourceclaimtemplates", &[], "n"),
    row(DRA, "v1", "ResourceSlice", "resourceslices", &[], ""),
    row(DRA, "v1", "DeviceClass", "deviceclasses", &[], ""),
];

/// Group of CustomResourceDefinitions.
pub(crate) const CRD_GROUP: &str = "apiextensions.k8s.io";
/// Kind of CustomResourceDefinitions.
pub(crate) const CRD_KIND: &str = "CustomResourceDefinition";

/// Tables that other modules must find again: their index is the position of the row.
pub(crate) const PODS: usize = 0;
/// See [`PODS`].
pub(crate) const NAMESPACES: usize = 2;
/// See [`PODS`].
pub(crate) const EVENTS: usize = 3;

/// All built-in resources, in table order.
pub(crate) fn types() -> Vec<Arc<ResourceType>> {
    ROWS.iter().map(|row| Arc::new(from_row(row, row.group, row.version))).collect()
}

/// `events.k8s.io/v1`, a second face of the core events table.
pub(crate) fn new_events() -> Arc<ResourceType> {
    Arc::new(from_row(&ROWS[EVENTS], "events.k8s.io", "v1"))
}

fn from_row(row: &Row, group: &str, version: &str) -> ResourceType {
    let has = |flag: char| row.flags.contains(flag);
    let scale = has('c').then(|| ScalePaths {
        spec: "/spec/replicas".to_owned(),
        status: "/status/replicas".to_owned(),
        selector: None,
    });
    ResourceType {
        group: group.to_owned(),
        plural: row.plural.to_owned(),
        singular: row.kind.to_lowercase(),
        kind: row.kind.to_owned(),
        list_kind: format!("{}List", row.kind),
        short_names: row.short.iter().map(|s| (*s).to_owned()).collect(),
        categories: if has('a') { vec!["all".to_owned()] } else { Vec::new() },
        namespaced: has('n'),
        custom: false,
        keeps_status_on_create: has('k'),
        versions: vec![Version {
            name: version.to_owned(),
            api_version: api_version(group, version),
            status: has('s'),
            scale,
            columns: None,
            map_lists: BTreeMap::new(),
            schema: None,
        }],
    }
}

/// What kube-apiserver itself creates at start: namespaces and system priority classes.
pub(crate) fn first_objects() -> Vec<Value> {
    let mut objects: Vec<Value> = ["default", "kube-node-lease", "kube-public", "kube-system"]
        .iter()
        .map(|name| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
        .collect();
    for (name, value) in
        [("system-cluster-critical", 2_000_000_000_i64), ("system-node-critical", 2_000_001_000)]
    {
        objects.push(json!({
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
            "preemptionPolicy": "PreemptLowerPriority",
        }));
    }
    objects
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_tables_stand_where_their_constants_say() {
        let types = types();
        assert_eq!(types[PODS].kind, "Pod");
        assert_eq!(types[NAMESPACES].kind, "Namespace");
        assert_eq!(types[EVENTS].kind, "Event");
        assert!(types.iter().all(|t| t.plural.chars().all(|c| c.is_ascii_lowercase())));
    }
}
