//! Taints of nodes against tolerations of pods.

use crate::event::{Taint, TaintEffect, Toleration};

/// Taint that a cordoned node counts as having.
const UNSCHEDULABLE_KEY: &str = "node.kubernetes.io/unschedulable";

/// True when one toleration covers a taint: effect (empty: any), key (empty: any), and the value unless the
/// operator is `Exists`.
pub fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    covers(toleration, &taint.key, &taint.value, taint.effect)
}

fn covers(toleration: &Toleration, key: &str, value: &str, effect: TaintEffect) -> bool {
    toleration.effect.is_none_or(|tolerated| tolerated == effect)
        && (toleration.key.is_empty() || toleration.key == key)
        && (toleration.exists || toleration.value == value)
}

/// True when the pod may go to a cordoned node: it tolerates
/// `node.kubernetes.io/unschedulable:NoSchedule` (filter NodeUnschedulable, 7.5).
pub fn tolerates_unschedulable(tolerations: &[Toleration]) -> bool {
    tolerations.iter().any(|t| covers(t, UNSCHEDULABLE_KEY, "", TaintEffect::NoSchedule))
}

/// First taint that keeps the pod away: `NoSchedule` or `NoExecute`, not tolerated (filter TaintToleration, 7.5).
pub fn first_untolerated<'t>(tolerations: &[Toleration], taints: &'t [Taint]) -> Option<&'t Taint> {
    taints
        .iter()
        .filter(|taint| taint.effect != TaintEffect::PreferNoSchedule)
        .find(|taint| !tolerations.iter().any(|toleration| tolerates(toleration, taint)))
}

/// Number of `PreferNoSchedule` taints that are not tolerated: the raw TaintToleration score (section 8).
pub fn prefer_no_schedule_count(tolerations: &[Toleration], taints: &[Taint]) -> i64 {
    taints
        .iter()
        .filter(|taint| taint.effect == TaintEffect::PreferNoSchedule)
        .filter(|taint| !tolerations.iter().any(|toleration| tolerates(toleration, taint)))
        .count() as i64
}

#[cfg(test)]
mod tests {
    use TaintEffect::{NoExecute, NoSchedule, PreferNoSchedule};

    use super::*;

    fn taint(key: &str, value: &str, effect: TaintEffect) -> Taint {
        Taint { key: key.to_owned(), value: value.to_owned(), effect }
    }

    fn equal(key: &str, value: &str, effect: Option<TaintEffect>) -> Toleration {
        Toleration { key: key.to_owned(), value: value.to_owned(), exists: false, effect }
    }

    fn exists(key: &str, effect: Option<TaintEffect>) -> Toleration {
        Toleration { key: key.to_owned(), value: String::new(), exists: true, effect }
    }

    #[test]
    fn a_toleration_covers_by_key_value_and_effect() {
        let gpu = taint("gpu", "yes", NoSchedule);
        let cases = [
            (equal("gpu", "yes", Some(NoSchedule)), true),
            (equal("gpu", "yes", None), true),
            (equal("gpu", "no", None), false),
            (equal("gpu", "yes", Some(NoExecute)), false),
            (equal("disk", "yes", None), false),
            (exists("gpu", None), true),
            (exists("gpu", Some(NoSchedule)), true),
            (exists("gpu", Some(PreferNoSchedule)), false),
            (exists("", None), true),
            (exists("", Some(NoExecute)), false),
            (equal("", "yes", None), true),
            (equal("", "", None), false),
        ];
        for (toleration, expected) in cases {
            assert_eq!(tolerates(&toleration, &gpu), expected, "{toleration:?}");
        }
    }

    #[test]
    fn the_first_hard_taint_without_toleration_rejects() {
        let taints = [
            taint("soft", "", PreferNoSchedule),
            taint("gpu", "yes", NoSchedule),
            taint("drain", "", NoExecute),
        ];
        let first = |t: &[Toleration]| first_untolerated(t, &taints).map(|taint| taint.key.clone());
        assert_eq!(first(&[]).as_deref(), Some("gpu"));
        assert_eq!(first(&[exists("gpu", None)]).as_deref(), Some("drain"));
        assert_eq!(first(&[exists("gpu", None), exists("drain", Some(NoExecute))]), None);
        assert_eq!(first(&[exists("", None)]), None);
    }

    #[test]
    fn a_preferred_taint_never_rejects() {
        assert_eq!(first_untolerated(&[], &[taint("soft", "", PreferNoSchedule)]), None);
        assert_eq!(first_untolerated(&[], &[]), None);
    }

    #[test]
    fn a_cordoned_node_needs_the_unschedulable_toleration() {
        assert!(!tolerates_unschedulable(&[]));
        assert!(!tolerates_unschedulable(&[exists("gpu", None)]));
        assert!(!tolerates_unschedulable(&[exists(UNSCHEDULABLE_KEY, Some(NoExecute))]));
        assert!(tolerates_unschedulable(&[exists(UNSCHEDULABLE_KEY, Some(NoSchedule))]));
        assert!(tolerates_unschedulable(&[exists("", None)]));
        assert!(tolerates_unschedulable(&[equal(UNSCHEDULABLE_KEY, "", None)]));
    }

    #[test]
    fn only_preferred_taints_without_toleration_count_for_the_score() {
        let taints = [
            taint("a", "", PreferNoSchedule),
            taint("b", "x", PreferNoSchedule),
            taint("c", "", NoSchedule),
        ];
        assert_eq!(prefer_no_schedule_count(&[], &taints), 2);
        assert_eq!(prefer_no_schedule_count(&[exists("a", None)], &taints), 1);
        assert_eq!(
            prefer_no_schedule_count(&[equal("b", "x", Some(PreferNoSchedule))], &taints),
            1
        );
        assert_eq!(prefer_no_schedule_count(&[exists("a", Some(NoSchedule))], &taints), 2);
        assert_eq!(prefer_no_schedule_count(&[exists("", None)], &taints), 0);
    }
}
