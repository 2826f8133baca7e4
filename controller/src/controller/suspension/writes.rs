//! What a step writes, in order. Pure: the executor carries it out, the test of interruptions cuts it off at every place.
//!
//! Every patch of a PodGroup or an owner holds for the version that was read, pods are meant by uid.

use serde_json::{Map, Value, json};
use tephra_api::{
    keys,
    suspension::{Intent, Ledger, Record},
};

use super::{
    gang::{Gang, Top, annotation, stand_in_name},
    owner::Switched,
    shape::{gather, placed, whole},
    steps::{PodSeen, Release, Step},
};

/// Kind of an object that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum On {
    Group,
    Pod,
    /// The owner with the switch.
    Owner,
}

/// One request to the API server.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Write {
    /// A merge patch.
    Patch {
        on: On,
        name: String,
        body: Value,
    },
    Create {
        on: On,
        body: Value,
    },
    /// Deletes a PodGroup.
    Delete {
        name: String,
        uid: Value,
    },
    /// Evicts a pod, or deletes it with its grace period where a disruption budget has no say any more.
    Evict {
        name: String,
        uid: String,
        force: bool,
    },
}

/// The requests of a step. A step that the objects do not bear out has none.
pub(super) fn writes(gang: &Gang, step: &Step) -> Vec<Write> {
    match step {
        Step::Wait(_) => Vec::new(),
        Step::Notify(pods) => {
            let request = gang.intent().map(|it| format!("{};deadline={}", it.id, it.deadline));
            annotate(gang, pods, &json!({(keys::CHECKPOINT_REQUEST): request}))
        }
        Step::Hush(pods) => {
            let nothing = json!({(keys::CHECKPOINT_REQUEST): null, (keys::CHECKPOINT_ACK): null});
            annotate(gang, pods, &nothing)
        }
        Step::Record { .. } => record(gang).into_iter().collect(),
        Step::StandIn => stand_in(gang).into_iter().collect(),
        Step::Stop => owner(gang, |owner| {
            let record = gang.record()?.without_members().text();
            Some(owner.patch(json!({(keys::SUSPENDED): record}), Some(true)))
        }),
        Step::Evict { pods, force } => {
            let evict = |pod: &PodSeen| Write::Evict {
                name: pod.name.clone(),
                uid: pod.uid.clone(),
                force: *force,
            };
            pods.iter().filter_map(|index| gang.pods.get(*index)).map(evict).collect()
        }
        Step::Settle => match gang.waiting() {
            Some(waiting) => {
                // The stand-in alone waits from now on, also if the operator leaves the PodGroup.
                let group = gang.group.as_ref().and_then(|group| clean(group, json!({})));
                group.into_iter().chain(off(waiting, &[keys::SUSPEND], json!({}))).collect()
            }
            None => gang.group.iter().flat_map(|it| off(it, &[keys::SUSPEND], json!({}))).collect(),
        },
        Step::Hold(held) => {
            let waits = gang.waiting().or(gang.group.as_ref());
            let record = gang.record().map(|record| Record { held: *held, ..record });
            let patch = |(group, record): (&Value, Record)| {
                group_patch(group, json!({"annotations": {(keys::SUSPENDED): record.text()}}))
            };
            waits.zip(record).map(patch).into_iter().collect()
        }
        Step::Refuse => {
            let waits = gang.waiting().or(gang.group.as_ref());
            waits.into_iter().flat_map(|it| off(it, &[keys::RESUME], json!({}))).collect()
        }
        Step::Run => owner(gang, |owner| {
            let record = gang.record().or_else(|| owner.record())?;
            Some(owner.patch(history(&record, gang), Some(false)))
        }),
        Step::Forget => {
            owner(gang, |owner| Some(owner.patch(history(&owner.record()?, gang), None)))
        }
        Step::Create => create(gang),
        Step::Release(why) => release(gang, *why),
        Step::Drop => gang.waiting().map(delete).into_iter().collect(),
    }
}

fn annotate(gang: &Gang, pods: &[usize], annotations: &Value) -> Vec<Write> {
    let patch = |pod: &PodSeen| Write::Patch {
        on: On::Pod,
        name: pod.name.clone(),
        body: json!({"metadata": {"uid": pod.uid, "annotations": annotations}}),
    };
    pods.iter().filter_map(|index| gang.pods.get(*index)).map(patch).collect()
}

fn owner(gang: &Gang, patch: impl Fn(&Switched) -> Option<Value>) -> Vec<Write> {
    let Top::Switch(owner) = &gang.owner else { return Vec::new() };
    let name = owner.reference.name.clone();
    patch(owner).map(|body| Write::Patch { on: On::Owner, name, body }).into_iter().collect()
}

fn history(record: &Record, gang: &Gang) -> Value {
    json!({(keys::SUSPENDED): null, (keys::SUSPENSIONS): record.ledger(gang.now).text()})
}

