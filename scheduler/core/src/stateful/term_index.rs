//! Finds the terms that may select a pod by the pod's labels, without trying them all.

use rustc_hash::FxHashMap;

use super::term::Anchor;
use crate::event::Labels;

/// Numbers of terms by the label that a selected pod must have.
#[derive(Clone, Debug, Default)]
pub struct TermIndex {
    by_label: FxHashMap<String, FxHashMap<String, Vec<u32>>>,
    anywhere: Vec<u32>,
}

impl TermIndex {
    /// Enters a term under its anchor. A term that selects nobody is not entered.
    pub fn insert(&mut self, anchor: Anchor<'_>, id: u32) {
        match anchor {
            Anchor::Nowhere => {}
            Anchor::Anywhere => self.anywhere.push(id),
            Anchor::Label(requirement) => {
                for value in &requirement.values {
                    let by_value = self.by_label.entry(requirement.key.clone()).or_default();
                    let ids = by_value.entry(value.clone()).or_default();
                    if ids.last() != Some(&id) {
                        ids.push(id);
                    }
                }
            }
        }
    }

    /// Takes a term out; `anchor` is the one it was entered with.
    pub fn remove(&mut self, anchor: Anchor<'_>, id: u32) {
        match anchor {
            Anchor::Nowhere => {}
            Anchor::Anywhere => self.anywhere.retain(|&known| known != id),
            Anchor::Label(requirement) => {
                let Some(by_value) = self.by_label.get_mut(&requirement.key) else {
                    return;
                };
                for value in &requirement.values {
                    if let Some(ids) = by_value.get_mut(value) {
                        ids.retain(|&known| known != id);
                        if ids.is_empty() {
                            by_value.remove(value);
                        }
                    }
                }
                if by_value.is_empty() {
                    self.by_label.remove(&requirement.key);
                }
            }
        }
    }

    /// Terms that may select a pod with these labels, each once.
    pub fn candidates<'i>(&'i self, labels: &'i Labels) -> impl Iterator<Item = u32> + 'i {
        let labels = if self.by_label.is_empty() { &[] } else { labels.as_slice() };
        labels
            .iter()
            .filter_map(|(key, value)| self.by_label.get(key)?.get(value))
            .flatten()
            .chain(&self.anywhere)
            .copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Operator, Requirement};

    fn one_of(key: &str, values: &[&str]) -> Requirement {
        Requirement {
            key: key.to_owned(),
            operator: Operator::In,
            values: values.iter().map(|v| (*v).to_owned()).collect(),
        }
    }

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    #[test]
    fn only_terms_that_share_a_label_with_the_pod_are_candidates() {
        let (web, tier) = (one_of("app", &["web", "api", "web"]), one_of("tier", &["1"]));
        let mut index = TermIndex::default();
        index.insert(Anchor::Label(&web), 0);
        index.insert(Anchor::Label(&tier), 1);
        index.insert(Anchor::Anywhere, 2);
        index.insert(Anchor::Nowhere, 3);
        let found = |l: &[(&str, &str)]| index.candidates(&labels(l)).collect::<Vec<_>>();
        assert_eq!(found(&[("app", "web")]), [0, 2]);
        assert_eq!(found(&[("app", "api"), ("tier", "1")]), [0, 1, 2]);
        assert_eq!(found(&[("app", "db")]), [2]);
        assert_eq!(found(&[]), [2]);
    }

    #[test]
    fn a_removed_term_leaves_nothing_behind() {
        let web = one_of("app", &["web", "api"]);
        let mut index = TermIndex::default();
        index.insert(Anchor::Label(&web), 0);
        index.insert(Anchor::Anywhere, 1);
        index.remove(Anchor::Label(&web), 0);
        index.remove(Anchor::Anywhere, 1);
        assert!(index.by_label.is_empty() && index.anywhere.is_empty());
    }
}
