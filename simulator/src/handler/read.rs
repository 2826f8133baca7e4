//! GET: single objects and lists, the latter with paging over a fixed state and with reads of the past.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;

use super::render::{self, ListMeta, Shape};
use crate::request::{Query, ResourcePath, revision};
use crate::resource::Route;
use crate::selector::Selector;
use crate::status::Refusal;
use crate::store::Store;
use crate::store::object::Stored;

/// Where a list starts and what it sees.
struct Page {
    /// State to list; the present when it equals the store's.
    rv: u64,
    /// Key after which the page starts.
    after: Option<String>,
}

/// Answers a list. `stale_by` events are hidden from a read that allows it (fault: an API server that lags).
pub(crate) fn list(
    store: &Store,
    route: &Route,
    path: &ResourcePath,
    query: &Query,
    shape: Shape,
    now_ms: i64,
    stale_by: u64,
) -> Result<Bytes, Refusal> {
    let mut fields = query.field_selector.clone();
    if !path.name.is_empty() {
        fields = format!("metadata.name={}", path.name);
    }
    let selector = Selector::parse(&route.ty.plural, &query.label_selector, &fields)?;
    let page = page(store, route, query, stale_by)?;
    let prefix =
        if path.namespace.is_empty() { String::new() } else { format!("{}/", path.namespace) };
    let limit = query.limit.map_or(usize::MAX, |l| usize::try_from(l).unwrap_or(usize::MAX));
    let state = State::at(store, route.table, page.rv)?;
    let mut items: Vec<Arc<Stored>> = Vec::new();
    let mut last_key = String::new();
    let mut remaining = 0_usize;
    for (key, stored) in state.iter(&prefix, page.after.as_deref()) {
        if !selector.is_empty() && !selector.matches(&stored.value) {
            continue;
        }
        if items.len() < limit {
            items.push(Arc::clone(stored));
            if items.len() == limit {
                last_key = key.to_string();
            }
        } else {
            remaining += 1;
            if !selector.is_empty() {
                break; // kube-apiserver does not count what a selector has still to see
            }
        }
    }
    let mut meta = ListMeta { rv: page.rv, ..ListMeta::default() };
    if remaining > 0 {
        meta.continue_token = format!("{}.{last_key}", page.rv);
        meta.remaining = selector.is_empty().then_some(remaining);
    }
    Ok(render::list(route, shape, items.iter().map(AsRef::as_ref), &meta, now_ms))
}

fn page(store: &Store, route: &Route, query: &Query, stale_by: u64) -> Result<Page, Refusal> {
    if !query.continue_token.is_empty() {
        let Some((rv, after)) = query.continue_token.split_once('.') else {
            return Err(Refusal::bad_request("continue key is not valid"));
        };
        let rv = revision(rv)?;
        if store.tables[route.table].log.check(rv).is_err() || rv > store.rv {
            return Err(Refusal::expired(
                "The provided continue parameter is too old to display a consistent list result. You can start a new \
                 list without the continue parameter.",
            ));
        }
        return Ok(Page { rv, after: Some(after.to_owned()) });
    }
    let asked = query.revision()?;
    if let Some(asked) = asked
        && asked > store.rv
    {
        return Err(Refusal::too_large_resource_version(asked, store.rv));
    }
    let at = match (query.resource_version_match.as_str(), asked) {
        ("Exact", Some(asked)) if asked > 0 => asked,
        ("Exact", _) => {
            return Err(Refusal::bad_request("resourceVersionMatch Exact needs a resourceVersion"));
        }
        // An unset resourceVersion is a quorum read, which never lags; "at least" may.
        (_, None) => store.rv,
        (_, Some(asked)) => store.rv.saturating_sub(stale_by).max(asked),
    };
    // A lagging server cannot lag behind its own window.
    let log = &store.tables[route.table].log;
    match log.check(at) {
        Ok(()) => Ok(Page { rv: at, after: None }),
        Err(_) if query.resource_version_match == "Exact" => Err(Refusal::expired(format!(
            "The resourceVersion for the provided list is too old: {at}"
        ))),
        Err(_) => Ok(Page { rv: store.rv, after: None }),
    }
}

