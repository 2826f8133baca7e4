//! PATCH in its four forms. A patch is applied to the present version and then goes through the rules of an update.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use super::write::{self, Part};
use crate::apply::Applier;
use crate::context::Context;
use crate::form;
use crate::request::Query;
use crate::resource::Route;
use crate::status::Refusal;
use crate::store::Store;
use crate::store::object::{Stored, key, meta_str, metadata};

/// A patch body, parsed.
#[derive(Debug)]
pub(crate) enum Patch {
    /// `application/json-patch+json`
    Json(json_patch::Patch),
    /// `application/merge-patch+json`
    Merge(Value),
    /// `application/strategic-merge-patch+json`
    Strategic(Value),
    /// `application/apply-patch+yaml`
    Apply(Value),
}

impl Patch {
    pub(crate) fn parse(content_type: &str, body: &Bytes) -> Result<Self, Refusal> {
        let kind = content_type.split(';').next().unwrap_or("").trim();
        match kind {
            "application/json-patch+json" => serde_json::from_slice(body)
                .map(Self::Json)
                .map_err(|e| Refusal::bad_request(format!("error decoding patch: {e}"))),
            "application/merge-patch+json" => super::render::parse_json(body).map(Self::Merge),
            "application/strategic-merge-patch+json" => {
                super::render::parse_json(body).map(Self::Strategic)
            }
            "application/apply-patch+yaml" => {
                let value = serde_json::from_slice(body).or_else(|_| {
                    serde_saphyr::from_slice(body)
                        .map_err(|e| Refusal::bad_request(format!("error decoding YAML: {e}")))
                })?;
                Ok(Self::Apply(value))
            }
            other => Err(Refusal::new(
                415,
                "UnsupportedMediaType",
                format!(
                    "the body of the request was in an unknown format - accepted media types include: \
                     application/json-patch+json, application/merge-patch+json, \
                     application/strategic-merge-patch+json, application/apply-patch+yaml (got {other:?})"
                ),
            )),
        }
    }

    /// The body as a value, for the history.
    pub(crate) fn body(&self) -> Value {
        match self {
            Self::Json(patch) => serde_json::to_value(patch).unwrap_or(Value::Null),
            Self::Merge(v) | Self::Strategic(v) | Self::Apply(v) => v.clone(),
        }
    }

    /// The value after this patch; not for server-side apply.
    pub(crate) fn patched(&self, custom: bool, old: &Value) -> Result<Value, Refusal> {
        let mut new = old.clone();
        match self {
            Self::Json(patch) => json_patch::patch(&mut new, patch).map_err(|e| {
                let mut refusal = Refusal::new(
                    422,
                    "Invalid",
                    format!("the server rejected our request due to an error in our request: {e}"),
                );
                refusal.details = serde_json::json!({"causes": [{"message": e.to_string()}]});
                refusal
            })?,
            Self::Merge(patch) => {
                if !patch.is_object() {
                    return Err(Refusal::bad_request("merge patch must be an object"));
                }
                json_patch::merge(&mut new, patch);
            }
            Self::Strategic(_) if custom => {
                return Err(Refusal::new(
                    415,
                    "UnsupportedMediaType",
                    "the body of the request was in an unknown format - accepted media types include: \
                     application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
                ));
            }
            Self::Strategic(patch) => crate::strategic::merge(&mut new, patch)?,
            Self::Apply(_) => {}
        }
        Ok(new)
    }
}

/// Patches an object, or creates it when it is applied and absent. True if created.
pub(crate) fn patch(
    store: &mut Store,
    cx: &mut Context,
    route: &Route,
    (namespace, name): (&str, &str),
    query: &Query,
    patch: &Patch,
    part: Part,
) -> Result<(Arc<Stored>, bool), Refusal> {
    if let Patch::Apply(config) = patch {
        return apply(store, cx, route, (namespace, name), query, config, part);
    }
    let old = write::read(store, route, namespace, name)?;
    let shown = form::shown(route, &old.value);
    let new = patch.patched(route.ty.custom, &shown)?;
    let unchanged = matches!(shown, Cow::Borrowed(_)) && new == *old.value;
    if unchanged {
        return Ok((old, false));
    }
    let new = write::accept(route, new)?;
    write::replace(store, cx, route, &key(namespace, name), &old, new, part)
        .map(|stored| (stored, false))
}

fn apply(
    store: &mut Store,
    cx: &mut Context,
    route: &Route,
    (namespace, name): (&str, &str),
    query: &Query,
    config: &Value,
    part: Part,
) -> Result<(Arc<Stored>, bool), Refusal> {
    if query.field_manager.is_empty() {
        let why = "Required value: is required for apply patch";
        return Err(Refusal::invalid("", "PatchOptions", "", "fieldManager", why));
    }
    if !config.is_object() {
        return Err(Refusal::bad_request("an apply patch must be an object"));
    }
    for (field, wanted) in [("apiVersion", route.api_version()), ("kind", &route.ty.kind)] {
        if config[field] != wanted {
            let message = format!("{field} of an apply patch must be set to {wanted}");
            return Err(Refusal::bad_request(message));
        }
    }
    let given = meta_str(config, "name");
    if !given.is_empty() && given != name {
        return Err(Refusal::bad_request(format!(
            "the name of the object ({given}) does not match the name on the URL ({name})"
        )));
    }
    let now = cx.now.clone();
    let applier = Applier {
        manager: &query.field_manager,
        force: query.force,
        api_version: route.api_version(),
        subresource: if part == Part::Status { "status" } else { "" },
        now: &now,
        map_lists: route.ty.custom.then_some(&route.version().map_lists),
    };
    match write::read(store, route, namespace, name) {
        Ok(old) => {
            let shown = form::shown(route, &old.value);
            let new = write::accept(route, applier.apply(&shown, config)?)?;
            write::replace(store, cx, route, &key(namespace, name), &old, new, part)
                .map(|stored| (stored, false))
        }
        Err(refusal) if part == Part::Main => {
            if !meta_str(config, "resourceVersion").is_empty()
                || !meta_str(config, "uid").is_empty()
            {
                return Err(refusal);
            }
            let empty = Value::Object(serde_json::Map::new());
            let mut new = applier.apply(&empty, config)?;
            metadata(&mut new).insert("name".to_owned(), name.into());
            write::create(store, cx, route, namespace, new).map(|stored| (stored, true))
        }
        Err(refusal) => Err(refusal),
    }
}
