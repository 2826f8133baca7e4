//! Node selectors and node affinity: which nodes a pod's `nodeSelector` and required or preferred terms select.

use super::labels;
use super::requirement::holds_for_node;
use crate::event::{Labels, NodeSelectorTerm, Operator, PodSpec, Requirement};

/// The only field that `matchFields` knows.
const NAME_FIELD: &str = "metadata.name";

/// True when the node carries every pair of a `nodeSelector`.
pub fn matches_node_selector(selector: &Labels, node_labels: &Labels) -> bool {
    selector.iter().all(|(key, value)| labels::value(node_labels, key) == Some(value.as_str()))
}

/// True when a node fulfils every requirement of a term. A term without requirements selects nothing.
/// `node_name` is `None` where the name is not known; field requirements then hold for no node.
pub fn term_matches(
    term: &NodeSelectorTerm,
    node_name: Option<&str>,
    node_labels: &Labels,
) -> bool {
    !(term.expressions.is_empty() && term.fields.is_empty())
        && term.expressions.iter().all(|requirement| holds_for_node(requirement, node_labels))
        && term.fields.iter().all(|requirement| field_holds(requirement, node_name))
}

/// Kubernetes takes exactly one value per field requirement, and only `In` and `NotIn`.
fn field_holds(requirement: &Requirement, node_name: Option<&str>) -> bool {
    let (Some(name), [value]) = (node_name, requirement.values.as_slice()) else {
        return false;
    };
    // A field that does not exist reads as the empty text.
    let field = if requirement.key == NAME_FIELD { name } else { "" };
    match requirement.operator {
        Operator::In => field == value,
        Operator::NotIn => field != value,
        _ => false,
    }
}

/// True when any term selects the node.
pub fn any_term_matches(
    terms: &[NodeSelectorTerm],
    node_name: Option<&str>,
    node_labels: &Labels,
) -> bool {
    terms.iter().any(|term| term_matches(term, node_name, node_labels))
}

/// Filter NodeAffinity (7.5): the `nodeSelector` holds, and so does one of the required terms if there are any.
pub fn required_affinity_matches(
    spec: &PodSpec,
    node_name: Option<&str>,
    node_labels: &Labels,
) -> bool {
    matches_node_selector(&spec.node_selector, node_labels)
        && (spec.required_node_terms.is_empty()
            || any_term_matches(&spec.required_node_terms, node_name, node_labels))
}

/// PreFilter of NodeAffinity (7.5): every term pins the pod to names, and no term can be met by any name.
/// Such a pod is refused with [`super::rejection::TERMS_CONFLICT`] before any node is looked at.
pub fn terms_conflict(terms: &[NodeSelectorTerm]) -> bool {
    !terms.is_empty() && terms.iter().all(names_are_contradicting)
}

