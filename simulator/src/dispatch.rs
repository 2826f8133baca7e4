//! From a parsed request to the handler that answers it, under the server's lock, and into the history.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use crate::builtin::PODS;
use crate::context::Context;
use crate::faults::ConnectionLost;
use crate::form;
use crate::handler::delete::{self, DeleteOptions};
use crate::handler::patch::{self, Patch};
use crate::handler::render::{self, Shape};
use crate::handler::watch::{WatchBody, Watcher};
use crate::handler::write::{self, Part};
use crate::handler::{discovery, openapi, read, review, scale, subresource};
use crate::record::record;
use crate::request::{Query, ResourcePath, Target, is_write};
use crate::resource::Route;
use crate::selector::Selector;
use crate::server::{Inner, State};
use crate::status::{Refusal, success};
use crate::store::object::{Stored, key, split_key, to_bytes};

const JSON: &str = "application/json";

/// A request for a resource.
pub(crate) struct Asked<'a> {
    pub(crate) identity: &'a Arc<str>,
    pub(crate) life: u64,
    pub(crate) verb: &'static str,
    pub(crate) path: &'a ResourcePath,
    pub(crate) query: &'a Query,
    pub(crate) content_type: &'a str,
    pub(crate) accept: &'a str,
    pub(crate) body: &'a Bytes,
    pub(crate) stale_by: u64,
    pub(crate) reject: Option<(u16, Option<u32>)>,
    pub(crate) loses_answer: bool,
}

/// What goes back.
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) content_type: &'static str,
    pub(crate) payload: Payload,
    pub(crate) retry_after: Option<u64>,
}

/// The body of an answer.
pub(crate) enum Payload {
    Bytes(Bytes),
    Watch(Box<WatchBody>),
}

impl Answer {
    fn bytes(code: u16, bytes: Bytes) -> Self {
        Self { code, content_type: JSON, payload: Payload::Bytes(bytes), retry_after: None }
    }

    fn value(code: u16, value: &Value) -> Self {
        Self::bytes(code, to_bytes(value))
    }

    pub(crate) fn refused(refusal: &Refusal) -> Self {
        let retry_after = refusal.retry_after();
        Self { retry_after, ..Self::value(refusal.code, &refusal.to_value()) }
    }
}

/// Answers what is no resource: discovery, health, version, OpenAPI.
pub(crate) fn document(inner: &Inner, target: &Target, accept: &str) -> Answer {
    let aggregated = discovery::wants_aggregated(accept);
    let state = inner.state.lock();
    let store = &state.store;
    let found = match target {
        Target::CoreVersions | Target::Groups if aggregated => {
            let value = discovery::aggregated(store, *target == Target::CoreVersions);
            return Answer { content_type: discovery::AGGREGATED, ..Answer::value(200, &value) };
        }
        Target::CoreVersions => Ok(discovery::core_versions()),
        Target::Groups => Ok(discovery::group_list(store)),
        Target::Group(name) => discovery::group(store, name),
        Target::Resources(group, version) => discovery::resources(store, group, version),
        Target::Version => Ok(discovery::version()),
        Target::Health => {
            let ok = Answer::bytes(200, Bytes::from_static(b"ok"));
            return Answer { content_type: "text/plain", ..ok };
        }
        Target::OpenApiV2 if accept.contains(openapi::PROTOBUF) => {
            let empty = Answer::bytes(200, Bytes::from_static(openapi::EMPTY_V2));
            return Answer { content_type: openapi::PROTOBUF_ANSWER, ..empty };
        }
        Target::OpenApiV2 => Ok(openapi::v2()),
        Target::OpenApiV3(root) if root.is_empty() => Ok(openapi::v3_index(store)),
        Target::OpenApiV3(root) => openapi::v3_document(store, root),
        Target::Resource(_) | Target::Unknown => Err(Refusal::no_such_resource()),
    };
    match found {
        Ok(value) => Answer::value(200, &value),
        Err(refusal) => Answer::refused(&refusal),
    }
}

