//! Decoding: everything scheduling needs is read, everything odd is read or named, nothing panics.

use std::sync::Arc;

use serde_json::{Value, json};
use tephra_core::event::{HostPort, Operator, PodPhase, TaintEffect};

use super::*;

fn names() -> Names {
    Names::new(["volcano"])
}

fn bytes(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

fn read(value: &Value) -> PodObject {
    pod(&bytes(value), &names()).unwrap()
}

fn refused(value: &Value) -> DecodeError {
    pod(&bytes(value), &names()).unwrap_err()
}

fn worker() -> Value {
    json!({
        "metadata": {
            "name": "w-0", "namespace": "team", "uid": "u0", "resourceVersion": "7",
            "creationTimestamp": "1970-01-01T00:00:05Z",
            "labels": {"b": "2", "a": "1", "volcano.sh/task-spec": "label-role"},
            "annotations": {
                "scheduling.k8s.io/group-name": "train",
                "volcano.sh/task-spec": "worker",
                "volcano.sh/preemptable": "false",
            },
            "managedFields": [{"manager": "x", "fieldsV1": {"f:spec": {}}}],
        },
        "spec": {
            "schedulerName": "volcano", "priority": 100, "priorityClassName": "high",
            "nodeSelector": {"pool": "gpu"},
            "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
            "containers": [{
                "name": "c", "image": "img:1",
                "resources": {"requests": {"cpu": "1500m", "memory": "2Gi", "nvidia.com/gpu": 1}},
                "ports": [{"containerPort": 80}, {"hostPort": 9000, "protocol": "UDP"}],
            }],
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [
                    {"key": "zone", "operator": "In", "values": ["a", "b"]}]}]}}},
        },
        "status": {"phase": "Pending", "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no"}]},
    })
}

#[test]
fn a_worker_of_a_gang_is_read() {
    let pod = read(&worker());
    assert_eq!(pod.key.to_string(), "team/w-0");
    assert_eq!((pod.uid.as_str(), pod.created_ms, pod.ours), ("u0", 5_000, true));
    assert_eq!((pod.group.as_deref(), pod.role.as_str()), (Some("train"), "worker"));
    assert_eq!((pod.priority, pod.spec_priority), (100, 100));
    assert_eq!((pod.priority_class.as_str(), pod.preemptable), ("high", false));
    assert_eq!((pod.phase, pod.deleting, pod.node.clone()), (PodPhase::Pending, false, None));
    assert_eq!(pod.labels[0], ("a".to_owned(), "1".to_owned()));
    assert_eq!(pod.scheduled_condition, Some(("Unschedulable".to_owned(), "no".to_owned())));
    let spec = &pod.spec;
    assert_eq!(spec.namespace, "team");
    let amount = |name: &str| spec.requests.iter().find(|(n, _)| n == name).map(|(_, a)| *a);
    assert_eq!(amount("cpu"), Some(1_500));
    assert_eq!(amount("memory"), Some(2 << 30));
    assert_eq!(amount("nvidia.com/gpu"), Some(1_000));
    assert_eq!(amount("pods"), Some(1));
    assert_eq!(spec.node_selector, [("pool".to_owned(), "gpu".to_owned())]);
    assert_eq!(spec.required_node_terms[0].expressions[0].operator, Operator::In);
    assert!(spec.tolerations[0].exists);
    assert_eq!(spec.tolerations[0].effect, Some(TaintEffect::NoSchedule));
    let port = HostPort { port: 9000, protocol: "UDP".to_owned(), ip: "0.0.0.0".to_owned() };
    assert_eq!(spec.host_ports, [port]);
    assert_eq!(spec.images, ["img:1"]);
}

#[test]
fn missing_and_null_fields_are_defaults() {
    for spec in [
        json!({}),
        json!({"containers": null, "tolerations": null, "affinity": null,
        "nodeSelector": null, "priority": null, "volumes": null, "schedulingGates": null}),
    ] {
        let pod = read(&json!({"metadata": {"name": "p", "labels": null, "annotations": null,
            "creationTimestamp": null}, "spec": spec, "status": null}));
        assert_eq!((pod.key.namespace.as_str(), pod.created_ms), ("default", 0));
        assert_eq!((pod.priority, pod.spec_priority, pod.preemptable), (1, 0, true));
        assert!(!pod.ours && !pod.gated && pod.claims.is_empty());
    }
    assert!(read(&json!({"metadata": {"name": "p"}})).group.is_none());
}

