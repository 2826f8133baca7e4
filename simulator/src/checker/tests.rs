//! Each rule refuses a history that was doctored to break it, and takes the honest one.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Invariant, Rules, check, check_with};
use crate::history::{FIXTURE_IDENTITY, WriteRecord};

/// A history written by hand.
#[derive(Default)]
struct Story {
    records: Vec<WriteRecord>,
    now_ms: i64,
}

impl Story {
    fn write(&mut self, who: &str, resource: &str, subresource: &str, object: &Value) -> usize {
        let group = match resource {
            "podgroups" | "queues" => "scheduling.volcano.sh",
            "leases" => "coordination.k8s.io",
            _ => "",
        };
        let text = |pointer: &str| {
            object.pointer(pointer).and_then(Value::as_str).unwrap_or("").to_owned()
        };
        self.records.push(WriteRecord {
            seq: self.records.len() as u64,
            rv: self.records.len() as u64 + 1,
            time_ms: self.now_ms,
            identity: Arc::from(who),
            verb: "update",
            group: group.to_owned(),
            resource: resource.to_owned(),
            namespace: text("/metadata/namespace"),
            name: text("/metadata/name"),
            uid: text("/metadata/uid"),
            subresource: subresource.to_owned(),
            outcome: 200,
            answered: true,
            body: Arc::new(object.clone()),
            after: Some(Arc::new(object.clone())),
            exists: true,
        });
        self.records.len() - 1
    }

    fn node(&mut self, name: &str, cpu: &str) {
        let node = json!({"metadata": {"name": name, "uid": name},
                          "status": {"allocatable": {"cpu": cpu, "pods": "10"}}});
        self.write(FIXTURE_IDENTITY, "nodes", "", &node);
    }

    fn queue(&mut self, capability: &Value, allocated: &Value) {
        let queue = json!({"metadata": {"name": "default", "uid": "q"},
                           "spec": {"weight": 1, "capability": capability},
                           "status": {"state": "Open", "allocated": allocated}});
        self.write(FIXTURE_IDENTITY, "queues", "", &queue);
    }

    fn group(&mut self, name: &str, min: usize, phase: &str) {
        let group = json!({"metadata": {"namespace": "ns", "name": name, "uid": name},
                           "spec": {"minMember": min, "queue": "default"},
                           "status": {"phase": phase}});
        self.write(FIXTURE_IDENTITY, "podgroups", "", &group);
    }

    fn pod(&mut self, group: &str, name: &str) {
        self.write(FIXTURE_IDENTITY, "pods", "", &pod(group, name, ""));
    }

    fn bind(&mut self, who: &str, group: &str, name: &str, node: &str) {
        let at = self.write(who, "pods", "binding", &pod(group, name, node));
        self.records[at].body = Arc::new(json!({"metadata": {"name": name, "uid": name},
                                                "target": {"name": node}}));
    }

    fn gone(&mut self, resource: &str, object: &Value) {
        let at = self.write(FIXTURE_IDENTITY, resource, "", object);
        self.records[at].exists = false;
    }

    fn lease(&mut self, who: &str, holder: &str) {
        let lease = json!({"metadata": {"namespace": "ns", "name": "l", "uid": "l"},
                           "spec": {"holderIdentity": holder}});
        self.write(who, "leases", "", &lease);
    }

    fn broken(&self) -> Vec<Invariant> {
        check(&self.records).into_iter().map(|violation| violation.invariant).collect()
    }
}

/// A pod of one cpu.
fn pod(group: &str, name: &str, node: &str) -> Value {
    let mut spec = json!({"schedulerName": "volcano",
                          "containers": [{"resources": {"requests": {"cpu": "1"}}}]});
    if !node.is_empty() {
        spec["nodeName"] = node.into();
    }
    json!({"metadata": {"namespace": "ns", "name": name, "uid": name,
                        "annotations": {"scheduling.k8s.io/group-name": group}},
           "spec": spec, "status": {"phase": "Pending"}})
}

