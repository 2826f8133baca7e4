//! When pods end: what they or their PodGroup say, else how long pods of their kind ran. A pod that ran longer is assumed to
//! run as long again as it has run. Pods of other schedulers stay for ever: they may be daemons.

use smallvec::SmallVec;

use crate::session::Session;
use crate::state::jobs::JobId;
use crate::state::nodes::NodeId;
use crate::state::reservations::When;
use crate::state::resource::{Dim, Request, asked};
use crate::state::run_times::template;
use crate::state::status::Status;
use crate::state::tasks::{NO_JOB, TaskId};

impl Session<'_> {
    /// How long a pod runs, in milliseconds; `None` when nobody knows.
    fn runtime_ms(&self, task: TaskId) -> Option<i64> {
        let row = &self.state.tasks[task];
        if row.runtime_ms > 0 || row.job == NO_JOB {
            return Some(row.runtime_ms).filter(|&ms| ms > 0);
        }
        let job = &self.state.jobs[row.job as usize];
        job.group.as_ref().and_then(|group| group.runtime_ms).or_else(|| {
            let kind = template(job.queue, &self.state.classes.list[row.class as usize].spec);
            self.state.run_times.quantile(kind, self.pipeline.reservation?.quantile)
        })
    }

    /// When a pod leaves its node.
    pub(super) fn end_of(&self, task: TaskId) -> When {
        let (row, now_ms) = (&self.state.tasks[task], self.state.now_ms);
        if row.status == Status::Releasing {
            return When::At(now_ms);
        }
        if !row.ours {
            return When::Never;
        }
        if row.status == Status::Unknown {
            return When::Someday;
        }
        let Some(mut runs_ms) = self.runtime_ms(task) else { return When::Someday };
        let assigned = matches!(row.status, Status::Binding | Status::Bound | Status::Running);
        let started_ms = if assigned && row.started_ms > 0 { row.started_ms } else { now_ms };
        while started_ms.saturating_add(runs_ms) <= now_ms {
            runs_ms = runs_ms.saturating_mul(2);
        }
        When::At(started_ms.saturating_add(runs_ms))
    }

    /// When a job would end that starts now.
    pub(super) fn predicted_end(&self, job: JobId) -> When {
        let tasks = self.state.jobs[job as usize].tasks.iter();
        let waiting = tasks.filter(|&&task| self.state.tasks[task].status == Status::Pending);
        let runtimes = waiting.map(|&task| self.runtime_ms(task));
        let longest = runtimes.reduce(|a, b| Some(a?.max(b?))).flatten();
        longest.map_or(When::Someday, |ms| When::At(self.state.now_ms.saturating_add(ms)))
    }

    /// What of a node becomes free, and when, in some dimensions.
    pub(super) fn outlook(&self, node: NodeId, dims: &[Dim]) -> Outlook {
        let room = |&dim: &Dim| self.state.nodes.columns[dim as usize].room_after(node as usize);
        let free = dims.iter().map(|dim| room(dim) as i64).collect();
        let leaves = self.state.tasks_on(node).filter_map(|task| {
            let row = &self.state.tasks[task];
            let end = self.end_of(task);
            // Whoever is leaving is counted as gone already.
            let counts = row.status != Status::Releasing && end != When::Never;
            let request = &self.state.classes.list[row.class as usize].request;
            counts.then(|| (end, amounts(request, dims)))
        });
        Outlook { free, ends: leaves.collect() }
    }
}

/// Amounts in the dimensions that somebody asks for, in their order.
pub(super) type Amounts = SmallVec<[i64; 5]>;

/// What of a node becomes free, and when.
pub(super) struct Outlook {
    /// Free now.
    pub(super) free: Amounts,
    /// When what becomes free; what never does is missing.
    pub(super) ends: Vec<(When, Amounts)>,
}

impl Outlook {
    /// What is free once all have left that end by then.
    pub(super) fn room_at(&self, when: When) -> Amounts {
        let mut room = self.free.clone();
        for (_, amounts) in self.ends.iter().filter(|(end, _)| *end <= when) {
            room.iter_mut().zip(amounts).for_each(|(room, amount)| *room += amount);
        }
        room
    }
}

/// What a request asks for in each of some dimensions.
pub(super) fn amounts(request: &Request, dims: &[Dim]) -> Amounts {
    dims.iter().map(|&dim| asked(request, dim)).collect()
}
