//! Action `allocate`: gives admitted gangs their nodes, queue by queue and job by job. A gang is committed when it
//! is ready; from then on each turn places one more pod, so that surplus is interleaved between queues and jobs. A
//! gang that is only promised room keeps it until the session ends (B54).

use rustc_hash::FxHashSet;

use super::Action;
use crate::event::{PodGroupPhase, QueueState};
use crate::session::order::Heaps;
use crate::session::place::Outcome;
use crate::session::{Refusal, Session};
use crate::state::jobs::JobId;
use crate::state::queues::QueueId;

/// The action.
#[derive(Debug)]
pub struct Allocate;

impl Action for Allocate {
    fn run(&mut self, session: &mut Session<'_>) {
        let mut served = FxHashSet::default();
        let mut again = Vec::new();
        for job in session.broken_gangs() {
            served.insert(job);
            if session.waits_for_victims(job) {
                continue;
            }
            session.take_back_reserved(job);
            if chance(session, job) == Chance::Good && serve(session, job) == Served::More {
                again.push(job);
            }
            session.keep_places(job);
        }
        for job in session.returning_jobs() {
            if served.insert(job) && chance(session, job) == Chance::Good {
                serve(session, job);
            }
        }
        for job in std::mem::take(&mut session.reserved) {
            if !served.insert(job) {
                continue;
            }
            if session.waits_for_victims(job) {
                session.refusals.insert(job, Refusal::Pipelined);
                continue;
            }
            session.take_back_reserved(job);
            let outcome = match chance(session, job) {
                Chance::Good => serve(session, job),
                _ => Served::Refused,
            };
            match outcome {
                Served::More => again.push(job),
                Served::Done => {}
                Served::Refused => session.give_up_nominations(job),
            }
        }
        session.open_line();
        let mut heaps = Heaps::default();
        for job in again {
            heaps.push_job(session, job);
        }
        let mut standing = FxHashSet::default();
        for job in session.jobs() {
            if served.contains(&job) {
                continue;
            }
            let chance = chance(session, job);
            let placeable = chance == Chance::Good;
            if placeable || (chance == Chance::Later && stands_in_line(session, job)) {
                heaps.push_job(session, job);
            }
            if !placeable {
                standing.insert(job);
            }
        }
        while let Some(queue) = heaps.pop_queue() {
            if session.pipeline.overused(session.state, queue) {
                for job in heaps.drop_jobs(queue) {
                    session.note_overused(queue, job);
                }
                continue;
            }
            let Some(job) = heaps.pop_job(queue) else { continue };
            let fifo = session.state.queues[queue as usize].fifo;
            let served = if standing.contains(&job) {
                Served::Refused
            } else {
                session.withhold_from(job);
                serve(session, job)
            };
            match served {
                Served::More => heaps.put_back(session, queue, job),
                Served::Done => session.leaves_line(job),
                Served::Refused => {
                    let enough = session.stands_in_line(job);
                    // The head blocks its queue: nobody behind it is served in this session.
                    if fifo || enough {
                        heaps.drop_jobs(queue);
                    }
                    if fifo && standing.contains(&job) {
                        continue;
                    }
                }
            }
            heaps.push_queue(session, queue);
        }
        session.close_line();
    }
}

/// What became of a job's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Served {
    /// It has further pods to place.
    More,
    /// It has nothing left to do in this session.
    Done,
    /// It was refused.
    Refused,
}

/// One turn of a job.
fn serve(session: &mut Session<'_>, job: JobId) -> Served {
    let from = session.journal.savepoint();
    match session.place_job(job) {
        Outcome::Ready { more } => {
            session.commit(from, job);
            if more { Served::More } else { Served::Done }
        }
        Outcome::Pipelined { refusal } => {
            session.refusals.insert(job, refusal.unwrap_or(Refusal::Pipelined));
            session.waits_in_line(job);
            Served::Done
        }
        Outcome::Refused { refusal, lasting } => {
            session.rollback(from);
            session.refuse(job, refusal, lasting);
            Served::Refused
        }
        Outcome::Nothing => {
            session.rollback(from);
            Served::Done
        }
    }
}

