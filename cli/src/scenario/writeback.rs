//! Writes the scheduler's decisions into objects, in the shapes that the API server would store: PodGroup
//! status, pod conditions, queue status, bindings and deletions.

use serde_json::{Value, json};
use tephra_api::resource::from_stored;
use tephra_core::decision::PodRef;
use tephra_core::event::{Amounts, GroupCondition, PodGroupStatus};

use super::store::{ObjectId, section};

/// Identity of a pod that a decision names.
pub fn pod_id(pod: &PodRef) -> ObjectId {
    ObjectId::new("Pod", Some(&pod.namespace), &pod.name)
}

/// RFC 3339 text of a time in milliseconds since the epoch, in whole seconds like the API server's.
pub fn time_text(ms: i64) -> String {
    let seconds = ms.div_euclid(1000);
    jiff::Timestamp::from_second(seconds).map(|time| time.to_string()).unwrap_or_default()
}

/// Reads an RFC 3339 text.
pub fn time_ms(text: &str) -> Option<i64> {
    text.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_millisecond)
}

/// Sets a condition by type; `lastTransitionTime` moves only when the status changes.
pub fn set_condition(
    object: &mut Value,
    kind: &str,
    status: &str,
    reason: &str,
    message: &str,
    now_ms: i64,
) {
    let entry = &mut section(object, "status")["conditions"];
    if !entry.is_array() {
        *entry = json!([]);
    }
    let Some(conditions) = entry.as_array_mut() else { return };
    let old = conditions.iter_mut().find(|condition| condition["type"] == kind);
    let since = old
        .as_ref()
        .filter(|condition| condition["status"] == status)
        .map(|condition| condition["lastTransitionTime"].clone())
        .filter(Value::is_string)
        .unwrap_or_else(|| json!(time_text(now_ms)));
    let mut condition = json!({"type": kind, "status": status, "lastTransitionTime": since});
    if !reason.is_empty() {
        condition["reason"] = json!(reason);
    }
    if !message.is_empty() {
        condition["message"] = json!(message);
    }
    match old {
        Some(old) => *old = condition,
        None => conditions.push(condition),
    }
}

/// Writes the whole status of a PodGroup.
pub fn set_group_status(object: &mut Value, status: &PodGroupStatus) {
    let conditions: Vec<Value> = status.conditions.iter().map(group_condition).collect();
    let section = section(object, "status");
    section["phase"] = json!(status.phase.as_str());
    section["conditions"] = Value::Array(conditions);
    for (key, count) in
        [("running", status.running), ("succeeded", status.succeeded), ("failed", status.failed)]
    {
        section[key] = json!(count);
    }
}

fn group_condition(condition: &GroupCondition) -> Value {
    json!({
        "type": condition.kind,
        "status": if condition.status { "True" } else { "False" },
        "transitionID": condition.transition_id,
        "lastTransitionTime": time_text(condition.since_ms),
        "reason": condition.reason,
        "message": condition.message,
    })
}

/// Writes `status.allocated` of a queue.
pub fn set_queue_allocated(object: &mut Value, allocated: &Amounts) {
    let list: serde_json::Map<String, Value> = allocated
        .iter()
        .map(|(name, amount)| (name.clone(), json!(from_stored(name, *amount).to_string())))
        .collect();
    section(object, "status")["allocated"] = Value::Object(list);
}

/// Annotation `tephra.sh/fairness` of a queue.
pub fn set_fairness(object: &mut Value, text: String) {
    let metadata = section(object, "metadata");
    section(metadata, "annotations")[tephra_api::keys::FAIRNESS] = text.into();
}

/// Binds a pod as the binding subresource does.
pub fn set_bound(object: &mut Value, node: &str, now_ms: i64) {
    section(object, "spec")["nodeName"] = json!(node);
    set_condition(object, "PodScheduled", "True", "", "", now_ms);
}

/// Starts a bound pod as its kubelet does.
pub fn set_running(object: &mut Value, now_ms: i64) {
    let status = section(object, "status");
    status["phase"] = json!("Running");
    status["startTime"] = json!(time_text(now_ms));
}

/// Marks a pod as being deleted, with a grace period in seconds.
pub fn set_deleting(object: &mut Value, now_ms: i64, grace_s: i64) {
    let metadata = section(object, "metadata");
    metadata["deletionTimestamp"] = json!(time_text(now_ms));
    metadata["deletionGracePeriodSeconds"] = json!(grace_s);
}

/// When a pod under deletion is gone, in milliseconds; `None` when it is not being deleted.
pub fn gone_at(object: &Value) -> Option<i64> {
    let metadata = object.get("metadata")?;
    let since = time_ms(metadata.get("deletionTimestamp")?.as_str()?)?;
    let grace = metadata.get("deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0);
    Some(since.saturating_add(grace.max(0).saturating_mul(1000)))
}

/// `spec.terminationGracePeriodSeconds`, 0 when absent: scenarios say so when they want one.
pub fn grace_seconds(object: &Value) -> i64 {
    let seconds = object.pointer("/spec/terminationGracePeriodSeconds").and_then(Value::as_i64);
    seconds.unwrap_or(0).max(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_keeps_its_time_until_the_status_changes() {
        let mut pod = json!({});
        set_condition(&mut pod, "PodScheduled", "False", "A", "m", 1_000);
        set_condition(&mut pod, "PodScheduled", "False", "B", "m", 9_000);
        let condition = pod["status"]["conditions"][0].clone();
        assert_eq!(condition["reason"], "B");
        assert_eq!(condition["lastTransitionTime"], "1970-01-01T00:00:01Z");
        set_bound(&mut pod, "n1", 9_000);
        let condition = pod["status"]["conditions"][0].clone();
        assert_eq!(condition["status"], "True");
        assert_eq!(condition["lastTransitionTime"], "1970-01-01T00:00:09Z");
        assert!(condition.get("reason").is_none());
        assert_eq!(pod["spec"]["nodeName"], "n1");
    }

    #[test]
    fn a_pod_under_deletion_is_gone_after_its_grace_period() {
        let mut pod = json!({"metadata": {"name": "a"}});
        assert_eq!(gone_at(&pod), None);
        set_deleting(&mut pod, 5_000, 30);
        assert_eq!(gone_at(&pod), Some(35_000));
    }

    #[test]
    fn queue_amounts_are_written_as_quantities() {
        let mut queue = json!({});
        let amounts = vec![("cpu".to_owned(), 1_500), ("memory".to_owned(), 1 << 30)];
        set_queue_allocated(&mut queue, &amounts);
        assert_eq!(queue["status"]["allocated"], json!({"cpu": "1500m", "memory": "1Gi"}));
    }
}
