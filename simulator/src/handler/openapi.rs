//! OpenAPI documents, as far as kubectl needs them.
//!
//! Before `create` and `apply` kubectl looks for a PATCH operation with a `fieldValidation` parameter: the server then
//! validates fields itself. `explain` reads the schemas.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::resource::{Route, split_api_version};
use crate::schema::builtin;
use crate::status::Refusal;
use crate::store::Store;

/// How clients written in Go ask for `/openapi/v2`.
pub(crate) const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
/// How that answer is called: the same without `@`, which is no character of media types.
pub(crate) const PROTOBUF_ANSWER: &str =
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
/// A protobuf document that says no more than `swagger: "2.0"`: clients look there when they do not know a kind, and
/// then find that the server does not know it either.
pub(crate) const EMPTY_V2: &[u8] = b"\x0a\x032.0";

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
    let api_version = wanted.trim_start_matches("apis/").trim_start_matches("api/");
    let mut schemas = builtin::document(api_version).schemas.clone();
    for route in store.routes().filter(|r| root(r) == wanted) {
        let ty = &route.ty;
        if let Some(schema) = &route.version().schema {
            schemas[format!("{api_version}.{}", ty.kind).replace('/', ".")] =
                custom_schema(route, schema);
        }
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
        "components": {"schemas": schemas},
    }))
}

/// The schema of a custom resource with what its definition leaves out.
fn custom_schema(route: &Route, schema: &Value) -> Value {
    let mut schema = schema.clone();
    let (group, version) = split_api_version(route.api_version());
    schema["x-kubernetes-group-version-kind"] =
        json!([{"group": group, "version": version, "kind": route.ty.kind}]);
    schema["properties"]["apiVersion"] = json!({"type": "string"});
    schema["properties"]["kind"] = json!({"type": "string"});
    schema["properties"]["metadata"] = builtin::metadata();
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_have_the_schemas_of_built_in_and_custom_kinds() {
        let server = crate::ApiServer::default();
        for definition in tephra_api::scheduling::crds() {
            let definition = serde_json::to_value(definition).expect("JSON");
            server.create_value(definition).expect("a good definition");
        }
        let state = server.inner.state.lock();
        let group = "apis/scheduling.volcano.sh/v1beta1";
        let document = v3_document(&state.store, group).expect("served");
        let schemas = &document["components"]["schemas"];
        let queue = &schemas["scheduling.volcano.sh.v1beta1.Queue"];
        assert_eq!(queue["x-kubernetes-group-version-kind"][0]["kind"], "Queue");
        assert_eq!(queue["properties"]["spec"]["properties"]["weight"]["minimum"], 1.0);
        let metadata = queue["properties"]["metadata"]["$ref"].as_str().expect("a reference");
        assert!(document.pointer(metadata.trim_start_matches('#')).is_some());
        let core = v3_document(&state.store, "api/v1").expect("served");
        let pod = &core["components"]["schemas"]["io.k8s.api.core.v1.Pod"];
        assert_eq!(pod["x-kubernetes-group-version-kind"][0]["kind"], "Pod");
    }
}
