//! PodDisruptionBudgets: how many pods of a namespace may be disrupted, as their controller last wrote. Between an eviction of
//! ours and the controller's next word the budget looks larger than it is, so evictions are counted here until then. Written
//! by events only; plugin `pdb` reads.

use rustc_hash::FxHashMap;

use crate::event::{DisruptionBudgetObject, LabelSelector, Labels, ObjectKey};
use crate::matching::label_selector::matches_optional;

/// How long an eviction counts although the budget was not written since: as long as Kubernetes believes in an entry of
/// `status.disruptedPods`. A pod that was replaced at once may leave a budget as it was.
const UNTOLD_MS: i64 = 120_000;

/// One budget.
#[derive(Clone, Debug)]
pub struct Budget {
    name: String,
    selector: Option<LabelSelector>,
    allowed: u32,
    disrupted: Vec<String>,
    /// Times of evictions that the budget's status may not know of yet.
    untold: Vec<i64>,
}

impl Budget {
    /// The budget limits what happens to a pod: it selects it, and does not count it as disrupted already.
    pub fn covers(&self, pod: &str, labels: &Labels) -> bool {
        matches_optional(self.selector.as_ref(), labels)
            && self.disrupted.binary_search_by(|name| name.as_str().cmp(pod)).is_err()
    }

    /// Pods that may still be disrupted, those apart that are being evicted. Below 0 when more than allowed have gone.
    pub fn left(&self, now_ms: i64) -> i64 {
        let untold = self.untold.iter().filter(|&&at| now_ms - at < UNTOLD_MS).count();
        i64::from(self.allowed) - untold as i64
    }
}

/// All budgets.
#[derive(Debug, Default)]
pub struct Budgets {
    by_namespace: FxHashMap<String, Vec<Budget>>,
    /// They may not be read: nobody knows whom they protect.
    pub unreadable: bool,
}

impl Budgets {
    /// Adds or replaces a budget: what its controller wrote now includes the evictions seen before.
    pub fn set(&mut self, object: DisruptionBudgetObject) {
        let DisruptionBudgetObject { key, selector, allowed, disrupted } = object;
        self.remove(&key);
        let list = self.by_namespace.entry(key.namespace).or_default();
        list.push(Budget { name: key.name, selector, allowed, disrupted, untold: Vec::new() });
    }

    /// Forgets a budget.
    pub fn remove(&mut self, key: &ObjectKey) {
        if let Some(list) = self.by_namespace.get_mut(&key.namespace) {
            list.retain(|budget| budget.name != key.name);
            if list.is_empty() {
                self.by_namespace.remove(&key.namespace);
            }
        }
    }

    /// Budgets of a namespace.
    pub fn of(&self, namespace: &str) -> &[Budget] {
        self.by_namespace.get(namespace).map_or(&[], Vec::as_slice)
    }

    /// There are none.
    pub fn is_empty(&self) -> bool {
        self.by_namespace.is_empty()
    }

    /// A pod that was evicted has left, and the budgets that cover it may not say so yet.
    pub fn note_eviction(&mut self, namespace: &str, pod: &str, labels: &Labels, now_ms: i64) {
        for budget in self.by_namespace.get_mut(namespace).into_iter().flatten() {
            if budget.covers(pod, labels) {
                budget.untold.retain(|&at| now_ms - at < UNTOLD_MS);
                budget.untold.push(now_ms);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Operator, Requirement};

    fn budget(allowed: u32, app: &str, disrupted: &[&str]) -> DisruptionBudgetObject {
        let requirement = Requirement {
            key: "app".to_owned(),
            operator: Operator::In,
            values: vec![app.to_owned()],
        };
        DisruptionBudgetObject {
            key: ObjectKey::new("ns", "b"),
            selector: Some(LabelSelector { requirements: vec![requirement] }),
            allowed,
            disrupted: disrupted.iter().map(|&name| name.to_owned()).collect(),
        }
    }

    fn labels(app: &str) -> Labels {
        vec![("app".to_owned(), app.to_owned())]
    }

    #[test]
    fn a_budget_covers_the_pods_it_selects_except_those_it_counts_as_disrupted() {
        let mut budgets = Budgets::default();
        budgets.set(budget(1, "db", &["db-0"]));
        let [budget] = budgets.of("ns") else { panic!("{budgets:?}") };
        assert!(budget.covers("db-1", &labels("db")));
        assert!(!budget.covers("db-0", &labels("db")));
        assert!(!budget.covers("db-1", &labels("web")));
        assert!(!budget.covers("db-1", &Labels::new()));
        assert!(budgets.of("other").is_empty());
    }

    #[test]
    fn an_empty_selector_covers_every_pod_and_an_absent_one_none() {
        let mut budgets = Budgets::default();
        let everything = Some(LabelSelector::default());
        budgets.set(DisruptionBudgetObject { selector: everything, ..budget(1, "", &[]) });
        assert!(budgets.of("ns")[0].covers("a", &Labels::new()));
        budgets.set(DisruptionBudgetObject { selector: None, ..budget(1, "", &[]) });
        assert!(!budgets.of("ns")[0].covers("a", &labels("db")));
    }

    #[test]
    fn an_eviction_counts_until_the_budget_is_written_again_or_two_minutes_have_passed() {
        let mut budgets = Budgets::default();
        budgets.set(budget(2, "db", &[]));
        budgets.note_eviction("ns", "db-1", &labels("db"), 1_000);
        budgets.note_eviction("ns", "web-1", &labels("web"), 1_000);
        assert_eq!(budgets.of("ns")[0].left(1_000), 1);
        assert_eq!(budgets.of("ns")[0].left(120_999), 1);
        assert_eq!(budgets.of("ns")[0].left(121_000), 2);
        budgets.set(budget(1, "db", &[]));
        assert_eq!(budgets.of("ns")[0].left(1_000), 1);
        budgets.remove(&ObjectKey::new("ns", "b"));
        assert!(budgets.is_empty());
    }
}
