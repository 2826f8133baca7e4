//! Objects straight into the server, without HTTP: for fixtures, scenarios and assertions.
//!
//! Unlike a client's create, these keep the status that the object comes with, and create its namespace if needed.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::dispatch::shown;
use crate::handler::delete::{self, DeleteOptions};
use crate::handler::write::{self, Part};
use crate::record::record_fixture;
use crate::resource::Route;
use crate::server::{ApiServer, State};
use crate::status::Refusal;
use crate::store::object::{key, meta_str, metadata};

impl ApiServer {
    pub(crate) fn install_first_objects(&self) {
        for object in crate::builtin::first_objects() {
            // The table knows every kind in that list.
            if let Err(refusal) = self.create_value(object) {
                tracing::error!(%refusal, "a first object was refused");
            }
        }
    }

    /// Creates an object of any kind by its `apiVersion` and `kind`; namespaced objects without one go to `default`.
    pub fn create_value(&self, object: Value) -> Result<Value, Refusal> {
        self.write_value(object, false)
    }

    /// Creates an object or replaces it whole (its status too).
    pub fn apply_value(&self, object: Value) -> Result<Value, Refusal> {
        self.write_value(object, true)
    }

    fn write_value(&self, mut object: Value, replaces: bool) -> Result<Value, Refusal> {
        let mut cx = self.inner.context();
        cx.trusts_status = true;
        let mut state = self.inner.state.lock();
        let route = route_of(&state, &object)?;
        let mut namespace = String::new();
        if route.ty.namespaced {
            meta_str(&object, "namespace").clone_into(&mut namespace);
            if namespace.is_empty() {
                "default".clone_into(&mut namespace);
                metadata(&mut object).insert("namespace".to_owned(), namespace.as_str().into());
            }
            let missing =
                state.store.get(crate::builtin::NAMESPACES, &key("", &namespace)).is_none();
            if missing && let Some(namespaces) = state.store.route("", "v1", "namespaces").cloned()
            {
                let value = json!({"metadata": {"name": namespace}});
                write::create(&mut state.store, &mut cx, &namespaces, "", value)?;
            }
        }
        let name = meta_str(&object, "name").to_owned();
        let old = state.store.get(route.table, &key(&namespace, &name)).cloned();
        let verb = if old.is_some() && replaces { "update" } else { "create" };
        let body = Arc::new(if state.history.is_on() { object.clone() } else { Value::Null });
        let store = &mut state.store;
        let stored = match old {
            Some(_) if replaces => {
                for field in ["resourceVersion", "uid"] {
                    metadata(&mut object).remove(field);
                }
                write::update(store, &mut cx, &route, &namespace, &name, object, Part::Whole)?
            }
            _ => write::create(store, &mut cx, &route, &namespace, object)?,
        };
        record_fixture(&mut state, &mut cx, verb, &route, &stored, body);
        Ok(shown(&route, &stored))
    }

    /// The object, if it exists. `resource` is a plural, singular, short name or `plural.group`.
    #[must_use]
    pub fn get_value(&self, resource: &str, namespace: &str, name: &str) -> Option<Value> {
        self.get_arc(resource, namespace, name).map(|v| Value::clone(&v))
    }

    /// The stored object without copying it.
    #[must_use]
    pub fn get_arc(&self, resource: &str, namespace: &str, name: &str) -> Option<Arc<Value>> {
        let state = self.inner.state.lock();
        let route = state.store.route_of_name(resource)?;
        let namespace = if route.ty.namespaced { namespace } else { "" };
        state.store.get(route.table, &key(namespace, name)).map(|s| Arc::clone(&s.value))
    }

    /// All objects of a resource over all namespaces, by namespace and name; empty for an unknown resource.
    #[must_use]
    pub fn list_values(&self, resource: &str) -> Vec<Arc<Value>> {
        let state = self.inner.state.lock();
        let Some(route) = state.store.route_of_name(resource) else { return Vec::new() };
        state.store.range(route.table, "").map(|(_, s)| Arc::clone(&s.value)).collect()
    }

    /// Deletes an object as a client with default options would, except that pods go at once.
    pub fn delete_value(&self, resource: &str, namespace: &str, name: &str) -> Result<(), Refusal> {
        let mut cx = self.inner.context();
        let mut state = self.inner.state.lock();
        let route =
            state.store.route_of_name(resource).ok_or_else(Refusal::no_such_resource)?.clone();
        let namespace = if route.ty.namespaced { namespace } else { "" };
        let options = DeleteOptions { grace_period_seconds: Some(0), ..DeleteOptions::default() };
        let key = key(namespace, name);
        let (table, ty) = (route.table, &route.ty);
        let deleted = delete::delete_object(&mut state.store, &mut cx, table, ty, &key, &options)?;
        let nothing = Arc::new(Value::Null);
        record_fixture(&mut state, &mut cx, "delete", &route, &deleted.object, nothing);
        Ok(())
    }
}

fn route_of(state: &State, object: &Value) -> Result<Route, Refusal> {
    let text = |field: &str| object[field].as_str().unwrap_or("");
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    state.store.route_of_kind(api_version, kind).cloned().ok_or_else(|| {
        Refusal::bad_request(format!("no matches for kind \"{kind}\" in version \"{api_version}\""))
    })
}
