//! Tasks: one row per pod that the core knows, ours or not. Rows are dense and reused; a pod is found by its
//! uid. The rows of one node are chained, so that a node change visits only its own pods.

use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

use super::classes::ClassId;
use super::jobs::JobId;
use super::nodes::{NO_NODE, NodeId};
use super::status::Status;
use super::sub_jobs::SubJobId;
use crate::decision::PodRef;
use crate::event::Labels;

/// Dense number of a task.
pub type TaskId = u32;
/// No task.
pub const NO_TASK: TaskId = u32::MAX;
/// No job.
pub const NO_JOB: u32 = u32::MAX;
/// No number at the end of the name.
pub const NO_NUMBER: u64 = u64::MAX;

/// One pod.
#[derive(Clone, Debug)]
pub struct Task {
    /// Identity on the API server.
    pub pod: PodRef,
    /// Job, [`NO_JOB`] for a pod without a group or of another scheduler.
    pub job: u32,
    /// Position in the job's list of tasks.
    pub at: u32,
    /// Sub-group of the job, [`super::sub_jobs::NO_SUB_JOB`] where there are none.
    pub sub_job: SubJobId,
    /// Class.
    pub class: ClassId,
    /// Node, [`NO_NODE`] while it has none.
    pub node: NodeId,
    /// Previous and next task on the node.
    pub links: [TaskId; 2],
    /// Role number (`volcano.sh/task-spec`), 0 for none.
    pub role: u32,
    /// Priority that orders tasks.
    pub priority: i32,
    /// Creation time.
    pub created_ms: i64,
    /// Number at the end of the name that orders pods of a job, [`u64::MAX`] without one (3.8).
    pub number: u64,
    /// Status.
    pub status: Status,
    /// Scheduling gates are present.
    pub gated: bool,
    /// Best effort, and no node could take it: it does not count as ready for its gang.
    pub stuck: bool,
    /// We are evicting it: the status that it has apart from that.
    pub spared: Option<Status>,
    /// The job that it is evicted for, until the API server is known to delete it.
    pub evicted_for: Option<JobId>,
    /// Names our scheduler.
    pub ours: bool,
    /// Preemption and reclaim may take it.
    pub preemptable: bool,
    /// Nobody is evicted for it.
    pub never_preempts: bool,
    /// Until when its cooldown protects it (plugin cdp).
    pub cooling_until_ms: Option<i64>,
    /// Name of its priority class, empty for none.
    pub priority_class: Arc<str>,
    /// It has a deadline: what quotas call a terminating pod.
    pub has_deadline: bool,
    /// How long it says that it will run, in milliseconds; 0 when it says nothing.
    pub runtime_ms: i64,
    /// When it started on its node, or was given to it; 0 while it is not known.
    pub started_ms: i64,
    /// Pod priority class protects it (plugin conformance).
    pub critical: bool,
    /// It stands for a pod of a gang that is down: it waits and keeps room like one, and is told nothing.
    pub phantom: bool,
    /// When it last wrote a checkpoint, in milliseconds; 0 when it never said so.
    pub last_checkpoint_ms: i64,
    /// The row is in use.
    pub live: bool,
    /// Labels, shared by pods with equal ones.
    pub labels: Arc<Labels>,
    /// What keeps it from being placed, if anything.
    pub held: Option<Box<Held>>,
    /// What was last told (or read) in its `PodScheduled` condition; pods of one gang share it.
    pub told: Option<Arc<Told>>,
    /// Why the last bind was refused; told once.
    pub bind_error: Option<Box<str>>,
}

/// Reason and message of a pod's condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// Reason.
    pub reason: Box<str>,
    /// Message.
    pub message: Arc<str>,
}

/// What keeps a pod from being placed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Claims that it uses, by name in its namespace.
    pub claims: Vec<String>,
    /// Parts that nothing can place yet.
    pub unsupported: Vec<String>,
}

/// All tasks.
#[derive(Debug, Default)]
pub struct Tasks {
    rows: Vec<Task>,
    free: Vec<TaskId>,
    /// Hash of the uid beside the row, so that a search or a growing table touches few rows.
    by_uid: HashTable<(u64, TaskId)>,
}

fn hash(uid: &str) -> u64 {
    FxBuildHasher.hash_one(uid)
}

impl Tasks {
    /// Task of a pod uid.
    pub fn get(&self, uid: &str) -> Option<TaskId> {
        let key = hash(uid);
        let same =
            |&(other, id): &(u64, TaskId)| other == key && &*self.rows[id as usize].pod.uid == uid;
        self.by_uid.find(key, same).map(|&(_, id)| id)
    }

    /// Row that this uid has, if it has one: decided by a hash alone, without a look at the row.
    pub fn likely(&self, uid: &str) -> Option<TaskId> {
        let key = hash(uid);
        self.by_uid.find(key, |&(other, _)| other == key).map(|&(_, id)| id)
    }

    /// Adds a row; the uid must be new.
    pub fn insert(&mut self, task: Task) -> TaskId {
        let key = hash(&task.pod.uid);
        let id = match self.free.pop() {
            Some(id) => {
                self.rows[id as usize] = task;
                id
            }
            None => {
                self.rows.push(task);
                self.rows.len() as TaskId - 1
            }
        };
        self.by_uid.insert_unique(key, (key, id), |&(other, _)| other);
        id
    }

    /// Frees a row.
    pub fn remove(&mut self, id: TaskId) {
        let key = hash(&self.rows[id as usize].pod.uid);
        if let Ok(entry) = self.by_uid.find_entry(key, |&(_, other)| other == id) {
            entry.remove();
        }
        let row = &mut self.rows[id as usize];
        row.live = false;
        row.held = None;
        row.told = None;
        row.bind_error = None;
        row.node = NO_NODE;
        row.job = NO_JOB;
        self.free.push(id);
    }

    /// Rows in use, in order of their numbers.
    pub fn live(&self) -> impl Iterator<Item = (TaskId, &Task)> {
        self.rows.iter().enumerate().filter(|(_, t)| t.live).map(|(id, t)| (id as TaskId, t))
    }

    /// Number of rows in use.
    pub fn len(&self) -> usize {
        self.by_uid.len()
    }

    /// No pods are known.
    pub fn is_empty(&self) -> bool {
        self.by_uid.is_empty()
    }
}

impl std::ops::Index<TaskId> for Tasks {
    type Output = Task;

    fn index(&self, id: TaskId) -> &Task {
        &self.rows[id as usize]
    }
}

impl std::ops::IndexMut<TaskId> for Tasks {
    fn index_mut(&mut self, id: TaskId) -> &mut Task {
        &mut self.rows[id as usize]
    }
}

/// Number after the last `-` of a name with at least three parts: the order of pods in a job (3.8).
pub fn trailing_number(name: &str) -> Option<u64> {
    let mut parts = name.rsplit('-');
    let number = parts.next()?.parse().ok()?;
    parts.nth(1)?;
    Some(number)
}

#[cfg(test)]
mod tests {
    use super::trailing_number;

    #[test]
    fn only_names_of_three_parts_have_a_number() {
        assert_eq!(trailing_number("train-worker-12"), Some(12));
        assert_eq!(trailing_number("worker-12"), None);
        assert_eq!(trailing_number("train-worker-x"), None);
        assert_eq!(trailing_number("a-b-99999999999999999999999"), None);
    }
}
