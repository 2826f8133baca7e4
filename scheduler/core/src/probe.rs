//! Single questions to the loaded configuration: what one extension point answers for one job, pod and node.
//! Recorded calls of Volcano are checked this way; it changes nothing but what enqueueing a job changes.

use std::cmp::Ordering;

use crate::action::shuffle::movable;
use crate::event::ObjectKey;
use crate::index::block_max::fill_fixed;
use crate::index::kernel::{BlockResult, Question, Room, evaluate};
use crate::index::score::ClassHot;
use crate::scheduler::Core;
use crate::state::classes::NO_KEY;
use crate::state::nodes::LANES;
use crate::state::tasks::TaskId;

/// Asks single questions.
#[derive(Debug)]
pub struct Probe<'c> {
    core: &'c mut Core,
}

impl<'c> Probe<'c> {
    pub(crate) fn new(core: &'c mut Core) -> Self {
        Self { core }
    }

    /// Would the job be admitted? `false` for unknown jobs.
    pub fn job_enqueueable(&mut self, job: &ObjectKey) -> bool {
        let Some(job) = self.core.state.job(job) else { return false };
        let admission = self.core.pipeline.job_enqueueable(&self.core.state, job, false);
        admission.vote != crate::plugin::Vote::Reject
    }

    /// Tells plugins that the job was admitted.
    pub fn job_enqueued(&mut self, job: &ObjectKey) {
        if let Some(job) = self.core.state.job(job) {
            self.core.pipeline.job_enqueued(&self.core.state, job);
            self.core.state.jobs[job as usize].phase = crate::event::PodGroupPhase::Inqueue;
            self.core.state.refresh_job(job);
        }
    }

    /// Which of two jobs goes first; ties go by age, then by `namespace/name`.
    pub fn job_order(&self, left: &ObjectKey, right: &ObjectKey) -> Ordering {
        let key = |job: &ObjectKey| {
            self.core.state.job(job).map(|id| {
                let group = self.core.state.jobs[id as usize].group.as_ref();
                (
                    self.core.pipeline.job_order(&self.core.state, id),
                    group.map_or(0, |group| group.queued_ms),
                    group.map(|group| group.id.clone()),
                )
            })
        };
        key(left).cmp(&key(right))
    }

    /// Which of two jobs goes first by what plugins say alone; `Equal` for unknown jobs.
    pub fn job_order_of_plugins(&self, left: &ObjectKey, right: &ObjectKey) -> Ordering {
        let Core { state, pipeline, .. } = &*self.core;
        let key = |job| state.job(job).map(|job| pipeline.job_order(state, job));
        key(left).cmp(&key(right))
    }

    /// Jobs of the pods that action shuffle would evict, one for each pod.
    pub fn victim_tasks(&mut self) -> Vec<ObjectKey> {
        let Core { state, pipeline, .. } = &mut *self.core;
        let running: Vec<TaskId> = movable(state).flatten().collect();
        let victims = pipeline.victim_tasks(state, &running);
        let job = |task: TaskId| state.jobs[state.tasks[task].job as usize].key.clone();
        victims.into_iter().map(job).collect()
    }

    /// Why a node is not possible for a pod; room is not looked at.
    ///
    /// # Errors
    /// The reasons of the filters.
    pub fn predicate(&mut self, pod_uid: &str, node: &str) -> Result<(), Vec<String>> {
        let state = &mut self.core.state;
        let (Some(task), Some(node)) = (state.tasks.get(pod_uid), state.nodes.get(node)) else {
            return Err(vec!["node info not found".to_owned()]);
        };
        let mut reasons = Vec::new();
        let class = state.tasks[task].class;
        let key = state.classes.list[class as usize].key;
        let pods = &state.nodes.columns[usize::from(crate::state::resource::PODS)];
        if self.core.pipeline.filters && pods.free[node as usize] < 1.0 {
            reasons.push("node(s) pod number exceeded".to_owned());
        }
        if key != NO_KEY
            && let Some(reason) = state.classes.rejection(key, node, &state.nodes)
        {
            reasons.push(reason.text().to_owned());
            return Err(reasons);
        }
        if state.stateful_fed {
            let asked = state.ask_about(task, &self.core.pipeline.switches);
            reasons.extend(asked.reasons(node).into_iter().map(|reason| reason.text().to_owned()));
        }
        if reasons.is_empty() { Ok(()) } else { Err(reasons) }
    }

    /// Scores of nodes for a pod, with what depends on where other pods of its gang run; `None` for unknown objects.
    pub fn batch_node_order(&mut self, pod_uid: &str, nodes: &[String]) -> Option<Vec<f64>> {
        let mut scores = Vec::new();
        for node in nodes {
            scores.push(self.node_order(pod_uid, node)?);
        }
        let state = &self.core.state;
        let task = state.tasks.get(pod_uid)?;
        let nodes: Option<Vec<_>> = nodes.iter().map(|node| state.nodes.get(node)).collect();
        let more = self.core.pipeline.node_order(state, task, &nodes?);
        Some(scores.into_iter().zip(more).map(|(score, more)| score + more).collect())
    }

    /// Scores of hypernodes for a job, or for the sub-group of a name; `None` for unknown objects.
    pub fn hyper_node_order(
        &mut self,
        job: &ObjectKey,
        sub_job: Option<&str>,
        names: &[String],
    ) -> Option<Vec<f64>> {
        let state = &self.core.state;
        let job = state.job(job)?;
        let sub_job = match (sub_job, &state.jobs[job as usize].sub_jobs) {
            (None, _) => None,
            (Some(name), Some(sub_jobs)) => {
                let named = (0..sub_jobs.list.len() as u32).find(|&id| sub_jobs.name(id) == name);
                Some(named?)
            }
            (Some(_), None) => return None,
        };
        let tree = state.hyper_nodes.tree();
        let domains: Option<Vec<_>> = names.iter().map(|name| tree.get(name)).collect();
        Some(self.core.pipeline.hyper_node_order(state, job, sub_job, &domains?))
    }

    /// Score of a node for a pod, over all node scores of the configuration; `None` for unknown objects.
    pub fn node_order(&mut self, pod_uid: &str, node: &str) -> Option<f64> {
        let state = &mut self.core.state;
        let task = state.tasks.get(pod_uid)?;
        let node = state.nodes.get(node)?;
        let class = &state.classes.list[state.tasks[task].class as usize];
        let hot = ClassHot::new(class, &self.core.pipeline.scores, &state.dims);
        let key = class.key;
        let block = node as usize / LANES;
        let mut fixed = [0.0; LANES];
        if key != NO_KEY {
            state.classes.refresh_scores(key, &state.nodes);
            fill_fixed(
                &state.classes.keys[key as usize],
                &state.nodes,
                block,
                0..LANES,
                &mut fixed,
            );
        }
        let mut out = BlockResult::default();
        let question = Question {
            class: &hot,
            nodes: &state.nodes,
            block,
            mask: u64::MAX,
            room: Room::Free,
            fixed: &fixed,
        };
        evaluate(self.core.backend, &question, &mut out);
        Some(out.score[node as usize % LANES])
    }
}
