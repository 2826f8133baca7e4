//! The object store: every object of every resource, one resourceVersion counter, and the logs watches read.
//!
//! This is the only place where objects are put or removed. It knows nothing of HTTP, validation or time; handlers
//! call it with finished objects while they hold the server's lock, so each request is one atomic step.

pub(crate) mod log;
pub(crate) mod object;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::task::Waker;

use rustc_hash::FxHashMap;
use serde_json::Value;

use crate::resource::{Form, ResourceType, Route, route_key};
use log::{Change, Log, LogEvent};
use object::Stored;

/// The objects of one resource.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) ty: Arc<ResourceType>,
    pub(crate) objects: BTreeMap<Arc<str>, Arc<Stored>>,
    pub(crate) log: Log,
    /// False once its CustomResourceDefinition is gone: watches end, nothing routes here any more.
    pub(crate) served: bool,
    /// Watches that wait for the next event, by watch id, so that they wake in a fixed order.
    waiting: BTreeMap<u64, Waker>,
}

/// Where an object is: table and key.
pub(crate) type Place = (usize, Arc<str>);

/// All state of the server that a restart of the process would lose.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) rv: u64,
    pub(crate) tables: Vec<Table>,
    routes: BTreeMap<String, Route>,
    /// Objects that name an owner, by the owner's uid.
    dependents: FxHashMap<Arc<str>, BTreeSet<Place>>,
    /// Every live uid and where it is.
    uids: FxHashMap<Arc<str>, Place>,
    window: usize,
    random: u64,
}

impl Store {
    pub(crate) fn new(seed: u64, window: usize) -> Self {
        let mut store = Self {
            rv: 1,
            tables: Vec::new(),
            routes: BTreeMap::new(),
            dependents: FxHashMap::default(),
            uids: FxHashMap::default(),
            window,
            random: seed,
        };
        for ty in crate::builtin::types() {
            store.register(ty);
        }
        let events = crate::builtin::new_events();
        let route =
            Route { table: crate::builtin::EVENTS, ty: events, version: 0, form: Form::NewEvents };
        store.routes.insert(route_key("events.k8s.io", "v1", "events"), route);
        store
    }

    /// Serves a resource. A resource of the same group and plural keeps its objects and gets the new description.
    pub(crate) fn register(&mut self, ty: Arc<ResourceType>) {
        let existing = self
            .tables
            .iter()
            .position(|t| t.served && t.ty.group == ty.group && t.ty.plural == ty.plural);
        let table = if let Some(table) = existing {
            self.routes.retain(|_, route| route.table != table);
            self.tables[table].ty = Arc::clone(&ty);
            table
        } else {
            self.tables.push(Table {
                ty: Arc::clone(&ty),
                objects: BTreeMap::new(),
                log: Log::starting_at(self.rv, self.window),
                served: true,
                waiting: BTreeMap::new(),
            });
            self.tables.len() - 1
        };
        for (version, v) in ty.versions.iter().enumerate() {
            let form = if version == 0 { Form::Native } else { Form::OtherVersion };
            let route = Route { table, ty: Arc::clone(&ty), version, form };
            self.routes.insert(route_key(&ty.group, &v.name, &ty.plural), route);
        }
    }

    /// Stops serving a custom resource; its objects must be gone already.
    pub(crate) fn unregister(&mut self, group: &str, plural: &str) {
        let Some(table) = self
            .tables
            .iter()
            .position(|t| t.served && t.ty.custom && t.ty.group == group && t.ty.plural == plural)
        else {
            return;
        };
        self.routes.retain(|_, route| route.table != table);
        self.tables[table].served = false;
        self.wake(table);
    }

    pub(crate) fn route(&self, group: &str, version: &str, plural: &str) -> Option<&Route> {
        self.routes.get(&route_key(group, version, plural))
    }

    /// All routes in a fixed order.
    pub(crate) fn routes(&self) -> impl Iterator<Item = &Route> {
        self.routes.values()
    }

    /// The route of a kind, as manifests name it.
    pub(crate) fn route_of_kind(&self, api_version: &str, kind: &str) -> Option<&Route> {
        self.routes.values().find(|r| r.ty.kind == kind && r.api_version() == api_version)
    }

