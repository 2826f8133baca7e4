//! The façade of the crate: one [`Core`] owns the scheduling state, takes events in, runs sessions, and hands
//! decisions out. It is the only writer of the state.

use std::sync::Arc;

use jiff::tz::TimeZone;
use rustc_hash::{FxHashMap, FxHashSet};
use tephra_api::conf::SchedulerConf;

use crate::decision::{Decision, PodRef};
use crate::event::Event;
use crate::index::kernel::Backend;
use crate::laps::{Efforts, Lap, Laps, Untimed};
use crate::overview::Overview;
use crate::pipeline::Pipeline;
use crate::probe::Probe;
use crate::session::Session;
use crate::session::reservation::Line;
use crate::session::statement::{Journal, Op};
use crate::state::State;
use crate::state::reservations::Reservations;
use crate::state::status::Status;
use crate::state::warm::AHEAD;

/// Settings that do not come from the scheduler configuration file.
#[derive(Clone, Debug)]
pub struct Options {
    /// Queue of PodGroups that name none (`--default-queue`).
    pub default_queue: String,
    /// Tell `Scheduled` once per pod instead of once per PodGroup transition.
    pub event_per_pod: bool,
    /// Time zone of windows that the configuration gives as times of day; `None` is UTC.
    pub time_zone: Option<TimeZone>,
}

impl Default for Options {
    fn default() -> Self {
        Self { default_queue: "default".to_owned(), event_per_pod: false, time_zone: None }
    }
}

/// What one session did.
#[derive(Clone, Debug, Default)]
pub struct SessionReport {
    /// Decisions in the order in which they must be carried out.
    pub decisions: Vec<Decision>,
    /// Pods placed and committed.
    pub bound: u32,
    /// Pods whose eviction was decided.
    pub evicted: u32,
    /// Gangs that were tried and could not be placed.
    pub refused: u32,
    /// What evictions took.
    pub efforts: Efforts,
    /// Searches for pods that could make room that were carried out: those whose answer is known to be no are not.
    pub searches: u32,
    /// True when something is still waiting that a later session might place without any new event
    /// (for example a gang admitted in this session after allocate had run).
    pub again: bool,
}

/// One finding of an audit: a ledger that differs from a recomputation (I7), a node over its allocatable (I2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Audit(pub String);

/// Where a task was put in the last session without being bound: promised, or placed for a gang that did not
/// become ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The pod.
    pub pod: PodRef,
    /// Its node.
    pub node: Arc<str>,
    /// On room that is still being freed.
    pub pipelined: bool,
}

/// Owner of the scheduling state.
#[derive(Debug)]
pub struct Core {
    pub(crate) state: State,
    pub(crate) pipeline: Pipeline,
    pub(crate) backend: Backend,
    options: Options,
    sessions: u64,
    remembers: bool,
    placements: Vec<Placement>,
}

impl Core {
    /// A core without any objects.
    pub fn new(options: Options, conf: &SchedulerConf) -> Self {
        let mut state = State::new(&options.default_queue);
        state.time_zone = options.time_zone.clone();
        let mut core = Self {
            state,
            pipeline: Pipeline::default(),
            backend: Backend::detect(),
            options,
            sessions: 0,
            remembers: true,
            placements: Vec::new(),
        };
        core.configure(conf);
        core
    }

    /// Runs the kernel on another instruction set, for tests and measurements.
    #[must_use]
    pub fn with_backend(mut self, backend: Backend) -> Self {
        self.backend = backend;
        self
    }

    /// Repeats every search that failed, for tests and measurements.
    #[must_use]
    pub fn without_memory(mut self) -> Self {
        self.remembers = false;
        self
    }

    /// Swaps the configuration; call it between sessions. Gives warnings for unknown plugins and wrong
    /// arguments.
    pub fn configure(&mut self, conf: &SchedulerConf) -> Vec<String> {
        let mut warnings = Vec::new();
        self.pipeline = Pipeline::new(conf, &mut warnings);
        self.state.classes.reconfigure(
            self.pipeline.filters,
            self.pipeline.switches,
            self.pipeline.scores.fixed,
            &self.state.nodes,
        );
        self.state.run_times.keep(self.pipeline.reservation.is_some());
        self.state.reservations = Reservations::default();
        self.state.released();
        for job in 0..self.state.jobs.len() as u32 {
            self.state.jobs[job as usize].futile.clear();
            if self.state.jobs[job as usize].live {
                self.state.touch_job(job);
            }
        }
        warnings
    }

    /// Applies an event.
    pub fn apply(&mut self, event: Event) {
        self.state.apply(event);
    }

    /// Applies events in order: the same as [`Core::apply`] for each of them, and faster when there are many.
    pub fn apply_all(&mut self, events: Vec<Event>) {
        let mut events = events.into_iter();
        while !events.as_slice().is_empty() {
            let count = events.as_slice().len().min(AHEAD);
            self.state.warm(&events.as_slice()[..count]);
            events.by_ref().take(count).for_each(|event| self.state.apply(event));
        }
    }

