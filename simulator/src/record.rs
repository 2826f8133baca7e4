//! Writing the history: each write, and after it what the server did on its own because of it.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use crate::context::Context;
use crate::dispatch::Asked;
use crate::history::{FIXTURE_IDENTITY, SERVER_IDENTITY, WriteRecord};
use crate::request::{Query, ResourcePath};
use crate::resource::Route;
use crate::server::State;
use crate::store::object::{Stored, key};

/// Puts a write, and what the server did because of it, into the history.
pub(crate) fn record(
    state: &mut State,
    cx: &mut Context,
    asked: &Asked<'_>,
    (outcome, object): (u16, Option<&Stored>),
    body: Arc<Value>,
    answered: bool,
) {
    if !state.history.is_on() {
        cx.effects.clear();
        return;
    }
    let path = asked.path;
    let name = object.map_or(path.name.as_str(), Stored::name);
    let template = WriteRecord {
        seq: 0,
        rv: object.map_or(state.store.rv, |o| o.rv),
        time_ms: cx.now_ms,
        identity: Arc::clone(asked.identity),
        verb: asked.verb,
        group: path.group.clone(),
        resource: path.plural.clone(),
        namespace: path.namespace.clone(),
        name: name.to_owned(),
        uid: object.map_or_else(String::new, |o| o.uid().to_owned()),
        subresource: path.subresource.clone(),
        outcome,
        answered,
        body,
        after: object.map(|o| Arc::clone(&o.value)),
        exists: object.is_some_and(|o| is_stored(state, &path.group, &path.plural, o)),
    };
    let server: Arc<str> = Arc::from(SERVER_IDENTITY);
    state.history.push(template);
    for effect in std::mem::take(&mut cx.effects) {
        let object = &effect.object;
        let exists = is_stored(state, &effect.group, &effect.plural, object);
        state.history.push(WriteRecord {
            seq: 0,
            rv: object.rv,
            time_ms: cx.now_ms,
            identity: Arc::clone(&server),
            verb: effect.verb,
            group: effect.group,
            resource: effect.plural,
            namespace: object.namespace().to_owned(),
            name: object.name().to_owned(),
            uid: object.uid().to_owned(),
            subresource: String::new(),
            outcome: 200,
            answered: true,
            body: Arc::new(Value::Null),
            after: Some(Arc::clone(&object.value)),
            exists,
        });
    }
}

/// Whether some version of this very object is in the store.
fn is_stored(state: &State, group: &str, plural: &str, object: &Stored) -> bool {
    let name = if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") };
    let Some(route) = state.store.route_of_name(&name) else { return false };
    let key = key(object.namespace(), object.name());
    state.store.get(route.table, &key).is_some_and(|stored| stored.uid() == object.uid())
}

/// Puts a write that came past HTTP into the history.
pub(crate) fn record_fixture(
    state: &mut State,
    cx: &mut Context,
    verb: &'static str,
    route: &Route,
    object: &Stored,
    body: Arc<Value>,
) {
    let path = ResourcePath {
        group: route.ty.group.clone(),
        version: route.version().name.clone(),
        plural: route.ty.plural.clone(),
        namespace: object.namespace().to_owned(),
        name: object.name().to_owned(),
        subresource: String::new(),
    };
    let asked = Asked {
        identity: &Arc::from(FIXTURE_IDENTITY),
        life: 0,
        verb,
        path: &path,
        query: &Query::default(),
        content_type: "",
        accept: "",
        body: &Bytes::new(),
        stale_by: 0,
        reject: None,
        loses_answer: false,
    };
    record(state, cx, &asked, (200, Some(object)), body, true);
}
