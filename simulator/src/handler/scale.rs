//! The scale subresource: `autoscaling/v1` Scale as a view on replicas.

use std::sync::Arc;

use serde_json::{Value, json};

use super::patch::Patch;
use super::write::{self, Part};
use crate::context::Context;
use crate::resource::{Route, ScalePaths};
use crate::status::Refusal;
use crate::store::Store;
use crate::store::object::{Stored, key, meta_str, object};

/// The Scale of an object.
pub(crate) fn view(route: &Route, value: &Value) -> Result<Value, Refusal> {
    let paths = paths(route)?;
    let count = |pointer: &str| value.pointer(pointer).and_then(Value::as_i64).unwrap_or(0);
    let selector = paths.selector.as_deref().and_then(|p| value.pointer(p)).cloned();
    let mut metadata = json!({});
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        metadata[field] = meta_str(value, field).into();
    }
    Ok(json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": metadata,
        "spec": {"replicas": count(&paths.spec)},
        "status": {"replicas": count(&paths.status), "selector": selector.unwrap_or_else(|| "".into())},
    }))
}

fn paths(route: &Route) -> Result<&ScalePaths, Refusal> {
    route.version().scale.as_ref().ok_or_else(Refusal::no_such_resource)
}

/// What a client sends to change a Scale.
pub(crate) enum Change<'a> {
    Put(&'a Value),
    Patch(&'a Patch),
}

/// Sets the replicas of an object from a Scale or a patch of one.
pub(crate) fn change(
    store: &mut Store,
    cx: &mut Context,
    route: &Route,
    (namespace, name): (&str, &str),
    change: &Change<'_>,
) -> Result<Arc<Stored>, Refusal> {
    let old = write::read(store, route, namespace, name)?;
    let scale = match change {
        Change::Put(scale) => (*scale).clone(),
        Change::Patch(patch) => patch.patched(true, &view(route, &old.value)?)?,
    };
    let wanted = scale.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(0);
    if wanted < 0 {
        let why = format!("Invalid value: {wanted}: must be greater than or equal to 0");
        return Err(Refusal::invalid("autoscaling", "Scale", name, "spec.replicas", &why));
    }
    let rv = meta_str(&scale, "resourceVersion");
    if !rv.is_empty() && rv != old.rv.to_string() {
        return Err(Refusal::modified(&route.ty.group, &route.ty.plural, name));
    }
    let mut new = Value::clone(&old.value);
    let pointer = paths(route)?.spec.clone();
    let steps: Vec<&str> = pointer.split('/').filter(|s| !s.is_empty()).collect();
    if let Some((last, parents)) = steps.split_last() {
        let mut at = &mut new;
        for step in parents {
            object(at, step);
            at = &mut at[*step];
        }
        at[*last] = wanted.into();
    }
    write::replace(store, cx, route, &key(namespace, name), &old, new, Part::Main)
}