#[test]
fn escapes_and_characters_beyond_the_basic_plane_are_kept() {
    let text = r#"{"metadata":{"name":"p","labels":{"k":"a\"\\\nä\ud83e\udd80🦀"},
        "annotations":{"x":"\u0000","scheduling.k8s.io\/group-name":"g"}},
        "spec":{"schedulerName":"vol\u0063ano"}}"#;
    let pod = pod(text.as_bytes(), &names()).unwrap();
    assert_eq!(pod.labels[0].1, "a\"\\\nä🦀🦀");
    assert_eq!((pod.group.as_deref(), pod.ours), (Some("g"), true));
}

#[test]
fn wrong_types_name_the_field_and_its_value() {
    let cases = [
        (json!({"metadata": {"name": "p", "labels": {"a": 5}}}), "metadata.labels.a", "5"),
        (json!({"metadata": {"name": "p"}, "spec": {"containers": {}}}), "spec.containers", "{}"),
        (
            json!({"metadata": {"name": "p"}, "spec": {"containers": [{}, {"name": 3}]}}),
            "spec.containers[1].name",
            "3",
        ),
        (json!({"metadata": {"name": "p"}, "spec": {"priority": "x"}}), "spec.priority", "\"x\""),
        (
            json!({"metadata": {"name": "p", "creationTimestamp": "yesterday"}}),
            "metadata.creationTimestamp",
            "yesterday",
        ),
        (
            json!({"metadata": {"name": "p"}, "spec": {"schedulerName": "volcano",
                "affinity": {"nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": 1}}}}}),
            "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution\
             .nodeSelectorTerms",
            "1",
        ),
    ];
    for (value, path, found) in cases {
        let error = refused(&value);
        assert_eq!((error.path.as_str(), error.value.as_str()), (path, found), "{error}");
        assert_eq!(error.object, "p");
    }
    assert_eq!(refused(&json!({"metadata": {}})).path, "metadata.name");
    for garbage in [&b""[..], b"{", b"[]", b"\xff\xfe", b"{\"metadata\":{\"name\":\"\xff\"}}"] {
        assert!(pod(garbage, &names()).is_err());
        assert!(node(garbage).is_err());
    }
}

#[test]
fn a_malformed_quantity_names_container_and_resource() {
    let with = |quantity: Value| {
        json!({"metadata": {"name": "p", "namespace": "n"}, "spec": {"containers": [
            {"name": "ok", "resources": {"requests": {"cpu": "1"}}},
            {"name": "bad", "resources": {"requests": {"memory": quantity}}}]}})
    };
    for quantity in ["1Gib", "", "x", "1.2.3"] {
        let error = refused(&with(json!(quantity)));
        assert_eq!(error.path, "spec.containers[1].resources.requests.memory");
        assert!(error.problem.contains("container \"bad\""), "{error}");
        assert_eq!(error.value, format!("{quantity:?}"));
    }
    assert!(refused(&with(json!("-1"))).problem.contains("negative"));
}

#[test]
fn huge_quantities_saturate() {
    let pod = read(&json!({"metadata": {"name": "p"}, "spec": {"containers": [
        {"name": "a", "resources": {"requests": {"memory": "9223372036854775807", "cpu": "9E"}}},
        {"name": "b", "resources": {"requests": {"memory": "9223372036854775807", "cpu": 1e18}}},
    ]}}));
    let amount = |name: &str| pod.spec.requests.iter().find(|(n, _)| n == name).map(|(_, a)| *a);
    assert!(amount("memory").unwrap() >= i64::MAX / 2 && amount("cpu").unwrap() >= i64::MAX / 2);
}

#[test]
fn four_hundred_containers_are_summed() {
    let container = json!({"name": "c", "resources": {"requests": {"cpu": "10m"}}});
    let pod =
        read(&json!({"metadata": {"name": "p"}, "spec": {"containers": vec![container; 400]}}));
    let cpu = pod.spec.requests.iter().find(|(name, _)| name == "cpu").map(|(_, amount)| *amount);
    assert_eq!(cpu, Some(4_000));
}

