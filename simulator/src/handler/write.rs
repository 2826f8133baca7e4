//! POST and PUT: creating objects and replacing them under optimistic concurrency.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::admission;
use crate::builtin::{CRD_GROUP, CRD_KIND};
use crate::collect::{self, NamespaceState};
use crate::context::Context;
use crate::form;
use crate::resource::Route;
use crate::schema;
use crate::status::Refusal;
use crate::store::Store;
use crate::store::object::{Stored, has_finalizers, is_deleting, key, meta_str, metadata};

/// Which part of an object a write is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// The object itself; its status stays as it is where a status subresource exists.
    Main,
    /// The status subresource.
    Status,
    /// Everything, without checks of immutable fields: the server's own steps and fixtures.
    Whole,
}

/// Creates an object.
pub(crate) fn create(
    store: &mut Store,
    cx: &mut Context,
    route: &Route,
    namespace: &str,
    body: Value,
) -> Result<Arc<Stored>, Refusal> {
    let ty = &route.ty;
    let mut value = accept(route, body)?;
    take_namespace(route, namespace, &mut value)?;
    let given = meta_str(&value, "name").to_owned();
    let prefix = meta_str(&value, "generateName").to_owned();
    if given.is_empty() && prefix.is_empty() {
        let why = "Required value: name or generateName is required";
        return Err(Refusal::invalid(&ty.group, &ty.kind, "", "metadata.name", why));
    }
    let name = if given.is_empty() { generate(store, route, namespace, &prefix) } else { given };
    admission::check_name(route, &name)?;
    if !matches!(meta_str(&value, "resourceVersion"), "" | "0") {
        let message = "resourceVersion should not be set on objects to be created";
        return Err(Refusal::bad_request(message));
    }
    if ty.namespaced {
        match collect::namespace_state(store, namespace) {
            NamespaceState::Active => {}
            NamespaceState::Missing => return Err(Refusal::not_found("", "namespaces", namespace)),
            NamespaceState::Terminating => {
                let why = format!(
                    "unable to create new content in namespace {namespace} because it is being terminated"
                );
                let mut refusal = Refusal::forbidden(&ty.group, &ty.plural, &name, &why);
                refusal.details["causes"] = json!([{
                    "reason": "NamespaceTerminating",
                    "message": format!("namespace {namespace} is being terminated"),
                    "field": "metadata.namespace",
                }]);
                return Err(refusal);
            }
        }
    }
    let key = key(namespace, &name);
    if store.get(route.table, &key).is_some() {
        return Err(Refusal::already_exists(&ty.group, &ty.plural, &name));
    }
    let uid = store.new_uid();
    let meta = metadata(&mut value);
    for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generation"] {
        meta.remove(field);
    }
    meta.insert("name".to_owned(), name.into());
    meta.insert("uid".to_owned(), uid.into());
    meta.insert("creationTimestamp".to_owned(), cx.now.clone().into());
    if has_generation(route, &value) {
        metadata(&mut value).insert("generation".to_owned(), json!(1));
    }
    admission::on_create(store, cx, route, &mut value)?;
    if !cx.trusts_status {
        schema::check(route, None, &value, cx.strict)?;
    }
    let custom = (ty.group == CRD_GROUP && ty.kind == CRD_KIND)
        .then(|| crate::custom::resource_type(&value))
        .transpose()?;
    if cx.dry_run {
        return Ok(Arc::new(Stored::new(value, store.rv)));
    }
    let stored = store.put(route.table, &key, value);
    if let Some(custom) = custom {
        store.register(Arc::new(custom));
    }
    collect::after_write(store, cx, route.table, &stored);
    Ok(stored)
}

/// Checks that a body is an object of this route's kind and brings it into the stored form.
pub(crate) fn accept(route: &Route, mut body: Value) -> Result<Value, Refusal> {
    let ty = &route.ty;
    let Some(map) = body.as_object_mut() else {
        return Err(Refusal::bad_request("the object provided is not a JSON object"));
    };
    let wanted = route.api_version();
    for (field, wanted) in [("apiVersion", wanted), ("kind", ty.kind.as_str())] {
        match map.get(field).map(|found| found.as_str().unwrap_or("")) {
            None | Some("") => {
                map.insert(field.to_owned(), wanted.into());
            }
            Some(found) if found != wanted => {
                let message = format!(
                    "the {field} in the data ({found}) does not match the expected {field} ({wanted})"
                );
                return Err(Refusal::bad_request(message));
            }
            Some(_) => {}
        }
    }
    if map.get("metadata").is_some_and(|m| !m.is_object() && !m.is_null()) {
        return Err(Refusal::bad_request("metadata must be an object"));
    }
    let mut stored = form::stored(route, body);
    schema::fill_defaults(route, &mut stored);
    Ok(stored)
}