    /// Something changed that a session could act on.
    pub fn wants_session(&self) -> bool {
        self.state.changed
    }

    /// Runs one cycle at the given time.
    pub fn session(&mut self, now_ms: i64) -> SessionReport {
        self.timed_session(now_ms, &mut Untimed)
    }

    /// Runs one cycle at the given time, and tells when a part of it has ended.
    pub fn timed_session(&mut self, now_ms: i64, laps: &mut dyn Laps) -> SessionReport {
        self.state.changed = false;
        self.sessions += 1;
        self.state.now_ms = now_ms;
        self.state.see_idle_claims();
        self.state.run_times.see(now_ms);
        let decisions = crate::session::suspend::review(&mut self.state, self.pipeline.suspension);
        for job in std::mem::take(&mut self.state.dirty_jobs) {
            self.state.refresh_job(job);
        }
        self.open(laps);
        laps.lap(Lap::Open);
        let mut session = Session {
            state: &mut self.state,
            pipeline: &mut self.pipeline,
            backend: self.backend,
            id: format!("{now_ms:x}-{:x}", self.sessions),
            journal: Journal::default(),
            kept: Vec::new(),
            decisions,
            notices: Vec::new(),
            refusals: FxHashMap::default(),
            hopeless: FxHashMap::default(),
            trial_reasons: FxHashMap::default(),
            worksheets: FxHashMap::default(),
            scope: None,
            efforts: Efforts::default(),
            bound: 0,
            evicted: 0,
            refused: 0,
            event_per_pod: self.options.event_per_pod,
            touched: Vec::new(),
            reserved: Vec::new(),
            told_to_wait: None,
            denominated: FxHashSet::default(),
            losses: None,
            searches: 0,
            looks_at_victims: false,
            remembers: self.remembers,
            outlook: None,
            line: Line::default(),
        };
        session.run(laps);
        self.placements = session
            .journal
            .open()
            .iter()
            .filter_map(|&op| match op {
                Op::Place { task, node, pipelined } => Some(Placement {
                    pod: session.state.tasks[task].pod.clone(),
                    node: session.state.nodes.identity[node as usize].name.clone(),
                    pipelined,
                }),
                Op::Evict { .. } => None,
            })
            .collect();
        session.close(laps);
        let report = SessionReport {
            bound: session.bound,
            evicted: session.evicted,
            refused: session.refused,
            efforts: session.efforts,
            searches: session.searches,
            again: !session.touched.is_empty(),
            decisions: session.decisions,
        };
        self.rest();
        report
    }

    /// Takes jobs off the list of active ones that have nothing to wait for: everything they will do next starts
    /// with an event, which puts them back.
    fn rest(&mut self) {
        let state = &mut self.state;
        let mut active = std::mem::take(&mut state.active_jobs);
        active.retain(|&job| {
            let row = &mut state.jobs[job as usize];
            let waits = row.live
                && row.group.is_some()
                && (row.counts.of(Status::Pending) > 0
                    || row.is_pending()
                    || (row.is_absent() && !row.lapsed)
                    || row.broken_since_ms.is_some());
            let keep = waits || row.dirty;
            row.active = keep;
            keep
        });
        state.active_jobs = active;
    }

    /// Compares every ledger with a recomputation; empty when all is well.
    pub fn audit(&self) -> Vec<Audit> {
        crate::audit::audit(&self.state)
    }

    /// What the last session placed without binding it.
    pub fn placements(&self) -> Vec<Placement> {
        self.placements.clone()
    }

    /// Opens a session for the plugins.
    fn open(&mut self, laps: &mut dyn Laps) {
        let zones = self.pipeline.zones(&self.state);
        if self.state.classes.set_zones(zones, &mut self.state.nodes) {
            self.state.released();
        }
        self.state.refresh_queue_tree();
        self.state.refresh_queue_policies();
        self.state.derive_leaving();
        self.state.hyper_nodes.refresh(&self.state.nodes);
        laps.lap(Lap::Prepared);
        self.pipeline.open(&self.state, laps);
        self.state.suspensions.lost.clear();
    }

    /// Figures of queues and jobs as they are now, for those who watch.
    pub fn overview(&self, now_ms: i64) -> Overview {
        crate::overview::overview(&self.state, &self.pipeline, now_ms)
    }

    /// Asks single extension points as in a session at the given time, for recorded calls and explanations.
    pub fn probe(&mut self, now_ms: i64) -> Probe<'_> {
        self.state.now_ms = now_ms;
        for job in std::mem::take(&mut self.state.dirty_jobs) {
            self.state.refresh_job(job);
        }
        self.open(&mut Untimed);
        Probe::new(self)
    }

    /// Number of pods that are known and number of nodes.
    pub fn size(&self) -> (usize, usize) {
        (self.state.tasks.len(), self.state.nodes.known().count())
    }
}