fn names_are_contradicting(term: &NodeSelectorTerm) -> bool {
    let mut pins = term
        .fields
        .iter()
        .filter(|field| field.key == NAME_FIELD && field.operator == Operator::In)
        .map(|field| &field.values);
    let Some(first) = pins.next() else {
        return false;
    };
    let rest: Vec<_> = pins.collect();
    !first.iter().any(|name| rest.iter().all(|names| names.contains(name)))
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

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    fn expressions(requirements: Vec<Requirement>) -> NodeSelectorTerm {
        NodeSelectorTerm { expressions: requirements, fields: Vec::new() }
    }

    fn fields(requirements: Vec<Requirement>) -> NodeSelectorTerm {
        NodeSelectorTerm { expressions: Vec::new(), fields: requirements }
    }

    #[test]
    fn a_node_selector_needs_every_pair_with_its_value() {
        let node = labels(&[("disk", "ssd"), ("zone", "a")]);
        assert!(matches_node_selector(&labels(&[]), &node));
        assert!(matches_node_selector(&labels(&[("disk", "ssd"), ("zone", "a")]), &node));
        assert!(!matches_node_selector(&labels(&[("disk", "hdd")]), &node));
        assert!(!matches_node_selector(&labels(&[("gpu", "")]), &node));
    }

    #[test]
    fn a_term_without_requirements_selects_nothing() {
        assert!(!term_matches(&NodeSelectorTerm::default(), Some("n1"), &labels(&[])));
        let spec = PodSpec {
            required_node_terms: vec![NodeSelectorTerm::default()],
            ..PodSpec::default()
        };
        assert!(!required_affinity_matches(&spec, Some("n1"), &labels(&[("zone", "a")])));
    }

    #[test]
    fn terms_are_alternatives_and_requirements_of_a_term_add_up() {
        let spec = PodSpec {
            required_node_terms: vec![
                expressions(vec![
                    requirement("zone", Operator::In, &["a"]),
                    requirement("disk", Operator::Exists, &[]),
                ]),
                expressions(vec![requirement("gpu", Operator::Gt, &["3"])]),
            ],
            ..PodSpec::default()
        };
        let fits = |pairs: &[(&str, &str)]| required_affinity_matches(&spec, None, &labels(pairs));
        assert!(fits(&[("disk", "ssd"), ("zone", "a")]));
        assert!(fits(&[("gpu", "4")]));
        assert!(!fits(&[("zone", "a")]));
        assert!(!fits(&[("gpu", "3")]));
        assert!(!fits(&[("gpu", "four")]));
    }

    #[test]
    fn node_selector_and_affinity_must_both_hold() {
        let spec = PodSpec {
            node_selector: labels(&[("disk", "ssd")]),
            required_node_terms: vec![expressions(vec![requirement("zone", Operator::In, &["a"])])],
            ..PodSpec::default()
        };
        let fits = |pairs: &[(&str, &str)]| required_affinity_matches(&spec, None, &labels(pairs));
        assert!(fits(&[("disk", "ssd"), ("zone", "a")]));
        assert!(!fits(&[("disk", "ssd")]));
        assert!(!fits(&[("zone", "a")]));
    }

    #[test]
    fn no_requirement_fits_every_node() {
        assert!(required_affinity_matches(&PodSpec::default(), None, &labels(&[])));
    }

    #[test]
    fn a_term_that_kubernetes_cannot_parse_leaves_the_others_alone() {
        let spec = PodSpec {
            required_node_terms: vec![
                expressions(vec![requirement("gpu", Operator::Lt, &["many"])]),
                expressions(vec![requirement("zone", Operator::In, &["a"])]),
            ],
            ..PodSpec::default()
        };
        assert!(required_affinity_matches(&spec, None, &labels(&[("gpu", "1"), ("zone", "a")])));
        assert!(!required_affinity_matches(&spec, None, &labels(&[("gpu", "1")])));
    }

    #[test]
    fn fields_select_nodes_by_name() {
        let is_n1 = fields(vec![requirement("metadata.name", Operator::In, &["n1"])]);
        let not_n1 = fields(vec![requirement("metadata.name", Operator::NotIn, &["n1"])]);
        let none = labels(&[]);
        assert!(term_matches(&is_n1, Some("n1"), &none));
        assert!(!term_matches(&is_n1, Some("n2"), &none));
        assert!(!term_matches(&not_n1, Some("n1"), &none));
        assert!(term_matches(&not_n1, Some("n2"), &none));
        assert!(!term_matches(&is_n1, None, &none));
    }

    #[test]
    fn fields_take_one_value_and_only_membership() {
        let none = labels(&[]);
        for bad in [
            requirement("metadata.name", Operator::In, &["n1", "n2"]),
            requirement("metadata.name", Operator::In, &[]),
            requirement("metadata.name", Operator::Exists, &[]),
            requirement("metadata.name", Operator::Gt, &["n0"]),
            requirement("metadata.namespace", Operator::In, &["n1"]),
        ] {
            assert!(!term_matches(&fields(vec![bad.clone()]), Some("n1"), &none), "{bad:?}");
        }
    }

    #[test]
    fn fields_and_expressions_of_a_term_add_up() {
        let term = NodeSelectorTerm {
            expressions: vec![requirement("zone", Operator::In, &["a"])],
            fields: vec![requirement("metadata.name", Operator::In, &["n1"])],
        };
        assert!(term_matches(&term, Some("n1"), &labels(&[("zone", "a")])));
        assert!(!term_matches(&term, Some("n1"), &labels(&[])));
        assert!(!term_matches(&term, Some("n2"), &labels(&[("zone", "a")])));
    }

    #[test]
    fn terms_conflict_only_when_each_of_them_names_no_possible_node() {
        let pin = |names: &[&str]| requirement("metadata.name", Operator::In, names);
        let contradicting = fields(vec![pin(&["n1"]), pin(&["n2"])]);
        assert!(terms_conflict(std::slice::from_ref(&contradicting)));
        assert!(!terms_conflict(&[contradicting.clone(), fields(vec![pin(&["n1"])])]));
        assert!(!terms_conflict(&[
            contradicting.clone(),
            expressions(vec![requirement("zone", Operator::Exists, &[])])
        ]));
        assert!(terms_conflict(&[contradicting, fields(vec![pin(&["a"]), pin(&["b"])])]));
        assert!(!terms_conflict(&[fields(vec![pin(&["n1"])])]));
        assert!(!terms_conflict(&[]));
        assert!(terms_conflict(&[fields(vec![pin(&[])])]));
    }
}
