//! DELETE: preconditions, grace periods of pods, finalizers, propagation to dependents.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::builtin::{CRD_GROUP, CRD_KIND, NAMESPACES, PODS};
use crate::clock::timestamp;
use crate::collect;
use crate::context::Context;
use crate::request::Query;
use crate::resource::ResourceType;
use crate::status::Refusal;
use crate::store::Store;
use crate::store::object::{Stored, has_finalizers, is_deleting, metadata, split_key};

/// What becomes of dependents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Propagation {
    Background,
    Foreground,
    Orphan,
}

/// `metav1.DeleteOptions`, from the body and the query.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeleteOptions {
    pub(crate) uid: Option<String>,
    pub(crate) resource_version: Option<String>,
    pub(crate) grace_period_seconds: Option<i64>,
    pub(crate) propagation: Option<Propagation>,
}

impl DeleteOptions {
    pub(crate) fn read(body: &Value, query: &Query) -> Result<Self, Refusal> {
        let policy = body["propagationPolicy"].as_str().or(query.propagation_policy.as_deref());
        let propagation = match policy {
            None if body["orphanDependents"] == true => Some(Propagation::Orphan),
            None => None,
            Some("Background") => Some(Propagation::Background),
            Some("Foreground") => Some(Propagation::Foreground),
            Some("Orphan") => Some(Propagation::Orphan),
            Some(other) => {
                return Err(Refusal::bad_request(format!(
                    "invalid propagationPolicy \"{other}\": must be Orphan, Background or Foreground"
                )));
            }
        };
        let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        Ok(Self {
            uid: text("/preconditions/uid"),
            resource_version: text("/preconditions/resourceVersion"),
            grace_period_seconds: body["gracePeriodSeconds"]
                .as_i64()
                .or(query.grace_period_seconds),
            propagation,
        })
    }
}

/// The object after a delete, and whether it is gone or only marked.
#[derive(Debug)]
pub(crate) struct Deleted {
    pub(crate) object: Arc<Stored>,
    pub(crate) gone: bool,
}

/// Deletes one object, or marks it as being deleted.
pub(crate) fn delete_object(
    store: &mut Store,
    cx: &mut Context,
    table: usize,
    ty: &ResourceType,
    key: &str,
    options: &DeleteOptions,
) -> Result<Deleted, Refusal> {
    let (_, name) = split_key(key);
    let Some(old) = store.get(table, key).cloned() else {
        return Err(Refusal::not_found(&ty.group, &ty.plural, name));
    };
    check_preconditions(ty, name, &old, options)?;
    let grace = if table == PODS { pod_grace(&old.value, options) } else { 0 };
    if cx.dry_run {
        let gone = grace == 0 && !has_finalizers(&old.value);
        return Ok(Deleted { object: old, gone });
    }
    let mut value = Value::clone(&old.value);
    let finalizer = match options.propagation {
        Some(Propagation::Foreground) => Some(collect::FOREGROUND),
        Some(Propagation::Orphan) => Some(collect::ORPHAN),
        _ => None,
    };
    if let Some(finalizer) = finalizer {
        add_finalizer(&mut value, finalizer);
    }
    let namespace_ends = table == NAMESPACES;
    if grace == 0 && !has_finalizers(&value) && !namespace_ends {
        return Ok(remove(store, cx, table, ty, key));
    }
    mark(&mut value, cx, grace, ty);
    let marked = if value == *old.value { old } else { store.put(table, key, value) };
    let uid = marked.uid().to_owned();
    match options.propagation {
        Some(Propagation::Foreground) => collect::begin_foreground(store, cx, &uid),
        Some(Propagation::Orphan) => collect::orphan_dependents(store, cx, &uid),
        _ => {}
    }
    if namespace_ends {
        collect::empty_namespace(store, cx, name);
    }
    let gone = store.get(table, key).is_none_or(|now| now.uid() != uid);
    Ok(Deleted { object: marked, gone })
}

