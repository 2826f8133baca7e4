//! Server-side apply: merges an applied configuration and remembers which manager set which field.
//!
//! Ownership is tracked between appliers only (`managedFields` entries with operation Apply); ordinary updates neither
//! take nor lose fields. That is what kube's `Patch::Apply` and `kubectl apply --server-side` need on objects they own.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::status::Refusal;
use crate::store::object::metadata;
use crate::strategic::{ListKind, list_kind};

/// Who applies, and how.
pub(crate) struct Applier<'a> {
    pub(crate) manager: &'a str,
    pub(crate) force: bool,
    pub(crate) api_version: &'a str,
    pub(crate) subresource: &'a str,
    /// RFC 3339 time of the request.
    pub(crate) now: &'a str,
    /// Lists of custom resources that merge by key, by path; `None` for built-in kinds.
    pub(crate) map_lists: Option<&'a BTreeMap<String, Vec<String>>>,
}

enum Shape<'a> {
    Keys(Vec<&'a str>),
    Set,
    Atomic,
}

impl Applier<'_> {
    /// The object after applying `config` on top of `old` (an empty map when the object does not exist).
    pub(crate) fn apply(&self, old: &Value, config: &Value) -> Result<Value, Refusal> {
        let mut config = config.clone();
        if let Some(meta) = config.get_mut("metadata").and_then(Value::as_object_mut) {
            if meta.get("managedFields").is_some_and(|m| !m.as_array().is_none_or(Vec::is_empty)) {
                return Err(Refusal::bad_request("metadata.managedFields must be nil"));
            }
            meta.remove("managedFields");
            meta.remove("creationTimestamp");
        }
        let mut owned = self.fields(&config, "", "");
        drop_identity(&mut owned);
        let entries: Vec<Value> = old
            .pointer("/metadata/managedFields")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        let mine = |entry: &Value| {
            entry["manager"] == self.manager
                && entry["operation"] == "Apply"
                && entry["subresource"].as_str().unwrap_or("") == self.subresource
        };
        let mut others: Vec<Value> = entries.iter().filter(|e| !mine(e)).cloned().collect();
        self.settle_conflicts(old, &config, &owned, &mut others)?;

        let mut new = old.clone();
        let previous = entries.iter().find(|e| mine(e));
        if let Some(previous) = previous {
            let gone = subtract(&previous["fieldsV1"], &owned);
            let gone = others.iter().fold(gone, |gone, e| subtract(&gone, &e["fieldsV1"]));
            remove_fields(&mut new, &gone);
        }
        self.merge(&mut new, &config, "", "");

        let unchanged = previous.is_some_and(|p| p["fieldsV1"] == owned);
        let mut entry = json!({
            "manager": self.manager,
            "operation": "Apply",
            "apiVersion": self.api_version,
            "time": if unchanged { previous.map_or(Value::Null, |p| p["time"].clone()) } else { self.now.into() },
            "fieldsType": "FieldsV1",
            "fieldsV1": owned,
        });
        if !self.subresource.is_empty() {
            entry["subresource"] = self.subresource.into();
        }
        others.insert(0, entry);
        metadata(&mut new).insert("managedFields".to_owned(), Value::Array(others));
        Ok(new)
    }

    fn settle_conflicts(
        &self,
        old: &Value,
        config: &Value,
        owned: &Value,
        others: &mut [Value],
    ) -> Result<(), Refusal> {
        let mut causes = Vec::new();
        for entry in others.iter_mut() {
            let mut contested = Vec::new();
            common_leaves(owned, &entry["fieldsV1"], &mut Vec::new(), &mut contested);
            contested.retain(|path| lookup(old, path) != lookup(config, path));
            for path in contested {
                if self.force {
                    remove_leaf(&mut entry["fieldsV1"], &path);
                } else {
                    let manager = entry["manager"].as_str().unwrap_or("");
                    causes.push(json!({
                        "reason": "FieldManagerConflict",
                        "message": format!("conflict with \"{manager}\""),
                        "field": dotted(&path),
                    }));
                }
            }
        }
        if causes.is_empty() {
            return Ok(());
        }
        let first = causes[0]["message"].as_str().unwrap_or("").to_owned();
        let field = causes[0]["field"].as_str().unwrap_or("").to_owned();
        let count = causes.len();
        let plural = if count == 1 { "" } else { "s" };
        let message = format!("Apply failed with {count} conflict{plural}: {first}: {field}");
        let mut refusal = Refusal::new(409, "Conflict", message);
        refusal.details = json!({ "causes": causes });
        Err(refusal)
    }

    fn shape(&self, field: &str, path: &str, items: &[Value]) -> Shape<'_> {
        if !path.starts_with("metadata")
            && let Some(map_lists) = self.map_lists
        {
            return match map_lists.get(path) {
                Some(keys) => Shape::Keys(keys.iter().map(String::as_str).collect()),
                None => Shape::Atomic,
            };
        }
        match list_kind(field, items) {
            ListKind::Map(key) => Shape::Keys(vec![key]),
            ListKind::Set => Shape::Set,
            ListKind::Atomic => Shape::Atomic,
        }
    }

    /// The FieldsV1 set of a value.
    fn fields(&self, value: &Value, field: &str, path: &str) -> Value {
        let mut set = Map::new();
        match value {
            Value::Object(map) => {
                for (name, child) in map {
                    let path = join(path, name);
                    set.insert(format!("f:{name}"), self.fields(child, name, &path));
                }
            }
            Value::Array(items) => match self.shape(field, path, items) {
                Shape::Keys(keys) => {
                    for item in items {
                        let mut fields = self.fields(item, field, path);
                        if let Value::Object(fields) = &mut fields {
                            fields.insert(".".to_owned(), json!({}));
                        }
                        set.insert(format!("k:{}", key_of(item, &keys)), fields);
                    }
                }
                Shape::Set => {
                    for item in items {
                        set.insert(format!("v:{item}"), json!({}));
                    }
                }
                Shape::Atomic => {}
            },
            _ => {}
        }
        Value::Object(set)
    }

    fn merge(&self, target: &mut Value, config: &Value, field: &str, path: &str) {
        match (target, config) {
            (Value::Object(target), Value::Object(config)) => {
                for (name, child) in config {
                    let path = join(path, name);
                    let slot = target.entry(name).or_insert(Value::Null);
                    self.merge(slot, child, name, &path);
                }
            }
            (Value::Array(target), Value::Array(config)) => {
                let seen: Vec<Value> = config.iter().chain(target.iter()).cloned().collect();
                match self.shape(field, path, &seen) {
                    Shape::Atomic => target.clone_from(config),
                    Shape::Set => {
                        for item in config {
                            if !target.contains(item) {
                                target.push(item.clone());
                            }
                        }
                    }
                    Shape::Keys(keys) => {
                        for item in config {
                            let same =
                                |t: &&mut Value| keys.iter().all(|k| t.get(k) == item.get(k));
                            if let Some(old) = target.iter_mut().find(same) {
                                self.merge(old, item, field, path);
                            } else {
                                target.push(item.clone());
                            }
                        }
                    }
                }
            }
            (target, config) => *target = config.clone(),
        }
    }
}

