//! Tables for `kubectl get`: the columns of built-in kinds, and of custom resources from their definitions.

use serde_json::{Value, json};

use crate::clock::parse_timestamp;
use crate::columns::CustomColumn;
use crate::resource::Route;
use crate::store::object::{Stored, is_deleting, meta_str};

/// A column that the server draws itself.
struct Column {
    name: &'static str,
    kind: &'static str,
    /// Shown with `-o wide` only.
    wide: bool,
    cell: fn(&Value, i64) -> Value,
}

const fn column(name: &'static str, cell: fn(&Value, i64) -> Value) -> Column {
    Column { name, kind: "string", wide: false, cell }
}

const fn number(name: &'static str, cell: fn(&Value, i64) -> Value) -> Column {
    Column { name, kind: "integer", wide: false, cell }
}

const fn wide(name: &'static str, cell: fn(&Value, i64) -> Value) -> Column {
    Column { name, kind: "string", wide: true, cell }
}

const NAME: Column = column("Name", |o, _| meta_str(o, "name").into());
const AGE: Column = column("Age", |o, now| age(meta_str(o, "creationTimestamp"), now));

const PODS: &[Column] = &[
    NAME,
    column("Ready", pod_ready),
    column("Status", |o, _| pod_status(o).into()),
    column("Restarts", |o, _| pod_restarts(o).to_string().into()),
    AGE,
    wide("IP", |o, _| or_none(o, "/status/podIP")),
    wide("Node", |o, _| or_none(o, "/spec/nodeName")),
    wide("Nominated Node", |o, _| or_none(o, "/status/nominatedNodeName")),
    wide("Readiness Gates", |_, _| "<none>".into()),
];
const NODES: &[Column] = &[
    NAME,
    column("Status", |o, _| node_status(o).into()),
    column("Roles", |o, _| node_roles(o).into()),
    AGE,
    column("Version", |o, _| text(o, "/status/nodeInfo/kubeletVersion")),
    wide("Internal-IP", |_, _| "<none>".into()),
    wide("OS-Image", |o, _| or_none(o, "/status/nodeInfo/osImage")),
];
const NAMESPACES: &[Column] = &[NAME, column("Status", |o, _| text(o, "/status/phase")), AGE];
const EVENTS: &[Column] = &[
    column("Last Seen", event_seen),
    column("Type", |o, _| text(o, "/type")),
    column("Reason", |o, _| text(o, "/reason")),
    column("Object", event_object),
    wide("Source", |o, _| event_source(o)),
    column("Message", |o, _| text(o, "/message")),
    wide("Count", |o, _| o.get("count").cloned().unwrap_or_else(|| json!(1))),
    wide("Name", |o, _| meta_str(o, "name").into()),
];
const JOBS: &[Column] = &[
    NAME,
    column("Status", |o, _| job_status(o).into()),
    column("Completions", |o, _| {
        format!("{}/{}", count(o, "/status/succeeded"), count(o, "/spec/completions")).into()
    }),
    column("Duration", job_duration),
    AGE,
];
const PRIORITY_CLASSES: &[Column] = &[
    NAME,
    number("Value", |o, _| o["value"].clone()),
    column("Global-Default", |o, _| json!(o["globalDefault"] == true)),
    AGE,
    column("PreemptionPolicy", |o, _| text(o, "/preemptionPolicy")),
];
const SCALABLE: &[Column] = &[
    NAME,
    number("Desired", |o, _| json!(count(o, "/spec/replicas"))),
    number("Current", |o, _| json!(count(o, "/status/replicas"))),
    number("Ready", |o, _| json!(count(o, "/status/readyReplicas"))),
    AGE,
];
const DEPLOYMENTS: &[Column] = &[
    NAME,
    column("Ready", |o, _| {
        format!("{}/{}", count(o, "/status/readyReplicas"), count(o, "/spec/replicas")).into()
    }),
    number("Up-to-date", |o, _| json!(count(o, "/status/updatedReplicas"))),
    number("Available", |o, _| json!(count(o, "/status/availableReplicas"))),
    AGE,
];
const CLAIMS: &[Column] = &[
    NAME,
    column("Status", |o, _| text(o, "/status/phase")),
    column("Volume", |o, _| text(o, "/spec/volumeName")),
    column("Capacity", |o, _| text(o, "/status/capacity/storage")),
    column("StorageClass", |o, _| text(o, "/spec/storageClassName")),
    AGE,
];
const LEASES: &[Column] = &[NAME, column("Holder", |o, _| text(o, "/spec/holderIdentity")), AGE];
const DEFINITIONS: &[Column] =
    &[NAME, column("Created At", |o, _| meta_str(o, "creationTimestamp").into())];
const PLAIN: &[Column] = &[NAME, AGE];

