//! One scheduling cycle. A [`Session`] borrows the state and the loaded configuration, lets the actions place
//! and admit, and collects decisions. Tentative placements are a journal ([`statement`]) over the one state; what
//! is not committed when the session ends is undone. Time stands still inside a session.

pub mod broken;
mod choose;
pub mod close;
mod domain;
pub mod futile;
mod half_evicted;
pub mod hunt;
mod nominate;
pub mod order;
mod pack;
mod packing;
pub mod place;
mod queue_status;
mod ranking;
pub mod reasons;
pub mod reservation;
mod spare;
pub mod statement;
mod sub_jobs;
pub(crate) mod suspend;
mod victims;
pub mod worksheet;

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::decision::{Decision, Notice};
use crate::index::kernel::Backend;
use crate::laps::{Efforts, Lap, Laps};
use crate::pipeline::Pipeline;
use crate::state::State;
use crate::state::classes::ClassId;
use crate::state::jobs::{JobId, LeftPlace};
use crate::state::tasks::{TaskId, Told};
use statement::Journal;

/// Why a job was not placed in this session.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// No room, or no node that it may use.
    Room {
        /// The first task without a node.
        task: TaskId,
        /// Pods that found a place in the trial.
        placed: u32,
    },
    /// The queue may take no more.
    Queue {
        /// The first task that the queue may not take.
        task: TaskId,
        /// Text for a person.
        message: String,
    },
    /// A pod uses something that cannot be placed.
    Held {
        /// The pod.
        task: TaskId,
        /// Text for a person.
        message: String,
    },
    /// It may not compete for room yet.
    NotAdmitted {
        /// Text for a person.
        message: String,
        /// The cluster lacks room, not the queue.
        lacks_room: bool,
    },
    /// What may be tried fits, but that is not the whole gang: others wait behind scheduling gates.
    Members,
    /// Its queue does not exist.
    NoQueue,
    /// Its queue takes nobody.
    QueueClosed,
    /// Room that is being freed is promised to it.
    Pipelined,
}

/// A cycle.
#[derive(Debug)]
pub struct Session<'s> {
    /// The state.
    pub state: &'s mut State,
    /// The configuration.
    pub pipeline: &'s mut Pipeline,
    /// Instruction set of the kernel.
    pub backend: Backend,
    /// Name of the session, for `transitionID`.
    pub id: String,
    /// Tentative placements.
    pub journal: Journal,
    /// Room kept for members that broken gangs have lost.
    pub kept: Vec<LeftPlace>,
    /// Decisions so far.
    pub decisions: Vec<Decision>,
    /// Events for objects, told before statuses.
    pub notices: Vec<Notice>,
    /// Why jobs were not placed.
    pub refusals: FxHashMap<JobId, Refusal>,
    /// Per class: copies that did not fit anywhere in this session, from which number on more will not either.
    pub hopeless: FxHashMap<ClassId, u64>,
    /// Why pods that look at other pods found no node, in words, as it was during the trial.
    pub trial_reasons: FxHashMap<TaskId, String>,
    /// Waiting pods of jobs that are being placed.
    pub worksheets: FxHashMap<JobId, worksheet::Worksheet>,
    /// Only these nodes are looked at, a bit per slot: those of the hypernode that a gang is being placed in.
    pub(crate) scope: Option<Arc<[u64]>>,
    /// What evictions took.
    pub efforts: Efforts,
    /// Pods committed.
    pub bound: u32,
    /// Pods evicted.
    pub evicted: u32,
    /// Gangs tried and not placed.
    pub refused: u32,
    /// Tell `Scheduled` once per pod.
    pub event_per_pod: bool,
    /// Jobs that got pods committed or were admitted.
    pub touched: Vec<JobId>,
    /// Jobs whose nominated places are kept for them.
    pub reserved: Vec<JobId>,
    /// What nominated pods are told, made once.
    pub told_to_wait: Option<Arc<Told>>,
    /// Waiting pods whose nomination ended, which is still to be told.
    pub denominated: FxHashSet<TaskId>,
    /// What jobs would lose, once it was asked for.
    pub(crate) losses: Option<Arc<suspend::Losses>>,
    /// Searches for room that were carried out.
    pub searches: u32,
    /// The search that began last came so far that it looked at single victims.
    pub(crate) looks_at_victims: bool,
    /// Searches that failed are remembered.
    pub(crate) remembers: bool,
    /// What searches that failed are compared with.
    pub(crate) outlook: Option<futile::Outlook>,
    /// Who is at the head of the line in this session.
    pub(crate) line: reservation::Line,
}

impl Session<'_> {
    /// Runs the actions of the configuration in order.
    pub fn run(&mut self, laps: &mut dyn Laps) {
        self.tell_bind_errors();
        self.tell_hyper_node_problems();
        self.finish_evictions();
        self.reserve_nominated();
        let mut actions = std::mem::take(&mut self.pipeline.actions);
        for (action, name) in actions.iter_mut().zip(self.pipeline.action_names.clone()) {
            action.run(self);
            laps.lap(Lap::Action(name));
        }
        self.pipeline.actions = actions;
    }

    /// Jobs with a PodGroup that this scheduler may touch, in a stable order.
    pub fn jobs(&self) -> Vec<JobId> {
        let mut jobs: Vec<JobId> = self
            .state
            .active_jobs
            .iter()
            .copied()
            .filter(|&job| {
                let row = &self.state.jobs[job as usize];
                row.live && row.group.is_some() && !row.is_foreign()
            })
            .collect();
        jobs.sort_unstable();
        jobs
    }

    /// True when the job's queue exists.
    pub fn has_queue(&self, job: JobId) -> bool {
        self.state.queues[self.state.jobs[job as usize].queue as usize].exists
    }
}
