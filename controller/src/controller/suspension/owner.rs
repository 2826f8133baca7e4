//! Who can be suspended, and how: one file per project in `owner/`, one line in [`SWITCHES`].
//!
//! A gang's owner is found by walking controller references upwards from its pods, as long as the kinds are known here and the
//! uids fit; the topmost wins (a TrainJob, not the JobSet below it). Nobody known: the pods are evicted. Kinds that the
//! server does not have answer 404 like objects that are gone, so nothing needs to be installed.

mod job;
mod job_set;
mod kubeflow;
mod ray;
mod train_job;

use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject},
    core::GroupVersionKind,
};
use serde_json::{Map, Value, json};
use tephra_api::{
    keys,
    suspension::{Owner, Record},
};

use super::{
    gang::{annotation, is_held},
    steps::SwitchSeen,
};
use crate::refusal::{Doing, ReconcileError};

/// Where most kinds have their switch.
const SUSPEND: &[&str] = &["spec", "suspend"];
/// References followed upwards at most.
const DEPTH: usize = 8;

/// A kind with a switch.
pub(super) struct Switch {
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    /// Field that holds `true` while it is suspended.
    path: &'static [&'static str],
    /// Its operator deletes the PodGroup of a suspended job, or may do so: another one waits in its place.
    pub(super) loses_group: bool,
    /// Whether the object has ended.
    finished: fn(&Value) -> bool,
}

/// All kinds with a switch.
const SWITCHES: &[&[Switch]] =
    &[job::SWITCHES, kubeflow::SWITCHES, job_set::SWITCHES, train_job::SWITCHES, ray::SWITCHES];

/// Whether a condition of the object is `True`.
fn condition_is_true(object: &Value, kind: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    conditions.is_some_and(|all| all.iter().any(|it| it["type"] == kind && it["status"] == "True"))
}

fn switch_of(api_version: &str, kind: &str) -> Option<&'static Switch> {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    SWITCHES.iter().copied().flatten().find(|row| row.group == group && row.kind == kind)
}

impl Switch {
    /// A merge patch that sets the switch.
    fn set(&self, on: bool) -> Value {
        self.path.iter().rev().fold(json!(on), |inner, field| {
            Value::Object(Map::from_iter([((*field).to_owned(), inner)]))
        })
    }
}

/// An owner as it is stored.
#[derive(Clone)]
pub(super) struct Switched {
    pub(super) switch: &'static Switch,
    pub(super) reference: Owner,
    pub(super) object: Value,
}

impl Switched {
    /// The object of a reference; none when its kind has no switch, or it is another object of that name.
    pub(super) fn of(reference: &Owner, object: Value) -> Option<Switched> {
        let switch = switch_of(&reference.api_version, &reference.kind)?;
        let meant = object["metadata"]["uid"] == *reference.uid;
        meant.then(|| Switched { switch, reference: reference.clone(), object })
    }

    /// What a decision needs.
    pub(super) fn seen(&self) -> SwitchSeen {
        let switch = self.switch.path.iter().fold(&self.object, |value, field| &value[*field]);
        SwitchSeen {
            suspended: *switch == Value::Bool(true),
            record: self.record().map(|record| record.id),
            loses_group: self.switch.loses_group,
            hold: is_held(&self.object),
            finished: (self.switch.finished)(&self.object),
        }
    }

    pub(super) fn record(&self) -> Option<Record> {
        Record::parse(annotation(&self.object, keys::SUSPENDED)?).ok()
    }

    /// A merge patch of annotations and, if given, of the switch; it holds for the object as it was read only.
    pub(super) fn patch(&self, annotations: Value, switch: Option<bool>) -> Value {
        let mut patch = switch.map_or_else(|| json!({}), |on| self.switch.set(on));
        patch["metadata"] = json!({
            "uid": self.reference.uid,
            "resourceVersion": self.object["metadata"]["resourceVersion"],
            "annotations": annotations,
        });
        patch
    }
}

/// Where objects of a reference's kind are; none when it has no switch.
pub(super) fn api(client: &Client, namespace: &str, owner: &Owner) -> Option<Api<DynamicObject>> {
    let switch = switch_of(&owner.api_version, &owner.kind)?;
    let version = owner.api_version.rsplit('/').next().unwrap_or_default();
    let kind = GroupVersionKind::gvk(switch.group, version, switch.kind);
    let resource = ApiResource::from_gvk_with_plural(&kind, switch.plural);
    Some(Api::namespaced_with(client.clone(), namespace, &resource))
}

/// Reads the object of a reference; `None` when its kind has no switch or is not installed, or it does not exist with this uid.
pub(super) async fn read(
    client: &Client,
    namespace: &str,
    owner: &Owner,
) -> Result<Option<Switched>, ReconcileError> {
    let Some(api) = api(client, namespace, owner) else { return Ok(None) };
    let reading = || format!("read {} {namespace}/{}", owner.kind, owner.name);
    let Some(found) = api.get_opt(&owner.name).await.doing(reading)? else { return Ok(None) };
    let object = serde_json::to_value(found)
        .map_err(|error| ReconcileError::Stuck(format!("{}: {error}", reading())))?;
    Ok(Switched::of(owner, object))
}

/// Walks up from controllers of pods to the topmost object with a switch; `None`: nobody has one, or not all the same.
pub(super) async fn above(
    client: &Client,
    namespace: &str,
    controllers: &[Option<Owner>],
) -> Result<Option<Switched>, ReconcileError> {
    let mut common: Option<Switched> = None;
    for first in controllers {
        let (mut next, mut top) = (first.clone(), None);
        for _ in 0..DEPTH {
            let Some(reference) = next else { break };
            let Some(owner) = read(client, namespace, &reference).await? else { break };
            next = controller(&owner.object);
            top = Some(owner);
        }
        let Some(top) = top else { return Ok(None) };
        match &common {
            Some(before) if before.reference != top.reference => return Ok(None),
            _ => common = Some(top),
        }
    }
    Ok(common)
}

/// The controller of an object.
fn controller(object: &Value) -> Option<Owner> {
    let owners = object["metadata"]["ownerReferences"].as_array()?;
    let owner = owners.iter().find(|owner| owner["controller"] == true)?;
    serde_json::from_value(owner.clone()).ok()
}
