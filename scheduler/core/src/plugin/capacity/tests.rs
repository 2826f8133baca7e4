//! The rules of the plugin one by one, each in a world of its own.

use super::super::test_world::{World, amounts, queue};
use super::*;
use crate::event::{Event, QueueObject};
use tephra_api::conf::SchedulerConf;

fn flat() -> Capacity {
    Capacity::default()
}

fn tree(level: u32) -> Capacity {
    Capacity { tree: true, reclaim_level: level, ..Capacity::default() }
}

fn allows(world: &World, plugin: &Capacity, task: TaskId, count: u32) -> u32 {
    let row = &world.state.tasks[task];
    plugin.allocatable(&world.state, world.state.jobs[row.job as usize].queue, row.class, count)
}

fn limit(world: &World, plugin: &Capacity, task: TaskId) -> Option<String> {
    let row = &world.state.tasks[task];
    plugin.limit_reached(&world.state, world.state.jobs[row.job as usize].queue, row.class, 1)
}

fn may_take(world: &World, plugin: &Capacity, task: TaskId) -> bool {
    let row = &world.state.tasks[task];
    plugin.preemptive(&world.state, world.state.jobs[row.job as usize].queue, row.class)
}

fn reclaimed(world: &World, plugin: &Capacity, task: TaskId, from: &[TaskId]) -> Vec<TaskId> {
    world.victims(plugin, EvictFor::Reclaim, task, from).unwrap()
}

#[test]
fn a_queue_may_borrow_up_to_its_capability_and_not_a_pod_more() {
    let mut world = World::new("cpu=100 memory=100");
    world.capped("q", "", "cpu=10 gpu=0");
    world.running("r", "q", "cpu=7");
    let (cpu, gpu) = (world.waiting("a", "q", "cpu=1"), world.waiting("b", "q", "gpu=1"));
    let mut plugin = flat();
    world.open(&mut plugin);
    assert_eq!(allows(&world, &plugin, cpu, 5), 3);
    assert_eq!(allows(&world, &plugin, gpu, 1), 0);
    world.place(&mut plugin, cpu);
    assert_eq!(allows(&world, &plugin, cpu, 5), 2);
    world.evict(&mut plugin, cpu);
    assert_eq!(allows(&world, &plugin, cpu, 5), 3);
    assert_eq!(
        limit(&world, &plugin, gpu).unwrap(),
        "queue q is at its limit of gpu: 0 of 0 in use, 1 more asked for"
    );
}

#[test]
fn what_others_are_guaranteed_is_out_of_reach_unless_the_pods_of_a_broken_node_count_twice() {
    let mut world = World::new("cpu=10");
    world.queue(QueueObject { guarantee: Some(amounts("cpu=4")), ..queue("other", "") });
    world.queue(queue("q", ""));
    let pod = world.waiting("a", "q", "cpu=1");
    let mut plugin = flat();
    world.open(&mut plugin);
    assert_eq!(allows(&world, &plugin, pod, 20), 6);
    // The node loses a device: what runs on it still counts on both sides.
    world.running("r", "q", "cpu=5");
    world.node("n1", "cpu=3");
    world.node("n2", "cpu=5");
    world.open(&mut plugin);
    assert_eq!(allows(&world, &plugin, pod, 20), 1);
}

#[test]
fn the_number_of_pods_is_a_limit_only_where_a_capability_names_it() {
    for (tree_mode, capability, expected) in
        [(false, "cpu=50", 50), (false, "pods=2", 2), (true, "cpu=50", 50), (true, "pods=2", 2)]
    {
        let mut world = World::new("cpu=100");
        world.capped("q", "", capability);
        let pod = world.waiting("a", "q", "cpu=1");
        let mut plugin = Capacity { tree: tree_mode, ..Capacity::default() };
        world.open(&mut plugin);
        assert_eq!(allows(&world, &plugin, pod, 60), expected, "{tree_mode} {capability}");
    }
}

