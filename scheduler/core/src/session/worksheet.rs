//! The waiting pods of one job as a list that is worked off: pods of one class and role in a row are one *run*, and the
//! runs can be put into other orders.

use super::Session;
use super::order::{pending, pending_tasks};
use crate::index::{ClassIndex, refresh_all};
use crate::state::State;
use crate::state::classes::ClassId;
use crate::state::jobs::JobId;
use crate::state::nodes::NodeId;
use crate::state::status::Status;
use crate::state::sub_jobs::SubJobId;
use crate::state::tasks::TaskId;

/// Waiting pods of a job, in order; `next` is the first that was not tried in this session.
#[derive(Clone, Debug, Default)]
pub struct Worksheet {
    pub(super) tasks: Vec<TaskId>,
    runs: Vec<Run>,
    pub(super) next: usize,
    /// They are all of this sub-group, and what counts is that it is ready.
    pub(super) sub_job: Option<SubJobId>,
}

/// Pods of one class and role in a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) class: ClassId,
    pub(super) role: u32,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Worksheet {
    pub(super) fn new(state: &State, tasks: Vec<TaskId>) -> Self {
        let mut runs: Vec<Run> = Vec::new();
        for (at, &task) in tasks.iter().enumerate() {
            let row = &state.tasks[task];
            match runs.last_mut() {
                Some(run) if run.class == row.class && run.role == row.role => run.end += 1,
                _ => runs.push(Run { class: row.class, role: row.role, start: at, end: at + 1 }),
            }
        }
        Self { tasks, runs, next: 0, sub_job: None }
    }

    /// What is left of the runs.
    pub(super) fn left(&self) -> impl Iterator<Item = Run> + '_ {
        let next = self.next;
        let open = self.runs.iter().filter(move |run| run.end > next);
        open.map(move |run| Run { start: run.start.max(next), ..*run })
    }

    pub(super) fn current(&self) -> Option<Run> {
        self.left().next()
    }

    /// Puts the runs that are left into another order.
    fn arrange(&mut self, order: &[Run]) {
        let tasks: Vec<TaskId> =
            order.iter().flat_map(|run| &self.tasks[run.start..run.end]).copied().collect();
        let mut start = self.next;
        self.runs.clear();
        for run in order {
            let end = start + run.end - run.start;
            self.runs.push(Run { start, end, ..*run });
            start = end;
        }
        self.tasks.truncate(self.next);
        self.tasks.extend(tasks);
    }

    /// Drops the pods that have a place; those that are left are in the order of before.
    pub(super) fn drop_placed(&mut self, state: &State) {
        let mut tasks = self.tasks.split_off(self.next);
        tasks.retain(|&task| state.tasks[task].status == Status::Pending);
        *self = Self { sub_job: self.sub_job, ..Self::new(state, tasks) };
    }
}

impl Session<'_> {
    /// True when a job has pods that allocate could place.
    pub fn has_placeable(&self, job: JobId) -> bool {
        pending(self.state, job, false).next().is_some()
    }

    /// Notes what allocate could place for a job; false when that is nothing.
    pub fn prepare(&mut self, job: JobId) -> bool {
        let sheet = self.worksheet(job);
        let some = !sheet.tasks.is_empty();
        if some {
            self.worksheets.insert(job, sheet);
        }
        some
    }

    pub(super) fn worksheet(&self, job: JobId) -> Worksheet {
        if self.state.jobs[job as usize].counts.of(Status::Pending) == 0 {
            return Worksheet::default();
        }
        let mut tasks = pending_tasks(self.state, job, false);
        self.sort_tasks(&mut tasks);
        Worksheet::new(self.state, tasks)
    }

    /// First waiting pod of a job.
    pub fn first_pending(&self, job: JobId) -> Option<TaskId> {
        match self.worksheets.get(&job) {
            Some(sheet) => sheet.tasks.get(sheet.next).copied(),
            None => self.worksheet(job).tasks.first().copied(),
        }
    }

    /// Brings the indexes of all classes that wait up to date together, block by block: a block's columns are read
    /// from memory once and not once per class.
    pub fn refresh_indexes(&mut self) {
        let mut classes: Vec<ClassId> =
            self.worksheets.values().flat_map(Worksheet::left).map(|run| run.class).collect();
        classes.sort_unstable();
        classes.dedup();
        let mut indexes: Vec<(ClassId, Box<ClassIndex>)> = classes
            .into_iter()
            .filter_map(|class| Some((class, self.detach_index(class)?)))
            .collect();
        refresh_all(
            indexes.iter_mut().map(|(_, index)| &mut **index),
            &self.state.nodes,
            &self.state.classes.keys,
            self.backend,
        );
        for (class, index) in indexes {
            self.return_index(class, Some(index));
        }
    }

    /// Sorts the runs that are left by how many nodes would take one now, so that pods with few choices go first
    /// (order 1), or by size of the request (order 2). False when that changes nothing.
    pub(super) fn reorder(&mut self, sheet: &mut Worksheet, order: usize) -> bool {
        let mut keyed: Vec<(i64, Run)> = Vec::new();
        for run in sheet.left() {
            let key = if order == 1 { self.choices(run.class) } else { -self.weight(run.class) };
            keyed.push((key, run));
        }
        keyed.sort_by_key(|&(key, run)| (key, run.start));
        let order: Vec<Run> = keyed.into_iter().map(|(_, run)| run).collect();
        let changes = !order.iter().map(|run| run.start).is_sorted();
        if changes {
            sheet.arrange(&order);
        }
        changes
    }

    /// Number of nodes that would take a copy of a class now, whatever pods it wants near or far.
    fn choices(&mut self, class: ClassId) -> i64 {
        self.with_takers(class, |takers| takers.count() as i64)
    }

    /// Nodes that would take a copy of a class now, in order; `None` if they are more than `most`.
    pub(super) fn takers(&mut self, class: ClassId, most: usize) -> Option<Vec<NodeId>> {
        let takers: Vec<NodeId> = self.with_takers(class, |takers| takers.take(most + 1).collect());
        (takers.len() <= most).then_some(takers)
    }

    fn with_takers<T: Default>(
        &mut self,
        class: ClassId,
        read: impl FnOnce(&mut dyn Iterator<Item = NodeId>) -> T,
    ) -> T {
        let Some(index) = self.take_index(class) else { return T::default() };
        let key = &self.state.classes.keys[index.key as usize];
        let result = read(&mut index.takers(&self.state.nodes, key, self.backend));
        self.return_index(class, Some(index));
        result
    }

    /// Dominant part of the cluster that one copy takes, in billionths.
    pub(super) fn weight(&self, class: ClassId) -> i64 {
        let request = &self.state.classes.list[class as usize].request;
        request
            .iter()
            .map(|&(dim, amount)| {
                let total = self.state.total.get(dim).max(1);
                (i128::from(amount) * 1_000_000_000 / total) as i64
            })
            .max()
            .unwrap_or(0)
    }
}
