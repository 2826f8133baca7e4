//! The plugin against a small state: orders, limits, victims, weights, what is stored.

use super::record::Record;
use super::turns::{Flow, WEIGHT_ONE, WHOLE};
use super::*;
use crate::event::{Event, QueueObject, QueuePolicyObject};
use crate::plugin::test_world::{World, amounts, queue};
use crate::state::suspensions::Lost;
use crate::state::tasks::TaskId;

/// A cluster of 10 cores on which nothing was charged ahead.
struct Cluster {
    world: World,
    plugin: Wfq,
}

impl Cluster {
    fn new() -> Self {
        let world = World::new("cpu=10 memory=10");
        Self { world, plugin: Wfq { entry_ms: 0, ..Wfq::default() } }
    }

    fn policy(&mut self, policy: QueuePolicyObject) {
        self.world.state.apply(Event::QueuePolicy(policy));
    }

    fn open(&mut self, seconds: i64) {
        self.world.state.now_ms = seconds * 1000;
        self.world.open(&mut self.plugin);
    }

    fn order(&self, queues: &[&str]) -> String {
        self.world.in_order(&self.plugin, queues).join(" ")
    }

    fn weight(&self, name: &str) -> f64 {
        self.plugin.turns.flows[self.world.id(name) as usize].weight as f64 / WEIGHT_ONE as f64
    }

    /// Seconds of the whole cluster by weight, rounded: shares are.
    fn tag(&self, name: &str) -> i128 {
        let tag = self.plugin.turns.flows[self.world.id(name) as usize].tag();
        (tag + 500 * WHOLE) / (1000 * WHOLE)
    }

    fn end(&mut self, task: TaskId) {
        let uid = self.world.state.tasks[task].pod.uid.to_string();
        self.world.state.apply(Event::PodDeleted(uid));
    }
}

#[test]
fn who_had_less_by_weight_so_far_goes_first_at_each_level() {
    let mut cluster = Cluster::new();
    let tree = [("A", "", 3), ("a1", "A", 1), ("a2", "A", 1), ("B", "", 1), ("b1", "B", 1)];
    for (name, parent, weight) in tree {
        cluster.world.queue(QueueObject { weight, ..queue(name, parent) });
    }
    let jobs = [("j1", "a1", "cpu=5"), ("j2", "a2", "cpu=1"), ("j3", "b1", "cpu=3")];
    let pods = jobs.map(|(job, name, cpu)| cluster.world.running(job, name, cpu));
    cluster.open(0);
    cluster.open(100);
    // A had 60 seconds of the cluster, by weight 20; B had 30.
    assert_eq!(["A", "a1", "a2", "B", "b1"].map(|name| cluster.tag(name)), [20, 50, 10, 30, 30]);
    assert_eq!(cluster.order(&["b1", "a1", "a2"]), "a2 a1 b1");
    pods.into_iter().for_each(|pod| cluster.end(pod));
    cluster.open(200);
    cluster.open(300);
    assert_eq!(cluster.order(&["b1", "a1", "a2"]), "a2 a1 b1", "what is over counts on");
}

#[test]
fn a_higher_queue_priority_stands_above_all_tags() {
    let mut cluster = Cluster::new();
    cluster.world.queue(queue("a", ""));
    cluster.world.queue(QueueObject { priority: 1, ..queue("b", "") });
    cluster.world.running("j", "b", "cpu=8");
    cluster.open(0);
    cluster.open(100);
    assert_eq!(cluster.order(&["a", "b"]), "b a");
}

#[test]
fn starting_costs_a_minute_ahead_and_a_start_that_is_taken_back_costs_nothing() {
    let mut cluster = Cluster::new();
    cluster.plugin = Wfq::default();
    cluster.world.queue(queue("a", ""));
    cluster.world.queue(queue("b", ""));
    let pod = cluster.world.waiting("j", "a", "cpu=5");
    cluster.open(0);
    cluster.world.place(&mut cluster.plugin, pod);
    assert_eq!((cluster.tag("a"), cluster.order(&["a", "b"]).as_str()), (30, "b a"));
    cluster.world.evict(&mut cluster.plugin, pod);
    assert_eq!(cluster.tag("a"), 0);
}

