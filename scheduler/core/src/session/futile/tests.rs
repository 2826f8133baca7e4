//! A core that remembers failed searches decides as one that repeats them all: random stories over many sessions, with the test in
//! the place of the API server, the kubelets and the suspension controller. And it searches less.

mod story;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;

use story::{Act, CONFIGURATIONS, World, act};

/// Plays a story with both cores. Gives how many searches each made, and how many decisions made somebody go.
fn play(acts: &[Act], configuration: &str) -> ([u32; 2], usize) {
    let mut world = World::new(configuration);
    acts.iter().for_each(|act| world.play(act));
    (world.searches, world.made_to_go)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn remembering_failed_searches_changes_no_decision(
        acts in vec(act(), 5..60),
        configuration in prop::sample::select(&CONFIGURATIONS[..]),
    ) {
        play(&acts, configuration);
    }
}

#[test]
fn the_random_stories_make_gangs_go_and_leave_searches_out() {
    let mut runner = TestRunner::deterministic();
    for configuration in CONFIGURATIONS {
        let (mut searches, mut made_to_go) = ([0; 2], 0);
        for _ in 0..60 {
            let acts = vec(act(), 40..60).new_tree(&mut runner).expect("a story").current();
            let (of_story, gone) = play(&acts, configuration);
            made_to_go += gone;
            searches.iter_mut().zip(of_story).for_each(|(sum, count)| *sum += count);
        }
        assert!(made_to_go > 50, "{made_to_go} in {configuration}");
        assert!(searches[0] * 3 < searches[1] * 2, "{searches:?} in {configuration}");
    }
}

/// A cluster that a gang of queue `q0` has for itself, and gangs of both queues that wait.
fn full(configuration: &str) -> World {
    let mut world = World::new(configuration);
    for act in [
        Act::Submit { queue: 0, class: 1, min: 6, surplus: 0, cpus: 3 },
        Act::Wait { seconds: 1 },
        Act::Wait { seconds: 1 },
        Act::Submit { queue: 0, class: 0, min: 2, surplus: 1, cpus: 2 },
        Act::Submit { queue: 1, class: 1, min: 2, surplus: 0, cpus: 4 },
    ] {
        world.play(&act);
    }
    world
}

#[test]
fn a_second_session_in_the_same_world_searches_for_nobody() {
    for configuration in CONFIGURATIONS {
        let mut world = full(configuration);
        (0..4).for_each(|_| world.play(&Act::Wait { seconds: 1 }));
        let before = world.searches;
        world.play(&Act::Wait { seconds: 1 });
        let [remembers, repeats] = [0, 1].map(|at| world.searches[at] - before[at]);
        assert!(repeats > 0, "nobody waits in {configuration}");
        assert_eq!(remembers, 0, "in {configuration}");
    }
}

#[test]
fn news_of_the_gang_itself_or_of_those_who_may_go_starts_the_search_anew() {
    for act in [
        Act::Submit { queue: 1, class: 2, min: 1, surplus: 0, cpus: 5 },
        Act::Reweigh { queue: 1, weight: 3 },
        Act::Relabel { gang: 0 },
        Act::Cordon { node: 0 },
    ] {
        let mut world = full(CONFIGURATIONS[0]);
        (0..4).for_each(|_| world.play(&Act::Wait { seconds: 1 }));
        let before = world.searches[0];
        world.play(&act);
        assert!(world.searches[0] > before, "{act:?}");
    }
}
