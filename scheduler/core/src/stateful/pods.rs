//! Placed pods that the stateful filters were told of, findable by node, by namespace and by the labels that
//! live selectors anchor on.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::owned::OwnedTerms;
use super::term::Anchor;
use crate::event::{Labels, PodSpec};

/// A pod on a node, whether bound, being bound or tentatively placed.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacedPod {
    /// Namespace.
    pub namespace: Arc<str>,
    /// Labels.
    pub labels: Arc<Labels>,
    /// Spec; host ports and pod affinity are read.
    pub spec: Arc<PodSpec>,
    /// Slot of its node.
    pub node: u32,
    /// Being deleted: spread constraints do not count it, everything else does.
    pub terminating: bool,
}

/// A placed pod with the terms that it owns, as they were counted.
#[derive(Clone, Debug)]
pub struct Placed {
    /// The pod.
    pub pod: PlacedPod,
    /// Terms of its affinity.
    pub owned: OwnedTerms,
}

/// All placed pods by task. Whoever iterates feeds sums, so the order of the hash maps reaches no answer.
#[derive(Clone, Debug, Default)]
pub struct Pods {
    by_task: FxHashMap<u32, Arc<Placed>>,
    by_node: FxHashMap<u32, Vec<u32>>,
    /// By key and value, for the keys that a selector anchors on.
    by_label: FxHashMap<String, FxHashMap<String, FxHashSet<u32>>>,
}

impl Pods {
    /// Enters a pod under a task that has none.
    pub fn insert(&mut self, task: u32, placed: Arc<Placed>) {
        self.by_node.entry(placed.pod.node).or_default().push(task);
        for (key, value) in placed.pod.labels.iter() {
            if let Some(by_value) = self.by_label.get_mut(key) {
                by_value.entry(value.clone()).or_default().insert(task);
            }
        }
        self.by_task.insert(task, placed);
    }

    /// Takes the pod of a task out.
    pub fn remove(&mut self, task: u32) -> Option<Arc<Placed>> {
        let placed = self.by_task.remove(&task)?;
        if let Some(tasks) = self.by_node.get_mut(&placed.pod.node) {
            if let Some(at) = tasks.iter().position(|&known| known == task) {
                tasks.swap_remove(at);
            }
            if tasks.is_empty() {
                self.by_node.remove(&placed.pod.node);
            }
        }
        for (key, value) in placed.pod.labels.iter() {
            if let Some(by_value) = self.by_label.get_mut(key)
                && let Some(tasks) = by_value.get_mut(value)
            {
                tasks.remove(&task);
                if tasks.is_empty() {
                    by_value.remove(value);
                }
            }
        }
        Some(placed)
    }

    /// The pod of a task.
    pub fn get(&self, task: u32) -> Option<&Arc<Placed>> {
        self.by_task.get(&task)
    }

    /// Pods by task, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &PlacedPod)> {
        self.by_task.iter().map(|(&task, placed)| (task, &placed.pod))
    }

    /// Pods on a node.
    pub fn on_node(&self, slot: u32) -> Vec<Arc<Placed>> {
        let tasks = self.by_node.get(&slot).map_or(&[][..], Vec::as_slice);
        tasks.iter().filter_map(|task| self.by_task.get(task).cloned()).collect()
    }

    /// Pods of a namespace.
    pub fn in_namespace<'p>(&'p self, name: &'p str) -> impl Iterator<Item = &'p Arc<Placed>> {
        self.by_task.values().filter(move |placed| &*placed.pod.namespace == name)
    }

    /// Calls `visit` with every pod that a term with this anchor may select, each once.
    pub fn visit(&mut self, anchor: Anchor<'_>, mut visit: impl FnMut(&Placed)) {
        match anchor {
            Anchor::Nowhere => {}
            Anchor::Anywhere => self.by_task.values().for_each(|placed| visit(placed)),
            Anchor::Label(requirement) => {
                self.ensure_key(&requirement.key);
                let by_value = &self.by_label[&requirement.key];
                let values = &requirement.values;
                for (at, value) in values.iter().enumerate() {
                    if values[..at].contains(value) {
                        continue;
                    }
                    for task in by_value.get(value).into_iter().flatten() {
                        visit(&self.by_task[task]);
                    }
                }
            }
        }
    }

    fn ensure_key(&mut self, key: &str) {
        if self.by_label.contains_key(key) {
            return;
        }
        let mut by_value: FxHashMap<String, FxHashSet<u32>> = FxHashMap::default();
        for (task, placed) in &self.by_task {
            if let Some(value) = crate::matching::labels::value(&placed.pod.labels, key) {
                by_value.entry(value.to_owned()).or_default().insert(*task);
            }
        }
        self.by_label.insert(key.to_owned(), by_value);
    }

    /// Drops the look-up tables of keys that nothing in `used` anchors on.
    pub fn retain_keys(&mut self, used: &FxHashSet<String>) {
        self.by_label.retain(|key, _| used.contains(key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Operator, Requirement};

    fn placed(app: &str, node: u32) -> Arc<Placed> {
        let pod = PlacedPod {
            namespace: "ns".into(),
            labels: Arc::new(vec![("app".to_owned(), app.to_owned())]),
            spec: Arc::default(),
            node,
            terminating: false,
        };
        Arc::new(Placed { pod, owned: OwnedTerms::default() })
    }

    fn found(pods: &mut Pods, values: &[&str]) -> Vec<u32> {
        let requirement = Requirement {
            key: "app".to_owned(),
            operator: Operator::In,
            values: values.iter().map(|v| (*v).to_owned()).collect(),
        };
        let mut nodes = Vec::new();
        pods.visit(Anchor::Label(&requirement), |placed| nodes.push(placed.pod.node));
        nodes.sort_unstable();
        nodes
    }

    #[test]
    fn pods_are_found_by_the_label_of_an_anchor_before_and_after_it_is_indexed() {
        let mut pods = Pods::default();
        pods.insert(1, placed("web", 10));
        pods.insert(2, placed("db", 20));
        assert_eq!(found(&mut pods, &["web", "web", "none"]), [10]);
        pods.insert(3, placed("web", 30));
        assert_eq!(found(&mut pods, &["web", "db"]), [10, 20, 30]);
        pods.remove(1);
        assert_eq!(found(&mut pods, &["web"]), [30]);
        pods.retain_keys(&FxHashSet::default());
        assert_eq!(found(&mut pods, &["web"]), [30]);
    }

    #[test]
    fn a_removed_pod_is_gone_everywhere() {
        let mut pods = Pods::default();
        pods.insert(1, placed("web", 10));
        assert_eq!(found(&mut pods, &["web"]), [10]);
        assert!(pods.remove(1).is_some());
        assert!(pods.remove(1).is_none());
        assert!(pods.on_node(10).is_empty());
        assert_eq!(found(&mut pods, &["web"]), Vec::<u32>::new());
        assert_eq!(pods.in_namespace("ns").count(), 0);
    }
}
