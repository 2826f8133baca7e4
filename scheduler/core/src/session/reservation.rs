//! Reservations for gangs at the head of the line, and backfill around them (EASY). Within action allocate, the first gang of
//! each queue that is refused for lack of room is the head of that queue. Once it has been that for the hold time, the
//! nodes that become available first are kept for it. Whoever would still be there at its shadow time gets of those
//! nodes only what the gang leaves; it is taken out of the columns of the nodes while such a job is tried, so that counts
//! and refusals stay exact. [`search`] finds the nodes, [`forecast`] knows when pods end.

mod forecast;
mod search;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::{Refusal, Session};
use crate::decision::Decision;
use crate::event::QueueState;
use crate::state::jobs::JobId;
use crate::state::nodes::NodeId;
use crate::state::queues::QueueId;
use crate::state::reservations::{Demand, Reservation, Waiting, When};
use crate::state::resource::{Dim, Request};
use crate::state::status::Status;

/// So long a gang that could not be given a reservation is passed over.
const PASSED_OVER_MS: i64 = 60_000;
/// A prediction is told anew when it moved by more than this, and by more than a tenth of what is left.
const MOVED_MS: i64 = 60_000;

/// Who is at the head of the line in this session.
#[derive(Debug, Default)]
pub(crate) struct Line {
    heads: FxHashSet<QueueId>,
    waiting: FxHashMap<JobId, Waiting>,
    /// Jobs of a queue refused beside a reservation.
    refused: FxHashMap<QueueId, u32>,
    /// Holders whose turn came.
    seen: FxHashSet<JobId>,
    /// What heads ask for that have no reservation yet: nobody behind them in the line gets one in their pool.
    before: Vec<Demand>,
    /// Gangs that were refused while room was kept from them.
    held_back: FxHashSet<JobId>,
}

