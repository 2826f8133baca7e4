//! The garbage collector and the namespace controller, run inside the request that gives them work.
//!
//! In a real cluster these act a moment later; here they act at once, as writes of their own with resourceVersions of
//! their own, which watches and the history see like any other.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::builtin::NAMESPACES;
use crate::context::{Context, Effect};
use crate::handler::delete::{self, DeleteOptions, Propagation};
use crate::store::object::{Stored, is_deleting, key, meta_str, metadata};
use crate::store::{Place, Store, owner_uids};

/// Finalizer of an owner that waits for its dependents.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
/// Finalizer of an owner whose dependents are to be let go first.
pub(crate) const ORPHAN: &str = "orphan";

/// Settles what the removal of `gone` means for others: dependents, waiting owners, a namespace about to end.
pub(crate) fn after_removal(store: &mut Store, cx: &mut Context, table: usize, gone: &Stored) {
    for place in store.dependents(gone.uid()) {
        release_or_delete(store, cx, &place, gone.uid());
    }
    for uid in owner_uids(&gone.value) {
        finish_foreground(store, cx, uid);
    }
    if table != NAMESPACES && !gone.namespace().is_empty() {
        finish_namespace(store, cx, gone.namespace());
    }
}

/// A dependent lost the owner `uid`: it goes when no owner is left, else only the reference goes.
fn release_or_delete(store: &mut Store, cx: &mut Context, place: &Place, uid: &str) {
    let Some(object) = store.get(place.0, &place.1).cloned() else { return };
    if owner_uids(&object.value).iter().any(|o| store.has_uid(o)) {
        drop_owner(store, cx, place, uid);
    } else if !is_deleting(&object.value) {
        delete_quietly(store, cx, place, Propagation::Background);
    }
}

fn drop_owner(store: &mut Store, cx: &mut Context, place: &Place, uid: &str) {
    let Some(object) = store.get(place.0, &place.1) else { return };
    let mut value = Value::clone(&object.value);
    if let Some(owners) =
        metadata(&mut value).get_mut("ownerReferences").and_then(Value::as_array_mut)
    {
        owners.retain(|owner| owner["uid"] != uid);
        if owners.is_empty() {
            metadata(&mut value).remove("ownerReferences");
        }
    }
    let stored = store.put(place.0, &place.1, value);
    note(store, cx, "patch", place.0, stored);
}

fn delete_quietly(store: &mut Store, cx: &mut Context, place: &Place, how: Propagation) {
    let ty = Arc::clone(&store.tables[place.0].ty);
    let options = DeleteOptions { propagation: Some(how), ..DeleteOptions::default() };
    // Fails only on a precondition, and there is none.
    if let Ok(outcome) = delete::delete_object(store, cx, place.0, &ty, &place.1, &options) {
        note(store, cx, "delete", place.0, outcome.object);
    }
}

fn note(store: &Store, cx: &mut Context, verb: &'static str, table: usize, object: Arc<Stored>) {
    let ty = &store.tables[table].ty;
    let (plural, group) = (ty.plural.clone(), ty.group.clone());
    cx.effects.push(Effect { verb, plural, group, object });
}

/// An object was created or updated: it may name owners that do not exist.
pub(crate) fn after_write(store: &mut Store, cx: &mut Context, table: usize, object: &Stored) {
    if !cx.collects_absent_owners || is_deleting(&object.value) {
        return;
    }
    let owners = object.value.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    let Some(owners) = owners.filter(|o| !o.is_empty()) else { return };
    let absent = |owner: &Value| {
        let known = store
            .route_of_kind(
                owner["apiVersion"].as_str().unwrap_or(""),
                owner["kind"].as_str().unwrap_or(""),
            )
            .is_some();
        known && !store.has_uid(owner["uid"].as_str().unwrap_or(""))
    };
    if owners.iter().all(absent) {
        let place = (table, Arc::from(key(object.namespace(), object.name())));
        delete_quietly(store, cx, &place, Propagation::Background);
    }
}

/// Begins the foreground deletion of an owner that already carries the finalizer and its deletionTimestamp.
pub(crate) fn begin_foreground(store: &mut Store, cx: &mut Context, uid: &str) {
    for place in store.dependents(uid) {
        let Some(object) = store.get(place.0, &place.1) else { continue };
        let others_live = owner_uids(&object.value).iter().any(|o| *o != uid && store.has_uid(o));
        if others_live {
            drop_owner(store, cx, &place, uid);
        } else if !is_deleting(&object.value) {
            let has_dependents = !store.dependents(object.uid()).is_empty();
            let how =
                if has_dependents { Propagation::Foreground } else { Propagation::Background };
            delete_quietly(store, cx, &place, how);
        }
    }
    finish_foreground(store, cx, uid);
}

