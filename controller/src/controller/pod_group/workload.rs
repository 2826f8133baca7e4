//! What is remembered of a ReplicaSet or StatefulSet: what decides about the PodGroup of its pods. Pure.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::{
        apps::v1::{ReplicaSet, StatefulSet},
        core::v1::{Pod, PodTemplateSpec},
    },
    apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta},
};
use kube::{ResourceExt, core::Selector};

use super::ownership::{controller, group_name};
use crate::mirror::Key;

/// The two kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    ReplicaSet,
    StatefulSet,
}

/// A workload whose template names our scheduler. Changes of anything else (its counters, mostly) are no change.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Workload {
    pub(super) kind: Kind,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
    /// Whether no pods are wanted.
    pub(super) scaled_to_zero: bool,
    pub(super) selector: LabelSelector,
    /// Revision that new pods of a StatefulSet get.
    revision: Option<String>,
    annotations: BTreeMap<String, String>,
    generation: Option<i64>,
}

impl Workload {
    /// None when its pods are not ours.
    pub(super) fn of_replica_set(set: &ReplicaSet, scheduler_names: &[String]) -> Option<Workload> {
        let spec = set.spec.as_ref()?;
        let template = spec.template.as_ref()?;
        let selector = spec.selector.clone();
        Self::of(
            Kind::ReplicaSet,
            &set.metadata,
            template,
            scheduler_names,
            spec.replicas,
            selector,
        )
    }

    /// None when its pods are not ours.
    pub(super) fn of_stateful_set(
        set: &StatefulSet,
        scheduler_names: &[String],
    ) -> Option<Workload> {
        let spec = set.spec.as_ref()?;
        let selector = spec.selector.clone();
        let names = scheduler_names;
        let mut workload = Self::of(
            Kind::StatefulSet,
            &set.metadata,
            &spec.template,
            names,
            spec.replicas,
            selector,
        )?;
        workload.revision = set.status.as_ref().and_then(|status| status.update_revision.clone());
        Some(workload)
    }

    fn of(
        kind: Kind,
        metadata: &ObjectMeta,
        template: &PodTemplateSpec,
        scheduler_names: &[String],
        replicas: Option<i32>,
        selector: LabelSelector,
    ) -> Option<Workload> {
        let scheduler = template.spec.as_ref()?.scheduler_name.as_ref()?;
        scheduler_names.contains(scheduler).then(|| Workload {
            kind,
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
            uid: metadata.uid.clone().unwrap_or_default(),
            scaled_to_zero: replicas == Some(0),
            selector,
            revision: None,
            annotations: metadata.annotations.clone().unwrap_or_default(),
            generation: metadata.generation,
        })
    }

    /// The PodGroup of its pods.
    pub(super) fn group(&self) -> Key {
        Key::new(self.namespace.clone(), group_name(&self.uid))
    }

    /// The label selector of its pods.
    pub(super) fn pods(&self) -> Option<Selector> {
        self.selector.clone().try_into().ok()
    }

    /// Whether `pod` shows what its pods look like now: controlled by it, alive, of the current revision.
    pub(super) fn shown_by(&self, pod: &Pod) -> bool {
        let controlled = controller(&pod.metadata).is_some_and(|owner| owner.uid == self.uid);
        let current = self
            .revision
            .as_ref()
            .is_none_or(|revision| pod.labels().get("controller-revision-hash") == Some(revision));
        controlled && current && pod.metadata.deletion_timestamp.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn stateful_set(changes: impl FnOnce(&mut Value)) -> Option<Workload> {
        let mut set = json!({
            "metadata": {"name": "s", "namespace": "ns", "uid": "u", "generation": 1},
            "spec": {
                "serviceName": "s", "replicas": 2, "selector": {"matchLabels": {"app": "s"}},
                "template": {"spec": {"schedulerName": "volcano", "containers": []}},
            },
            "status": {"replicas": 0, "updateRevision": "s-2"},
        });
        changes(&mut set);
        let set: StatefulSet = serde_json::from_value(set).unwrap();
        Workload::of_stateful_set(&set, &["volcano".to_owned()])
    }

    fn pod(owner: &str, revision: &str) -> Pod {
        serde_json::from_value(json!({"metadata": {
            "name": "s-0",
            "labels": {"controller-revision-hash": revision},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "s",
                "uid": owner, "controller": true}],
        }}))
        .unwrap()
    }

    #[test]
    fn only_workloads_whose_template_names_our_scheduler_count() {
        let other =
            stateful_set(|set| set["spec"]["template"]["spec"]["schedulerName"] = json!("default"));
        assert_eq!(other, None);
        assert_eq!(stateful_set(|_| ()).unwrap().group(), Key::new("ns", "podgroup-u"));
    }

    #[test]
    fn counters_are_no_change_but_replicas_and_annotations_are() {
        let before = stateful_set(|_| ());
        assert_eq!(before, stateful_set(|set| set["status"]["readyReplicas"] = json!(2)));
        let scaled = stateful_set(|set| {
            set["spec"]["replicas"] = json!(0);
            set["metadata"]["generation"] = json!(2);
        });
        assert!(scaled.as_ref().unwrap().scaled_to_zero);
        assert_ne!(before, scaled);
        assert_ne!(before, stateful_set(|set| set["metadata"]["annotations"] = json!({"a": "b"})));
    }

    #[test]
    fn an_old_revision_or_anothers_pod_does_not_show_what_pods_look_like_now() {
        let workload = stateful_set(|_| ()).unwrap();
        assert!(workload.shown_by(&pod("u", "s-2")));
        assert!(!workload.shown_by(&pod("u", "s-1")));
        assert!(!workload.shown_by(&pod("other", "s-2")));
    }
}
