//! Shares between jobs, and the weighted tree.

use super::super::test_world::{World, queue};
use super::*;
use crate::event::QueueObject;

/// A queue with its place in the weighted tree.
fn placed(name: &str, path: &str, weights: &str) -> QueueObject {
    let annotations =
        [(tephra_api::keys::HIERARCHY, path), (tephra_api::keys::HIERARCHY_WEIGHTS, weights)];
    let annotations = annotations.map(|(key, text)| (key.to_owned(), text.to_owned())).to_vec();
    QueueObject { annotations, ..queue(name, "") }
}

fn hierarchical() -> Drf {
    let mut plugin = Drf::default();
    plugin.enable_hierarchy();
    plugin
}

#[test]
fn a_job_takes_the_place_of_pods_whose_job_keeps_at_least_its_share() {
    let mut world = World::new("cpu=10");
    world.queue(queue("q", ""));
    let rich = world.running("rich", "q", "cpu=3");
    let also = world.pod("rich", "cpu=3", Some("n1"));
    let poor = world.running("poor", "q", "cpu=1");
    let taker = world.waiting("t", "q", "cpu=3");
    let mut plugin = Drf::default();
    world.open(&mut plugin);
    let victims =
        |candidates: &[TaskId]| world.victims(&plugin, EvictFor::Preempt, taker, candidates);
    // 0.3 against 0.3 that is left after the first pod and 0 after the second one.
    assert_eq!(victims(&[rich, also, poor]).unwrap(), [rich]);
    assert!(victims(&[poor]).unwrap().is_empty());
    assert_eq!(world.victims(&plugin, EvictFor::Reclaim, taker, &[rich]), None);
}

#[test]
fn without_the_switch_queues_have_no_order_and_reclaim_is_not_its_business() {
    let hooks = Drf::default().hooks();
    assert_eq!(hooks, Hooks::JOB_ORDER | Hooks::PREEMPTABLE);
    assert!(hierarchical().hooks().contains(Hooks::QUEUE_ORDER | Hooks::RECLAIMABLE));
}

#[test]
fn the_smaller_share_by_weight_goes_first_at_the_first_level_that_differs() {
    let mut world = World::new("cpu=10");
    world.queue(placed("sci", "root/sci", "100/75"));
    world.queue(placed("dev", "root/eng/dev", "100/25/2"));
    world.queue(placed("prod", "root/eng/prod", "100/25/1"));
    for (group, queue, count) in [("s", "sci", 3), ("d", "dev", 1), ("p", "prod", 1)] {
        for _ in 0..count {
            world.running(group, queue, "cpu=1");
        }
        world.pod(group, "cpu=1", None);
    }
    let mut plugin = hierarchical();
    world.open(&mut plugin);
    // sci 0.3 / 75 = 0.004, eng 0.2 / 25 = 0.008; below eng 0.1 / 2 before 0.1 / 1.
    assert_eq!(world.in_order(&plugin, &["prod", "dev", "sci"]), ["sci", "dev", "prod"]);
}

#[test]
fn who_wants_nothing_more_goes_last_and_counts_in_full() {
    let mut world = World::new("cpu=10");
    world.queue(placed("done", "root/done", "1/1"));
    world.queue(placed("waits", "root/waits", "1/1"));
    world.running("d", "done", "cpu=1");
    for _ in 0..3 {
        world.running("w", "waits", "cpu=1");
    }
    world.pod("w", "cpu=1", None);
    let mut plugin = hierarchical();
    world.open(&mut plugin);
    assert_eq!(world.in_order(&plugin, &["done", "waits"]), ["waits", "done"]);
}

#[test]
fn a_child_that_takes_what_its_sibling_has_no_use_for_does_not_push_it_back() {
    let mut world = World::new("cpu=10 memory=10");
    world.queue(placed("cpus", "root/eng/cpus", "1/1/1"));
    world.queue(placed("mems", "root/eng/mems", "1/1/1"));
    world.queue(placed("sci", "root/sci", "1/1"));
    for _ in 0..6 {
        world.running("c", "cpus", "cpu=1");
    }
    world.pod("c", "cpu=1", None);
    world.running("m", "mems", "memory=1");
    world.pod("m", "memory=1", None);
    for _ in 0..2 {
        world.running("s", "sci", "cpu=1 memory=1");
    }
    world.pod("s", "cpu=1 memory=1", None);
    let mut plugin = hierarchical();
    world.open(&mut plugin);
    // cpus counts as 0.1 like mems: eng has 0.1, sci 0.2.
    assert_eq!(world.in_order(&plugin, &["sci", "cpus", "mems"]), ["mems", "cpus", "sci"]);
}