/// Answers a request for a resource. `Err` when the client is dead, or dies of this very write.
pub(crate) fn answer(inner: &Arc<Inner>, asked: &Asked<'_>) -> Result<Answer, ConnectionLost> {
    let mut dies = false;
    let answer = {
        let mut state = inner.state.lock();
        if state.life(asked.identity) != Some(asked.life) {
            return Err(ConnectionLost);
        }
        if let Some(answer) = review::answer(asked.verb, asked.path) {
            Ok(Answer::value(201, &answer))
        } else if subresource::is_stream(asked.path) {
            Err(no_stream(&state, asked.path))
        } else if is_write(asked.verb) {
            answer_write(inner, &mut state, asked, &mut dies)
        } else {
            answer_read(inner, &mut state, asked)
        }
    };
    if dies {
        inner.announce_crash();
        return Err(ConnectionLost);
    }
    Ok(answer.unwrap_or_else(|refusal| Answer::refused(&refusal)))
}

/// Why nobody can be connected with a pod.
fn no_stream(state: &State, path: &ResourcePath) -> Refusal {
    let route = match route(state, path) {
        Ok(route) => route,
        Err(refusal) => return refusal,
    };
    match write::read(&state.store, &route, &path.namespace, &path.name) {
        Ok(_) => Refusal::bad_request(format!(
            "pod {} is simulated: there is no process in it, so {} has nothing to connect to",
            path.name, path.subresource
        )),
        Err(refusal) => refusal,
    }
}

fn route(state: &State, path: &ResourcePath) -> Result<Route, Refusal> {
    let route = state.store.route(&path.group, &path.version, &path.plural);
    let route = route.ok_or_else(Refusal::no_such_resource)?;
    let misplaced = if route.ty.namespaced {
        path.namespace.is_empty() && !path.name.is_empty()
    } else {
        !path.namespace.is_empty()
    };
    if misplaced { Err(Refusal::no_such_resource()) } else { Ok(route.clone()) }
}

fn injected(asked: &Asked<'_>) -> Result<(), Refusal> {
    match asked.reject {
        Some((code, after)) => Err(Refusal::injected(code, after)),
        None => Ok(()),
    }
}

fn answer_read(
    inner: &Arc<Inner>,
    state: &mut State,
    asked: &Asked<'_>,
) -> Result<Answer, Refusal> {
    injected(asked)?;
    let (path, query) = (asked.path, asked.query);
    let route = route(state, path)?;
    let shape = Shape::accepted(asked.accept);
    let now_ms = inner.clock.now_ms();
    match (asked.verb, path.subresource.as_str()) {
        ("watch", "") => watch(inner, state, asked, &route, shape),
        ("list", "") => {
            let bytes =
                read::list(&state.store, &route, path, query, shape, now_ms, asked.stale_by)?;
            Ok(Answer::bytes(200, bytes))
        }
        ("get", "") => {
            let found = write::read(&state.store, &route, &path.namespace, &path.name)?;
            Ok(Answer::bytes(200, render::object(&route, shape, &found, now_ms)))
        }
        ("get", "scale") => {
            let found = write::read(&state.store, &route, &path.namespace, &path.name)?;
            Ok(Answer::value(200, &scale::view(&route, &found.value)?))
        }
        ("get", "log") if route.table == PODS => {
            write::read(&state.store, &route, &path.namespace, &path.name)?;
            let text = Bytes::from_static(b"This pod is simulated: it has no output.\n");
            Ok(Answer { content_type: "text/plain", ..Answer::bytes(200, text) })
        }
        ("get", sub) if part(&route, sub).is_some() => {
            let found = write::read(&state.store, &route, &path.namespace, &path.name)?;
            Ok(Answer::bytes(200, render::object(&route, shape, &found, now_ms)))
        }
        _ => Err(Refusal::no_such_resource()),
    }
}

fn watch(
    inner: &Arc<Inner>,
    state: &mut State,
    asked: &Asked<'_>,
    route: &Route,
    shape: Shape,
) -> Result<Answer, Refusal> {
    if WatchBody::is_too_old(&state.store, route, asked.query) {
        let rv = asked.query.revision()?.unwrap_or(0);
        let refusal = WatchBody::too_old(rv, state.store.rv);
        if state.gone_as_http {
            return Err(refusal);
        }
        let mut line = bytes::BytesMut::new();
        render::watch_line(&mut line, "ERROR", &to_bytes(&refusal.to_value()));
        return Ok(Answer::bytes(200, line.freeze()));
    }
    state.watches += 1;
    let watcher =
        Watcher { id: state.watches, identity: Arc::clone(asked.identity), life: asked.life };
    let (store, path, query) = (&state.store, asked.path, asked.query);
    let body = WatchBody::start(inner, store, watcher, route, path, query, shape)?;
    let mut answer = Answer::bytes(200, Bytes::new());
    answer.payload = Payload::Watch(Box::new(body));
    Ok(answer)
}

