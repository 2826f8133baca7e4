//! The pods that a term of affinity or a spread constraint is about: a label selector within namespaces. Terms
//! are compared by content, so that a thousand replicas with the same term share one counter.

use super::namespaces::Namespaces;
use crate::event::{
    LabelSelector, Labels, Operator, PodAffinityTerm, Requirement, SpreadConstraint,
};
use crate::matching::label_selector::{matches, matches_optional};

/// Whose view of a namespace that nobody told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// The term belongs to the pod to place, and its selector is resolved into the namespaces that exist: an
    /// unknown namespace is matched by the empty selector only.
    OfIncoming,
    /// The term belongs to a placed pod and looks at the pod to place: an unknown namespace has no labels.
    OfExisting,
}

/// Which pods.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PodTerm {
    /// Labels of the pod; `None` selects nobody.
    pub selector: Option<LabelSelector>,
    /// Namespaces by name, sorted.
    pub namespaces: Vec<String>,
    /// Further namespaces by label; `None` selects no more.
    pub namespace_selector: Option<LabelSelector>,
}

/// Where to look a term up by the labels of a pod.
#[derive(Clone, Copy, Debug)]
pub enum Anchor<'t> {
    /// It selects nobody.
    Nowhere,
    /// Every pod that it selects has one of these values under this key.
    Label(&'t Requirement),
    /// It may select any pod.
    Anywhere,
}

impl PodTerm {
    /// The pods of an affinity term of a pod in `namespace`.
    pub fn of_affinity(term: &PodAffinityTerm, namespace: &str) -> Self {
        let mut namespaces = term.namespaces.clone();
        if namespaces.is_empty() && term.namespace_selector.is_none() {
            namespaces.push(namespace.to_owned());
        }
        namespaces.sort_unstable();
        namespaces.dedup();
        Self {
            selector: term.selector.clone(),
            namespaces,
            namespace_selector: term.namespace_selector.clone(),
        }
    }

    /// The pods that a spread constraint of a pod in `namespace` counts. Kubernetes counts none for the empty
    /// selector.
    pub fn of_spread(constraint: &SpreadConstraint, namespace: &str) -> Self {
        let selector = &constraint.selector;
        Self {
            selector: (!selector.requirements.is_empty()).then(|| selector.clone()),
            namespaces: vec![namespace.to_owned()],
            namespace_selector: None,
        }
    }

    /// True when a pod with these labels in this namespace is meant.
    pub fn selects(
        &self,
        namespace: &str,
        labels: &Labels,
        namespaces: &Namespaces,
        view: View,
    ) -> bool {
        matches_optional(self.selector.as_ref(), labels)
            && self.selects_namespace(namespace, namespaces, view)
    }

    fn selects_namespace(&self, name: &str, namespaces: &Namespaces, view: View) -> bool {
        if self.namespaces.binary_search_by(|known| known.as_str().cmp(name)).is_ok() {
            return true;
        }
        let Some(selector) = &self.namespace_selector else {
            return false;
        };
        match (namespaces.labels(name), view) {
            (Some(labels), _) => matches(selector, labels),
            (None, View::OfIncoming) => selector.requirements.is_empty(),
            (None, View::OfExisting) => matches(selector, &[]),
        }
    }

    /// True when the labels of namespaces matter to it.
    pub fn reads_namespace_labels(&self) -> bool {
        self.namespace_selector.as_ref().is_some_and(|s| !s.requirements.is_empty())
    }

    /// The narrowest place to look it up: the `In` requirement with the fewest values.
    pub fn anchor(&self) -> Anchor<'_> {
        let Some(selector) = &self.selector else {
            return Anchor::Nowhere;
        };
        selector
            .requirements
            .iter()
            .filter(|requirement| requirement.operator == Operator::In)
            .min_by_key(|requirement| requirement.values.len())
            .map_or(Anchor::Anywhere, Anchor::Label)
    }
}

