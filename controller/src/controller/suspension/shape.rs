//! What a record keeps of the pods that are to come back.

use serde_json::{Map, Value, json};
use tephra_api::{keys, suspension::Member};

/// Labels and annotations that number the pods of a controller: they would make every pod a shape of its own.
const NUMBERS: [&str; 8] = [
    "batch.kubernetes.io/job-completion-index",
    "apps.kubernetes.io/pod-index",
    "statefulset.kubernetes.io/pod-name",
    "training.kubeflow.org/replica-index",
    "ray.io/replica-index",
    "jobset.sigs.k8s.io/job-index",
    "jobset.sigs.k8s.io/job-global-index",
    "jobset.sigs.k8s.io/job-key",
];
/// Labels that the API server copies from the node of a pod.
const OF_NODES: [&str; 2] = [keys::TOPOLOGY_ZONE, keys::TOPOLOGY_REGION];
/// What placement does not read of a container.
const OF_CONTAINERS: [&str; 5] = ["name", "image", "resources", "ports", "restartPolicy"];
/// What placement does not read of a pod, or what belongs to one pod alone.
const NOT_OF_PODS: [&str; 14] = [
    "nodeName",
    "hostname",
    "subdomain",
    "serviceAccount",
    "serviceAccountName",
    "securityContext",
    "imagePullSecrets",
    "dnsPolicy",
    "dnsConfig",
    "hostAliases",
    "enableServiceLinks",
    "readinessGates",
    "setHostnameAsFQDN",
    "terminationGracePeriodSeconds",
];
/// Volumes that decide on which nodes a pod can be.
const PLACED: [&str; 8] = [
    "persistentVolumeClaim",
    "ephemeral",
    "csi",
    "awsElasticBlockStore",
    "gcePersistentDisk",
    "azureDisk",
    "iscsi",
    "rbd",
];

fn texts(pod: &Value, field: &str, keep: impl Fn(&str) -> bool) -> Map<String, Value> {
    let all = pod["metadata"][field].as_object().cloned().unwrap_or_default();
    all.into_iter().filter(|(key, _)| keep(key)).collect()
}

fn of_this_run(key: &str) -> bool {
    let ours = [keys::CHECKPOINT_REQUEST, keys::CHECKPOINT_ACK, keys::LAST_CHECKPOINT];
    ours.contains(&key) || key == keys::LAST_CHECKPOINT_VOLCANO
}

fn containers(spec: &mut Map<String, Value>, mut change: impl FnMut(&mut Map<String, Value>)) {
    for field in ["containers", "initContainers"] {
        let all = spec.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten();
        all.filter_map(Value::as_object_mut).for_each(&mut change);
    }
}

/// A pod that its controller will make again: what its placement depends on, so that pods that differ in nothing else are one
/// shape.
pub(super) fn placed(pod: &Value) -> Value {
    let keep = |key: &str| !NUMBERS.contains(&key) && !OF_NODES.contains(&key) && !of_this_run(key);
    let mut spec = pod["spec"].as_object().cloned().unwrap_or_default();
    spec.retain(|field, _| !NOT_OF_PODS.contains(&field.as_str()));
    containers(&mut spec, |it| it.retain(|field, _| OF_CONTAINERS.contains(&field.as_str())));
    if let Some(volumes) = spec.get_mut("volumes").and_then(Value::as_array_mut) {
        volumes.retain(|volume| PLACED.iter().any(|kind| volume.get(kind).is_some()));
    }
    spec.retain(|_, value| *value != json!([]));
    json!({"metadata": {
        "labels": texts(pod, "labels", keep), "annotations": texts(pod, "annotations", keep),
    }, "spec": spec})
}