/// Whether a job can be placed in this session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chance {
    /// It has something to place.
    Good,
    /// Not yet: it waits to be admitted, or for something to be released.
    Later,
    /// It has nothing to place, or may not.
    None,
}

/// Admits the job where nobody else does, and tells whether it has something to place.
fn chance(session: &mut Session<'_>, job: JobId) -> Chance {
    if session.state.jobs[job as usize].is_pending() {
        if session.pipeline.admits {
            return Chance::Later;
        }
        if session.has_queue(job) {
            session.state.jobs[job as usize].phase = PodGroupPhase::Inqueue;
            session.touched.push(job);
        }
    }
    if !session.has_queue(job) {
        session.refusals.insert(job, Refusal::NoQueue);
        return Chance::None;
    }
    let row = &session.state.jobs[job as usize];
    let queue = &session.state.queues[row.queue as usize];
    if matches!(queue.state, QueueState::Closed | QueueState::Closing) {
        session.refusals.insert(job, Refusal::QueueClosed);
        return Chance::None;
    }
    if session.pipeline.job_valid(session.state, job).is_err() {
        return Chance::None;
    }
    if session.rests(job) {
        return Chance::None;
    }
    session.settle_best_effort(job);
    let row = &session.state.jobs[job as usize];
    if row.bind_failures > 1 && session.state.now_ms < row.retry_at_ms {
        return Chance::None;
    }
    if session.is_parked(job) && !session.pipeline.job_pipelined(session.state, job) {
        return Chance::Later;
    }
    if session.prepare(job) { Chance::Good } else { Chance::None }
}

/// In a queue that is served in order, a job that cannot be placed in this session still keeps its place in the line:
/// one that was not admitted, or that has no room since nothing was released.
fn stands_in_line(session: &Session<'_>, job: JobId) -> bool {
    let row = &session.state.jobs[job as usize];
    let queue = &session.state.queues[row.queue as usize];
    let placeable = || session.has_placeable(job);
    if queue.fifo {
        queue.exists && (row.is_pending() || placeable())
    } else {
        // Who has no room stands at the head all the same.
        session.pipeline.reservation.is_some() && !row.is_pending() && placeable()
    }
}

impl Session<'_> {
    /// The job was refused, and nothing was released since: what it was told stands.
    pub(super) fn is_parked(&self, job: JobId) -> bool {
        let parked = self.state.jobs[job as usize].parked;
        parked.is_some_and(|parked| parked.release_epoch == self.state.release_epoch)
    }

    fn note_overused(&mut self, queue: QueueId, job: JobId) {
        if self.refusals.contains_key(&job) || self.pipeline.job_ready(self.state, job) {
            return;
        }
        let Some(task) = self.first_pending(job) else { return };
        let class = self.state.tasks[task].class;
        if !self.pipeline.capped(self.state, queue, class, 1) && self.copies(class, 1) == 0 {
            self.refusals.insert(job, Refusal::Room { task, placed: 0 });
            return;
        }
        let message =
            self.pipeline.limit_reached(self.state, queue, class, 1).unwrap_or_else(|| {
                format!("queue {} is above its share", self.state.queues[queue as usize].name)
            });
        self.refusals.insert(job, Refusal::Queue { task, message });
    }

    fn refuse(&mut self, job: JobId, refusal: Refusal, lasting: bool) {
        self.refused += 1;
        // What is only promised to others comes back when the session ends.
        let settled = self.journal.open().is_empty()
            && self.kept.is_empty()
            && !self.withholds()
            && !self.keeps_places(job);
        let trial = match refusal {
            Refusal::Room { task, placed } => Some((placed, Some(task))),
            Refusal::Members => Some((0, None)),
            _ => None,
        };
        if let Some((placed, without)) = trial
            && settled
            && lasting
        {
            // Nothing was released: trying again before something is would end the same way.
            let release_epoch = self.state.release_epoch;
            self.state.jobs[job as usize].parked =
                Some(crate::state::jobs::Parked { release_epoch, placed, without });
        }
        self.refusals.insert(job, refusal);
    }
}
