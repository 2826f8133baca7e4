//! The last try for a gang of unlike pods. A greedy walk gives each pod the node that is best for it alone, so pods of
//! two kinds can stand in each other's way although all would fit. Before such a gang is refused, a packing is searched
//! for; where one pod's place depends on another's, many nodes come into question or the ways are too many, it is not.
//! That none exists is worth knowing too: the gang then need not be tried again until something is released.

use super::Session;
use super::packing::{Kind, Packing, Problem, search};
use super::worksheet::Worksheet;
use crate::state::classes::ClassId;
use crate::state::jobs::JobId;
use crate::state::nodes::NodeId;
use crate::state::tasks::TaskId;

/// Most nodes that a search looks at. Where more take the pods, they are not what is scarce.
const MOST_NODES: usize = 64;
/// Most kinds of pods.
const MOST_KINDS: usize = 8;
/// Steps of one search, each some dozen nanoseconds.
const STEPS: u32 = 20_000;

/// How the last try ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LastTry {
    /// The gang is placed, up to its minimum.
    Placed,
    /// No room, however its pods are put.
    Hopeless,
    /// Not placed; whether it could be is not known.
    Undecided,
}

/// Waiting pods of one class and role.
struct Alike {
    class: ClassId,
    role: u32,
    tasks: Vec<TaskId>,
}

impl Session<'_> {
    /// Places what a gang still needs for its minimum, wherever it fits.
    pub(super) fn pack(&mut self, job: JobId, sheet: &mut Worksheet) -> LastTry {
        if sheet.sub_job.is_some() {
            return LastTry::Undecided;
        }
        let kinds = self.kinds_of(sheet);
        let waiting = || kinds.iter().flat_map(|kind| &kind.tasks).copied();
        let depends = |task| self.depends_on_pods(task) || self.state.tasks[task].held.is_some();
        if !(2..=MOST_KINDS).contains(&kinds.len()) || waiting().any(depends) {
            return LastTry::Undecided;
        }
        let Some((problem, nodes)) = self.problem(job, &kinds) else { return LastTry::Undecided };
        match search(problem, STEPS) {
            Packing::Found(counts) if self.carry_out(job, &kinds, &nodes, &counts) => {
                sheet.drop_placed(self.state);
                LastTry::Placed
            }
            Packing::Impossible if self.state.releasing == 0 => LastTry::Hopeless,
            _ => LastTry::Undecided,
        }
    }

    /// The waiting pods by kind; the kind that takes the largest part of the cluster first.
    fn kinds_of(&self, sheet: &Worksheet) -> Vec<Alike> {
        let mut kinds: Vec<Alike> = Vec::new();
        for run in sheet.left() {
            let tasks = &sheet.tasks[run.start..run.end];
            let same = |kind: &&mut Alike| (kind.class, kind.role) == (run.class, run.role);
            match kinds.iter_mut().find(same) {
                Some(kind) => kind.tasks.extend(tasks),
                None => {
                    kinds.push(Alike { class: run.class, role: run.role, tasks: tasks.to_vec() });
                }
            }
        }
        kinds.sort_by_key(|kind| -self.weight(kind.class));
        kinds
    }

    /// What is to be packed, and the nodes behind its spaces; `None` where too many nodes come into question.
    fn problem(&mut self, job: JobId, kinds: &[Alike]) -> Option<(Problem, Vec<NodeId>)> {
        let mut takers: Vec<Vec<NodeId>> = Vec::new();
        for kind in kinds {
            takers.push(self.takers(kind.class, MOST_NODES)?);
        }
        let mut nodes = takers.concat();
        nodes.sort_unstable();
        nodes.dedup();
        if nodes.len() > MOST_NODES {
            return None;
        }
        let mut dims: Vec<usize> = Vec::new();
        for kind in kinds {
            let request = &self.state.classes.list[kind.class as usize].request;
            dims.extend(request.iter().map(|&(dim, _)| usize::from(dim)));
        }
        dims.sort_unstable();
        dims.dedup();
        let mut roles: Vec<u32> = kinds.iter().map(|kind| kind.role).collect();
        roles.sort_unstable();
        roles.dedup();
        let free_of = |&node: &NodeId| {
            let columns = &self.state.nodes.columns;
            dims.iter().map(|&dim| columns[dim].free[node as usize] as i64).collect()
        };
        let kinds = kinds.iter().zip(&takers).map(|(kind, takers)| {
            let request = &self.state.classes.list[kind.class as usize].request;
            let amount = |dim: &usize| {
                let asked = request.iter().find(|(asked, _)| usize::from(*asked) == *dim);
                asked.map_or(0, |&(_, amount)| amount)
            };
            Kind {
                request: dims.iter().map(amount).collect(),
                count: kind.tasks.len() as u32,
                role: roles.partition_point(|&role| role < kind.role),
                allowed: nodes.iter().map(|node| takers.binary_search(node).is_ok()).collect(),
            }
        });
        let row = &self.state.jobs[job as usize];
        let of_roles: Vec<u32> = roles.iter().map(|&role| row.lacks_of_role(role)).collect();
        let problem = Problem {
            kinds: kinds.collect(),
            free: nodes.iter().map(free_of).collect(),
            need: row.lacks().max(of_roles.iter().sum()),
            roles: of_roles,
        };
        Some((problem, nodes))
    }

    /// Places a packing; false, and nothing is placed, when the queue does not allow it.
    fn carry_out(
        &mut self,
        job: JobId,
        kinds: &[Alike],
        nodes: &[NodeId],
        counts: &[Vec<u32>],
    ) -> bool {
        let from = self.journal.savepoint();
        for (kind, counts) in kinds.iter().zip(counts) {
            let mut tasks = kind.tasks.iter();
            let copies = counts.iter().sum();
            if self.allowance(job, kind.class, copies) < copies {
                self.rollback(from);
                return false;
            }
            for (&node, &count) in nodes.iter().zip(counts) {
                for &task in tasks.by_ref().take(count as usize) {
                    self.place(task, node, false);
                }
            }
        }
        let whole = self.pipeline.job_ready(self.state, job);
        if !whole {
            self.rollback(from);
        }
        whole
    }
}