#[test]
fn every_queue_above_has_its_say_and_is_named() {
    let mut world = World::new("cpu=100");
    world.capped("P", "", "cpu=4");
    world.capped("c1", "P", "cpu=4");
    world.capped("c2", "P", "cpu=4");
    world.running("x", "c1", "cpu=3");
    let (one, two) = (world.waiting("a", "c2", "cpu=1"), world.waiting("b", "c2", "cpu=2"));
    let mut plugin = tree(0);
    world.open(&mut plugin);
    assert_eq!((allows(&world, &plugin, one, 3), allows(&world, &plugin, two, 3)), (1, 0));
    assert_eq!(
        limit(&world, &plugin, two).unwrap(),
        "queue P is at its limit of cpu: 3 of 4 in use, 2 more asked for"
    );
    let class = world.state.tasks[two].class;
    assert!(plugin.capped(&world.state, world.id("c2"), class, 1));
    // Flat, the parent is nobody.
    let mut plugin = flat();
    world.open(&mut plugin);
    assert_eq!(allows(&world, &plugin, two, 3), 2);
}

#[test]
fn a_child_may_reach_what_its_parent_may_less_what_its_siblings_are_guaranteed() {
    let mut world = World::new("cpu=100 gpu=8");
    world.capped("P", "", "cpu=10");
    world.queue(QueueObject { guarantee: Some(amounts("cpu=3")), ..queue("c1", "P") });
    world.queue(QueueObject { guarantee: Some(amounts("cpu=2")), ..queue("c2", "P") });
    world.queue(QueueObject {
        guarantee: Some(amounts("cpu=9")),
        capability: Some(amounts("cpu=1")),
        ..queue("c3", "P")
    });
    let mut plugin = tree(0);
    let pods = [("c1", "cpu=1"), ("c2", "cpu=1"), ("c3", "cpu=1"), ("c1", "gpu=1")]
        .map(|(queue, requests)| world.waiting(&format!("{queue}-{requests}"), queue, requests));
    world.open(&mut plugin);
    // 10 - 14 is nothing, plus the own guarantee; no capability lies above; gpu is nobody's business.
    assert_eq!(pods.map(|pod| allows(&world, &plugin, pod, 50)), [3, 2, 1, 50]);
}

#[test]
fn inner_and_misplaced_and_closed_queues_take_nobody_and_say_so_and_the_others_go_on() {
    let mut world = World::new("cpu=100");
    for (name, parent) in [("dept", ""), ("c1", "dept"), ("lost", "gone"), ("loop", "loop")] {
        world.queue(queue(name, parent));
    }
    world.queue(QueueObject { state: QueueState::Unknown, ..queue("odd", "") });
    let mut plugin = tree(0);
    let pods = ["dept", "lost", "loop", "odd", "c1"]
        .map(|queue| world.waiting(&format!("in-{queue}"), queue, "cpu=1"));
    world.open(&mut plugin);
    assert_eq!(pods.map(|pod| allows(&world, &plugin, pod, 1)), [0, 0, 0, 0, 1]);
    let texts = pods.map(|pod| limit(&world, &plugin, pod).unwrap_or_default());
    assert_eq!(
        texts,
        [
            "queue dept takes no jobs itself: other queues stand below it",
            "queue lost has no place in the tree of queues: its parent gone does not exist",
            "queue loop has no place in the tree of queues: its parents stand in a circle",
            "queue odd is not open",
            "",
        ]
    );
    for pod in &pods[..4] {
        let job = world.state.tasks[*pod].job;
        assert_eq!(plugin.job_enqueueable(&world.state, job).vote, Vote::Reject);
        assert!(!may_take(&world, &plugin, *pod));
    }
    let victim = pods[4];
    world.place(&mut plugin, victim);
    assert!(reclaimed(&world, &plugin, pods[1], &[victim]).is_empty());
}

