//! What a pod counts for in a quota, times the minimum of its group: the group's `minResources`.
//!
//! Keys as Volcano writes them: `count/pods` and `pods`; requests of cpu, memory and ephemeral storage plain and as
//! `requests.`, limits as `limits.`; huge pages and extended resources plain and as `requests.`. Aggregation is
//! that of Kubernetes: containers summed, init containers by their maximum, sidecars beside both, then pod-level values and
//! overhead.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{Container, Pod, PodSpec, ResourceRequirements},
    apimachinery::pkg::api::resource::Quantity as Wire,
};
use tephra_api::quantity::Quantity;

type Amounts = BTreeMap<String, Quantity>;
type WireList = BTreeMap<String, Wire>;

/// Usage of `minimum` pods like `pod`. Quantities that cannot be read count as absent (the API server refuses them).
pub(super) fn of_group(pod: &Pod, minimum: i32) -> Amounts {
    let minimum = minimum.max(0).unsigned_abs();
    of_pod(pod).into_iter().map(|(name, amount)| (name, times(amount, minimum))).collect()
}

/// `amount` times `count`, saturating, by doubling.
fn times(amount: Quantity, mut count: u32) -> Quantity {
    let (mut product, mut doubled) = (Quantity::default(), amount);
    while count > 0 {
        if count % 2 == 1 {
            product += doubled;
        }
        doubled = doubled + doubled;
        count /= 2;
    }
    // No server accepts more than 63 bits of units.
    if product.value() == i64::MAX { Quantity::from_value(i64::MAX) } else { product }
}

fn of_pod(pod: &Pod) -> Amounts {
    let one = Quantity::from_value(1);
    let mut usage = Amounts::from([("count/pods".into(), one), ("pods".into(), one)]);
    let Some(spec) = &pod.spec else { return usage };
    for (name, amount) in aggregate(spec, Half::Requests) {
        let quota_key = match name.as_str() {
            "cpu" | "memory" | "ephemeral-storage" => true,
            name => name.starts_with("hugepages-") || extended(name),
        };
        if quota_key {
            usage.insert(format!("requests.{name}"), amount);
            usage.insert(name, amount);
        }
    }
    for (name, amount) in aggregate(spec, Half::Limits) {
        if matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage") {
            usage.insert(format!("limits.{name}"), amount);
        }
    }
    usage
}

/// Which half of the resource requirements is aggregated.
#[derive(Clone, Copy, PartialEq)]
enum Half {
    Requests,
    Limits,
}

impl Half {
    fn read(self, of: Option<&ResourceRequirements>) -> Amounts {
        read(of.and_then(|of| match self {
            Half::Requests => of.requests.as_ref(),
            Half::Limits => of.limits.as_ref(),
        }))
    }
}

fn aggregate(spec: &PodSpec, half: Half) -> Amounts {
    let of = |container: &Container| half.read(container.resources.as_ref());
    let mut total = Amounts::new();
    for container in &spec.containers {
        add(&mut total, &of(container));
    }
    let (mut sidecars, mut largest_init) = (Amounts::new(), Amounts::new());
    for container in spec.init_containers.iter().flatten() {
        let mut at_this_step = of(container);
        if container.restart_policy.as_deref() == Some("Always") {
            add(&mut total, &at_this_step);
            add(&mut sidecars, &at_this_step);
            at_this_step.clone_from(&sidecars);
        } else {
            add(&mut at_this_step, &sidecars);
        }
        raise(&mut largest_init, &at_this_step);
    }
    raise(&mut total, &largest_init);
    for (name, amount) in half.read(spec.resources.as_ref()) {
        if matches!(name.as_str(), "cpu" | "memory") || name.starts_with("hugepages-") {
            total.insert(name, amount); // a pod-level value stands for the sum
        }
    }
    let mut overhead = read(spec.overhead.as_ref());
    if half == Half::Limits {
        overhead.retain(|name, _| total.contains_key(name)); // no limit stays no limit
    }
    add(&mut total, &overhead);
    total
}

