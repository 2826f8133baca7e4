//! What nodes could offer if pods left them: per node and dimension, the room that is there once releasing pods are gone
//! (step 0), and that room plus what pods of jobs up to a priority hold (further steps): only those of jobs with more pods
//! than their minimum, or all. An upper bound for the searches of preempt and reclaim: which victims are allowed is decided
//! pod by pod. Nothing is kept up to date on the way: nodes that changed are summed up again when a search begins, so
//! clusters that never evict pay next to nothing.

use super::State;
use super::jobs::JobId;
use super::nodes::{LANES, NO_NODE, NodeId};
use super::resource::Dim;
use super::status::Status;
use super::tasks::NO_JOB;

/// Most steps: priorities beyond that share one, which makes the bound looser and nothing else.
const MOST_STEPS: usize = 9;

/// Who may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaving {
    /// Pods of jobs that have more than their minimum.
    Surplus,
    /// Pods of all jobs.
    Anyone,
}

/// Amounts of all nodes: by step, dimension and slot.
type Steps = Vec<Vec<Vec<f64>>>;

/// What nodes could offer.
#[derive(Debug, Default)]
pub struct Reach {
    /// Highest priority of each step after the first, ascending.
    limits: Vec<i32>,
    /// Somebody has been seen who leaves at this step and not before.
    used: Vec<bool>,
    /// By [`Leaving`].
    columns: [Steps; 2],
}

impl Reach {
    /// Number of the last step: everything that may leave has left.
    pub fn last(&self) -> usize {
        self.limits.len()
    }

    /// The last step with anybody whose priority is below the given one.
    pub fn below(&self, priority: i32) -> usize {
        let mut lowest = i64::from(i32::MIN);
        let mut steps = 0;
        for &limit in &self.limits {
            if lowest >= i64::from(priority) {
                break;
            }
            steps += 1;
            lowest = i64::from(limit) + 1;
        }
        steps
    }

    /// The next step after one at which more may leave; the last one when there is none.
    pub fn after(&self, step: usize) -> usize {
        (step + 1..self.last()).find(|&step| self.used[step]).unwrap_or_else(|| self.last())
    }

    /// Highest priority of those who leave at a step; at the last one that is everybody.
    pub fn limit(&self, step: usize) -> i32 {
        if step >= self.last() {
            i32::MAX
        } else {
            step.checked_sub(1).map_or(i32::MIN, |at| self.limits[at])
        }
    }

    /// Amounts of a dimension at a step, by slot.
    pub fn column(&self, step: usize, leaving: Leaving, dim: Dim) -> &[f64] {
        &self.columns[leaving as usize][step][dim as usize]
    }
}

impl State {
    /// Brings [`State::reach`] up to date.
    pub fn refresh_reach(&mut self) {
        let mut reach = std::mem::take(&mut self.reach);
        let limits = self.step_limits();
        let slots = self.nodes.blocks() * LANES;
        let mut changed = self.nodes.take_touched();
        if reach.limits != limits || reach.columns[0].is_empty() {
            let columns = [(); 2].map(|()| vec![Vec::new(); limits.len() + 1]);
            reach = Reach { used: vec![false; limits.len() + 1], columns, limits };
            changed = None;
        }
        for step in reach.columns.iter_mut().flatten() {
            step.resize_with(self.dims.len().max(step.len()), Vec::new);
            step.iter_mut().for_each(|column| column.resize(slots, 0.0));
        }
        match changed {
            Some(nodes) => nodes.into_iter().for_each(|node| self.sum_up(&mut reach, node)),
            None => (0..self.nodes.len() as NodeId).for_each(|node| self.sum_up(&mut reach, node)),
        }
        for job in std::mem::take(&mut self.turned_jobs) {
            self.jobs[job as usize].turned = false;
            for &task in &self.jobs[job as usize].tasks {
                if self.tasks[task].node != NO_NODE {
                    self.sum_up(&mut reach, self.tasks[task].node);
                }
            }
        }
        self.reach = reach;
    }

    /// Notes that a job came to its minimum, or above it: what its nodes could offer has changed.
    pub(super) fn note_turn(&mut self, job: JobId) {
        let row = &mut self.jobs[job as usize];
        if !row.turned {
            row.turned = true;
            self.turned_jobs.push(job);
        }
    }

    /// Brings one node up to date, after a search changed it.
    pub fn refresh_reach_of(&mut self, node: NodeId) {
        let mut reach = std::mem::take(&mut self.reach);
        self.sum_up(&mut reach, node);
        self.reach = reach;
    }

    /// The priorities that divide the steps: those that jobs can have.
    fn step_limits(&self) -> Vec<i32> {
        let mut values: Vec<i32> = self.priority_classes.values().map(|class| class.0).collect();
        values.push(0);
        values.sort_unstable();
        values.dedup();
        let count = values.len();
        let most = MOST_STEPS - 1;
        if count > most {
            values = (1..=most).map(|part| values[part * count / most - 1]).collect();
        }
        values
    }

    fn sum_up(&self, reach: &mut Reach, node: NodeId) {
        let at = node as usize;
        for (dim, column) in self.nodes.columns.iter().enumerate() {
            let room = column.room_after(at);
            for step in reach.columns.iter_mut().flatten() {
                step[dim][at] = room;
            }
        }
        for task in self.tasks_on(node) {
            let row = &self.tasks[task];
            let evictable = matches!(row.status, Status::Bound | Status::Running)
                && row.preemptable
                && row.job != NO_JOB
                && self.jobs[row.job as usize].group.is_some();
            if !evictable {
                continue;
            }
            let job = &self.jobs[row.job as usize];
            let priority = job.priority;
            let columns =
                if job.has_surplus() { &mut reach.columns[..] } else { &mut reach.columns[1..] };
            let first = reach.limits.partition_point(|&limit| limit < priority) + 1;
            // A priority above all limits cannot be, and would leave last.
            let first = first.min(reach.limits.len());
            reach.used[first] = true;
            let request = &self.classes.list[row.class as usize].request;
            for step in columns.iter_mut().flat_map(|steps| &mut steps[first..]) {
                for &(dim, amount) in request {
                    step[dim as usize][at] += amount as f64;
                }
            }
        }
    }
}