fn join(path: &str, field: &str) -> String {
    if path.is_empty() { field.to_owned() } else { format!("{path}.{field}") }
}

fn key_of(item: &Value, keys: &[&str]) -> Value {
    let key: Map<String, Value> =
        keys.iter().filter_map(|k| item.get(k).map(|v| ((*k).to_owned(), v.clone()))).collect();
    Value::Object(key)
}

/// Nobody owns what identifies the object.
fn drop_identity(fields: &mut Value) {
    let Some(fields) = fields.as_object_mut() else { return };
    fields.remove("f:apiVersion");
    fields.remove("f:kind");
    if let Some(meta) = fields.get_mut("f:metadata").and_then(Value::as_object_mut) {
        for field in ["f:name", "f:namespace", "f:uid", "f:resourceVersion"] {
            meta.remove(field);
        }
        if meta.is_empty() {
            fields.remove("f:metadata");
        }
    }
}

/// What is in `a` and not in `b`. A leaf of `a` counts as present in `b` if `b` has anything there.
fn subtract(a: &Value, b: &Value) -> Value {
    let mut left = Map::new();
    for (name, child) in a.as_object().into_iter().flatten() {
        match b.get(name) {
            None => {
                left.insert(name.clone(), child.clone());
            }
            Some(other) => {
                let rest = subtract(child, other);
                if rest.as_object().is_some_and(|r| !r.is_empty()) {
                    left.insert(name.clone(), rest);
                }
            }
        }
    }
    Value::Object(left)
}

fn remove_fields(value: &mut Value, fields: &Value) {
    for (name, child) in fields.as_object().into_iter().flatten() {
        let is_leaf = child.as_object().is_none_or(Map::is_empty);
        if let Some(field) = name.strip_prefix("f:") {
            let Some(map) = value.as_object_mut() else { continue };
            if is_leaf {
                map.remove(field);
                continue;
            }
            if let Some(inner) = map.get_mut(field) {
                remove_fields(inner, child);
                let emptied = match inner {
                    Value::Object(m) => m.is_empty(),
                    Value::Array(a) => a.is_empty(),
                    _ => false,
                };
                if emptied {
                    map.remove(field);
                }
            }
        } else if let Some(items) = value.as_array_mut() {
            if child.get(".").is_some() || name.starts_with("v:") {
                items.retain(|item| !is_item(name, item));
            } else if let Some(item) = items.iter_mut().find(|item| is_item(name, item)) {
                remove_fields(item, child);
            }
        }
    }
}

