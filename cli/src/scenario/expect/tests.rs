//! Every expectation key holds when it should and fails when it should not, on one small story.

use crate::scenario::file;
use crate::scenario::schema::Scenario;
use crate::scenario::story::{Overrides, play};
use crate::scenario::verdict::Verdict;

/// A gang `a` of two that runs and a pod `b-0` too big for the node.
const STORY: &str = r#"
name: t
conf: {actions: "enqueue, allocate", tiers: [{plugins: [{name: gang}, {name: predicates}]}]}
cycles: 2
objects:
- {kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: "2", memory: 8Gi, pods: "10"}}}
- {kind: PodGroup, metadata: {name: a}, spec: {minMember: 2}}
- {kind: PodGroup, metadata: {name: b}, spec: {minMember: 1}}
- kind: Pod
  metadata: {name: a-0, annotations: {scheduling.k8s.io/group-name: a}}
  spec: {schedulerName: volcano, containers: [{name: c, resources: {requests: {cpu: "1"}}}]}
- kind: Pod
  metadata: {name: a-1, annotations: {scheduling.k8s.io/group-name: a}}
  spec: {schedulerName: volcano, containers: [{name: c, resources: {requests: {cpu: "1"}}}]}
- kind: Pod
  metadata: {name: b-0, annotations: {scheduling.k8s.io/group-name: b}}
  spec: {schedulerName: volcano, containers: [{name: c, resources: {requests: {cpu: "5"}}}]}
"#;

fn verdict(more: &str) -> Verdict {
    verdict_of(&format!("{STORY}{more}"))
}

fn verdict_of(text: &str) -> Verdict {
    let (mut scenarios, _) = file::parse(text).expect(text);
    let scenario: Scenario = scenarios.remove(0);
    play(&scenario, &Overrides::default()).0.verdict
}

fn assert_holds(expectation: &str) {
    assert_eq!(verdict(&format!("expect: {{{expectation}}}")), Verdict::Passed, "{expectation}");
}

fn assert_fails(expectation: &str) {
    let verdict = verdict(&format!("expect: {{{expectation}}}"));
    let Verdict::Failed(mismatches) = verdict else { panic!("{expectation}: {verdict:?}") };
    assert_eq!(mismatches.len(), 1, "{expectation}: {mismatches:?}");
}

#[test]
fn bind_names_the_node_or_allowed_nodes() {
    assert_holds("bind: {a-0: n1, default/a-1: [n2, n1]}");
    assert_fails("bind: {a-0: n2}");
    assert_fails("bind: {b-0: n1}");
}

#[test]
fn an_empty_bind_means_nothing_is_bound() {
    assert_fails("bind: {}");
}

#[test]
fn bound_and_pending_name_pods_that_exist() {
    assert_holds("bound: [a-0, a-1], pending: [b-0]");
    assert_fails("bound: [b-0]");
    assert_fails("pending: [a-0]");
    assert_fails("pending: [misspelt]");
}

#[test]
fn counts_are_exact() {
    assert_holds("bindCount: 2, evictCount: 0");
    assert_fails("bindCount: 1");
    assert_fails("evictCount: 1");
}

#[test]
fn evictions_are_compared_as_sets() {
    assert_holds("evict: [], evictWithin: [a-0]");
    assert_fails("evict: [a-0]");
}

#[test]
fn nothing_is_pipelined_here() {
    assert_fails("pipelined: {b-0: n1}");
}

#[test]
fn phases_and_reasons_are_read_from_the_objects() {
    assert_holds("podGroupPhase: {a: Running, default/b: Inqueue}");
    assert_fails("podGroupPhase: {a: Pending}");
    assert_fails("podGroupPhase: {none: Pending}");
    assert_holds("podReason: {b-0: Unschedulable}");
    assert_fails("podReason: {b-0: Other}");
    assert_fails("podReasonNot: {b-0: Unschedulable}");
    assert_fails("podReasonNot: {misspelt: Unschedulable}");
}

#[test]
fn queue_status_compares_quantities_by_value() {
    assert_holds("queueStatus: {default: {state: Open, allocated: {cpu: 2000m, other: 0}}}");
    assert_fails("queueStatus: {default: {allocated: {cpu: 1}}}");
    assert_fails("queueStatus: {default: {state: Closed}}");
    assert_fails("queueStatus: {none: {state: Open}}");
}

