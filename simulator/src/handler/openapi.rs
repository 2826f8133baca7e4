//! OpenAPI documents, as little of them as kubectl needs.
//!
//! kubectl looks here for one thing before `create` and `apply`: whether the server validates fields itself (a PATCH
//! operation with a `fieldValidation` parameter). It then leaves validation to the server. No schemas are served.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::resource::{Route, split_api_version};
use crate::status::Refusal;
use crate::store::Store;

/// `/openapi/v2`
pub(crate) fn v2() -> Value {
    json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": "v1.35.3"},
        "paths": {},
        "definitions": {},
    })
}

/// `/openapi/v3`: one document per group and version.
pub(crate) fn v3_index(store: &Store) -> Value {
    let mut paths = BTreeMap::new();
    for route in store.routes() {
        let root = root(route);
        let url = format!("/openapi/v3/{root}?hash={}", store.routes().count());
        paths.entry(root).or_insert_with(|| json!({ "serverRelativeURL": url }));
    }
    json!({ "paths": paths })
}

fn root(route: &Route) -> String {
    let api_version = route.api_version();
    if route.ty.group.is_empty() {
        format!("api/{api_version}")
    } else {
        format!("apis/{api_version}")
    }
}

/// `/openapi/v3/<root>`
pub(crate) fn v3_document(store: &Store, wanted: &str) -> Result<Value, Refusal> {
    let mut paths = BTreeMap::new();
    for route in store.routes().filter(|r| root(r) == wanted) {
        let ty = &route.ty;
        let scope = if ty.namespaced { "namespaces/{namespace}/" } else { "" };
        let (group, version) = split_api_version(route.api_version());
        let kind = json!({"group": group, "version": version, "kind": ty.kind});
        let parameters: Vec<Value> = ["dryRun", "fieldManager", "fieldValidation", "force"]
            .iter()
            .map(|name| json!({"name": name, "in": "query", "schema": {"type": "string"}}))
            .collect();
        let operation = |action: &str| {
            json!({
                "parameters": parameters,
                "responses": {"200": {"description": "OK"}},
                "x-kubernetes-action": action,
                "x-kubernetes-group-version-kind": kind,
            })
        };
        let collection = format!("/{wanted}/{scope}{}", ty.plural);
        let object = format!("{collection}/{{name}}");
        paths.insert(collection, json!({"post": operation("post")}));
        paths.insert(object, json!({"patch": operation("patch"), "put": operation("put")}));
    }
    if paths.is_empty() {
        return Err(Refusal::no_such_resource());
    }
    Ok(json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1.35.3"},
        "paths": paths,
        "components": {"schemas": {}},
    }))
}