#[test]
fn what_is_wrong_with_annotations_counts_as_weight_one_and_queues_without_jobs_stand_last() {
    let mut world = World::new("cpu=10");
    world.queue(placed("short", "root/a/b/c", "1/2"));
    world.queue(placed("odd", "root/d", "x/-3"));
    world.queue(placed("empty", "root/e", "1/5"));
    world.queue(queue("plain", ""));
    for (group, queue) in [("s", "short"), ("o", "odd"), ("p", "plain")] {
        world.running(group, queue, "cpu=1");
        world.pod(group, "cpu=1", None);
    }
    let mut plugin = hierarchical();
    world.open(&mut plugin);
    assert_eq!(world.in_order(&plugin, &["empty", "odd", "short"]), ["short", "odd", "empty"]);
    assert_eq!(plugin.hierarchy.as_ref().unwrap().standing(world.id("plain")).count(), 0);
}

#[test]
fn figures_that_follow_placements_equal_those_derived_anew() {
    let mut world = World::new("cpu=4");
    world.queue(placed("a", "root/x/a", "1/2/3"));
    world.queue(placed("b", "root/x/b", "1/2/1"));
    world.queue(placed("c", "root/y", "1/1"));
    let pods: Vec<TaskId> = ["a", "b", "c", "a", "c"]
        .iter()
        .enumerate()
        .map(|(at, queue)| {
            let group = format!("g{at}");
            let pod = world.waiting(&group, queue, "cpu=1");
            world.pod(&group, "cpu=1", None);
            pod
        })
        .collect();
    let mut plugin = hierarchical();
    world.open(&mut plugin);
    let standings = |plugin: &Drf, world: &World| {
        let tree = plugin.hierarchy.as_ref().unwrap();
        ["a", "b", "c"].map(|queue| tree.standing(world.id(queue)).collect::<Vec<_>>())
    };
    for (at, &pod) in pods.iter().enumerate() {
        // The fourth one takes the last cpu: everybody is saturated from then on, until one leaves.
        world.place(&mut plugin, pod);
        let mut fresh = hierarchical();
        world.open(&mut fresh);
        assert_eq!(standings(&plugin, &world), standings(&fresh, &world), "after {at}");
    }
    world.evict(&mut plugin, pods[0]);
    world.evict(&mut plugin, pods[1]);
    let mut fresh = hierarchical();
    fresh.open(&world.state);
    let saturated = |plugin: &Drf| standings(plugin, &world).map(|levels| levels[0].0);
    assert_eq!(saturated(&plugin), saturated(&fresh));
}

#[test]
fn a_queue_gives_while_it_would_still_stand_behind_and_each_candidate_is_judged_alone() {
    let mut world = World::new("cpu=10");
    world.queue(placed("rich", "root/rich", "1/1"));
    world.queue(placed("poor", "root/poor", "1/1"));
    let pods: Vec<TaskId> = (0..8).map(|_| world.running("r", "rich", "cpu=1")).collect();
    world.pod("r", "cpu=1", None);
    let taker = world.waiting("t", "poor", "cpu=2");
    world.pod("t", "cpu=5", None);
    let mut plugin = hierarchical();
    world.open(&mut plugin);
    let victims = world.victims(&plugin, EvictFor::Reclaim, taker, &pods).unwrap();
    assert_eq!(victims, pods);
    // The other way round the taking queue would stand behind.
    let back = world.pod("r", "cpu=1", None);
    let poor = world.running("p", "poor", "cpu=1");
    world.pod("p", "cpu=1", None);
    world.open(&mut plugin);
    assert!(world.victims(&plugin, EvictFor::Reclaim, back, &[poor]).unwrap().is_empty());
}
