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

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject},
    core::GroupVersionKind,
};
use serde_json::{Map, Value, json};
use tephra_api::keys;

use super::record::{OwnerRef, Record, parse};
use super::steps::SwitchSeen;
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
    /// Its controller deletes the PodGroup of a suspended job: the record on the owner must be complete.
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
    fn resource(&self, api_version: &str) -> ApiResource {
        let version = api_version.rsplit('/').next().unwrap_or_default();
        let kind = GroupVersionKind::gvk(self.group, version, self.kind);
        ApiResource::from_gvk_with_plural(&kind, self.plural)
    }

    /// A merge patch that sets the switch.
    fn set(&self, on: bool) -> Value {
        self.path.iter().rev().fold(json!(on), |inner, field| {
            Value::Object(Map::from_iter([((*field).to_owned(), inner)]))
        })
    }
}

/// An owner as it is stored.
pub(super) struct Owner {
    pub(super) switch: &'static Switch,
    pub(super) reference: OwnerRef,
    object: DynamicObject,
    pub(super) api: Api<DynamicObject>,
}

impl Owner {
    /// Reads the object of a reference; `None` when its kind has no switch, or it does not exist with this uid.
    pub(super) async fn read(
        client: &Client,
        namespace: &str,
        reference: &OwnerRef,
    ) -> Result<Option<Owner>, ReconcileError> {
        let OwnerRef { api_version, kind, name, uid } = reference;
        let Some(switch) = switch_of(api_version, kind) else { return Ok(None) };
        let kind_served = switch.resource(api_version);
        let api = Api::namespaced_with(client.clone(), namespace, &kind_served);
        let found: Option<DynamicObject> =
            api.get_opt(name).await.doing(|| format!("read {kind} {namespace}/{name}"))?;
        let found = found.filter(|object| object.uid().as_ref() == Some(uid));
        Ok(found.map(|object| Owner { switch, reference: reference.clone(), object, api }))
    }

    /// Walks up from a controller reference; `None`: nobody there has a switch.
    pub(super) async fn above(
        client: &Client,
        namespace: &str,
        first: Option<OwnerRef>,
    ) -> Result<Option<Owner>, ReconcileError> {
        let (mut next, mut top) = (first, None);
        for _ in 0..DEPTH {
            let Some(reference) = next else { break };
            let Some(owner) = Owner::read(client, namespace, &reference).await? else { break };
            next = controller(owner.object.owner_references());
            top = Some(owner);
        }
        Ok(top)
    }

    /// What a decision needs.
    pub(super) fn seen(&self) -> SwitchSeen {
        let data = &self.object.data;
        let at =
            |value, field: &&str| -> &Value { &Value::get(value, *field).unwrap_or(&Value::Null) };
        let switch = self.switch.path.iter().fold(data, at);
        let annotations = self.object.annotations();
        SwitchSeen {
            suspended: switch == &Value::Bool(true),
            record: self.record().map(|record| record.id),
            hold: annotations.get(keys::HOLD).is_some_and(|by| !by.is_empty()),
            finished: (self.switch.finished)(data),
        }
    }

    pub(super) fn record(&self) -> Option<Record> {
        parse(self.object.annotations().get(keys::SUSPENDED))
    }

    pub(super) fn annotation(&self, key: &str) -> Option<&String> {
        self.object.annotations().get(key)
    }

    /// A merge patch of annotations and, if given, of the switch; it holds for the object as it was read only.
    pub(super) fn patch(&self, annotations: Value, switch: Option<bool>) -> Value {
        let mut patch = switch.map_or_else(|| json!({}), |on| self.switch.set(on));
        patch["metadata"] = json!({
            "uid": self.reference.uid, "resourceVersion": self.object.resource_version(),
            "annotations": annotations,
        });
        patch
    }
}

/// The controller among the owners.
pub(super) fn controller(owners: &[OwnerReference]) -> Option<OwnerRef> {
    let owner = owners.iter().find(|owner| owner.controller == Some(true))?;
    Some(OwnerRef {
        api_version: owner.api_version.clone(),
        kind: owner.kind.clone(),
        name: owner.name.clone(),
        uid: owner.uid.clone(),
    })
}
