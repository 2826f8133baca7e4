//! The pod statuses that simulated kubelets write. Pure: merge patches of `/status` for a pod as it was seen.
//!
//! A merge patch replaces lists as a whole, so it carries all conditions of the pod that was seen, and its
//! resourceVersion: if another writer was faster, the server says 409 and the step is done again on the newer pod.

use serde_json::{Value, json};

use super::{
    lifecycle::fails,
    view::{ContainerView, PodView},
};
use crate::clock::timestamp;

/// Conditions of a running pod, in the order a kubelet lists them.
const CONDITIONS: [&str; 5] =
    ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"];

/// The pod runs since `now_ms`; it is the `nth` this simulation started, which makes its address.
pub(super) fn running(pod: &PodView, now_ms: i64, nth: u32) -> Value {
    let now = timestamp(now_ms);
    let [_, b, c, d] = nth.to_be_bytes();
    let ip = format!("10.{b}.{c}.{d}");
    let runs = json!({"running": {"startedAt": now}});
    let init = pod.init_containers.iter().map(|container| {
        if container.sidecar {
            container_status(container, true, runs.clone())
        } else {
            let done = terminated(0, &now, &now);
            container_status(container, true, done)
        }
    });
    patch(
        pod,
        json!({
            "phase": "Running",
            "startTime": now,
            "hostIP": "10.255.255.1",
            "podIP": ip,
            "podIPs": [{"ip": ip}],
            "conditions": conditions(pod, &now, |_| ("True", None)),
            "initContainerStatuses": init.collect::<Vec<_>>(),
            "containerStatuses": pod
                .containers
                .iter()
                .map(|container| container_status(container, true, runs.clone()))
                .collect::<Vec<_>>(),
        }),
    )
}

/// The pod, started at `started_ms`, ends at `now_ms` the way its annotations say.
pub(super) fn ended(pod: &PodView, started_ms: i64, now_ms: i64) -> Value {
    let (started, now) = (timestamp(started_ms), timestamp(now_ms));
    let (phase, reason, code) = if fails(pod) {
        ("Failed", "PodFailed", pod.exit_code.unwrap_or(1))
    } else {
        ("Succeeded", "PodCompleted", pod.exit_code.unwrap_or(0))
    };
    let conditions = conditions(pod, &now, |kind| match kind {
        "Ready" | "ContainersReady" => ("False", Some(reason)),
        _ => ("True", None),
    });
    let statuses = pod
        .containers
        .iter()
        .map(|container| container_status(container, false, terminated(code, &started, &now)));
    patch(
        pod,
        json!({
            "phase": phase,
            "conditions": conditions,
            "containerStatuses": statuses.collect::<Vec<_>>(),
        }),
    )
}

fn patch(pod: &PodView, status: Value) -> Value {
    json!({"metadata": {"resourceVersion": pod.version.to_string()}, "status": status})
}

fn container_status(container: &ContainerView, ready: bool, state: Value) -> Value {
    json!({
        "name": container.name,
        "image": container.image,
        "imageID": container.image,
        "ready": ready,
        "started": ready,
        "restartCount": 0,
        "state": state,
    })
}

fn terminated(code: i32, started: &str, finished: &str) -> Value {
    let reason = if code == 0 { "Completed" } else { "Error" };
    json!({"terminated": {
        "exitCode": code, "reason": reason, "startedAt": started, "finishedAt": finished,
    }})
}

/// The pod's conditions with those of a kubelet set by `value` (status, reason); the time moves only with the status.
fn conditions(
    pod: &PodView,
    now: &str,
    value: impl Fn(&str) -> (&'static str, Option<&'static str>),
) -> Vec<Value> {
    let kept = pod.conditions.iter().filter(|condition| !CONDITIONS.contains(&&*condition.type_));
    let ours = CONDITIONS.iter().map(|kind| {
        let (status, reason) = value(kind);
        let old = pod.conditions.iter().find(|condition| condition.type_ == *kind);
        match old.filter(|old| old.status == status) {
            Some(old) => json!(old),
            None => {
                let mut new = json!({
                    "type": kind, "status": status,
                    "lastProbeTime": null, "lastTransitionTime": now,
                });
                if let Some(reason) = reason {
                    new["reason"] = reason.into();
                }
                new
            }
        }
    });
    ours.chain(kept.map(|condition| json!(condition))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::Pod;

    fn pod(annotations: Value) -> PodView {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": "p", "uid": "u", "resourceVersion": "7", "annotations": annotations},
            "spec": {
                "nodeName": "n",
                "containers": [{"name": "c", "image": "i"}],
                "initContainers": [{"name": "first", "image": "i"},
                    {"name": "side", "image": "i", "restartPolicy": "Always"}],
            },
            "status": {"conditions": [
                {"type": "PodScheduled", "status": "True", "lastTransitionTime": "1970-01-01T00:00:01Z"},
                {"type": "example.com/Gate", "status": "False"},
            ]},
        }))
        .unwrap();
        PodView::of(pod).unwrap()
    }

    fn condition<'a>(body: &'a Value, kind: &str) -> &'a Value {
        let conditions = body["status"]["conditions"].as_array().unwrap();
        conditions.iter().find(|condition| condition["type"] == kind).unwrap()
    }

    #[test]
    fn a_started_pod_is_ready_and_keeps_the_conditions_of_others() {
        let body = running(&pod(json!({})), 5000, 258);
        assert_eq!(body["metadata"]["resourceVersion"], "7");
        assert_eq!(body["status"]["phase"], "Running");
        assert_eq!(body["status"]["startTime"], "1970-01-01T00:00:05Z");
        assert_eq!(body["status"]["podIP"], "10.0.1.2");
        for kind in ["Ready", "ContainersReady", "Initialized"] {
            assert_eq!(condition(&body, kind)["status"], "True");
        }
        assert_eq!(condition(&body, "PodScheduled")["lastTransitionTime"], "1970-01-01T00:00:01Z");
        assert_eq!(condition(&body, "example.com/Gate")["status"], "False");
        let container = &body["status"]["containerStatuses"][0];
        assert_eq!((&container["ready"], &container["restartCount"]), (&json!(true), &json!(0)));
        assert_eq!(container["state"]["running"]["startedAt"], "1970-01-01T00:00:05Z");
        let init = &body["status"]["initContainerStatuses"];
        assert_eq!(init[0]["state"]["terminated"]["reason"], "Completed");
        assert!(init[1]["state"]["running"].is_object());
    }

    #[test]
    fn an_ended_pod_succeeds_or_fails_with_its_code() {
        let body = ended(&pod(json!({})), 5000, 9000);
        let state = &body["status"]["containerStatuses"][0]["state"]["terminated"];
        assert_eq!(body["status"]["phase"], "Succeeded");
        assert_eq!((&state["exitCode"], &state["reason"]), (&json!(0), &json!("Completed")));
        assert_eq!(state["startedAt"], "1970-01-01T00:00:05Z");
        assert_eq!(condition(&body, "Ready")["reason"], "PodCompleted");

        let body = ended(&pod(json!({"rig/exit-code": "137"})), 5000, 9000);
        let state = &body["status"]["containerStatuses"][0]["state"]["terminated"];
        assert_eq!(body["status"]["phase"], "Failed");
        assert_eq!((&state["exitCode"], &state["reason"]), (&json!(137), &json!("Error")));

        let body = ended(&pod(json!({"rig/end-phase": "Failed"})), 5000, 9000);
        let state = &body["status"]["containerStatuses"][0]["state"]["terminated"];
        assert_eq!(state["exitCode"], 1);
    }
}