fn columns(kind: &str, custom: bool) -> &'static [Column] {
    match kind {
        _ if custom => PLAIN,
        "Pod" => PODS,
        "Node" => NODES,
        "Namespace" => NAMESPACES,
        "Event" => EVENTS,
        "Job" => JOBS,
        "PriorityClass" => PRIORITY_CLASSES,
        "ReplicaSet" | "ReplicationController" => SCALABLE,
        "Deployment" | "StatefulSet" => DEPLOYMENTS,
        "PersistentVolumeClaim" => CLAIMS,
        "Lease" => LEASES,
        "CustomResourceDefinition" => DEFINITIONS,
        _ => PLAIN,
    }
}

/// A `meta.k8s.io/v1` Table. Rows carry the metadata of their objects, which kubectl needs for namespaces and labels.
pub(crate) fn table<'a>(
    route: &Route,
    items: impl Iterator<Item = &'a Stored>,
    rv: &str,
    continue_token: &str,
    remaining: Option<usize>,
    now_ms: i64,
) -> Value {
    let custom = route.version().columns.as_deref();
    let built_in = columns(&route.ty.kind, route.ty.custom);
    let definitions: Vec<Value> = match custom {
        Some(columns) => custom_definitions(columns),
        None => {
            built_in.iter().map(|c| definition(c.name, c.kind, "", i64::from(c.wide))).collect()
        }
    };
    let cells = |object: &Value| -> Vec<Value> {
        match custom {
            Some(columns) => custom_cells(columns, object, now_ms),
            None => built_in.iter().map(|c| (c.cell)(object, now_ms)).collect(),
        }
    };
    let rows: Vec<Value> = items
        .map(|stored| {
            json!({
                "cells": cells(&stored.value),
                "object": {
                    "kind": "PartialObjectMetadata",
                    "apiVersion": "meta.k8s.io/v1",
                    "metadata": stored.value["metadata"],
                },
            })
        })
        .collect();
    let mut metadata = json!({ "resourceVersion": rv });
    if !continue_token.is_empty() {
        metadata["continue"] = continue_token.into();
        if let Some(remaining) = remaining {
            metadata["remainingItemCount"] = remaining.into();
        }
    }
    json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": definitions,
        "rows": rows,
    })
}

fn definition(name: &str, kind: &str, description: &str, priority: i64) -> Value {
    let format = if name == "Name" { "name" } else { "" };
    json!({"name": name, "type": kind, "format": format, "description": description, "priority": priority})
}

fn custom_definitions(columns: &[CustomColumn]) -> Vec<Value> {
    let mut definitions = vec![definition("Name", "string", "", 0)];
    if columns.is_empty() {
        definitions.push(definition("Age", "string", "", 0));
    }
    for c in columns {
        let kind = if c.kind == "date" { "string" } else { c.kind.as_str() };
        definitions.push(definition(&c.name, kind, &c.description, c.priority));
    }
    definitions
}

fn custom_cells(columns: &[CustomColumn], object: &Value, now_ms: i64) -> Vec<Value> {
    let mut cells = vec![meta_str(object, "name").into()];
    if columns.is_empty() {
        cells.push(age(meta_str(object, "creationTimestamp"), now_ms));
    }
    cells.extend(columns.iter().map(|c| c.cell(object, now_ms)));
    cells
}

/// How long ago a timestamp was, in the short form of kubectl; `<unknown>` without one.
pub(crate) fn age(timestamp: &str, now_ms: i64) -> Value {
    match parse_timestamp(timestamp) {
        Some(then) => duration((now_ms - then).max(0) / 1000).into(),
        None => "<unknown>".into(),
    }
}

/// Seconds in the short form of kubectl (`HumanDuration`): two units at most, fewer as they grow.
fn duration(seconds: i64) -> String {
    let pair = |big: i64, b: &str, small: i64, s: &str| {
        if small == 0 { format!("{big}{b}") } else { format!("{big}{b}{small}{s}") }
    };
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match seconds {
        ..120 => format!("{seconds}s"),
        120..600 => pair(minutes, "m", seconds % 60, "s"),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => pair(hours, "h", minutes % 60, "m"),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => pair(days, "d", hours % 24, "h"),
        691_200..63_072_000 => format!("{days}d"),
        _ => pair(days / 365, "y", days % 365, "d"),
    }
}

fn text(object: &Value, pointer: &str) -> Value {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or("").into()
}

fn or_none(object: &Value, pointer: &str) -> Value {
    match object.pointer(pointer).and_then(Value::as_str) {
        Some(found) if !found.is_empty() => found.into(),
        _ => "<none>".into(),
    }
}

fn count(object: &Value, pointer: &str) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0)
}

fn container_statuses(pod: &Value) -> impl Iterator<Item = &Value> {
    pod.pointer("/status/containerStatuses").and_then(Value::as_array).into_iter().flatten()
}

