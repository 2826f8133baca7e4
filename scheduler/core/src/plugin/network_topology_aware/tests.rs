//! In which hypernodes a gang may go, and in which order.

use super::*;
use crate::event::{Event, HyperNodeMember, HyperNodeObject, MemberSelector, NodeObject};
use crate::state::hyper_nodes::ROOT;

/// Racks a, b below spine s, rack c below spine t, each rack with one node of the same name.
fn state() -> State {
    let mut state = State::new("default");
    let mut hyper_node = |name: &str, tier: i32, members: &[(bool, &str)]| {
        let member = |&(is_hyper_node, name): &(bool, &str)| HyperNodeMember {
            is_hyper_node,
            selector: MemberSelector::Exact(name.to_owned()),
        };
        let members = members.iter().map(member).collect();
        let name = name.to_owned();
        let object = HyperNodeObject { name, tier, members, ..HyperNodeObject::default() };
        state.apply(Event::HyperNode(object));
    };
    for rack in ["a", "b", "c"] {
        hyper_node(rack, 1, &[(false, rack)]);
    }
    hyper_node("s", 2, &[(true, "a"), (true, "b")]);
    hyper_node("t", 2, &[(true, "c")]);
    for node in ["a", "b", "c"] {
        let cpu = if node == "b" { 4_000 } else { 8_000 };
        state.apply(Event::Node(NodeObject {
            name: node.to_owned(),
            allocatable: vec![("cpu".to_owned(), cpu)],
            ..NodeObject::default()
        }));
    }
    state.hyper_nodes.refresh(&state.nodes);
    state
}

fn groups(state: &State, limit: Limit, within: &str, allocated: Option<&str>) -> Vec<Vec<String>> {
    let tree = state.hyper_nodes.tree();
    let id = |name: &str| if name.is_empty() { ROOT } else { tree.get(name).unwrap() };
    let search = DomainSearch { limit, within: id(within), allocated: allocated.map(id) };
    let names = |group: Vec<DomainId>| {
        group.into_iter().map(|id| tree[id].name.to_string()).collect::<Vec<_>>()
    };
    gradient(tree, &search).into_iter().map(names).collect()
}

fn up_to(tier: i32) -> Limit {
    Limit::UpTo { tier, soft: false }
}

const TOP: &str = crate::state::hyper_nodes::ROOT_NAME;

#[test]
fn a_fresh_gang_may_go_where_its_tier_allows_lowest_first() {
    let state = state();
    assert_eq!(groups(&state, Limit::Anywhere, "s", None), [vec!["s"]]);
    assert_eq!(groups(&state, up_to(1), "", None), [vec!["a", "b", "c"]]);
    let all = [vec!["a", "b", "c"], vec!["s", "t"], vec![TOP]];
    assert_eq!(groups(&state, up_to(3), "", None), all);
    assert_eq!(groups(&state, up_to(2), "s", None), [vec!["a", "b"], vec!["s"]]);
    assert!(groups(&state, up_to(0), "", None).is_empty());
}

#[test]
fn a_gang_that_runs_in_part_stays_as_close_as_can_be() {
    let state = state();
    assert_eq!(groups(&state, up_to(1), "", Some("a")), [vec!["a"]]);
    assert_eq!(groups(&state, up_to(2), "", Some("a")), [vec!["a"], vec!["b"], vec!["s"]]);
    let all = [vec!["a"], vec!["b"], vec!["s"], vec!["c"], vec!["t"], vec![TOP]];
    assert_eq!(groups(&state, up_to(3), "", Some("a")), all);
    // In two racks of a spine: either of them is as good as both.
    assert_eq!(groups(&state, up_to(2), "", Some("s")), [vec!["a", "b"], vec!["s"]]);
}

#[test]
fn a_gang_that_runs_outside_what_is_allowed_may_go_nowhere() {
    let state = state();
    assert!(groups(&state, up_to(1), "", Some("s")).is_empty());
    assert!(groups(&state, up_to(2), "t", Some("a")).is_empty());
    assert_eq!(groups(&state, up_to(2), "b", Some("s")), [vec!["b"]]);
}

#[test]
fn without_hypernodes_a_hard_gang_may_go_nowhere() {
    let state = State::new("default");
    assert!(groups(&state, up_to(9), "", None).is_empty());
}

#[test]
fn sums_follow_nodes_and_a_request_that_is_too_large_scores_nothing() {
    let mut state = state();
    let mut sums = Sums::default();
    let dims = [(CPU, 1.0)];
    sums.refresh(&state, &dims);
    let id = |state: &State, name: &str| state.hyper_nodes.tree().get(name).unwrap();
    let packed =
        |sums: &Sums, state: &State, name: &str| sums.packed(id(state, name), &[(0, 6_000.0, 1.0)]);
    assert_eq!(packed(&sums, &state, "a"), 0.75);
    assert_eq!(packed(&sums, &state, "b"), 0.0);
    assert_eq!(packed(&sums, &state, "s"), 0.5);
    state.apply(Event::Node(NodeObject {
        name: "b".to_owned(),
        allocatable: vec![("cpu".to_owned(), 16_000)],
        ..NodeObject::default()
    }));
    sums.refresh(&state, &dims);
    assert_eq!(packed(&sums, &state, "b"), 0.375);
    assert_eq!(packed(&sums, &state, "s"), 0.25);
}

#[test]
fn wrong_arguments_keep_their_defaults() {
    let text = "actions: allocate\ntiers: [{plugins: [{name: network-topology-aware, arguments: {weight: -3, hypernode.binpack.cpu: 2, hypernode.binpack.resources: 'a/b, cpu', hypernode.binpack.resources.a/b: 5, hypernode.binpack.normal-pod.fading: -1, hypernode.gradient.evict.max-hypernodes: 0}}]}]";
    let conf =
        tephra_api::conf::SchedulerConf::parse(text, crate::registry::action_names()).unwrap();
    let mut plugin = NetworkTopologyAware::default();
    let mut warnings = Vec::new();
    plugin.configure(&conf.tiers[0].plugins[0].arguments, &mut warnings);
    assert_eq!(warnings, ["argument weight is negative: 1 is used"]);
    assert_eq!((plugin.weight, plugin.cpu, plugin.memory), (1.0, 2.0, 1.0));
    assert_eq!(plugin.resources, [("a/b".to_owned(), 5.0)]);
    assert_eq!((plugin.fading, plugin.most_for_eviction), (0.8, 8));
    assert!(plugin.normal_pods);
}
