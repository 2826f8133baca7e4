//! Inter-pod affinity and topology spread, as filters and as scores, counted anew over all pods at every call.

use std::collections::BTreeMap;

use tephra_core::event::{LabelSelector, Labels, PodAffinityTerm, SpreadConstraint};

use super::filter::{holds, label, selects, taints_tolerated};
use super::session::{Session, Task};
use super::world::Status;

const HOSTNAME: &str = "kubernetes.io/hostname";

impl Session {
    /// Every pod that holds a known node, or is promised one.
    pub fn placed(&self) -> impl Iterator<Item = (&Task, &Labels)> {
        self.tasks.iter().filter_map(|task| {
            let node = self.nodes[task.node?].as_ref()?;
            Some((task, &node.object.labels))
        })
    }

    /// A term of a pod in namespace `own` selects a pod.
    pub fn term_selects_pod(&self, term: &PodAffinityTerm, own: &str, pod: &Task) -> bool {
        let Some(selector) = &term.selector else { return false };
        let in_namespace = if term.namespaces.is_empty() && term.namespace_selector.is_none() {
            pod.namespace == own
        } else {
            let no_labels = Labels::new();
            let labels = self.namespaces.get(&pod.namespace).unwrap_or(&no_labels);
            term.namespaces.contains(&pod.namespace)
                || term.namespace_selector.as_ref().is_some_and(|s| selected(s, labels))
        };
        in_namespace && selected(selector, &pod.labels)
    }

    /// Filter InterPodAffinity.
    pub fn affinity_allows(&self, task: usize, slot: usize) -> bool {
        let (task, Some(node)) = (&self.tasks[task], &self.nodes[slot]) else { return false };
        if !self.affinity_in_use {
            return true;
        }
        let labels = &node.object.labels;
        let own = &task.spec.pod_affinity;
        if !own.is_empty() {
            let matching: Vec<&Labels> = self
                .placed()
                .filter(|(pod, _)| {
                    own.iter().all(|t| self.term_selects_pod(t, &task.namespace, pod))
                })
                .map(|(_, labels)| labels)
                .collect();
            if own.iter().any(|term| label(labels, &term.topology_key).is_none()) {
                return false;
            }
            let everywhere = own.iter().all(|term| {
                matching.iter().any(|there| shares_domain(&term.topology_key, there, labels))
            });
            let nowhere = !own.iter().any(|term| {
                matching.iter().any(|there| label(there, &term.topology_key).is_some())
            });
            let first = nowhere
                && own.iter().all(|term| self.term_selects_pod(term, &task.namespace, task));
            if !everywhere && !first {
                return false;
            }
        }
        self.placed().all(|(pod, there)| {
            let refuses = |term: &PodAffinityTerm, of: &Task, whom: &Task| {
                shares_domain(&term.topology_key, there, labels)
                    && self.term_selects_pod(term, &of.namespace, whom)
            };
            !task.spec.pod_anti_affinity.iter().any(|term| refuses(term, task, pod))
                && !pod.spec.pod_anti_affinity.iter().any(|term| refuses(term, pod, task))
        })
    }

    /// Score InterPodAffinity 0..100 of each node, normalised over them.
    pub fn affinity_scores(&self, task: usize, slots: &[usize]) -> Vec<i64> {
        let task = &self.tasks[task];
        if !self.affinity_in_use {
            return vec![0; slots.len()];
        }
        let mut sums: BTreeMap<(&str, &str), i64> = BTreeMap::new();
        for (pod, there) in self.placed() {
            let own = task.spec.preferred_pod_affinity.iter().map(|term| (term, task, pod));
            let theirs = pod.spec.preferred_pod_affinity.iter().map(|term| (term, pod, task));
            for ((weight, term), of, whom) in own.chain(theirs) {
                if let Some(value) = label(there, &term.topology_key)
                    && self.term_selects_pod(term, &of.namespace, whom)
                {
                    *sums.entry((&term.topology_key, value)).or_default() += i64::from(*weight);
                }
            }
        }
        let values: Vec<i64> = slots
            .iter()
            .map(|&slot| {
                let labels = self.nodes[slot].as_ref().map(|node| &node.object.labels);
                sums.iter()
                    .filter(|((key, value), _)| {
                        labels.and_then(|labels| label(labels, key)).is_some_and(|v| v == value)
                    })
                    .map(|(_, sum)| sum)
                    .sum()
            })
            .collect();
        let (min, max) = (values.iter().min().copied(), values.iter().max().copied());
        let (min, max) = (min.unwrap_or(0), max.unwrap_or(0));
        let scale = |value: i64| {
            if max == min { 0 } else { (100.0 * (value - min) as f64 / (max - min) as f64) as i64 }
        };
        values.into_iter().map(scale).collect()
    }

