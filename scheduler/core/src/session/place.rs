//! Placing one job: its waiting pods in order, all or nothing up to its minimum, one pod a turn beyond it.
//! Pods of one class in a row are one *run*: whether a run fits is asked of the class's index once, and the best
//! node for the next copy comes from the same index.

use super::order::{pending, pending_tasks};
use super::{Refusal, Session};
use crate::index::kernel::{BlockResult, Question, Room, evaluate};
use crate::index::score::ClassHot;
use crate::index::{ClassIndex, refresh_all};
use crate::state::State;
use crate::state::classes::{ClassId, NO_KEY};
use crate::state::jobs::JobId;
use crate::state::nodes::{LANES, NodeId};
use crate::state::status::Status;
use crate::state::tasks::TaskId;

/// How a turn of a job ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The gang is ready; commit. `more`: it has further pods to place.
    Ready {
        /// Further pods wait.
        more: bool,
    },
    /// Ready only once room is freed; keep the promise.
    Pipelined,
    /// Not possible.
    Refused {
        /// Why.
        refusal: Refusal,
        /// It stays so until room is released or the gang itself changes.
        lasting: bool,
    },
    /// Nothing could be placed and nothing was refused.
    Nothing,
}

/// Waiting pods of a job, in order; `next` is the first that was not tried in this session.
#[derive(Clone, Debug, Default)]
pub struct Worksheet {
    tasks: Vec<TaskId>,
    runs: Vec<Run>,
    next: usize,
}

/// Pods of one class and role in a row.
#[derive(Clone, Copy, Debug)]
struct Run {
    class: ClassId,
    role: u32,
    start: usize,
    end: usize,
}

impl Worksheet {
    fn new(state: &State, tasks: Vec<TaskId>) -> Self {
        let mut runs: Vec<Run> = Vec::new();
        for (at, &task) in tasks.iter().enumerate() {
            let row = &state.tasks[task];
            match runs.last_mut() {
                Some(run) if run.class == row.class && run.role == row.role => run.end += 1,
                _ => runs.push(Run { class: row.class, role: row.role, start: at, end: at + 1 }),
            }
        }
        Self { tasks, runs, next: 0 }
    }

    /// What is left of the runs.
    fn left(&self) -> impl Iterator<Item = Run> + '_ {
        let next = self.next;
        let open = self.runs.iter().filter(move |run| run.end > next);
        open.map(move |run| Run { start: run.start.max(next), ..*run })
    }

    fn current(&self) -> Option<Run> {
        self.left().next()
    }

    /// Puts the runs that are left into another order.
    fn arrange(&mut self, order: &[Run]) {
        let tasks: Vec<TaskId> =
            order.iter().flat_map(|run| &self.tasks[run.start..run.end]).copied().collect();
        let mut start = self.next;
        self.runs.clear();
        for run in order {
            let end = start + run.end - run.start;
            self.runs.push(Run { start, end, ..*run });
            start = end;
        }
        self.tasks.truncate(self.next);
        self.tasks.extend(tasks);
    }
}

/// A multi-class gang is tried in this many orders before it is refused.
const ORDERS: usize = 3;