/// A gang of two, bound whole by `s`, with all statuses right.
fn honest() -> Story {
    let mut story = Story::default();
    story.node("n0", "2");
    story.queue(&json!({"cpu": "2"}), &json!({}));
    story.group("g", 2, "Pending");
    story.pod("g", "a");
    story.pod("g", "b");
    story.bind("s", "g", "a", "n0");
    story.bind("s", "g", "b", "n0");
    story.group("g", 2, "Running");
    story.queue(&json!({"cpu": "2"}), &json!({"cpu": "2"}));
    story
}

#[test]
fn an_honest_history_breaks_nothing() {
    assert_eq!(check(&honest().records), []);
}

#[test]
fn a_history_with_a_gap_is_refused() {
    let mut story = honest();
    story.records.remove(3);
    assert_eq!(story.broken(), [Invariant::History]);
}

#[test]
fn a_second_accepted_bind_a_move_and_a_bind_without_uid_are_refused() {
    let mut story = honest();
    story.bind("t", "g", "a", "n0");
    assert_eq!(story.broken(), [Invariant::I1]);
    let mut story = honest();
    story.node("n1", "2");
    story.write("kubelet", "pods", "status", &pod("g", "a", "n1"));
    assert_eq!(story.broken(), [Invariant::I1]);
    let mut story = honest();
    story.records[5].body = Arc::new(json!({"target": {"name": "n0"}}));
    assert_eq!(story.broken(), [Invariant::I1]);
}

#[test]
fn a_bind_by_one_who_was_told_that_the_pod_is_bound_is_refused() {
    let mut story = honest();
    story.bind("s", "g", "a", "n0");
    story.records.last_mut().unwrap().outcome = 409;
    assert_eq!(story.broken(), [Invariant::I1]);
    story.records[5].answered = false;
    assert_eq!(story.broken(), []);
}

#[test]
fn a_node_above_its_size_is_refused_unless_the_news_of_its_size_may_be_late() {
    let mut story = honest();
    story.group("h", 1, "Running");
    story.pod("h", "c");
    story.now_ms = 5_000;
    story.node("n0", "2");
    story.bind("s", "h", "c", "n0");
    story.queue(&json!({}), &json!({"cpu": "3"}));
    let late = |ms| {
        let rules = Rules { staleness_ms: ms, enforces_capability: false, ..Rules::default() };
        check_with(&story.records, &rules).len()
    };
    assert_eq!(late(0), 1);
    assert_eq!(late(10_000), 1);
    story.records[0].after.clone_from(&Some(Arc::new(json!({
        "metadata": {"name": "n0"}, "status": {"allocatable": {"cpu": "3", "pods": "10"}},
    }))));
    let late = |ms| {
        let rules = Rules { staleness_ms: ms, enforces_capability: false, ..Rules::default() };
        check_with(&story.records, &rules).len()
    };
    assert_eq!((late(0), late(10_000)), (1, 0));
}

#[test]
fn a_bind_to_a_node_that_is_gone_or_cordoned_is_refused() {
    for cordoned in [false, true] {
        let mut story = honest();
        story.records.truncate(5);
        let mut node = json!({"metadata": {"name": "n0", "uid": "n0"}, "spec": {"unschedulable": true},
                              "status": {"allocatable": {"cpu": "2", "pods": "10"}}});
        if cordoned {
            story.write(FIXTURE_IDENTITY, "nodes", "", &node);
        } else {
            node["spec"] = Value::Null;
            story.gone("nodes", &node);
        }
        story.bind("s", "g", "a", "n0");
        let rules = Rules { at_rest: false, ..Rules::default() };
        let found = check_with(&story.records, &rules);
        assert_eq!(found[0].invariant, Invariant::I2, "{found:?}");
    }
}

#[test]
fn a_queue_above_its_capability_is_refused() {
    let mut story = honest();
    story.node("n1", "4");
    story.group("h", 1, "Running");
    story.pod("h", "c");
    story.bind("s", "h", "c", "n1");
    story.queue(&json!({"cpu": "2"}), &json!({"cpu": "3"}));
    assert_eq!(story.broken(), [Invariant::I4]);
}

#[test]
fn a_gang_begun_without_room_for_its_minimum_is_refused() {
    let mut story = honest();
    story.records.truncate(6);
    let node =
        json!({"metadata": {"name": "n0"}, "status": {"allocatable": {"cpu": "1", "pods": "10"}}});
    story.records[0].after = Some(Arc::new(node));
    let rules = Rules { at_rest: false, ..Rules::default() };
    let found = check_with(&story.records, &rules);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].invariant, Invariant::I3);
}

