//! The end of a session: phases of gangs (3.4), what was only promised is taken back, what was committed stays.

use tephra_core::event::PodGroupPhase;

use super::Decided;
use super::session::Session;
use super::world::{Status, World};

/// Ends a session and writes its outcome into the world.
pub fn run(session: &mut Session, world: &mut World) -> Decided {
    let mut phases = Vec::new();
    for job in 0..session.jobs.len() {
        let phase = phase(session, job);
        let key = session.jobs[job].group.key.clone();
        if let Some(group) = world.groups.get_mut(&key) {
            group.status.phase = phase;
        }
        phases.push((key, phase));
    }
    for task in &session.tasks {
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
        phases,
    }
}

/// Phase of a gang at the end of a session.
fn phase(session: &Session, job: usize) -> PodGroupPhase {
    let row = &session.jobs[job];
    let count = |wanted: &[Status]| {
        row.tasks.iter().filter(|&&task| wanted.contains(&session.tasks[task].status)).count() as i64
    };
    let completed = count(&[Status::Succeeded, Status::Failed]);
    let scheduled = completed + count(&[Status::Running, Status::Bound]);
    let min = session.min_member(job);
    let unschedulable = !row.tasks.is_empty() && !session.is_ready(job);
    if count(&[Status::Running]) > 0 && unschedulable {
        PodGroupPhase::Unknown
    } else if scheduled >= min && scheduled == completed {
        PodGroupPhase::Completed
    } else if scheduled >= min {
        PodGroupPhase::Running
    } else if row.phase == PodGroupPhase::Inqueue {
        PodGroupPhase::Inqueue
    } else {
        PodGroupPhase::Pending
    }
}
