//! Searches for room that found nobody are not repeated before something has changed that they depend on. Each waiting job keeps
//! what the world looked like when a search for it failed ([`Futile`]); where it looks the same, the same search would fail the
//! same. Only failures are kept, and a failed search leaves nothing behind, so leaving one out changes no decision.
//!
//! A search depends on
//! * where pods stand and since when: a fingerprint that follows every placement ([`crate::state::fingerprint`]), so that what a
//!   session only tries and takes back leaves it as it was;
//! * nodes, queues, groups and what else objects say of those who may have to go: counters in the state;
//! * the job's own pods and group: any news of those drops what is kept of it;
//! * figures of plugins ([`Figures`]), which each plugin tells of itself: exact ones must be the same, drifting ones (turns) may have
//!   moved as long as no comparison of the search comes out differently;
//! * time: rests after suspensions, minimum run times and deadlines end at known moments, until which a failure stands. What jobs
//!   would lose grows each millisecond, but only its order counts.

use std::sync::Arc;

use super::Session;
use super::hunt::Prey;
use crate::plugin::{EvictFor, Figures};
use crate::state::State;
use crate::state::fingerprint::{Fingerprint, mix};
use crate::state::jobs::JobId;

/// Which search it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Search {
    pub(super) why: EvictFor,
    pub(super) prey: Prey,
    pub(super) whole_gangs: bool,
}

/// What searches depend on beside figures of plugins and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct World {
    placed: Fingerprint,
    release_epoch: u64,
    prey_epoch: u64,
    queue_epoch: u64,
}

/// A search that failed.
#[derive(Clone, Debug)]
pub struct Futile {
    search: Search,
    world: World,
    figures: Arc<Figures>,
    /// So far drifting figures may move against each other.
    leeway: i128,
    /// The order of jobs by what they would lose, if the search asked for it.
    losses: Option<u64>,
    /// When it failed, and from when on time alone may have changed the answer.
    since_ms: i64,
    until_ms: i64,
}

/// What a session knows of the world as it is now.
#[derive(Debug)]
pub struct Outlook {
    world: World,
    figures: Option<Arc<Figures>>,
    /// When the next rest of those who may have to go ends, once it was asked for.
    until_ms: Option<i64>,
    /// How far figures have moved against each other since those.
    drift: Option<(Arc<Figures>, i128)>,
}

impl Session<'_> {
    /// The same search failed before, and nothing has changed that could make it succeed now.
    pub(super) fn is_futile(&mut self, job: JobId, search: Search) -> bool {
        let known = |session: &Self| {
            let list = &session.state.jobs[job as usize].futile;
            list.iter().position(|futile| futile.search == search)
        };
        let (Some(at), Some(world)) = (known(self), self.world()) else { return false };
        let now_ms = self.state.now_ms;
        let futile = &self.state.jobs[job as usize].futile[at];
        let in_time = (futile.since_ms..futile.until_ms).contains(&now_ms);
        if futile.world != world || !in_time {
            return false;
        }
        let Futile { figures: then, leeway, losses, .. } = futile.clone();
        let outlook = self.look_out(world);
        let Some(now) = &outlook.figures else { return false };
        if then.exact != now.exact || then.drifting.len() != now.drifting.len() {
            return false;
        }
        let drift = match &outlook.drift {
            Some((known, drift)) if Arc::ptr_eq(known, &then) => *drift,
            _ => {
                let drift = drift(&then.drifting, &now.drifting);
                outlook.drift = Some((then, drift));
                drift
            }
        };
        // Last, so that it is reckoned at the very moment at which the search would ask for it.
        drift < leeway
            && (losses.is_none() || self.know_losses().map(|losses| losses.order) == losses)
    }

    /// A search has failed, and what it tried was taken back.
    pub(super) fn note_futile(&mut self, job: JobId, search: Search) {
        self.state.jobs[job as usize].futile.retain(|futile| futile.search != search);
        let Some(world) = self.world() else { return };
        let Some(figures) = self.look_out(world).figures.clone() else { return };
        let mut until_ms = self.pipeline.answers_until_ms(self.state, job);
        let mut losses = None;
        if self.looks_at_victims {
            let rests_ms = self.look_out(world).until_ms;
            let rests_ms = rests_ms.unwrap_or_else(|| self.rests_until_ms());
            self.look_out(world).until_ms = Some(rests_ms);
            until_ms = until_ms.min(rests_ms).min(self.pairs_rest_until_ms(job));
            losses = self.losses.as_ref().map(|losses| losses.order);
        }
        let (leeway, since_ms) = (self.pipeline.leeway(), self.state.now_ms);
        let futile = Futile { search, world, figures, leeway, losses, since_ms, until_ms };
        self.state.jobs[job as usize].futile.push(futile);
    }

    /// `None` where nothing is remembered: room is kept for broken gangs that no pod stands for.
    fn world(&self) -> Option<World> {
        let State { placed, release_epoch, prey_epoch, queue_epoch, .. } = *self.state;
        (self.remembers && self.kept.is_empty()).then_some(World {
            placed,
            release_epoch,
            prey_epoch,
            queue_epoch,
        })
    }

    /// Figures of plugins are asked for once in a world.
    fn look_out(&mut self, world: World) -> &mut Outlook {
        let known = self.outlook.take().filter(|outlook| outlook.world == world);
        let outlook = known.unwrap_or_else(|| Outlook {
            world,
            figures: self.pipeline.figures(self.state).map(Arc::new),
            until_ms: None,
            drift: None,
        });
        self.outlook.insert(outlook)
    }
}

/// How far figures have moved against each other.
fn drift(then: &[i128], now: &[i128]) -> i128 {
    let moves = || then.iter().zip(now).map(|(then, now)| now - then);
    moves().max().unwrap_or(0) - moves().min().unwrap_or(0)
}

/// The order of jobs by what they would lose: all that the order of victims takes from it.
pub(super) fn order_of(losses: impl Iterator<Item = (JobId, i64)>) -> u64 {
    let mut sorted: Vec<(i64, JobId)> = losses.map(|(job, loss)| (loss, job)).collect();
    sorted.sort_unstable();
    let mut rank = 0;
    // Jobs without a figure lose nothing.
    let mut before = Some(0);
    mix(sorted.into_iter().map(|(loss, job)| {
        rank += u64::from(before.replace(loss) != Some(loss));
        rank << 32 | u64::from(job)
    }))
}

#[cfg(test)]
mod tests;