fn read(list: Option<&WireList>) -> Amounts {
    let read =
        |(name, text): (&String, &Wire)| Some((name.clone(), Quantity::parse(&text.0).ok()?));
    list.into_iter().flatten().filter_map(read).collect()
}

fn add(sum: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        let sum = sum.entry(name.clone()).or_default();
        *sum += *amount;
    }
}

fn raise(to_maximum: &mut Amounts, other: &Amounts) {
    for (name, amount) in other {
        let maximum = to_maximum.entry(name.clone()).or_insert(*amount);
        *maximum = (*maximum).max(*amount);
    }
}

/// A resource of a device plugin or the like: with a domain that is not Kubernetes' own.
fn extended(name: &str) -> bool {
    name.contains('/') && !name.contains("kubernetes.io/") && !name.starts_with("requests.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn usage(spec: Value, minimum: i32) -> BTreeMap<String, String> {
        let pod: Pod = serde_json::from_value(json!({ "spec": spec })).unwrap();
        of_group(&pod, minimum).into_iter().map(|(name, q)| (name, q.to_string())).collect()
    }

    fn map(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
        entries.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
    }

    #[test]
    fn requests_count_plain_and_prefixed_limits_only_prefixed() {
        let spec = json!({"containers": [{"name": "c", "resources": {
            "requests": {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1", "hugepages-2Mi": "2000",
                "kubernetes.io/odd": "1"},
            "limits": {"cpu": "2", "nvidia.com/gpu": "1"},
        }}]});
        let expected = map(&[
            ("count/pods", "2"),
            ("pods", "2"),
            ("cpu", "2"),
            ("requests.cpu", "2"),
            ("memory", "2Gi"),
            ("requests.memory", "2Gi"),
            ("nvidia.com/gpu", "2"),
            ("requests.nvidia.com/gpu", "2"),
            ("hugepages-2Mi", "4k"),
            ("requests.hugepages-2Mi", "4k"),
            ("limits.cpu", "4"),
        ]);
        assert_eq!(usage(spec, 2), expected);
    }

    #[test]
    fn init_containers_count_by_their_maximum_and_sidecars_beside_everything() {
        let requests = |cpu: &str| json!({"requests": {"cpu": cpu}});
        let spec = json!({
            "containers": [{"name": "a", "resources": requests("1")},
                {"name": "b", "resources": requests("500m")}],
            "initContainers": [
                {"name": "sidecar", "restartPolicy": "Always", "resources": requests("1")},
                {"name": "big", "resources": requests("3")},
            ],
        });
        // containers 1.5 + sidecar 1 = 2.5, against sidecar 1 + init 3 = 4
        assert_eq!(usage(spec, 1)["cpu"], "4");
    }

    #[test]
    fn pod_level_values_replace_the_sum_and_overhead_comes_on_top() {
        let spec = json!({
            "containers": [{"name": "c", "resources": {"requests": {"cpu": "1", "memory": "1k"}}}],
            "resources": {"requests": {"cpu": "3"}, "limits": {"cpu": "5"}},
            "overhead": {"cpu": "250m", "memory": "500"},
        });
        let usage = usage(spec, 1);
        assert_eq!(usage["requests.cpu"], "3250m");
        assert_eq!(usage["memory"], "1500");
        assert_eq!(usage["limits.cpu"], "5250m");
        assert_eq!(usage.get("limits.memory"), None);
    }

    #[test]
    fn absurd_amounts_saturate_and_a_minimum_of_zero_is_zero() {
        let spec = json!({"containers": [
            {"name": "a", "resources": {"requests": {"memory": "8E"}}},
            {"name": "b", "resources": {"requests": {"memory": "8E"}}},
        ]});
        assert_eq!(usage(spec.clone(), i32::MAX)["memory"], i64::MAX.to_string());
        assert_eq!(usage(spec, 0)["memory"], "0");
    }
}