fn remove(
    store: &mut Store,
    cx: &mut Context,
    table: usize,
    ty: &ResourceType,
    key: &str,
) -> Deleted {
    let was = store.get(table, key).cloned();
    if let Some(was) = &was
        && ty.kind == CRD_KIND
        && ty.group == CRD_GROUP
    {
        collect::drop_resource(store, cx, &was.value);
    }
    match (store.remove(table, key), was) {
        (Some(last), _) => {
            collect::after_removal(store, cx, table, &last);
            Deleted { object: last, gone: true }
        }
        (None, Some(was)) => Deleted { object: was, gone: true },
        (None, None) => Deleted { object: Arc::new(Stored::new(Value::Null, 0)), gone: true },
    }
}

fn check_preconditions(
    ty: &ResourceType,
    name: &str,
    old: &Stored,
    options: &DeleteOptions,
) -> Result<(), Refusal> {
    let failed = |what: &str, wanted: &str, found: &str| {
        let why = format!(
            "Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}"
        );
        Err(Refusal::conflict(&ty.group, &ty.plural, name, &why))
    };
    if let Some(uid) = options.uid.as_deref()
        && uid != old.uid()
    {
        return failed("UID", uid, old.uid());
    }
    if let Some(rv) = options.resource_version.as_deref()
        && rv != old.rv.to_string()
    {
        return failed("ResourceVersion", rv, &old.rv.to_string());
    }
    Ok(())
}

/// Seconds a pod keeps after this delete: none if no kubelet has it or it has ended; never more than before.
fn pod_grace(pod: &Value, options: &DeleteOptions) -> i64 {
    let bound =
        pod.pointer("/spec/nodeName").and_then(Value::as_str).is_some_and(|n| !n.is_empty());
    let phase = pod.pointer("/status/phase").and_then(Value::as_str).unwrap_or("");
    if !bound || matches!(phase, "Succeeded" | "Failed") {
        return 0;
    }
    let own = pod.pointer("/spec/terminationGracePeriodSeconds").and_then(Value::as_i64);
    let grace = options.grace_period_seconds.or(own).unwrap_or(30).max(0);
    let running = pod.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64);
    if is_deleting(pod) { running.map_or(grace, |r| r.min(grace)) } else { grace }
}

fn mark(value: &mut Value, cx: &Context, grace: i64, ty: &ResourceType) {
    if ty.kind == "Namespace" && ty.group.is_empty() {
        value["status"]["phase"] = json!("Terminating");
    }
    let first = !is_deleting(value);
    let meta = metadata(value);
    let shorter = meta
        .get("deletionGracePeriodSeconds")
        .and_then(Value::as_i64)
        .is_some_and(|running| grace < running);
    if first || shorter {
        let at = timestamp(cx.now_ms.saturating_add(grace.saturating_mul(1000)));
        meta.insert("deletionTimestamp".to_owned(), at.into());
        meta.insert("deletionGracePeriodSeconds".to_owned(), grace.into());
        if first && let Some(generation) = meta.get("generation").and_then(Value::as_i64) {
            meta.insert("generation".to_owned(), (generation + 1).into());
        }
    }
}

fn add_finalizer(value: &mut Value, finalizer: &str) {
    let list = metadata(value).entry("finalizers").or_insert_with(|| json!([]));
    if let Some(list) = list.as_array_mut()
        && !list.iter().any(|f| f == finalizer)
    {
        list.push(finalizer.into());
    }
}

/// Whether nothing keeps a marked object any more: no finalizer, no running grace period.
pub(crate) fn is_final(value: &Value) -> bool {
    let grace = value.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64);
    let held =
        value.pointer("/spec/finalizers").and_then(Value::as_array).is_some_and(|f| !f.is_empty())
            && value["kind"] == "Namespace";
    is_deleting(value) && !has_finalizers(value) && grace.unwrap_or(0) == 0 && !held
}

/// The body of a delete's answer: pods and marked objects come back themselves, the rest as a Status.
pub(crate) fn answers_with_object(table: usize, deleted: &Deleted) -> bool {
    !deleted.gone || table == PODS
}

/// The uid for the Status of a finished delete.
pub(crate) fn uid_of(deleted: &Deleted) -> &str {
    deleted.object.uid()
}
