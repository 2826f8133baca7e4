//! Action `allocate` (4.2) for gangs without network topology.

use std::collections::{BTreeMap, VecDeque};

use tephra_core::event::{PodGroupPhase, QueueState};

use super::filter::statically_feasible;
use super::session::{Session, Task};
use super::world::{Broken, Status};

/// What became of a turn.
enum Turn {
    Committed,
    Kept,
    /// Some task could not be placed.
    Refused,
    /// All tasks were placed, yet the gang is not ready: it waits for others than these.
    Incomplete,
}

/// Runs the action.
pub fn run(session: &mut Session) {
    let mut queues: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let mut waiting: BTreeMap<usize, VecDeque<usize>> = BTreeMap::new();
    let mut broken = session.broken_gangs();
    let mut served = broken.clone();
    while let Some(job) = session.best_job(&broken) {
        broken.retain(|&other| other != job);
        session.take_back_reserved(job);
        let mut tasks = session.tasks_to_place(job);
        let queue = session.jobs[job].queue.clone();
        if !tasks.is_empty() {
            match turn(session, job, &mut tasks) {
                Turn::Committed if !tasks.is_empty() => {
                    waiting.insert(job, tasks);
                    queues.entry(queue).or_default().push(job);
                }
                _ => {}
            }
        }
        session.keep_places(job);
    }
    for job in std::mem::take(&mut session.reserved) {
        if served.contains(&job) {
            continue;
        }
        served.push(job);
        session.take_back_reserved(job);
        let mut tasks = session.tasks_to_place(job);
        let queue = session.jobs[job].queue.clone();
        let ended = match tasks.is_empty() {
            true => None,
            false => Some(turn(session, job, &mut tasks)),
        };
        match ended {
            Some(Turn::Committed) if !tasks.is_empty() => {
                waiting.insert(job, tasks);
                queues.entry(queue).or_default().push(job);
            }
            Some(Turn::Committed | Turn::Kept) => {}
            // The gang cannot use what was promised: nothing is kept for it any more.
            ended => {
                match ended {
                    Some(Turn::Refused) => {
                        session.refused.push(session.jobs[job].group.key.clone())
                    }
                    Some(_) => session.incomplete += 1,
                    None => {}
                }
                session.give_up_nominations(job);
            }
        }
    }
    for job in 0..session.jobs.len() {
        if served.contains(&job) {
            continue;
        }
        let tasks = session.tasks_to_place(job);
        // In a queue that is served in order, a gang that was not admitted keeps its place in the line.
        let stands = session.is_pending(job) && session.queues[&session.jobs[job].queue].fifo;
        if !tasks.is_empty() || stands {
            waiting.insert(job, tasks);
            queues.entry(session.jobs[job].queue.clone()).or_default().push(job);
        }
    }
    while let Some(queue) = session.best_queue(queues.keys()) {
        let jobs = queues.get_mut(&queue).expect("the queue was chosen among these");
        if session.proportion.overused(&queue) || jobs.is_empty() {
            queues.remove(&queue);
            continue;
        }
        let job = session.best_job(jobs).expect("there is a job");
        jobs.retain(|&other| other != job);
        let tasks = waiting.get_mut(&job).expect("every job has its tasks");
        if tasks.is_empty() {
            queues.remove(&queue);
            continue;
        }
        match turn(session, job, tasks) {
            Turn::Committed if !tasks.is_empty() => jobs.push(job),
            Turn::Committed | Turn::Kept => {}
            ended => {
                match ended {
                    Turn::Refused => session.refused.push(session.jobs[job].group.key.clone()),
                    _ => session.incomplete += 1,
                }
                if session.queues[&queue].fifo {
                    queues.remove(&queue);
                }
            }
        }
    }
}

fn turn(session: &mut Session, job: usize, tasks: &mut VecDeque<usize>) -> Turn {
    let mut refused = false;
    for order in 0..3 {
        if order > 0 && !session.reorder(tasks, order) {
            continue;
        }
        let before = tasks.clone();
        session.jobs[job].failed_roles.clear();
        let (placed, complete) = walk(session, job, tasks);
        if session.job_ready(job) {
            session.commit(job, &placed);
            return Turn::Committed;
        }
        if session.job_pipelined(job) {
            return Turn::Kept;
        }
        for &task in placed.iter().rev() {
            session.unplace(task);
        }
        refused |= !complete;
        *tasks = before;
    }
    if let Some(placed) = session.pack(job, tasks) {
        tasks.retain(|task| !placed.contains(task));
        session.commit(job, &placed);
        return Turn::Committed;
    }
    if refused { Turn::Refused } else { Turn::Incomplete }
}

