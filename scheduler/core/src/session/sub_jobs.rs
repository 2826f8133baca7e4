//! Gangs with sub-groups: each sub-group is placed on its own, up to its minimum or not at all, until the gang is whole.

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;

use super::place::Outcome;
use super::worksheet::Worksheet;
use super::{Refusal, Session};
use crate::plugin::OrderKey;
use crate::state::hyper_nodes::DomainId;
use crate::state::jobs::JobId;
use crate::state::sub_jobs::{self, SubJobId};
use crate::state::tasks::TaskId;

/// What orders sub-groups: required ones first, then as plugins say, the higher priority, the lower index, the name.
type Rank = (bool, OrderKey, std::cmp::Reverse<i32>, i64, String, SubJobId);

impl Session<'_> {
    /// Places sub-groups within a hypernode, one after the other, until the gang is ready.
    pub(super) fn place_sub_jobs(
        &mut self,
        job: JobId,
        sheet: &mut Worksheet,
        within: DomainId,
    ) -> Outcome {
        let from = self.journal.savepoint();
        let priorities = sub_jobs::priorities(&self.state.jobs[job as usize], &self.state.tasks);
        let rank = |session: &Self, sub_job: SubJobId, required: bool| {
            session.sub_job_rank(job, sub_job, required, priorities[sub_job as usize])
        };
        let units = self.by_sub_job(job, sheet);
        let mut ranked: Vec<(Rank, SubJobId)> =
            units.iter().map(|unit| (rank(self, unit.0, true), unit.0)).collect();
        ranked.sort();
        let required = self.required(job, ranked.into_iter().map(|(_, sub_job)| sub_job));
        let mut waiting: BTreeMap<Rank, (SubJobId, Worksheet)> = units
            .into_iter()
            .map(|unit| (rank(self, unit.0, required.contains(&unit.0)), unit))
            .collect();
        let mut refusal = None;
        let mut dropped: FxHashSet<SubJobId> = FxHashSet::default();
        while let Some((_, (sub_job, mut unit))) = waiting.pop_first() {
            match self.place_unit(job, &mut unit, within) {
                Outcome::Ready { more: true } => {
                    let again = rank(self, sub_job, required.contains(&sub_job));
                    waiting.insert(again, (sub_job, unit));
                }
                Outcome::Ready { .. } | Outcome::Pipelined { .. } | Outcome::Nothing => {}
                Outcome::Refused { refusal: why, .. } => {
                    refusal.get_or_insert(why);
                    dropped.insert(sub_job);
                    continue;
                }
            }
            if self.pipeline.job_ready(self.state, job) {
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
    fn by_sub_job(&self, job: JobId, sheet: &Worksheet) -> Vec<(SubJobId, Worksheet)> {
        let sub_jobs = &self.state.jobs[job as usize].sub_jobs;
        let mut lists: Vec<Vec<TaskId>> =
            vec![Vec::new(); sub_jobs.as_ref().map_or(0, |sub_jobs| sub_jobs.list.len())];
        for &task in &sheet.tasks[sheet.next..] {
            if let Some(list) = lists.get_mut(self.state.tasks[task].sub_job as usize) {
                list.push(task);
            }
        }
        let lists = lists.into_iter().enumerate().filter(|(_, tasks)| !tasks.is_empty());
        let unit = |(sub_job, tasks)| {
            let mut sheet = Worksheet::new(self.state, tasks);
            sheet.sub_job = Some(sub_job as SubJobId);
            (sub_job as SubJobId, sheet)
        };
        lists.map(unit).collect()
    }

    /// Sub-groups that the gang needs to be whole: of each policy the first ones, until its minimum is reached (4.2.2).
    fn required(&self, job: JobId, waiting: impl Iterator<Item = SubJobId>) -> FxHashSet<SubJobId> {
        let Some(sub_jobs) = &self.state.jobs[job as usize].sub_jobs else {
            return FxHashSet::default();
        };
        let mut lacking: Vec<usize> =
            sub_jobs.policies.iter().map(|policy| policy.min_sub_groups.max(0) as usize).collect();
        for row in sub_jobs.list.iter().filter(|row| row.counts.total() > 0 && row.is_ready()) {
            if let Some(policy) = row.policy {
                lacking[policy as usize] = lacking[policy as usize].saturating_sub(1);
            }
        }
        let is_required = |sub_job: &SubJobId| {
            let row = &sub_jobs.list[*sub_job as usize];
            let Some(policy) = row.policy.filter(|_| !row.is_ready()) else { return false };
            let lacking = &mut lacking[policy as usize];
            let required = *lacking > 0;
            *lacking -= usize::from(required);
            required
        };
        waiting.filter(is_required).collect()
    }

    fn sub_job_rank(&self, job: JobId, sub_job: SubJobId, required: bool, priority: i32) -> Rank {
        let row = &self.state.jobs[job as usize];
        let key = self.pipeline.sub_job_order(self.state, job, sub_job);
        let (index, name) = match &row.sub_jobs {
            Some(sub_jobs) => (sub_jobs.list[sub_job as usize].index, sub_jobs.name(sub_job)),
            None => (0, String::new()),
        };
        (!required, key, std::cmp::Reverse(priority), index, name, sub_job)
    }
}