fn take_namespace(route: &Route, namespace: &str, value: &mut Value) -> Result<(), Refusal> {
    let found = meta_str(value, "namespace");
    if !route.ty.namespaced {
        metadata(value).remove("namespace");
        return Ok(());
    }
    if !found.is_empty() && found != namespace {
        return Err(Refusal::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    if found.is_empty() {
        metadata(value).insert("namespace".to_owned(), namespace.into());
    }
    Ok(())
}

fn generate(store: &mut Store, route: &Route, namespace: &str, prefix: &str) -> String {
    // Kubernetes cuts the prefix so that the result fits into a label.
    let prefix: String = prefix.chars().take(58).collect();
    let mut name = format!("{prefix}{}", store.name_suffix());
    for _ in 0..8 {
        if store.get(route.table, &key(namespace, &name)).is_none() {
            break;
        }
        name = format!("{prefix}{}", store.name_suffix());
    }
    name
}

fn has_generation(route: &Route, value: &Value) -> bool {
    route.ty.custom
        || (value.get("spec").is_some()
            && !matches!(
                route.ty.kind.as_str(),
                "Node" | "Namespace" | "PersistentVolume" | "PersistentVolumeClaim" | "Service"
            ))
}

/// Replaces an object by what a client sent (PUT).
pub(crate) fn update(
    store: &mut Store,
    cx: &mut Context,
    route: &Route,
    namespace: &str,
    name: &str,
    body: Value,
    part: Part,
) -> Result<Arc<Stored>, Refusal> {
    let ty = &route.ty;
    let mut value = accept(route, body)?;
    take_namespace(route, namespace, &mut value)?;
    let old = read(store, route, namespace, name)?;
    if ty.custom && meta_str(&value, "resourceVersion").is_empty() && part != Part::Whole {
        let why = "Invalid value: 0x0: must be specified for an update";
        return Err(Refusal::invalid(&ty.group, &ty.kind, name, "metadata.resourceVersion", why));
    }
    replace(store, cx, route, &key(namespace, name), &old, value, part)
}

/// The present version of an object, or 404.
pub(crate) fn read(
    store: &Store,
    route: &Route,
    namespace: &str,
    name: &str,
) -> Result<Arc<Stored>, Refusal> {
    store
        .get(route.table, &key(namespace, name))
        .cloned()
        .ok_or_else(|| Refusal::not_found(&route.ty.group, &route.ty.plural, name))
}

/// Puts `new` (in stored form) in the place of `old`, under all the rules of an update.
pub(crate) fn replace(
    store: &mut Store,
    cx: &mut Context,
    route: &Route,
    key: &str,
    old: &Arc<Stored>,
    mut new: Value,
    part: Part,
) -> Result<Arc<Stored>, Refusal> {
    let ty = &route.ty;
    let name = old.name();
    check_identity(route, old, &new)?;
    let rv = meta_str(&new, "resourceVersion");
    if !rv.is_empty() && rv != "0" && rv != old.rv.to_string() {
        return Err(Refusal::modified(&ty.group, &ty.plural, name));
    }
    admission::keep_system_fields(&old.value, &mut new);
    let meta = metadata(&mut new);
    meta.insert("resourceVersion".to_owned(), old.rv.to_string().into());
    // Clients may leave out what the URL already says.
    meta.insert("name".to_owned(), name.into());
    if ty.namespaced {
        meta.insert("namespace".to_owned(), old.namespace().into());
    }
    match part {
        Part::Status => new = with_status_of(route, &old.value, new),
        Part::Main => {
            if route.has_status() {
                copy_field(&old.value, &mut new, "status");
            }
            admission::on_update(cx, route, &old.value, &mut new)?;
        }
        Part::Whole => {}
    }
    if is_deleting(&old.value) {
        check_new_finalizers(route, &old.value, &new)?;
    }
    if new == *old.value {
        return Ok(Arc::clone(old));
    }
    if part != Part::Whole {
        schema::check(route, Some(&old.value), &new, cx.strict)?;
    }
    if part != Part::Status && meaning_changed(route, &old.value, &new) {
        let meta = metadata(&mut new);
        if let Some(generation) = meta.get("generation").and_then(Value::as_i64) {
            meta.insert("generation".to_owned(), (generation + 1).into());
        }
    }
    if cx.dry_run {
        return Ok(Arc::new(Stored::new(new, old.rv)));
    }
    let ended = super::delete::is_final(&new) && has_finalizers(&old.value);
    if ended && let Some(last) = store.remove_as(route.table, key, new.clone()) {
        collect::after_removal(store, cx, route.table, &last);
        return Ok(last);
    }
    let stored = store.put(route.table, key, new);
    if ty.group == CRD_GROUP && ty.kind == CRD_KIND && old.value["spec"] != stored.value["spec"] {
        store.register(Arc::new(crate::custom::resource_type(&stored.value)?));
    }
    if old.value.pointer("/metadata/ownerReferences")
        != stored.value.pointer("/metadata/ownerReferences")
    {
        collect::after_write(store, cx, route.table, &stored);
    }
    Ok(stored)
}

fn check_identity(route: &Route, old: &Stored, new: &Value) -> Result<(), Refusal> {
    let ty = &route.ty;
    let (name, uid) = (meta_str(new, "name"), meta_str(new, "uid"));
    if !name.is_empty() && name != old.name() {
        return Err(Refusal::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            old.name()
        )));
    }
    if !uid.is_empty() && uid != old.uid() {
        let why = format!(
            "Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
            old.uid()
        );
        return Err(Refusal::conflict(&ty.group, &ty.plural, old.name(), &why));
    }
    Ok(())
}