/// Places tasks in order until the job is ready. Gives what was placed, and whether that was every task tried.
fn walk(session: &mut Session, job: usize, tasks: &mut VecDeque<usize>) -> (Vec<usize>, bool) {
    let mut placed = Vec::new();
    let mut complete = true;
    while let Some(task) = tasks.pop_front() {
        let row = &session.tasks[task];
        let role = row.role.clone();
        if !session.allows(job, task) {
            complete = false;
            continue;
        }
        if session.jobs[job].failed_roles.contains(&role) {
            continue;
        }
        let Some((slot, status)) = session.choose(task) else {
            complete = false;
            if !role.is_empty() {
                session.jobs[job].failed_roles.insert(role);
            }
            if session.may_continue(job) {
                continue;
            }
            break;
        };
        session.place(task, slot, status);
        placed.push(task);
        if session.job_ready(job) {
            break;
        }
    }
    (placed, complete)
}

impl Session {
    /// Gangs that are below their minimum with members left, for less than a minute.
    fn broken_gangs(&mut self) -> Vec<usize> {
        let now_ms = self.now_ms;
        let mut gangs = Vec::new();
        for job in 0..self.jobs.len() {
            let is_broken = self.is_broken(job);
            let broken = &mut self.jobs[job].broken;
            if !is_broken {
                *broken = Broken::default();
            } else if now_ms - *broken.since_ms.get_or_insert(now_ms) < 60_000 {
                gangs.push(job);
            }
        }
        gangs
    }

    /// Keeps for nominated tasks the places that they were promised, gang after gang.
    pub fn reserve_nominated(&mut self) {
        let mut jobs: Vec<usize> = (0..self.jobs.len())
            .filter(|&job| {
                let queue = &self.queues[&self.jobs[job].queue];
                !self.is_pending(job) && queue.state == QueueState::Open && self.job_valid(job)
            })
            .collect();
        while let Some(job) = self.best_job(&jobs) {
            jobs.retain(|&other| other != job);
            let queue = self.jobs[job].queue.clone();
            let mut tasks = self.pending(job);
            tasks.retain(|&task| self.tasks[task].nominated.is_some());
            self.sort_tasks(&mut tasks);
            for task in tasks {
                let request = &self.tasks[task].request;
                if !self.proportion.allocatable(&queue, request) {
                    continue;
                }
                if let Some((slot, _)) = self.promised_place(task) {
                    self.place(task, slot, Status::Pipelined);
                    self.reserved.push(job);
                }
            }
        }
        self.reserved.dedup();
    }

    /// The node that a task was promised, if it may go there now or once those that leave it are gone.
    fn promised_place(&mut self, task: usize) -> Option<(usize, Status)> {
        let row = &self.tasks[task];
        let name = row.nominated.as_ref()?;
        let named = |node: &super::node::Node| node.object.name == *name;
        let slot = self.nodes.iter().position(|node| node.as_ref().is_some_and(named))?;
        let node = self.nodes[slot].as_ref()?;
        let (now, later) = (node.fits_idle(&row.request), node.fits_future(&row.request));
        if now && later && self.feasible(task, slot) {
            return Some((slot, Status::Allocated));
        }
        let leaving: Vec<usize> = (0..self.tasks.len())
            .filter(|&other| {
                let other = &self.tasks[other];
                other.status == Status::Releasing && other.node == Some(slot)
            })
            .collect();
        let whole = self.nodes[slot].clone();
        for &other in &leaving {
            self.tasks[other].node = None;
            if let Some(node) = &mut self.nodes[slot] {
                node.remove(&self.tasks[other], Status::Releasing);
            }
        }
        let possible = later && self.feasible(task, slot);
        self.nodes[slot] = whole;
        leaving.iter().for_each(|&other| self.tasks[other].node = Some(slot));
        possible.then_some((slot, Status::Pipelined))
    }

    fn give_up_nominations(&mut self, job: usize) {
        for task in self.jobs[job].tasks.clone() {
            if self.tasks[task].nominated.take().is_some() {
                self.given_up.push(self.tasks[task].uid.clone());
            }
        }
    }

    /// Gives a gang the places back that were kept for it.
    fn take_back_reserved(&mut self, job: usize) {
        for task in self.jobs[job].tasks.clone() {
            if self.tasks[task].status == Status::Pipelined {
                self.unplace(task);
            }
        }
    }

    /// The queue may take the task, or else the task makes a gang whole that began, and no capability forbids all that the
    /// gang needs.
    pub fn allows(&self, job: usize, task: usize) -> bool {
        let (queue, request) = (&self.jobs[job].queue, &self.tasks[task].request);
        if self.proportion.allocatable(queue, request) {
            return true;
        }
        let lacks = self.min_member(job) - self.ready_tasks(job) - self.count_best_effort(job);
        let object = &self.queues[queue];
        self.jobs[job].broken.since_ms.is_some()
            && lacks > 0
            && object.state == QueueState::Open
            && !self.proportion.capped(queue, object, request, lacks)
    }