/// A pod that we create again: all of it, save its node and what admission mounted for its service account.
pub(super) fn whole(pod: &Value) -> Value {
    let keep = |key: &str| !OF_NODES.contains(&key) && !of_this_run(key);
    let token =
        |it: &Value| it["name"].as_str().is_some_and(|it| it.starts_with("kube-api-access-"));
    let mut spec = pod["spec"].as_object().cloned().unwrap_or_default();
    spec.remove("nodeName");
    let without_token = |of: &mut Map<String, Value>, field: &str| {
        if let Some(all) = of.get_mut(field).and_then(Value::as_array_mut) {
            all.retain(|it| !token(it));
        }
    };
    without_token(&mut spec, "volumes");
    containers(&mut spec, |it| without_token(it, "volumeMounts"));
    json!({"metadata": {
        "labels": texts(pod, "labels", keep), "annotations": texts(pod, "annotations", keep),
    }, "spec": spec})
}

/// One entry for each distinct shape, in the order of first appearance. `pods`: shape, and the name to create it under.
pub(super) fn gather(pods: impl IntoIterator<Item = (Value, Option<String>)>) -> Vec<Member> {
    let mut members: Vec<Member> = Vec::new();
    for (pod, name) in pods {
        match members.iter_mut().find(|member| member.pod == pod) {
            Some(member) => {
                member.count += 1;
                member.names.extend(name);
            }
            None => members.push(Member { count: 1, names: name.into_iter().collect(), pod }),
        }
    }
    members
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(index: u32) -> Value {
        json!({
            "metadata": {
                "name": format!("p-{index}"), "uid": "u",
                "labels": {"app": "x", "topology.kubernetes.io/zone": format!("z{index}"), "batch.kubernetes.io/job-completion-index": index.to_string()},
                "annotations": {"scheduling.k8s.io/group-name": "g", "tephra.sh/checkpoint-ack": "s"},
            },
            "spec": {
                "nodeName": "n", "hostname": format!("p-{index}"), "nodeSelector": {"pool": "a"},
                "containers": [{
                    "name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}},
                    "env": [{"name": "RANK", "value": index.to_string()}],
                    "volumeMounts": [{"name": "kube-api-access-x"}, {"name": "data"}],
                }],
                "volumes": [{"name": "kube-api-access-x", "projected": {}},
                    {"name": "data", "persistentVolumeClaim": {"claimName": "d"}}],
            },
            "status": {"phase": "Running"},
        })
    }

    #[test]
    fn pods_of_a_controller_that_differ_in_their_number_only_are_one_shape_with_what_placement_reads()
     {
        let members = gather((0..3).map(|index| (placed(&pod(index)), None)));
        let wanted = json!({
            "metadata": {"labels": {"app": "x"}, "annotations": {"scheduling.k8s.io/group-name": "g"}},
            "spec": {
                "nodeSelector": {"pool": "a"},
                "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}],
                "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "d"}}],
            },
        });
        assert_eq!(members, [Member { count: 3, names: Vec::new(), pod: wanted }]);
    }

    #[test]
    fn another_node_selector_is_another_shape() {
        let mut other = pod(1);
        other["spec"]["nodeSelector"]["pool"] = json!("b");
        let counts: Vec<u32> = gather([pod(0), other, pod(2)].iter().map(|it| (placed(it), None)))
            .iter()
            .map(|member| member.count)
            .collect();
        assert_eq!(counts, [2, 1]);
    }

    #[test]
    fn a_pod_that_we_create_again_keeps_all_but_its_node_and_its_token() {
        let mut wanted = pod(1);
        wanted.as_object_mut().unwrap().remove("status");
        wanted["metadata"]["labels"].as_object_mut().unwrap().remove(keys::TOPOLOGY_ZONE);
        wanted["metadata"] = json!({
            "labels": wanted["metadata"]["labels"],
            "annotations": {"scheduling.k8s.io/group-name": "g"},
        });
        let spec = &mut wanted["spec"];
        spec.as_object_mut().unwrap().remove("nodeName");
        spec["containers"][0]["volumeMounts"] = json!([{"name": "data"}]);
        spec["volumes"] = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "d"}}]);
        assert_eq!(whole(&pod(1)), wanted);
    }
}
