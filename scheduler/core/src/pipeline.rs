//! A loaded configuration: plugins in their tiers, and per extension point the list of those that take part.
//! How answers combine over plugins and tiers (Volcano 3.6) is decided here and nowhere else.

use tephra_api::conf::{Flag, SchedulerConf};

use crate::action::Action;
use crate::index::score::ScoreConfig;
use crate::laps::{Lap, Laps};
use crate::matching::revocable::Zones;
use crate::matching::static_filter::PredicateSwitches;
use crate::plugin::{
    Admission, Delta, DomainSearch, EvictFor, Evictor, Figures, Hooks, Invalid, OrderKey, Plugin,
    QueueShare, QueueWord, Vote,
};
use crate::plugin::{reservation, suspend};
use crate::registry;
use crate::state::State;
use crate::state::classes::ClassId;
use crate::state::fingerprint::mix;
use crate::state::hyper_nodes::DomainId;
use crate::state::jobs::JobId;
use crate::state::nodes::NodeId;
use crate::state::queues::QueueId;
use crate::state::sub_jobs::SubJobId;
use crate::state::tasks::TaskId;

#[derive(Debug)]
struct Slot {
    name: &'static str,
    tier: usize,
    hooks: Hooks,
    plugin: Box<dyn Plugin>,
}

/// The switch that gates an extension point; those without one are always on.
const GATES: &[(Hooks, Flag)] = &[
    (Hooks::JOB_ORDER, Flag::JobOrder),
    (Hooks::QUEUE_ORDER, Flag::QueueOrder),
    (Hooks::TASK_ORDER, Flag::TaskOrder),
    (Hooks::SUB_JOB_ORDER, Flag::SubJobOrder),
    (Hooks::CLUSTER_ORDER, Flag::ClusterOrder),
    (Hooks::PREDICATE, Flag::Predicate),
    (Hooks::NODE_ORDER, Flag::NodeOrder),
    (Hooks::BEST_NODE, Flag::BestNode),
    (Hooks::HYPER_NODE_ORDER, Flag::HyperNodeOrder),
    (Hooks::HYPER_NODE_GRADIENT, Flag::HyperNodeGradient),
    (Hooks::OVERUSED, Flag::Overused),
    (Hooks::ALLOCATABLE, Flag::Allocatable),
    (Hooks::PREEMPTIVE, Flag::Preemptive),
    (Hooks::PREEMPTABLE, Flag::Preemptable),
    (Hooks::RECLAIMABLE, Flag::Reclaimable),
    (Hooks::VICTIM_TASKS, Flag::Victim),
    (Hooks::JOB_READY, Flag::JobReady),
    (Hooks::JOB_PIPELINED, Flag::JobPipelined),
    (Hooks::JOB_STARVING, Flag::JobStarving),
    (Hooks::JOB_ENQUEUEABLE, Flag::JobEnqueued),
    (Hooks::JOB_ENQUEUED, Flag::JobEnqueued),
    (Hooks::SUB_JOB_READY, Flag::SubJobReady),
    (Hooks::SUB_JOB_PIPELINED, Flag::SubJobPipelined),
    (Hooks::TARGET_JOB, Flag::TargetJob),
    (Hooks::RESERVED_NODES, Flag::ReservedNodes),
];

/// A loaded configuration.
#[derive(Debug, Default)]
pub struct Pipeline {
    /// Actions in order.
    pub actions: Vec<Box<dyn Action>>,
    /// Their names.
    pub action_names: Vec<&'static str>,
    /// Action `enqueue` is configured: jobs must be admitted before they are placed.
    pub admits: bool,
    /// Queues take back what they deserve.
    pub reclaims: bool,
    /// Filters that run.
    pub switches: PredicateSwitches,
    /// Some plugin filters nodes at all.
    pub filters: bool,
    /// Filters that look at other pods count on victims being gone (switches of SimulateRemoveTask, 1.3).
    pub filters_follow_evictions: bool,
    /// Plugin gang is there: conditions of PodGroups are written.
    pub gang: bool,
    /// A placement may move any queue in the order of queues, not only its own.
    pub joint_queue_order: bool,
    /// Gangs at the head of the line get reservations.
    pub reservation: Option<reservation::Rules>,
    /// Gangs that make room as a whole are suspended.
    pub suspension: Option<suspend::Rules>,
    /// Node scores.
    pub scores: ScoreConfig,
    slots: Vec<Slot>,
}

