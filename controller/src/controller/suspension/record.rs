//! What is written into annotations: the scheduler's intent, our record of a suspension, and the ledger of a life.
//!
//! A text that is no valid intent or record counts as absent: whoever wrote it gets a warning, nobody is stopped by it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

/// How a gang is told that it has to go (`QueuePolicy`, `checkpoint.mode`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Mode {
    /// Not at all.
    #[default]
    None,
    /// It gets a request and all the time until the deadline.
    Signal,
    /// It gets a request and is stopped as soon as every pod has acknowledged, at the deadline at the latest.
    Ack,
}

/// `tephra.sh/suspend`: the scheduler wants the gang's room.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Intent {
    pub(super) id: String,
    /// `namespace/name` of the gang that is to start.
    #[serde(default)]
    pub(super) by: String,
    #[serde(default)]
    pub(super) reason: String,
    pub(super) deadline: Timestamp,
    #[serde(default)]
    pub(super) mode: Mode,
}

/// An object that owns the gang's pods.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OwnerRef {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) uid: String,
}

/// Pods of one shape.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Member {
    pub(super) count: u32,
    /// Names under which we create the pods again; empty when a controller does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) names: Vec<String>,
    pub(super) pod: Value,
}

/// `tephra.sh/suspended`: we suspended the gang.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Record {
    pub(super) id: String,
    #[serde(default)]
    pub(super) by: String,
    #[serde(default)]
    pub(super) reason: String,
    /// When the stopping began.
    pub(super) at: Timestamp,
    /// The intent's deadline, or the acknowledgement that came before it.
    pub(super) since: Timestamp,
    /// Until when disruption budgets and a refusing server are respected.
    pub(super) deadline: Timestamp,
    /// Suspensions of the owner's life, this one included.
    #[serde(default)]
    pub(super) suspensions: u64,
    /// Seconds that the owner was suspended before this time.
    #[serde(default)]
    pub(super) suspended_seconds: i64,
    /// Who has the switch; none: the pods were evicted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) owner: Option<OwnerRef>,
    /// The owner could not be suspended: its pods are evicted instead.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) fell_back: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) members: Vec<Member>,
}

impl Record {
    /// The ledger after this suspension ends at `now`.
    pub(super) fn ledger(&self, now: Timestamp) -> Ledger {
        let seconds = now.duration_since(self.at).as_secs().max(0);
        Ledger {
            uid: self.owner.as_ref().map(|owner| owner.uid.clone()).unwrap_or_default(),
            suspensions: self.suspensions,
            suspended_seconds: self.suspended_seconds.saturating_add(seconds),
        }
    }
}

/// `tephra.sh/suspensions`: what past suspensions add up to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Ledger {
    /// Whose life it is: another object of the same name starts anew. Empty for pods without an owner.
    #[serde(default)]
    pub(super) uid: String,
    #[serde(default)]
    pub(super) suspensions: u64,
    #[serde(default)]
    pub(super) suspended_seconds: i64,
}

/// Reads an annotation; nothing that is not valid.
pub(super) fn parse<T: DeserializeOwned>(text: Option<&String>) -> Option<T> {
    serde_json::from_str(text?).ok()
}

/// The text of an annotation.
pub(super) fn text<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// What is kept of a pod: enough to place one like it, and to create it again.
///
/// Left out is what belongs to the pod that was: its node, what admission mounted for its service account, our own requests
/// and, for a pod that a controller makes, the labels and annotations that number it (they would make every pod a shape).
pub(super) fn shape(pod: &Value, recreated: bool) -> Value {
    const NUMBERS: [&str; 5] = [
        "batch.kubernetes.io/job-completion-index",
        "apps.kubernetes.io/pod-index",
        "statefulset.kubernetes.io/pod-name",
        "training.kubeflow.org/replica-index",
        "ray.io/replica-index",
    ];
    let texts = |field: &str| -> Map<String, Value> {
        let all = pod["metadata"][field].as_object().cloned().unwrap_or_default();
        let numbered = |key: &str| !recreated && NUMBERS.contains(&key);
        let ours = |key: &str| {
            key.starts_with("tephra.sh/checkpoint-") || key.ends_with("last-checkpoint")
        };
        all.into_iter().filter(|(key, _)| !numbered(key) && !ours(key)).collect()
    };
    let mut spec = pod["spec"].clone();
    let token = |name: &Value| name.as_str().is_some_and(|it| it.starts_with("kube-api-access-"));
    if let Some(spec) = spec.as_object_mut() {
        spec.remove("nodeName");
        if !recreated {
            spec.remove("hostname");
        }
        if let Some(volumes) = spec.get_mut("volumes").and_then(Value::as_array_mut) {
            volumes.retain(|volume| !token(&volume["name"]));
        }
        for field in ["containers", "initContainers"] {
            for container in spec.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten()
            {
                if let Some(mounts) =
                    container.get_mut("volumeMounts").and_then(Value::as_array_mut)
                {
                    mounts.retain(|mount| !token(&mount["name"]));
                }
                let numbered = |env: &Value| env["name"] == "JOB_COMPLETION_INDEX";
                if let Some(env) = container.get_mut("env").and_then(Value::as_array_mut) {
                    env.retain(|env| recreated || !numbered(env));
                }
            }
        }
    }
    json!({"metadata": {"labels": texts("labels"), "annotations": texts("annotations")}, "spec": spec})
}

/// One entry for each distinct shape, in the order of first appearance. `pods`: shape, and the name to create it under.
pub(super) fn gather(pods: impl IntoIterator<Item = (Value, Option<String>)>) -> Vec<Member> {
    let mut members: Vec<Member> = Vec::new();
    for (pod, name) in pods {
        let same =
            |member: &&mut Member| member.pod == pod && member.names.is_empty() == name.is_none();
        match members.iter_mut().find(same) {
            Some(member) => {
                member.count += 1;
                member.names.extend(name);
            }
            None => members.push(Member { count: 1, names: name.into_iter().collect(), pod }),
        }
    }
    members
}
