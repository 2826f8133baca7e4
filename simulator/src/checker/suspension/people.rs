//! What belongs to people: their holds, their switches, their objects.

use serde_json::Value;

use super::seen::{HOLD, RESUME, SUSPENDED, annotation, is_held};
use super::{Change, Cluster, Suspensions};
use crate::checker::cluster::Key;

/// Annotations that the programs may write on an owner or a pod.
const OURS: [&str; 2] = ["tephra.sh/suspended", "tephra.sh/suspensions"];
/// What the API server keeps by itself.
const KEPT: [&str; 3] = ["resourceVersion", "generation", "managedFields"];

impl Suspensions {
    /// A hold is taken off by nobody but a person.
    pub(super) fn judge_hold_stays(&self, change: &Change<'_>, broken: &mut Vec<String>) {
        let by = &change.record.identity;
        let (before, after) = change.text(HOLD);
        let ours = self.is_scheduler(by) || self.is_controller(by);
        if ours && change.before.is_some() && change.after.is_some() && before != after {
            broken.push(format!("{by} changed the hold from {before:?} to {after:?}"));
        }
    }

    /// A gang that is let run is held by nobody.
    pub(super) fn judge_not_held(
        &self,
        cluster: &Cluster<'_>,
        gang: &Key,
        owner: Option<&Value>,
        broken: &mut Vec<String>,
    ) {
        if owner.is_some_and(is_held) {
            broken.push("is let run although a person holds it".to_owned());
        }
        let stand_in = (gang.0.clone(), format!("{}-suspended", gang.1));
        for key in [gang.clone(), stand_in] {
            let held = self.group(&key).is_some_and(is_held);
            if held && self.is_known(cluster, &key, HOLD) {
                broken.push(format!("is let run although a person holds PodGroup {}", key.1));
            }
        }
    }

    /// A write of the controller leaves an owner as it is, save its switch and our annotations.
    pub(super) fn judge_unchanged(
        &self,
        change: &Change<'_>,
        switch: &str,
        broken: &mut Vec<String>,
    ) {
        let (Some(before), Some(after)) = (change.before, change.after) else { return };
        let (before, after) = (bare(before, switch), bare(after, switch));
        if before != after {
            broken.push(format!("was changed beside its switch: {before} became {after}"));
        }
        self.judge_hold_stays(change, broken);
    }

    /// The controller creates a pod again.
    pub(super) fn judge_return(
        &self,
        cluster: &Cluster<'_>,
        change: &Change<'_>,
        broken: &mut Vec<String>,
    ) {
        let Some(pod) = cluster.pods.get(&change.record.uid) else { return };
        let gang = (pod.namespace.clone(), pod.group.clone());
        self.judge_not_held(cluster, &gang, None, broken);
        match self.waiting_for(&gang) {
            Some((_, record)) if !record.names.contains(&pod.name) => {
                broken.push(format!("is created, and {} does not know it", record.id));
            }
            Some((key, record)) => {
                let resume = self.group(&key).and_then(|group| annotation(group, RESUME));
                if resume != Some(&record.id) && self.is_known(cluster, &key, RESUME) {
                    broken.push("is created again although it was given no room".to_owned());
                }
            }
            None if self.is_known(cluster, &gang, SUSPENDED) => {
                broken.push("is created, and no record says so".to_owned());
            }
            None => {}
        }
        let (Some(after), Some(before)) = (change.after, self.former.get(&change.key())) else {
            return;
        };
        let parts = |pod: &Value| {
            let mut spec = pod["spec"].clone();
            if let Some(spec) = spec.as_object_mut() {
                spec.remove("nodeName");
            }
            (spec, pod["metadata"]["labels"].clone(), texts(pod))
        };
        if parts(before) != parts(after) {
            broken.push(format!("came back as another: {before} became {after}"));
        }
    }
}

/// Annotations that are not of a run.
fn texts(pod: &Value) -> Value {
    let mut texts = pod["metadata"]["annotations"].clone();
    if let Some(texts) = texts.as_object_mut() {
        texts.retain(|key, _| {
            !key.starts_with("tephra.sh/checkpoint-") && key != "tephra.sh/last-checkpoint"
        });
    }
    texts
}

/// An object without what the controller and the server write.
fn bare(object: &Value, switch: &str) -> Value {
    let mut object = object.clone();
    if let Some((parent, field)) = switch.rsplit_once('/')
        && let Some(parent) = object.pointer_mut(parent).and_then(Value::as_object_mut)
    {
        parent.remove(field);
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.retain(|key, _| !KEPT.contains(&key.as_str()));
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.retain(|key, _| !OURS.contains(&key.as_str()));
        }
        let empty = metadata
            .get("annotations")
            .is_some_and(|it| it.as_object().is_some_and(|it| it.is_empty()));
        if empty {
            metadata.remove("annotations");
        }
    }
    object
}
