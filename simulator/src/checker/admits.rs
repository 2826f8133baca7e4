//! Whether a node lets a pod in, room aside: cordon, taints, node selector.

use serde_json::Value;

use super::objects::{Node, Pod};

const CORDON: &str = "node.kubernetes.io/unschedulable";

/// Whether the node lets the pod in; otherwise why not.
pub(super) fn admits(node: &Node, pod: &Pod) -> Result<(), String> {
    let tolerations = pod.tolerations.as_array().map_or(&[][..], Vec::as_slice);
    let tolerates = |key: &str, value: &str, effect: &str| {
        tolerations.iter().any(|toleration| {
            let given = |field: &str| toleration[field].as_str().unwrap_or("");
            let same_effect = given("effect").is_empty() || given("effect") == effect;
            let exists = given("operator") == "Exists";
            let same_key = given("key") == key || (given("key").is_empty() && exists);
            same_effect && same_key && (exists || given("value") == value)
        })
    };
    if node.unschedulable && !tolerates(CORDON, "", "NoSchedule") {
        return Err("it is cordoned".to_owned());
    }
    for taint in node.taints.as_array().into_iter().flatten() {
        let of = |field: &str| taint[field].as_str().unwrap_or("");
        let (key, value, effect) = (of("key"), of("value"), of("effect"));
        if matches!(effect, "NoSchedule" | "NoExecute") && !tolerates(key, value, effect) {
            return Err(format!("the pod does not tolerate its taint {key}"));
        }
    }
    for (key, wanted) in pod.selector.as_object().into_iter().flatten() {
        if node.labels.get(key).unwrap_or(&Value::Null) != wanted {
            return Err(format!("it lacks the label {key}={wanted}"));
        }
    }
    Ok(())
}
