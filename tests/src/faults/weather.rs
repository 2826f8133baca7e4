//! The weather: what happens to requests and watch events on their way, dealt out by seeded dice.
//!
//! Each run has its own climate: how often anything goes wrong, and which kinds of trouble prevail. The kubelets' watches
//! and the author of the story are spared. Nothing here delays a write for longer than the margin between a leader's
//! deadline and the end of its lease: no scheduler could be blamed for a write that was under way that long.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tephra_simulator::faults::{Fault, Faults, RequestInfo, WatchFault, WatchInfo};

use super::dice::Dice;

/// Who tells the story.
pub const AUTHOR: &str = "author";
/// Who plays all kubelets.
pub const KUBELETS: &str = "kubelets";
/// Who plays the operators of jobs.
pub const OPERATORS: &str = "operators";

/// What the weather, the processes and the run share.
#[derive(Debug, Default)]
pub struct Sky {
    steps: AtomicU64,
    calm: AtomicBool,
    dealt: Mutex<BTreeMap<&'static str, u64>>,
    /// Who is cut off, from everything or only from leases, until when (Unix milliseconds).
    cut_off: Mutex<BTreeMap<String, (bool, i64)>>,
    /// Owners of gangs, by name, that the server lets nobody patch, until when (Unix milliseconds).
    refused: Mutex<BTreeMap<String, i64>>,
}

impl Sky {
    /// Requests answered and watch events delivered so far.
    pub fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    /// Whether trouble is over.
    pub fn is_calm(&self) -> bool {
        self.calm.load(Ordering::Relaxed)
    }

    /// Ends all trouble.
    pub fn calm(&self) {
        self.calm.store(true, Ordering::Relaxed);
        self.cut_off.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Counts a fault.
    pub fn deal(&self, class: &'static str) {
        *self.dealt.lock().unwrap_or_else(PoisonError::into_inner).entry(class).or_insert(0) += 1;
    }

    /// Faults so far, by class.
    pub fn dealt(&self) -> BTreeMap<&'static str, u64> {
        self.dealt.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Cuts a process off from the server, or only from leases, until then.
    pub fn cut_off(&self, identity: &str, leases_only: bool, until_ms: i64) {
        let mut cut_off = self.cut_off.lock().unwrap_or_else(PoisonError::into_inner);
        cut_off.insert(identity.to_owned(), (leases_only, until_ms));
    }

    fn is_cut_off(&self, request: &RequestInfo<'_>) -> bool {
        let cut_off = self.cut_off.lock().unwrap_or_else(PoisonError::into_inner);
        cut_off.get(request.identity).is_some_and(|(leases_only, until_ms)| {
            request.time_ms < *until_ms && (!leases_only || request.resource == "leases")
        })
    }

    /// Refuses patches of an owner until then, as a webhook or missing rights do.
    pub fn refuse(&self, owner: &str, until_ms: i64) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.insert(owner.to_owned(), until_ms);
    }

    fn is_refused(&self, request: &RequestInfo<'_>) -> bool {
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let owner = request.verb == "patch" && matches!(request.group, "batch" | "kubeflow.org");
        owner && refused.get(request.name).is_some_and(|until_ms| request.time_ms < *until_ms)
    }

    fn step(&self) {
        self.steps.fetch_add(1, Ordering::Relaxed);
    }
}

/// The fault hook of one run.
#[derive(Debug)]
pub struct Weather {
    sky: Arc<Sky>,
    dice: Dice,
    requests: f64,
    events: f64,
    reads: Vec<(u32, Trouble)>,
    writes: Vec<(u32, Trouble)>,
    watch: Vec<(u32, WatchTrouble)>,
}

#[derive(Clone, Copy, Debug)]
enum Trouble {
    Conflict,
    Gone,
    TooMany,
    Internal,
    Unavailable,
    LostBefore,
    LostAfter,
    Hung,
    Slow,
    Stale,
}

#[derive(Clone, Copy, Debug)]
enum WatchTrouble {
    Drop,
    Duplicate,
    Swap,
    Late,
    Gone,
    Cut,
    CutInside,
}

/// Longest delay of a request in milliseconds: below the margin of a lease (15 s - 10 s).
const SLOWEST_MS: u64 = 3_000;