impl Session<'_> {
    /// Looks at the reservations of earlier sessions before anybody is served.
    pub(crate) fn open_line(&mut self) {
        if self.pipeline.reservation.is_none() {
            return;
        }
        self.line = Line::default();
        for mut reservation in std::mem::take(&mut self.state.reservations.held) {
            let demand = self.uid_of(reservation.job) == Some(&reservation.uid)
                && self.takes_part(reservation.job, reservation.queue)
                && self.demand(reservation.job).as_ref() == Some(&reservation.demand);
            if !demand {
                continue;
            }
            let ready = self.ready(&reservation);
            if ready == When::Never {
                continue;
            }
            reservation.late |= ready > reservation.start;
            reservation.start = ready;
            self.state.reservations.held.push(reservation);
        }
    }

    /// Keeps reserved nodes from a job that would be in the way, and from nobody else. Costs nothing without reservations.
    pub(crate) fn withhold_from(&mut self, job: JobId) {
        if self.state.reservations.held.is_empty() {
            return;
        }
        let may_use = self.pipeline.reservation.is_some_and(|rules| rules.backfill);
        let end = if may_use { self.predicted_end(job) } else { When::Never };
        for at in 0..self.state.reservations.held.len() {
            let reservation = &self.state.reservations.held[at];
            let in_time = matches!((end, reservation.start), (When::At(end), When::At(start)) if end <= start);
            self.withhold(at, reservation.job != job && !in_time);
        }
    }

    /// Something is kept from whoever is being served.
    pub(crate) fn withholds(&self) -> bool {
        self.state.reservations.held.iter().any(|reservation| !reservation.withheld.is_empty())
    }

    /// Something was kept from this job when it was refused.
    pub(super) fn was_held_back(&self, job: JobId) -> bool {
        self.line.held_back.contains(&job)
    }

    fn withhold(&mut self, at: usize, on: bool) {
        let reservation = &self.state.reservations.held[at];
        if on != reservation.withheld.is_empty() {
            return;
        }
        let parts = if on { self.beyond_spare(reservation) } else { reservation.withheld.clone() };
        for (node, request) in &parts {
            let sign = if on { 1 } else { -1 };
            self.state.nodes.account(*node, request, [0, 0], Status::Pipelined, sign);
        }
        self.state.reservations.held[at].withheld = if on { parts } else { Vec::new() };
    }

    /// What others may not have of the reserved nodes, of what they could have now: all but what is left at the shadow time
    /// once the gang has started. Where that is not known, all that the gang can use already.
    fn beyond_spare(&self, reservation: &Reservation) -> Vec<(NodeId, Request)> {
        let mut parts = Vec::new();
        for claim in &reservation.claims {
            let slot = claim.node as usize;
            let dims: SmallVec<[Dim; 5]> = claim.request.iter().map(|&(dim, _)| dim).collect();
            let room = match reservation.start {
                When::At(_) => Some(self.outlook(claim.node, &dims).room_at(reservation.start)),
                When::Someday | When::Never => None,
            };
            let mut part = Request::default();
            for (at, &(dim, asked)) in claim.request.iter().enumerate() {
                let column = &self.state.nodes.columns[dim as usize];
                let now = column.future[slot].max(0.0) as i64;
                let then = room.as_ref().map_or(now, |room| room[at]);
                let withheld = now - (then - asked).max(0);
                if withheld > 0 {
                    part.push((dim, withheld));
                }
            }
            if !part.is_empty() {
                parts.push((claim.node, part));
            }
        }
        parts
    }

    /// A job was refused, or has no room since nothing was released. True when enough of its queue were tried beside the
    /// reservations.
    pub(crate) fn stands_in_line(&mut self, job: JobId) -> bool {
        let Some(rules) = self.pipeline.reservation else { return false };
        let queue = self.state.jobs[job as usize].queue;
        let tried = self.refusals.contains_key(&job);
        if self.withholds() && tried {
            self.line.held_back.insert(job);
        }
        self.stand(job, queue);
        if self.state.reservations.held.is_empty() || !tried || self.line.seen.contains(&job) {
            return false;
        }
        let refused = self.line.refused.entry(queue).or_default();
        *refused += 1;
        *refused >= rules.scan
    }

    fn stand(&mut self, job: JobId, queue: QueueId) -> Option<()> {
        let rules = self.pipeline.reservation?;
        let for_room = matches!(self.refusals.get(&job), None | Some(Refusal::Room { .. }));
        let admitted = !self.state.jobs[job as usize].is_pending();
        if self.line.heads.contains(&queue)
            || !admitted
            || !for_room
            || self.pipeline.job_ready(self.state, job)
        {
            return None;
        }
        let demand = self.demand(job)?;
        let (uid, now_ms) = (self.uid_of(job)?.clone(), self.state.now_ms);
        let known = self.state.reservations.waiting.get(&job).filter(|known| known.uid == uid);
        let waiting = known.cloned().unwrap_or_else(|| Waiting {
            uid: uid.clone(),
            since_ms: now_ms,
            passed_until_ms: i64::MIN,
        });
        self.line.waiting.insert(job, waiting.clone());
        if waiting.passed_until_ms > now_ms {
            return None;
        }
        self.line.heads.insert(queue);
        // Whoever held a reservation in this queue is its first no more.
        self.end_reservations(|held| held.queue == queue && held.job != job);
        self.line.seen.insert(job);
        let own = self.state.reservations.held.iter().position(|held| held.job == job);
        if own.is_some_and(|at| !self.state.reservations.held[at].late) {
            return None;
        }
        let others = self.state.reservations.held.iter().filter(|held| held.job != job);
        let others = others.map(|held| &held.demand).chain(&self.line.before);
        let in_pool = others.filter(|other| self.share_nodes(other, &demand)).count();
        if in_pool >= rules.per_pool || now_ms - waiting.since_ms < rules.hold_ms {
            self.line.before.push(demand);
            return None;
        }
        self.lift();
        let found = self.search(job, &demand);
        self.end_reservations(|held| held.job == job);
        match found {
            Some((start, claims)) => self.state.reservations.held.push(Reservation {
                job,
                uid,
                queue,
                demand,
                claims,
                start,
                late: false,
                withheld: Vec::new(),
            }),
            None => {
                // The next gang of the queue may have a reservation instead.
                self.line.heads.remove(&queue);
                let passed_until_ms = now_ms + rules.hold_ms.max(PASSED_OVER_MS);
                self.line.waiting.insert(job, Waiting { passed_until_ms, ..waiting });
            }
        }
        Some(())
    }

    /// A holder keeps its reservation while room that is being freed is promised to it.
    pub(crate) fn waits_in_line(&mut self, job: JobId) {
        if self.state.reservations.held.iter().any(|held| held.job == job) {
            self.line.seen.insert(job);
            self.line.heads.insert(self.state.jobs[job as usize].queue);
        }
    }

    /// A job has what it waited for.
    pub(crate) fn leaves_line(&mut self, job: JobId) {
        if !self.line.seen.contains(&job) {
            self.end_reservations(|held| held.job == job);
        }
    }

    /// Gives everything back to everybody, and ends the reservations of those whose turn did not come.
    pub(crate) fn close_line(&mut self) {
        if self.pipeline.reservation.is_none() {
            return;
        }
        self.lift();
        let seen = std::mem::take(&mut self.line.seen);
        self.end_reservations(|held| !seen.contains(&held.job));
        self.state.reservations.waiting = std::mem::take(&mut self.line.waiting);
        self.tell_predictions();
    }

    /// Nothing is kept from anybody from now on.
    pub(crate) fn lift(&mut self) {
        (0..self.state.reservations.held.len()).for_each(|at| self.withhold(at, false));
    }

    fn end_reservations(&mut self, ends: impl Fn(&Reservation) -> bool) {
        for at in (0..self.state.reservations.held.len()).rev() {
            if ends(&self.state.reservations.held[at]) {
                self.withhold(at, false);
                self.state.reservations.held.remove(at);
            }
        }
    }

    fn uid_of(&self, job: JobId) -> Option<&Arc<str>> {
        let row = &self.state.jobs[job as usize];
        row.group.as_ref().filter(|_| row.live).map(|group| &group.uid)
    }

    /// The job is still in its queue, and that is open.
    fn takes_part(&self, job: JobId, queue: QueueId) -> bool {
        let row = &self.state.queues[queue as usize];
        self.state.jobs[job as usize].queue == queue
            && row.exists
            && !matches!(row.state, QueueState::Closed | QueueState::Closing)
    }

    /// Both may go to some node, whatever room it has: they are of one pool.
    fn share_nodes(&self, one: &Demand, other: &Demand) -> bool {
        let mask = |class: u32| {
            let key = self.state.classes.list[class as usize].key;
            &self.state.classes.keys[key as usize].mask
        };
        one.classes.iter().any(|&(one, _)| {
            let shares = |&(other, _): &(u32, u32)| {
                mask(one).iter().zip(mask(other)).any(|(one, other)| one & other != 0)
            };
            other.classes.iter().any(shares)
        })
    }

    /// Writes predictions that moved, and removes those of gangs without a reservation.
    fn tell_predictions(&mut self) {
        let now_ms = self.state.now_ms;
        for job in self.jobs() {
            let held = self.state.reservations.held.iter().find(|held| held.job == job);
            let start_ms = held.and_then(|held| match held.start {
                When::At(ms) => Some(ms.max(now_ms).div_euclid(1000) * 1000),
                When::Someday | When::Never => None,
            });
            let row = &mut self.state.jobs[job as usize];
            let Some(group) = &mut row.group else { continue };
            let stands = match (group.predicted_ms, start_ms) {
                (Some(told), Some(start)) => {
                    (told - start).abs() <= MOVED_MS.max((told - now_ms) / 10)
                }
                (told, start) => told == start,
            };
            if !stands {
                group.predicted_ms = start_ms;
                let (group, uid) = (row.key.clone(), group.uid.to_string());
                self.decisions.push(Decision::PredictedStart { group, uid, start_ms });
            }
            if held.is_some() && !self.refusals.contains_key(&job) {
                // It was not tried, but what it is told of its start may have changed.
                let parked = self.state.jobs[job as usize].parked;
                let placed = parked.map_or(0, |parked| parked.placed);
                let without = parked.and_then(|parked| parked.without);
                if let Some(task) = without.or_else(|| self.first_pending(job)) {
                    self.refusals.insert(job, Refusal::Room { task, placed });
                }
            }
        }
    }

    /// What a gang is told beside why it waits: when it will start, or that room is kept from it.
    pub(super) fn prospect(&self, job: JobId) -> Option<String> {
        let held = &self.state.reservations.held;
        if held.iter().any(|held| held.job == job) {
            let told = self.state.jobs[job as usize].group.as_ref()?.predicted_ms;
            let time = told.and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
            return Some(time.map_or_else(
                || "Nodes are reserved for it; its predicted start is unknown".to_owned(),
                |time| format!("Nodes are reserved for it; predicted start {time}"),
            ));
        }
        let others = held.first().filter(|_| self.was_held_back(job))?;
        Some(format!("Nodes are reserved for {}", self.state.jobs[others.job as usize].key))
    }
}
