//! Words for why pods wait: per class a count of nodes by reason, in Volcano's grammar (7.3), and the sentence
//! about a gang. Counts are taken when the session closes, once per class however many gangs ask.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::{Refusal, Session};
use crate::matching::node_selector::terms_conflict;
use crate::matching::rejection::TERMS_CONFLICT;
use crate::matching::static_filter::StaticReason;
use crate::state::classes::{ClassId, NO_KEY};
use crate::state::jobs::JobId;
use crate::state::resource::{Dim, PODS, Request};
use crate::state::status::{ALL, Status};
use crate::state::tasks::TaskId;

/// Told of a node for pods that ask for nothing but a place; others lack `pods` like any resource.
const POD_NUMBER: &str = "node(s) pod number exceeded";

/// Sentences that were made already.
#[derive(Debug, Default)]
pub struct Words {
    by_class: FxHashMap<ClassId, String>,
}

impl Session<'_> {
    /// `0/5 nodes are unavailable: 2 Insufficient memory, 3 node(s) had untolerated taint(s).`
    pub fn node_reasons(&mut self, task: TaskId, words: &mut Words) -> String {
        if let Some(text) = self.trial_reasons.get(&task) {
            return text.clone();
        }
        let class = self.state.tasks[task].class;
        let shared = !self.depends_on_pods(task) && self.state.tasks[task].held.is_none();
        if shared && let Some(text) = words.by_class.get(&class) {
            return text.clone();
        }
        let text = self.word_reasons(task);
        if shared {
            words.by_class.insert(class, text.clone());
        }
        text
    }

    /// Keeps the reasons as they are now for a pod that looks at other pods: those of its own gang are on their
    /// nodes only until the trial is taken back.
    pub fn keep_reasons(&mut self, task: TaskId) {
        let text = self.word_reasons(task);
        self.trial_reasons.insert(task, text);
    }

    fn word_reasons(&mut self, task: TaskId) -> String {
        let (counts, nodes) = self.count_reasons(task);
        let mut parts: Vec<String> =
            counts.into_iter().map(|(reason, n)| format!("{n} {reason}")).collect();
        parts.sort();
        match parts.is_empty() {
            true => format!("0/{nodes} nodes are unavailable"),
            false => format!("0/{nodes} nodes are unavailable: {}.", parts.join(", ")),
        }
    }

    /// Nodes by reason. A resource that is short is a node's only reason; filters add up to the first that is
    /// final (7.4), so a node may count several times (P39).
    fn count_reasons(&mut self, task: TaskId) -> (BTreeMap<String, u32>, u32) {
        let class = &self.state.classes.list[self.state.tasks[task].class as usize];
        let (key, best_effort) = (class.key, class.best_effort);
        let request = class.request.clone();
        let conflict =
            self.pipeline.switches.node_affinity && terms_conflict(&class.spec.required_node_terms);
        let depends = self.depends_on_pods(task);
        let mut short = vec![0_u32; self.state.dims.len()];
        let mut filtered: FxHashMap<StaticReason, u32> = FxHashMap::default();
        let mut full = 0;
        let mut by_pods: Vec<u32> = Vec::new();
        let mut nodes = 0;
        for node in 0..self.state.nodes.len() as u32 {
            if !self.state.nodes.identity[node as usize].known {
                continue;
            }
            nodes += 1;
            let room = |dim: Dim| self.state.nodes.columns[dim as usize].future[node as usize];
            if best_effort {
                if room(PODS) < 1.0 {
                    full += 1;
                }
            } else if let Some(&(dim, _)) =
                request.iter().find(|&&(dim, amount)| amount as f64 > room(dim))
            {
                short[dim as usize] += 1;
                continue;
            }
            if key != NO_KEY
                && let Some(reason) = self.state.classes.rejection(key, node, &self.state.nodes)
            {
                *filtered.entry(reason).or_default() += 1;
            } else if depends {
                by_pods.push(node);
            } else if !best_effort && let Some(dim) = first_exhausted(&request, room) {
                // It would fit, but others of its gang took the node in the trial.
                short[dim as usize] += 1;
            }
        }
        if conflict {
            let text = format!("plugin NodeAffinity pre-predicates failed {TERMS_CONFLICT}");
            return (BTreeMap::from([(text, nodes)]), nodes);
        }
        let mut counts: BTreeMap<String, u32> = BTreeMap::new();
        for (dim, count) in short.into_iter().enumerate().filter(|(_, count)| *count > 0) {
            *counts
                .entry(format!("Insufficient {}", self.state.dims.name(dim as u16)))
                .or_default() += count;
        }
        if full > 0 {
            counts.insert(POD_NUMBER.to_owned(), full);
        }
        for (reason, count) in filtered {
            *counts.entry(reason.text().to_owned()).or_default() += count;
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
        for reason in nodes.iter().flat_map(|&node| asked.reasons(node)) {
            *counts.entry(reason.text()).or_default() += 1;
        }
        counts
    }

    /// Text of the PodGroup's `Unschedulable` condition (7.2).
    pub fn gang_sentence(&mut self, job: JobId, words: &mut Words) -> String {
        let row = &self.state.jobs[job as usize];
        let missing =
            i64::from(row.min_member()) - i64::from(row.counts.ready() + self.placed_in_trial(job));
        let total = row.tasks.len();
        let error = self.fit_error(job, words);
        let told = format!("{missing}/{total} tasks in gang unschedulable: {error}");
        match self.prospect(job) {
            Some(prospect) => format!("{told} {prospect}"),
            None => told,
        }
    }

    /// Waiting pods of a job that found a node when it was last tried.
    fn placed_in_trial(&self, job: JobId) -> u32 {
        match self.refusals.get(&job) {
            Some(Refusal::Room { placed, .. }) => *placed,
            _ => self.state.jobs[job as usize].parked.map_or(0, |parked| parked.placed),
        }
    }

    /// How a gang that is not ready stands (7.3); the origin is the first pod in order (B4).
    pub fn fit_error(&mut self, job: JobId, words: &mut Words) -> String {
        let row = &self.state.jobs[job as usize];
        let min = row.min_member();
        let mut histogram: Vec<String> = ALL
            .iter()
            .filter(|status| row.counts.of(**status) > 0)
            .map(|status| format!("{} {}", row.counts.of(*status), status.name()))
            .collect();
        histogram.push(format!("{min} minAvailable"));
        histogram.sort();
        let pending = row.counts.of(Status::Pending);
        let fit = self.placed_in_trial(job).min(pending);
        let mut text = format!("pod group is not ready, {}", histogram.join(", "));
        let parts: Vec<String> = [(fit, "Schedulable"), (pending - fit, "Unschedulable")]
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| format!("{count} {word}"))
            .collect();
        if !parts.is_empty() {
            text = format!("{text}; Pending: {}", parts.join(", "));
        }
        match self.refusals.get(&job).cloned() {
            Some(Refusal::Room { task, .. }) => {
                let name = self.state.tasks[task].pod.name.clone();
                let reasons = self.node_reasons(task, words);
                text = format!("{text}. Origin reason is {name}: {reasons}");
            }
            Some(Refusal::Members) => {
                text = format!("{text}. Further members wait behind scheduling gates");
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

/// The dimension that is used up first when copies of a request fill a node.
fn first_exhausted(request: &Request, room: impl Fn(Dim) -> f64) -> Option<Dim> {
    let asked = request.iter().filter(|&&(_, amount)| amount > 0);
    let copies = |&&(dim, amount): &&(Dim, i64)| (room(dim) / amount as f64).floor();
    asked.min_by(|a, b| copies(a).total_cmp(&copies(b))).map(|&(dim, _)| dim)
}
