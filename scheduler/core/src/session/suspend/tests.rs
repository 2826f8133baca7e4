//! Suspension as a core sees it, with the test in the place of the API server and the suspension controller: two nodes of 4
//! cpus, gangs of pods of 2 cpus.

use std::sync::Arc;

use tephra_api::conf::SchedulerConf;
use tephra_api::reasons;
use tephra_api::suspension::{Intent, Mode};

use crate::decision::Decision;
use crate::event::{
    CheckpointMode, Event, NodeObject, ObjectKey, PodGroupObject, PodGroupPhase, PodGroupStatus,
    PodObject, PodPhase, PodSpec, PreemptionMode, PriorityClassObject, QueuePolicyObject,
    Suspension, SuspensionRecord,
};
use crate::plugin::test_world::queue;
use crate::state::jobs::JobId;
use crate::workload::amounts;
use crate::{Core, Options};

const MINUTE_MS: i64 = 60_000;
const CONF: &str = "actions: allocate, preempt
tiers:
- plugins: [{name: priority}, {name: gang, enablePreemptable: false}, {name: suspend}]
- plugins: [{name: predicates}]
";

struct World {
    core: Core,
    now_ms: i64,
}

impl World {
    /// A cluster whose room a running gang `low` of four has; `policy` is that of the queue.
    fn full(policy: QueuePolicyObject) -> Self {
        let mut world = Self::empty(policy);
        world.apply(gang("low", 4, None));
        for number in 0..4 {
            world.apply(pod("low", number, Some(["n1", "n2"][number % 2])));
        }
        world.session();
        world
    }

    fn empty(policy: QueuePolicyObject) -> Self {
        let conf = SchedulerConf::parse(CONF, crate::registry::action_names()).expect("valid");
        let mut core = Core::new(Options::default(), &conf);
        core.apply(Event::Queue(queue("default", "")));
        let name = "default".to_owned();
        core.apply(Event::QueuePolicy(QueuePolicyObject { name, ..policy }));
        for (name, value) in [("low", 1), ("high", 10), ("higher", 20)] {
            let class = PriorityClassObject { name: name.into(), value, global_default: false };
            core.apply(Event::PriorityClass(class));
        }
        for name in ["n1", "n2"] {
            core.apply(Event::Node(NodeObject {
                name: name.to_owned(),
                allocatable: amounts(4_000, 1 << 36, 0, 50),
                ..NodeObject::default()
            }));
        }
        Self { core, now_ms: 60 * MINUTE_MS }
    }

    fn apply(&mut self, event: Event) {
        self.core.apply(event);
    }

    /// A session a second later: what it decides, save statuses and conditions.
    fn session(&mut self) -> Vec<Decision> {
        self.now_ms += 1_000;
        let mut decisions = self.core.session(self.now_ms).decisions;
        decisions.retain(|decision| match decision {
            Decision::Notice(notice) => notice.reason == reasons::SUSPENSION_IGNORED,
            Decision::PodGroupStatus { .. }
            | Decision::PodCondition { .. }
            | Decision::QueueAllocated { .. } => false,
            _ => true,
        });
        assert_eq!(self.core.audit(), []);
        decisions
    }

    /// A gang of two of a priority that waits with its pods.
    fn wants(&mut self, name: &str) {
        self.apply(gang(name, 2, None));
        (0..2).for_each(|number| self.apply(pod(name, number, None)));
    }

    /// The gang `high` is gone, with its pods.
    fn high_ends(&mut self) {
        (0..2).for_each(|number| self.apply(Event::PodDeleted(format!("high-{number}"))));
        self.apply(Event::PodGroupDeleted(ObjectKey::new("ns", "high")));
    }

    /// The gang of low priority is asked to go for a gang `high`, and is stopped.
    fn suspend_low(&mut self) -> Intent {
        self.wants("high");
        let intent = intent_in(&self.session());
        self.apply(gang("low", 4, Some(leaving(&intent))));
        (0..4).for_each(|number| self.apply(Event::PodDeleted(format!("low-{number}"))));
        self.apply(gang("low", 4, Some(down(&intent, "low"))));
        intent
    }
}

