//! The tree of hypernodes: what selectors hold, how objects that contradict each other are told apart, and that the tree
//! does not depend on the order of events.

use proptest::prelude::*;

use super::*;
use crate::event::{
    Event, HyperNodeMember, LabelSelector, NetworkTopology, NodeObject, Operator, Requirement,
};
use crate::state::State;

fn node(name: &str, rack: &str) -> Event {
    let labels = vec![("rack".to_owned(), rack.to_owned())];
    Event::Node(NodeObject { name: name.to_owned(), labels, ..NodeObject::default() })
}

fn exact(is_hyper_node: bool, name: &str) -> HyperNodeMember {
    HyperNodeMember { is_hyper_node, selector: MemberSelector::Exact(name.to_owned()) }
}

fn selecting(selector: MemberSelector) -> HyperNodeMember {
    HyperNodeMember { is_hyper_node: false, selector }
}

fn pattern(pattern: &str) -> HyperNodeMember {
    selecting(MemberSelector::Regex(pattern.to_owned()))
}

fn hyper_node(name: &str, tier: i32, members: &[HyperNodeMember]) -> Event {
    let members = members.to_vec();
    Event::HyperNode(HyperNodeObject {
        name: name.to_owned(),
        tier,
        members,
        ..HyperNodeObject::default()
    })
}

fn state(events: impl IntoIterator<Item = Event>) -> State {
    let mut state = State::new("default");
    events.into_iter().for_each(|event| state.apply(event));
    state.hyper_nodes.refresh(&state.nodes);
    state
}

/// Names of the nodes of a hypernode; nothing for one that is not in the tree.
fn held(state: &State, name: &str) -> Vec<String> {
    let tree = state.hyper_nodes.tree();
    let nodes = tree.get(name).map_or(&[][..], |id| &tree[id].nodes);
    nodes.iter().map(|&node| state.nodes.identity[node as usize].name.to_string()).collect()
}

fn problems(state: &mut State) -> Vec<(String, String)> {
    let told = state.hyper_nodes.untold_problems();
    told.into_iter().map(|problem| (problem.name.to_string(), problem.message)).collect()
}

#[test]
fn selectors_hold_nodes_by_name_pattern_and_label_and_parents_hold_what_their_children_do() {
    let labelled = LabelSelector {
        requirements: vec![Requirement {
            key: "rack".to_owned(),
            operator: Operator::In,
            values: vec!["c".to_owned()],
        }],
    };
    let mut state = state([
        hyper_node("a", 1, &[exact(false, "a1"), exact(false, "missing")]),
        hyper_node("b", 1, &[pattern("^b[0-9]$")]),
        hyper_node("c", 1, &[selecting(MemberSelector::Labels(labelled))]),
        hyper_node("none", 1, &[selecting(MemberSelector::Labels(LabelSelector::default()))]),
        hyper_node("s", 2, &[exact(true, "a"), exact(true, "b"), exact(false, "x")]),
        node("a1", "z"),
        node("b1", "z"),
        node("b22", "z"),
        node("x", "c"),
    ]);
    assert_eq!(held(&state, "a"), ["a1"]);
    assert_eq!(held(&state, "b"), ["b1"]);
    assert_eq!(held(&state, "c"), ["x"]);
    assert!(held(&state, "none").is_empty());
    assert_eq!(held(&state, "s"), ["a1", "b1", "x"]);
    assert!(problems(&mut state).is_empty());
}

#[test]
fn nodes_that_come_go_and_change_their_labels_are_followed() {
    let labelled = LabelSelector {
        requirements: vec![Requirement {
            key: "rack".to_owned(),
            operator: Operator::In,
            values: vec!["a".to_owned()],
        }],
    };
    let mut state = state([
        node("n1", "a"),
        hyper_node("a", 1, &[selecting(MemberSelector::Labels(labelled)), exact(false, "n2")]),
    ]);
    assert_eq!(held(&state, "a"), ["n1"]);
    for (event, expected) in [
        (node("n2", "b"), vec!["n1", "n2"]),
        (node("n1", "b"), vec!["n2"]),
        (node("n1", "a"), vec!["n1", "n2"]),
        (Event::NodeDeleted("n2".to_owned()), vec!["n1"]),
        (node("n3", "a"), vec!["n1", "n3"]),
        (Event::HyperNodeDeleted("a".to_owned()), vec![]),
    ] {
        state.apply(event);
        state.hyper_nodes.refresh(&state.nodes);
        assert_eq!(held(&state, "a"), expected);
    }
}

