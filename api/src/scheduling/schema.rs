//! Schemas as an API server wants them. What kube derives from the types is nearly that; [`finish`] does the rest:
//! amounts that are numbers or texts, and null where Volcano's definitions allow it.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use schemars::{Schema, SchemaGenerator, json_schema};

/// Names of queues.
pub(super) const DNS_SUBDOMAIN: &str =
    r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";

/// Schema of a [`ResourceMap`](super::ResourceMap). Kubernetes' pattern of quantities: signs, exponents and all
/// suffixes are allowed.
pub(super) fn resource_map(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "nullable": true,
        "additionalProperties": {
            "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
            "x-kubernetes-int-or-string": true
        }
    })
}

/// Completes a derived definition.
pub(super) fn finish(definition: &mut CustomResourceDefinition) {
    for version in &mut definition.spec.versions {
        let schema = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut());
        let Some(root) = schema else { continue };
        // Objects without a spec are legal in Volcano.
        root.required = None;
        let names = &definition.spec.names;
        root.description = Some(format!("{} of group {}.", names.kind, definition.spec.group));
        complete(root);
    }
}

fn complete(schema: &mut JSONSchemaProps) {
    if schema.x_kubernetes_int_or_string == Some(true) {
        // The one form that the rules for schemas allow; kube's derive empties the alternatives.
        let alternative =
            |name: &str| JSONSchemaProps { type_: Some(name.to_owned()), ..Default::default() };
        schema.any_of = Some(vec![alternative("integer"), alternative("string")]);
    }
    if schema.default.is_some() || schema.enum_.is_some() {
        // Without `nullable` the server replaces null by the default; with it null would stay.
        schema.nullable = None;
    }
    schema.properties.iter_mut().flat_map(|fields| fields.values_mut()).for_each(complete);
    match &mut schema.items {
        Some(JSONSchemaPropsOrArray::Schema(items)) => complete(items),
        Some(JSONSchemaPropsOrArray::Schemas(all)) => all.iter_mut().for_each(complete),
        None => {}
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        complete(values);
    }
}
