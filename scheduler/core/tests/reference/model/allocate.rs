//! Action `allocate` (4.2) for gangs without network topology.

use std::collections::{BTreeMap, VecDeque};

use tephra_core::event::PodGroupPhase;

use super::session::Session;
use super::world::Status;

/// What became of a turn.
enum Turn {
    Committed,
    Kept,
    Refused,
}

/// Runs the action.
pub fn run(session: &mut Session) {
    let mut queues: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let mut waiting: BTreeMap<usize, VecDeque<usize>> = BTreeMap::new();
    for job in 0..session.jobs.len() {
        if session.is_pending(job) {
            if session.enqueue_runs {
                continue;
            }
            session.jobs[job].phase = PodGroupPhase::Inqueue;
        }
        if !session.job_valid(job) {
            continue;
        }
        let mut tasks: Vec<usize> = session.jobs[job]
            .tasks
            .iter()
            .copied()
            .filter(|&task| {
                let task = &session.tasks[task];
                task.status == Status::Pending && !task.gated && !task.best_effort()
            })
            .collect();
        if tasks.is_empty() {
            continue;
        }
        session.sort_tasks(&mut tasks);
        waiting.insert(job, tasks.into());
        queues.entry(session.jobs[job].queue.clone()).or_default().push(job);
    }
    while let Some(queue) = session.best_queue(queues.keys()) {
        let jobs = queues.get_mut(&queue).expect("the queue was chosen among these");
        if session.proportion.overused(&queue) || jobs.is_empty() {
            queues.remove(&queue);
            continue;
        }
        let job = session.best_job(jobs).expect("there is a job");
        jobs.retain(|&other| other != job);
        let tasks = waiting.get_mut(&job).expect("every job has its tasks");
        match turn(session, job, &queue, tasks) {
            Turn::Committed if !tasks.is_empty() => jobs.push(job),
            Turn::Committed | Turn::Kept => {}
            Turn::Refused => session.refused.push(session.jobs[job].group.key.clone()),
        }
    }
}

fn turn(session: &mut Session, job: usize, queue: &str, tasks: &mut VecDeque<usize>) -> Turn {
    let mut placed = Vec::new();
    while let Some(task) = tasks.pop_front() {
        let row = &session.tasks[task];
        let role = row.role.clone();
        if !session.proportion.allocatable(queue, &row.request) {
            continue;
        }
        if !role.is_empty() && session.jobs[job].failed_roles.contains(&role) {
            continue;
        }
        let Some((slot, status)) = session.choose(task) else {
            session.jobs[job].failed_roles.insert(role);
            if session.may_continue(job) {
                continue;
            }
            break;
        };
        session.place(task, slot, status);
        placed.push(task);
        if session.job_ready(job) {
            break;
        }
    }
    if session.job_ready(job) {
        session.commit(job, &placed);
        Turn::Committed
    } else if session.job_pipelined(job) {
        Turn::Kept
    } else {
        for &task in placed.iter().rev() {
            session.unplace(task);
        }
        Turn::Refused
    }
}

impl Session {
    /// Best node for a task, and whether its room is free or still being freed.
    fn choose(&self, task: usize) -> Option<(usize, Status)> {
        let request = &self.tasks[task].request;
        let feasible: Vec<usize> = (0..self.nodes.len())
            .filter(|&slot| {
                self.nodes[slot].as_ref().is_some_and(|node| node.fits_future(request))
                    && self.feasible(task, slot)
            })
            .collect();
        let fits = |slot: &usize| self.nodes[*slot].as_ref().is_some_and(|n| n.fits_idle(request));
        let free: Vec<usize> = feasible.iter().copied().filter(fits).collect();
        if free.is_empty() {
            return self.best_node(task, &feasible).map(|slot| (slot, Status::Pipelined));
        }
        self.best_node(task, &free).map(|slot| (slot, Status::Allocated))
    }
}