#[test]
fn words_are_found_in_conditions_and_events() {
    assert_holds("message: [{object: PodGroup/b, contains: [tasks in gang unschedulable]}]");
    assert_fails("message: [{object: PodGroup/b, contains: [banana]}]");
    assert_fails("messageNot: [{object: PodGroup/default/b, contains: [unschedulable]}]");
    assert_fails("message: [{object: b, contains: [x]}]");
}

#[test]
fn events_are_counted() {
    assert_holds("eventCountMax: {PodGroup/b: 2}");
    assert_fails("eventCountMax: {PodGroup/b: 0}");
}

#[test]
fn groups_of_pods_are_judged_together() {
    assert_holds("wholeGroups: [[a-0, a-1], [b-0]]");
    assert_fails("wholeGroups: [[a-0, b-0]]");
    assert_fails("distinctNodes: [a-0, a-1]");
    assert_holds("taskStatusCount: {a: {Running: 2}, b: {Pending: 1}}");
    assert_fails("taskStatusCount: {a: {Binding: 2}}");
}

#[test]
fn any_of_needs_one_outcome() {
    assert_holds("anyOf: [{bindCount: 7}, {bindCount: 2}]");
    assert_fails("anyOf: [{bindCount: 7}, {bindCount: 8}]");
    assert_fails("anyOf: [{}]");
}

#[test]
fn an_accepted_configuration_is_no_config_error() {
    assert_fails("configError: {contains: [word]}");
    assert_fails("configWarning: {contains: [word]}");
}

#[test]
fn a_refused_configuration_fails_a_scenario_that_does_not_expect_it() {
    let misspelt = STORY.replace("enqueue, allocate", "enqueue, alocate");
    let Verdict::Failed(mismatches) = verdict_of(&format!("{misspelt}expect: {{bindCount: 2}}"))
    else {
        panic!("failed");
    };
    assert_eq!(mismatches[0].what, "configuration");
    let expect = "expect: {bindCount: 2, configError: {contains: [alocate]}}";
    assert_eq!(verdict_of(&format!("{misspelt}{expect}")), Verdict::Passed);
}

#[test]
fn a_plugin_that_nobody_knows_fails_a_scenario_that_does_not_expect_it() {
    let misspelt = STORY.replace("{name: predicates}", "{name: predicates}, {name: proporton}");
    let Verdict::Failed(mismatches) = verdict_of(&format!("{misspelt}expect: {{bindCount: 2}}"))
    else {
        panic!("failed");
    };
    assert!(mismatches[0].got.contains("proporton"), "{mismatches:?}");
    let expect = "expect: {bindCount: 2, configWarning: {contains: [proporton]}}";
    assert_eq!(verdict_of(&format!("{misspelt}{expect}")), Verdict::Passed);
}

#[test]
fn a_check_names_its_place() {
    let (mut scenarios, _) = file::parse(
        "name: s\nsteps: [{check: {bindCount: 0}}, {check: {bindCount: 1}}]\nobjects: []\n",
    )
    .expect("parses");
    let outcome = play(&scenarios.remove(0), &Overrides::default()).0;
    let Verdict::Failed(mismatches) = outcome.verdict else { panic!("failed") };
    assert_eq!(mismatches[0].what, "check 2: bindCount");
}

#[test]
fn a_recorded_bind_is_the_exact_map() {
    let recorded = STORY.replace("name: t", "schedulerOptions: {defaultQueue: q}");
    let queue = "- {kind: Queue, metadata: {name: q}, spec: {weight: 1}, status: {state: Open}}\n";
    let judge = |expect: &str| {
        let (mut scenarios, _) =
            file::parse(&format!("{recorded}{queue}{expect}")).expect("parses");
        play(&scenarios.remove(0), &Overrides::default()).0.verdict
    };
    assert_eq!(judge("expect: {bind: {default/a-0: n1, default/a-1: n1}}"), Verdict::Passed);
    assert!(matches!(judge("expect: {bind: {default/a-0: n1}}"), Verdict::Failed(_)));
}