fn intent_in(decisions: &[Decision]) -> Intent {
    match decisions {
        [Decision::Suspend { group, intent, .. }] if group.name == "low" => intent.clone(),
        other => panic!("no intent alone: {other:?}"),
    }
}

fn leaving(intent: &Intent) -> Suspension {
    Suspension { intent: Some(intent.clone()), ..Suspension::default() }
}

fn down(intent: &Intent, group: &str) -> Suspension {
    let record = SuspensionRecord {
        id: intent.id.clone(),
        by: intent.by.clone(),
        at_ms: intent.deadline.as_millisecond(),
        group: group.to_owned(),
        members: vec![(4, Arc::new(shape()))],
    };
    Suspension { record: Some(record), ..Suspension::default() }
}

fn gang(name: &str, pods: i32, suspension: Option<Suspension>) -> Event {
    Event::PodGroup(PodGroupObject {
        key: ObjectKey::new("ns", name),
        uid: name.to_owned(),
        priority_class: name.to_owned(),
        min_member: pods,
        status: PodGroupStatus { phase: PodGroupPhase::Inqueue, ..PodGroupStatus::default() },
        suspension: suspension.map(Box::new),
        ..PodGroupObject::default()
    })
}

fn shape() -> PodObject {
    PodObject {
        spec: Arc::new(PodSpec {
            namespace: "ns".to_owned(),
            requests: amounts(2_000, 1 << 30, 0, 1),
            ..PodSpec::default()
        }),
        preemptable: true,
        ..PodObject::default()
    }
}

fn pod(group: &str, number: usize, node: Option<&str>) -> Event {
    let uid = format!("{group}-{number}");
    Event::Pod(PodObject {
        key: ObjectKey::new("ns", uid.clone()),
        uid,
        ours: true,
        group: Some(group.to_owned()),
        phase: if node.is_some() { PodPhase::Running } else { PodPhase::Pending },
        node: node.map(str::to_owned),
        started_ms: node.map(|_| 30 * MINUTE_MS),
        ..shape()
    })
}

/// Pods that are bound, by name.
fn bound(decisions: &[Decision]) -> Vec<String> {
    let binds = decisions.iter().filter_map(|decision| match decision {
        Decision::Bind(bind) => Some(bind.binds.iter().map(|(pod, _)| pod.name.to_string())),
        _ => None,
    });
    binds.flatten().collect()
}

fn resumed(decisions: &[Decision]) -> Vec<&str> {
    let resumes = decisions.iter().filter_map(|decision| match decision {
        Decision::Resume { id, .. } => Some(id.as_str()),
        _ => None,
    });
    resumes.collect()
}

#[test]
fn a_gang_that_makes_room_is_asked_to_go_once_and_loses_no_pod_by_us() {
    let mut world = World::full(QueuePolicyObject {
        checkpoint: Some(CheckpointMode::Ack),
        grace_ms: Some(2 * MINUTE_MS),
        ..QueuePolicyObject::default()
    });
    world.wants("high");
    let intent = intent_in(&world.session());
    assert_eq!((intent.by.as_str(), intent.reason.as_str()), ("ns/high", "Preempt"));
    assert_eq!(intent.deadline.as_millisecond(), world.now_ms + 2 * MINUTE_MS);
    assert_eq!(intent.mode, Mode::Ack);
    assert_eq!(world.session(), []);
    world.apply(gang("low", 4, Some(leaving(&intent))));
    assert_eq!(world.session(), []);
}

