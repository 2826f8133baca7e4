//! What annotations of a PodGroup say of its suspension. A text that cannot be read counts as absent: the suspension
//! controller, whose annotations these are, says so in an event.

use std::sync::Arc;

use serde_json::{Value, json};
use tephra_api::keys;
use tephra_api::suspension::{Intent, Ledger, Member, Record};
use tephra_core::event::{Labels, ObjectKey, PodObject, Suspension, SuspensionRecord};

use crate::decode::{self, Names};

/// No suspension lasted longer: a hundred years.
const LONGEST_SECONDS: i64 = 100 * 366 * 86_400;

/// Reads the annotations; `None` where none of them is there.
pub(super) fn suspension(key: &ObjectKey, annotations: &Labels) -> Option<Box<Suspension>> {
    let text = |wanted: &str| text(annotations, wanted);
    let intent = text(keys::SUSPEND).and_then(|text| Intent::parse(text).ok());
    let record = text(keys::SUSPENDED).and_then(|text| Record::parse(text).ok());
    if intent.is_none() && record.is_none() {
        return None;
    }
    Some(Box::new(Suspension {
        intent,
        record: record.map(|record| of_record(key, record)),
        resume: text(keys::RESUME).map(str::to_owned),
        hold: text(keys::HOLD).is_some(),
    }))
}

/// The place in the queue that its suspensions give a PodGroup: that of the first PodGroup of its life, and time that it was
/// suspended counts twice as waiting (`features.md` 3.2). `None` where its annotations tell of none.
pub(super) fn queued_ms(created_ms: i64, annotations: &Labels) -> Option<i64> {
    let record = text(annotations, keys::SUSPENDED).and_then(|text| Record::parse(text).ok());
    let ledger = text(annotations, keys::SUSPENSIONS).and_then(Ledger::parse);
    let (queued, seconds) = record
        .map(|record| (record.queued, record.suspended_seconds))
        .or_else(|| ledger.map(|ledger| (ledger.queued, ledger.suspended_seconds)))?;
    let queued_ms = queued.map_or(created_ms, |queued| queued.as_millisecond().min(created_ms));
    Some(queued_ms.saturating_sub(seconds.clamp(0, LONGEST_SECONDS) * 1000))
}

fn text<'a>(annotations: &'a Labels, wanted: &str) -> Option<&'a str> {
    let found = annotations.binary_search_by(|(name, _)| name.as_str().cmp(wanted)).ok()?;
    Some(annotations[found].1.as_str())
}

fn of_record(key: &ObjectKey, record: Record) -> SuspensionRecord {
    let members = record.members.iter();
    SuspensionRecord {
        id: record.id,
        by: record.by,
        at_ms: record.at.as_millisecond(),
        group: record.group,
        members: members.filter_map(|member| shape(key, member)).collect(),
    }
}

/// A shape of pods; `None` where no pod can be read, so that the gang lacks members and says so.
fn shape(key: &ObjectKey, member: &Member) -> Option<(u32, Arc<PodObject>)> {
    let mut pod = json!({"metadata": {}, "spec": member.pod.get("spec")});
    for part in ["labels", "annotations"] {
        if let Some(value) = member.pod.get("metadata").and_then(|metadata| metadata.get(part)) {
            pod["metadata"][part] = value.clone();
        }
    }
    pod["metadata"]["namespace"] = key.namespace.as_str().into();
    pod["metadata"]["name"] = key.name.as_str().into();
    pod["metadata"]["uid"] = Value::from("");
    match decode::pod(&pod.to_string().into_bytes(), &Names::any()) {
        Ok(pod) => Some((member.count, Arc::new(pod))),
        Err(error) => {
            tracing::warn!(group = %key, %error, "a pod of a suspended gang cannot be read");
            None
        }
    }
}
