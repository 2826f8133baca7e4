//! Amounts of resources: quantities read as Kubernetes counts them, and what a pod asks for.

use std::collections::BTreeMap;

use serde_json::Value;

/// Amount by resource name: `cpu` in milli, everything else in whole units, parts rounded up. Names that are
/// absent count as 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Amounts(pub(super) BTreeMap<String, i128>);

impl Amounts {
    /// Reads a map of quantities; what is no quantity is left out.
    pub(super) fn read(map: &Value) -> Self {
        let entries = map.as_object().into_iter().flatten();
        Self(
            entries
                .filter_map(|(name, value)| Some((name.clone(), amount(name, value)?)))
                .collect(),
        )
    }

    pub(super) fn get(&self, name: &str) -> i128 {
        self.0.get(name).copied().unwrap_or(0)
    }

    pub(super) fn add(&mut self, other: &Self, times: i128) {
        for (name, amount) in &other.0 {
            *self.0.entry(name.clone()).or_insert(0) += amount * times;
        }
    }

    fn raise_to(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            let present = self.0.entry(name.clone()).or_insert(0);
            *present = (*present).max(*amount);
        }
    }

    /// The larger of two in each resource.
    pub(super) fn or_more(mut self, other: &Self) -> Self {
        self.raise_to(other);
        self
    }

    /// Names with an amount above 0.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|(_, amount)| **amount > 0).map(|(name, _)| name.as_str())
    }
}

fn amount(name: &str, value: &Value) -> Option<i128> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    let (numerator, denominator) = fraction(text.trim())?;
    let numerator = if name == "cpu" { numerator.checked_mul(1000)? } else { numerator };
    Some(-(-numerator).div_euclid(denominator))
}

/// A quantity as an exact fraction.
fn fraction(text: &str) -> Option<(i128, i128)> {
    let end = text.find(|c: char| !matches!(c, '0'..='9' | '.' | '+' | '-')).unwrap_or(text.len());
    let (digits, suffix) = text.split_at(end);
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let number: i128 = format!("{whole}{part}").parse().ok()?;
    let scale = 10_i128.checked_pow(u32::try_from(part.len()).ok()?)?;
    let (up, down): (i128, i128) = match suffix {
        "" => (1, 1),
        "n" => (1, 1_000_000_000),
        "u" => (1, 1_000_000),
        "m" => (1, 1_000),
        "Ki" => (1 << 10, 1),
        "Mi" => (1 << 20, 1),
        "Gi" => (1 << 30, 1),
        "Ti" => (1 << 40, 1),
        "Pi" => (1 << 50, 1),
        "Ei" => (1 << 60, 1),
        "k" => (1_000, 1),
        "M" => (1_000_000, 1),
        "G" => (1_000_000_000, 1),
        "T" => (10_i128.pow(12), 1),
        "P" => (10_i128.pow(15), 1),
        "E" => (10_i128.pow(18), 1),
        _ => {
            let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
            let power = 10_i128.checked_pow(exponent.unsigned_abs())?;
            if exponent < 0 { (1, power) } else { (power, 1) }
        }
    };
    Some((number.checked_mul(up)?, scale.checked_mul(down)?))
}

/// What a pod asks for: its containers and sidecars together, or what an init container needs beside the sidecars
/// that were started before it, whichever is more; plus overhead; and one of `pods`. Requests of the pod as a whole
/// stand above those of its containers.
pub(super) fn pod_request(pod: &Value) -> Amounts {
    let spec = &pod["spec"];
    let list = |name: &str| spec[name].as_array().map_or(&[][..], Vec::as_slice);
    let of = |container: &Value| Amounts::read(&container["resources"]["requests"]);
    let mut sidecars = Amounts::default();
    let mut starting = Amounts::default();
    for container in list("initContainers") {
        if container["restartPolicy"] == "Always" {
            sidecars.add(&of(container), 1);
            starting.raise_to(&sidecars);
        } else {
            let mut beside = sidecars.clone();
            beside.add(&of(container), 1);
            starting.raise_to(&beside);
        }
    }
    let mut total = sidecars;
    for container in list("containers") {
        total.add(&of(container), 1);
    }
    total.raise_to(&starting);
    for (name, amount) in Amounts::read(&spec["resources"]["requests"]).0 {
        total.0.insert(name, amount);
    }
    total.add(&Amounts::read(&spec["overhead"]), 1);
    total.0.insert("pods".to_owned(), 1);
    total
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn quantities_are_exact_and_parts_round_up() {
        let amounts = Amounts::read(&json!({
            "cpu": "100.5m", "memory": "1.5Ki", "a": "1e3", "b": "2E", "c": 3, "d": "1m", "e": "x", "f": "5e-1",
        }));
        let expected = [
            ("a", 1000),
            ("b", 2_000_000_000_000_000_000),
            ("c", 3),
            ("cpu", 101),
            ("d", 1),
            ("f", 1),
            ("memory", 1536),
        ];
        assert_eq!(amounts.0, expected.map(|(name, amount)| (name.to_owned(), amount)).into());
    }

    #[test]
    fn a_pod_asks_for_the_most_it_needs_at_any_time() {
        let container = |cpu: &str| json!({"resources": {"requests": {"cpu": cpu}}});
        let mut sidecar = container("1");
        sidecar["restartPolicy"] = json!("Always");
        let pod = json!({"spec": {
            "initContainers": [container("2"), sidecar, container("3")],
            "containers": [container("1"), container("1")],
            "overhead": {"cpu": "250m"},
        }});
        let request = pod_request(&pod);
        assert_eq!((request.get("cpu"), request.get("pods")), (4250, 1));
    }
}
