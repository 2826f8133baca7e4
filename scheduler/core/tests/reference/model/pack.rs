//! The last try for a gang of unlike tasks: every way to put what it needs on the nodes, one after another.

use std::collections::{BTreeSet, VecDeque};

use super::session::{Session, Task};
use super::world::Status;

/// A search through all ways.
struct Search<'s> {
    session: &'s mut Session,
    job: usize,
    /// Alike tasks; the kind that takes the largest part of the cluster first.
    kinds: Vec<Vec<usize>>,
    /// Tasks still needed.
    need: usize,
    placed: Vec<usize>,
}

impl Session {
    /// Places as many of the tasks as the gang needs, if there is a way and its queue allows it. Gives them.
    pub fn pack(&mut self, job: usize, tasks: &VecDeque<usize>) -> Option<Vec<usize>> {
        let mut kinds: Vec<Vec<usize>> = Vec::new();
        for &task in tasks {
            match kinds.iter_mut().find(|kind| self.alike(kind[0], task)) {
                Some(kind) => kind.push(task),
                None => kinds.push(vec![task]),
            }
        }
        kinds.sort_by_key(|kind| -self.weight(kind[0]));
        if kinds.len() < 2 || tasks.iter().any(|&task| self.looks_at_others(task)) {
            return None;
        }
        let roles: BTreeSet<&String> = tasks.iter().map(|&task| &self.tasks[task].role).collect();
        let of_roles: i64 = roles.into_iter().map(|role| self.lacks_of_role(job, role)).sum();
        let lacks = self.min_member(job) - self.ready_tasks(job) - self.count_best_effort(job);
        let need = usize::try_from(lacks.max(of_roles)).unwrap_or(0);
        let mut search = Search { session: self, job, kinds, need, placed: Vec::new() };
        if !search.next(0, 0, 0) {
            return None;
        }
        let placed = search.placed;
        let places: Vec<(usize, usize)> = placed
            .iter()
            .map(|&task| (task, self.tasks[task].node.expect("it was just placed")))
            .collect();
        placed.iter().rev().for_each(|&task| self.unplace(task));
        for (at, &(task, slot)) in places.iter().enumerate() {
            if !self.allows(job, task) {
                placed[..at].iter().rev().for_each(|&task| self.unplace(task));
                return None;
            }
            self.place(task, slot, Status::Allocated);
        }
        Some(placed)
    }

    /// The node takes the task now.
    fn takes(&self, task: usize, slot: usize) -> bool {
        let request = &self.tasks[task].request;
        let fits = self.nodes[slot]
            .as_ref()
            .is_some_and(|node| node.fits_idle(request) && node.fits_future(request));
        fits && self.feasible(task, slot)
    }

    /// Where the task may go depends on tasks that are placed already.
    fn looks_at_others(&self, task: usize) -> bool {
        let task = &self.tasks[task];
        let spec = &task.spec;
        let looks = !(spec.host_ports.is_empty()
            && spec.pod_affinity.is_empty()
            && spec.pod_anti_affinity.is_empty()
            && spec.preferred_pod_affinity.is_empty()
            && spec.spread.is_empty());
        let is_meant = |other: &Task| {
            let preferred = other.spec.preferred_pod_affinity.iter().map(|(_, term)| term);
            let own = other.spec.pod_anti_affinity.iter().chain(&other.spec.pod_affinity);
            own.chain(preferred).any(|term| self.term_selects_pod(term, &other.namespace, task))
        };
        looks || self.placed().any(|(other, _)| is_meant(other))
    }
}

impl Search<'_> {
    /// Tries the nodes from `slot` on for a kind of which `used` tasks are placed, as many as fit first.
    fn next(&mut self, kind: usize, slot: usize, used: usize) -> bool {
        if kind == self.kinds.len() {
            return self.need == 0 && self.session.job_ready(self.job);
        }
        if slot == self.session.nodes.len() {
            return self.next(kind + 1, 0, 0);
        }
        let left: usize = self.kinds[kind..].iter().map(Vec::len).sum();
        if left - used < self.need {
            return false;
        }
        let before = self.placed.len();
        let mut used = used;
        while self.need > 0
            && let Some(&task) = self.kinds[kind].get(used)
            && self.session.takes(task, slot)
        {
            self.session.place(task, slot, Status::Allocated);
            self.placed.push(task);
            self.need -= 1;
            used += 1;
        }
        loop {
            if self.next(kind, slot + 1, used) {
                return true;
            }
            if self.placed.len() == before {
                return false;
            }
            self.session.unplace(self.placed.pop().expect("one was placed here"));
            self.need += 1;
            used -= 1;
        }
    }
}