#[test]
fn admission_asks_every_queue_up_to_the_root_and_remembers_what_it_admitted() {
    let mut world = World::new("cpu=100");
    world.capped("P", "", "cpu=4");
    world.capped("c1", "P", "cpu=3");
    world.queue(queue("c2", "P"));
    let jobs = [("a", "c1", "cpu=2"), ("b", "c1", "cpu=2"), ("c", "c2", "cpu=3"), ("d", "c2", "")]
        .map(|(name, queue, min)| world.group(name, queue, min));
    let mut plugin = tree(0);
    world.open(&mut plugin);
    assert_eq!(plugin.job_enqueueable(&world.state, jobs[0]).vote, Vote::Permit);
    assert_eq!(plugin.job_enqueueable(&world.state, jobs[2]).vote, Vote::Permit);
    plugin.job_enqueued(&world.state, jobs[0]);
    assert_eq!(
        plugin.job_enqueueable(&world.state, jobs[1]),
        Admission::limited("queue resource quota insufficient: insufficient cpu".to_owned())
    );
    assert_eq!(
        plugin.job_enqueueable(&world.state, jobs[2]),
        Admission::limited(
            "queue resource quota insufficient: insufficient cpu in queue P above it".to_owned()
        )
    );
    assert_eq!(plugin.job_enqueueable(&world.state, jobs[3]).vote, Vote::Permit);
}

#[test]
fn who_asks_for_what_its_queue_deserves_is_admitted_although_others_have_borrowed_it() {
    let mut world = World::new("cpu=8");
    world.capped("P", "", "cpu=8");
    world.deserving("c1", "P", "cpu=4");
    world.deserving("c2", "P", "cpu=4");
    let borrower = world.running("r", "c1", "cpu=8");
    let job = world.state.tasks[borrower].job;
    world.state.jobs[job as usize].group.as_mut().unwrap().min_resources =
        Some(world.state.dims.vector(&amounts("cpu=8")));
    world.state.touch_job(job);
    let (fair, greedy) = (world.group("a", "c2", "cpu=4"), world.group("b", "c2", "cpu=5"));
    let mut plugin = tree(0);
    world.open(&mut plugin);
    assert!(plugin.entitled(&world.state, fair) && !plugin.entitled(&world.state, greedy));
    assert_eq!(plugin.job_enqueueable(&world.state, fair).vote, Vote::Permit);
    assert_eq!(plugin.job_enqueueable(&world.state, greedy).vote, Vote::Reject);
    plugin.job_enqueued(&world.state, fair);
    assert!(!plugin.entitled(&world.state, fair), "it is promised already");
}

#[test]
fn a_queue_without_deserved_goes_after_those_below_their_share_and_before_those_above() {
    let mut world = World::new("cpu=100");
    world.deserving("above", "", "cpu=1");
    world.deserving("exactly", "", "cpu=2");
    world.deserving("below", "", "cpu=4");
    world.queue(queue("none", ""));
    world.queue(QueueObject { priority: 1, ..queue("urgent", "") });
    for queue in ["above", "exactly", "below", "none"] {
        world.running(queue, queue, "cpu=2");
    }
    let mut plugin = flat();
    world.open(&mut plugin);
    let order = world.in_order(&plugin, &["none", "above", "below", "exactly", "urgent"]);
    assert_eq!(order, ["urgent", "below", "exactly", "none", "above"]);
}

#[test]
fn leaves_compare_by_the_queues_below_their_common_ancestor_which_follow_at_once() {
    let mut world = World::new("cpu=100");
    for (name, parent, deserved) in
        [("A", "", "cpu=10"), ("B", "", "cpu=10"), ("a1", "A", "cpu=2"), ("a2", "A", "cpu=8")]
    {
        world.deserving(name, parent, deserved);
    }
    world.deserving("b1", "B", "cpu=1");
    world.running("x", "a1", "cpu=2");
    let pod = world.waiting("y", "b1", "cpu=3");
    let mut plugin = tree(0);
    world.open(&mut plugin);
    assert_eq!(world.in_order(&plugin, &["a1", "a2", "b1"]), ["b1", "a2", "a1"]);
    world.place(&mut plugin, pod);
    assert_eq!(world.in_order(&plugin, &["a1", "a2", "b1"]), ["a2", "a1", "b1"]);
}