/// Lets a waiting owner go once no dependent blocks it.
fn finish_foreground(store: &mut Store, cx: &mut Context, uid: &str) {
    let blocked = store.dependents(uid).iter().any(|place| {
        store.get(place.0, &place.1).is_some_and(|object| {
            object
                .value
                .pointer("/metadata/ownerReferences")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .any(|o| o["uid"] == uid && o["blockOwnerDeletion"] == true)
        })
    });
    if !blocked {
        drop_finalizer(store, cx, uid, FOREGROUND);
    }
}

/// Frees the dependents of an owner that is deleted with policy Orphan, then lets the owner go.
pub(crate) fn orphan_dependents(store: &mut Store, cx: &mut Context, uid: &str) {
    for place in store.dependents(uid) {
        drop_owner(store, cx, &place, uid);
    }
    drop_finalizer(store, cx, uid, ORPHAN);
}

fn drop_finalizer(store: &mut Store, cx: &mut Context, uid: &str, finalizer: &str) {
    let Some(place) = store.place_of(uid) else { return };
    let Some(object) = store.get(place.0, &place.1).filter(|o| is_deleting(&o.value)) else {
        return;
    };
    let mut value = Value::clone(&object.value);
    let Some(list) = metadata(&mut value).get_mut("finalizers").and_then(Value::as_array_mut)
    else {
        return;
    };
    let before = list.len();
    list.retain(|f| f != finalizer);
    let (now_len, emptied) = (list.len(), list.is_empty());
    if now_len == before {
        return;
    }
    if emptied {
        metadata(&mut value).remove("finalizers");
        if delete::is_final(&value)
            && let Some(last) = store.remove_as(place.0, &place.1, value.clone())
        {
            note(store, cx, "delete", place.0, Arc::clone(&last));
            after_removal(store, cx, place.0, &last);
            return;
        }
    }
    let stored = store.put(place.0, &place.1, value);
    note(store, cx, "patch", place.0, stored);
}

/// Deletes what is in a namespace that has just begun to terminate.
pub(crate) fn empty_namespace(store: &mut Store, cx: &mut Context, namespace: &str) {
    let prefix = format!("{namespace}/");
    for table in 0..store.tables.len() {
        if !store.tables[table].ty.namespaced || !store.tables[table].served {
            continue;
        }
        let keys: Vec<Arc<str>> = store.range(table, &prefix).map(|(k, _)| Arc::clone(k)).collect();
        for key in keys {
            let place = (table, key);
            if store.get(table, &place.1).is_some_and(|o| !is_deleting(&o.value)) {
                delete_quietly(store, cx, &place, Propagation::Background);
            }
        }
    }
    finish_namespace(store, cx, namespace);
}

fn finish_namespace(store: &mut Store, cx: &mut Context, namespace: &str) {
    let own_key = key("", namespace);
    let Some(object) = store.get(NAMESPACES, &own_key).filter(|o| is_deleting(&o.value)) else {
        return;
    };
    let prefix = format!("{namespace}/");
    let empty = (0..store.tables.len())
        .all(|t| !store.tables[t].ty.namespaced || store.range(t, &prefix).next().is_none());
    if !empty {
        return;
    }
    let mut value = Value::clone(&object.value);
    value["spec"]["finalizers"] = json!([]);
    if crate::store::object::has_finalizers(&value) {
        return;
    }
    if let Some(last) = store.remove_as(NAMESPACES, &own_key, value) {
        note(store, cx, "delete", NAMESPACES, Arc::clone(&last));
        after_removal(store, cx, NAMESPACES, &last);
    }
}

/// Removes every object of a custom resource whose definition is going away, finalizers or not.
pub(crate) fn drop_resource(store: &mut Store, cx: &mut Context, crd: &Value) {
    let text = |p: &str| crd.pointer(p).and_then(Value::as_str).unwrap_or("").to_owned();
    let (group, plural) = (text("/spec/group"), text("/spec/names/plural"));
    let table =
        store.tables.iter().position(|t| t.served && t.ty.group == group && t.ty.plural == plural);
    let Some(table) = table.filter(|&t| store.tables[t].ty.custom) else { return };
    let keys: Vec<Arc<str>> = store.tables[table].objects.keys().cloned().collect();
    for key in keys {
        if let Some(last) = store.remove(table, &key) {
            note(store, cx, "delete", table, Arc::clone(&last));
            after_removal(store, cx, table, &last);
        }
    }
    store.unregister(&group, &plural);
}

/// Whether objects may be created in `namespace`.
pub(crate) fn namespace_state(store: &Store, namespace: &str) -> NamespaceState {
    match store.get(NAMESPACES, &key("", namespace)) {
        None => NamespaceState::Missing,
        Some(ns) if !meta_str(&ns.value, "deletionTimestamp").is_empty() => {
            NamespaceState::Terminating
        }
        Some(_) => NamespaceState::Active,
    }
}

/// See [`namespace_state`].
pub(crate) enum NamespaceState {
    Missing,
    Terminating,
    Active,
}
