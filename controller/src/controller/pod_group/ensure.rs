//! The API calls of one look at one PodGroup.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use futures::{StreamExt, stream};
use k8s_openapi::api::{
    apps::v1::{ReplicaSet, StatefulSet},
    core::v1::Pod,
};
use kube::{
    Api, ResourceExt,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    core::{GroupVersionKind, PartialObjectMeta},
};
use serde_json::json;
use tephra_api::{keys, scheduling::PodGroup};

use super::{
    desired::Desired,
    ownership::inheritable,
    workload::{Kind, Workload},
};
use crate::{
    context::Context,
    mirror::Key,
    refusal::{Doing, ReconcileError, already_exists, is_not_found},
};

/// Pods of one group that are annotated at the same time.
const ANNOTATING: usize = 8;

type Texts = BTreeMap<String, String>;

/// One look at one group.
pub(super) struct Ensure {
    pub(super) context: Context,
    pub(super) group: Key,
}

impl Ensure {
    /// Brings the group in line with the pods that wait for it and with its workload, if that changed; pods that were
    /// annotated are added to `annotated`, also when something else fails.
    pub(super) async fn look(
        &self,
        waiting: &[Arc<Pod>],
        workload: Option<&Workload>,
        annotated: &mut BTreeSet<(Key, Option<String>)>,
    ) -> Result<(), ReconcileError> {
        if let Some(first) = waiting.first() {
            self.exist(first).await?;
            self.annotate(waiting, annotated).await?;
        }
        match workload {
            // Pods that wait are newer than what we know of the workload.
            Some(workload) if workload.scaled_to_zero && waiting.is_empty() => {
                self.remove(workload).await
            }
            Some(workload) if !workload.scaled_to_zero => self.follow(workload).await,
            _ => Ok(()),
        }
    }

    /// The group exists afterwards; an existing one is left as it is.
    async fn exist(&self, pod: &Pod) -> Result<(), ReconcileError> {
        if let Some(stored) = self.stored().await? {
            return match stored.metadata.deletion_timestamp {
                None => Ok(()),
                Some(_) => Err(self.stuck("is being deleted")),
            };
        }
        self.create(&self.desired(pod).await?).await
    }

    async fn stored(&self) -> Result<Option<PartialObjectMeta<PodGroup>>, ReconcileError> {
        let groups: Api<PartialObjectMeta<PodGroup>> = self.api();
        groups.get_opt(&self.group.name).await.doing(|| format!("read PodGroup {}", self.group))
    }

    async fn create(&self, desired: &Desired) -> Result<(), ReconcileError> {
        let Key { namespace, name } = &self.group;
        let object =
            desired.object(namespace, name).map_err(|error| self.stuck(&error.to_string()))?;
        match self.api::<PodGroup>().create(&PostParams::default(), &object).await {
            Err(error) if already_exists(&error) => Ok(()),
            created => created.map(drop).doing(|| format!("create PodGroup {}", self.group)),
        }
    }

    async fn desired(&self, pod: &Pod) -> Result<Desired, ReconcileError> {
        if !self.context.options.inherit_owner_annotations {
            return Ok(Desired::of(pod, None));
        }
        let mut merged = Texts::new();
        for owner in pod.owner_references() {
            let Some((group, plural)) = inheritable(owner) else { continue };
            let kind = GroupVersionKind::gvk(group, "v1", &owner.kind);
            let resource = ApiResource::from_gvk_with_plural(&kind, plural);
            let client = self.context.client.clone();
            let owners: Api<DynamicObject> =
                Api::namespaced_with(client, &self.group.namespace, &resource);
            let found = owners
                .get_metadata_opt(&owner.name)
                .await
                .doing(|| format!("read {} {}/{}", owner.kind, self.group.namespace, owner.name))?;
            if let Some(found) = found.filter(|found| found.uid().as_ref() == Some(&owner.uid)) {
                for (key, value) in found.annotations() {
                    merged.entry(key.clone()).or_insert_with(|| value.clone()); // the first owner wins
                }
            }
        }
        Ok(Desired::of(pod, Some(&merged)))
    }