/// The part of an object that a subresource writes.
fn part(route: &Route, subresource: &str) -> Option<Part> {
    match subresource {
        "" => Some(Part::Main),
        "status" if route.has_status() => Some(Part::Status),
        "resize" if route.table == PODS => Some(Part::Whole),
        "finalize" if route.ty.kind == "Namespace" => Some(Part::Main),
        _ => None,
    }
}

/// What a write did.
struct Written {
    code: u16,
    object: Option<Arc<Stored>>,
    /// A body other than the object.
    instead: Option<Value>,
}

impl Written {
    fn object(code: u16, object: Arc<Stored>) -> Self {
        Self { code, object: Some(object), instead: None }
    }
}

fn answer_write(
    inner: &Arc<Inner>,
    state: &mut State,
    asked: &Asked<'_>,
    dies: &mut bool,
) -> Result<Answer, Refusal> {
    let mut cx = inner.context();
    cx.dry_run = asked.query.dry_run;
    cx.strict = asked.query.strict;
    let body = parse_body(asked);
    // Kept only for the history: handlers consume the body.
    let kept = match &body {
        Ok(body) if state.history.is_on() => Arc::new(body.value()),
        _ => Arc::new(Value::Null),
    };
    let written = injected(asked)
        .and(body)
        .and_then(|body| route(state, asked.path).map(|route| (body, route)))
        .and_then(|(body, route)| {
            let written = write_resource(state, &mut cx, asked, &route, body)?;
            Ok((written, route))
        });
    let applied = written.is_ok() && !cx.dry_run;
    if applied {
        *dies = state.count_write(asked.identity);
    }
    if !cx.dry_run {
        let outcome = match &written {
            Ok((written, _)) => (written.code, written.object.as_deref()),
            Err(refusal) => (refusal.code, None),
        };
        let answered = !(asked.loses_answer || *dies);
        record(state, &mut cx, asked, outcome, kept, answered);
    }
    let (written, route) = written?;
    let bytes = match (&written.instead, &written.object) {
        (Some(value), _) => to_bytes(value),
        (None, Some(object)) => {
            render::object(&route, Shape::accepted(asked.accept), object, cx.now_ms)
        }
        (None, None) => Bytes::new(),
    };
    Ok(Answer::bytes(written.code, bytes))
}

enum Body {
    Value(Value),
    Patch(Patch),
}

impl Body {
    fn value(&self) -> Value {
        match self {
            Self::Value(value) => value.clone(),
            Self::Patch(patch) => patch.body(),
        }
    }
}

fn parse_body(asked: &Asked<'_>) -> Result<Body, Refusal> {
    if asked.verb == "patch" {
        return Patch::parse(asked.content_type, asked.body).map(Body::Patch);
    }
    if asked.body.is_empty() && asked.verb.starts_with("delete") {
        return Ok(Body::Value(Value::Null));
    }
    if asked.content_type.starts_with("application/vnd.kubernetes.protobuf") {
        return crate::protobuf::decode(asked.body).map(Body::Value);
    }
    if asked.content_type.contains("cbor") {
        return Err(Refusal::new(
            415,
            "UnsupportedMediaType",
            "the body of the request was in an unknown format - accepted media types include: \
             application/json, application/yaml, application/vnd.kubernetes.protobuf",
        ));
    }
    if asked.content_type.contains("yaml") {
        return serde_saphyr::from_slice(asked.body)
            .map(Body::Value)
            .map_err(|e| Refusal::bad_request(format!("error decoding YAML: {e}")));
    }
    render::parse_json(asked.body).map(Body::Value)
}

