//! Annotations and switches, read with just the fields that the rules need.

use serde_json::Value;

use crate::checker::objects::Pod;
use crate::clock::parse_timestamp;

pub(super) const SUSPEND: &str = "tephra.sh/suspend";
pub(super) const SUSPENDED: &str = "tephra.sh/suspended";
pub(super) const RESUME: &str = "tephra.sh/resume";
pub(super) const HOLD: &str = "tephra.sh/hold";
pub(super) const REQUEST: &str = "tephra.sh/checkpoint-request";
pub(super) const ACK: &str = "tephra.sh/checkpoint-ack";

/// The text of an annotation.
pub(super) fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object["metadata"]["annotations"].get(key)?.as_str()
}

/// A person holds the object down.
pub(super) fn is_held(object: &Value) -> bool {
    annotation(object, HOLD).is_some()
}

/// Where an owner of this resource has its switch.
pub(super) fn switch_of(resource: &str) -> Option<&'static str> {
    match resource {
        "jobs" => Some("/spec/suspend"),
        "pytorchjobs" => Some("/spec/runPolicy/suspend"),
        _ => None,
    }
}

/// The scheduler's wish.
pub(super) struct Intent {
    pub(super) id: String,
    /// Namespace and name of the gang that is to start.
    pub(super) by: (String, String),
    pub(super) deadline_ms: i64,
    pub(super) mode: String,
}

fn json(object: &Value, key: &str) -> Option<Value> {
    serde_json::from_str(annotation(object, key)?).ok()
}

fn owned(value: &Value) -> String {
    value.as_str().unwrap_or("").to_owned()
}

impl Intent {
    pub(super) fn of(group: &Value) -> Option<Self> {
        let intent = json(group, SUSPEND)?;
        let (namespace, name) =
            intent["by"].as_str().unwrap_or("").split_once('/').unwrap_or_default();
        Some(Self {
            id: owned(&intent["id"]),
            by: (namespace.to_owned(), name.to_owned()),
            deadline_ms: parse_timestamp(intent["deadline"].as_str()?)?,
            mode: intent["mode"].as_str().unwrap_or("None").to_owned(),
        })
    }
}

/// What the controller writes before it stops a gang.
#[derive(Clone)]
pub(super) struct Record {
    pub(super) id: String,
    /// Name of the gang's PodGroup.
    pub(super) group: String,
    /// uid of the owner; empty: none has a switch.
    pub(super) owner: String,
    /// Pods that come back.
    pub(super) members: Vec<Pod>,
    /// Names of those that the controller creates.
    pub(super) names: Vec<String>,
}

impl Record {
    pub(super) fn of(object: &Value) -> Option<Self> {
        let record = json(object, SUSPENDED)?;
        let all = || record["members"].as_array().into_iter().flatten();
        let members = all().flat_map(|member| {
            let count = usize::try_from(member["count"].as_u64().unwrap_or(0)).unwrap_or(0);
            std::iter::repeat_n(Pod::read(&member["pod"]), count)
        });
        let names = all().filter_map(|member| member["names"].as_array()).flatten().map(owned);
        Some(Self {
            id: owned(&record["id"]),
            group: owned(&record["group"]),
            owner: owned(&record["owner"]["uid"]),
            members: members.collect(),
            names: names.collect(),
        })
    }
}
