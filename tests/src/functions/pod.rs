//! What a pod asks of its node (spec 2.2), read by the scheduler's decoder.

use serde_json::{Value, json};
use tephra_scheduler::decode::{self, Names};

use super::{Answer, Counterpart};

pub(super) const COUNTERPARTS: &[(&str, Counterpart)] = &[
    ("api.GetPodResourceRequest", |call| asked(call.args["pod"].clone(), 1)),
    ("api.GetPodResourceWithoutInitContainers", |call| {
        let mut pod = call.args["pod"].clone();
        if let Some(list) = pod["spec"]["initContainers"].as_array_mut() {
            list.retain(|container| container["restartPolicy"] == "Always");
        }
        // Where the pod itself is not counted.
        asked(pod, 0)
    }),
];

/// The request of a pod that counts as so many.
fn asked(mut pod: Value, pods: i64) -> anyhow::Result<Answer> {
    pod["metadata"] = json!({"name": "p", "namespace": "n", "uid": "u"});
    let object = decode::pod(&serde_json::to_vec(&pod)?, &Names::any())?;
    let mut result = json!({"MilliCPU": 0, "Memory": 0, "MaxTaskNum": 0});
    for (name, amount) in &object.spec.requests {
        match name.as_str() {
            "cpu" => result["MilliCPU"] = json!(amount),
            "memory" => result["Memory"] = json!(amount),
            "pods" if pods == 0 && *amount == 1 => {}
            "pods" => result["ScalarResources"][name] = json!(amount - 1 + pods),
            _ => result["ScalarResources"][name] = json!(amount),
        }
    }
    Ok(Answer { result, ..Answer::default() })
}