#[test]
fn the_closest_relatives_give_first() {
    let mut world = World::new("cpu=8");
    for (name, parent) in [("A", ""), ("a1", "A"), ("a2", "A"), ("b", "")] {
        world.queue(queue(name, parent));
    }
    let mut plugin = tree(0);
    world.open(&mut plugin);
    let key = |victim: &str| {
        let mut key = OrderKey::default();
        plugin.victim_queue_order(&world.state, world.id("a1"), world.id(victim), &mut key);
        key
    };
    assert!(key("a2") < key("b"));
    assert!(plugin.hooks().contains(Hooks::VICTIM_QUEUE_ORDER));
    assert!(!flat().hooks().contains(Hooks::VICTIM_QUEUE_ORDER));
}

#[test]
fn a_queue_takes_back_only_what_it_deserves_in_some_dimension() {
    let mut world = World::new("cpu=8 memory=8 gpu=8");
    world.deserving("q", "", "cpu=2 gpu=1");
    world.queue(QueueObject {
        deserved: Some(amounts("cpu=4")),
        capability: Some(amounts("cpu=1")),
        ..queue("capped", "")
    });
    world.running("r", "q", "cpu=1");
    let pods = [
        ("q", "cpu=1"),
        ("q", "cpu=2"),
        ("q", "cpu=2 gpu=1"),
        ("q", "memory=1"),
        ("capped", "cpu=2"),
    ]
    .map(|(queue, requests)| world.waiting(&format!("{queue} {requests}"), queue, requests));
    let mut plugin = flat();
    world.open(&mut plugin);
    assert_eq!(
        pods.map(|pod| may_take(&world, &plugin, pod)),
        [true, false, true, false, false],
        "within, over, one dimension within, nothing deserved, over its capability"
    );
}

#[test]
fn ancestors_that_count_may_deserve_what_a_queue_does_not() {
    let mut world = World::new("cpu=8");
    world.deserving("P", "", "cpu=4");
    world.queue(queue("c", "P"));
    let pod = world.waiting("a", "c", "cpu=1");
    for (level, expected) in [(0, false), (1, true)] {
        let mut plugin = tree(level);
        world.open(&mut plugin);
        assert_eq!(may_take(&world, &plugin, pod), expected, "{level}");
    }
}

#[test]
fn a_queue_gives_until_it_has_what_it_deserves() {
    let mut world = World::new("cpu=8");
    world.deserving("rich", "", "cpu=2");
    world.deserving("poor", "", "cpu=6");
    let pods = ["a", "b", "c", "d"].map(|name| world.running(name, "rich", "cpu=1"));
    let taker = world.waiting("t", "poor", "cpu=4");
    let mut plugin = flat();
    world.open(&mut plugin);
    assert_eq!(reclaimed(&world, &plugin, taker, &pods), pods[..2]);
    assert_eq!(world.victims(&plugin, EvictFor::GangReclaim, taker, &pods).unwrap(), pods[..2]);
    assert_eq!(world.victims(&plugin, EvictFor::GangPreempt, taker, &pods).unwrap(), pods);
    assert_eq!(world.victims(&plugin, EvictFor::Preempt, taker, &pods), None);
}

#[test]
fn no_queue_and_no_queue_above_falls_below_its_guarantee() {
    let mut world = World::new("cpu=8");
    world.queue(QueueObject { guarantee: Some(amounts("cpu=3")), ..queue("P", "") });
    for (name, guarantee) in [("c1", "cpu=1"), ("c2", "cpu=0")] {
        world.queue(QueueObject { guarantee: Some(amounts(guarantee)), ..queue(name, "P") });
    }
    world.deserving("poor", "", "cpu=6");
    let pods = [("a", "c1"), ("b", "c1"), ("c", "c2"), ("d", "c2")]
        .map(|(name, queue)| world.running(name, queue, "cpu=1"));
    let taker = world.waiting("t", "poor", "cpu=4");
    let mut plugin = tree(0);
    world.open(&mut plugin);
    assert_eq!(reclaimed(&world, &plugin, taker, &pods), [pods[0]]);
    let mut plugin = flat();
    world.open(&mut plugin);
    assert_eq!(reclaimed(&world, &plugin, taker, &pods), [pods[0], pods[2], pods[3]]);
}

