//! Between stored objects and the version in which a client wants them.
//!
//! Custom resources convert by `apiVersion` alone (strategy None). Events live in their core/v1 form and are translated
//! for clients of `events.k8s.io/v1`.

use std::borrow::Cow;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::resource::{Form, Route};
use crate::store::object::{Stored, to_bytes};

/// Core name, `events.k8s.io` name.
const EVENT_FIELDS: &[(&str, &str)] = &[
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];

/// The stored object as this route shows it.
pub(crate) fn shown<'a>(route: &Route, stored: &'a Value) -> Cow<'a, Value> {
    match route.form {
        Form::Native => Cow::Borrowed(stored),
        Form::OtherVersion => {
            let mut value = stored.clone();
            value["apiVersion"] = route.api_version().into();
            Cow::Owned(value)
        }
        Form::NewEvents => {
            let mut value = stored.clone();
            value["apiVersion"] = route.api_version().into();
            rename(&mut value, |(core, new)| (core, new));
            Cow::Owned(value)
        }
    }
}

/// The JSON text of a stored object as this route shows it.
pub(crate) fn shown_json(route: &Route, stored: &Stored) -> Bytes {
    match route.form {
        Form::Native => stored.json().clone(),
        _ => to_bytes(&shown(route, &stored.value)),
    }
}

/// An object from a client of this route in the form it is stored in.
pub(crate) fn stored(route: &Route, mut value: Value) -> Value {
    match route.form {
        Form::Native => {}
        Form::OtherVersion => {
            value["apiVersion"] = route.ty.versions[0].api_version.as_str().into()
        }
        Form::NewEvents => {
            value["apiVersion"] = json!("v1");
            rename(&mut value, |(core, new)| (new, core));
        }
    }
    value
}

fn rename(
    value: &mut Value,
    direction: fn((&'static str, &'static str)) -> (&'static str, &'static str),
) {
    let Some(map) = value.as_object_mut() else { return };
    for names in EVENT_FIELDS {
        let (from, to) = direction(*names);
        if let Some(field) = map.remove(from) {
            map.insert(to.to_owned(), field);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;

    #[test]
    fn events_translate_both_ways_without_loss() {
        let store = Store::new(0, 1);
        let route = store.route("events.k8s.io", "v1", "events").expect("served");
        let new = json!({
            "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"},
            "regarding": {"kind": "Pod", "name": "p"}, "note": "text", "reason": "R", "type": "Normal",
            "reportingController": "c", "reportingInstance": "i", "action": "A",
            "eventTime": "2026-01-01T00:00:00.000000Z",
        });
        let core = stored(route, new.clone());
        assert_eq!(core["involvedObject"]["name"], "p");
        assert_eq!(core["message"], "text");
        assert_eq!(core["apiVersion"], "v1");
        assert_eq!(*shown(route, &core), new);
    }
}