#[test]
fn a_gang_whose_ended_member_went_a_moment_ago_is_not_begun_anew() {
    let mut story = honest();
    let mut done = pod("g", "b", "n0");
    done["status"]["phase"] = "Succeeded".into();
    story.write("kubelet", "pods", "status", &done);
    story.gone("pods", &pod("g", "a", "n0"));
    story.now_ms = 120_000;
    story.gone("pods", &done);
    story.pod("g", "c");
    story.now_ms = 121_000;
    story.bind("s", "g", "c", "n0");
    let rules = |ms| Rules { staleness_ms: ms, at_rest: false, ..Rules::default() };
    assert_eq!(check_with(&story.records, &rules(2_000)), []);
    let known: Vec<Invariant> =
        check_with(&story.records, &rules(0)).iter().map(|found| found.invariant).collect();
    assert_eq!(known, [Invariant::I3]);
}

#[test]
fn a_gang_left_half_bound_is_refused_unless_the_world_took_its_room() {
    let mut story = honest();
    story.records.truncate(6);
    story.queue(&json!({"cpu": "2"}), &json!({"cpu": "1"}));
    // It could be completed, too.
    assert_eq!(story.broken(), [Invariant::I3, Invariant::I6]);
    story.now_ms = 1;
    story.node("n0", "1");
    assert_eq!(story.broken(), []);
}

#[test]
fn a_pod_that_could_be_placed_and_waits_is_refused_unless_a_policy_holds_it() {
    let mut story = honest();
    story.node("n1", "4");
    story.queue(&json!({}), &json!({"cpu": "2"}));
    story.group("h", 1, "Inqueue");
    story.pod("h", "c");
    assert_eq!(story.broken(), [Invariant::I6]);
    let held = [json!({"cpu": "2"}), json!({"pods": "2"})];
    for capability in held {
        story.queue(&capability, &json!({"cpu": "2"}));
        assert_eq!(story.broken(), [], "{capability}");
    }
}

#[test]
fn a_waiting_pod_without_a_pod_group_is_refused_where_a_controller_runs() {
    let mut story = honest();
    let mut plain = pod("", "c", "");
    plain["metadata"]["annotations"] = json!({});
    story.write(FIXTURE_IDENTITY, "pods", "", &plain);
    assert_eq!(story.broken(), []);
    let status = json!({"metadata": {"name": "default", "uid": "q"},
                        "status": {"state": "Open", "pending": 0, "running": 1,
                                   "allocated": {"cpu": "2"}}});
    story.write("controller", "queues", "status", &status);
    assert_eq!(story.broken(), [Invariant::I6]);
}

#[test]
fn wrong_counts_phases_and_allocations_are_refused() {
    let mut story = honest();
    story.queue(&json!({"cpu": "2"}), &json!({"cpu": "1"}));
    assert_eq!(story.broken(), [Invariant::I7]);
    let mut story = honest();
    story.group("g", 2, "Inqueue");
    assert_eq!(story.broken(), [Invariant::I7]);
    let mut story = honest();
    let mut running = pod("g", "a", "n0");
    running["status"]["phase"] = "Running".into();
    story.write("kubelet", "pods", "status", &running);
    assert_eq!(story.broken(), [Invariant::I7]);
}

#[test]
fn a_write_of_a_deposed_leader_and_a_bind_by_a_stranger_are_refused() {
    let mut story = honest();
    let binds = story.records.split_off(5);
    story.lease("s", "s");
    let resume = |story: &mut Story| {
        for mut record in binds.clone() {
            record.seq = story.records.len() as u64;
            story.records.push(record);
        }
    };
    resume(&mut story);
    assert_eq!(story.broken(), []);
    story.lease("t", "t");
    story.write("s", "podgroups", "", &json!({"metadata": {"namespace": "x", "name": "y"}}));
    assert!(story.broken().contains(&Invariant::I9));

    let mut story = honest();
    story.records.truncate(5);
    story.lease("t", "t");
    resume(&mut story);
    assert_eq!(story.broken(), [Invariant::I9; 2]);
}
