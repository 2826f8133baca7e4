//! The objects of one gang as they were read, and what the decision sees of them. Pure.

use jiff::Timestamp;
use kube::{ResourceExt, core::Object};
use serde::Deserialize;
use serde_json::Value;
use tephra_api::{
    keys,
    suspension::{Intent, Invalid, Owner, Record},
};

use super::{
    owner::Switched,
    steps::{GroupSeen, OwnerSeen, PodSeen, Seen},
};

/// A pod, as far as it is decoded.
pub(super) type SlimPod = Object<SlimSpec, SlimStatus>;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct SlimSpec {
    node_name: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SlimStatus {
    phase: Option<String>,
}

/// Who has the switch, as stored.
#[derive(Clone)]
pub(super) enum Top {
    Pods,
    Gone,
    Switch(Box<Switched>),
}

/// Everything that was read of a gang.
#[derive(Clone)]
pub(super) struct Gang {
    pub(super) namespace: String,
    /// Name of its PodGroup.
    pub(super) name: String,
    pub(super) group: Option<Value>,
    /// The PodGroup called [`stand_in_name`], whoever made it.
    pub(super) stand_in: Option<Value>,
    pub(super) owner: Top,
    pub(super) pods: Vec<PodSeen>,
    /// The pods in full; only needed for [`Step::Record`](super::steps::Step::Record), empty otherwise.
    pub(super) bodies: Vec<Value>,
    /// The server has refused to suspend the owner.
    pub(super) refused: bool,
    pub(super) now: Timestamp,
}

/// Name of the PodGroup that waits for one that the operator has deleted.
pub(super) fn stand_in_name(group: &str) -> String {
    format!("{group}-suspended")
}

/// The text of an annotation.
pub(super) fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object["metadata"]["annotations"].get(key)?.as_str()
}

/// A person wants it suspended.
pub(super) fn is_held(object: &Value) -> bool {
    annotation(object, keys::HOLD).is_some_and(|by| !by.is_empty())
}

/// Why the intent on a PodGroup counts as absent, if it does.
pub(super) fn invalid_intent(group: &Value) -> Option<Invalid> {
    Intent::parse(annotation(group, keys::SUSPEND)?).err()
}

fn group_seen(group: &Value) -> GroupSeen {
    let text = |key| annotation(group, key);
    GroupSeen {
        intent: text(keys::SUSPEND).and_then(|text| Intent::parse(text).ok()),
        wanted: text(keys::SUSPEND).is_some(),
        record: text(keys::SUSPENDED).and_then(|text| Record::parse(text).ok()),
        resume: text(keys::RESUME).map(str::to_owned),
        hold: is_held(group),
    }
}

impl Gang {
    /// The stand-in, if it is one: it carries a record of this gang.
    pub(super) fn waiting(&self) -> Option<&Value> {
        let of_this = |record: &Record| record.group == self.name;
        let record = |it: &Value| Record::parse(annotation(it, keys::SUSPENDED)?).ok();
        self.stand_in.as_ref().filter(|it| record(it).as_ref().is_some_and(of_this))
    }

    /// The record that counts: that of the stand-in, else that of the PodGroup.
    pub(super) fn record(&self) -> Option<Record> {
        let group = self.waiting().or(self.group.as_ref())?;
        Record::parse(annotation(group, keys::SUSPENDED)?).ok()
    }

    /// The intent on the PodGroup.
    pub(super) fn intent(&self) -> Option<Intent> {
        Intent::parse(annotation(self.group.as_ref()?, keys::SUSPEND)?).ok()
    }

    /// What the decision is made on.
    pub(super) fn seen(&self) -> Seen {
        Seen {
            group: self.group.as_ref().map(group_seen),
            stand_in: self.waiting().map(group_seen),
            owner: match &self.owner {
                Top::Pods => OwnerSeen::Pods,
                Top::Gone => OwnerSeen::Gone,
                Top::Switch(owner) => OwnerSeen::Switch(owner.seen()),
            },
            pods: self.pods.clone(),
            refused: self.refused,
            now: self.now,
        }
    }
}

/// Name of the PodGroup of a pod, and what is remembered of it; none for a pod without a group.
pub(super) fn pod_seen(pod: &SlimPod) -> Option<(String, PodSeen)> {
    let annotations = pod.annotations();
    let group = annotations.get(keys::GROUP_NAME).filter(|name| !name.is_empty())?;
    let controller = pod.owner_references().iter().find(|owner| owner.controller == Some(true));
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    let request = annotations.get(keys::CHECKPOINT_REQUEST);
    let seen = PodSeen {
        name: pod.name_any(),
        uid: pod.uid().unwrap_or_default(),
        controller: controller.map(|owner| Owner {
            api_version: owner.api_version.clone(),
            kind: owner.kind.clone(),
            name: owner.name.clone(),
            uid: owner.uid.clone(),
        }),
        bound: pod.spec.node_name.as_ref().is_some_and(|node| !node.is_empty()),
        over: matches!(phase, Some("Succeeded" | "Failed")),
        leaving: pod.metadata.deletion_timestamp.is_some(),
        request: request.map(|it| it.split(';').next().unwrap_or_default().to_owned()),
        ack: annotations.get(keys::CHECKPOINT_ACK).cloned(),
    };
    Some((group.clone(), seen))
}