impl Pipeline {
    /// Builds the plugins and actions of a configuration. Unknown plugins and wrong arguments become warnings.
    pub fn new(conf: &SchedulerConf, warnings: &mut Vec<String>) -> Self {
        warnings.extend(conf.warnings());
        let mut pipeline = Self { switches: PredicateSwitches::NONE, ..Self::default() };
        for name in &conf.actions {
            match registry::ACTIONS.iter().find(|(known, _)| known == name) {
                Some((name, make)) => {
                    let mut action = make();
                    pipeline.action_names.push(name);
                    if let Some(arguments) = conf.action(name) {
                        let mut wrong = Vec::new();
                        action.configure(arguments, &mut wrong);
                        let told = wrong.into_iter().map(|text| format!("action {name}: {text}"));
                        warnings.extend(told);
                    }
                    pipeline.actions.push(action);
                }
                None => warnings.push(format!("action {name} is not built yet: skipped")),
            }
            pipeline.admits |= name == "enqueue";
            pipeline.reclaims |= matches!(name.as_str(), "reclaim" | "gangreclaim");
        }
        for (tier, options) in conf.tiers.iter().enumerate() {
            for option in &options.plugins {
                let Some((name, make)) =
                    registry::PLUGINS.iter().find(|(known, _)| *known == option.name)
                else {
                    warnings.push(format!("plugin {} is unknown: skipped", option.name));
                    continue;
                };
                let mut plugin = make();
                if option.enabled(Flag::Hierarchy) {
                    plugin.enable_hierarchy();
                }
                let mut wrong = Vec::new();
                plugin.configure(&option.arguments, &mut wrong);
                warnings.extend(wrong.into_iter().map(|text| format!("plugin {name}: {text}")));
                let mut hooks = plugin.hooks();
                for &(hook, flag) in GATES {
                    if !option.enabled(flag) {
                        hooks.remove(hook);
                    }
                }
                pipeline.joint_queue_order |=
                    hooks.contains(Hooks::QUEUE_ORDER | Hooks::JOINT_QUEUE_ORDER);
                if hooks.contains(Hooks::PREDICATE) {
                    plugin.filters(&mut pipeline.switches);
                    pipeline.filters = true;
                    pipeline.filters_follow_evictions |=
                        option.enabled(Flag::Preemptable) || option.enabled(Flag::Allocatable);
                }
                if hooks.contains(Hooks::NODE_ORDER) {
                    plugin.scores(&mut pipeline.scores);
                }
                pipeline.gang |= *name == "gang";
                pipeline.reservation = pipeline.reservation.or_else(|| plugin.reservation());
                pipeline.suspension = pipeline.suspension.or_else(|| plugin.suspension());
                pipeline.slots.push(Slot { name, tier, hooks, plugin });
            }
        }
        pipeline
    }

    fn with(&self, hook: Hooks) -> impl Iterator<Item = &Slot> {
        self.slots.iter().filter(move |slot| slot.hooks.contains(hook))
    }

    fn with_mut(&mut self, hook: Hooks) -> impl Iterator<Item = &mut Slot> {
        self.slots.iter_mut().filter(move |slot| slot.hooks.contains(hook))
    }

    /// Names of the plugins that are loaded.
    pub fn plugins(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.slots.iter().map(|slot| slot.name)
    }

    /// Revocable zones as they are now, with the switches of the plugin that knows them.
    pub fn zones(&self, state: &State) -> Zones {
        let known = self.slots.iter().find_map(|slot| Some((slot, slot.plugin.zones(state)?)));
        known.map_or_else(Zones::default, |(slot, zones)| Zones {
            filters: slot.hooks.contains(Hooks::PREDICATE),
            scores: slot.hooks.contains(Hooks::NODE_ORDER),
            ..zones
        })
    }

    /// Opens a session.
    pub fn open(&mut self, state: &State, laps: &mut dyn Laps) {
        for slot in &mut self.slots {
            if slot.hooks.contains(Hooks::OPEN) {
                slot.plugin.open(state);
            }
            laps.lap(Lap::PluginOpen(slot.name));
        }
    }