    /// Writes the group's name onto the pods. The patch holds for the pod that was seen only (by its version): another
    /// one of the same name belongs to another group.
    async fn annotate(
        &self,
        pods: &[Arc<Pod>],
        annotated: &mut BTreeSet<(Key, Option<String>)>,
    ) -> Result<(), ReconcileError> {
        let api: Api<Pod> = self.api();
        let group = self.group.name.clone();
        let patches = pods.iter().cloned().map(|pod| {
            let patch = Patch::Merge(json!({"metadata": {
                "resourceVersion": pod.resource_version(),
                "annotations": {(keys::GROUP_NAME): group},
            }}));
            let api = api.clone();
            async move {
                let patched =
                    api.patch_metadata(&pod.name_any(), &PatchParams::default(), &patch).await;
                (pod, patched)
            }
        });
        let mut patches = stream::iter(patches).buffered(ANNOTATING);
        let mut outcome = Ok(());
        while let Some((pod, patched)) = patches.next().await {
            match patched {
                Ok(_) => {}
                Err(error) if is_not_found(&error) => {}
                Err(error) => {
                    let failed = Err(error).doing(|| format!("annotate pod {}", Key::of(&*pod)));
                    outcome = outcome.and(failed);
                    continue;
                }
            }
            annotated.insert((Key::of(&*pod), pod.resource_version()));
        }
        outcome
    }

    /// The workload wants no pods any more: its group goes, unless the workload changed its mind meanwhile.
    async fn remove(&self, workload: &Workload) -> Result<(), ReconcileError> {
        let Workload { name, uid, .. } = workload;
        let reading = || format!("read {:?} {}/{name}", workload.kind, workload.namespace);
        let (now, replicas) = match workload.kind {
            Kind::ReplicaSet => {
                let set = self.api::<ReplicaSet>().get_opt(name).await.doing(reading)?;
                let replicas = set.as_ref().and_then(|set| set.spec.as_ref()?.replicas);
                (set.and_then(|set| set.uid()), replicas)
            }
            Kind::StatefulSet => {
                let set = self.api::<StatefulSet>().get_opt(name).await.doing(reading)?;
                let replicas = set.as_ref().and_then(|set| set.spec.as_ref()?.replicas);
                (set.and_then(|set| set.uid()), replicas)
            }
        };
        if now.as_ref() != Some(uid) || replicas != Some(0) {
            return Ok(()); // its event is on the way, or the group is collected with it
        }
        match self.api::<PodGroup>().delete(&self.group.name, &DeleteParams::default()).await {
            Err(error) if is_not_found(&error) => Ok(()),
            deleted => deleted.map(drop).doing(|| format!("delete PodGroup {}", self.group)),
        }
    }

    /// A rollout or a changed annotation reaches the group of a workload that has pods.
    async fn follow(&self, workload: &Workload) -> Result<(), ReconcileError> {
        let Some(selector) = workload.pods() else { return Ok(()) };
        let pods: Api<Pod> = self.api();
        let listed = pods
            .list(&ListParams::default().labels_from(&selector))
            .await
            .doing(|| format!("list pods of {}/{}", workload.namespace, workload.name))?;
        let Some(pod) = listed.items.iter().find(|pod| workload.shown_by(pod)) else {
            return Ok(());
        };
        let scheduler = pod.spec.as_ref().and_then(|spec| spec.scheduler_name.clone());
        let ours =
            scheduler.is_some_and(|name| self.context.options.scheduler_names.contains(&name));
        let group = pod.annotations().get(keys::GROUP_NAME).filter(|name| !name.is_empty());
        if !ours || group.is_some_and(|name| *name != self.group.name) {
            return Ok(());
        }
        let desired = self.desired(pod).await?;
        // As it is stored, unknown fields and odd values included.
        let kind = ApiResource::erase::<PodGroup>(&());
        let groups: Api<DynamicObject> =
            Api::namespaced_with(self.context.client.clone(), &self.group.namespace, &kind);
        let stored = groups
            .get_opt(&self.group.name)
            .await
            .doing(|| format!("read PodGroup {}", self.group))?;
        let Some(stored) = stored else { return self.create(&desired).await };
        let version = stored.resource_version();
        let stored =
            serde_json::to_value(stored).map_err(|error| self.stuck(&error.to_string()))?;
        let Some(mut patch) = desired.patch(&stored) else { return Ok(()) };
        patch["metadata"]["resourceVersion"] = json!(version);
        match groups.patch(&self.group.name, &PatchParams::default(), &Patch::Merge(patch)).await {
            Err(error) if is_not_found(&error) => Ok(()),
            patched => patched.map(drop).doing(|| format!("update PodGroup {}", self.group)),
        }
    }

    fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    {
        Api::namespaced(self.context.client.clone(), &self.group.namespace)
    }

    fn stuck(&self, what: &str) -> ReconcileError {
        ReconcileError::Stuck(format!("PodGroup {} {what}", self.group))
    }
}
