//! From objects to the core's events, through the very decoders that the scheduler's watchers use. Kinds that
//! the core does not know are kept in the world and told to nobody.

use serde_json::Value;
use tephra_core::event::{Event, ObjectKey};
use tephra_scheduler::convert;
use tephra_scheduler::decode::Names;

use super::store::ObjectId;

/// Turns objects into events.
#[derive(Clone, Debug)]
pub struct Ingest {
    names: Names,
}

impl Ingest {
    /// Pods of these scheduler names are ours.
    pub fn new(names: Names) -> Self {
        Self { names }
    }

    /// The event that tells of an object; `None` for a kind of no interest; an error says what is malformed.
    pub fn event(&self, object: &Value) -> Result<Option<Event>, String> {
        let name = object.pointer("/metadata/name").unwrap_or(&Value::Null);
        if name.as_str().is_none_or(str::is_empty) {
            return Err(format!("metadata.name: a name is required, found {name}"));
        }
        convert::object(object, &self.names).map_err(|error| error.to_string())
    }

    /// The event that tells that an object is gone.
    pub fn deletion(id: &ObjectId, uid: &str) -> Option<Event> {
        let name = id.name.clone();
        let key = || ObjectKey::new(id.namespace.clone(), id.name.clone());
        Some(match id.kind.as_str() {
            "Pod" => Event::PodDeleted(uid.to_owned()),
            "Node" => Event::NodeDeleted(name),
            "PodGroup" => Event::PodGroupDeleted(key()),
            "Queue" => Event::QueueDeleted(name),
            "QueuePolicy" => Event::QueuePolicyDeleted(name),
            "HyperNode" => Event::HyperNodeDeleted(name),
            "PriorityClass" => Event::PriorityClassDeleted(name),
            "Namespace" => Event::NamespaceDeleted(name),
            "PersistentVolumeClaim" => Event::VolumeClaimDeleted(key()),
            "PersistentVolume" => Event::VolumeDeleted(name),
            "PodDisruptionBudget" => Event::DisruptionBudgetDeleted(key()),
            "ResourceQuota" => Event::ResourceQuotaDeleted(key()),
            _ => return None,
        })
    }
}