/// Whether a list element is the one that a `k:` or `v:` path element names.
fn is_item(element: &str, item: &Value) -> bool {
    let parse = |text: &str| serde_json::from_str::<Value>(text).ok();
    if let Some(key) = element.strip_prefix("k:").and_then(parse) {
        return key.as_object().is_some_and(|key| key.iter().all(|(k, v)| item.get(k) == Some(v)));
    }
    element.strip_prefix("v:").and_then(parse).is_some_and(|v| v == *item)
}

/// Leaves that both sets hold (the key fields of list elements and the elements themselves aside).
fn common_leaves(a: &Value, b: &Value, path: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    for (name, child) in a.as_object().into_iter().flatten() {
        let Some(other) = b.get(name) else { continue };
        if name == "." {
            continue;
        }
        path.push(name.clone());
        if child.as_object().is_none_or(Map::is_empty) {
            found.push(path.clone());
        } else {
            common_leaves(child, other, path, found);
        }
        path.pop();
    }
}

fn lookup<'a>(value: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(value, |at, step| match step.strip_prefix("f:") {
        Some(field) => at.get(field),
        None => at.as_array()?.iter().find(|item| is_item(step, item)),
    })
}

fn remove_leaf(fields: &mut Value, path: &[String]) {
    let Some((last, parents)) = path.split_last() else { return };
    let mut at = fields;
    for step in parents {
        let Some(next) = at.get_mut(step) else { return };
        at = next;
    }
    if let Some(map) = at.as_object_mut() {
        map.remove(last);
    }
}

fn dotted(path: &[String]) -> String {
    let mut text = String::new();
    for step in path {
        match step.strip_prefix("f:") {
            Some(field) => {
                text.push('.');
                text.push_str(field);
            }
            None => {
                text.push('[');
                text.push_str(step);
                text.push(']');
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applier(manager: &str, force: bool) -> Applier<'_> {
        Applier {
            manager,
            force,
            api_version: "v1",
            subresource: "",
            now: "2026-01-01T00:00:00Z",
            map_lists: None,
        }
    }

    #[test]
    fn fields_left_out_by_their_manager_go_away_and_others_stay() {
        let old = json!({"metadata": {"name": "p", "labels": {"other": "1"}}});
        let first =
            json!({"metadata": {"name": "p", "labels": {"a": "1", "b": "2"}}, "data": {"x": "1"}});
        let once = applier("me", false).apply(&old, &first).expect("applies");
        assert_eq!(once["metadata"]["labels"], json!({"other": "1", "a": "1", "b": "2"}));
        let second = json!({"metadata": {"name": "p", "labels": {"a": "1"}}});
        let twice = applier("me", false).apply(&once, &second).expect("applies");
        assert_eq!(twice["metadata"]["labels"], json!({"other": "1", "a": "1"}));
        assert!(twice.get("data").is_none());
        let entries = twice["metadata"]["managedFields"].as_array().expect("recorded");
        assert_eq!(entries.len(), 1);
        assert_eq!(entries[0]["fieldsV1"], json!({"f:metadata": {"f:labels": {"f:a": {}}}}));
    }

    #[test]
    fn lists_merge_by_key_and_elements_leave_with_their_manager() {
        let old = json!({"spec": {"containers": [{"name": "x", "image": "1"}]}});
        let config = json!({"spec": {"containers": [{"name": "y", "image": "2"}]}});
        let once = applier("me", false).apply(&old, &config).expect("applies");
        assert_eq!(once["spec"]["containers"].as_array().map(Vec::len), Some(2));
        let twice = applier("me", false).apply(&once, &json!({"spec": {}})).expect("applies");
        assert_eq!(twice["spec"]["containers"], json!([{"name": "x", "image": "1"}]));
    }

    #[test]
    fn two_appliers_conflict_unless_forced() {
        let a = applier("a", false).apply(&json!({}), &json!({"spec": {"n": 1}})).expect("applies");
        let refused =
            applier("b", false).apply(&a, &json!({"spec": {"n": 2}})).expect_err("conflict");
        assert_eq!(refused.code, 409);
        assert_eq!(refused.message, "Apply failed with 1 conflict: conflict with \"a\": .spec.n");
        let same = applier("b", false).apply(&a, &json!({"spec": {"n": 1}}));
        assert!(same.is_ok(), "sharing a value is no conflict");
        let forced = applier("b", true).apply(&a, &json!({"spec": {"n": 2}})).expect("forced");
        assert_eq!(forced["spec"]["n"], 2);
        let entries = forced["metadata"]["managedFields"].as_array().expect("recorded");
        let of_a = entries.iter().find(|e| e["manager"] == "a").expect("kept");
        assert_eq!(of_a["fieldsV1"], json!({"f:spec": {}}));
    }
}
