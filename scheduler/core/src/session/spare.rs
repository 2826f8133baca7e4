//! Sparing: of a plan that works, every victim is put back that is not needed, the last one first, so that what is left is
//! inclusion-minimal (I5). Promised places may move to room that others leave anyway. A gang that goes as a whole is
//! spared as a whole, or down to what keeps it whole. The state is changed first; the journal is brought in line at the end.

use rustc_hash::FxHashMap;

use super::Session;
use super::ranking::{Question, Ranking};
use super::statement::{Op, Savepoint};
use crate::state::classes::ClassId;
use crate::state::jobs::JobId;
use crate::state::nodes::NodeId;
use crate::state::reach::Leaving;
use crate::state::resource::Request;
use crate::state::status::Status;
use crate::state::tasks::TaskId;

/// What the plan promises, and where there is room left.
struct Plan {
    /// Promised tasks by their node.
    places: FxHashMap<NodeId, Vec<TaskId>>,
    /// One task of each class, and every task whose place depends on other pods.
    witnesses: Vec<TaskId>,
    /// Room for one more task of a class without anybody leaving.
    room: Vec<(ClassId, Ranking)>,
}

/// A victim and its status before.
type Victim = (TaskId, Status);

impl Session<'_> {
    /// Takes needless evictions since a position out of the journal.
    pub(super) fn spare_needless(&mut self, from: Savepoint) {
        let mut groups: Vec<(JobId, Vec<Victim>)> = Vec::new();
        let mut group_of: FxHashMap<JobId, usize> = FxHashMap::default();
        for op in self.journal.since(from).iter().rev() {
            if let Op::Evict { task, was, .. } = *op {
                let job = self.state.tasks[task].job;
                let at = *group_of.entry(job).or_insert_with(|| {
                    groups.push((job, Vec::new()));
                    groups.len() - 1
                });
                groups[at].1.push((task, was));
            }
        }
        if groups.is_empty() {
            return;
        }
        let mut plan = self.plan(from);
        for (job, victims) in groups {
            self.spare_members(&mut plan, job, &victims);
        }
        let state = &*self.state;
        self.journal.rewrite(from, |op| match op {
            Op::Place { task, .. } => {
                Some(Op::Place { task, node: state.tasks[task].node, pipelined: true })
            }
            Op::Evict { task, .. } => (state.tasks[task].status == Status::Releasing).then_some(op),
        });
    }

    fn plan(&mut self, from: Savepoint) -> Plan {
        let mut plan =
            Plan { places: FxHashMap::default(), witnesses: Vec::new(), room: Vec::new() };
        for op in self.journal.since(from) {
            let Op::Place { task, node, .. } = *op else { continue };
            plan.places.entry(node).or_default().push(task);
            let class = self.state.tasks[task].class;
            let is_new = plan.room.iter().all(|(known, _)| *known != class);
            if is_new {
                let question = Question {
                    class,
                    step: 0,
                    leaving: Leaving::Surplus,
                    backend: self.backend,
                    among: None,
                    within: self.scope.clone(),
                };
                let room = Ranking::new(self.state, question);
                plan.room.push((class, room));
            }
            if is_new || self.depends_on_pods(task) {
                plan.witnesses.push(task);
            }
        }
        plan
    }

    /// Spares members of one job. Where too few come back for its gang to be whole, others are tried first (see [`orders`]);
    /// where that does not do either, they all go.
    fn spare_members(&mut self, plan: &mut Plan, job: JobId, victims: &[Victim]) {
        let mut small_first = victims.to_vec();
        small_first.sort_by_cached_key(|&(task, _)| self.weight(self.state.tasks[task].class));
        let row = &self.state.jobs[job as usize];
        let lacks = if self.pipeline.gang { row.lacks() as usize } else { 0 };
        for order in orders(victims, small_first, lacks) {
            let mut spared: Vec<TaskId> = Vec::new();
            for victim in order {
                if self.can_spare(plan, victim) {
                    spared.push(victim.0);
                }
            }
            let row = &self.state.jobs[job as usize];
            let came_back = row.counts.allocated() as usize == spared.len();
            let whole = row.is_ready() && row.roles_ready();
            if !self.pipeline.gang || !came_back || whole {
                return;
            }
            for task in spared.into_iter().rev() {
                self.let_go(plan, task);
            }
        }
    }

    /// Puts a victim back if the plan works all the same; its places may move.
    fn can_spare(&mut self, plan: &mut Plan, (victim, was): Victim) -> bool {
        let row = &self.state.tasks[victim];
        let (node, class) = (row.node, row.class);
        let request = self.state.classes.list[class as usize].request.clone();
        let moved = self.move_away(plan, node, &request);
        if self.state.nodes.fits_after(node, &request) {
            self.state.spare(victim, was);
            self.account(victim, 1);
            if self.plan_holds(plan) {
                self.see_room(plan, node);
                return true;
            }
            self.let_go(plan, victim);
        }
        for task in moved.into_iter().rev() {
            self.move_place(plan, task, node);
        }
        false
    }

    fn let_go(&mut self, plan: &mut Plan, victim: TaskId) {
        self.state.evict(victim);
        self.account(victim, -1);
        self.see_room(plan, self.state.tasks[victim].node);
    }

    /// Moves promised places from a node to room that is left elsewhere, until a request fits on the node; gives what
    /// was moved.
    fn move_away(&mut self, plan: &mut Plan, node: NodeId, request: &Request) -> Vec<TaskId> {
        let mut moved = Vec::new();
        let here = plan.places.get(&node).cloned().unwrap_or_default();
        for task in here {
            if self.state.nodes.fits_after(node, request) {
                break;
            }
            if self.depends_on_pods(task) || self.has_volumes(task) {
                continue;
            }
            let class = self.state.tasks[task].class;
            let Some((_, room)) = plan.room.iter_mut().find(|(known, _)| *known == class) else {
                continue;
            };
            // What the node itself has left is no way out.
            room.exclude(self.state, node);
            let elsewhere = room.best();
            room.see_changes(self.state, class, &[node]);
            if let Some(elsewhere) = elsewhere {
                self.move_place(plan, task, elsewhere);
                moved.push(task);
            }
        }
        moved
    }

    fn move_place(&mut self, plan: &mut Plan, task: TaskId, to: NodeId) {
        let from = self.state.tasks[task].node;
        self.state.unplace(task);
        self.state.place(task, to, Status::Pipelined);
        plan.places.entry(from).or_default().retain(|&other| other != task);
        plan.places.entry(to).or_default().push(task);
        self.see_room(plan, from);
        self.see_room(plan, to);
    }

    fn see_room(&mut self, plan: &mut Plan, node: NodeId) {
        self.state.refresh_reach_of(node);
        for (class, room) in &mut plan.room {
            room.see_changes(self.state, *class, &[node]);
        }
    }

    /// The queue may still take, and other pods still allow, every place of the plan.
    fn plan_holds(&mut self, plan: &Plan) -> bool {
        plan.witnesses.iter().all(|&task| {
            let row = &self.state.tasks[task];
            let (class, node) = (row.class, row.node);
            let queue = self.state.jobs[row.job as usize].queue;
            self.state.unplace(task);
            self.account(task, -1);
            let holds = self.pipeline.allocatable(self.state, queue, class, 1) > 0
                && (!self.depends_on_pods(task) || self.pods_allow_later(task, node));
            self.state.place(task, node, Status::Pipelined);
            self.account(task, 1);
            holds
        })
    }
}

/// Gangs with more victims than this are not tried in every choice of members.
const EVERY_CHOICE: usize = 8;

/// The orders in which the victims of a gang are asked to come back: the last one first; the small ones first, so that
/// as many as possible come back; then, of a gang of a few pods, every choice of as many as it needs. (Who comes back decides
/// who else can: a small pod that takes the only room a promised place could move to keeps two others away.)
fn orders(
    victims: &[Victim],
    small_first: Vec<Victim>,
    lacks: usize,
) -> impl Iterator<Item = Vec<Victim>> {
    let count = if victims.len() <= EVERY_CHOICE { victims.len() } else { 0 };
    let choices = (0..1_u32 << count).filter(move |bits| bits.count_ones() as usize == lacks);
    let of_choice = small_first.clone();
    let chosen_first = choices.map(move |bits| {
        let numbered = of_choice.iter().enumerate();
        let (chosen, rest): (Vec<_>, Vec<_>) = numbered.partition(|(at, _)| bits >> at & 1 == 1);
        chosen.into_iter().chain(rest).map(|(_, &victim)| victim).collect()
    });
    [victims.to_vec(), small_first].into_iter().chain(chosen_first)
}
