//! Action `backfill` (4.3): pods that ask for nothing get a node as long as one takes another pod.

use std::collections::BTreeMap;

use super::session::Session;
use super::world::Status;

/// Runs the action.
pub fn run(session: &mut Session) {
    let mut queues: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for job in 0..session.jobs.len() {
        if !session.is_pending(job) && session.job_valid(job) {
            queues.entry(session.jobs[job].queue.clone()).or_default().push(job);
        }
    }
    let mut waiting = Vec::new();
    while let Some(queue) = session.best_queue(queues.keys()) {
        let mut jobs = queues.remove(&queue).unwrap_or_default();
        while let Some(job) = session.best_job(&jobs) {
            jobs.retain(|&other| other != job);
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
            waiting.extend(tasks.into_iter().map(|task| (job, task)));
        }
    }
    let mut placed: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (job, task) in waiting {
        let feasible: Vec<usize> =
            (0..session.nodes.len()).filter(|&slot| session.feasible(task, slot)).collect();
        let Some(slot) = session.best_node(task, &feasible) else { continue };
        session.place(task, slot, Status::Allocated);
        let placed = placed.entry(job).or_default();
        placed.push(task);
        if session.job_ready(job) {
            session.commit(job, placed);
        }
    }
}
