//! Sub-groups of a gang: which pods belong together by the PodGroup's policies and the values of their labels, and how
//! many of them stand where (2.6). Counters follow every change of a task as those of the job do.

use rustc_hash::FxHashMap;

use super::jobs::Job;
use super::status::{Counts, Status};
use super::tasks::Tasks;
use crate::event::{Labels, NetworkTopology, SubGroupPolicy};
use crate::matching::label_selector;

/// Dense number of a sub-job within its job.
pub type SubJobId = u32;
/// A task of a job without sub-groups, or of none.
pub const NO_SUB_JOB: SubJobId = u32::MAX;

/// The sub-groups of one job.
#[derive(Clone, Debug, Default)]
pub struct SubJobs {
    /// Policies in the order of the PodGroup.
    pub policies: Vec<SubGroupPolicy>,
    /// Sub-jobs that have or had tasks.
    pub list: Vec<SubJob>,
    by_identity: FxHashMap<(Option<u32>, String), SubJobId>,
}

/// One sub-group.
#[derive(Clone, Debug, Default)]
pub struct SubJob {
    /// Number of its policy; `None` for tasks that no policy selects.
    pub policy: Option<u32>,
    /// Values of the policy's labels, joined with `-`.
    pub values: String,
    /// The first value, if it is a whole number, else 0: orders sub-jobs (MatchIndex).
    pub index: i64,
    /// Members that it needs.
    pub min: u32,
    /// Tasks by status.
    pub counts: Counts,
    /// Pending best-effort tasks that could start.
    pub best_effort: u32,
}

impl SubJob {
    /// Volcano `IsReady`.
    pub fn is_ready(&self) -> bool {
        self.lacks() == 0
    }

    /// How many members are missing at its minimum.
    pub fn lacks(&self) -> u32 {
        self.min.saturating_sub(self.counts.ready() + self.best_effort)
    }

    /// Volcano `IsPipelined`.
    pub fn is_pipelined(&self) -> bool {
        self.counts.of(Status::Pipelined) + self.counts.ready() + self.best_effort >= self.min
    }
}

impl SubJobs {
    /// Sub-groups of these policies, without tasks.
    pub fn new(policies: Vec<SubGroupPolicy>) -> Self {
        Self { policies, ..Self::default() }
    }

    /// The sub-job of a pod with these labels, made when missing; a row without tasks is used again.
    pub fn assign(&mut self, labels: &Labels) -> SubJobId {
        let found = match_policy(&self.policies, labels);
        let (policy, values) = match &found {
            Some((policy, values)) => (Some(*policy), values.join("-")),
            None => (None, String::new()),
        };
        let identity = (policy, values.clone());
        if let Some(&known) = self.by_identity.get(&identity) {
            return known;
        }
        let min = policy.map_or(1, |policy| self.policies[policy as usize].size.max(0) as u32);
        let index = found.and_then(|(_, values)| values[0].parse().ok()).unwrap_or(0);
        let row = SubJob { policy, values, index, min, ..SubJob::default() };
        let id = match self.list.iter().position(|row| row.counts.total() == 0) {
            Some(at) => {
                let old = std::mem::replace(&mut self.list[at], row);
                self.by_identity.remove(&(old.policy, old.values));
                at as SubJobId
            }
            None => {
                self.list.push(row);
                self.list.len() as SubJobId - 1
            }
        };
        self.by_identity.insert(identity, id);
        id
    }

    /// How close to each other the members of a sub-job must be: as its policy says, else as the job does.
    pub fn topology<'t>(
        &'t self,
        sub_job: SubJobId,
        of_job: Option<&'t NetworkTopology>,
    ) -> Option<&'t NetworkTopology> {
        match self.list[sub_job as usize].policy {
            Some(policy) => self.policies[policy as usize].topology.as_ref(),
            None => of_job,
        }
    }

    /// A name for messages: policy and values.
    pub fn name(&self, sub_job: SubJobId) -> String {
        let row = &self.list[sub_job as usize];
        match row.policy {
            Some(policy) => format!("{}-{}", self.policies[policy as usize].name, row.values),
            None => "the rest".to_owned(),
        }
    }

    /// Every policy has as many sub-jobs of which this holds as it needs (`CheckSubJobValid`, `CheckSubJobReady`,
    /// `CheckSubJobPipelined`).
    pub fn reach(&self, holds: impl Fn(&SubJob) -> bool) -> bool {
        self.policies.iter().enumerate().all(|(at, policy)| {
            let least = policy.min_sub_groups.max(0) as usize;
            let of_policy = |row: &&SubJob| row.policy == Some(at as u32) && row.counts.total() > 0;
            least == 0
                || self.list.iter().filter(of_policy).filter(|row| holds(row)).count() >= least
        })
    }

    /// Counts a task in (`sign` 1) or out.
    pub fn count(&mut self, sub_job: SubJobId, status: Status, best_effort: bool, sign: i64) {
        let Some(row) = self.list.get_mut(sub_job as usize) else { return };
        if sign > 0 {
            row.counts.enter(status);
            row.best_effort += u32::from(best_effort);
        } else {
            row.counts.leave(status);
            row.best_effort -= u32::from(best_effort);
        }
    }
}

/// First policy that selects the labels, with the values of its keys (Volcano `getSubJobMatchValues`): the selector
/// matches, if there is one, and there are keys, each with a value (B19).
pub fn match_policy<'l>(
    policies: &[SubGroupPolicy],
    labels: &'l Labels,
) -> Option<(u32, Vec<&'l str>)> {
    policies.iter().enumerate().find_map(|(at, policy)| {
        let selected = policy
            .selector
            .as_ref()
            .is_none_or(|selector| label_selector::matches(selector, labels));
        if !selected || policy.match_label_keys.is_empty() {
            return None;
        }
        let value = |key: &String| {
            let (_, value) = labels.iter().find(|(known, _)| known == key)?;
            (!value.is_empty()).then_some(value.as_str())
        };
        let values: Option<Vec<&str>> = policy.match_label_keys.iter().map(value).collect();
        Some((at as u32, values?))
    })
}

/// By sub-job the highest priority of its tasks as they are now (B21).
pub fn priorities(job: &Job, tasks: &Tasks) -> Vec<i32> {
    let count = job.sub_jobs.as_ref().map_or(0, |sub_jobs| sub_jobs.list.len());
    let mut highest = vec![i32::MIN; count];
    for &task in &job.tasks {
        let row = &tasks[task];
        if let Some(highest) = highest.get_mut(row.sub_job as usize) {
            *highest = row.priority.max(*highest);
        }
    }
    highest
}
