//! Strategic merge patch for built-in kinds: maps merge, known lists merge by their key, the rest is replaced.
//!
//! The merge keys are those of the Go types of Kubernetes 1.35 for the lists that clients patch in practice. Custom
//! resources do not take this patch type (kube-apiserver answers 415), so the table is by field name alone.

use serde_json::{Map, Value};

use crate::status::Refusal;

/// How a list is merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ListKind {
    /// Elements are maps with this key field.
    Map(&'static str),
    /// Elements are scalars, each once.
    Set,
    /// The list is one value.
    Atomic,
}

/// The kind of a list from its field name, and from what it holds where one name stands for two lists.
pub(crate) fn list_kind(field: &str, items: &[Value]) -> ListKind {
    match field {
        "containers"
        | "initContainers"
        | "ephemeralContainers"
        | "volumes"
        | "env"
        | "imagePullSecrets"
        | "schedulingGates"
        | "resourceClaims"
        | "webhooks" => ListKind::Map("name"),
        "conditions" if items.iter().all(Value::is_object) => ListKind::Map("type"),
        "addresses" if items.iter().all(|i| i.get("type").is_some()) => ListKind::Map("type"),
        "ownerReferences" => ListKind::Map("uid"),
        "ports" => {
            let of_container = items.iter().any(|i| i.get("containerPort").is_some());
            ListKind::Map(if of_container { "containerPort" } else { "port" })
        }
        "volumeMounts" => ListKind::Map("mountPath"),
        "volumeDevices" => ListKind::Map("devicePath"),
        "hostAliases" | "podIPs" | "hostIPs" => ListKind::Map("ip"),
        "topologySpreadConstraints" => ListKind::Map("topologyKey"),
        "finalizers" | "podCIDRs" => ListKind::Set,
        _ => ListKind::Atomic,
    }
}

/// Applies a strategic merge patch to an object.
pub(crate) fn merge(target: &mut Value, patch: &Value) -> Result<(), Refusal> {
    match patch {
        Value::Object(patch) => {
            if !target.is_object() {
                *target = Value::Object(Map::new());
            }
            if let Value::Object(target) = target {
                merge_map(target, patch)?;
            }
            Ok(())
        }
        _ => Err(Refusal::bad_request("strategic merge patch must be an object")),
    }
}

fn merge_map(target: &mut Map<String, Value>, patch: &Map<String, Value>) -> Result<(), Refusal> {
    match patch.get("$patch").and_then(Value::as_str) {
        Some("replace") => {
            *target = patch.clone();
            target.remove("$patch");
            return Ok(());
        }
        Some("delete") => {
            target.clear();
            return Ok(());
        }
        Some("merge") | None => {}
        Some(other) => {
            return Err(Refusal::bad_request(format!("Unknown patch type found: {other}")));
        }
    }
    if let Some(keep) = patch.get("$retainKeys").and_then(Value::as_array) {
        target.retain(|key, _| keep.iter().any(|k| k.as_str() == Some(key)));
    }
    for (field, value) in patch {
        if let Some(field) = field.strip_prefix("$deleteFromPrimitiveList/") {
            let (Some(Value::Array(list)), Value::Array(gone)) = (target.get_mut(field), value)
            else {
                continue;
            };
            list.retain(|item| !gone.contains(item));
            continue;
        }
        if field.starts_with('$') {
            continue; // $setElementOrder comes after the merge below
        }
        match value {
            Value::Null => {
                target.remove(field);
            }
            Value::Object(patch) => {
                let child = target.entry(field).or_insert(Value::Null);
                if !child.is_object() {
                    *child = Value::Object(Map::new());
                }
                if let Value::Object(child) = child {
                    merge_map(child, patch)?;
                }
                if patch.get("$patch").and_then(Value::as_str) == Some("delete") {
                    target.remove(field);
                }
            }
            Value::Array(items) => {
                let child = target.entry(field).or_insert_with(|| Value::Array(Vec::new()));
                if !child.is_array() {
                    *child = Value::Array(Vec::new());
                }
                if let Value::Array(child) = child {
                    merge_list(field, child, items)?;
                }
            }
            scalar => {
                target.insert(field.clone(), scalar.clone());
            }
        }
    }
    for (field, order) in patch {
        let (Some(field), Value::Array(order)) = (field.strip_prefix("$setElementOrder/"), order)
        else {
            continue;
        };
        if let Some(Value::Array(list)) = target.get_mut(field) {
            reorder(field, list, order);
        }
    }
    Ok(())
}