#[test]
fn the_room_of_a_gang_that_goes_is_for_whom_it_goes_alone() {
    let mut world = World::full(QueuePolicyObject::default());
    world.suspend_low();
    world.wants("higher");
    // Both gangs fit; what is left is too little for the four.
    assert_eq!(bound(&world.session()), ["high-0", "high-1", "higher-0", "higher-1"]);
    let mut world = World::full(QueuePolicyObject::default());
    world.wants("high");
    let intent = intent_in(&world.session());
    world.apply(gang("low", 4, Some(leaving(&intent))));
    (0..3).for_each(|number| world.apply(Event::PodDeleted(format!("low-{number}"))));
    world.apply(gang("higher", 3, None));
    (0..3).for_each(|number| world.apply(pod("higher", number, None)));
    // Three places are free, and two of the four are promised.
    assert_eq!(bound(&world.session()), Vec::<String>::new());
}

#[test]
fn a_gang_that_is_down_comes_back_when_there_is_room_for_all_of_it() {
    let mut world = World::full(QueuePolicyObject::default());
    let intent = world.suspend_low();
    assert_eq!(bound(&world.session()), ["high-0", "high-1"]);
    (0..2).for_each(|number| world.apply(pod("high", number, Some("n1"))));
    assert_eq!(world.session(), []);
    world.high_ends();
    assert_eq!(resumed(&world.session()), [intent.id.as_str()]);
    assert_eq!(world.session(), []);
    // Its record is taken off, its pods come back one by one; in between somebody wants the room.
    world.apply(gang("low", 4, None));
    world.wants("high");
    (0..3).for_each(|number| world.apply(pod("low", number, None)));
    assert_eq!(bound(&world.session()), Vec::<String>::new());
    world.apply(pod("low", 3, None));
    assert_eq!(bound(&world.session()), ["low-0", "low-1", "low-2", "low-3"]);
}

#[test]
fn what_a_gang_did_since_its_last_checkpoint_is_lost_once_when_it_is_stopped_for_another_queue() {
    let mut world = World::full(QueuePolicyObject::default());
    world.wants("high");
    let mut intent = intent_in(&world.session());
    let stop = |world: &mut World, intent: &Intent| {
        let recorded = Suspension { record: down(intent, "low").record, ..leaving(intent) };
        world.apply(gang("low", 4, Some(leaving(intent))));
        (0..2).for_each(|_| world.apply(gang("low", 4, Some(recorded.clone()))));
        std::mem::take(&mut world.core.state.suspensions.lost)
    };
    assert_eq!(stop(&mut world, &intent), [], "its own queue has gained what it has lost");
    world.apply(Event::Queue(queue("other", "")));
    let Event::PodGroup(group) = gang("high", 2, None) else { unreachable!() };
    world.apply(Event::PodGroup(PodGroupObject { queue: "other".to_owned(), ..group }));
    "s-other".clone_into(&mut intent.id);
    let job = |name: &str| world.core.state.job_named("ns", name).expect("a gang");
    let (low, high) = (job("low"), job("high"));
    let queue_of = |job: JobId| world.core.state.jobs[job as usize].queue;
    let (queue, to) = (queue_of(low), queue_of(high));
    let lost = stop(&mut world, &intent);
    let [lost] = &lost[..] else { panic!("{lost:?}") };
    assert_eq!((lost.queue, lost.to), (queue, to));
    assert_eq!(
        lost.ms,
        world.core.state.now_ms - 30 * MINUTE_MS,
        "it has never written a checkpoint"
    );
    assert_eq!(lost.held, world.core.state.on_nodes(low));
}

#[test]
fn whoever_was_suspended_keeps_its_place_in_the_queue() {
    let mut world = World::empty(QueuePolicyObject::default());
    for (name, created_ms, queued_ms) in
        [("first", 10, None), ("back", 30, Some(5)), ("last", 20, None)]
    {
        let Event::PodGroup(group) = gang(name, 2, None) else { unreachable!() };
        world.apply(Event::PodGroup(PodGroupObject { created_ms, queued_ms, ..group }));
        (0..2).for_each(|number| world.apply(pod(name, number, None)));
    }
    assert_eq!(bound(&world.session()), ["back-0", "back-1", "first-0", "first-1"]);
}

