//! Placing one job: its waiting pods in order, all or nothing up to its minimum, one pod a turn beyond it.
//! Pods of one class in a row are one *run*: whether a run fits is asked of the class's index once, and the best
//! node for the next copy comes from the same index. A gang of several classes is walked in several orders, then packed.

use super::pack::LastTry;
use super::worksheet::{Run, Worksheet};
use super::{Refusal, Session};
use crate::index::ClassIndex;
use crate::state::classes::ClassId;
use crate::state::jobs::JobId;
use crate::state::tasks::TaskId;

/// How a turn of a job ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The gang is ready; commit. `more`: it has further pods to place.
    Ready {
        /// Further pods wait.
        more: bool,
    },
    /// It keeps what it got until the session ends: the rest is being freed, or a plugin wants it to collect room (P63).
    Pipelined {
        /// Why it is not whole, when what it was promised does not make it so.
        refusal: Option<Refusal>,
    },
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

/// A multi-class gang is tried in this many orders before it is refused.
const ORDERS: usize = 3;

impl Session<'_> {
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
        // Who may keep whatever it gets tries in any case.
        let needs_all = !was_ready && !self.pipeline.job_pipelined(self.state, job);
        if needs_all && self.lacks_members(job, sheet) {
            return Outcome::Refused { refusal: Refusal::Members, lasting: true };
        }
        if needs_all && let Some(refusal) = self.foreseen(job, sheet) {
            return Outcome::Refused { refusal, lasting: true };
        }
        if self.state.jobs[job as usize].is_structured() {
            return self.turn_in_domains(job, sheet);
        }
        let lasting = self.order_is_irrelevant(sheet);
        self.attempt(job, sheet, lasting)
    }

    /// Tries to place what a sheet needs, in several orders.
    pub(super) fn attempt(&mut self, job: JobId, sheet: &mut Worksheet, lasting: bool) -> Outcome {
        let from = self.journal.savepoint();
        let mut refusal = None;
        for order in 0..ORDERS {
            if order > 0 && !self.reorder(sheet, order) {
                continue;
            }
            let start = sheet.next;
            let refused = self.walk(job, sheet);
            if self.is_ready(job, sheet) {
                if let Some(refused) = refused {
                    // The gang is whole; what is refused is surplus, and its pods are told why they wait.
                    self.refusals.entry(job).or_insert(refused);
                }
                let placed = !self.journal.since(from).is_empty();
                let more = sheet.next < sheet.tasks.len();
                return if placed || more { Outcome::Ready { more } } else { Outcome::Nothing };
            }
            if self.is_pipelined(job, sheet) {
                let promised = self.state.jobs[job as usize].is_pipelined();
                return Outcome::Pipelined { refusal: refused.filter(|_| !promised) };
            }
            refusal = refusal.or(refused);
            self.rollback(from);
            sheet.next = start;
        }
        let lasting = match self.pack(job, sheet) {
            LastTry::Placed => return Outcome::Ready { more: sheet.next < sheet.tasks.len() },
            LastTry::Hopeless => true,
            LastTry::Undecided => lasting,
        };
        Outcome::Refused { refusal: refusal.unwrap_or(Refusal::Members), lasting }
    }

    /// The job, or the sub-group that a sheet is of, may be committed.
    pub(super) fn is_ready(&self, job: JobId, sheet: &Worksheet) -> bool {
        match sheet.sub_job {
            Some(sub_job) => self.pipeline.sub_job_ready(self.state, job, sub_job),
            None => self.pipeline.job_ready(self.state, job),
        }
    }

    /// It may keep room that is being freed.
    fn is_pipelined(&self, job: JobId, sheet: &Worksheet) -> bool {
        match sheet.sub_job {
            Some(sub_job) => self.pipeline.sub_job_pipelined(self.state, job, sub_job),
            None => self.pipeline.job_pipelined(self.state, job),
        }
    }

    /// Even with all that may be tried the gang would stay below its minimum.
    fn lacks_members(&self, job: JobId, sheet: &Worksheet) -> bool {
        let row = &self.state.jobs[job as usize];
        let waiting = (sheet.tasks.len() - sheet.next) as u32;
        self.pipeline.gang && waiting < row.lacks()
    }

    /// Pods of one class that look at no other pods: how many of them fit does not depend on what went where, so
    /// less room never means more copies. With several classes a greedy walk may succeed where it failed before,
    /// merely because somebody else took a node; pods with affinity may follow others that came.
    pub(super) fn order_is_irrelevant(&self, sheet: &Worksheet) -> bool {
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
        let mut allowed = self.allowance(job, run.class, length);
        while sheet.next < run.end {
            let task = sheet.tasks[sheet.next];
            sheet.next += 1;
            if allowed == 0 {
                let full = index.as_ref().is_some_and(|index| index.total() == 0);
                if full && !self.pipeline.capped(self.state, queue, run.class, 1) {
                    refusal.get_or_insert(Refusal::Room { task, placed: 0 });
                } else {
                    refusal.get_or_insert_with(|| self.queue_refusal(job, task, 1));
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
                        if self.is_ready(job, sheet) {
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
            if !self.state.jobs[job as usize].may_continue(sheet.sub_job, failed) {
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
        let need = u64::from(row.lacks());
        let queue = row.queue;
        let (mut by_queue, mut by_room) = (0_u64, 0_u64);
        let (mut blocked, mut short) = (None, None);
        for run in sheet.left() {
            let length = (run.end - run.start) as u32;
            let allowed = self.allowance(job, run.class, length);
            if allowed < length && blocked.is_none() {
                blocked = Some((sheet.tasks[run.start + allowed as usize], allowed + 1));
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
            let (task, count) = blocked.unwrap_or((sheet.tasks[sheet.next], 1));
            return Some(self.queue_refusal(job, task, count));
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
        if total < need && !self.withholds() {
            self.hopeless.insert(class, total);
        }
        total
    }

    /// The queue may not take `count` pods like this one.
    fn queue_refusal(&self, job: JobId, task: TaskId, count: u32) -> Refusal {
        let queue = self.state.jobs[job as usize].queue;
        let class = self.state.tasks[task].class;
        let message =
            self.pipeline.limit_reached(self.state, queue, class, count).unwrap_or_else(|| {
                format!("queue {} may take no more", self.state.queues[queue as usize].name)
            });
        Refusal::Queue { task, message }
    }
}