#[test]
fn waiting_makes_up_for_priority_where_the_policy_says_so() {
    let mut cluster = Cluster::new();
    cluster.world.queue(queue("aged", ""));
    cluster.world.queue(queue("strict", ""));
    let name = "aged".to_owned();
    let wait_priority_ms = Some(60_000);
    cluster.policy(QueuePolicyObject { name, wait_priority_ms, ..QueuePolicyObject::default() });
    cluster.world.state.refresh_queue_tree();
    cluster.world.state.refresh_queue_policies();
    let mut key = |name: &str, queue: &str, created_s: i64, priority: i32| {
        let job = cluster.world.group(name, queue, "");
        let row = &mut cluster.world.state.jobs[job as usize];
        row.priority = priority;
        row.group.as_mut().unwrap().queued_ms = created_s * 1000;
        let mut key = OrderKey::default();
        cluster.plugin.job_order(&cluster.world.state, job, &mut key);
        key
    };
    let [old, urgent, late] = [("old", 0, 0), ("urgent", 59, 1), ("late", 61, 1)]
        .map(|(name, at, p)| key(name, "aged", at, p));
    assert!(urgent < old && old < late);
    assert_eq!(key("s1", "strict", 0, 0), key("s2", "strict", 61, 9), "others decide");
}

#[test]
fn a_queue_too_far_ahead_of_siblings_that_wait_must_wait_for_them() {
    let mut cluster = Cluster::new();
    cluster.world.queue(queue("a", ""));
    cluster.world.queue(queue("b", ""));
    let (name, burst_ms) = ("a".to_owned(), Some(60_000));
    cluster.policy(QueuePolicyObject { name, burst_ms, ..QueuePolicyObject::default() });
    cluster.world.state.refresh_queue_tree();
    cluster.world.state.refresh_queue_policies();
    cluster.world.running("j", "a", "cpu=10");
    cluster.open(0);
    let overused = |cluster: &Cluster, name: &str| {
        cluster.plugin.overused(&cluster.world.state, cluster.world.id(name))
    };
    cluster.open(61);
    assert!(!overused(&cluster, "a"), "nobody waits");
    cluster.world.waiting("k", "b", "cpu=10");
    cluster.open(61);
    assert!(overused(&cluster, "a") && !overused(&cluster, "b"));
    // Nobody waited before, so the virtual time, from which the other starts, is still 0.
    assert_eq!((cluster.tag("a"), cluster.tag("b")), (61, 0));
}

#[test]
fn the_victim_furthest_ahead_of_the_one_in_need_gives_first() {
    let mut cluster = Cluster::new();
    for (name, parent) in [("A", ""), ("a1", "A"), ("a2", "A"), ("b", ""), ("c", "")] {
        cluster.world.queue(queue(name, parent));
    }
    for (job, name, cpu) in [("j1", "a1", "cpu=2"), ("j2", "a2", "cpu=1"), ("j3", "b", "cpu=4")] {
        cluster.world.running(job, name, cpu);
    }
    cluster.open(0);
    cluster.open(100);
    let key = |preemptor: &str, victim: &str| {
        let mut key = OrderKey::default();
        let [preemptor, victim] = [preemptor, victim].map(|name| cluster.world.id(name));
        cluster.plugin.victim_queue_order(&cluster.world.state, preemptor, victim, &mut key);
        key
    };
    assert!(key("c", "b") < key("c", "a1") && key("c", "a1") < key("c", "a2"));
}

#[test]
fn work_that_was_lost_for_another_queue_is_given_back_below_where_the_queues_part_and_half_an_hour_of_it_at_most()
 {
    let mut cluster = Cluster::new();
    for (name, parent) in [("A", ""), ("a1", "A"), ("a2", "A"), ("b", "")] {
        cluster.world.queue(queue(name, parent));
    }
    let pods = [("j1", "a1", "cpu=2"), ("j2", "b", "cpu=1")]
        .map(|(job, name, cpu)| cluster.world.running(job, name, cpu));
    cluster.open(0);
    cluster.open(3600);
    let tags = |cluster: &Cluster| ["A", "a1", "a2", "b"].map(|name| cluster.tag(name));
    assert_eq!(tags(&cluster), [720, 720, 0, 360]);
    let mut lose = |from: &str, to: &str, minutes: i64| {
        let (queue, to) = (cluster.world.id(from), cluster.world.id(to));
        let held = cluster.world.state.on_nodes(cluster.world.state.tasks[pods[0]].job);
        cluster.world.state.suspensions.lost = vec![Lost { queue, to, held, ms: minutes * 60_000 }];
        cluster.open(3600);
        tags(&cluster)
    };
    assert_eq!(lose("a1", "a2", 10), [720, 600, 0, 360], "A had the work done in vain itself");
    assert_eq!(lose("a1", "b", 10), [600, 480, 0, 360]);
    assert_eq!(lose("b", "a1", 60), [600, 480, 0, 0]);
}

