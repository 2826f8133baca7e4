//! The end of a session: phases of gangs (3.4), what was only promised is taken back, what was committed stays.

use tephra_core::event::PodGroupPhase;

use super::Decided;
use super::session::Session;
use super::world::{Status, World};

/// Ends a session and writes its outcome into the world.
pub fn run(session: &mut Session, world: &mut World) -> Decided {
    let promised = |status| matches!(status, Status::Allocated | Status::Pipelined);
    for task in 0..session.tasks.len() {
        if promised(session.tasks[task].status) {
            session.unplace(task);
        }
    }
    let mut phases = Vec::new();
    for job in 0..session.jobs.len() {
        let phase = phase(session, job);
        let key = session.jobs[job].group.key.clone();
        if let Some(group) = world.groups.get_mut(&key) {
            group.status.phase = phase;
        }
        phases.push((key, phase));
    }
    for job in &session.jobs {
        world.broken.insert(job.group.key.clone(), job.broken.clone());
    }
    for task in &session.tasks {
        if let Some(pod) = world.pods.get_mut(&task.uid) {
            pod.stuck = task.stuck;
        }
        if task.status == Status::Binding
            && let Some(pod) = world.pods.get_mut(&task.uid)
            && pod.status == Status::Pending
        {
            pod.status = Status::Binding;
            pod.node = task
                .node
                .and_then(|slot| session.nodes[slot].as_ref())
                .map(|node| node.object.name.clone());
        }
    }
    Decided {
        binds: std::mem::take(&mut session.binds),
        admitted: std::mem::take(&mut session.admitted),
        refused: std::mem::take(&mut session.refused),
        incomplete: session.incomplete,
        phases,
    }
}

/// Phase of a gang at the end of a session. Pods that leave a node still count as scheduled (B12); a gang stays completed when its pods are gone.
fn phase(session: &Session, job: usize) -> PodGroupPhase {
    let row = &session.jobs[job];
    let count = |wanted: &[Status]| {
        row.tasks.iter().filter(|&&task| wanted.contains(&session.tasks[task].status)).count()
            as i64
    };
    let completed = count(&[Status::Succeeded, Status::Failed]);
    let scheduled = completed + count(&[Status::Running, Status::Bound]);
    let leaving = row
        .tasks
        .iter()
        .map(|&task| &session.tasks[task])
        .filter(|task| task.status == Status::Releasing && task.node.is_some())
        .count() as i64;
    let min = session.min_member(job);
    let there = session.ready_tasks(job) + session.count_best_effort(job);
    let only_leaving = leaving > 0 && there + leaving >= min;
    if count(&[Status::Running]) > 0 && !session.job_ready(job) && !only_leaving {
        PodGroupPhase::Unknown
    } else if leaving > 0 && scheduled + leaving >= min {
        PodGroupPhase::Running
    } else if scheduled >= min && scheduled == completed {
        PodGroupPhase::Completed
    } else if scheduled >= min {
        PodGroupPhase::Running
    } else if row.phase == PodGroupPhase::Inqueue {
        PodGroupPhase::Inqueue
    } else if row.phase == PodGroupPhase::Completed && row.tasks.is_empty() {
        PodGroupPhase::Completed
    } else {
        PodGroupPhase::Pending
    }
}
