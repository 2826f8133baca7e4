//! Action `backfill` (4.3): pods that ask for nothing get a node as long as one takes another pod.

use std::collections::BTreeMap;

use super::session::Session;
use super::world::Status;

/// Runs the action.
pub fn run(session: &mut Session) {
    let mut queues: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for job in 0..session.jobs.len() {
        let queue = &session.jobs[job].queue;
        if !session.is_pending(job) && !session.closed(queue) && session.job_valid(job) {
            queues.entry(queue.clone()).or_default().push(job);
        }
    }
    while let Some(queue) = session.best_queue(queues.keys()) {
        let mut jobs = queues.remove(&queue).unwrap_or_default();
        while let Some(job) = session.best_job(&jobs) {
            jobs.retain(|&other| other != job);
            fill(session, job);
        }
    }
}

/// Pods without a place do not count as ready; the others are bound if that is enough for their gang.
fn fill(session: &mut Session, job: usize) {
    let mut tasks: Vec<usize> = session.jobs[job]
        .tasks
        .iter()
        .copied()
        .filter(|&task| {
            let task = &session.tasks[task];
            task.status == Status::Pending && !task.gated && task.best_effort()
        })
        .collect();
    session.sort_tasks(&mut tasks);
    let mut placed = Vec::new();
    for task in tasks {
        let feasible: Vec<usize> =
            (0..session.nodes.len()).filter(|&slot| session.feasible(task, slot)).collect();
        match session.best_node(task, &feasible) {
            Some(slot) => {
                session.place(task, slot, Status::Allocated);
                placed.push(task);
            }
            None => session.tasks[task].stuck = true,
        }
    }
    if session.job_ready(job) {
        session.commit(job, &placed);
    }
}
