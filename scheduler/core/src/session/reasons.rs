//! Words for why pods wait: per class a count of nodes by reason, in Volcano's grammar (7.3), and the sentence
//! about a gang. Counts are taken when the session closes, once per class however many gangs ask.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::{Refusal, Session};
use crate::state::classes::{ClassId, NO_KEY};
use crate::state::jobs::JobId;
use crate::state::status::{ALL, Status};
use crate::state::tasks::TaskId;

/// Sentences that were made already.
#[derive(Debug, Default)]
pub struct Words {
    by_class: FxHashMap<ClassId, String>,
}

impl Session<'_> {
    /// `0/5 nodes are unavailable: 2 Insufficient memory, 3 node(s) had untolerated taint(s).`
    pub fn node_reasons(&mut self, task: TaskId, words: &mut Words) -> String {
        let class = self.state.tasks[task].class;
        let shared = !self.depends_on_pods(task) && self.state.tasks[task].held.is_none();
        if shared && let Some(text) = words.by_class.get(&class) {
            return text.clone();
        }
        let (counts, nodes) = self.count_reasons(task);
        let mut text = format!("0/{nodes} nodes are unavailable");
        let mut parts: Vec<String> =
            counts.into_iter().map(|(reason, n)| format!("{n} {reason}")).collect();
        parts.sort();
        if parts.is_empty() {
            text = if nodes == 0 { "0/0 nodes are available".to_owned() } else { text };
        } else {
            text = format!("{text}: {}.", parts.join(", "));
        }
        if shared {
            words.by_class.insert(class, text.clone());
        }
        text
    }

    fn count_reasons(&mut self, task: TaskId) -> (BTreeMap<String, u32>, u32) {
        let row = &self.state.tasks[task];
        let class = &self.state.classes.list[row.class as usize];
        let (key, request) = (class.key, class.request.clone());
        let depends = self.depends_on_pods(task);
        let mut short = vec![0_u32; self.state.dims.len()];
        let mut fixed: FxHashMap<&'static str, u32> = FxHashMap::default();
        let mut by_pods: Vec<u32> = Vec::new();
        let mut nodes = 0;
        for node in 0..self.state.nodes.len() as u32 {
            if !self.state.nodes.identity[node as usize].known {
                continue;
            }
            nodes += 1;
            let lacking = request.iter().find(|&&(dim, amount)| {
                amount as f64 > self.state.nodes.columns[dim as usize].future[node as usize]
            });
            if let Some(&(dim, _)) = lacking {
                short[dim as usize] += 1;
            } else if key != NO_KEY
                && let Some(reason) = self.state.classes.rejection(key, node, &self.state.nodes)
            {
                *fixed.entry(reason.text()).or_default() += 1;
            } else if depends {
                by_pods.push(node);
            }
        }
        let mut counts: BTreeMap<String, u32> = BTreeMap::new();
        for (dim, count) in short.into_iter().enumerate().filter(|(_, count)| *count > 0) {
            let name = self.state.dims.name(dim as u16);
            let reason = if &**name == "pods" {
                "node(s) pod number exceeded".to_owned()
            } else {
                format!("Insufficient {name}")
            };
            *counts.entry(reason).or_default() += count;
        }
        for (reason, count) in fixed {
            *counts.entry(reason.to_owned()).or_default() += count;
        }
        for (reason, count) in self.pod_reasons(task, &by_pods) {
            *counts.entry(reason.to_owned()).or_default() += count;
        }
        (counts, nodes)
    }

    fn pod_reasons(&mut self, task: TaskId, nodes: &[u32]) -> BTreeMap<&'static str, u32> {
        let mut counts = BTreeMap::new();
        if nodes.is_empty() {
            return counts;
        }
        let asked = self.state.ask_about(task, &self.pipeline.switches);
        for &node in nodes {
            if let Err(reason) = asked.filter(node) {
                *counts.entry(reason.text()).or_default() += 1;
            }
        }
        counts
    }

    /// Text of the PodGroup's `Unschedulable` condition (7.2, 7.3); the origin is the first pod in order (B4).
    pub fn gang_sentence(&mut self, job: JobId, words: &mut Words) -> String {
        let row = &self.state.jobs[job as usize];
        let (min, ready, total) = (row.min_member(), row.counts.ready(), row.tasks.len());
        let placed = match self.refusals.get(&job) {
            Some(Refusal::Room { placed, .. }) => *placed,
            _ => row.parked.map_or(0, |parked| parked.placed),
        };
        let missing = i64::from(min) - i64::from(ready + placed);
        let mut histogram: Vec<String> = ALL
            .iter()
            .filter(|status| row.counts.of(**status) > 0)
            .map(|status| format!("{} {}", row.counts.of(*status), status.name()))
            .collect();
        histogram.push(format!("{min} minAvailable"));
        histogram.sort();
        let pending = row.counts.of(Status::Pending);
        let mut text = format!(
            "{missing}/{total} tasks in gang unschedulable: pod group is not ready, {}",
            histogram.join(", ")
        );
        match self.refusals.get(&job).cloned() {
            Some(Refusal::Room { task, .. }) => {
                let fit = placed.min(pending);
                let parts: Vec<String> = [(fit, "Schedulable"), (pending - fit, "Unschedulable")]
                    .into_iter()
                    .filter(|(count, _)| *count > 0)
                    .map(|(count, word)| format!("{count} {word}"))
                    .collect();
                let name = self.state.tasks[task].pod.name.clone();
                let reasons = self.node_reasons(task, words);
                text = format!(
                    "{text}; Pending: {}. Origin reason is {name}: {reasons}",
                    parts.join(", ")
                );
            }
            Some(Refusal::Queue { task, message } | Refusal::Held { task, message }) => {
                let name = &self.state.tasks[task].pod.name;
                text = format!("{text}. Origin reason is {name}: {message}");
            }
            _ => {}
        }
        text
    }
}
