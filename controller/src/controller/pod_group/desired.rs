//! The PodGroup a plain pod should have: built from the pod and what its owners pass on, compared with a stored one. Pure.

use std::collections::BTreeMap;

use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::OwnerReference};
use kube::ResourceExt;
use serde_json::{Map, Value, json};
use tephra_api::{keys, quantity::Quantity, scheduling::PodGroup};
use tracing::warn;

use super::{ownership::owners_of_group, usage};

/// Annotations of Volcano's: those of the owners that the PodGroup takes over.
const VOLCANO: &str = "volcano.sh/";

type Texts = BTreeMap<String, String>;

/// A PodGroup as it should be.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Desired {
    annotations: Texts,
    labels: Texts,
    owners: Vec<OwnerReference>,
    min_member: i32,
    min_resources: BTreeMap<String, Quantity>,
    priority_class: Option<String>,
    /// None = the API server's default.
    queue: Option<String>,
    topology: Option<Topology>,
}

#[derive(Clone, Debug, PartialEq)]
struct Topology {
    mode: &'static str,
    highest_tier: Option<i32>,
}

impl Desired {
    /// The PodGroup of `pod`. `inherited` are the merged annotations of its owners, none when owners pass nothing on
    /// (`--inherit-owner-annotations=false`).
    pub(super) fn of(pod: &Pod, inherited: Option<&Texts>) -> Desired {
        let min_member = inherited.map_or(1, minimum);
        let mut annotations: Texts = inherited
            .into_iter()
            .flatten()
            .filter(|(key, _)| key.starts_with(VOLCANO))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        let own = pod.annotations();
        let mut take_over = |key: &str| {
            let value = own.get(key);
            if let Some(value) = value {
                annotations.insert(key.into(), value.clone());
            }
            value.is_some()
        };
        for key in [keys::PREEMPTABLE, keys::COOLDOWN_TIME, keys::REVOCABLE_ZONE] {
            take_over(key);
        }
        if !take_over(keys::JDB_MIN_AVAILABLE) {
            take_over(keys::JDB_MAX_UNAVAILABLE);
        }
        let labels = [keys::PREEMPTABLE, keys::COOLDOWN_TIME]
            .into_iter()
            .filter_map(|key| Some((key.to_owned(), pod.labels().get(key)?.clone())))
            .collect();
        let spec = pod.spec.as_ref();
        Desired {
            annotations,
            labels,
            owners: owners_of_group(pod),
            min_member,
            min_resources: usage::of_group(pod, min_member),
            priority_class: spec
                .and_then(|spec| spec.priority_class_name.clone())
                .filter(|name| !name.is_empty()),
            queue: own.get(keys::QUEUE_NAME).filter(|queue| !queue.is_empty()).cloned(),
            topology: topology(pod),
        }
    }

    /// The object to create. Its phase is Pending from the start: there is no status subresource (C1).
    pub(super) fn object(&self, namespace: &str, name: &str) -> serde_json::Result<PodGroup> {
        let mut spec = self.spec();
        spec.retain(|_, value| !value.is_null());
        serde_json::from_value(json!({
            "metadata": {
                "namespace": namespace,
                "name": name,
                "annotations": self.annotations,
                "labels": self.labels,
                "ownerReferences": self.owners,
            },
            "spec": spec,
            "status": {"phase": "Pending"},
        }))
    }

    fn spec(&self) -> Map<String, Value> {
        let resources: BTreeMap<&str, String> = self
            .min_resources
            .iter()
            .map(|(name, quantity)| (name.as_str(), quantity.to_string()))
            .collect();
        let topology = self.topology.as_ref().map(|topology| {
            let mut object = Map::from_iter([("mode".to_owned(), json!(topology.mode))]);
            if let Some(tier) = topology.highest_tier {
                object.insert("highestTierAllowed".into(), json!(tier));
            }
            object
        });
        Map::from_iter([
            ("minMember".to_owned(), json!(self.min_member)),
            ("minResources".to_owned(), json!(resources)),
            ("priorityClassName".to_owned(), json!(self.priority_class)),
            ("queue".to_owned(), json!(self.queue)),
            ("networkTopology".to_owned(), json!(topology)),
        ])
    }