impl Weather {
    /// The climate of a seed.
    #[must_use]
    pub fn of(seed: u64, sky: Arc<Sky>) -> Self {
        let mut dice = Dice::new(seed, 1);
        let mut climate = |base: u32| {
            let factor = *dice.pick(&[0, 1, 1, 2, 4]);
            base * factor
        };
        let reads = vec![
            (climate(2), Trouble::Gone),
            (climate(2), Trouble::TooMany),
            (climate(2), Trouble::Internal),
            (climate(2), Trouble::Unavailable),
            (climate(3), Trouble::LostBefore),
            (climate(3), Trouble::LostAfter),
            (climate(3), Trouble::Slow),
            (climate(2), Trouble::Stale),
        ];
        let writes = vec![
            (climate(3), Trouble::Conflict),
            (climate(2), Trouble::TooMany),
            (climate(2), Trouble::Internal),
            (climate(2), Trouble::Unavailable),
            (climate(3), Trouble::LostBefore),
            (climate(4), Trouble::LostAfter),
            (climate(2), Trouble::Hung),
            (climate(3), Trouble::Slow),
        ];
        let watch = vec![
            (climate(3), WatchTrouble::Drop),
            (climate(3), WatchTrouble::Duplicate),
            (climate(3), WatchTrouble::Swap),
            (climate(4), WatchTrouble::Late),
            (climate(1), WatchTrouble::Gone),
            (climate(1), WatchTrouble::Cut),
            (climate(1), WatchTrouble::CutInside),
        ];
        let requests = *dice.pick(&[0.0, 0.02, 0.05, 0.1, 0.2]);
        let events = *dice.pick(&[0.0, 0.01, 0.03, 0.08]);
        Self { sky, dice, requests, events, reads, writes, watch }
    }

    /// Nothing goes wrong on the way, save what the story wants.
    #[must_use]
    pub fn bright(seed: u64, sky: Arc<Sky>) -> Self {
        Self { requests: 0.0, events: 0.0, ..Self::of(seed, sky) }
    }

    fn trouble(&mut self, request: &RequestInfo<'_>) -> Option<(&'static str, Fault)> {
        let spared = [AUTHOR, OPERATORS].contains(&request.identity);
        // A lease that is hardly ever renewed would leave nothing to test.
        let rate = if request.resource == "leases" { self.requests / 2.0 } else { self.requests };
        if spared || !self.dice.chance(rate) {
            return None;
        }
        let list = if request.is_write() { &self.writes } else { &self.reads };
        if list.iter().all(|(weight, _)| *weight == 0) {
            return None;
        }
        let trouble = self.dice.weighted(list);
        Some(match trouble {
            // A create answers 409 only when the name is taken: that would be a lie.
            Trouble::Conflict if request.verb == "create" && request.subresource.is_empty() => {
                return None;
            }
            Trouble::Conflict => ("conflict (409)", Fault::Reject(409, None)),
            Trouble::Gone if request.verb == "get" => return None,
            Trouble::Gone => ("expired list or watch (410)", Fault::Reject(410, None)),
            Trouble::TooMany => {
                let after = u32::try_from(self.dice.within(1, 4)).unwrap_or(1);
                ("too many requests (429)", Fault::Reject(429, Some(after)))
            }
            Trouble::Internal => ("internal error (500)", Fault::Reject(500, None)),
            Trouble::Unavailable => {
                let after = self.dice.chance(0.5).then_some(1);
                ("unavailable (503)", Fault::Reject(503, after))
            }
            Trouble::LostBefore => ("request lost", Fault::DropBefore),
            Trouble::LostAfter => ("answer lost", Fault::DropAfter),
            Trouble::Hung => ("answer lost late", Fault::HangAfter(self.dice.within(500, 40_000))),
            Trouble::Slow => ("slow answer", Fault::Delay(self.dice.within(5, SLOWEST_MS))),
            Trouble::Stale if request.verb != "list" => return None,
            Trouble::Stale => ("stale list", Fault::Stale(self.dice.within(1, 50))),
        })
    }
}

impl Faults for Weather {
    fn on_request(&mut self, request: &RequestInfo<'_>) -> Fault {
        let (class, fault) = if self.sky.is_calm() {
            (None, Fault::None)
        } else if self.sky.is_cut_off(request) {
            (Some("cut off"), Fault::DropBefore)
        } else if self.sky.is_refused(request) {
            (Some("owner refused (403)"), Fault::Reject(403, None))
        } else {
            match self.trouble(request) {
                Some((class, fault)) => (Some(class), fault),
                None => (None, Fault::None),
            }
        };
        if let Some(class) = class {
            self.sky.deal(class);
        }
        if fault != Fault::DropBefore {
            self.sky.step();
        }
        fault
    }

    fn on_watch_event(&mut self, event: &WatchInfo<'_>) -> WatchFault {
        let spared = [AUTHOR, KUBELETS, OPERATORS].contains(&event.identity);
        let quiet = spared || event.initial || self.sky.is_calm();
        if quiet || !self.dice.chance(self.events) || self.watch.iter().all(|(w, _)| *w == 0) {
            self.sky.step();
            return WatchFault::Deliver;
        }
        let (class, fault) = match self.dice.weighted(&self.watch) {
            WatchTrouble::Drop => ("event dropped", WatchFault::Drop),
            WatchTrouble::Duplicate => ("event doubled", WatchFault::Duplicate),
            WatchTrouble::Swap => ("events swapped", WatchFault::Swap),
            WatchTrouble::Late => ("event late", WatchFault::Delay(self.dice.within(10, 4_000))),
            WatchTrouble::Gone => ("watch expired (410)", WatchFault::Gone410),
            WatchTrouble::Cut => ("watch cut", WatchFault::Cut),
            WatchTrouble::CutInside => ("watch cut inside a line", WatchFault::CutInside),
        };
        self.sky.deal(class);
        if fault != WatchFault::Drop {
            self.sky.step();
        }
        fault
    }
}