    /// What a plugin that gives queues shares knows of one; the first one's word.
    pub fn queue_share(&self, state: &State, queue: QueueId) -> Option<QueueShare> {
        let mut slots = self.slots.iter();
        let mut share = slots.find_map(|slot| slot.plugin.queue_share(state, queue))?;
        share.overused |= self.overused(state, queue);
        Some(share)
    }

    /// What answers in searches for victims depend on; `None` where a plugin cannot tell.
    pub fn figures(&self, state: &State) -> Option<Figures> {
        let mut all = Figures::default();
        for slot in self.searched() {
            let Figures { exact, drifting } = slot.plugin.figures(state)?;
            all.exact = mix([all.exact, exact]);
            all.drifting.extend(drifting);
        }
        Some(all)
    }

    /// The moment from which on time alone may change an answer in a search for a job.
    pub fn answers_until_ms(&self, state: &State, job: JobId) -> i64 {
        let until_ms = self.searched().map(|slot| slot.plugin.answers_until_ms(state, job));
        until_ms.min().unwrap_or(i64::MAX)
    }

    /// A search for victims begins.
    pub fn begin_search(&mut self) {
        self.slots.iter_mut().for_each(|slot| slot.plugin.begin_search());
    }

    /// So far drifting figures may move against each other without another answer in the search that began last.
    pub fn leeway(&self) -> i128 {
        self.searched().map(|slot| slot.plugin.leeway()).min().unwrap_or(i128::MAX)
    }

    fn searched(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter().filter(|slot| slot.hooks.intersects(Hooks::SEARCHED))
    }

    /// Tells of a placement.
    pub fn account(&mut self, state: &State, delta: &Delta) {
        for slot in self.with_mut(Hooks::ACCOUNT) {
            slot.plugin.account(state, delta);
        }
    }

    /// What plugins say about queues at the end of a session.
    pub fn queue_words(&mut self, state: &State, laps: &mut dyn Laps) -> Vec<(QueueId, QueueWord)> {
        let mut words = Vec::new();
        laps.lap(Lap::Told);
        for slot in &mut self.slots {
            if slot.hooks.contains(Hooks::QUEUE_WORDS) {
                words.extend(slot.plugin.queue_words(state));
            }
            laps.lap(Lap::PluginClose(slot.name));
        }
        words
    }

    /// Key that orders jobs, without the tie-break.
    pub fn job_order(&self, state: &State, job: JobId) -> OrderKey {
        let mut key = OrderKey::default();
        self.with(Hooks::JOB_ORDER).for_each(|slot| slot.plugin.job_order(state, job, &mut key));
        key
    }

    /// Key that orders queues, without the tie-break.
    pub fn queue_order(&self, state: &State, queue: QueueId) -> OrderKey {
        let mut key = OrderKey::default();
        self.with(Hooks::QUEUE_ORDER)
            .for_each(|slot| slot.plugin.queue_order(state, queue, &mut key));
        key
    }

    /// Key that orders tasks, without the tie-break.
    pub fn task_order(&self, state: &State, task: TaskId) -> OrderKey {
        let mut key = OrderKey::default();
        self.with(Hooks::TASK_ORDER).for_each(|slot| slot.plugin.task_order(state, task, &mut key));
        key
    }

    /// Key that orders sub-groups of a job, without the tie-break.
    pub fn sub_job_order(&self, state: &State, job: JobId, sub_job: SubJobId) -> OrderKey {
        let mut key = OrderKey::default();
        self.with(Hooks::SUB_JOB_ORDER)
            .for_each(|slot| slot.plugin.sub_job_order(state, job, sub_job, &mut key));
        key
    }

    /// Hypernodes that may be tried, in groups: as the first plugin says, else only the one that is given.
    pub fn domains(&self, state: &State, search: &DomainSearch) -> Vec<Vec<DomainId>> {
        let mut asked = self.with(Hooks::HYPER_NODE_GRADIENT);
        asked.next().map_or_else(
            || vec![vec![search.within]],
            |slot| slot.plugin.hyper_node_gradient(state, search),
        )
    }

