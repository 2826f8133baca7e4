//! CustomResourceDefinitions: from the object to a served resource, and back into its status.
//!
//! Objects are held to the schema (`schema.rs`), and its defaults are filled in, but unknown fields stay. Server-side
//! apply merges lists by the list types in it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::columns::CustomColumn;
use crate::resource::{ResourceType, ScalePaths, Version, api_version};
use crate::status::Refusal;

/// Reads a CustomResourceDefinition. Errors name the faulty field.
pub(crate) fn resource_type(crd: &Value) -> Result<ResourceType, Refusal> {
    let name = crate::store::object::meta_str(crd, "name");
    let text = |pointer: &str| crd.pointer(pointer).and_then(Value::as_str).unwrap_or("");
    let required = |pointer: &str| {
        let found = text(pointer);
        if found.is_empty() {
            let field = pointer.trim_start_matches('/').replace('/', ".");
            return Err(invalid(name, &field, "Required value"));
        }
        Ok(found.to_owned())
    };
    let group = required("/spec/group")?;
    let plural = required("/spec/names/plural")?;
    let kind = required("/spec/names/kind")?;
    let namespaced = match text("/spec/scope") {
        "Namespaced" => true,
        "Cluster" => false,
        other => {
            let why = format!(
                "Unsupported value: \"{other}\": supported values: \"Cluster\", \"Namespaced\""
            );
            return Err(invalid(name, "spec.scope", &why));
        }
    };
    if name != format!("{plural}.{group}") {
        let why = format!("Invalid value: \"{name}\": must be spec.names.plural+\".\"+spec.group");
        return Err(invalid(name, "metadata.name", &why));
    }
    let mut versions: Vec<(bool, Version)> = crd
        .pointer("/spec/versions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter(|v| v["served"].as_bool() == Some(true))
        .map(|v| (v["storage"].as_bool() == Some(true), version(&group, v)))
        .collect();
    if versions.is_empty() {
        return Err(invalid(name, "spec.versions", "Required value: at least one served version"));
    }
    versions.sort_by_key(|(storage, _)| !storage);
    let strings = |pointer: &str| -> Vec<String> {
        crd.pointer(pointer)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|s| s.as_str().map(str::to_owned))
            .collect()
    };
    let or = |found: &str, other: String| if found.is_empty() { other } else { found.to_owned() };
    Ok(ResourceType {
        singular: or(text("/spec/names/singular"), kind.to_lowercase()),
        list_kind: or(text("/spec/names/listKind"), format!("{kind}List")),
        short_names: strings("/spec/names/shortNames"),
        categories: strings("/spec/names/categories"),
        namespaced,
        custom: true,
        keeps_status_on_create: false,
        versions: versions.into_iter().map(|(_, v)| v).collect(),
        group,
        plural,
        kind,
    })
}

fn invalid(name: &str, field: &str, why: &str) -> Refusal {
    Refusal::invalid(crate::builtin::CRD_GROUP, crate::builtin::CRD_KIND, name, field, why)
}

fn version(group: &str, spec: &Value) -> Version {
    let name = spec["name"].as_str().unwrap_or("").to_owned();
    let pointer = |path: &Value| path.as_str().map(|p| p.replace('.', "/"));
    let scale = spec.pointer("/subresources/scale").map(|scale| ScalePaths {
        spec: pointer(&scale["specReplicasPath"]).unwrap_or_else(|| "/spec/replicas".to_owned()),
        status: pointer(&scale["statusReplicasPath"])
            .unwrap_or_else(|| "/status/replicas".to_owned()),
        selector: pointer(&scale["labelSelectorPath"]),
    });
    let columns = spec["additionalPrinterColumns"]
        .as_array()
        .map(|columns| columns.iter().map(CustomColumn::from_crd).collect());
    let mut map_lists = BTreeMap::new();
    if let Some(schema) = spec.pointer("/schema/openAPIV3Schema") {
        collect_map_lists(schema, "", &mut map_lists);
    }
    Version {
        api_version: api_version(group, &name),
        name,
        status: spec.pointer("/subresources/status").is_some(),
        scale,
        columns: Some(columns.unwrap_or_default()),
        map_lists,
        schema: spec.pointer("/schema/openAPIV3Schema").cloned(),
    }
}

fn collect_map_lists(schema: &Value, path: &str, found: &mut BTreeMap<String, Vec<String>>) {
    if schema["x-kubernetes-list-type"] == "map" {
        let keys = schema["x-kubernetes-list-map-keys"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|k| k.as_str().map(str::to_owned))
            .collect();
        found.insert(path.to_owned(), keys);
    }
    if let Some(items) = schema.get("items") {
        collect_map_lists(items, path, found);
    }
    for (field, child) in schema["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() { field.clone() } else { format!("{path}.{field}") };
        collect_map_lists(child, &path, found);
    }
}

/// Completes a CustomResourceDefinition the way the apiextensions controllers do: names defaulted and accepted, the
/// resource Established at once.
pub(crate) fn establish(crd: &mut Value, ty: &ResourceType, now: &str) {
    let names = &mut crd["spec"]["names"];
    if names["singular"].as_str().unwrap_or("").is_empty() {
        names["singular"] = ty.singular.as_str().into();
    }
    if names["listKind"].as_str().unwrap_or("").is_empty() {
        names["listKind"] = ty.list_kind.as_str().into();
    }
    let names = names.clone();
    let condition = |kind: &str, reason: &str, message: &str| json!({"type": kind, "status": "True", "lastTransitionTime": now, "reason": reason, "message": message});
    crd["status"] = json!({
        "acceptedNames": names,
        "conditions": [
            condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        ],
        "storedVersions": [ty.versions[0].name],
    });
}
