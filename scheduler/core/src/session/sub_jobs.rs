//! Gangs with sub-groups: each sub-group is placed on its own, up to its minimum or not at all, until the gang is whole.

use super::place::Outcome;
use super::worksheet::Worksheet;
use super::{Refusal, Session};
use crate::plugin::OrderKey;
use crate::state::hyper_nodes::DomainId;
use crate::state::jobs::JobId;
use crate::state::sub_jobs::{self, SubJobId};
use crate::state::tasks::TaskId;

/// What orders sub-groups: required ones first, then as plugins say, the higher priority, the lower index, the name.
type Rank = (bool, OrderKey, std::cmp::Reverse<i32>, i64, String);

impl Session<'_> {
    /// Places sub-groups within a hypernode, one after the other, until the gang is ready.
    pub(super) fn place_sub_jobs(
        &mut self,
        job: JobId,
        sheet: &mut Worksheet,
        within: DomainId,
    ) -> Outcome {
        let from = self.journal.savepoint();
        let mut waiting = self.by_sub_job(sheet);
        let required = self.required(job, &waiting);
        let mut refusal = None;
        let mut dropped: Vec<SubJobId> = Vec::new();
        while let Some(at) = self.first_of(job, &waiting, &required) {
            let (sub_job, unit) = &mut waiting[at];
            let sub_job = *sub_job;
            let more = match self.place_unit(job, unit, within) {
                Outcome::Ready { more } => more,
                Outcome::Pipelined { .. } => false,
                Outcome::Refused { refusal: why, .. } => {
                    refusal.get_or_insert(why);
                    dropped.push(sub_job);
                    false
                }
                Outcome::Nothing => false,
            };
            if !more {
                waiting.remove(at);
            }
            if !dropped.contains(&sub_job) && self.pipeline.job_ready(self.state, job) {
                break;
            }
        }
        let placed = !self.journal.since(from).is_empty();
        if placed && self.pipeline.job_ready(self.state, job) {
            sheet.drop_placed(self.state);
            let left: Vec<TaskId> = sheet
                .tasks
                .iter()
                .copied()
                .filter(|&task| !dropped.contains(&self.state.tasks[task].sub_job))
                .collect();
            *sheet = Worksheet::new(self.state, left);
            if let Some(refusal) = refusal {
                self.refusals.entry(job).or_insert(refusal);
            }
            return Outcome::Ready { more: !sheet.tasks.is_empty() };
        }
        if placed && self.pipeline.job_pipelined(self.state, job) {
            let promised = self.state.jobs[job as usize].is_pipelined();
            return Outcome::Pipelined { refusal: refusal.filter(|_| !promised) };
        }
        self.rollback(from);
        Outcome::Refused { refusal: refusal.unwrap_or(Refusal::Members), lasting: false }
    }

    /// The waiting pods by sub-group, each a worksheet of its own.
    fn by_sub_job(&self, sheet: &Worksheet) -> Vec<(SubJobId, Worksheet)> {
        let mut lists: Vec<(SubJobId, Vec<TaskId>)> = Vec::new();
        for &task in &sheet.tasks[sheet.next..] {
            let sub_job = self.state.tasks[task].sub_job;
            match lists.iter_mut().find(|(known, _)| *known == sub_job) {
                Some((_, tasks)) => tasks.push(task),
                None => lists.push((sub_job, vec![task])),
            }
        }
        let unit = |(sub_job, tasks)| {
            let mut sheet = Worksheet::new(self.state, tasks);
            sheet.sub_job = Some(sub_job);
            (sub_job, sheet)
        };
        lists.into_iter().map(unit).collect()
    }

    /// Sub-groups that the gang needs to be whole: of each policy the first ones, until its minimum is reached (4.2.2).
    fn required(&self, job: JobId, waiting: &[(SubJobId, Worksheet)]) -> Vec<SubJobId> {
        let Some(sub_jobs) = &self.state.jobs[job as usize].sub_jobs else { return Vec::new() };
        let mut required = Vec::new();
        for (at, policy) in sub_jobs.policies.iter().enumerate() {
            let mut open: Vec<SubJobId> = waiting
                .iter()
                .map(|&(sub_job, _)| sub_job)
                .filter(|&sub_job| {
                    let row = &sub_jobs.list[sub_job as usize];
                    row.policy == Some(at as u32) && !row.is_ready()
                })
                .collect();
            open.sort_by_cached_key(|&sub_job| self.sub_job_rank(job, sub_job, true));
            let of_policy = sub_jobs.list.iter().filter(|row| row.policy == Some(at as u32));
            let ready = of_policy.filter(|row| row.counts.total() > 0 && row.is_ready()).count();
            let least = policy.min_sub_groups.max(0) as usize;
            required.extend(open.into_iter().take(least.saturating_sub(ready)));
        }
        required
    }

    fn first_of(
        &self,
        job: JobId,
        waiting: &[(SubJobId, Worksheet)],
        required: &[SubJobId],
    ) -> Option<usize> {
        let rank = |&at: &usize| {
            let sub_job = waiting[at].0;
            self.sub_job_rank(job, sub_job, required.contains(&sub_job))
        };
        (0..waiting.len()).min_by_key(rank)
    }

    fn sub_job_rank(&self, job: JobId, sub_job: SubJobId, required: bool) -> Rank {
        let row = &self.state.jobs[job as usize];
        let key = self.pipeline.sub_job_order(self.state, job, sub_job);
        let (index, name) = match &row.sub_jobs {
            Some(sub_jobs) => (sub_jobs.list[sub_job as usize].index, sub_jobs.name(sub_job)),
            None => (0, String::new()),
        };
        let priority = sub_jobs::priority(row, &self.state.tasks, sub_job);
        (!required, key, std::cmp::Reverse(priority), index, name)
    }
}