    /// The merge patch that brings `stored` (as JSON) in line; none when nothing differs.
    ///
    /// Only what this controller sets is compared: annotations and labels of others stay, an empty queue does not
    /// overwrite the one the API server or a webhook chose (C4), and quantities count by value.
    pub(super) fn patch(&self, stored: &Value) -> Option<Value> {
        let mut spec = Map::new();
        for (field, wanted) in self.spec() {
            let present = &stored["spec"][&field];
            let same = match field.as_str() {
                "queue" if wanted.is_null() => true,
                "minResources" => quantities(present) == self.min_resources,
                "minMember" if present.is_null() => self.min_member == 0,
                _ => *present == wanted || (wanted.is_null() && present == ""),
            };
            if !same {
                spec.insert(field.clone(), replacing(present, wanted));
            }
        }
        let metadata: Map<String, Value> =
            [("annotations", &self.annotations), ("labels", &self.labels)]
                .into_iter()
                .filter_map(|(field, wanted)| {
                    let missing: Texts = wanted
                        .iter()
                        .filter(|(key, value)| stored["metadata"][field][key] != **value)
                        .map(|(key, value)| (key.clone(), value.clone()))
                        .collect();
                    (!missing.is_empty()).then(|| (field.to_owned(), json!(missing)))
                })
                .collect();
        let mut patch = Map::new();
        if !spec.is_empty() {
            patch.insert("spec".into(), spec.into());
        }
        if !metadata.is_empty() {
            patch.insert("metadata".into(), metadata.into());
        }
        (!patch.is_empty()).then(|| patch.into())
    }
}

/// A merge patch keeps keys it does not name: those that `wanted` lacks are named with null.
fn replacing(present: &Value, mut wanted: Value) -> Value {
    if let (Some(present), Some(wanted)) = (present.as_object(), wanted.as_object_mut()) {
        for key in present.keys() {
            wanted.entry(key.clone()).or_insert(Value::Null);
        }
    }
    wanted
}

fn quantities(list: &Value) -> BTreeMap<String, Quantity> {
    let parse = |value: &Value| match value {
        Value::String(text) => Quantity::parse(text).ok(),
        Value::Number(number) => Quantity::parse(&number.to_string()).ok(),
        _ => None,
    };
    list.as_object()
        .into_iter()
        .flatten()
        .filter_map(|(name, value)| Some((name.clone(), parse(value)?)))
        .collect()
}

/// `scheduling.volcano.sh/group-min-member` of the owners; 1 when absent, negative or no number. 0 is allowed.
fn minimum(inherited: &Texts) -> i32 {
    let Some(text) = inherited.get(keys::GROUP_MIN_MEMBER) else { return 1 };
    match text.trim().parse() {
        Ok(minimum) if minimum >= 0 => minimum,
        _ => {
            warn!(annotation = keys::GROUP_MIN_MEMBER, value = %text, "not a count, taken as 1");
            1
        }
    }
}