fn group_patch(group: &Value, mut metadata: Value) -> Write {
    metadata["uid"] = group["metadata"]["uid"].clone();
    metadata["resourceVersion"] = group["metadata"]["resourceVersion"].clone();
    let name = group["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    Write::Patch { on: On::Group, name, body: json!({"metadata": metadata}) }
}

/// Takes annotations off a PodGroup, if it has any of them, and writes `more` metadata with that.
fn off(group: &Value, keys: &[&str], mut more: Value) -> Option<Write> {
    let there: Vec<_> = keys.iter().filter(|key| annotation(group, key).is_some()).collect();
    for key in &there {
        more["annotations"][**key] = Value::Null;
    }
    (!there.is_empty()).then(|| group_patch(group, more))
}

fn clean(group: &Value, more: Value) -> Option<Write> {
    off(group, &[keys::SUSPEND, keys::SUSPENDED, keys::RESUME], more)
}

fn delete(group: &Value) -> Write {
    let name = group["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    Write::Delete { name, uid: group["metadata"]["uid"].clone() }
}

/// The record, on the PodGroup that has the intent still: a withdrawal moves its version.
fn record(gang: &Gang) -> Option<Write> {
    let (group, intent) = (gang.group.as_ref()?, gang.intent()?);
    let record = new_record(gang, group, &intent);
    let mut metadata = json!({"annotations": {(keys::SUSPENDED): record.text()}});
    if record.owner.is_none()
        && let Some(owners) = group["metadata"]["ownerReferences"].as_array()
    {
        // It would be collected with the pod.
        let stay = owners.iter().filter(|owner| owner["kind"] != "Pod");
        metadata["ownerReferences"] = stay.cloned().collect();
    }
    Some(group_patch(group, metadata))
}

fn new_record(gang: &Gang, group: &Value, intent: &Intent) -> Record {
    let ours = |pod: &&Value| pod["metadata"]["annotations"][keys::RECREATE] == "true";
    let (owner, stored) = match &gang.owner {
        Top::Switch(owner) => (Some(owner.reference.clone()), &owner.object),
        Top::Pods | Top::Gone => (None, group),
    };
    let members = match &owner {
        Some(_) => gather(gang.bodies.iter().map(|pod| (placed(pod), None))),
        None => gather(
            gang.bodies
                .iter()
                .filter(ours)
                .map(|pod| (whole(pod), pod["metadata"]["name"].as_str().map(str::to_owned))),
        ),
    };
    let uid = owner.as_ref().map_or("", |owner| &owner.uid);
    let ledger = Ledger::of(annotation(stored, keys::SUSPENSIONS), uid);
    let created = group["metadata"]["creationTimestamp"].as_str().and_then(|at| at.parse().ok());
    Record {
        id: intent.id.clone(),
        by: intent.by.clone(),
        reason: intent.reason.clone(),
        at: gang.now,
        since: gang.now.min(intent.deadline),
        deadline: intent.deadline,
        owner,
        group: gang.name.clone(),
        queued: ledger.queued.or(created),
        suspensions: ledger.suspensions.saturating_add(1),
        suspended_seconds: ledger.suspended_seconds,
        held: false,
        members,
    }
}

/// The PodGroup that will wait: like the gang's, the intent included until the gang is down, and with it when the owner goes.
fn stand_in(gang: &Gang) -> Option<Write> {
    let (group, Top::Switch(owner)) = (gang.group.as_ref()?, &gang.owner) else { return None };
    let mut annotations = group["metadata"]["annotations"].as_object().cloned().unwrap_or_default();
    annotations.retain(|key, _| !key.starts_with("kubectl.kubernetes.io/") && key != keys::RESUME);
    let mut metadata = Map::from_iter([
        ("name".to_owned(), json!(stand_in_name(&gang.name))),
        ("namespace".to_owned(), json!(gang.namespace)),
        ("annotations".to_owned(), Value::Object(annotations)),
        ("ownerReferences".to_owned(), json!([owner.reference])),
    ]);
    if let Some(labels) = group["metadata"].get("labels") {
        metadata.insert("labels".to_owned(), labels.clone());
    }
    Some(Write::Create {
        on: On::Group,
        body: json!({
            "apiVersion": group["apiVersion"], "kind": group["kind"], "metadata": metadata,
            "spec": group["spec"], "status": {"phase": "Pending"},
        }),
    })
}

fn create(gang: &Gang) -> Vec<Write> {
    let Some(record) = gang.record() else { return Vec::new() };
    let exists = |name: &String| gang.pods.iter().any(|pod| pod.name == *name);
    let mut writes = Vec::new();
    for member in &record.members {
        for name in member.names.iter().filter(|name| !exists(name)) {
            let mut body = member.pod.clone();
            body["apiVersion"] = json!("v1");
            body["kind"] = json!("Pod");
            body["metadata"]["name"] = json!(name);
            body["metadata"]["namespace"] = json!(gang.namespace);
            writes.push(Write::Create { on: On::Pod, body });
        }
    }
    writes
}

/// Cleans the PodGroup first: the stand-in is what brings us back here after a crash.
fn release(gang: &Gang, why: Release) -> Vec<Write> {
    let mut more = json!({});
    if let Some(record) = gang.record().filter(|_| why != Release::NothingToStop) {
        more["annotations"] = json!({(keys::SUSPENSIONS): record.ledger(gang.now).text()});
        if let Some(pod) = of_its_own(gang, &record) {
            more["ownerReferences"] = json!([{
                "apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid,
                "controller": true, "blockOwnerDeletion": true,
            }]);
        }
    }
    let group = gang.group.as_ref().and_then(|group| clean(group, more));
    group.into_iter().chain(gang.waiting().map(delete)).collect()
}

/// The pod that has this PodGroup for itself, from the PodGroup controller: the PodGroup ends with it again.
fn of_its_own<'a>(gang: &'a Gang, record: &Record) -> Option<&'a PodSeen> {
    let made = gang.name.starts_with("podgroup-") && record.owner.is_none();
    let one = record.members.iter().map(|member| member.names.len()).sum::<usize>() == 1;
    gang.pods.first().filter(|pod| made && one && pod.controller.is_none())
}