#[test]
fn room_is_not_held_for_ever_for_pods_that_do_not_come() {
    let mut world = World::full(QueuePolicyObject::default());
    world.suspend_low();
    world.high_ends();
    assert_eq!(resumed(&world.session()).len(), 1);
    world.apply(gang("low", 4, None));
    world.wants("higher");
    assert_eq!(world.session(), []);
    world.now_ms += 5 * MINUTE_MS;
    assert_eq!(bound(&world.session()), ["higher-0", "higher-1"]);
}

#[test]
fn a_wish_is_withdrawn_when_nobody_has_it_any_more_and_the_gang_stays() {
    let mut world = World::full(QueuePolicyObject::default());
    world.wants("high");
    let intent = intent_in(&world.session());
    world.apply(gang("low", 4, Some(leaving(&intent))));
    world.high_ends();
    let decisions = world.session();
    assert!(matches!(&decisions[..], [Decision::Withdraw { group, .. }] if group.name == "low"));
    assert_eq!(world.session(), []);
    world.apply(gang("low", 4, None));
    world.session();
    // It runs as if nothing had been: the next one may ask again.
    world.wants("higher");
    assert_eq!(intent_in(&world.session()).by, "ns/higher");
}

#[test]
fn what_a_person_wishes_is_not_withdrawn_by_us() {
    let mut world = World::full(QueuePolicyObject::default());
    let deadline = jiff::Timestamp::from_second(0).expect("a time");
    let (id, by, reason) = ("m-1".to_owned(), String::new(), "Manual".to_owned());
    let intent = Intent { id, by, reason, deadline, mode: Mode::None };
    world.apply(gang("low", 4, Some(leaving(&intent))));
    assert_eq!(world.session(), []);
}

#[test]
fn a_wish_that_nobody_carries_out_is_withdrawn_and_not_repeated_at_once() {
    let mut world = World::full(QueuePolicyObject::default());
    world.wants("high");
    let intent = intent_in(&world.session());
    world.apply(gang("low", 4, Some(leaving(&intent))));
    world.now_ms += 2 * MINUTE_MS;
    let decisions = world.session();
    assert!(
        matches!(&decisions[..], [Decision::Notice(notice), Decision::Withdraw { .. }]
            if notice.reason == "SuspensionIgnored"),
        "{decisions:?}"
    );
    world.apply(gang("low", 4, None));
    assert_eq!(world.session(), []);
    world.now_ms += 30 * MINUTE_MS;
    intent_in(&world.session());
}

#[test]
fn a_scheduler_that_starts_goes_on_where_the_last_one_stopped() {
    let mut world = World::full(QueuePolicyObject::default());
    world.wants("high");
    let intent = intent_in(&world.session());
    // The next one sees the intent on the PodGroup, the nominations on the pods.
    let mut next = World::empty(QueuePolicyObject::default());
    next.apply(gang("low", 4, Some(leaving(&intent))));
    (0..4).for_each(|number| next.apply(pod("low", number, Some(["n1", "n2"][number % 2]))));
    next.apply(gang("high", 2, None));
    for number in 0..2 {
        let Event::Pod(mut waiting) = pod("high", number, None) else { unreachable!() };
        waiting.nominated = Some("n1".to_owned());
        next.apply(Event::Pod(waiting));
    }
    assert_eq!(next.session(), []);
    (0..4).for_each(|number| next.apply(Event::PodDeleted(format!("low-{number}"))));
    next.apply(gang("low", 4, Some(down(&intent, "low"))));
    assert_eq!(bound(&next.session()), ["high-0", "high-1"]);
    // One that starts while room is held for the gang holds it again, before anybody else is served.
    let mut third = World::empty(QueuePolicyObject::default());
    let resume = Some(intent.id.clone());
    third.apply(gang("low", 4, Some(Suspension { resume, ..down(&intent, "low") })));
    third.wants("higher");
    assert_eq!(third.session(), []);
    third.apply(gang("low", 4, None));
    (0..4).for_each(|number| third.apply(pod("low", number, None)));
    assert_eq!(bound(&third.session()), ["low-0", "low-1", "low-2", "low-3"]);
}