#[test]
fn what_a_queue_deserves_nothing_of_is_borrowed_and_what_is_useless_stays() {
    let mut world = World::new("cpu=8 memory=16 gpu=8");
    world.deserving("q", "", "cpu=2 memory=2");
    world.deserving("poor", "", "cpu=2 gpu=1");
    let memory = world.running("a", "q", "memory=4");
    let cpu = world.running("b", "q", "cpu=1");
    let gpu = world.running("c", "q", "gpu=1");
    let taker = world.waiting("t", "poor", "cpu=1 gpu=1");
    let mut plugin = flat();
    world.open(&mut plugin);
    assert_eq!(reclaimed(&world, &plugin, taker, &[memory, cpu, gpu]), [gpu]);
    let gang = world.victims(&plugin, EvictFor::GangReclaim, taker, &[memory, cpu, gpu]).unwrap();
    assert_eq!(gang, [memory, gpu]);
}

#[test]
fn a_queue_below_its_share_of_what_is_scarce_does_not_give_because_it_has_much_of_something_else() {
    let mut world = World::new("cpu=8 gpu=4");
    world.deserving("qa", "", "cpu=6 gpu=2");
    world.deserving("qb", "", "cpu=6 gpu=2");
    world.running("x", "qa", "cpu=1 gpu=3");
    let mixed = world.running("a", "qa", "cpu=1 gpu=1");
    let cpu = world.waiting("t", "qb", "cpu=1");
    let gpu = world.waiting("u", "qb", "gpu=1");
    let mut plugin = flat();
    world.open(&mut plugin);
    assert!(reclaimed(&world, &plugin, cpu, &[mixed]).is_empty());
    assert_eq!(reclaimed(&world, &plugin, gpu, &[mixed]), [mixed]);
    // Without a word about cpu the queue has borrowed all of it, and the gpus decide.
    world.deserving("qa", "", "gpu=2");
    world.open(&mut plugin);
    assert_eq!(reclaimed(&world, &plugin, cpu, &[mixed]), [mixed]);
}

/// Two branches of three levels; the pod of `b` is judged.
fn branches(level: u32, grand: &str, parent: &str) -> Vec<TaskId> {
    let mut world = World::new("cpu=2");
    for (name, above, deserved) in [
        ("grand-a", "", "cpu=2"),
        ("parent-a", "grand-a", "cpu=2"),
        ("a", "parent-a", "cpu=2"),
        ("grand-b", "", grand),
        ("parent-b", "grand-b", parent),
        ("b", "parent-b", "cpu=1"),
    ] {
        world.deserving(name, above, deserved);
    }
    let victim = world.running("v", "b", "cpu=2");
    let taker = world.waiting("t", "a", "cpu=2");
    let mut plugin = tree(level);
    world.open(&mut plugin);
    reclaimed(&world, &plugin, taker, &[victim])
}

#[test]
fn as_many_ancestors_as_configured_must_be_above_their_share_too() {
    assert_eq!(branches(0, "cpu=3", "cpu=1").len(), 1);
    assert_eq!(branches(1, "cpu=3", "cpu=1").len(), 1);
    assert_eq!(branches(2, "cpu=3", "cpu=1").len(), 0);
    assert_eq!(branches(1, "cpu=1", "cpu=2").len(), 0);
    assert_eq!(branches(9, "cpu=1", "cpu=1").len(), 1);
}

#[test]
fn siblings_that_deserve_nothing_themselves_do_not_take_from_each_other_what_is_the_familys() {
    let mut world = World::new("cpu=2");
    world.deserving("P", "", "cpu=4");
    world.queue(queue("a", "P"));
    world.queue(queue("b", "P"));
    world.deserving("c", "P", "cpu=1");
    let victim = world.running("v", "b", "cpu=1");
    let takers = ["a", "c"].map(|queue| world.waiting(&format!("t{queue}"), queue, "cpu=1"));
    for (level, expected) in [(0, [1, 1]), (1, [0, 1])] {
        let mut plugin = tree(level);
        world.open(&mut plugin);
        let counts = takers.map(|taker| reclaimed(&world, &plugin, taker, &[victim]).len());
        assert_eq!(counts, expected, "level {level}");
    }
}

