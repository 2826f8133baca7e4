//! Resource names and amounts as Volcano stores them (spec 2.1): which names count, in which unit, and the
//! vector type with its comparison rules.

mod vector;

pub use vector::{DimensionDefault, Resource, share};

use crate::quantity::Quantity;

/// What a resource name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourceKind {
    /// `cpu`, stored in milli.
    Cpu,
    /// `memory`, stored in bytes.
    Memory,
    /// `pods`, stored whole.
    Pods,
    /// Anything else that Kubernetes accepts as a scalar, stored in milli.
    Scalar,
    /// Does not take part in scheduling.
    Dropped,
}

/// What a name stands for. `count/*` and native names that are no scalars are dropped.
pub fn kind(name: &str) -> ResourceKind {
    match name {
        "cpu" => ResourceKind::Cpu,
        "memory" => ResourceKind::Memory,
        "pods" => ResourceKind::Pods,
        "ephemeral-storage" => ResourceKind::Scalar,
        _ if name.starts_with("count/") || name.starts_with("requests.") => ResourceKind::Dropped,
        _ if name.starts_with("hugepages-") || name.starts_with("attachable-volumes-") => {
            ResourceKind::Scalar
        }
        _ if name
            .split_once('/')
            .is_some_and(|(domain, rest)| is_domain(domain) && is_label(rest)) =>
        {
            ResourceKind::Scalar
        }
        _ => ResourceKind::Dropped,
    }
}

/// Longest name of a resource behind its domain.
const NAME_LIMIT: usize = 63;
/// Longest domain that leaves room for the `requests.` of a quota (Kubernetes derives quota names that way).
const DOMAIN_LIMIT: usize = 253 - "requests.".len();

/// A DNS subdomain.
fn is_domain(text: &str) -> bool {
    let part = |part: &str| {
        is_bounded(part, |c| c.is_ascii_lowercase() || c.is_ascii_digit())
            && part.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-')
    };
    text.len() <= DOMAIN_LIMIT && text.split('.').all(part)
}

/// The name part of a qualified name.
fn is_label(text: &str) -> bool {
    text.len() <= NAME_LIMIT
        && is_bounded(text, |c| c.is_ascii_alphanumeric())
        && text.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.'))
}

/// Starts and ends with a character of the kind; not empty.
fn is_bounded(text: &str, kind: impl Fn(char) -> bool) -> bool {
    text.chars().next().is_some_and(&kind) && text.chars().next_back().is_some_and(&kind)
}

/// A quantity in Volcano's unit for the name, saturating; `None` for names that are dropped.
pub fn stored_amount(name: &str, quantity: &Quantity) -> Option<i64> {
    match kind(name) {
        ResourceKind::Cpu | ResourceKind::Scalar => Some(quantity.milli_value()),
        ResourceKind::Memory | ResourceKind::Pods => Some(quantity.value()),
        ResourceKind::Dropped => None,
    }
}

/// The quantity that a stored amount stands for.
pub fn from_stored(name: &str, amount: i64) -> Quantity {
    match kind(name) {
        ResourceKind::Memory => Quantity::from_bytes(amount),
        ResourceKind::Pods => Quantity::from_value(amount),
        _ => Quantity::from_milli(amount),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_stored_in_volcanos_units_or_dropped() {
        let cases = [
            ("cpu", "1500m", Some(1500)),
            ("memory", "1Gi", Some(1 << 30)),
            ("pods", "110", Some(110)),
            ("nvidia.com/gpu", "8", Some(8000)),
            ("ephemeral-storage", "1k", Some(1_000_000)),
            ("hugepages-2Mi", "2Mi", Some(2_097_152_000)),
            ("attachable-volumes-csi-x", "3", Some(3000)),
            ("count/jobs.batch", "3", None),
            ("storage", "1Gi", None),
            ("/gpu", "1", None),
            ("nvidia.com/a/b", "1", None),
            ("Nvidia.com/gpu", "1", None),
            ("nvidia..com/gpu", "1", None),
            ("nvidia.com/-gpu", "1", None),
            ("nvidia.com/mig-1g.5gb", "1", Some(1000)),
            ("", "1", None),
        ];
        for (name, quantity, stored) in cases {
            assert_eq!(stored_amount(name, &Quantity::parse(quantity).unwrap()), stored, "{name}");
        }
        assert_eq!(from_stored("memory", 1 << 30).to_string(), "1Gi");
        assert_eq!(from_stored("nvidia.com/gpu", 8000).to_string(), "8");
    }
}