#[test]
fn pods_that_come_while_their_gang_is_down_wait() {
    let mut world = World::full(QueuePolicyObject::default());
    world.suspend_low();
    (4..8).for_each(|number| world.apply(pod("low", number, None)));
    world.high_ends();
    assert_eq!(bound(&world.session()), Vec::<String>::new());
}

#[test]
fn whom_a_person_keeps_down_does_not_come_back() {
    let mut world = World::full(QueuePolicyObject::default());
    let intent = world.suspend_low();
    let held = Suspension { hold: true, ..down(&intent, "low") };
    world.apply(gang("low", 4, Some(held)));
    world.high_ends();
    assert_eq!(world.session(), []);
    world.apply(gang("low", 4, Some(down(&intent, "low"))));
    assert_eq!(resumed(&world.session()), [intent.id.as_str()]);
}

#[test]
fn room_is_held_for_the_pods_of_the_group_that_another_stood_in_for() {
    let mut world = World::full(QueuePolicyObject::default());
    let intent = world.suspend_low();
    // The operator deletes the PodGroup of a suspended job.
    world.apply(Event::PodGroupDeleted(ObjectKey::new("ns", "low")));
    world.apply(gang("low-suspended", 4, Some(down(&intent, "low"))));
    world.high_ends();
    assert_eq!(resumed(&world.session()), [intent.id.as_str()]);
    world.apply(Event::PodGroupDeleted(ObjectKey::new("ns", "low-suspended")));
    world.apply(gang("low", 4, None));
    world.wants("higher");
    assert_eq!(world.session(), []);
    (0..4).for_each(|number| world.apply(pod("low", number, None)));
    assert_eq!(bound(&world.session()), ["low-0", "low-1", "low-2", "low-3"]);
}

#[test]
fn policies_say_who_goes_and_how() {
    let who_goes = |policy: QueuePolicyObject| {
        let mut world = World::full(policy);
        world.wants("high");
        let decisions = world.session();
        let evicted = decisions.iter().filter(|it| matches!(it, Decision::Evict { .. })).count();
        let asked = decisions.iter().filter(|it| matches!(it, Decision::Suspend { .. })).count();
        (asked, evicted)
    };
    let policy = QueuePolicyObject::default;
    assert_eq!(who_goes(policy()), (1, 0));
    let mode = |mode| QueuePolicyObject { mode: Some(mode), ..policy() };
    assert_eq!(who_goes(mode(PreemptionMode::Evict)), (0, 4));
    assert_eq!(who_goes(mode(PreemptionMode::Never)), (0, 0));
    // It has run for 30 minutes.
    let runtime = |ms| QueuePolicyObject { min_runtime_ms: Some(ms), ..policy() };
    assert_eq!(who_goes(runtime(30 * MINUTE_MS)), (1, 0));
    assert_eq!(who_goes(runtime(31 * MINUTE_MS)), (0, 0));
}

#[test]
fn whoever_had_to_go_for_a_gang_does_not_make_that_one_go_for_a_while() {
    let mut world = World::full(QueuePolicyObject::default());
    let intent = world.suspend_low();
    assert_eq!(bound(&world.session()), ["high-0", "high-1"]);
    (0..2).for_each(|number| world.apply(pod("high", number, Some("n1"))));
    // Somebody raises the priority of the gang that is down.
    let higher = PriorityClassObject { name: "low".into(), value: 50, global_default: false };
    world.apply(Event::PriorityClass(higher));
    world.apply(gang("low", 4, Some(down(&intent, "low"))));
    assert_eq!(world.session(), []);
    world.now_ms += 30 * MINUTE_MS;
    assert!(
        matches!(&world.session()[..], [Decision::Suspend { group, .. }] if group.name == "high")
    );
}