fn pod_ready(pod: &Value, _: i64) -> Value {
    let total = pod.pointer("/spec/containers").and_then(Value::as_array).map_or(0, Vec::len);
    let ready = container_statuses(pod).filter(|c| c["ready"] == true).count();
    format!("{ready}/{total}").into()
}

fn pod_restarts(pod: &Value) -> i64 {
    container_statuses(pod).map(|c| c["restartCount"].as_i64().unwrap_or(0)).sum()
}

fn pod_status(pod: &Value) -> String {
    let phase = pod.pointer("/status/phase").and_then(Value::as_str).unwrap_or("");
    let reason = pod.pointer("/status/reason").and_then(Value::as_str).unwrap_or("");
    let mut status = if reason.is_empty() { phase } else { reason }.to_owned();
    let gated = pod
        .pointer("/status/conditions")
        .and_then(Value::as_array)
        .is_some_and(|all| all.iter().any(|c| c["reason"] == "SchedulingGated"));
    if gated && phase == "Pending" {
        "SchedulingGated".clone_into(&mut status);
    }
    for container in container_statuses(pod) {
        for state in ["waiting", "terminated"] {
            let reason = container.pointer(&format!("/state/{state}/reason"));
            if let Some(reason) = reason.and_then(Value::as_str) {
                reason.clone_into(&mut status);
            }
        }
    }
    if is_deleting(pod) { "Terminating".to_owned() } else { status }
}

fn node_status(node: &Value) -> String {
    let ready = node
        .pointer("/status/conditions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .find(|c| c["type"] == "Ready");
    let mut status = match ready.map(|c| c["status"].as_str().unwrap_or("")) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    }
    .to_owned();
    if node.pointer("/spec/unschedulable") == Some(&Value::Bool(true)) {
        status.push_str(",SchedulingDisabled");
    }
    status
}

fn node_roles(node: &Value) -> String {
    let roles: Vec<&str> = node
        .pointer("/metadata/labels")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter_map(|(label, _)| label.strip_prefix("node-role.kubernetes.io/"))
        .collect();
    if roles.is_empty() { "<none>".to_owned() } else { roles.join(",") }
}

fn event_seen(event: &Value, now_ms: i64) -> Value {
    let seen = ["/series/lastObservedTime", "/lastTimestamp", "/eventTime", "/firstTimestamp"]
        .iter()
        .find_map(|p| event.pointer(p).and_then(Value::as_str));
    age(seen.unwrap_or_else(|| meta_str(event, "creationTimestamp")), now_ms)
}

fn event_object(event: &Value, _: i64) -> Value {
    let part = |f: &str| event["involvedObject"][f].as_str().unwrap_or("");
    format!("{}/{}", part("kind").to_lowercase(), part("name")).into()
}

fn event_source(event: &Value) -> Value {
    let component = event.pointer("/source/component").and_then(Value::as_str).unwrap_or("");
    if component.is_empty() { text(event, "/reportingComponent") } else { component.into() }
}

fn job_status(job: &Value) -> &'static str {
    let has = |kind: &str| {
        job.pointer("/status/conditions")
            .and_then(Value::as_array)
            .is_some_and(|all| all.iter().any(|c| c["type"] == kind && c["status"] == "True"))
    };
    if has("Complete") {
        "Complete"
    } else if has("Failed") {
        "Failed"
    } else if is_deleting(job) {
        "Terminating"
    } else if has("Suspended") {
        "Suspended"
    } else {
        "Running"
    }
}

fn job_duration(job: &Value, now_ms: i64) -> Value {
    let time = |p: &str| job.pointer(p).and_then(Value::as_str).and_then(parse_timestamp);
    match (time("/status/startTime"), time("/status/completionTime")) {
        (None, _) => "".into(),
        (Some(start), end) => duration((end.unwrap_or(now_ms) - start).max(0) / 1000).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_like_kubectls() {
        for (seconds, wanted) in [
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (700, "11m"),
            (11_000, "3h3m"),
            (90_000, "25h"),
            (180_000, "2d2h"),
            (864_000, "10d"),
            (63_158_400, "2y1d"),
        ] {
            assert_eq!(duration(seconds), wanted);
        }
    }

    #[test]
    fn pod_rows_show_what_operators_look_for() {
        let pod = json!({
            "metadata": {"name": "p", "creationTimestamp": "1970-01-01T00:00:00Z"},
            "spec": {"nodeName": "n", "containers": [{"name": "a"}, {"name": "b"}]},
            "status": {"phase": "Running", "containerStatuses": [
                {"ready": true, "restartCount": 2, "state": {"running": {}}}, {"ready": false, "restartCount": 1}]},
        });
        let cells: Vec<Value> = PODS.iter().map(|c| (c.cell)(&pod, 60_000)).collect();
        let wanted = json!(["p", "1/2", "Running", "3", "60s", "<none>", "n", "<none>", "<none>"]);
        assert_eq!(Value::Array(cells), wanted);
    }
}
