//! Looking ahead: what a batch of events will touch is read once before they are applied. The rows of a pod lie all
//! over the memory of a large cluster. Applied one after the other, each event waits for the memory several times; read
//! together, level by level, the waits of many events overlap. Nothing here changes anything: an event that was not
//! looked at is applied with the same result.

use std::hint::black_box;

use smallvec::SmallVec;

use super::State;
use super::jobs::JobId;
use super::nodes::{NO_NODE, NodeId};
use super::tasks::{NO_JOB, NO_TASK, TaskId};
use crate::event::Event;

/// Events looked at together: what they touch, about two kilobytes each, stays in the first caches until it is needed.
pub const AHEAD: usize = 32;

impl State {
    /// Brings what up to [`AHEAD`] events will touch into the cache.
    pub fn warm(&self, events: &[Event]) {
        let mut ahead = Ahead::default();
        for event in events {
            let uid = match event {
                Event::Pod(pod) => {
                    ahead.nodes.extend(pod.node.as_deref().and_then(|name| self.nodes.get(name)));
                    let job = |name: &String| self.job_named(&pod.key.namespace, name);
                    ahead.jobs.extend(pod.group.as_ref().and_then(job));
                    &pod.uid
                }
                Event::PodDeleted(uid)
                | Event::BindOk(uid)
                | Event::BindFailed { uid, .. }
                | Event::EvictOk(uid)
                | Event::EvictFailed { uid, .. } => uid,
                _ => continue,
            };
            ahead.tasks.extend(self.tasks.likely(uid));
        }
        black_box(self.rows_of(&mut ahead) ^ self.beside(&ahead));
    }

    /// Reads the rows of the tasks; what they name is looked at next.
    fn rows_of(&self, ahead: &mut Ahead) -> u64 {
        let mut seen = 0;
        for &task in &ahead.tasks {
            let row = &self.tasks[task];
            ahead.nodes.extend((row.node != NO_NODE).then_some(row.node));
            ahead.jobs.extend((row.job != NO_JOB).then_some(row.job));
            ahead.others.extend(row.links.into_iter().filter(|&link| link != NO_TASK));
            seen ^= row.created_ms as u64 ^ u64::from(row.live);
        }
        seen
    }

    /// Reads jobs, columns of nodes, and tasks that stand beside the ones meant.
    fn beside(&self, ahead: &Ahead) -> u64 {
        let mut seen = 0;
        let task = |task: TaskId| u64::from(self.tasks[task].node) ^ u64::from(self.tasks[task].at);
        for &node in &ahead.nodes {
            let at = node as usize;
            for column in &self.nodes.columns {
                for amounts in column.amounts() {
                    seen ^= amounts[at].to_bits();
                }
            }
            seen ^= self.nodes.nonzero[0][at].to_bits() ^ self.nodes.nonzero[1][at].to_bits();
            let head = self.nodes.head[at];
            seen ^= if head == NO_TASK { 0 } else { task(head) };
        }
        for &job in &ahead.jobs {
            let row = &self.jobs[job as usize];
            seen ^= u64::from(row.queue) ^ row.tasks.last().map_or(0, |&last| task(last));
        }
        for &other in &ahead.others {
            seen ^= task(other);
        }
        for &task in &ahead.tasks {
            seen ^= self.tasks[task].pod.uid.bytes().next().map_or(0, u64::from);
        }
        seen
    }
}

/// What a batch of events will touch.
#[derive(Default)]
struct Ahead {
    tasks: SmallVec<[TaskId; AHEAD]>,
    nodes: SmallVec<[NodeId; AHEAD]>,
    jobs: SmallVec<[JobId; AHEAD]>,
    /// Neighbours of the tasks in lists.
    others: SmallVec<[TaskId; AHEAD]>,
}