fn check_new_finalizers(route: &Route, old: &Value, new: &Value) -> Result<(), Refusal> {
    let list = |v: &Value| {
        v.pointer("/metadata/finalizers").and_then(Value::as_array).cloned().unwrap_or_default()
    };
    let before = list(old);
    if list(new).iter().all(|f| before.contains(f)) {
        return Ok(());
    }
    let ty = &route.ty;
    let why = "Forbidden: no new finalizers can be added if the object is being deleted";
    Err(Refusal::invalid(&ty.group, &ty.kind, meta_str(new, "name"), "metadata.finalizers", why))
}

/// What a write to the status subresource changes: the status, and for built-in kinds labels and annotations.
fn with_status_of(route: &Route, old: &Value, mut new: Value) -> Value {
    if route.ty.custom {
        let mut result = old.clone();
        copy_field(&new, &mut result, "status");
        if let Some(fields) = new.pointer("/metadata/managedFields").cloned() {
            metadata(&mut result).insert("managedFields".to_owned(), fields);
        }
        return result;
    }
    let keep: Vec<String> = old
        .as_object()
        .into_iter()
        .chain(new.as_object())
        .flat_map(Map::keys)
        .filter(|field| !matches!(field.as_str(), "metadata" | "status"))
        .cloned()
        .collect();
    for field in keep {
        copy_field(old, &mut new, &field);
    }
    let owners = old.pointer("/metadata/ownerReferences").cloned();
    match owners {
        Some(owners) => metadata(&mut new).insert("ownerReferences".to_owned(), owners),
        None => metadata(&mut new).remove("ownerReferences"),
    };
    new
}

fn copy_field(from: &Value, to: &mut Value, field: &str) {
    let Some(map) = to.as_object_mut() else { return };
    match from.get(field) {
        Some(value) => {
            map.insert(field.to_owned(), value.clone());
        }
        None => {
            map.remove(field);
        }
    }
}

/// Whether an update changes what `metadata.generation` counts.
fn meaning_changed(route: &Route, old: &Value, new: &Value) -> bool {
    if !route.ty.custom {
        return old.get("spec") != new.get("spec");
    }
    let counts = |field: &str| field != "metadata" && !(field == "status" && route.has_status());
    let fields = |v: &Value| -> Vec<(String, Value)> {
        v.as_object()
            .into_iter()
            .flatten()
            .filter(|(field, _)| counts(field))
            .map(|(field, value)| (field.clone(), value.clone()))
            .collect()
    };
    fields(old) != fields(new)
}
