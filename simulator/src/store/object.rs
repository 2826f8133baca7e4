//! One stored version of an object: the JSON value, its resourceVersion and its serialised form.
//!
//! Versions never change once stored: writers make a new one. The bytes are made at most once and shared by every
//! response, list and watch that carries this version.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use serde_json::{Map, Value};

/// An immutable version of an object.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) value: Arc<Value>,
    pub(crate) rv: u64,
    json: OnceLock<Bytes>,
}

impl Stored {
    pub(crate) fn new(value: Value, rv: u64) -> Self {
        Self { value: Arc::new(value), rv, json: OnceLock::new() }
    }

    /// The object as JSON text.
    pub(crate) fn json(&self) -> &Bytes {
        self.json.get_or_init(|| to_bytes(&self.value))
    }

    pub(crate) fn name(&self) -> &str {
        meta_str(&self.value, "name")
    }

    pub(crate) fn namespace(&self) -> &str {
        meta_str(&self.value, "namespace")
    }

    pub(crate) fn uid(&self) -> &str {
        meta_str(&self.value, "uid")
    }
}

/// Serialises a value; a `Value` has string keys only and therefore always serialises.
pub(crate) fn to_bytes(value: &Value) -> Bytes {
    serde_json::to_vec(value).map(Bytes::from).unwrap_or_default()
}

/// `metadata.<field>` as a string, empty when absent.
pub(crate) fn meta_str<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get("metadata").and_then(|m| m.get(field)).and_then(Value::as_str).unwrap_or("")
}

/// The metadata of an object, made when it is missing or not a map.
pub(crate) fn metadata(value: &mut Value) -> &mut Map<String, Value> {
    object(value, "metadata")
}

/// The map under `field`, made when it is missing or something else. `value` itself becomes a map if it was none.
pub(crate) fn object<'a>(value: &'a mut Value, field: &str) -> &'a mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    let Value::Object(map) = value else { unreachable!("made a map above") };
    let child = map.entry(field).or_insert_with(|| Value::Object(Map::new()));
    if !child.is_object() {
        *child = Value::Object(Map::new());
    }
    let Value::Object(child) = child else { unreachable!("made a map above") };
    child
}

/// Whether `metadata.finalizers` holds anything.
pub(crate) fn has_finalizers(value: &Value) -> bool {
    value.pointer("/metadata/finalizers").and_then(Value::as_array).is_some_and(|f| !f.is_empty())
}

/// Whether the object is on its way out.
pub(crate) fn is_deleting(value: &Value) -> bool {
    !meta_str(value, "deletionTimestamp").is_empty()
}

/// The key of an object within its resource, in the order etcd would list it: `namespace/name`, `/name` when
/// cluster-scoped.
pub(crate) fn key(namespace: &str, name: &str) -> String {
    let mut key = String::with_capacity(namespace.len() + name.len() + 1);
    key.push_str(namespace);
    key.push('/');
    key.push_str(name);
    key
}

/// Splits a key into namespace and name.
pub(crate) fn split_key(key: &str) -> (&str, &str) {
    key.split_once('/').unwrap_or(("", key))
}