fn merge_list(field: &str, target: &mut Vec<Value>, patch: &[Value]) -> Result<(), Refusal> {
    let seen: Vec<Value> = patch.iter().chain(target.iter()).cloned().collect();
    match list_kind(field, &seen) {
        ListKind::Atomic => {
            *target = patch.to_vec();
        }
        ListKind::Set => {
            for item in patch {
                if !target.contains(item) {
                    target.push(item.clone());
                }
            }
        }
        ListKind::Map(key) => {
            if patch.iter().any(|p| p["$patch"] == "replace") {
                *target = patch.iter().filter(|p| p.get("$patch").is_none()).cloned().collect();
                return Ok(());
            }
            for item in patch {
                let Some(id) = item.get(key) else {
                    let message = format!("map does not contain declared merge key: {key}");
                    return Err(Refusal::bad_request(message));
                };
                let at = target.iter().position(|t| t.get(key) == Some(id));
                if item["$patch"] == "delete" {
                    target.retain(|t| t.get(key) != Some(id));
                    continue;
                }
                match (at, item) {
                    (Some(at), Value::Object(item)) => {
                        if let Value::Object(old) = &mut target[at] {
                            merge_map(old, item)?;
                        }
                    }
                    (None, Value::Object(item)) => {
                        let mut fresh = Map::new();
                        merge_map(&mut fresh, item)?;
                        target.push(Value::Object(fresh));
                    }
                    _ => {}
                }
            }
        }
    }
    Ok(())
}

/// Puts the listed elements into the given order; elements that the order does not name keep standing before them.
fn reorder(field: &str, list: &mut [Value], order: &[Value]) {
    let kind = list_kind(field, list);
    let place = |item: &Value| -> usize {
        let at = match &kind {
            ListKind::Map(key) => {
                order.iter().position(|o| o.get(key).is_some() && o.get(key) == item.get(key))
            }
            _ => order.iter().position(|o| o == item),
        };
        at.map_or(0, |at| at + 1)
    };
    list.sort_by_key(place);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn merged(mut target: Value, patch: &Value) -> Value {
        merge(&mut target, patch).expect("applies");
        target
    }

    #[test]
    fn containers_and_conditions_merge_by_their_keys() {
        let pod = json!({
            "spec": {"containers": [{"name": "a", "image": "1", "env": [{"name": "X", "value": "1"}]}, {"name": "b"}]},
            "status": {"conditions": [{"type": "Ready", "status": "False"}]},
        });
        let patch = json!({
            "spec": {"containers": [{"name": "a", "image": "2", "env": [{"name": "Y", "value": "2"}]}, {"name": "b", "$patch": "delete"}]},
            "status": {"conditions": [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "True"}]},
        });
        assert_eq!(
            merged(pod, &patch),
            json!({
                "spec": {"containers": [{"name": "a", "image": "2", "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}]}]},
                "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "PodScheduled", "status": "True"}]},
            })
        );
    }

    #[test]
    fn tolerations_are_one_value_and_finalizers_a_set() {
        let pod =
            json!({"metadata": {"finalizers": ["a"]}, "spec": {"tolerations": [{"key": "x"}]}});
        let patch = json!({
            "metadata": {"finalizers": ["b", "a"], "$deleteFromPrimitiveList/finalizers": []},
            "spec": {"tolerations": [{"key": "y"}]},
        });
        assert_eq!(
            merged(pod, &patch),
            json!({"metadata": {"finalizers": ["a", "b"]}, "spec": {"tolerations": [{"key": "y"}]}})
        );
        let removed = merged(
            json!({"metadata": {"finalizers": ["a", "b"]}}),
            &json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}),
        );
        assert_eq!(removed, json!({"metadata": {"finalizers": ["b"]}}));
    }

    #[test]
    fn gates_are_removed_by_directive_and_nulls_delete() {
        let pod =
            json!({"spec": {"schedulingGates": [{"name": "g"}, {"name": "h"}], "priority": 1}});
        let patch = json!({"spec": {
            "schedulingGates": [{"name": "g", "$patch": "delete"}],
            "$setElementOrder/schedulingGates": [{"name": "h"}],
            "priority": null,
        }});
        assert_eq!(merged(pod, &patch), json!({"spec": {"schedulingGates": [{"name": "h"}]}}));
    }

    #[test]
    fn ports_use_the_key_of_their_owner() {
        let service = json!({"spec": {"ports": [{"port": 80, "name": "a"}]}});
        let patch = json!({"spec": {"ports": [{"port": 80, "name": "b"}]}});
        assert_eq!(
            merged(service, &patch),
            json!({"spec": {"ports": [{"port": 80, "name": "b"}]}})
        );
        let mut pod = json!({"spec": {"containers": []}});
        let missing = merge(&mut pod, &json!({"spec": {"containers": [{"image": "x"}]}}));
        assert_eq!(missing.expect_err("no key").code, 400);
    }

    #[test]
    fn replace_and_order_directives_hold() {
        let pod = json!({"metadata": {"labels": {"a": "1"}}, "spec": {"containers": [{"name": "a"}, {"name": "b"}]}});
        let patch = json!({
            "metadata": {"labels": {"$patch": "replace", "b": "2"}},
            "spec": {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}], "containers": [{"name": "b", "image": "i"}]},
        });
        assert_eq!(
            merged(pod, &patch),
            json!({"metadata": {"labels": {"b": "2"}}, "spec": {"containers": [{"name": "b", "image": "i"}, {"name": "a"}]}})
        );
    }
}
