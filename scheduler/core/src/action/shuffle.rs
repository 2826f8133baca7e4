//! Action `shuffle`: evicts the running pods that plugins want moved, though nobody waits for their room (4.6). Shields hold
//! here too: pods in their cooldown and pods whose budget is used up stay.

use super::Action;
use crate::plugin::EvictFor;
use crate::session::Session;
use crate::state::State;
use crate::state::status::Status;
use crate::state::tasks::TaskId;

/// The action.
#[derive(Debug)]
pub struct Shuffle;

impl Action for Shuffle {
    fn run(&mut self, session: &mut Session<'_>) {
        let mut running = Vec::new();
        for mut tasks in movable(session.state) {
            session.sort_tasks(&mut tasks);
            running.extend(tasks.into_iter().rev());
        }
        for task in session.pipeline.victim_tasks(session.state, &running) {
            let from = session.journal.savepoint();
            session.evict(task, EvictFor::Shuffle);
            session.commit(from, session.state.tasks[task].job);
        }
    }
}

/// Running pods that plugins may want moved, job by job: those of gangs that this scheduler may touch. System pods and pods that
/// are not preemptable are never moved, whatever plugins are loaded (P87).
pub fn movable(state: &State) -> impl Iterator<Item = Vec<TaskId>> + '_ {
    let jobs = state.jobs.iter();
    let ours = jobs.filter(|job| job.live && job.group.is_some() && !job.is_foreign());
    ours.filter(|job| job.counts.of(Status::Running) > 0).map(|job| {
        let tasks = job.tasks.iter().copied();
        tasks
            .filter(|&task| {
                let row = &state.tasks[task];
                row.status == Status::Running && row.ours && row.preemptable && !row.critical
            })
            .collect()
    })
}