    /// Pods that a constraint counts in a domain; `None` as the value counts in every domain.
    fn spread_count(
        &self,
        task: &Task,
        constraint: &SpreadConstraint,
        keys: &[&str],
        node: usize,
    ) -> Option<(String, i64)> {
        let object = &self.nodes[node].as_ref()?.object;
        if keys.iter().any(|key| label(&object.labels, key).is_none())
            || (constraint.honor_affinity && !selects(&task.spec, object))
            || (constraint.honor_taints && !taints_tolerated(&task.spec, object))
        {
            return None;
        }
        let value = label(&object.labels, &constraint.topology_key)?.clone();
        Some((value, self.matching_on(task, constraint, node)))
    }

    fn matching_on(&self, task: &Task, constraint: &SpreadConstraint, node: usize) -> i64 {
        let counts = |pod: &&Task| {
            pod.node == Some(node)
                && pod.status != Status::Releasing
                && pod.namespace == task.namespace
                && selected(&constraint.selector, &pod.labels)
        };
        self.tasks.iter().filter(counts).count() as i64
    }

    /// Filter PodTopologySpread.
    pub fn spread_allows(&self, task: usize, slot: usize) -> bool {
        let (task, Some(node)) = (&self.tasks[task], &self.nodes[slot]) else { return false };
        let hard: Vec<&SpreadConstraint> = task.spec.spread.iter().filter(|c| c.hard).collect();
        let keys: Vec<&str> = hard.iter().map(|c| c.topology_key.as_str()).collect();
        hard.iter().all(|constraint| {
            let Some(value) = label(&node.object.labels, &constraint.topology_key) else {
                return false;
            };
            let mut domains: BTreeMap<String, i64> = BTreeMap::new();
            for slot in 0..self.nodes.len() {
                if let Some((value, count)) = self.spread_count(task, constraint, &keys, slot) {
                    *domains.entry(value).or_default() += count;
                }
            }
            let fewest = if (domains.len() as i64) < i64::from(constraint.min_domains) {
                0
            } else {
                domains.values().min().copied().unwrap_or(0)
            };
            let own = i64::from(selected(&constraint.selector, &task.labels));
            let here = domains.get(value).copied().unwrap_or(0);
            here + own - fewest <= i64::from(constraint.max_skew)
        })
    }

    /// Score PodTopologySpread 0..100 of each node, normalised over them.
    pub fn spread_scores(&self, task: usize, slots: &[usize]) -> Vec<i64> {
        let task = &self.tasks[task];
        let soft: Vec<&SpreadConstraint> = task.spec.spread.iter().filter(|c| !c.hard).collect();
        if soft.is_empty() {
            return vec![0; slots.len()];
        }
        let keys: Vec<&str> = soft.iter().map(|c| c.topology_key.as_str()).collect();
        let labels = |slot: usize| self.nodes[slot].as_ref().map(|node| &node.object.labels);
        let ignored = |slot: usize| {
            labels(slot).is_none_or(|labels| keys.iter().any(|key| label(labels, key).is_none()))
        };
        let counted: Vec<usize> = slots.iter().copied().filter(|&slot| !ignored(slot)).collect();
        let mut values = vec![0.0; slots.len()];
        for constraint in &soft {
            let key = &constraint.topology_key;
            let mut domains: BTreeMap<String, i64> = BTreeMap::new();
            for &slot in &counted {
                if let Some(value) = labels(slot).and_then(|labels| label(labels, key)) {
                    domains.insert(value.clone(), 0);
                }
            }
            for slot in 0..self.nodes.len() {
                if let Some((value, count)) = self.spread_count(task, constraint, &keys, slot)
                    && let Some(sum) = domains.get_mut(&value)
                {
                    *sum += count;
                }
            }
            let hostname = key == HOSTNAME;
            let size = if hostname { counted.len() } else { domains.len() };
            let weight = ((size + 2) as f64).ln();
            for (value, &slot) in values.iter_mut().zip(slots) {
                let Some(domain) = labels(slot).and_then(|labels| label(labels, key)) else {
                    continue;
                };
                let count = if hostname {
                    self.matching_on(task, constraint, slot)
                } else {
                    domains.get(domain).copied().unwrap_or(0)
                };
                *value += count as f64 * weight + f64::from(constraint.max_skew - 1);
            }
        }
        let values: Vec<i64> = values.into_iter().map(|value: f64| value.round() as i64).collect();
        let considered: Vec<i64> = values
            .iter()
            .zip(slots)
            .filter(|&(_, &slot)| !ignored(slot))
            .map(|(v, _)| *v)
            .collect();
        let max = considered.iter().max().copied().unwrap_or(0);
        let min = considered.iter().min().copied().unwrap_or(0);
        let scale = |(value, &slot): (&i64, &usize)| match (ignored(slot), max) {
            (true, _) => 0,
            (false, 0) => 100,
            (false, _) => 100 * (max + min - value) / max,
        };
        values.iter().zip(slots).map(scale).collect()
    }
}

fn selected(selector: &LabelSelector, labels: &Labels) -> bool {
    selector.requirements.iter().all(|requirement| holds(requirement, labels))
}

fn shares_domain(key: &str, a: &Labels, b: &Labels) -> bool {
    label(a, key).is_some_and(|value| label(b, key) == Some(value))
}
