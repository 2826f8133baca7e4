//! One `key operator values` against labels, with the meaning it has in the API machinery of Kubernetes. A
//! requirement that the API machinery refuses to parse holds for nothing.

use super::labels;
use crate::event::{Operator, Requirement};

/// True when a requirement of a node selector term holds for the labels of a node. `Gt` and `Lt` compare
/// decimal 64-bit integers; a label or a listed value that is none makes them false.
pub fn holds_for_node(requirement: &Requirement, node_labels: &[(String, String)]) -> bool {
    holds(requirement, node_labels)
}

/// True when a requirement of a label selector holds for the labels of a pod or namespace. Label selectors
/// know no `Gt` and `Lt`.
pub fn holds_for_object(requirement: &Requirement, object_labels: &[(String, String)]) -> bool {
    !matches!(requirement.operator, Operator::Gt | Operator::Lt)
        && holds(requirement, object_labels)
}

fn holds(requirement: &Requirement, object_labels: &[(String, String)]) -> bool {
    let found = labels::value(object_labels, &requirement.key);
    let values = &requirement.values;
    match requirement.operator {
        Operator::In => {
            found.is_some_and(|value| values.iter().any(|v| v == value)) && legal(values)
        }
        Operator::NotIn => {
            found.is_none_or(|value| values.iter().all(|v| v != value))
                && !values.is_empty()
                && legal(values)
        }
        Operator::Exists => found.is_some() && values.is_empty(),
        Operator::DoesNotExist => found.is_none() && values.is_empty(),
        Operator::Gt => compare(found, values).is_some_and(|(have, limit)| have > limit),
        Operator::Lt => compare(found, values).is_some_and(|(have, limit)| have < limit),
        Operator::Invalid => false,
    }
}

fn legal(values: &[String]) -> bool {
    values.iter().all(|value| labels::is_value(value))
}

fn compare(found: Option<&str>, values: &[String]) -> Option<(i64, i64)> {
    let [limit] = values else {
        return None;
    };
    Some((found?.parse().ok()?, limit.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requirement(key: &str, operator: Operator, values: &[&str]) -> Requirement {
        Requirement {
            key: key.to_owned(),
            operator,
            values: values.iter().map(|v| (*v).to_owned()).collect(),
        }
    }

    fn labels() -> Vec<(String, String)> {
        [("cores", "16"), ("empty", ""), ("neg", "-3"), ("word", "abc"), ("zone", "a")]
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .to_vec()
    }

    #[test]
    fn operators_mean_what_they_mean_in_kubernetes() {
        use Operator::*;
        let cases: &[(&str, Operator, &[&str], bool)] = &[
            ("zone", In, &["b", "a"], true),
            ("zone", In, &["b"], false),
            ("none", In, &["a"], false),
            ("empty", In, &[""], true),
            ("zone", NotIn, &["b"], true),
            ("zone", NotIn, &["a", "b"], false),
            ("none", NotIn, &["a"], true),
            ("zone", Exists, &[], true),
            ("none", Exists, &[], false),
            ("none", DoesNotExist, &[], true),
            ("zone", DoesNotExist, &[], false),
            ("cores", Gt, &["15"], true),
            ("cores", Gt, &["16"], false),
            ("cores", Lt, &["17"], true),
            ("cores", Lt, &["16"], false),
            ("neg", Lt, &["0"], true),
            ("cores", Gt, &["+15"], true),
            ("none", Gt, &["1"], false),
            ("none", Lt, &["1"], false),
        ];
        for (key, operator, values, expected) in cases {
            let requirement = requirement(key, *operator, values);
            assert_eq!(holds_for_node(&requirement, &labels()), *expected, "{requirement:?}");
        }
    }

    #[test]
    fn what_kubernetes_cannot_parse_holds_for_nothing() {
        use Operator::*;
        let cases: &[(&str, Operator, &[&str])] = &[
            ("zone", In, &[]),
            ("none", NotIn, &[]),
            ("zone", In, &["a", "not legal"]),
            ("zone", NotIn, &["not legal"]),
            ("zone", Exists, &["a"]),
            ("none", DoesNotExist, &["a"]),
            ("cores", Gt, &[]),
            ("cores", Gt, &["1", "2"]),
            ("cores", Gt, &["many"]),
            ("cores", Gt, &["1.5"]),
            ("cores", Lt, &["99999999999999999999"]),
            ("word", Gt, &["1"]),
            ("word", Lt, &["1"]),
            ("empty", Gt, &["-1"]),
            ("zone", Invalid, &["a"]),
        ];
        for (key, operator, values) in cases {
            let requirement = requirement(key, *operator, values);
            assert!(!holds_for_node(&requirement, &labels()), "{requirement:?}");
        }
    }

    #[test]
    fn label_selectors_know_no_comparison() {
        let greater = requirement("cores", Operator::Gt, &["1"]);
        assert!(holds_for_node(&greater, &labels()));
        assert!(!holds_for_object(&greater, &labels()));
    }
}