fn topology(pod: &Pod) -> Option<Topology> {
    let annotations = pod.annotations();
    let mode = annotations.get(keys::NETWORK_TOPOLOGY_MODE);
    let tier = annotations.get(keys::NETWORK_TOPOLOGY_HIGHEST_TIER);
    if mode.is_none() && tier.is_none() {
        return None;
    }
    let mode = match mode.map(|mode| mode.to_lowercase()).as_deref() {
        Some("soft") => "soft",
        Some("hard") | None => "hard",
        Some(other) => {
            warn!(annotation = keys::NETWORK_TOPOLOGY_MODE, value = %other, "not a mode, taken as hard");
            "hard"
        }
    };
    Some(Topology { mode, highest_tier: tier.and_then(|tier| tier.trim().parse().ok()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(annotations: Value, labels: Value) -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": "p", "namespace": "ns", "uid": "u",
                "annotations": annotations, "labels": labels},
            "spec": {"priorityClassName": "high", "containers": [
                {"name": "c", "resources": {"requests": {"cpu": "500m"}}}]},
        }))
        .unwrap()
    }

    fn texts(value: Value) -> Texts {
        serde_json::from_value(value).unwrap()
    }

    fn object(desired: &Desired) -> Value {
        serde_json::to_value(desired.object("ns", "podgroup-u").unwrap()).unwrap()
    }

    #[test]
    fn a_bare_pod_gets_a_pending_group_of_one_that_it_owns() {
        let group = object(&Desired::of(&pod(json!({}), json!({})), None));
        assert_eq!(group["metadata"]["name"], "podgroup-u");
        assert_eq!(group["metadata"]["ownerReferences"][0]["kind"], "Pod");
        assert_eq!(group["spec"]["minMember"], 1);
        assert_eq!(group["spec"]["priorityClassName"], "high");
        assert_eq!(group["spec"]["minResources"]["requests.cpu"], "500m");
        assert_eq!(group["status"]["phase"], "Pending");
    }

    #[test]
    fn owners_pass_on_the_minimum_and_volcanos_annotations_only() {
        let inherited = texts(json!({
            "scheduling.volcano.sh/group-min-member": "3",
            "volcano.sh/sla-waiting-time": "1h",
            "volcano.sh/preemptable": "false",
            "kubectl.kubernetes.io/restartedAt": "now",
        }));
        let pod = pod(json!({"volcano.sh/preemptable": "true"}), json!({}));
        let group = object(&Desired::of(&pod, Some(&inherited)));
        assert_eq!(group["spec"]["minMember"], 3);
        assert_eq!(group["spec"]["minResources"]["cpu"], "1500m");
        // The pod's own word stands above its owner's.
        assert_eq!(
            group["metadata"]["annotations"],
            json!({"volcano.sh/preemptable": "true", "volcano.sh/sla-waiting-time": "1h"})
        );
    }

    #[test]
    fn a_minimum_that_is_no_count_is_one_and_zero_is_kept() {
        for (text, expected) in
            [("0", 0), ("-2", 1), ("many", 1), ("99999999999", 1), ("2147483647", i32::MAX)]
        {
            let inherited = texts(json!({"scheduling.volcano.sh/group-min-member": text}));
            assert_eq!(minimum(&inherited), expected, "{text}");
        }
    }

    #[test]
    fn the_pods_own_annotations_and_labels_reach_the_group() {
        let pod = pod(
            json!({
                "scheduling.volcano.sh/queue-name": "team-a",
                "volcano.sh/jdb-min-available": "2",
                "volcano.sh/jdb-max-unavailable": "1",
                "volcano.sh/revocable-zone": "*",
                "example.com/own": "x",
            }),
            json!({"volcano.sh/preemptable": "true", "app": "x"}),
        );
        let group = object(&Desired::of(&pod, None));
        assert_eq!(group["spec"]["queue"], "team-a");
        assert_eq!(
            group["metadata"]["annotations"],
            json!({"volcano.sh/jdb-min-available": "2", "volcano.sh/revocable-zone": "*"})
        );
        assert_eq!(group["metadata"]["labels"], json!({"volcano.sh/preemptable": "true"}));
    }

    #[test]
    fn network_topology_is_hard_unless_soft_is_said() {
        let of = |annotations| topology(&pod(annotations, json!({})));
        let tier = "volcano.sh/network-topology-highest-tier";
        let mode = "volcano.sh/network-topology-mode";
        assert_eq!(of(json!({})), None);
        assert_eq!(of(json!({mode: "SOFT"})), Some(Topology { mode: "soft", highest_tier: None }));
        assert_eq!(of(json!({tier: "2"})), Some(Topology { mode: "hard", highest_tier: Some(2) }));
        assert_eq!(
            of(json!({mode: "maybe", tier: "top"})),
            Some(Topology { mode: "hard", highest_tier: None })
        );
    }

    #[test]
    fn what_others_wrote_into_the_stored_group_is_no_difference() {
        let desired = Desired::of(&pod(json!({}), json!({})), None);
        let mut stored = object(&desired);
        stored["spec"]["queue"] = json!("default");
        stored["spec"]["minResources"]["cpu"] = json!("0.5");
        stored["metadata"]["annotations"] = json!({"tephra.sh/traceparent": "00-x"});
        assert_eq!(desired.patch(&stored), None);
    }

    #[test]
    fn a_rollout_patches_exactly_what_changed() {
        let before = Desired::of(&pod(json!({}), json!({})), None);
        let inherited = texts(json!({
            "scheduling.volcano.sh/group-min-member": "2", "volcano.sh/preemptable": "true"}));
        let mut next = pod(json!({}), json!({}));
        next.spec.as_mut().unwrap().containers[0].resources = None;
        next.spec.as_mut().unwrap().priority_class_name = None;
        let after = Desired::of(&next, Some(&inherited));
        assert_eq!(
            after.patch(&object(&before)),
            Some(json!({
                "metadata": {"annotations": {"volcano.sh/preemptable": "true"}},
                "spec": {
                    "minMember": 2,
                    "priorityClassName": null,
                    "minResources": {"count/pods": "2", "pods": "2", "cpu": null, "requests.cpu": null},
                },
            }))
        );
    }
}
