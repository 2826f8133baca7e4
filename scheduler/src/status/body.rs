//! The patches that carry a status: only the fields that the scheduler owns, so that nothing a newer client
//! stored is lost.

use serde_json::{Map, Value, json};
use tephra_api::{keys, resource};
use tephra_core::event::{Amounts, GroupCondition, PodGroupStatus};

use super::StatusWrite;
use crate::write::{MERGE_PATCH, STRATEGIC_PATCH};

const MANAGER: &str = "fieldManager=tephra-scheduler";
const GROUP: &str = "/apis/scheduling.volcano.sh/v1beta1";

/// Path, content type and body of a status write.
pub(super) fn request(write: &StatusWrite) -> (String, &'static str, Value) {
    match write {
        StatusWrite::PodGroup { group, uid, status } => (
            format!("{GROUP}/namespaces/{}/podgroups/{}?{MANAGER}", group.namespace, group.name),
            MERGE_PATCH,
            json!({"metadata": {"uid": uid}, "status": pod_group(status)}),
        ),
        StatusWrite::Annotation { group, uid, key, text } => (
            format!("{GROUP}/namespaces/{}/podgroups/{}?{MANAGER}", group.namespace, group.name),
            MERGE_PATCH,
            json!({"metadata": {"uid": uid, "annotations": {*key: text}}}),
        ),
        StatusWrite::Queue { queue, allocated, stale } => (
            format!("{GROUP}/queues/{queue}/status?{MANAGER}"),
            MERGE_PATCH,
            json!({"status": {"allocated": amounts(allocated, stale)}}),
        ),
        StatusWrite::QueueFairness { queue, text } => (
            format!("{GROUP}/queues/{queue}?{MANAGER}"),
            MERGE_PATCH,
            json!({"metadata": {"annotations": {keys::FAIRNESS: text}}}),
        ),
        StatusWrite::Pod { pod, reason, message, nominated, since } => (
            format!("/api/v1/namespaces/{}/pods/{}/status?{MANAGER}", pod.namespace, pod.name),
            STRATEGIC_PATCH,
            json!({
                "metadata": {"uid": &*pod.uid},
                "status": pod_status(reason, message, nominated.as_deref(), since.as_deref()),
            }),
        ),
    }
}

/// Counters of zero are removed, as Volcano leaves them out; conditions are replaced as a whole.
fn pod_group(status: &PodGroupStatus) -> Value {
    let counter = |count: i32| if count == 0 { Value::Null } else { Value::from(count) };
    json!({
        "phase": status.phase.as_str(),
        "conditions": status.conditions.iter().map(condition).collect::<Vec<_>>(),
        "running": counter(status.running),
        "succeeded": counter(status.succeeded),
        "failed": counter(status.failed),
    })
}

fn condition(condition: &GroupCondition) -> Value {
    let mut fields = Map::new();
    fields.insert("type".to_owned(), condition.kind.as_str().into());
    fields.insert("status".to_owned(), if condition.status { "True" } else { "False" }.into());
    fields.insert("lastTransitionTime".to_owned(), rfc3339(condition.since_ms).into());
    for (name, text) in [
        ("transitionID", &condition.transition_id),
        ("reason", &condition.reason),
        ("message", &condition.message),
    ] {
        if !text.is_empty() {
            fields.insert(name.to_owned(), text.as_str().into());
        }
    }
    Value::Object(fields)
}

fn amounts(allocated: &Amounts, stale: &[String]) -> Value {
    let mut fields: Map<String, Value> =
        stale.iter().map(|name| (name.clone(), Value::Null)).collect();
    for (name, amount) in allocated {
        let quantity = resource::from_stored(name, *amount);
        fields.insert(name.clone(), quantity.to_string().into());
    }
    Value::Object(fields)
}

fn pod_status(reason: &str, message: &str, nominated: Option<&str>, since: Option<&str>) -> Value {
    let mut condition = json!({
        "type": "PodScheduled", "status": "False", "reason": reason, "message": message,
    });
    if let Some(since) = since {
        condition["lastTransitionTime"] = since.into();
    }
    let mut status = json!({"conditions": [condition]});
    if let Some(node) = nominated {
        status["nominatedNodeName"] = if node.is_empty() { Value::Null } else { node.into() };
    }
    status
}

/// Milliseconds since the epoch as Kubernetes writes times: RFC 3339, whole seconds, UTC.
pub(crate) fn rfc3339(ms: i64) -> String {
    let time = jiff::Timestamp::from_second(ms.div_euclid(1000));
    time.unwrap_or(jiff::Timestamp::UNIX_EPOCH).to_string()
}
