//! Binding and eviction of pods.

use std::sync::Arc;

use serde_json::{Value, json};

use super::delete::{self, DeleteOptions};
use super::write::{self, Part};
use crate::builtin::PODS;
use crate::context::Context;
use crate::request::{Query, ResourcePath};
use crate::resource::Route;
use crate::selector::Selector;
use crate::status::Refusal;
use crate::store::Store;
use crate::store::object::{Stored, is_deleting, key, meta_str, object};

/// Whether a path is a connection with the processes of a pod, of which there are none.
pub(crate) fn is_stream(path: &ResourcePath) -> bool {
    let name = path.subresource.split('/').next().unwrap_or_default();
    path.group.is_empty()
        && path.plural == "pods"
        && matches!(name, "exec" | "attach" | "portforward" | "proxy")
}

/// `pods/binding`: assigns a pod to a node, once.
pub(crate) fn bind(
    store: &mut Store,
    cx: &mut Context,
    route: &Route,
    (namespace, name): (&str, &str),
    binding: &Value,
) -> Result<Arc<Stored>, Refusal> {
    let invalid = |field: &str, why: &str| Refusal::invalid("", "Binding", name, field, why);
    let node = binding.pointer("/target/name").and_then(Value::as_str).unwrap_or("");
    if node.is_empty() {
        return Err(invalid("target.name", "Required value"));
    }
    let kind = binding.pointer("/target/kind").and_then(Value::as_str).unwrap_or("");
    if !matches!(kind, "" | "Node") {
        let why = format!("Unsupported value: \"{kind}\": supported values: \"Node\", \"<empty>\"");
        return Err(invalid("target.kind", &why));
    }
    let given = meta_str(binding, "name");
    if !given.is_empty() && given != name {
        return Err(Refusal::bad_request(format!(
            "name in URL does not match name in Binding object: {name} vs {given}"
        )));
    }
    let old = write::read(store, route, namespace, name)?;
    let conflict = |why: &str| Err(Refusal::conflict("", "pods/binding", name, why));
    let uid = meta_str(binding, "uid");
    if !uid.is_empty() && uid != old.uid() {
        return conflict(&format!(
            "Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
            old.uid()
        ));
    }
    let rv = meta_str(binding, "resourceVersion");
    if !rv.is_empty() && rv != old.rv.to_string() {
        return conflict(&format!(
            "Precondition failed: ResourceVersion in precondition: {rv}, ResourceVersion in object meta: {}",
            old.rv
        ));
    }
    if is_deleting(&old.value) {
        return conflict(&format!("pod {name} is being deleted, cannot be assigned to a host"));
    }
    let bound = old.value.pointer("/spec/nodeName").and_then(Value::as_str).unwrap_or("");
    if !bound.is_empty() {
        return conflict(&format!("pod {name} is already assigned to node \"{bound}\""));
    }
    let gates = old.value.pointer("/spec/schedulingGates").and_then(Value::as_array);
    if gates.is_some_and(|g| !g.is_empty()) {
        return conflict(&format!("pod {name} has non-empty .spec.schedulingGates"));
    }
    let mut pod = Value::clone(&old.value);
    object(&mut pod, "spec").insert("nodeName".to_owned(), node.into());
    for field in ["annotations", "labels"] {
        if let Some(given) = binding["metadata"][field].as_object() {
            object(&mut pod["metadata"], field).extend(given.clone());
        }
    }
    set_condition(&mut pod, &json!({"type": "PodScheduled", "status": "True"}), &cx.now);
    write::replace(store, cx, route, &key(namespace, name), &old, pod, Part::Whole)
}

/// Sets a condition by its type, with a new transition time only if the status changed.
fn set_condition(object_value: &mut Value, condition: &Value, now: &str) {
    let mut condition = condition.clone();
    condition["lastProbeTime"] = Value::Null;
    condition["lastTransitionTime"] = now.into();
    let list = object(object_value, "status").entry("conditions").or_insert_with(|| json!([]));
    let Some(list) = list.as_array_mut() else { return };
    match list.iter_mut().find(|c| c["type"] == condition["type"]) {
        Some(old) => {
            if old["status"] == condition["status"] {
                condition["lastTransitionTime"] = old["lastTransitionTime"].clone();
            }
            *old = condition;
        }
        None => list.push(condition),
    }
}

