//! Raw static scores of a node and their normalisation over a set of nodes (section 8). The caller gathers the
//! raw values of its candidate nodes, takes the maximum, and maps each through the `normalize_*` function.

use super::MAX_NODE_SCORE;
use super::node_selector::term_matches;
pub use super::taints::prefer_no_schedule_count;
use crate::event::{Labels, PodSpec};

/// Raw NodeAffinity score: the sum of the weights of preferred terms that select the node.
pub fn preferred_node_affinity(spec: &PodSpec, node_name: &str, node_labels: &Labels) -> i64 {
    spec.preferred_node_terms
        .iter()
        .filter(|(_, term)| term_matches(term, Some(node_name), node_labels))
        .map(|(weight, _)| i64::from(*weight))
        .sum()
}

/// NodeAffinity score 0..100: `raw * 100 // max`, where `max` is the largest raw value of the candidates.
/// A `max` of 0 leaves all at 0.
pub fn normalize_affinity(raw: i64, max: i64) -> i64 {
    if max > 0 { raw * MAX_NODE_SCORE / max } else { raw }
}

/// TaintToleration score 0..100: fewer taints are better, `100 - raw * 100 // max`; 100 for every node when no
/// candidate has such a taint.
pub fn normalize_taints(raw: i64, max: i64) -> i64 {
    if max > 0 { MAX_NODE_SCORE - raw * MAX_NODE_SCORE / max } else { MAX_NODE_SCORE }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{NodeSelectorTerm, Operator, Requirement};

    fn prefers(key: &str, weight: i32) -> (i32, NodeSelectorTerm) {
        let requirement =
            Requirement { key: key.to_owned(), operator: Operator::Exists, values: Vec::new() };
        (weight, NodeSelectorTerm { expressions: vec![requirement], fields: Vec::new() })
    }

    fn labels(keys: &[&str]) -> Labels {
        keys.iter().map(|k| ((*k).to_owned(), String::new())).collect()
    }

    #[test]
    fn weights_of_matching_preferred_terms_add_up() {
        let spec = PodSpec {
            preferred_node_terms: vec![
                prefers("a", 2),
                prefers("b", 5),
                (9, NodeSelectorTerm::default()),
            ],
            ..PodSpec::default()
        };
        assert_eq!(preferred_node_affinity(&spec, "n", &labels(&["a", "b"])), 7);
        assert_eq!(preferred_node_affinity(&spec, "n", &labels(&["b"])), 5);
        assert_eq!(preferred_node_affinity(&spec, "n", &labels(&[])), 0);
    }

    #[test]
    fn preferred_terms_may_name_a_node() {
        let pin = Requirement {
            key: "metadata.name".to_owned(),
            operator: Operator::In,
            values: vec!["n1".to_owned()],
        };
        let spec = PodSpec {
            preferred_node_terms: vec![(
                3,
                NodeSelectorTerm { expressions: Vec::new(), fields: vec![pin] },
            )],
            ..PodSpec::default()
        };
        assert_eq!(preferred_node_affinity(&spec, "n1", &labels(&[])), 3);
        assert_eq!(preferred_node_affinity(&spec, "n2", &labels(&[])), 0);
    }

    #[test]
    fn affinity_is_scaled_to_the_best_candidate_and_truncated() {
        let scaled = [0, 1, 2, 3].map(|raw| normalize_affinity(raw, 3));
        assert_eq!(scaled, [0, 33, 66, 100]);
        assert_eq!(normalize_affinity(0, 0), 0);
    }

    #[test]
    fn taints_are_scaled_the_other_way_round() {
        let scaled = [0, 1, 2, 3].map(|raw| normalize_taints(raw, 3));
        assert_eq!(scaled, [100, 67, 34, 0]);
    }

    #[test]
    fn without_preferred_taints_every_node_gets_the_full_taint_score() {
        assert_eq!(normalize_taints(0, 0), 100);
    }
}