#[test]
fn volumes_name_their_claims_and_resource_claims_are_unsupported() {
    let pod = read(&json!({"metadata": {"name": "p"}, "spec": {
        "volumes": [
            {"name": "data", "persistentVolumeClaim": {"claimName": "disk"}},
            {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
            {"name": "tmp", "emptyDir": {}},
            {"name": "inline", "csi": {"driver": "x"}}],
        "resourceClaims": [{"name": "gpu", "resourceClaimName": "shared"}],
        "schedulingGates": [{"name": "g"}],
        "activeDeadlineSeconds": 60,
    }}));
    assert_eq!(pod.claims, ["disk", "p-scratch"]);
    assert_eq!(pod.unsupported, ["ResourceClaim \"gpu\""]);
    assert!(pod.gated && pod.has_deadline);
}

#[test]
fn preemptable_is_true_when_absent_and_false_when_unreadable() {
    let with = |annotations: Value, labels: Value| {
        read(&json!({"metadata": {"name": "p", "annotations": annotations, "labels": labels}}))
            .preemptable
    };
    let key = "volcano.sh/preemptable";
    assert!(with(json!({}), json!({})));
    assert!(with(json!({key: "true"}), json!({key: "false"})));
    assert!(!with(json!({}), json!({key: "false"})));
    assert!(!with(json!({key: "perhaps"}), json!({})));
}

#[test]
fn tolerations_that_cover_no_taint_are_left_out() {
    let mut worker = worker();
    worker["spec"]["tolerations"] = json!([
        {"key": "a", "value": "x"},
        {"key": "b", "operator": "Equal", "effect": "NoExecute"},
        {"key": "c", "operator": "Gt", "value": "3"},
        {"key": "d", "operator": "Exists", "effect": "Never"},
    ]);
    let tolerations = &read(&worker).spec.tolerations;
    let keys: Vec<&str> = tolerations.iter().map(|t| t.key.as_str()).collect();
    assert_eq!(keys, ["a", "b"]);
    assert_eq!((tolerations[0].effect, tolerations[0].exists), (None, false));
}

#[test]
fn the_role_is_the_annotation_unless_it_is_empty() {
    let mut worker = worker();
    worker["metadata"]["annotations"]["volcano.sh/task-spec"] = json!("");
    assert_eq!(read(&worker).role, "label-role");
}

#[test]
fn task_priority_goes_before_the_pods_own() {
    let with = |annotation: &str| {
        read(&json!({"metadata": {"name": "p", "annotations": {"volcano.sh/task-priority": annotation}},
                     "spec": {"priority": 9}})).priority
    };
    assert_eq!((with("42"), with("x")), (42, 9));
}

#[test]
fn spread_and_affinity_terms_are_read_with_label_keys_merged_in() {
    let term = json!({"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "zone",
                      "mismatchLabelKeys": ["rev"]});
    let pod = read(&json!({
        "metadata": {"name": "p", "labels": {"rev": "7"}},
        "spec": {
            "schedulerName": "volcano",
            "topologySpreadConstraints": [{"maxSkew": 2, "topologyKey": "zone",
                "whenUnsatisfiable": "DoNotSchedule", "matchLabelKeys": ["rev", "absent"],
                "labelSelector": {}, "nodeTaintsPolicy": "Honor"}],
            "affinity": {"podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [term],
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 50, "podAffinityTerm": term}]}},
        },
    }));
    let spread = &pod.spec.spread[0];
    assert_eq!((spread.max_skew, spread.hard, spread.min_domains), (2, true, 1));
    assert!(spread.honor_affinity && spread.honor_taints);
    assert_eq!(spread.selector.requirements.len(), 1);
    assert_eq!(spread.selector.requirements[0].values, ["7"]);
    let anti = &pod.spec.pod_anti_affinity[0];
    let operators: Vec<Operator> =
        anti.selector.as_ref().unwrap().requirements.iter().map(|r| r.operator).collect();
    assert_eq!(operators, [Operator::In, Operator::NotIn]);
    assert_eq!(pod.spec.preferred_pod_affinity[0].0, -50);
}

