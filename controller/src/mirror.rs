//! What a controller remembers of one watched kind: a small view per object, kept equal to the server.
//!
//! A watch may be cut and start again with a full list; objects that vanished meanwhile are then reported as gone, as
//! if their deletion had been seen. Views hold only what a controller decides on, so a million pods do not cost a
//! million `Pod` values. Iteration follows the key order.

use std::collections::{BTreeMap, BTreeSet};

use kube::{Resource, ResourceExt, runtime::watcher::Event};

/// Namespace (empty for cluster-wide kinds) and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Key {
    /// Key of an object.
    pub(crate) fn of<K: Resource>(object: &K) -> Key {
        Key { namespace: object.namespace().unwrap_or_default(), name: object.name_any() }
    }

    /// Key of something with this name in this namespace.
    pub(crate) fn new(namespace: impl Into<String>, name: impl Into<String>) -> Key {
        Key { namespace: namespace.into(), name: name.into() }
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// How an event changed the mirror.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Change<V> {
    /// The object appeared, or its view differs from `old`.
    Set { key: Key, old: Option<V> },
    /// The object is gone, or is of no interest any more.
    Gone { key: Key, old: V },
    /// A full list has arrived: from now on the mirror is complete.
    Synced,
}

/// The views of one kind.
#[derive(Debug)]
pub(crate) struct Mirror<V> {
    views: BTreeMap<Key, V>,
    /// Keys of interest seen in the list that is arriving.
    listed: Option<BTreeSet<Key>>,
    synced: bool,
}

impl<V> Default for Mirror<V> {
    fn default() -> Self {
        Mirror { views: BTreeMap::new(), listed: None, synced: false }
    }
}

impl<V: PartialEq> Mirror<V> {
    /// Takes in a watch event. `view` says what to remember of an object; `None` = of no interest.
    pub(crate) fn apply<K: Resource>(
        &mut self,
        event: Event<K>,
        view: impl Fn(K) -> Option<V>,
    ) -> Vec<Change<V>> {
        match event {
            Event::Init => {
                self.listed = Some(BTreeSet::new());
                Vec::new()
            }
            Event::InitApply(object) => {
                let (key, view) = (Key::of(&object), view(object));
                if let (Some(listed), Some(_)) = (&mut self.listed, &view) {
                    listed.insert(key.clone());
                }
                self.set(key, view)
            }
            Event::Apply(object) => self.set(Key::of(&object), view(object)),
            Event::Delete(object) => self.set(Key::of(&object), None),
            Event::InitDone => {
                let listed = self.listed.take().unwrap_or_default();
                let vanished: Vec<Key> =
                    self.views.keys().filter(|key| !listed.contains(*key)).cloned().collect();
                let mut changes: Vec<Change<V>> =
                    vanished.into_iter().flat_map(|key| self.set(key, None)).collect();
                self.synced = true;
                changes.push(Change::Synced);
                changes
            }
        }
    }

    fn set(&mut self, key: Key, view: Option<V>) -> Vec<Change<V>> {
        let change = match view {
            Some(view) => {
                if self.views.get(&key) == Some(&view) {
                    return Vec::new();
                }
                let old = self.views.insert(key.clone(), view);
                Some(Change::Set { key, old })
            }
            None => self.views.remove(&key).map(|old| Change::Gone { key, old }),
        };
        change.into_iter().collect()
    }

    /// The view of `key`.
    pub(crate) fn get(&self, key: &Key) -> Option<&V> {
        self.views.get(key)
    }

    /// All views in key order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Key, &V)> {
        self.views.iter()
    }

    /// Whether a full list was seen: before it, absence means nothing.
    pub(crate) fn synced(&self) -> bool {
        self.synced
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::ConfigMap;

    fn object(name: &str, label: &str) -> ConfigMap {
        let mut object = ConfigMap::default();
        object.metadata.name = Some(name.into());
        object.metadata.namespace = Some("ns".into());
        object.labels_mut().insert("view".into(), label.into());
        object
    }

    fn view(object: ConfigMap) -> Option<String> {
        object.labels().get("view").filter(|v| !v.is_empty()).cloned()
    }

    fn key(name: &str) -> Key {
        Key::new("ns", name)
    }

    #[test]
    fn only_a_changed_view_is_a_change() {
        let mut mirror = Mirror::default();
        let set = mirror.apply(Event::Apply(object("a", "1")), view);
        assert_eq!(set, [Change::Set { key: key("a"), old: None }]);
        assert_eq!(mirror.apply(Event::Apply(object("a", "1")), view), []);
        let changed = mirror.apply(Event::Apply(object("a", "2")), view);
        assert_eq!(changed, [Change::Set { key: key("a"), old: Some("1".into()) }]);
        let uninteresting = mirror.apply(Event::Apply(object("a", "")), view);
        assert_eq!(uninteresting, [Change::Gone { key: key("a"), old: "2".into() }]);
    }

    #[test]
    fn an_object_missing_from_a_new_list_is_gone() {
        let mut mirror = Mirror::default();
        for name in ["a", "b"] {
            mirror.apply(Event::Apply(object(name, "1")), view);
        }
        assert!(!mirror.synced());
        mirror.apply(Event::Init, view);
        mirror.apply(Event::InitApply(object("b", "1")), view);
        let done = mirror.apply(Event::InitDone, view);
        assert_eq!(done, [Change::Gone { key: key("a"), old: "1".into() }, Change::Synced]);
        assert_eq!(mirror.iter().map(|(k, _)| k.name.as_str()).collect::<Vec<_>>(), ["b"]);
        assert!(mirror.synced());
    }
}
