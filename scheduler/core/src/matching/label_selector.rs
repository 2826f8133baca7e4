//! Label selectors over pods and namespaces (`metav1.LabelSelector`).

use super::requirement::holds_for_object;
use crate::event::LabelSelector;

/// True when every requirement holds. The empty selector matches everything.
pub fn matches(selector: &LabelSelector, labels: &[(String, String)]) -> bool {
    selector.requirements.iter().all(|requirement| holds_for_object(requirement, labels))
}

/// As [`matches`], where an absent selector matches nothing.
pub fn matches_optional(selector: Option<&LabelSelector>, labels: &[(String, String)]) -> bool {
    selector.is_some_and(|selector| matches(selector, labels))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Operator, Requirement};

    fn requirement(key: &str, operator: Operator, values: &[&str]) -> Requirement {
        Requirement {
            key: key.to_owned(),
            operator,
            values: values.iter().map(|v| (*v).to_owned()).collect(),
        }
    }

    fn labels(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    #[test]
    fn the_empty_selector_matches_everything_and_an_absent_one_nothing() {
        let everything = LabelSelector::default();
        for pod in [labels(&[]), labels(&[("app", "web")])] {
            assert!(matches(&everything, &pod));
            assert!(matches_optional(Some(&everything), &pod));
            assert!(!matches_optional(None, &pod));
        }
    }

    #[test]
    fn all_requirements_must_hold() {
        let selector = LabelSelector {
            requirements: vec![
                requirement("app", Operator::In, &["web", "api"]),
                requirement("track", Operator::NotIn, &["canary"]),
            ],
        };
        assert!(matches(&selector, &labels(&[("app", "web")])));
        assert!(matches(&selector, &labels(&[("app", "api"), ("track", "stable")])));
        assert!(!matches(&selector, &labels(&[("app", "web"), ("track", "canary")])));
        assert!(!matches(&selector, &labels(&[("track", "stable")])));
    }

    #[test]
    fn an_operator_that_nobody_knows_matches_nothing() {
        let selector =
            LabelSelector { requirements: vec![requirement("app", Operator::Invalid, &["web"])] };
        assert!(!matches(&selector, &labels(&[("app", "web")])));
    }
}