fn write_resource(
    state: &mut State,
    cx: &mut Context,
    asked: &Asked<'_>,
    route: &Route,
    body: Body,
) -> Result<Written, Refusal> {
    let path = asked.path;
    let (namespace, name) = (path.namespace.as_str(), path.name.as_str());
    let store = &mut state.store;
    let ty = &route.ty;
    match (asked.verb, path.subresource.as_str(), body) {
        ("create", "", Body::Value(value)) => {
            if ty.namespaced && namespace.is_empty() {
                return Err(Refusal::method_not_allowed());
            }
            write::create(store, cx, route, namespace, value).map(|o| Written::object(201, o))
        }
        ("create", "binding", Body::Value(value)) if route.table == PODS => {
            let pod = subresource::bind(store, cx, route, (namespace, name), &value)?;
            Ok(done(201, route, pod))
        }
        ("create", "eviction", Body::Value(value)) if route.table == PODS => {
            let pod = subresource::evict(store, cx, route, (namespace, name), &value)?;
            Ok(done(201, route, pod))
        }
        ("update", "scale", Body::Value(value)) => {
            let change = scale::Change::Put(&value);
            let object = scale::change(store, cx, route, (namespace, name), &change)?;
            let view = scale::view(route, &object.value)?;
            Ok(Written { code: 200, object: Some(object), instead: Some(view) })
        }
        ("patch", "scale", Body::Patch(patch)) => {
            let change = scale::Change::Patch(&patch);
            let object = scale::change(store, cx, route, (namespace, name), &change)?;
            let view = scale::view(route, &object.value)?;
            Ok(Written { code: 200, object: Some(object), instead: Some(view) })
        }
        ("update", sub, Body::Value(value)) => {
            let part = part(route, sub).ok_or_else(Refusal::no_such_resource)?;
            write::update(store, cx, route, namespace, name, value, part)
                .map(|o| Written::object(200, o))
        }
        ("patch", sub, Body::Patch(patch)) => {
            let part = part(route, sub).ok_or_else(Refusal::no_such_resource)?;
            let place = (namespace, name);
            let (object, created) =
                patch::patch(store, cx, route, place, asked.query, &patch, part)?;
            Ok(Written::object(if created { 201 } else { 200 }, object))
        }
        ("delete", "", Body::Value(options)) => {
            let options = DeleteOptions::read(&options, asked.query)?;
            let key = key(namespace, name);
            let deleted = delete::delete_object(store, cx, route.table, ty, &key, &options)?;
            if delete::answers_with_object(route.table, &deleted) {
                return Ok(Written::object(200, deleted.object));
            }
            let status = success(200, &ty.group, &ty.plural, name, delete::uid_of(&deleted));
            Ok(Written { code: 200, object: Some(deleted.object), instead: Some(status) })
        }
        ("deletecollection", "", Body::Value(options)) => {
            let options = DeleteOptions::read(&options, asked.query)?;
            delete_collection(state, cx, asked, route, &options)
        }
        _ => Err(Refusal::no_such_resource()),
    }
}

fn done(code: u16, route: &Route, object: Arc<Stored>) -> Written {
    let status = success(code, &route.ty.group, &route.ty.plural, object.name(), object.uid());
    Written { code, object: Some(object), instead: Some(status) }
}

fn delete_collection(
    state: &mut State,
    cx: &mut Context,
    asked: &Asked<'_>,
    route: &Route,
    options: &DeleteOptions,
) -> Result<Written, Refusal> {
    let query = asked.query;
    let ty = &route.ty;
    let selector = Selector::parse(&ty.plural, &query.label_selector, &query.field_selector)?;
    let prefix = match asked.path.namespace.as_str() {
        "" => String::new(),
        namespace => format!("{namespace}/"),
    };
    let keys: Vec<Arc<str>> = state
        .store
        .range(route.table, &prefix)
        .filter(|(_, o)| selector.matches(&o.value))
        .map(|(key, _)| Arc::clone(key))
        .collect();
    for key in keys {
        // One that went away with an earlier one is no failure.
        if state.store.get(route.table, &key).is_none() {
            continue;
        }
        let deleted = delete::delete_object(&mut state.store, cx, route.table, ty, &key, options)?;
        if cx.dry_run || !state.history.is_on() {
            continue;
        }
        let (namespace, name) = split_key(&key);
        let path = ResourcePath {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            ..asked.path.clone()
        };
        let single = Asked { verb: "delete", path: &path, ..*asked };
        let answered = !asked.loses_answer;
        let nothing = Arc::new(Value::Null);
        record(state, cx, &single, (200, Some(&deleted.object)), nothing, answered);
    }
    let status = success(200, &ty.group, &ty.plural, "", "");
    Ok(Written { code: 200, object: None, instead: Some(status) })
}

/// Shows a stored object through a route, for helpers that hand values to tests.
pub(crate) fn shown(route: &Route, stored: &Stored) -> Value {
    form::shown(route, &stored.value).into_owned()
}
