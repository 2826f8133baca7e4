//! A node for one pod: the best of its class's index, or of a scan over all nodes where other pods or volumes have a say.

use super::Session;
use super::order::pending_tasks;
use super::ranking::lanes_of;
use crate::index::ClassIndex;
use crate::index::kernel::{BlockResult, Question, Room, evaluate};
use crate::index::refresh_all;
use crate::index::score::ClassHot;
use crate::state::classes::{ClassId, NO_KEY};
use crate::state::jobs::JobId;
use crate::state::nodes::{LANES, NodeId};
use crate::state::status::Status;
use crate::state::tasks::TaskId;

impl Session<'_> {
    /// Takes the index of a class out of the state, up to date; `None` for classes that can be placed nowhere.
    pub(super) fn take_index(&mut self, class: ClassId) -> Option<Box<ClassIndex>> {
        let mut index = self.detach_index(class)?;
        if let Some(scope) = &self.scope {
            let within = ClassIndex::within(index.hot.clone(), index.key, scope.clone());
            self.state.classes.list[class as usize].index =
                Some(std::mem::replace(&mut *index, within).into());
        }
        let keys = &self.state.classes.keys;
        refresh_all(std::iter::once(&mut *index), &self.state.nodes, keys, self.backend);
        Some(index)
    }

    /// Takes the index of a class out of the state as it is.
    pub(super) fn detach_index(&mut self, class: ClassId) -> Option<Box<ClassIndex>> {
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

    /// Gives an index back; one of a hypernode is done with.
    pub(super) fn return_index(&mut self, class: ClassId, index: Option<Box<ClassIndex>>) {
        if self.scope.is_some() {
            return;
        }
        self.state.classes.list[class as usize].index = index;
    }

    /// A node for a task: on free room, else on room that is being freed.
    pub(super) fn choose(
        &mut self,
        task: TaskId,
        index: Option<&mut ClassIndex>,
    ) -> Option<(NodeId, bool)> {
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
    pub(super) fn nominated_place(&mut self, task: TaskId) -> Option<(NodeId, bool)> {
        let node = self.state.nodes.get(&self.state.nominated.get(&task)?.node)?;
        let class = &self.state.classes.list[self.state.tasks[task].class as usize];
        if !self.state.classes.keys[class.key as usize].allows(node)
            || !self.sees(node)
            || !self.volumes_allow(task, node)
            || !self.state.nodes.fits_after(node, &class.request)
        {
            return None;
        }
        let free = self.state.nodes.fits(node, &class.request, false);
        if free && self.pods_allow(task, node) {
            return Some((node, false));
        }
        self.pods_allow_later(task, node).then_some((node, true))
    }

    /// Other pods do not keep the task from the node.
    fn pods_allow(&mut self, task: TaskId, node: NodeId) -> bool {
        !self.depends_on_pods(task)
            || self.state.ask_about(task, &self.pipeline.switches).filter(node).is_ok()
    }

    /// Other pods do not keep the task from the node, once those that are leaving it are gone (B44).
    pub(super) fn pods_allow_later(&mut self, task: TaskId, node: NodeId) -> bool {
        if !self.depends_on_pods(task) || !self.pipeline.filters_follow_evictions {
            return self.pods_allow(task, node);
        }
        let leaves = |task: &TaskId| self.state.tasks[*task].status == Status::Releasing;
        let leaving: Vec<TaskId> = self.state.tasks_on(node).filter(leaves).collect();
        self.state.hide_from_filters(&leaving);
        let allowed = self.state.ask_about(task, &self.pipeline.switches).filter(node).is_ok();
        self.state.show_to_filters(&leaving);
        allowed
    }

    /// Places one waiting pod without regard to its gang, if its queue and the nodes allow it.
    pub fn place_alone(&mut self, task: TaskId) -> bool {
        let row = &self.state.tasks[task];
        let (class, job) = (row.class, row.job);
        if self.held(task).is_some() || self.allowance(job, class, 1) == 0 {
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

    /// Lanes of a block that are looked at.
    fn seen_lanes(&self, block: usize) -> u64 {
        lanes_of(self.scope.as_deref(), block)
    }

    fn sees(&self, node: NodeId) -> bool {
        self.seen_lanes(node as usize / LANES) >> (node as usize % LANES) & 1 == 1
    }

    pub(super) fn has_volumes(&self, task: TaskId) -> bool {
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
            let mask = self.state.classes.keys[key as usize].mask.get(block).copied().unwrap_or(0)
                & self.seen_lanes(block);
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

    pub(super) fn volumes_allow(&self, task: TaskId, node: NodeId) -> bool {
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
