//! Checks objects against OpenAPI schemas, as kube-apiserver does.
//!
//! Custom resources are always held to the schema of their definition: types, required fields, enumerations, patterns
//! and limits (no CEL rules), after its defaults were filled in (`defaults.rs`). What did not change may stay as faulty as it was. Built-in
//! kinds are checked for unknown fields and wrong types when the client asks for it (`fieldValidation=Strict`, which is
//! what kubectl sends); their schemas (`builtin.rs`) come from the generated types of k8s-openapi.

pub(crate) mod builtin;
mod defaults;
mod values;

use serde_json::Value;

use crate::resource::Route;
use crate::status::Refusal;
use crate::store::object::meta_str;

/// A field and what is wrong with it.
type Fault = (String, String);

/// Fills in the defaults that the definition of a custom resource has.
pub(crate) fn fill_defaults(route: &Route, value: &mut Value) {
    if route.ty.custom
        && let Some(schema) = &route.version().schema
    {
        defaults::fill(schema, value);
    }
}

/// Checks an object that is about to be stored. `old`: the version it replaces; `strict`: refuse what the schema does
/// not know.
pub(crate) fn check(
    route: &Route,
    old: Option<&Value>,
    value: &Value,
    strict: bool,
) -> Result<(), Refusal> {
    if route.ty.custom {
        let Some(schema) = &route.version().schema else { return Ok(()) };
        if strict {
            no_unknown_fields(route, values::unknown(schema, &Value::Null, value))?;
        }
        let changed = |field: &str| old.is_none_or(|old| old.get(field) != value.get(field));
        let mut faults = values::faults(schema, &Value::Null, value);
        faults.retain(|(field, _)| changed(field.split(['.', '[']).next().unwrap_or(field)));
        return if faults.is_empty() { Ok(()) } else { Err(invalid(route, value, &faults)) };
    }
    if !strict {
        return Ok(());
    }
    let document = builtin::document(route.api_version());
    let Some(schema) = document.root(&route.ty.kind) else { return Ok(()) };
    if let Some((_, why)) = values::faults(schema, &document.schemas, value).first() {
        return Err(unreadable(route, why));
    }
    no_unknown_fields(route, values::unknown(schema, &document.schemas, value))
}

fn invalid(route: &Route, value: &Value, faults: &[Fault]) -> Refusal {
    let ty = &route.ty;
    Refusal::invalid_fields(&ty.group, &ty.kind, meta_str(value, "name"), faults)
}

fn no_unknown_fields(route: &Route, unknown: Vec<String>) -> Result<(), Refusal> {
    if unknown.is_empty() {
        return Ok(());
    }
    let fields: Vec<String> =
        unknown.iter().map(|field| format!("unknown field \"{field}\"")).collect();
    Err(unreadable(route, &format!("strict decoding error: {}", fields.join(", "))))
}

fn unreadable(route: &Route, why: &str) -> Refusal {
    let (kind, version) = (&route.ty.kind, &route.version().name);
    Refusal::bad_request(format!(
        "{kind} in version \"{version}\" cannot be handled as a {kind}: {why}"
    ))
}