    /// What a broken gang still needs: places for its waiting pods, then places that members left.
    fn keep_places(&mut self, job: usize) {
        let queue = self.jobs[job].queue.clone();
        if self.closed(&queue) {
            return;
        }
        let mut missing = self.min_member(job) - self.members_there(job);
        let mut tasks = self.pending(job);
        self.sort_tasks(&mut tasks);
        for task in tasks {
            if missing > 0
                && self.allows(job, task)
                && let Some((slot, status)) = self.choose(task)
            {
                self.place(task, slot, status);
                missing -= 1;
            }
        }
        for (slot, spec) in self.jobs[job].broken.left.clone().into_iter().rev() {
            let Some(node) = self.nodes[slot].as_mut() else { continue };
            let kept = Task::standing_for(&spec);
            if missing > 0 && !node.object.unschedulable && node.fits_future(&kept.request) {
                node.add(&kept, Status::Pipelined);
                missing -= 1;
            }
        }
    }

    /// Tasks that may be placed, unless the job may not be touched; admits it where nobody else does.
    fn tasks_to_place(&mut self, job: usize) -> VecDeque<usize> {
        if self.is_pending(job) {
            if self.enqueue_runs {
                return VecDeque::new();
            }
            self.jobs[job].phase = PodGroupPhase::Inqueue;
        }
        if self.closed(&self.jobs[job].queue) || !self.job_valid(job) {
            return VecDeque::new();
        }
        self.look_for_places(job);
        if self.jobs[job].backs_off {
            return VecDeque::new();
        }
        let mut tasks = self.pending(job);
        self.sort_tasks(&mut tasks);
        tasks.into()
    }

    fn pending(&self, job: usize) -> Vec<usize> {
        let waits = |&task: &usize| {
            let task = &self.tasks[task];
            task.status == Status::Pending && !task.gated && !task.best_effort()
        };
        self.jobs[job].tasks.iter().copied().filter(waits).collect()
    }

    /// Finds out which waiting best-effort tasks of a job no node can take.
    fn look_for_places(&mut self, job: usize) {
        for task in self.jobs[job].tasks.clone() {
            let row = &self.tasks[task];
            if row.status == Status::Pending && row.best_effort() && !row.gated {
                let anywhere = (0..self.nodes.len()).any(|slot| self.feasible(task, slot));
                self.tasks[task].stuck = !anywhere;
            }
        }
    }

    /// Best node for a task, and whether its room is free or still being freed.
    fn choose(&mut self, task: usize) -> Option<(usize, Status)> {
        // The node that was promised goes before all others (4.2.4 step 5).
        if let Some(choice) = self.promised_place(task) {
            return Some(choice);
        }
        let request = &self.tasks[task].request;
        let feasible: Vec<usize> = (0..self.nodes.len())
            .filter(|&slot| {
                self.nodes[slot].as_ref().is_some_and(|node| node.fits_future(request))
                    && self.feasible(task, slot)
            })
            .collect();
        let fits = |slot: &usize| self.nodes[*slot].as_ref().is_some_and(|n| n.fits_idle(request));
        let free: Vec<usize> = feasible.iter().copied().filter(fits).collect();
        if free.is_empty() {
            return self.best_node(task, &feasible).map(|slot| (slot, Status::Pipelined));
        }
        self.best_node(task, &free).map(|slot| (slot, Status::Allocated))
    }

    /// Sorts runs of equal tasks: those with few choices first (order 1), or large ones first (order 2). False
    /// when that changes nothing.
    fn reorder(&self, tasks: &mut VecDeque<usize>, order: usize) -> bool {
        let mut runs: Vec<Vec<usize>> = Vec::new();
        for &task in tasks.iter() {
            match runs.last_mut() {
                Some(run) if self.alike(run[0], task) => run.push(task),
                _ => runs.push(vec![task]),
            }
        }
        runs.sort_by_key(
            |run| {
                if order == 1 { self.choices(run[0]) } else { -self.weight(run[0]) }
            },
        );
        let sorted: VecDeque<usize> = runs.concat().into();
        let changed = sorted != *tasks;
        *tasks = sorted;
        changed
    }

    pub fn alike(&self, a: usize, b: usize) -> bool {
        let (a, b) = (&self.tasks[a], &self.tasks[b]);
        a.role == b.role && a.spec == b.spec
    }

    /// Nodes that would take one more task like this now, whatever tasks it wants near or far.
    fn choices(&self, task: usize) -> i64 {
        let row = &self.tasks[task];
        let takes = |node: &super::node::Node| {
            let allowed = !self.has("predicates")
                || (node.pods as f64) < node.allocatable.get("pods")
                    && statically_feasible(&row.spec, &node.object);
            allowed && node.fits_idle(&row.request)
        };
        self.nodes.iter().flatten().filter(|node| takes(node)).count() as i64
    }

    /// Largest part of the cluster that the task takes, in billionths.
    pub fn weight(&self, task: usize) -> i64 {
        let request = &self.tasks[task].request;
        let part = |name: &str| {
            (request.get(name) as i128 * 1_000_000_000 / (self.total.get(name) as i128).max(1))
                as i64
        };
        request.names().into_iter().map(part).max().unwrap_or(0)
    }
}