    /// Scores of hypernodes: the sum over plugins.
    pub fn hyper_node_order(
        &mut self,
        state: &State,
        job: JobId,
        sub_job: Option<SubJobId>,
        domains: &[DomainId],
    ) -> Vec<f64> {
        let mut scores = vec![0.0; domains.len()];
        for slot in self.with_mut(Hooks::HYPER_NODE_ORDER) {
            slot.plugin.hyper_node_order(state, job, sub_job, domains, &mut scores);
        }
        scores
    }

    /// Scores of nodes that depend on where other pods of the gang run: the sum over plugins.
    pub fn node_order(&mut self, state: &State, task: TaskId, nodes: &[NodeId]) -> Vec<f64> {
        let mut sums = vec![0.0; nodes.len()];
        for slot in self.with_mut(Hooks::NODE_ORDER) {
            let scores = slot.plugin.node_order(state, task, nodes).unwrap_or_default();
            sums.iter_mut().zip(scores).for_each(|(sum, score)| *sum += score);
        }
        sums
    }

    /// Any plugin calls the queue overused.
    pub fn overused(&self, state: &State, queue: QueueId) -> bool {
        self.with(Hooks::OVERUSED).any(|slot| slot.plugin.overused(state, queue))
    }

    /// Key that orders queues as victims of another one; `None` when no plugin has a say (then the queue order,
    /// reversed, decides).
    pub fn victim_queue_order(
        &self,
        state: &State,
        preemptor: QueueId,
        victim: QueueId,
    ) -> Option<OrderKey> {
        let mut key = OrderKey::default();
        let mut asked = false;
        for slot in self.with(Hooks::VICTIM_QUEUE_ORDER) {
            asked = true;
            slot.plugin.victim_queue_order(state, preemptor, victim, &mut key);
        }
        asked.then_some(key)
    }

    /// The candidates that may be victims, in their order (Volcano 3.7): the first tier with an answer decides, and
    /// whatever decides, nobody goes whom a shield protects.
    pub fn victims(&self, state: &State, evictor: &Evictor, candidates: &[TaskId]) -> Vec<TaskId> {
        let hook = evictor.why.hook();
        let answer = |slot: &Slot| {
            let mut list = candidates.to_vec();
            let vote = slot.plugin.victims(state, evictor, &mut list);
            (vote != Vote::Abstain).then_some(list)
        };
        let victims = by_tiers(self.with(hook).map(|slot| (slot.tier, answer(slot))));
        self.unprotected(state, evictor, victims)
    }

    /// A shield protects whoever is in this queue.
    pub fn spares(&self, state: &State, evictor: &Evictor, giver: QueueId) -> bool {
        let mut shields = self.with(evictor.why.hook() | Hooks::SHIELD);
        shields.any(|slot| slot.plugin.spares(state, evictor, giver))
    }

    /// Those victims whom no shield protects, and no more of them than may go together.
    fn unprotected(
        &self,
        state: &State,
        evictor: &Evictor,
        mut victims: Vec<TaskId>,
    ) -> Vec<TaskId> {
        let shields = || self.with(evictor.why.hook() | Hooks::SHIELD);
        for slot in shields() {
            if victims.is_empty() {
                break;
            }
            slot.plugin.victims(state, evictor, &mut victims);
        }
        shields().for_each(|slot| slot.plugin.ration(state, &mut victims));
        victims
    }

    /// Plugin gang has a say in who is evicted. Where it is told to have none, gangs lose more than their surplus, and
    /// then all of their pods go (I5).
    pub fn gang_protects(&self, why: EvictFor) -> bool {
        self.with(why.hook()).any(|slot| slot.name == "gang")
    }

    /// Plugin priority sees to it that only lower priorities are evicted.
    pub fn only_below(&self, why: EvictFor) -> bool {
        why == EvictFor::GangPreempt || self.with(why.hook()).any(|slot| slot.name == "priority")
    }

    /// As [`Pipeline::only_below`], and no other tier of plugins is asked when it finds nobody.
    pub fn strictly_below(&self, why: EvictFor) -> bool {
        let mut asked = self.slots.iter().filter(|slot| slot.hooks.contains(why.hook()));
        let tier = asked.clone().find(|slot| slot.name == "priority").map(|slot| slot.tier);
        tier.is_some_and(|tier| asked.all(|slot| slot.tier == tier))
    }

    /// The queue may take room from others for a pod of this class.
    pub fn preemptive(&self, state: &State, queue: QueueId, class: ClassId) -> bool {
        self.with(Hooks::PREEMPTIVE).all(|slot| slot.plugin.preemptive(state, queue, class))
    }