    /// The route of a resource by its plural, singular, short name or `plural.group`, core first.
    pub(crate) fn route_of_name(&self, name: &str) -> Option<&Route> {
        self.routes.values().find(|r| {
            let ty = &r.ty;
            ty.plural == name
                || ty.singular == name
                || ty.short_names.iter().any(|s| s == name)
                || name.strip_prefix(ty.plural.as_str()).and_then(|g| g.strip_prefix('.'))
                    == Some(ty.group.as_str())
        })
    }

    pub(crate) fn get(&self, table: usize, key: &str) -> Option<&Arc<Stored>> {
        self.tables[table].objects.get(key)
    }

    /// Objects whose key starts with `prefix` (`namespace/`), in key order; all for an empty prefix.
    pub(crate) fn range<'a>(
        &'a self,
        table: usize,
        prefix: &'a str,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a Arc<Stored>)> {
        self.tables[table]
            .objects
            .range::<str, _>((std::ops::Bound::Included(prefix), std::ops::Bound::Unbounded))
            .take_while(move |(key, _)| key.starts_with(prefix))
    }

    /// Stores a new version under `key`, stamps it with the next resourceVersion and tells the watches.
    pub(crate) fn put(&mut self, table: usize, key: &str, mut value: Value) -> Arc<Stored> {
        self.rv += 1;
        let rv = self.rv;
        object::metadata(&mut value).insert("resourceVersion".to_owned(), rv.to_string().into());
        let stored = Arc::new(Stored::new(value, rv));
        let previous = self.tables[table].objects.get(key).cloned();
        let key: Arc<str> = match self.tables[table].objects.get_key_value(key) {
            Some((key, _)) => Arc::clone(key),
            None => Arc::from(key),
        };
        self.index_owners(table, &key, previous.as_deref(), Some(&stored));
        let t = &mut self.tables[table];
        t.objects.insert(Arc::clone(&key), Arc::clone(&stored));
        let change = if previous.is_some() { Change::Modified } else { Change::Added };
        t.log.push(LogEvent { rv, change, key, object: Arc::clone(&stored), previous });
        self.wake(table);
        stored
    }

    /// Removes an object. The returned version carries the resourceVersion of the removal, as the DELETED event does.
    pub(crate) fn remove(&mut self, table: usize, key: &str) -> Option<Arc<Stored>> {
        let last = Value::clone(&self.get(table, key)?.value);
        self.remove_as(table, key, last)
    }

    /// Removes an object whose last content is `value` (an update that took the last finalizer away).
    pub(crate) fn remove_as(
        &mut self,
        table: usize,
        key: &str,
        mut value: Value,
    ) -> Option<Arc<Stored>> {
        let (key, previous) = self.tables[table].objects.remove_entry(key)?;
        self.rv += 1;
        let rv = self.rv;
        object::metadata(&mut value).insert("resourceVersion".to_owned(), rv.to_string().into());
        let last = Arc::new(Stored::new(value, rv));
        self.index_owners(table, &key, Some(&previous), None);
        let event = LogEvent {
            rv,
            change: Change::Deleted,
            key,
            object: Arc::clone(&last),
            previous: Some(previous),
        };
        self.tables[table].log.push(event);
        self.wake(table);
        Some(last)
    }

    fn index_owners(
        &mut self,
        table: usize,
        key: &Arc<str>,
        old: Option<&Stored>,
        new: Option<&Stored>,
    ) {
        let old_uid = old.map_or("", Stored::uid);
        let new_uid = new.map_or("", Stored::uid);
        if old_uid != new_uid {
            self.uids.remove(old_uid);
            if !new_uid.is_empty() {
                self.uids.insert(Arc::from(new_uid), (table, Arc::clone(key)));
            }
        }
        let old_owners = old.map(|s| owner_uids(&s.value)).unwrap_or_default();
        let new_owners = new.map(|s| owner_uids(&s.value)).unwrap_or_default();
        if old_owners == new_owners {
            return;
        }
        for uid in &old_owners {
            if let Some(places) = self.dependents.get_mut(*uid) {
                places.remove(&(table, Arc::clone(key)));
                if places.is_empty() {
                    self.dependents.remove(*uid);
                }
            }
        }
        for uid in new_owners {
            let places = self.dependents.entry(Arc::from(uid)).or_default();
            places.insert((table, Arc::clone(key)));
        }
    }

    /// Objects that name `uid` as an owner, in a fixed order.
    pub(crate) fn dependents(&self, uid: &str) -> Vec<Place> {
        self.dependents.get(uid).map(|p| p.iter().cloned().collect()).unwrap_or_default()
    }

    /// Whether an object with this uid exists.
    pub(crate) fn has_uid(&self, uid: &str) -> bool {
        self.uids.contains_key(uid)
    }

    /// Where the object with this uid is.
    pub(crate) fn place_of(&self, uid: &str) -> Option<Place> {
        self.uids.get(uid).cloned()
    }

    /// Wakes a watch when `table` changes next.
    pub(crate) fn wait(&mut self, table: usize, watch: u64, waker: Waker) {
        self.tables[table].waiting.insert(watch, waker);
    }

    /// Forgets a watch.
    pub(crate) fn forget(&mut self, table: usize, watch: u64) {
        self.tables[table].waiting.remove(&watch);
    }

    fn wake(&mut self, table: usize) {
        for (_, waker) in std::mem::take(&mut self.tables[table].waiting) {
            waker.wake();
        }
    }

    /// Wakes every watch, to let it notice something other than an event (its client died, the server stopped).
    pub(crate) fn wake_all(&mut self) {
        for table in 0..self.tables.len() {
            self.wake(table);
        }
    }

    /// Drops the events of every log, so that all older resourceVersions answer 410.
    pub(crate) fn compact(&mut self) {
        let rv = self.rv;
        for table in &mut self.tables {
            table.log.compact(rv);
        }
    }

    /// Keeps `window` events per resource from now on.
    pub(crate) fn set_window(&mut self, window: usize) {
        self.window = window;
        for table in &mut self.tables {
            table.log.set_window(window);
        }
    }

    fn random(&mut self) -> u64 {
        // splitmix64: small, seedable and good enough for names and uids.
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A fresh uid in the shape of a version 4 UUID, from the seed.
    pub(crate) fn new_uid(&mut self) -> String {
        let (a, b) = (self.random(), self.random());
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            a >> 32,
            (a >> 16) & 0xffff,
            a & 0xfff,
            0x8000 | ((b >> 48) & 0x3fff),
            b & 0xffff_ffff_ffff,
        )
    }

    /// Five characters for `generateName`, from the alphabet that Kubernetes uses.
    pub(crate) fn name_suffix(&mut self) -> String {
        const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
        let mut bits = self.random();
        (0..5)
            .map(|_| {
                let letter = ALPHABET[(bits % 27) as usize];
                bits /= 27;
                char::from(letter)
            })
            .collect()
    }
}