/// Anchor of a conjunction of terms: the narrowest of theirs.
pub fn joint_anchor(terms: &[PodTerm]) -> Anchor<'_> {
    let width = |anchor: &Anchor<'_>| match anchor {
        Anchor::Nowhere => 0,
        Anchor::Label(requirement) => 1 + requirement.values.len(),
        Anchor::Anywhere => usize::MAX,
    };
    terms.iter().map(PodTerm::anchor).min_by_key(width).unwrap_or(Anchor::Nowhere)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    fn selector(pairs: &[(&str, &str)]) -> LabelSelector {
        let requirements = pairs
            .iter()
            .map(|(k, v)| Requirement {
                key: (*k).to_owned(),
                operator: Operator::In,
                values: vec![(*v).to_owned()],
            })
            .collect();
        LabelSelector { requirements }
    }

    fn affinity(namespaces: &[&str], by_label: Option<LabelSelector>) -> PodTerm {
        let term = PodAffinityTerm {
            selector: Some(selector(&[("app", "web")])),
            namespaces: namespaces.iter().map(|n| (*n).to_owned()).collect(),
            namespace_selector: by_label,
            topology_key: "zone".to_owned(),
        };
        PodTerm::of_affinity(&term, "own")
    }

    fn known() -> Namespaces {
        let mut namespaces = Namespaces::default();
        namespaces.replace("prod", Some(&pairs(&[("env", "prod")])));
        namespaces.replace("own", Some(&pairs(&[])));
        namespaces
    }

    fn selected(term: &PodTerm, namespace: &str, view: View) -> bool {
        term.selects(namespace, &pairs(&[("app", "web")]), &known(), view)
    }

    #[test]
    fn without_namespaces_a_term_is_about_its_owners_namespace() {
        let term = affinity(&[], None);
        for view in [View::OfIncoming, View::OfExisting] {
            assert!(selected(&term, "own", view));
            assert!(!selected(&term, "prod", view));
        }
    }

    #[test]
    fn listed_and_selected_namespaces_add_up_and_replace_the_own_one() {
        let listed = affinity(&["b", "a"], None);
        assert!(selected(&listed, "a", View::OfIncoming));
        assert!(selected(&listed, "b", View::OfIncoming));
        assert!(!selected(&listed, "own", View::OfIncoming));
        let both = affinity(&["a"], Some(selector(&[("env", "prod")])));
        assert!(selected(&both, "a", View::OfIncoming));
        assert!(selected(&both, "prod", View::OfIncoming));
        assert!(!selected(&both, "own", View::OfIncoming));
    }

    #[test]
    fn the_empty_namespace_selector_means_all_namespaces() {
        let term = affinity(&[], Some(LabelSelector::default()));
        for view in [View::OfIncoming, View::OfExisting] {
            for namespace in ["own", "prod", "nobody-told"] {
                assert!(selected(&term, namespace, view));
            }
        }
    }

    #[test]
    fn an_unknown_namespace_has_no_labels_for_placed_pods_and_is_not_there_for_new_ones() {
        let absent = Requirement {
            key: "env".to_owned(),
            operator: Operator::DoesNotExist,
            values: Vec::new(),
        };
        let term = affinity(&[], Some(LabelSelector { requirements: vec![absent] }));
        assert!(selected(&term, "own", View::OfIncoming));
        assert!(!selected(&term, "prod", View::OfExisting));
        assert!(selected(&term, "nobody-told", View::OfExisting));
        assert!(!selected(&term, "nobody-told", View::OfIncoming));
    }

    #[test]
    fn an_absent_selector_selects_nobody_and_an_empty_one_everybody() {
        let mut term = affinity(&[], None);
        term.selector = None;
        assert!(!selected(&term, "own", View::OfIncoming));
        assert!(matches!(term.anchor(), Anchor::Nowhere));
        term.selector = Some(LabelSelector::default());
        assert!(selected(&term, "own", View::OfIncoming));
        assert!(matches!(term.anchor(), Anchor::Anywhere));
    }

    #[test]
    fn a_spread_constraint_with_the_empty_selector_counts_nobody() {
        let constraint = SpreadConstraint {
            max_skew: 1,
            topology_key: "zone".to_owned(),
            hard: true,
            selector: LabelSelector::default(),
            min_domains: 1,
            honor_affinity: true,
            honor_taints: false,
        };
        assert!(!selected(&PodTerm::of_spread(&constraint, "own"), "own", View::OfIncoming));
        let web = SpreadConstraint { selector: selector(&[("app", "web")]), ..constraint };
        assert!(selected(&PodTerm::of_spread(&web, "own"), "own", View::OfIncoming));
        assert!(!selected(&PodTerm::of_spread(&web, "own"), "prod", View::OfIncoming));
    }
}