#[test]
fn a_spread_constraint_without_selector_counts_no_pod() {
    let pod = read(&json!({"metadata": {"name": "p"}, "spec": {"schedulerName": "volcano",
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "z"}]}}));
    assert_eq!(pod.spec.spread[0].selector.requirements[0].operator, Operator::Invalid);
}

#[test]
fn pods_of_one_template_share_their_spec_and_others_do_not() {
    let mut interner = Interner::new();
    let mut numbered = |number: usize, edit: &dyn Fn(&mut Value)| {
        let mut value = worker();
        value["metadata"]["name"] = json!(format!("w-{number}"));
        value["metadata"]["uid"] = json!(format!("u{number}"));
        edit(&mut value);
        interner.pod(&bytes(&value), &names()).unwrap().spec
    };
    let first = numbered(0, &|_| {});
    assert!(Arc::ptr_eq(&first, &numbered(1, &|_| {})));
    // Written differently, the same in content.
    let reordered = numbered(2, &|value| {
        value["spec"]["containers"][0]["resources"]["requests"]["cpu"] = json!("1.5");
    });
    assert!(Arc::ptr_eq(&first, &reordered));
    let other = numbered(3, &|value| {
        value["spec"]["containers"][0]["resources"]["requests"]["cpu"] = json!("2");
    });
    assert!(!Arc::ptr_eq(&first, &other));
    let selected = numbered(4, &|value| value["spec"]["nodeSelector"] = json!({}));
    assert!(!Arc::ptr_eq(&first, &selected));
    assert_eq!(interner.len(), 3);
}

#[test]
fn templates_that_no_pod_uses_are_thrown_away() {
    let mut interner = Interner::new();
    for number in 0..10_000 {
        let value = json!({"metadata": {"name": "p"}, "spec": {"containers": [
            {"name": "c", "resources": {"requests": {"cpu": format!("{number}m")}}}]}});
        interner.pod(&bytes(&value), &names()).unwrap();
    }
    assert!(interner.len() <= 4_096);
}

#[test]
fn a_heartbeat_keeps_the_fingerprint_and_a_change_that_matters_does_not() {
    let mut interner = Interner::new();
    let mut print = |edit: &dyn Fn(&mut Value)| {
        let mut value = worker();
        edit(&mut value);
        interner.decode(&bytes(&value), &names()).unwrap().fingerprint
    };
    let first = print(&|_| {});
    assert_eq!(first, print(&|value| value["metadata"]["resourceVersion"] = json!("8")));
    assert_eq!(first, print(&|value| value["status"]["podIP"] = json!("10.0.0.1")));
    for path in ["/metadata/labels/a", "/status/phase", "/spec/priorityClassName"] {
        assert_ne!(first, print(&|value| *value.pointer_mut(path).unwrap() = json!("Other")));
    }
    assert_ne!(first, print(&|value| value["spec"]["nodeName"] = json!("n")));
    assert_ne!(first, print(&|value| value["metadata"]["deletionTimestamp"] = json!("x")));
}

#[test]
fn pods_that_are_not_ours_share_one_spec_whatever_node_they_name() {
    let mut interner = Interner::new();
    let mut daemon = |node: &str| {
        let value = json!({"metadata": {"name": node}, "spec": {
            "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}],
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchFields": [
                    {"key": "metadata.name", "operator": "In", "values": [node]}]}]}}}}});
        interner.pod(&bytes(&value), &names()).unwrap().spec
    };
    let first = daemon("n1");
    assert!(Arc::ptr_eq(&first, &daemon("n2")));
    assert!(first.required_node_terms.is_empty());
}

#[test]
fn a_node_is_read() {
    let value = json!({
        "metadata": {"name": "n1", "labels": {"zone": "a"}, "annotations": {
            "volcano.sh/oversubscription-cpu": "500", "volcano.sh/oversubscription-memory": "odd"}},
        "spec": {"unschedulable": true, "taints": [
            {"key": "gpu", "value": "x", "effect": "NoSchedule"}, {"key": "k", "effect": "Odd"}]},
        "status": {
            "allocatable": {"cpu": "4", "memory": "1Gi", "pods": "110"},
            "images": [{"names": ["a:1", "a@sha256:0"], "sizeBytes": 5}, {"names": null}]},
    });
    let node = node(&bytes(&value)).unwrap();
    assert_eq!((node.name.as_str(), node.unschedulable, node.taints.len()), ("n1", true, 1));
    assert_eq!(
        node.allocatable,
        [("cpu".to_owned(), 4_500), ("memory".to_owned(), 1 << 30), ("pods".to_owned(), 110)]
    );
    assert_eq!(node.images, [("a:1".to_owned(), 5), ("a@sha256:0".to_owned(), 5)]);
}

