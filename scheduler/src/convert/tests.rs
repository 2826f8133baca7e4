//! Odd objects: none panics, each is read or named.

use serde_json::json;
use tephra_core::event::{LabelSelector, Operator, Requirement};

use super::*;

fn group(spec: Value, status: Value) -> Value {
    json!({
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "ns", "uid": "u",
                     "creationTimestamp": "2026-12-02T00:00:00Z"},
        "spec": spec, "status": status,
    })
}

#[test]
fn a_pod_group_is_read_with_spec_and_status() {
    let value = group(
        json!({"minMember": 3, "queue": "q", "priorityClassName": "high",
               "minTaskMember": {"b": 1, "a": 2}, "minResources": {"cpu": "1500m", "memory": "1Gi"}}),
        json!({"phase": "Inqueue", "running": 2, "conditions": [
            {"type": "Unschedulable", "status": "True", "transitionID": "t", "reason": "r",
             "message": "m", "lastTransitionTime": "1970-01-01T00:00:02Z"}]}),
    );
    let group = pod_group(&value).unwrap();
    assert_eq!(group.key, ObjectKey::new("ns", "g"));
    assert_eq!((group.min_member, group.queue.as_str()), (3, "q"));
    assert_eq!(group.min_task_member, [("a".to_owned(), 2), ("b".to_owned(), 1)]);
    assert_eq!(
        group.min_resources,
        Some(vec![("cpu".to_owned(), 1500), ("memory".to_owned(), 1 << 30)])
    );
    assert_eq!((group.status.phase, group.status.running), (PodGroupPhase::Inqueue, 2));
    assert_eq!(group.status.conditions[0].since_ms, 2_000);
    assert_eq!((group.topology, group.sub_groups), (None, vec![]));
}