    /// Running tasks that plugins want evicted: all of the first tier that wants any, save those whom a shield protects.
    pub fn victim_tasks(&mut self, state: &State, running: &[TaskId]) -> Vec<TaskId> {
        let mut wanted: Vec<TaskId> = Vec::new();
        let mut tier = None;
        for slot in self.with_mut(Hooks::VICTIM_TASKS) {
            if !wanted.is_empty() && tier != Some(slot.tier) {
                break;
            }
            tier = Some(slot.tier);
            let list = slot.plugin.victim_tasks(state, running);
            wanted
                .extend(list.into_iter().filter(|task| !wanted.contains(task)).collect::<Vec<_>>());
        }
        self.unprotected(state, &Evictor::SHUFFLE, wanted)
    }

    /// Copies that every plugin allows.
    pub fn allocatable(&self, state: &State, queue: QueueId, class: ClassId, count: u32) -> u32 {
        self.with(Hooks::ALLOCATABLE)
            .fold(count, |count, slot| slot.plugin.allocatable(state, queue, class, count))
    }

    /// Some plugin enforces a limit that more nodes would not lift.
    pub fn capped(&self, state: &State, queue: QueueId, class: ClassId, count: u32) -> bool {
        self.with(Hooks::ALLOCATABLE).any(|slot| slot.plugin.capped(state, queue, class, count))
    }

    /// Why a queue may not take `count` more of a class.
    pub fn limit_reached(
        &self,
        state: &State,
        queue: QueueId,
        class: ClassId,
        count: u32,
    ) -> Option<String> {
        self.with(Hooks::ALLOCATABLE)
            .find_map(|slot| slot.plugin.limit_reached(state, queue, class, count))
    }

    /// The first objection to a job; never gated.
    pub fn job_valid(&self, state: &State, job: JobId) -> Result<(), Invalid> {
        self.with(Hooks::JOB_VALID).try_for_each(|slot| slot.plugin.job_valid(state, job))
    }

    /// Every plugin agrees that what was placed for a sub-group may be kept.
    pub fn sub_job_ready(&self, state: &State, job: JobId, sub_job: SubJobId) -> bool {
        self.with(Hooks::SUB_JOB_READY).all(|slot| slot.plugin.sub_job_ready(state, job, sub_job))
    }

    /// As [`Pipeline::job_pipelined`], for a sub-group.
    pub fn sub_job_pipelined(&self, state: &State, job: JobId, sub_job: SubJobId) -> bool {
        vote(
            self.with(Hooks::SUB_JOB_PIPELINED)
                .map(|slot| (slot.tier, slot.plugin.sub_job_pipelined(state, job, sub_job))),
        )
    }

    /// Every plugin agrees that the job may be committed.
    pub fn job_ready(&self, state: &State, job: JobId) -> bool {
        self.with(Hooks::JOB_READY).all(|slot| slot.plugin.job_ready(state, job))
    }

    /// Tier by tier: a reject ends it, a permit ends it after its tier; nobody's opinion is yes.
    pub fn job_pipelined(&self, state: &State, job: JobId) -> bool {
        vote(
            self.with(Hooks::JOB_PIPELINED)
                .map(|slot| (slot.tier, slot.plugin.job_pipelined(state, job))),
        )
    }

    /// All plugins of the first tier that has any; nobody's opinion is no.
    pub fn job_starving(&self, state: &State, job: JobId) -> bool {
        let Some(tier) = self.with(Hooks::JOB_STARVING).map(|slot| slot.tier).next() else {
            return false;
        };
        self.with(Hooks::JOB_STARVING)
            .filter(|slot| slot.tier == tier)
            .all(|slot| slot.plugin.job_starving(state, job))
    }

