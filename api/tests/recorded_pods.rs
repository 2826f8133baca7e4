//! Replays the pod requests that were recorded from the real Volcano, when the recordings are there. Pods whose kubelet
//! has resized them are left to the scheduler's decoder, which merges status and spec.

#![expect(clippy::unwrap_used, reason = "test code: a panic is the failure report")]

use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use tephra_api::pod_request::{ContainerRequest, PodRequest};
use tephra_api::quantity::Quantity;

fn list(value: &Value) -> Vec<(&str, Quantity)> {
    let fields = value.as_object().into_iter().flatten();
    fields
        .map(|(name, text)| (name.as_str(), Quantity::parse(text.as_str().unwrap()).unwrap()))
        .collect()
}

fn containers(value: &Value) -> Vec<ContainerRequest<'_>> {
    let mut requests = Vec::new();
    for container in value.as_array().into_iter().flatten() {
        requests.push(ContainerRequest {
            requests: list(&container["resources"]["requests"]),
            restartable: container["restartPolicy"] == "Always",
        });
    }
    requests
}

/// Amounts by name; those of 0 are left out, because Volcano always has cpu and memory.
fn expected(result: &Value) -> Vec<(String, i64)> {
    let scalars = result["ScalarResources"].as_object().into_iter().flatten();
    let mut amounts: Vec<(String, i64)> = scalars
        .map(|(name, amount)| (name.clone(), amount))
        .chain([("cpu".to_owned(), &result["MilliCPU"]), ("memory".to_owned(), &result["Memory"])])
        .map(|(name, amount)| (name, amount.as_f64().unwrap() as i64))
        .collect();
    amounts.sort();
    amounts.retain(|(_, amount)| *amount != 0);
    amounts
}

#[test]
fn every_recorded_pod_asks_for_what_volcano_says() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../shared/conformance/functions/api/pod_info.json");
    let Ok(text) = fs::read_to_string(&path) else {
        println!("skipped: no recorded calls at {}", path.display());
        return;
    };
    let recorded: Value = serde_json::from_str(&text).unwrap();
    let (mut replayed, mut left_out) = (0, 0);
    for call in recorded["calls"].as_array().unwrap() {
        let pod = &call["args"]["pod"];
        if call["fn"] != "api.GetPodResourceRequest" || pod.get("status").is_some() {
            left_out += 1;
            continue;
        }
        let spec = &pod["spec"];
        let request = PodRequest {
            containers: containers(&spec["containers"]),
            init_containers: containers(&spec["initContainers"]),
            pod_level: list(&spec["resources"]["requests"]),
            overhead: list(&spec["overhead"]),
        };
        let mut got = request.effective().requests;
        got.retain(|(_, amount)| *amount != 0);
        assert_eq!(got, expected(&call["result"]), "{call}");
        replayed += 1;
    }
    println!("{replayed} recorded pods replayed, {left_out} calls left out");
    assert!(replayed > 0);
}