/// `pods/eviction`: deletes a pod unless a PodDisruptionBudget forbids it.
pub(crate) fn evict(
    store: &mut Store,
    cx: &mut Context,
    route: &Route,
    (namespace, name): (&str, &str),
    eviction: &Value,
) -> Result<Arc<Stored>, Refusal> {
    let old = write::read(store, route, namespace, name)?;
    let phase = old.value.pointer("/status/phase").and_then(Value::as_str).unwrap_or("");
    let counts = !matches!(phase, "Succeeded" | "Failed" | "Pending") && !is_deleting(&old.value);
    if counts {
        check_budgets(store, namespace, &old)?;
    }
    let options = DeleteOptions::read(&eviction["deleteOptions"], &Query::default())?;
    if let Some(uid) = options.uid.as_deref()
        && uid != old.uid()
    {
        let why = format!(
            "Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
            old.uid()
        );
        return Err(Refusal::conflict("", "pods", name, &why));
    }
    if cx.dry_run {
        return Ok(old);
    }
    let key = key(namespace, name);
    let mut pod = Value::clone(&old.value);
    let condition = json!({
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    });
    set_condition(&mut pod, &condition, &cx.now);
    write::replace(store, cx, route, &key, &old, pod, Part::Whole)?;
    // The condition moved the resourceVersion; a precondition on it was for the pod before.
    let options = DeleteOptions { resource_version: None, ..options };
    delete::delete_object(store, cx, PODS, &route.ty, &key, &options).map(|d| d.object)
}

/// Refuses an eviction that would leave a budget below its minimum. There is no disruption controller here: the room
/// is counted from the pods themselves.
fn check_budgets(store: &Store, namespace: &str, pod: &Stored) -> Result<(), Refusal> {
    let Some(budgets) = store.route("policy", "v1", "poddisruptionbudgets") else {
        return Ok(());
    };
    let prefix = format!("{namespace}/");
    for (_, budget) in store.range(budgets.table, &prefix) {
        let spec = &budget.value["spec"];
        let selector = Selector::from_label_selector(&spec["selector"]);
        if spec.get("selector").is_none() || !selector.matches(&pod.value) {
            continue;
        }
        let covered: Vec<&Value> = store
            .range(PODS, &prefix)
            .map(|(_, s)| &*s.value)
            .filter(|p| selector.matches(p))
            .collect();
        let total = i64::try_from(covered.len()).unwrap_or(i64::MAX);
        let healthy =
            i64::try_from(covered.iter().filter(|p| is_healthy(p)).count()).unwrap_or(i64::MAX);
        let needed = match (spec.get("minAvailable"), spec.get("maxUnavailable")) {
            (Some(min), _) => amount(min, total),
            (None, Some(max)) => total - amount(max, total),
            (None, None) => 0,
        };
        if is_healthy(&pod.value) && healthy - 1 < needed {
            let mut refusal = Refusal::new(
                429,
                "TooManyRequests",
                "Cannot evict pod as it would violate the pod's disruption budget.",
            );
            let name = budget.name();
            let message = format!(
                "The disruption budget {name} needs {needed} healthy pods and has {healthy} currently"
            );
            refusal.details =
                json!({"causes": [{"reason": "DisruptionBudget", "message": message}]});
            return Err(refusal);
        }
    }
    Ok(())
}

fn is_healthy(pod: &Value) -> bool {
    let ready = pod
        .pointer("/status/conditions")
        .and_then(Value::as_array)
        .is_some_and(|all| all.iter().any(|c| c["type"] == "Ready" && c["status"] == "True"));
    ready && !is_deleting(pod)
}

/// A count or a percentage of `total`, rounded up.
fn amount(value: &Value, total: i64) -> i64 {
    if let Some(count) = value.as_i64() {
        return count;
    }
    let percent = value.as_str().and_then(|s| s.strip_suffix('%')).and_then(|s| s.parse().ok());
    percent.map_or(0, |p: i64| (total.saturating_mul(p) + 99) / 100)
}