#[test]
fn what_contradicts_lower_tiers_is_left_out_and_said_once() {
    let mut state = state([
        node("n1", "a"),
        hyper_node("a", 1, &[exact(false, "n1")]),
        hyper_node("s", 2, &[exact(true, "a"), exact(true, "later")]),
        hyper_node("thief", 3, &[exact(true, "a")]),
        hyper_node("self", 1, &[exact(true, "self")]),
        hyper_node("x", 4, &[exact(true, "y")]),
        hyper_node("y", 5, &[exact(true, "x"), exact(true, "s")]),
        hyper_node("bad", 1, &[pattern("(")]),
        hyper_node("huge", 1, &[pattern("(a{1000}){1000}")]),
        hyper_node("empty", 1, &[selecting(MemberSelector::None)]),
        hyper_node(
            "wild",
            2,
            &[HyperNodeMember {
                is_hyper_node: true,
                selector: MemberSelector::Regex(".*".to_owned()),
            }],
        ),
    ]);
    let mut told = problems(&mut state);
    told.sort();
    let names: Vec<&str> = told.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["bad", "empty", "huge", "self", "thief", "wild", "x"]);
    assert_eq!(told[3].1, "it names itself as a member");
    assert_eq!(told[4].1, "member a already belongs to s");
    assert_eq!(told[6].1, "member y is of tier 5, which is not below its own tier 4");
    assert_eq!(held(&state, "y"), ["n1"]);
    assert!(problems(&mut state).is_empty());
    // Once mended and broken again it is said again.
    state.apply(hyper_node("thief", 3, &[]));
    state.hyper_nodes.refresh(&state.nodes);
    assert!(problems(&mut state).is_empty());
    state.apply(hyper_node("thief", 3, &[exact(true, "a")]));
    state.hyper_nodes.refresh(&state.nodes);
    assert_eq!(problems(&mut state).len(), 1);
}

#[test]
fn the_lowest_common_hypernode_is_found_and_nodes_outside_say_nothing() {
    let state = state([
        node("n1", ""),
        node("n2", ""),
        node("n3", ""),
        node("n4", ""),
        hyper_node("a", 1, &[exact(false, "n1")]),
        hyper_node("b", 1, &[exact(false, "n2")]),
        hyper_node("c", 1, &[exact(false, "n3")]),
        hyper_node("s", 2, &[exact(true, "a"), exact(true, "b")]),
    ]);
    let tree = state.hyper_nodes.tree();
    let common = |names: &[&str]| {
        let nodes = names.iter().filter_map(|name| state.nodes.get(name));
        tree.common_of(nodes).map(|id| tree[id].name.to_string())
    };
    assert_eq!(common(&["n1"]).as_deref(), Some("a"));
    assert_eq!(common(&["n1", "n2", "n4"]).as_deref(), Some("s"));
    assert_eq!(common(&["n1", "n3"]).as_deref(), Some(ROOT_NAME));
    assert_eq!(common(&["n4"]), None);
    assert_eq!(tree[ROOT].tier, 3);
}

#[test]
fn wishes_become_limits() {
    let named = |name: &str| NetworkTopology {
        hard: true,
        highest_tier: None,
        highest_tier_name: name.to_owned(),
    };
    let empty = state([]);
    let some = state([Event::HyperNode(HyperNodeObject {
        name: "a".to_owned(),
        tier: i32::MAX,
        tier_name: "rack".to_owned(),
        ..HyperNodeObject::default()
    })]);
    let limit = |state: &State, wish: &NetworkTopology| state.hyper_nodes.tree().limit(Some(wish));
    let soft = NetworkTopology::default();
    assert_eq!(limit(&empty, &soft), Limit::Anywhere);
    assert_eq!(limit(&some, &soft), Limit::UpTo { tier: i32::MAX, soft: true });
    assert_eq!(limit(&some, &named("rack")), Limit::UpTo { tier: i32::MAX, soft: false });
    assert_eq!(limit(&some, &named("row")), Limit::Anywhere);
    assert_eq!(limit(&some, &named("")), Limit::Anywhere);
    let numbered = NetworkTopology { highest_tier: Some(0), ..named("rack") };
    assert_eq!(limit(&some, &numbered), Limit::UpTo { tier: 0, soft: false });
}

proptest! {
    #[test]
    fn the_tree_is_a_tree_whatever_the_objects_say_and_in_whatever_order(
        objects in prop::collection::vec((0_i32..4, prop::collection::vec((any::<bool>(), 0_usize..8), 0..4)), 8),
        order in Just((0..16_usize).collect::<Vec<_>>()).prop_shuffle(),
    ) {
        let mut events: Vec<Event> = (0..8).map(|n| node(&format!("x{n}"), "")).collect();
        for (at, (tier, members)) in objects.iter().enumerate() {
            let members: Vec<HyperNodeMember> =
                members.iter().map(|&(hyper, to)| exact(hyper, &format!("x{to}"))).collect();
            events.push(hyper_node(&format!("x{at}"), *tier, &members));
        }
        let sorted = state(events.iter().cloned());
        let shuffled = state(order.iter().map(|&at| events[at].clone()));
        let tree = sorted.hyper_nodes.tree();
        for id in tree.hyper_nodes() {
            prop_assert!(tree.ancestors(id).last() == Some(ROOT));
            prop_assert!(tree[tree[id].parent].children.contains(&id));
            for &child in &tree[id].children {
                prop_assert!(tree[child].tier < tree[id].tier);
                prop_assert!(tree[child].nodes.iter().all(|node| tree[id].nodes.contains(node)));
            }
            let name = tree[id].name.to_string();
            let mut here = held(&sorted, &name);
            let mut there = held(&shuffled, &name);
            here.sort();
            there.sort();
            prop_assert_eq!(here, there);
        }
        prop_assert_eq!(tree.len(), shuffled.hyper_nodes.tree().len());
        for node in sorted.nodes.known() {
            for &id in tree.containing(node) {
                prop_assert!(tree[id].nodes.contains(&node));
            }
            let count = tree.hyper_nodes().filter(|&id| tree[id].nodes.contains(&node)).count();
            prop_assert_eq!(tree.containing(node).len(), count);
        }
    }
}