#[test]
fn a_bare_node_and_a_huge_one_are_read_and_a_malformed_one_is_named() {
    let bare = node(&bytes(&json!({"metadata": {"name": "n"}}))).unwrap();
    assert!(bare.allocatable.is_empty());
    let of = |memory: Value| {
        node(&bytes(
            &json!({"metadata": {"name": "n"}, "status": {"allocatable": {"memory": memory}}}),
        ))
    };
    let huge = 1_000_000_000_000_000_000_i64;
    assert_eq!(of(json!("1000000000000000000")).unwrap().allocatable[0].1, huge);
    let error = of(json!("1Gib")).unwrap_err();
    assert_eq!((error.object.as_str(), error.path.as_str()), ("n", "status.allocatable.memory"));
}

#[test]
fn a_cooldown_counts_from_when_the_pod_was_scheduled_and_the_label_wins() {
    let with = |label: &str, annotation: &str, status: &str| {
        let key = tephra_api::keys::COOLDOWN_TIME;
        let mut pod = worker();
        pod["status"]["conditions"] = json!([{
            "type": "PodScheduled", "status": status, "lastTransitionTime": "1970-01-01T00:01:00Z",
        }]);
        for (place, text) in [("labels", label), ("annotations", annotation)] {
            if !text.is_empty() {
                pod["metadata"][place][key] = json!(text);
            }
        }
        read(&pod).cooling_until_ms
    };
    assert_eq!(with("1m30s", "1s", "True"), Some(150_000));
    assert_eq!(with("", "600s", "True"), Some(660_000));
    assert_eq!(with("600abcde", "600s", "True"), None, "what cannot be read protects nobody");
    assert_eq!(with("1m", "", "False"), None, "not scheduled");
    assert_eq!(with("", "", "True"), None);
}

#[test]
fn revocable_pods_say_so_and_share_no_spec_with_the_others() {
    let mut interner = Interner::new();
    let mut with = |annotations: Value| {
        let mut pod = worker();
        pod["metadata"]["annotations"] = annotations;
        interner.pod(&bytes(&pod), &names()).unwrap().spec
    };
    let (zone, preemptable) = ("volcano.sh/revocable-zone", "volcano.sh/preemptable");
    let strict = with(json!({}));
    assert!(!strict.revocable);
    assert!(with(json!({zone: "*"})).revocable);
    assert!(with(json!({preemptable: "true"})).revocable);
    assert!(!with(json!({zone: "day", preemptable: "true"})).revocable, "the first one wins");
    assert!(!with(json!({preemptable: "perhaps"})).revocable);
    assert!(Arc::ptr_eq(&strict, &with(json!({preemptable: "false"}))));
}

#[test]
fn a_run_time_is_the_annotation_and_never_longer_than_the_deadline() {
    let pod = |expected: Option<&str>, deadline: Option<i64>| {
        let mut pod = json!({
            "metadata": {"name": "p", "annotations": {}},
            "spec": {"containers": []},
            "status": {"startTime": "1970-01-01T00:00:05Z"},
        });
        if let Some(expected) = expected {
            pod["metadata"]["annotations"]["tephra.sh/expected-runtime"] = json!(expected);
        }
        if let Some(deadline) = deadline {
            pod["spec"]["activeDeadlineSeconds"] = json!(deadline);
        }
        let pod = read(&pod);
        assert_eq!(pod.started_ms, Some(5_000));
        pod.runtime_ms
    };
    assert_eq!(pod(Some("1m30s"), None), Some(90_000));
    assert_eq!(pod(Some("1m30s"), Some(60)), Some(60_000));
    assert_eq!(pod(Some("1m30s"), Some(600)), Some(90_000));
    assert_eq!(pod(Some("soon"), Some(60)), Some(60_000));
    assert_eq!(pod(Some("soon"), None), None);
}