#[test]
fn a_gang_that_was_suspended_queues_from_the_first_pod_group_of_its_life_and_once_more_for_the_time_that_it_was_down()
 {
    let queued = |annotations: Value| {
        let mut value = group(json!({}), json!({}));
        value["metadata"]["annotations"] = annotations;
        let group = pod_group(&value).unwrap();
        group.queued_ms.map(|queued_ms| (queued_ms - group.created_ms) / 1000)
    };
    let record = |queued: &str| {
        json!({"id": "s", "at": "2026-12-02T00:05:00Z", "since": "2026-12-02T00:05:00Z", "group": "g",
               "deadline": "2026-12-02T00:05:00Z", "queued": queued, "suspendedSeconds": 40})
    };
    let down = |text: String| queued(json!({"tephra.sh/suspended": text}));
    let back = |text: &str| queued(json!({"tephra.sh/suspensions": text}));
    assert_eq!(queued(json!({})), None);
    assert_eq!(down(record("2026-12-01T23:59:00Z").to_string()), Some(-100));
    assert_eq!(down(record("2026-12-02T01:00:00Z").to_string()), Some(-40), "nobody goes back");
    assert_eq!(back(r#"{"suspendedSeconds": 7}"#), Some(-7));
    assert_eq!(back(r#"{"suspendedSeconds": -7, "queued": "2026-12-01T23:59:59Z"}"#), Some(-1));
    assert_eq!((back("{"), down("no".to_owned())), (None, None));
}

#[test]
fn topologies_sub_groups_and_hypernodes_are_read() {
    let group = pod_group(&json!({
        "metadata": {"name": "g"},
        "spec": {
            "networkTopology": {"mode": "soft", "highestTierAllowed": 2},
            "subGroupPolicy": [
                {},
                {
                    "name": "stage",
                    "subGroupSize": 4,
                    "minSubGroups": -1,
                    "labelSelector": {"matchLabels": {"a": "b"}},
                    "matchLabelKeys": ["k"],
                    "networkTopology": {"highestTierName": "rack"}
                }
            ]
        }
    }))
    .unwrap();
    let wish = NetworkTopology { hard: false, highest_tier: Some(2), ..Default::default() };
    assert_eq!(group.topology, Some(wish));
    assert_eq!(group.sub_groups[0], SubGroupPolicy { size: 1, ..Default::default() });
    let equals =
        Requirement { key: "a".to_owned(), operator: Operator::In, values: vec!["b".to_owned()] };
    let selector = LabelSelector { requirements: vec![equals] };
    assert_eq!(
        group.sub_groups[1],
        SubGroupPolicy {
            name: "stage".to_owned(),
            size: 4,
            min_sub_groups: 0,
            selector: Some(selector.clone()),
            match_label_keys: vec!["k".to_owned()],
            topology: Some(NetworkTopology {
                hard: true,
                highest_tier: None,
                highest_tier_name: "rack".to_owned(),
            }),
        }
    );
    let member = |kind: &str, selector: Value| json!({"type": kind, "selector": selector});
    let object = hyper_node(&json!({
        "metadata": {"name": "h", "uid": "u"},
        "spec": {"tier": 1e12, "tierName": "rack", "members": [
            member("HyperNode", json!({"exactMatch": {"name": "x"}})),
            member("Node", json!({"regexMatch": {"pattern": "^n"}})),
            member("Node", json!({"labelMatch": {"matchLabels": {"a": "b"}}})),
            {"type": "Node"},
        ]}
    }))
    .unwrap();
    assert_eq!(
        (object.name.as_str(), object.tier, object.tier_name.as_str()),
        ("h", i32::MAX, "rack")
    );
    let selectors: Vec<_> =
        object.members.iter().map(|m| (m.is_hyper_node, m.selector.clone())).collect();
    assert_eq!(
        selectors,
        [
            (true, MemberSelector::Exact("x".to_owned())),
            (false, MemberSelector::Regex("^n".to_owned())),
            (false, MemberSelector::Labels(selector)),
            (false, MemberSelector::None),
        ]
    );
    let wrong = json!({"metadata": {"name": "g"}, "spec": {"networkTopology": {"highestTierAllowed": "x"}}});
    assert_eq!(pod_group(&wrong).unwrap_err().path, "spec.networkTopology.highestTierAllowed");
}

#[test]
fn extreme_and_negative_member_counts_and_odd_phases_are_clamped() {
    for (given, read) in [
        (json!(0), 0),
        (json!(-5), 0),
        (json!(i32::MAX), i32::MAX),
        (json!(i64::MAX), i32::MAX),
        (json!(1e300), i32::MAX),
        (json!(3.0), 3),
        (Value::Null, 0),
    ] {
        let value = group(json!({"minMember": given}), json!({"phase": "Odd", "running": -1}));
        let group = pod_group(&value).unwrap();
        assert_eq!((group.min_member, group.status.phase), (read, PodGroupPhase::Pending));
    }
}

#[test]
fn wrong_types_and_malformed_quantities_name_object_field_and_value() {
    let cases = [
        (json!({"minMember": "3"}), "PodGroup ns/g: spec.minMember: is no whole number, got \"3\""),
        (json!({"queue": 7}), "PodGroup ns/g: spec.queue: is no string, got 7"),
        (json!({"minTaskMember": [1]}), "PodGroup ns/g: spec.minTaskMember: is no map, got [1]"),
        (
            json!({"minResources": {"cpu": -1}}),
            "PodGroup ns/g: spec.minResources.cpu: is negative, got -1",
        ),
    ];
    for (spec, expected) in cases {
        assert_eq!(pod_group(&group(spec, Value::Null)).unwrap_err().to_string(), expected);
    }
    let malformed = group(json!({"minResources": {"memory": "1Gib"}}), Value::Null);
    let error = pod_group(&malformed).unwrap_err();
    assert_eq!(
        (error.path.as_str(), error.value.as_str()),
        ("spec.minResources.memory", "\"1Gib\"")
    );
}

#[test]
fn an_object_without_name_or_of_another_type_is_refused() {
    assert_eq!(pod_group(&json!([])).unwrap_err().path, ".");
    assert_eq!(queue(&json!({"metadata": {}})).unwrap_err().path, "metadata.name");
}

#[test]
fn queue_defaults_are_weight_one_and_reclaimable() {
    let queue_of = |spec: Value| queue(&json!({"metadata": {"name": "q"}, "spec": spec})).unwrap();
    let plain = queue_of(Value::Null);
    assert_eq!((plain.weight, plain.reclaimable, plain.fifo), (1, true, false));
    assert_eq!(plain.state, QueueState::Open);
    assert_eq!(queue_of(json!({"weight": -4})).weight, 1);
    let full = queue_of(json!({"reclaimable": false, "dequeueStrategy": "fifo", "parent": "root",
                               "guarantee": {"resource": {"cpu": 2}}}));
    assert_eq!((full.reclaimable, full.fifo, full.parent.as_str()), (false, true, "root"));
    assert_eq!(full.guarantee, Some(vec![("cpu".to_owned(), 2_000)]));
}

#[test]
fn a_claim_counts_as_bound_only_in_phase_bound() {
    let claim = |phase: &str| {
        let value = json!({"metadata": {"name": "c", "namespace": "ns"},
                           "spec": {"volumeName": "v"}, "status": {"phase": phase}});
        volume_claim(&value).unwrap().volume
    };
    assert_eq!(claim("Bound"), Some("v".to_owned()));
    assert_eq!(claim("Pending"), None);
}

#[test]
fn a_volume_reads_its_node_affinity() {
    let value = json!({"metadata": {"name": "v"}, "spec": {"nodeAffinity": {"required": {
        "nodeSelectorTerms": [{"matchExpressions": [
            {"key": "zone", "operator": "In", "values": ["a"]}]}]}}}});
    let volume = volume(&value).unwrap();
    assert_eq!(volume.node_terms[0].expressions[0].key, "zone");
}

#[test]
fn objects_are_told_apart_by_kind_and_unknown_kinds_do_not_matter() {
    let names = Names::any();
    let value = json!({"kind": "ConfigMap", "metadata": {"name": "x"}});
    assert!(object(&value, &names).unwrap().is_none());
    let value = json!({"kind": "PriorityClass", "metadata": {"name": "p"}, "value": 5});
    assert!(matches!(object(&value, &names).unwrap(),
        Some(Event::PriorityClass(class)) if class.value == 5));
}

fn budget(spec: Value, status: Value) -> DisruptionBudgetObject {
    let metadata = json!({"name": "b", "namespace": "ns", "generation": 3});
    let value = json!({
        "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec, "status": status,
    });
    disruption_budget(&value).unwrap()
}

#[test]
fn a_budget_is_read_with_selector_allowance_and_disrupted_pods() {
    let selector = json!({"matchLabels": {"app": "db"},
                          "matchExpressions": [{"key": "tier", "operator": "Exists"}]});
    let status = json!({"observedGeneration": 3, "disruptionsAllowed": 2,
                        "disruptedPods": {"b": "2026-12-02T00:00:00Z", "a": null}});
    let read = budget(json!({"selector": selector}), status);
    assert_eq!(read.key, ObjectKey::new("ns", "b"));
    assert_eq!((read.allowed, read.disrupted), (2, vec!["a".to_owned(), "b".to_owned()]));
    let keys = read.selector.unwrap().requirements.into_iter().map(|wanted| wanted.key);
    assert_eq!(keys.collect::<Vec<_>>(), ["app", "tier"]);
}

#[test]
fn a_budget_that_says_too_little_or_nonsense_allows_nothing() {
    let spec = || json!({"selector": {}});
    for status in [
        Value::Null,
        json!({}),
        json!({"disruptionsAllowed": -1}),
        json!({"disruptionsAllowed": "2"}),
        json!({"disruptionsAllowed": 2, "observedGeneration": 2}),
    ] {
        assert_eq!(budget(spec(), status.clone()).allowed, 0, "{status}");
    }
    assert_eq!(budget(spec(), json!({"disruptionsAllowed": i64::MAX})).allowed, u32::MAX);
}

#[test]
fn a_selector_that_cannot_be_read_covers_everything_and_an_absent_one_nothing() {
    let selector = |spec| budget(spec, Value::Null).selector;
    assert_eq!(selector(json!({"selector": ["app", "db"]})), Some(LabelSelector::default()));
    assert_eq!(selector(json!({"selector": {}})), Some(LabelSelector::default()));
    assert_eq!(selector(json!({})), None);
}

#[test]
fn scopes_of_a_quota_are_read_from_both_places_and_unknown_ones_concern_no_pods() {
    let read = |spec: Value| {
        let value = json!({"metadata": {"name": "q", "namespace": "ns"}, "spec": spec});
        resource_quota(&value).map(|quota| quota.scopes)
    };
    let plain = json!({"scopes": ["BestEffort", "NotTerminating", "PriorityClass", "Later"]});
    let expected = vec![
        QuotaScope::BestEffort(true),
        QuotaScope::Terminating(false),
        QuotaScope::PriorityClass(Operator::Exists, Vec::new()),
        QuotaScope::NotOfPods,
    ];
    assert_eq!(read(plain).unwrap(), expected);
    let selector = json!({"scopeSelector": {"matchExpressions": [
        {"scopeName": "PriorityClass", "operator": "NotIn", "values": ["low"]},
        {"scopeName": "PriorityClass", "operator": "Gt", "values": ["1"]},
        {"scopeName": "NotBestEffort", "operator": "Exists"},
        {"scopeName": "Terminating", "operator": "Exists"},
        {"scopeName": "CrossNamespacePodAffinity", "operator": "Exists"},
        {"scopeName": "VolumeAttributesClass", "operator": "In", "values": ["gold"]},
    ]}});
    let expected = vec![
        QuotaScope::PriorityClass(Operator::NotIn, vec!["low".to_owned()]),
        QuotaScope::PriorityClass(Operator::Invalid, vec!["1".to_owned()]),
        QuotaScope::BestEffort(false),
        QuotaScope::Terminating(true),
        QuotaScope::CrossNamespacePodAffinity,
        QuotaScope::NotOfPods,
    ];
    assert_eq!(read(selector).unwrap(), expected);
    assert_eq!(read(json!({})).unwrap(), Vec::new());
    assert!(read(json!({"scopes": "BestEffort"})).is_err());
    assert!(read(json!({"scopeSelector": {"matchExpressions": [{"values": 3}]}})).is_err());
}

#[test]
fn a_quota_and_the_minimum_of_a_group_keep_names_that_are_no_resource_of_a_node() {
    let amounts = json!({"requests.cpu": "1500m", "count/pods": "3"});
    let value = json!({
        "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "ns"},
        "spec": {"hard": {"cpu": "9"}}, "status": {"hard": amounts, "used": {"count/pods": 1}},
    });
    let told = |list: &tephra_core::event::Quantities| {
        let parts = list.iter().map(|(name, amount)| format!("{name} {amount}"));
        parts.collect::<Vec<_>>().join(", ")
    };
    let quota = resource_quota(&value).unwrap();
    assert_eq!(told(&quota.hard), "count/pods 3, requests.cpu 1500m");
    assert_eq!(told(&quota.used), "count/pods 1");
    let group = pod_group(&group(json!({"minResources": amounts}), Value::Null)).unwrap();
    assert_eq!(told(&group.min_quantities), "count/pods 3, requests.cpu 1500m");
    assert_eq!(group.min_resources, Some(Vec::new()));
}