    /// As [`Pipeline::job_pipelined`], with the text of the plugin that rejects. Lack of room rejects nobody whose queue
    /// deserves the room and will take it back, and nobody who is `near` enough to the head of its queue to have a reservation.
    pub fn job_enqueueable(&mut self, state: &State, job: JobId, near: bool) -> Admission {
        let entitles = |slot: &Slot| slot.plugin.entitled(state, job);
        let entitled = near || self.reclaims && self.with(Hooks::JOB_ENQUEUEABLE).any(entitles);
        let mut permitted_in = None;
        for slot in self.with_mut(Hooks::JOB_ENQUEUEABLE) {
            if permitted_in.is_some_and(|tier| tier < slot.tier) {
                break;
            }
            let admission = slot.plugin.job_enqueueable(state, job);
            match admission.vote {
                Vote::Reject if entitled && admission.lacks_room => {}
                Vote::Reject => return admission,
                Vote::Permit => permitted_in = Some(slot.tier),
                Vote::Abstain => {}
            }
        }
        Admission::of(Vote::Permit)
    }

    /// Tells that a job was admitted.
    pub fn job_enqueued(&mut self, state: &State, job: JobId) {
        for slot in self.with_mut(Hooks::JOB_ENQUEUED) {
            slot.plugin.job_enqueued(state, job);
        }
    }
}

/// Combines answers about victims over tiers. An empty answer ends its tier, but the next tier still decides (B6); an
/// intersection that becomes empty starts anew with the next answer of the tier (B7).
fn by_tiers(answers: impl Iterator<Item = (usize, Option<Vec<TaskId>>)>) -> Vec<TaskId> {
    let mut victims: Vec<TaskId> = Vec::new();
    let (mut current, mut ended) = (None, false);
    for (tier, answer) in answers {
        if current != Some(tier) {
            if !victims.is_empty() {
                break;
            }
            (current, ended) = (Some(tier), false);
        }
        let Some(list) = answer.filter(|_| !ended) else { continue };
        if list.is_empty() {
            victims.clear();
            ended = true;
        } else if victims.is_empty() {
            victims = list;
        } else {
            victims.retain(|task| list.contains(task));
        }
    }
    victims
}

fn vote(votes: impl Iterator<Item = (usize, Vote)>) -> bool {
    let mut permitted_in = None;
    for (tier, vote) in votes {
        if permitted_in.is_some_and(|before| before < tier) {
            break;
        }
        match vote {
            Vote::Reject => return false,
            Vote::Permit => permitted_in = Some(tier),
            Vote::Abstain => {}
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reject_wins_in_its_tier_and_a_permit_hides_later_tiers() {
        assert!(vote(std::iter::empty()));
        assert!(!vote([(0, Vote::Permit), (0, Vote::Reject)].into_iter()));
        assert!(vote([(0, Vote::Permit), (1, Vote::Reject)].into_iter()));
        assert!(!vote([(0, Vote::Abstain), (1, Vote::Reject)].into_iter()));
    }

    #[test]
    fn an_empty_answer_leaves_the_choice_to_the_next_tier_and_an_empty_intersection_starts_anew() {
        let combine = |answers: &[(usize, Option<&[TaskId]>)]| {
            by_tiers(answers.iter().map(|&(tier, list)| (tier, list.map(<[TaskId]>::to_vec))))
        };
        let (one, two, both): (&[TaskId], &[TaskId], &[TaskId]) = (&[1], &[2], &[2, 1]);
        assert!(combine(&[]).is_empty());
        assert_eq!(combine(&[(0, Some(both)), (0, Some(one)), (1, Some(two))]), [1]);
        assert_eq!(
            combine(&[(0, Some(both)), (0, Some(&[])), (0, Some(one)), (1, Some(two))]),
            [2]
        );
        assert_eq!(combine(&[(0, Some(one)), (0, Some(two)), (0, Some(both))]), [2, 1]);
        assert_eq!(combine(&[(0, None), (1, Some(both))]), [2, 1]);
    }

    #[test]
    fn unknown_plugins_and_wrong_arguments_are_warnings() {
        let text = "actions: allocate\ntiers: [{plugins: [{name: nodeoder}, {name: nodeorder, arguments: {leastrequested.weight: '3'}}]}]";
        let conf = SchedulerConf::parse(text, registry::action_names()).unwrap();
        let mut warnings = Vec::new();
        let pipeline = Pipeline::new(&conf, &mut warnings);
        assert_eq!(pipeline.plugins().collect::<Vec<_>>(), ["nodeorder"]);
        assert_eq!(
            warnings,
            [
                "plugin nodeoder is unknown: skipped",
                "plugin nodeorder: argument leastrequested.weight must be a whole number, not \"3\": ignored"
            ]
        );
    }
}