impl Session<'_> {
    /// True when a job has pods that allocate could place.
    pub fn has_placeable(&self, job: JobId) -> bool {
        pending(self.state, job, false).next().is_some()
    }

    /// Notes what allocate could place for a job; false when that is nothing.
    pub fn prepare(&mut self, job: JobId) -> bool {
        let sheet = self.worksheet(job);
        let some = !sheet.tasks.is_empty();
        if some {
            self.worksheets.insert(job, sheet);
        }
        some
    }

    fn worksheet(&self, job: JobId) -> Worksheet {
        if self.state.jobs[job as usize].counts.of(Status::Pending) == 0 {
            return Worksheet::default();
        }
        let mut tasks = pending_tasks(self.state, job, false);
        self.sort_tasks(&mut tasks);
        Worksheet::new(self.state, tasks)
    }

    /// First waiting pod of a job.
    pub fn first_pending(&self, job: JobId) -> Option<TaskId> {
        match self.worksheets.get(&job) {
            Some(sheet) => sheet.tasks.get(sheet.next).copied(),
            None => self.worksheet(job).tasks.first().copied(),
        }
    }

    /// Brings the indexes of all classes that wait up to date together, block by block: a block's columns are read
    /// from memory once and not once per class.
    pub fn refresh_indexes(&mut self) {
        let mut classes: Vec<ClassId> =
            self.worksheets.values().flat_map(Worksheet::left).map(|run| run.class).collect();
        classes.sort_unstable();
        classes.dedup();
        let mut indexes: Vec<(ClassId, Box<ClassIndex>)> = classes
            .into_iter()
            .filter_map(|class| Some((class, self.detach_index(class)?)))
            .collect();
        refresh_all(
            indexes.iter_mut().map(|(_, index)| &mut **index),
            &self.state.nodes,
            &self.state.classes.keys,
            self.backend,
        );
        for (class, index) in indexes {
            self.return_index(class, Some(index));
        }
    }

    /// One turn of a job.
    pub fn place_job(&mut self, job: JobId) -> Outcome {
        let mut sheet = match self.worksheets.remove(&job) {
            Some(sheet) => sheet,
            None => self.worksheet(job),
        };
        let outcome = self.turn(job, &mut sheet);
        if matches!(outcome, Outcome::Ready { more: true }) {
            self.worksheets.insert(job, sheet);
        }
        outcome
    }

    fn turn(&mut self, job: JobId, sheet: &mut Worksheet) -> Outcome {
        if sheet.next >= sheet.tasks.len() {
            return Outcome::Nothing;
        }
        let was_ready = self.pipeline.job_ready(self.state, job);
        if !was_ready && self.lacks_members(job, sheet) {
            return Outcome::Refused { refusal: Refusal::Members, lasting: true };
        }
        if !was_ready && let Some(refusal) = self.foreseen(job, sheet) {
            return Outcome::Refused { refusal, lasting: true };
        }
        let lasting = self.order_is_irrelevant(sheet);
        let from = self.journal.savepoint();
        let mut refusal = None;
        for order in 0..ORDERS {
            if order > 0 && !self.reorder(sheet, order) {
                continue;
            }
            let start = sheet.next;
            let refused = self.walk(job, sheet);
            if self.pipeline.job_ready(self.state, job) {
                if let Some(refused) = refused {
                    // The gang is whole; what is refused is surplus, and its pods are told why they wait.
                    self.refusals.entry(job).or_insert(refused);
                }
                let placed = !self.journal.since(from).is_empty();
                let more = sheet.next < sheet.tasks.len();
                return if placed || more { Outcome::Ready { more } } else { Outcome::Nothing };
            }
            if self.pipeline.job_pipelined(self.state, job) {
                return Outcome::Pipelined;
            }
            refusal = refusal.or(refused);
            self.rollback(from);
            sheet.next = start;
        }
        Outcome::Refused { refusal: refusal.unwrap_or(Refusal::Members), lasting }
    }

    /// Even with all that may be tried the gang would stay below its minimum.
    fn lacks_members(&self, job: JobId, sheet: &Worksheet) -> bool {
        let row = &self.state.jobs[job as usize];
        let waiting = (sheet.tasks.len() - sheet.next) as u32;
        self.pipeline.gang && row.counts.ready() + row.best_effort + waiting < row.min_member()
    }

    /// Pods of one class that look at no other pods: how many of them fit does not depend on what went where, so
    /// less room never means more copies. With several classes a greedy walk may succeed where it failed before,
    /// merely because somebody else took a node; pods with affinity may follow others that came.
    fn order_is_irrelevant(&self, sheet: &Worksheet) -> bool {
        let task = sheet.tasks[sheet.next];
        sheet.left().count() == 1 && !self.depends_on_pods(task) && !self.has_volumes(task)
    }

    /// Walks the waiting pods in order until the job is ready. Gives the first refusal.
    fn walk(&mut self, job: JobId, sheet: &mut Worksheet) -> Option<Refusal> {
        let from = self.journal.savepoint();
        let mut failed: Vec<u32> = Vec::new();
        let mut refusal: Option<Refusal> = None;
        while let Some(run) = sheet.current() {
            let mut index = self.take_index(run.class);
            let stop =
                self.walk_run(job, sheet, run, index.as_deref_mut(), &mut failed, &mut refusal);
            self.return_index(run.class, index);
            if stop {
                break;
            }
        }
        if let Some(Refusal::Room { placed, .. }) = &mut refusal {
            *placed = self.journal.since(from).len() as u32;
        }
        refusal
    }

    /// Places the pods of a run; true when the walk ends here.
    fn walk_run(
        &mut self,
        job: JobId,
        sheet: &mut Worksheet,
        run: Run,
        mut index: Option<&mut ClassIndex>,
        failed: &mut Vec<u32>,
        refusal: &mut Option<Refusal>,
    ) -> bool {
        let queue = self.state.jobs[job as usize].queue;
        let length = (run.end - run.start) as u32;
        let mut allowed = self.pipeline.allocatable(self.state, queue, run.class, length);
        while sheet.next < run.end {
            let task = sheet.tasks[sheet.next];
            sheet.next += 1;
            if allowed == 0 {
                let full = index.as_ref().is_some_and(|index| index.total() == 0);
                if full && !self.pipeline.capped(self.state, queue, run.class, 1) {
                    refusal.get_or_insert(Refusal::Room { task, placed: 0 });
                } else {
                    refusal.get_or_insert_with(|| self.queue_refusal(job, task));
                }
                continue;
            }
            let role = self.state.tasks[task].role;
            if role != 0 && failed.contains(&role) {
                continue;
            }
            let problem = match self.held(task) {
                Some(message) => Refusal::Held { task, message },
                None => match self.choose(task, index.as_deref_mut()) {
                    Some((node, pipelined)) => {
                        allowed -= 1;
                        self.place(task, node, pipelined);
                        if let Some(index) = index.as_deref_mut() {
                            let key = &self.state.classes.keys[index.key as usize];
                            index.placed(&self.state.nodes, key, self.backend, node);
                        }
                        if self.pipeline.job_ready(self.state, job) {
                            return true;
                        }
                        continue;
                    }
                    None => Refusal::Room { task, placed: 0 },
                },
            };
            if refusal.is_none() && self.depends_on_pods(task) {
                self.keep_reasons(task);
            }
            refusal.get_or_insert(problem);
            failed.push(role);
            if !self.state.jobs[job as usize].may_continue(failed) {
                return true;
            }
            if role != 0 {
                continue;
            }
            // Without a role nothing is remembered of the failure, yet more of the same class fails the same.
            if index.is_some() && self.held(task).is_none() {
                sheet.next = run.end;
            }
        }
        false
    }

    /// A refusal that is certain before anything is placed: the queue may not take enough, or even if every
    /// class had the cluster for itself too few copies would fit. Exact for a gang of one class.
    fn foreseen(&mut self, job: JobId, sheet: &Worksheet) -> Option<Refusal> {
        let row = &self.state.jobs[job as usize];
        let need = u64::from(row.min_member())
            .saturating_sub(u64::from(row.counts.ready() + row.best_effort));
        let queue = row.queue;
        let (mut by_queue, mut by_room) = (0_u64, 0_u64);
        let (mut blocked, mut short) = (None, None);
        for run in sheet.left() {
            let length = (run.end - run.start) as u32;
            let allowed = self.pipeline.allocatable(self.state, queue, run.class, length);
            if allowed < length && blocked.is_none() {
                blocked = Some(sheet.tasks[run.start + allowed as usize]);
            }
            by_queue += u64::from(allowed);
            let fit = u64::from(length).min(self.copies(run.class, need));
            if fit < u64::from(length) && short.is_none() {
                short = Some(sheet.tasks[run.start + fit as usize]);
            }
            by_room += fit;
        }
        let first = self.state.tasks[sheet.tasks[sheet.next]].class;
        let count = need.min(u64::from(u32::MAX)) as u32;
        let lacks_nodes = by_room < need && !self.pipeline.capped(self.state, queue, first, count);
        if by_queue < need && !lacks_nodes {
            return Some(self.queue_refusal(job, blocked.unwrap_or(sheet.tasks[sheet.next])));
        }
        // Room that is being freed can be promised: then only a walk tells.
        if by_room < need && (self.state.releasing == 0 || by_queue < need) {
            let task = short.unwrap_or(sheet.tasks[sheet.next]);
            if let Some(message) = self.held(task) {
                return Some(Refusal::Held { task, message });
            }
            return Some(Refusal::Room { task, placed: by_room as u32 });
        }
        None
    }

    /// Upper bound of the copies of a class that fit now. What was too few for one gang stays an upper bound for
    /// the session, since a session only takes room.
    pub fn copies(&mut self, class: ClassId, need: u64) -> u64 {
        if let Some(&most) = self.hopeless.get(&class)
            && most < need
        {
            return most;
        }
        let index = self.take_index(class);
        let total = index.as_ref().map_or(0, |index| index.total());
        self.return_index(class, index);
        if total < need {
            self.hopeless.insert(class, total);
        }
        total
    }

    fn queue_refusal(&self, job: JobId, task: TaskId) -> Refusal {
        let queue = self.state.jobs[job as usize].queue;
        let class = self.state.tasks[task].class;
        let message = self.pipeline.limit_reached(self.state, queue, class).unwrap_or_else(|| {
            format!("queue {} may take no more", self.state.queues[queue as usize].name)
        });
        Refusal::Queue { task, message }
    }

    /// Sorts the runs that are left by how many nodes would take one now, so that pods with few choices go first
    /// (order 1), or by size of the request (order 2). False when that changes nothing.
    fn reorder(&mut self, sheet: &mut Worksheet, order: usize) -> bool {
        let mut keyed: Vec<(i64, Run)> = Vec::new();
        for run in sheet.left() {
            let key = if order == 1 { self.choices(run.class) } else { -self.weight(run.class) };
            keyed.push((key, run));
        }
        keyed.sort_by_key(|&(key, run)| (key, run.start));
        let order: Vec<Run> = keyed.into_iter().map(|(_, run)| run).collect();
        let changes = !order.iter().map(|run| run.start).is_sorted();
        if changes {
            sheet.arrange(&order);
        }
        changes
    }

    /// Nodes that would take a copy of a class now, whatever pods it wants near or far.
    fn choices(&mut self, class: ClassId) -> i64 {
        let index = self.take_index(class);
        let choices = index.as_ref().map_or(0, |index| {
            let key = &self.state.classes.keys[index.key as usize];
            index.choices(&self.state.nodes, key, self.backend)
        });
        self.return_index(class, index);
        i64::from(choices)
    }

    /// Dominant part of the cluster that one copy takes, in millionths.
    fn weight(&self, class: ClassId) -> i64 {
        let request = &self.state.classes.list[class as usize].request;
        request
            .iter()
            .map(|&(dim, amount)| {
                let total = self.state.total.get(dim).max(1);
                (i128::from(amount) * 1_000_000_000 / total) as i64
            })
            .max()
            .unwrap_or(0)
    }

    /// Takes the index of a class out of the state, up to date; `None` for classes that can be placed nowhere.
    fn take_index(&mut self, class: ClassId) -> Option<Box<ClassIndex>> {
        let mut index = self.detach_index(class)?;
        let keys = &self.state.classes.keys;
        refresh_all(std::iter::once(&mut *index), &self.state.nodes, keys, self.backend);
        Some(index)
    }

    /// Takes the index of a class out of the state as it is.
    fn detach_index(&mut self, class: ClassId) -> Option<Box<ClassIndex>> {
        let row = &mut self.state.classes.list[class as usize];
        if row.impossible.is_some() || row.key == NO_KEY {
            return None;
        }
        let key = row.key;
        let index = match row.index.take() {
            Some(index) => index,
            None => {
                let row = &self.state.classes.list[class as usize];
                let hot = ClassHot::new(row, &self.pipeline.scores, &self.state.dims);
                Box::new(ClassIndex::new(hot, key))
            }
        };
        self.state.classes.refresh_scores(key, &self.state.nodes);
        Some(index)
    }

    fn return_index(&mut self, class: ClassId, index: Option<Box<ClassIndex>>) {
        self.state.classes.list[class as usize].index = index;
    }

    /// A node for a task: on free room, else on room that is being freed.
    fn choose(&mut self, task: TaskId, index: Option<&mut ClassIndex>) -> Option<(NodeId, bool)> {
        let index = index?;
        if !self.state.nominated.is_empty()
            && let Some(choice) = self.nominated_place(task)
        {
            return Some(choice);
        }
        if self.depends_on_pods(task) || self.has_volumes(task) {
            if let Some(node) = self.scan(task, &index.hot, Room::Free) {
                return Some((node, false));
            }
        } else if let Some(node) = index.best() {
            return Some((node, false));
        }
        if self.state.releasing == 0 {
            return None;
        }
        self.scan(task, &index.hot, Room::Future).map(|node| (node, true))
    }

    /// The node that the pod's status names, if the pod may go there (4.2.4 step 5): then no other is looked at.
    fn nominated_place(&mut self, task: TaskId) -> Option<(NodeId, bool)> {
        let node = self.state.nodes.get(self.state.nominated.get(&task)?)?;
        let class = &self.state.classes.list[self.state.tasks[task].class as usize];
        let fits = |future| self.state.nodes.fits(node, &class.request, future);
        if !self.state.classes.keys[class.key as usize].allows(node) || !fits(true) {
            return None;
        }
        let free = fits(false);
        let possible = self.volumes_allow(task, node)
            && (!self.depends_on_pods(task)
                || self.state.ask_about(task, &self.pipeline.switches).filter(node).is_ok());
        possible.then_some((node, !free))
    }

    /// Places one waiting pod without regard to its gang, if its queue and the nodes allow it.
    pub fn place_alone(&mut self, task: TaskId) -> bool {
        let row = &self.state.tasks[task];
        let (class, queue) = (row.class, self.state.jobs[row.job as usize].queue);
        if self.held(task).is_some() || self.pipeline.allocatable(self.state, queue, class, 1) == 0
        {
            return false;
        }
        let mut index = self.take_index(class);
        let choice = self.choose(task, index.as_deref_mut());
        self.return_index(class, index);
        if let Some((node, pipelined)) = choice {
            self.place(task, node, pipelined);
        }
        choice.is_some()
    }

    /// A node for a pod that asks for nothing but a place.
    pub fn find_place(&mut self, task: TaskId) -> Option<NodeId> {
        let index = self.take_index(self.state.tasks[task].class)?;
        let node = self.scan(task, &index.hot, Room::Any);
        self.return_index(self.state.tasks[task].class, Some(index));
        node
    }

    fn has_volumes(&self, task: TaskId) -> bool {
        self.state.tasks[task].held.as_ref().is_some_and(|held| !held.claims.is_empty())
    }

    /// True when where the task may go depends on pods elsewhere.
    pub fn depends_on_pods(&self, task: TaskId) -> bool {
        let row = &self.state.tasks[task];
        let class = &self.state.classes.list[row.class as usize];
        class.stateful
            || (self.state.stateful_fed
                && self.state.stateful.is_affected(&row.pod.namespace, &row.labels))
    }

    /// Looks at every node: for pods that depend on other pods or volumes, and for room that is being freed.
    fn scan(&mut self, task: TaskId, hot: &ClassHot, room: Room) -> Option<NodeId> {
        let row = &self.state.tasks[task];
        let key = self.state.classes.list[row.class as usize].key;
        let depends = self.depends_on_pods(task);
        let mut fits: Vec<u64> = Vec::with_capacity(self.state.nodes.blocks());
        let mut out = BlockResult::default();
        let mut fixed = [0.0; LANES];
        for block in 0..self.state.nodes.blocks() {
            let mask = self.state.classes.keys[key as usize].mask.get(block).copied().unwrap_or(0);
            let mut bits = 0;
            if mask != 0 {
                let question = Question {
                    class: hot,
                    nodes: &self.state.nodes,
                    block,
                    mask,
                    room,
                    fixed: &fixed,
                };
                evaluate(self.backend, &question, &mut out);
                for lane in 0..LANES {
                    let node = (block * LANES + lane) as NodeId;
                    if out.copies[lane] >= 1.0 && self.volumes_allow(task, node) {
                        bits |= 1 << lane;
                    }
                }
            }
            fits.push(bits);
        }
        let extra = if depends { self.filter_by_pods(task, &mut fits) } else { None };
        let mut best: Option<(f64, NodeId)> = None;
        for (block, &bits) in fits.iter().enumerate().filter(|(_, bits)| **bits != 0) {
            let nodes = &self.state.nodes;
            crate::index::block_max::fill_fixed(
                &self.state.classes.keys[key as usize],
                nodes,
                block,
                0..LANES,
                &mut fixed,
            );
            if let Some(extra) = &extra {
                for (lane, fixed) in fixed.iter_mut().enumerate() {
                    *fixed += extra.get(block * LANES + lane).copied().unwrap_or(0.0);
                }
            }
            let question = Question { class: hot, nodes, block, mask: bits, room, fixed: &fixed };
            evaluate(self.backend, &question, &mut out);
            for lane in 0..LANES {
                if bits >> lane & 1 == 1 && best.is_none_or(|(score, _)| out.score[lane] > score) {
                    best = Some((out.score[lane], (block * LANES + lane) as NodeId));
                }
            }
        }
        best.map(|(_, node)| node)
    }

    /// Clears the lanes that other pods rule out; gives the scores that other pods cause, by slot.
    fn filter_by_pods(&mut self, task: TaskId, fits: &mut [u64]) -> Option<Vec<f64>> {
        let mut feasible = Vec::new();
        let asked = self.state.ask_about(task, &self.pipeline.switches);
        for (block, bits) in fits.iter_mut().enumerate() {
            let mut left = *bits;
            while left != 0 {
                let lane = left.trailing_zeros() as usize;
                left &= left - 1;
                let node = (block * LANES + lane) as NodeId;
                if asked.filter(node).is_ok() {
                    feasible.push(node);
                } else {
                    *bits &= !(1 << lane);
                }
            }
        }
        let scores = asked.scores(
            &feasible,
            self.pipeline.scores.pod_affinity as i64,
            self.pipeline.scores.spread as i64,
        )?;
        let mut by_slot = vec![0.0; fits.len() * LANES];
        for (&node, score) in feasible.iter().zip(scores) {
            by_slot[node as usize] = score as f64;
        }
        Some(by_slot)
    }

    fn volumes_allow(&self, task: TaskId, node: NodeId) -> bool {
        let row = &self.state.tasks[task];
        let Some(held) = row.held.as_ref().filter(|held| !held.claims.is_empty()) else {
            return true;
        };
        let Ok(demands) = self.state.volumes.demands(&row.pod.namespace, &held.claims) else {
            return false;
        };
        let identity = &self.state.nodes.identity[node as usize];
        demands.iter().all(|terms| {
            crate::matching::node_selector::any_term_matches(
                terms,
                Some(&identity.name),
                &identity.labels,
            )
        })
    }

    /// Why a pod may not be placed whatever room there is.
    pub fn held(&self, task: TaskId) -> Option<String> {
        let row = &self.state.tasks[task];
        if let Some(text) = &self.state.classes.list[row.class as usize].impossible {
            return Some(text.clone());
        }
        let held = row.held.as_ref()?;
        if !held.unsupported.is_empty() {
            return Some(format!("not supported yet: {}", held.unsupported.join(", ")));
        }
        self.state.volumes.demands(&row.pod.namespace, &held.claims).err()
    }

    /// Best-effort pods count as ready for their gang while they wait, but not if no node could take them
    /// (scenario gang-besteffort-member-that-fits-nowhere).
    pub fn settle_best_effort(&mut self, job: JobId) {
        let row = &self.state.jobs[job as usize];
        if row.best_effort + row.stuck == 0 {
            return;
        }
        for task in pending_tasks(self.state, job, true) {
            let stuck = self.held(task).is_some() || self.find_place(task).is_none();
            if self.state.tasks[task].stuck != stuck {
                // How many others the gang needs has changed.
                self.state.jobs[job as usize].parked = None;
            }
            self.state.set_stuck(task, stuck);
        }
    }
}