/// The uids in `metadata.ownerReferences`.
pub(crate) fn owner_uids(value: &Value) -> Vec<&str> {
    value
        .pointer("/metadata/ownerReferences")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|owner| owner["uid"].as_str())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn equal_seeds_give_equal_uids_and_suffixes() {
        let (mut a, mut b) = (Store::new(7, 8), Store::new(7, 8));
        let first = a.new_uid();
        assert_eq!(first, b.new_uid());
        assert_eq!(a.name_suffix(), b.name_suffix());
        assert_ne!(first, a.new_uid());
        assert_eq!(first.len(), 36);
    }

    #[test]
    fn one_counter_stamps_all_tables_and_removals_too() {
        let mut store = Store::new(0, 8);
        let a = store.put(0, "d/a", json!({"metadata": {"name": "a", "uid": "u"}}));
        let b = store.put(1, "/b", json!({"metadata": {"name": "b"}}));
        assert_eq!(b.rv, a.rv + 1);
        assert!(store.has_uid("u"));
        let gone = store.remove(0, "d/a").expect("was there");
        assert_eq!(gone.rv, b.rv + 1);
        assert!(!store.has_uid("u"));
        assert!(store.remove(0, "d/a").is_none());
    }

    #[test]
    fn names_find_resources_like_kubectl_does() {
        let store = Store::new(0, 8);
        let plural = |name: &str| store.route_of_name(name).map(|r| r.ty.plural.clone());
        assert_eq!(plural("po").as_deref(), Some("pods"));
        assert_eq!(plural("deployments.apps").as_deref(), Some("deployments"));
        assert_eq!(store.route_of_name("events").map(|r| r.ty.group.as_str()), Some(""));
        assert!(plural("nothing").is_none());
    }
}