#[test]
fn within_a_family_the_ancestors_above_both_are_not_asked_however_deep_each_stands() {
    let mut world = World::new("cpu=2");
    world.deserving("P", "", "cpu=4");
    world.deserving("deep", "P", "cpu=1");
    world.deserving("b", "deep", "cpu=1");
    world.deserving("a", "P", "cpu=2");
    let victim = world.running("v", "b", "cpu=2");
    let taker = world.waiting("t", "a", "cpu=2");
    let mut plugin = tree(2);
    world.open(&mut plugin);
    assert_eq!(reclaimed(&world, &plugin, taker, &[victim]), [victim]);
}

#[test]
fn quotas_of_device_classes_are_no_amounts_of_ordinary_resources() {
    let mut world = World::new("cpu=8");
    world.queue(QueueObject {
        deserved: Some(vec![("deviceclass/gpu.com".to_owned(), 4_000)]),
        ..queue("q", "")
    });
    let mut plugin = flat();
    world.open(&mut plugin);
    assert!(plugin.queues[world.id("q") as usize].deserved.is_empty());
}

#[test]
fn a_negative_reclaim_level_is_said_and_counts_as_none() {
    let mut plugin = flat();
    let mut warnings = Vec::new();
    let arguments = |level: i64| {
        let plugin = format!("{{name: capacity, arguments: {{ancestorReclaimLevel: {level}}}}}");
        let text = format!("actions: allocate\ntiers: [{{plugins: [{plugin}]}}]");
        let conf = SchedulerConf::parse(&text, crate::registry::action_names()).unwrap();
        conf.tiers[0].plugins[0].arguments.clone()
    };
    plugin.configure(&arguments(-1), &mut warnings);
    assert_eq!(plugin.reclaim_level, 0);
    assert_eq!(warnings, ["ancestorReclaimLevel -1 is out of range: 0 is used"]);
    plugin.configure(&arguments(2), &mut warnings);
    assert_eq!((plugin.reclaim_level, warnings.len()), (2, 1));
}

#[test]
fn sums_of_ancestors_follow_every_placement_and_equal_a_fresh_derivation() {
    let mut world = World::new("cpu=100");
    for (name, parent) in [("A", ""), ("a1", "A"), ("a2", "A"), ("b", "")] {
        world.deserving(name, parent, "cpu=3");
    }
    let pods = [("p", "a1"), ("q", "a2"), ("r", "b")]
        .map(|(name, queue)| world.waiting(name, queue, "cpu=2"));
    let mut plugin = tree(0);
    world.open(&mut plugin);
    for pod in pods {
        world.place(&mut plugin, pod);
    }
    world.evict(&mut plugin, pods[1]);
    let mut fresh = tree(0);
    world.open(&mut fresh);
    for queue in ["root", "A", "a1", "a2", "b"] {
        let at = world.id(queue) as usize;
        assert!(plugin.sums[at].allocated.same(&fresh.sums[at].allocated), "{queue}");
        assert_eq!(plugin.queues[at].share, fresh.queues[at].share, "{queue}");
    }
    // The tree changes between sessions.
    world.state.apply(Event::QueueDeleted("a1".to_owned()));
    world.open(&mut plugin);
    assert_eq!(plugin.sums[world.id("A") as usize].allocated.get(0), 0);
}

/// Whoever used the room of a victim before it is known to leave would bring the queue above its limit if it stayed (I4).
#[test]
fn the_quota_of_a_victim_is_free_only_when_it_is_known_to_leave() {
    let mut world = World::new("cpu=8");
    world.capped("q", "", "cpu=2");
    let victim = world.running("old", "q", "cpu=2");
    let pod = world.waiting("new", "q", "cpu=1");
    let mut plugin = flat();
    world.open(&mut plugin);
    world.evict(&mut plugin, victim);
    let preemptor = world.state.tasks[pod].job;
    world.state.tasks[victim].evicted_for = Some(preemptor);
    world.state.derive_leaving();
    assert_eq!(allows(&world, &plugin, pod, 3), 0);
    let uid = world.state.tasks[victim].pod.uid.to_string();
    world.state.apply(Event::PodDeleted(uid));
    world.state.derive_leaving();
    assert_eq!(allows(&world, &plugin, pod, 3), 2);
}