/// The objects of a table as of some resourceVersion.
struct State<'a> {
    present: &'a BTreeMap<Arc<str>, Arc<Stored>>,
    /// Versions of keys changed since; `None` where there was no object.
    past: BTreeMap<Arc<str>, Option<Arc<Stored>>>,
}

impl<'a> State<'a> {
    fn at(store: &'a Store, table: usize, rv: u64) -> Result<Self, Refusal> {
        let t = &store.tables[table];
        let past = if rv >= store.rv {
            BTreeMap::new()
        } else {
            t.log.overlay(rv).map_err(|c| {
                Refusal::expired(format!("too old resource version: {rv} ({})", c.oldest))
            })?
        };
        Ok(Self { present: &t.objects, past })
    }

    /// Objects in key order whose key starts with `prefix` and lies after `after`.
    fn iter(&self, prefix: &str, after: Option<&str>) -> Vec<(&Arc<str>, &Arc<Stored>)> {
        let start = match after {
            Some(after) if after >= prefix => Bound::Excluded(after),
            _ => Bound::Included(prefix),
        };
        let range = (start, Bound::Unbounded);
        let present = self
            .present
            .range::<str, _>(range)
            .take_while(|(key, _)| key.starts_with(prefix))
            .filter(|(key, _)| !self.past.contains_key(*key));
        if self.past.is_empty() {
            return present.collect();
        }
        let past = self
            .past
            .range::<str, _>(range)
            .take_while(|(key, _)| key.starts_with(prefix))
            .filter_map(|(key, stored)| stored.as_ref().map(|s| (key, s)));
        let mut all: Vec<_> = present.chain(past).collect();
        all.sort_by(|a, b| a.0.cmp(b.0));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn names(bytes: &Bytes) -> Vec<String> {
        let list: Value = serde_json::from_slice(bytes).expect("json");
        let items = list["items"].as_array().expect("items");
        items.iter().map(|i| i["metadata"]["name"].as_str().expect("name").to_owned()).collect()
    }

    fn ask(store: &Store, query: &Query) -> Result<Bytes, Refusal> {
        let route = store.route("", "v1", "configmaps").expect("served");
        let path = ResourcePath { namespace: "d".into(), ..ResourcePath::default() };
        list(store, route, &path, query, Shape::Object, 0, 0)
    }

    #[test]
    fn pages_show_the_state_of_the_first_page_until_it_is_compacted() {
        let mut store = Store::new(0, 100);
        let table = store.route("", "v1", "configmaps").expect("served").table;
        for name in ["a", "b", "c"] {
            store.put(table, &format!("d/{name}"), json!({"metadata": {"name": name}}));
        }
        let query = Query { limit: Some(2), ..Query::default() };
        let first = ask(&store, &query).expect("lists");
        assert_eq!(names(&first), ["a", "b"]);
        let first: Value = serde_json::from_slice(&first).expect("json");
        assert_eq!(first["metadata"]["remainingItemCount"], 1);
        let token = first["metadata"]["continue"].as_str().expect("more").to_owned();
        store.remove(table, "d/c");
        store.put(table, "d/bb", json!({"metadata": {"name": "bb"}}));
        let query = Query { limit: Some(2), continue_token: token, ..Query::default() };
        let second = ask(&store, &query).expect("still kept");
        assert_eq!(names(&second), ["c"]);
        let second: Value = serde_json::from_slice(&second).expect("json");
        assert_eq!(second["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
        store.compact();
        store.put(table, "d/z", json!({"metadata": {"name": "z"}}));
        assert_eq!(ask(&store, &query).expect_err("compacted").code, 410);
    }

    #[test]
    fn exact_reads_show_the_past_and_the_future_is_refused() {
        let mut store = Store::new(0, 100);
        let table = store.route("", "v1", "configmaps").expect("served").table;
        let a = store.put(table, "d/a", json!({"metadata": {"name": "a"}}));
        store.put(table, "d/b", json!({"metadata": {"name": "b"}}));
        let exact = Query {
            resource_version: Some(a.rv.to_string()),
            resource_version_match: "Exact".into(),
            ..Query::default()
        };
        assert_eq!(names(&ask(&store, &exact).expect("kept")), ["a"]);
        let future = Query { resource_version: Some("999".into()), ..Query::default() };
        assert_eq!(ask(&store, &future).expect_err("future").code, 504);
    }
}
