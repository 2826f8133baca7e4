//! The status writer against a scripted API server.

use std::sync::Arc;

use serde_json::{Value, json};
use tephra_core::event::{GroupCondition, PodGroupPhase};

use super::*;
use crate::fence::Fence;
use crate::scripted::{Answer, Script};

fn group(running: i32) -> StatusWrite {
    StatusWrite::PodGroup {
        group: ObjectKey::new("ns", "g"),
        uid: "u".to_owned(),
        status: PodGroupStatus {
            phase: PodGroupPhase::Running,
            running,
            conditions: vec![GroupCondition {
                kind: "Scheduled".to_owned(),
                status: true,
                transition_id: "s1".to_owned(),
                since_ms: 1_000,
                reason: "tasks in gang are ready to be scheduled".to_owned(),
                message: String::new(),
            }],
            ..PodGroupStatus::default()
        },
    }
}

async fn write(answers: Vec<Answer>, messages: Vec<Message>) -> Script {
    let script = Script::slow(std::time::Duration::from_secs(1), answers);
    let writer = Writer::new(script.client(), Fence::open(), Arc::default());
    let (send, inbox) = mpsc::unbounded_channel();
    for message in messages {
        send.send(message).unwrap();
    }
    drop(send);
    run(inbox, writer, 4).await;
    script
}

fn bodies(script: &Script) -> Vec<Value> {
    script.bodies().iter().map(|body| serde_json::from_slice(body).unwrap()).collect()
}

fn ok() -> Answer {
    Answer::status(200, "")
}

#[tokio::test(start_paused = true)]
async fn a_pod_group_status_is_a_merge_patch_of_the_main_object_with_owned_fields_only() {
    let script = write(vec![ok()], vec![Message::Write(group(2))]).await;
    assert_eq!(
        script.requests(),
        ["PATCH /apis/scheduling.volcano.sh/v1beta1/namespaces/ns/podgroups/g\
          ?fieldManager=tephra-scheduler"]
    );
    assert_eq!(
        bodies(&script),
        [json!({
            "metadata": {"uid": "u"},
            "status": {
                "phase": "Running",
                "conditions": [{
                    "type": "Scheduled", "status": "True", "transitionID": "s1",
                    "lastTransitionTime": "1970-01-01T00:00:01Z",
                    "reason": "tasks in gang are ready to be scheduled",
                }],
                "running": 2, "succeeded": null, "failed": null,
            },
        })]
    );
}

#[tokio::test(start_paused = true)]
async fn while_one_write_is_under_way_later_ones_of_the_object_become_one() {
    let messages = [1, 2, 3].map(|running| Message::Write(group(running))).into();
    let script = write(vec![ok(), ok(), ok()], messages).await;
    let running: Vec<Value> =
        bodies(&script).iter().map(|body| body["status"]["running"].clone()).collect();
    assert_eq!(running, [json!(1), json!(3)]);
    assert_eq!(script.most_at_once(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_conflict_is_answered_with_the_newest_wish() {
    let messages = [1, 2].map(|running| Message::Write(group(running))).into();
    let script = write(vec![Answer::status(409, "changed"), ok()], messages).await;
    let running: Vec<Value> =
        bodies(&script).iter().map(|body| body["status"]["running"].clone()).collect();
    assert_eq!(running, [json!(1), json!(2)]);
}

#[tokio::test(start_paused = true)]
async fn a_gone_object_and_a_refusal_are_not_tried_again() {
    for code in [404, 403, 422] {
        let script = write(vec![Answer::status(code, "no")], vec![Message::Write(group(1))]).await;
        assert_eq!(script.requests().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn an_unknown_outcome_is_tried_again() {
    let script = write(vec![Answer::Broken, ok()], vec![Message::Write(group(1))]).await;
    assert_eq!(script.requests().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn queue_keys_that_are_no_longer_used_are_removed() {
    let write_queue = StatusWrite::Queue {
        queue: "q".to_owned(),
        allocated: vec![("cpu".to_owned(), 1500), ("memory".to_owned(), 0)],
        stale: vec!["nvidia.com/gpu".to_owned()],
    };
    let script = write(vec![ok()], vec![Message::Write(write_queue)]).await;
    assert_eq!(
        bodies(&script),
        [json!({"status": {"allocated": {"cpu": "1500m", "memory": "0", "nvidia.com/gpu": null}}})]
    );
    assert!(script.requests()[0].contains("/queues/q/status?"));
}

#[tokio::test(start_paused = true)]
async fn the_turn_of_a_queue_is_an_annotation_beside_its_status() {
    let queue = || "q".to_owned();
    let allocated = StatusWrite::Queue { queue: queue(), allocated: Vec::new(), stale: Vec::new() };
    let turn = StatusWrite::QueueFairness { queue: queue(), text: "{}".to_owned() };
    let script =
        write(vec![ok(), ok()], vec![Message::Write(turn), Message::Write(allocated)]).await;
    assert_eq!(
        bodies(&script),
        [
            json!({"metadata": {"annotations": {"tephra.sh/fairness": "{}"}}}),
            json!({"status": {"allocated": {}}})
        ]
    );
    assert!(script.requests()[0].contains("/queues/q?"));
}

#[test]
fn a_wish_that_replaces_one_not_yet_written_keeps_what_only_that_one_knew() {
    let queue = |names: &[&str], stale: &[&str]| StatusWrite::Queue {
        queue: "q".to_owned(),
        allocated: names.iter().map(|name| ((*name).to_owned(), 1)).collect(),
        stale: stale.iter().map(|name| (*name).to_owned()).collect(),
    };
    let newer = queue(&["a"], &["c"]).instead_of(&queue(&["a", "c"], &["a", "b"]));
    assert_eq!(newer, queue(&["a"], &["c", "b"]));
    let pod = |since: Option<&str>| StatusWrite::Pod {
        pod: PodRef::new("ns", "a", "u"),
        reason: "Unschedulable",
        message: String::new(),
        nominated: None,
        since: since.map(str::to_owned),
    };
    assert_eq!(pod(None).instead_of(&pod(Some("t"))), pod(Some("t")));
}

#[tokio::test(start_paused = true)]
async fn a_pod_condition_keeps_its_transition_time_and_is_dropped_when_the_pod_is_bound() {
    let condition = |uid: &str, since: Option<&str>| {
        Message::Write(StatusWrite::Pod {
            pod: PodRef::new("ns", "a", uid),
            reason: "Unschedulable",
            message: "0/1 nodes are unavailable".to_owned(),
            nominated: None,
            since: since.map(str::to_owned),
        })
    };
    let script = write(vec![ok()], vec![condition("u", None)]).await;
    assert_eq!(
        bodies(&script),
        [json!({
            "metadata": {"uid": "u"},
            "status": {"conditions": [{
                "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                "message": "0/1 nodes are unavailable",
            }]},
        })]
    );
    let forgotten = vec![
        condition("first", Some("1970-01-01T00:00:00Z")),
        condition("first", None),
        Message::Forget("first".to_owned()),
    ];
    let script = write(vec![ok(), ok()], forgotten).await;
    assert_eq!(script.requests().len(), 1);
}