#[test]
fn a_queue_weighs_what_it_deserves_and_those_that_name_nothing_divide_the_rest() {
    let mut cluster = Cluster::new();
    cluster.world.deserving("half", "", "cpu=5 memory=1");
    cluster.world.deserving("tenth", "", "cpu=1");
    cluster.world.queue(QueueObject { weight: 3, ..queue("three", "") });
    cluster.world.queue(queue("one", ""));
    cluster.world.queue(QueueObject { weight: 7, ..queue("alone", "half") });
    let deserved = Some(amounts("cpu=9"));
    cluster.world.queue(QueueObject { deserved, weight: 1, ..queue("plain", "tenth") });
    let (name, weight_from_deserved) = ("plain".to_owned(), Some(false));
    cluster.policy(QueuePolicyObject {
        name,
        weight_from_deserved,
        ..QueuePolicyObject::default()
    });
    cluster.world.state.refresh_queue_tree();
    cluster.world.state.refresh_queue_policies();
    cluster.open(0);
    let weights =
        ["half", "tenth", "three", "one", "alone", "plain"].map(|name| cluster.weight(name));
    for (weight, expected) in weights.into_iter().zip([0.5, 0.1, 0.3, 0.1, 7.0, 1.0]) {
        assert!((weight - expected).abs() < 1e-6, "{weights:?}");
    }
}

#[test]
fn what_is_written_is_read_again_and_charged_for_what_ran_on() {
    let flow = Flow { service: 5, prepaid: 7, backlogged: true, ..Flow::default() };
    let record = Record::of(&flow, 3, 1000);
    assert_eq!(Record::read(&record.text()), Ok(record.clone()));
    let mut restored = Flow { rate: WHOLE, ..Flow::default() };
    record.restore(&mut restored, 2000);
    assert_eq!((restored.tag(), restored.backlogged), (5 + WHOLE * 1000, true));
    // Longer than a day nothing is charged, and a clock that goes back charges nothing.
    for (now_ms, days) in [(i64::MAX, 1), (i64::MIN, 0)] {
        let mut restored = Flow { rate: WHOLE, ..Flow::default() };
        record.restore(&mut restored, now_ms);
        assert_eq!(restored.service, 5 + WHOLE * 86_400_000 * days);
    }
}

#[test]
fn what_cannot_be_read_is_ignored_with_a_warning_and_harms_nobody() {
    let good = Record::of(&Flow::default(), 0, 0).text();
    let bad = [
        ("{", "EOF"),
        ("[]", "its version is not 1"),
        (&good.replace(":1,", ":2,"), "its version is not 1"),
        (&good.replace(r#""service":"0""#, r#""service":0"#), "service is no number"),
        (&good.replace(r#""prepaid":"0""#, r#""prepaid":"-1""#), "prepaid is no number"),
        (
            &good.replace(r#""virtualTime":"0""#, &format!(r#""virtualTime":"{}""#, i128::MAX)),
            "virtualTime is no number",
        ),
        (&good.replace(r#""at":0"#, r#""at":"now""#), "at is missing"),
    ];
    for (text, words) in bad {
        let mut cluster = Cluster::new();
        let annotations = vec![(tephra_api::keys::FAIRNESS.to_owned(), text.to_owned())];
        cluster.world.queue(QueueObject { annotations, ..queue("a", "") });
        cluster.open(0);
        let told = cluster.plugin.queue_words(&cluster.world.state);
        let [(queue, QueueWord::Warning(message))] = &told[..] else { panic!("{text}: {told:?}") };
        assert_eq!(*queue, cluster.world.id("a"));
        assert!(message.contains(words), "{message}");
        cluster.open(1);
        assert_eq!(cluster.plugin.queue_words(&cluster.world.state), [], "told once");
    }
}

#[test]
fn arguments_are_durations_of_at_most_a_day() {
    let mut plugin = Wfq::default();
    let mut warnings = Vec::new();
    let arguments = [(ENTRY_CHARGE, "2m"), (STORE_INTERVAL, "25h")];
    let arguments = arguments.map(|(key, text)| (key.to_owned(), text.into()));
    plugin.configure(&Arguments::new(arguments), &mut warnings);
    assert_eq!((plugin.entry_ms, plugin.store_ms), (120_000, 5_000));
    assert_eq!(
        warnings,
        ["argument wfq.store-interval must be a duration from 0s to 24h, not \"25h\": ignored"]
    );
}
