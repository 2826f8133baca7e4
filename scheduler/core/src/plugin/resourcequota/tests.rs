//! Scopes, promises and words of the gate, each in a small state of its own.

use std::sync::Arc;

use super::*;
use crate::event::{
    Event, LabelSelector, ObjectKey, Operator, PodAffinityTerm, PodGroupObject, PodGroupPhase,
    PodObject, PodPhase, PodSpec, PriorityClassObject, QuotaScope,
};
use crate::plugin::test_cluster::{group, node, pod, quantities, state};

fn quota_named(name: &str, hard: &[(&str, &str)], used: &[(&str, &str)]) -> ResourceQuotaObject {
    ResourceQuotaObject {
        key: ObjectKey::new("ns", name),
        hard: quantities(hard),
        used: quantities(used),
        scopes: Vec::new(),
    }
}

fn quota(hard: &[(&str, &str)], used: &[(&str, &str)]) -> Event {
    Event::ResourceQuota(quota_named("q", hard, used))
}

fn asks(name: &str, min_member: i32, min: &[(&str, &str)]) -> Event {
    Event::PodGroup(PodGroupObject { min_member, min_quantities: quantities(min), ..group(name) })
}

/// A pod of 1 cpu that waits for a node.
fn waiting(name: &str, group: &str) -> PodObject {
    PodObject { node: None, phase: PodPhase::Pending, ..pod(name, group, "n") }
}

fn answer(plugin: &mut ResourceQuota, state: &State, name: &str) -> String {
    let job = state.job(&ObjectKey::new("ns", name)).unwrap();
    let admission = plugin.job_enqueueable(state, job);
    if admission.vote == Vote::Permit { "yes".to_owned() } else { admission.message }
}

fn asked(state: &State, name: &str) -> String {
    let mut plugin = ResourceQuota::default();
    plugin.open(state);
    answer(&mut plugin, state, name)
}

fn admit(plugin: &mut ResourceQuota, state: &mut State, name: &str) {
    let job = state.job(&ObjectKey::new("ns", name)).unwrap();
    plugin.job_enqueued(state, job);
    state.jobs[job as usize].phase = PodGroupPhase::Inqueue;
}

/// What plugin and state answer in a new session.
fn asked_next(plugin: &mut ResourceQuota, state: &mut State, ms: i64, name: &str) -> String {
    state.now_ms = ms;
    plugin.open(state);
    answer(plugin, state, name)
}

#[test]
fn a_group_is_admitted_when_all_that_the_quota_names_fits_exactly() {
    let min = [("cpu", "2"), ("memory", "1Gi"), ("nvidia.com/gpu", "8")];
    let fits = [quota(&[("cpu", "3"), ("memory", "1Gi")], &[("cpu", "1")]), asks("g", 1, &min)];
    assert_eq!(asked(&state(fits), "g"), "yes");
    let short =
        [quota(&[("cpu", "3"), ("memory", "1Gi")], &[("cpu", "1001m")]), asks("g", 1, &min)];
    assert_eq!(
        asked(&state(short), "g"),
        "resource quota insufficient, requested: cpu 2, used: cpu 1001m, limited: cpu 3 (quota q)"
    );
}

#[test]
fn without_a_quota_or_minimum_nothing_is_refused() {
    assert_eq!(asked(&state([asks("g", 1, &[("cpu", "2")])]), "g"), "yes");
    assert_eq!(asked(&state([quota(&[("cpu", "0")], &[]), asks("g", 1, &[])]), "g"), "yes");
}

const REFUSED: &str = "resource quota insufficient, requested: cpu 2, used: cpu 0, limited: cpu 3 \
                       (quota q, promised to others: cpu 2)";

#[test]
fn an_admission_is_a_promise_in_this_session_and_later_ones_until_its_pods_are_counted() {
    let min = [("cpu", "2")];
    let none = quota(&[("cpu", "3")], &[("cpu", "0")]);
    let mut state = state([none, asks("a", 2, &min), asks("b", 1, &min), node("n", &[])]);
    let mut plugin = ResourceQuota::default();
    assert_eq!(asked_next(&mut plugin, &mut state, 0, "b"), "yes");
    admit(&mut plugin, &mut state, "a");
    assert_eq!(answer(&mut plugin, &state, "b"), REFUSED);
    assert_eq!(asked_next(&mut plugin, &mut state, 1000, "b"), REFUSED);
    assert_eq!(answer(&mut plugin, &state, "a"), "yes", "its own promise is not in its way");
    // Both pods are seen before the quota's new status is.
    for name in ["a-0", "a-1"] {
        state.apply(Event::Pod(waiting(name, "a")));
    }
    assert_eq!(asked_next(&mut plugin, &mut state, 2000, "b"), REFUSED);
    // The quota counts one of them, then both: what is used and promised together stays the same.
    let refused = |used: &str, promised: &str| {
        format!(
            "resource quota insufficient, requested: cpu 2, used: cpu {used}, limited: cpu 3 (quota q{promised})"
        )
    };
    plugin.told.clear();
    state.apply(quota(&[("cpu", "3")], &[("cpu", "1")]));
    let one = refused("1", ", promised to others: cpu 1");
    assert_eq!(asked_next(&mut plugin, &mut state, 3000, "b"), one);
    plugin.told.clear();
    state.apply(quota(&[("cpu", "3")], &[("cpu", "2")]));
    assert_eq!(asked_next(&mut plugin, &mut state, 4000, "b"), refused("2", ""));
    state.apply(quota(&[("cpu", "4")], &[("cpu", "2")]));
    assert_eq!(asked_next(&mut plugin, &mut state, 5000, "b"), "yes");
}

#[test]
fn use_that_others_add_is_no_part_of_the_pods_that_are_still_to_come() {
    let min = [("cpu", "2")];
    let mut state =
        state([quota(&[("cpu", "5")], &[("cpu", "0")]), asks("a", 2, &min), asks("b", 1, &min)]);
    let mut plugin = ResourceQuota::default();
    plugin.open(&state);
    admit(&mut plugin, &mut state, "a");
    state.apply(quota(&[("cpu", "5")], &[("cpu", "2")]));
    assert_eq!(
        asked_next(&mut plugin, &mut state, 1000, "b"),
        "resource quota insufficient, requested: cpu 2, used: cpu 2, limited: cpu 5 (quota q, promised to others: cpu 2)"
    );
}

#[test]
fn a_promise_ends_with_its_gang_with_its_phase_and_half_a_minute_after_the_last_pod() {
    let min = [("cpu", "2")];
    let prepare = || {
        let mut state = state([
            quota(&[("cpu", "3")], &[("cpu", "0")]),
            asks("a", 2, &min),
            asks("b", 1, &min),
        ]);
        let mut plugin = ResourceQuota::default();
        plugin.open(&state);
        admit(&mut plugin, &mut state, "a");
        (plugin, state)
    };
    let (mut plugin, mut gone) = prepare();
    gone.apply(Event::PodGroupDeleted(ObjectKey::new("ns", "a")));
    assert_eq!(asked_next(&mut plugin, &mut gone, 1, "b"), "yes");

    let (mut plugin, mut pending) = prepare();
    let job = pending.job(&ObjectKey::new("ns", "a")).unwrap();
    pending.jobs[job as usize].phase = PodGroupPhase::Pending;
    assert_eq!(asked_next(&mut plugin, &mut pending, 1, "b"), "yes");

    let (mut plugin, mut late) = prepare();
    assert_eq!(asked_next(&mut plugin, &mut late, 29_999, "b"), REFUSED);
    late.apply(Event::Pod(waiting("a-0", "a")));
    assert_eq!(asked_next(&mut plugin, &mut late, 30_000, "b"), REFUSED);
    assert_eq!(asked_next(&mut plugin, &mut late, 59_999, "b"), REFUSED);
    assert_eq!(asked_next(&mut plugin, &mut late, 60_000, "b"), "yes");
    assert_eq!(asked_next(&mut plugin, &mut late, 90_000, "b"), "yes", "it is not made anew");
}

#[test]
fn a_gang_without_live_pods_that_is_not_admitted_has_no_entry() {
    let ended = PodObject { phase: PodPhase::Succeeded, ..pod("a-0", "a", "n") };
    let min = [("cpu", "2")];
    let mut state = state([
        quota(&[("cpu", "3")], &[]),
        asks("a", 1, &min),
        asks("b", 1, &min),
        node("n", &[]),
        Event::Pod(ended),
    ]);
    for phase in [PodGroupPhase::Pending, PodGroupPhase::Completed, PodGroupPhase::Running] {
        let job = state.job(&ObjectKey::new("ns", "a")).unwrap();
        state.jobs[job as usize].phase = phase;
        let mut plugin = ResourceQuota::default();
        assert_eq!(asked_next(&mut plugin, &mut state, 0, "b"), "yes", "{phase:?}");
    }
}

#[test]
fn after_a_restart_only_what_is_still_to_come_is_promised() {
    let min = [("cpu", "2")];
    let mut state = state([
        quota(&[("cpu", "3")], &[("cpu", "1")]),
        asks("a", 2, &min),
        asks("b", 1, &[("cpu", "1")]),
        node("n", &[]),
        Event::Pod(waiting("a-0", "a")),
    ]);
    let job = state.job(&ObjectKey::new("ns", "a")).unwrap();
    state.jobs[job as usize].phase = PodGroupPhase::Inqueue;
    assert_eq!(asked(&state, "b"), "yes");
    state.apply(quota(&[("cpu", "3")], &[("cpu", "1001m")]));
    assert_eq!(
        asked(&state, "b"),
        "resource quota insufficient, requested: cpu 1, used: cpu 1001m, limited: cpu 3 (quota q, promised to others: cpu 1)"
    );
}

#[test]
fn what_was_told_stands_while_only_use_moves() {
    let events = [quota(&[("cpu", "3")], &[("cpu", "2")]), asks("g", 1, &[("cpu", "2")])];
    let mut state = state(events);
    let mut plugin = ResourceQuota::default();
    let told = |used: &str, hard: &str| {
        format!(
            "resource quota insufficient, requested: cpu 2, used: cpu {used}, limited: cpu {hard} (quota q)"
        )
    };
    assert_eq!(asked_next(&mut plugin, &mut state, 0, "g"), told("2", "3"));
    state.apply(quota(&[("cpu", "3")], &[("cpu", "3")]));
    assert_eq!(asked_next(&mut plugin, &mut state, 1, "g"), told("2", "3"));
    state.apply(quota(&[("cpu", "4")], &[("cpu", "3")]));
    assert_eq!(asked_next(&mut plugin, &mut state, 2, "g"), told("3", "4"));
}

/// Whether a full quota with these scopes stands in the way of group `g`.
fn stands_in_the_way(scopes: &[QuotaScope], mut events: Vec<Event>) -> bool {
    let full = quota_named("q", &[("pods", "0")], &[]);
    events.push(Event::ResourceQuota(ResourceQuotaObject { scopes: scopes.to_vec(), ..full }));
    asked(&state(events), "g") != "yes"
}

#[test]
fn a_group_without_pods_is_judged_by_what_its_pod_group_says() {
    let of = |scope: QuotaScope, class: &str, min: &[(&str, &str)]| {
        let mut min = quantities(min);
        min.push(("pods".to_owned(), Quantity::from_value(1)));
        let object = PodGroupObject {
            min_member: 1,
            min_quantities: min,
            priority_class: class.to_owned(),
            ..group("g")
        };
        let default =
            PriorityClassObject { name: "usual".to_owned(), value: 5, global_default: true };
        let events = vec![Event::PriorityClass(default), Event::PodGroup(object)];
        stands_in_the_way(&[scope], events)
    };
    let class = |operator, values: &[&str]| {
        QuotaScope::PriorityClass(operator, values.iter().map(|&v| v.to_owned()).collect())
    };
    let (devices, cpu) = ([("nvidia.com/gpu", "1")], [("requests.cpu", "1")]);
    assert!(of(QuotaScope::BestEffort(true), "", &devices));
    assert!(!of(QuotaScope::BestEffort(true), "", &cpu));
    assert!(!of(QuotaScope::BestEffort(false), "", &devices));
    assert!(of(QuotaScope::BestEffort(false), "", &cpu));
    assert!(!of(QuotaScope::Terminating(true), "", &cpu));
    assert!(of(QuotaScope::Terminating(false), "", &cpu));
    assert!(!of(QuotaScope::CrossNamespacePodAffinity, "", &cpu));
    assert!(!of(QuotaScope::NotOfPods, "", &cpu));
    assert!(of(class(Operator::In, &["high", "low"]), "low", &cpu));
    assert!(!of(class(Operator::In, &["high"]), "low", &cpu));
    assert!(of(class(Operator::In, &["usual"]), "", &cpu), "the class that pods without one get");
    assert!(!of(class(Operator::NotIn, &["low"]), "low", &cpu));
    assert!(of(class(Operator::NotIn, &["high"]), "low", &cpu));
    assert!(of(class(Operator::Exists, &[]), "low", &cpu));
    assert!(!of(class(Operator::DoesNotExist, &[]), "low", &cpu));
    assert!(!of(class(Operator::Invalid, &["low"]), "low", &cpu));
}

#[test]
fn a_group_with_pods_is_judged_by_them_and_every_scope_must_match() {
    // One of two members is missing, so that there is something to ask for.
    let of = |scopes: &[QuotaScope], change: &dyn Fn(&mut PodObject)| {
        let mut member = waiting("g-0", "g");
        member.spec = Arc::new(PodSpec::default());
        change(&mut member);
        let min = [("pods", "2"), ("cpu", "2")];
        stands_in_the_way(scopes, vec![asks("g", 2, &min), Event::Pod(member)])
    };
    let spec =
        |change: fn(&mut PodSpec)| move |pod: &mut PodObject| change(Arc::make_mut(&mut pod.spec));
    let devices = spec(|spec| spec.requests = vec![("nvidia.com/gpu".to_owned(), 1000)]);
    let memory = spec(|spec| spec.requests = vec![("memory".to_owned(), 1)]);
    assert!(of(&[QuotaScope::BestEffort(true)], &devices));
    assert!(!of(&[QuotaScope::BestEffort(true)], &memory));
    assert!(of(&[QuotaScope::BestEffort(false)], &memory));
    let deadline = |pod: &mut PodObject| pod.has_deadline = true;
    assert!(of(&[QuotaScope::Terminating(true)], &deadline));
    assert!(!of(&[QuotaScope::Terminating(false)], &deadline));
    assert!(of(&[QuotaScope::Terminating(true), QuotaScope::BestEffort(true)], &deadline));
    assert!(!of(&[QuotaScope::Terminating(true), QuotaScope::BestEffort(false)], &deadline));
    let named = spec(|spec| {
        let term = PodAffinityTerm { namespaces: vec!["other".to_owned()], ..Default::default() };
        spec.pod_anti_affinity.push(term);
    });
    let selected = spec(|spec| {
        let namespace_selector = Some(LabelSelector::default());
        let term = PodAffinityTerm { namespace_selector, ..Default::default() };
        spec.preferred_pod_affinity.push((1, term));
    });
    let own = spec(|spec| spec.pod_affinity.push(PodAffinityTerm::default()));
    assert!(of(&[QuotaScope::CrossNamespacePodAffinity], &named));
    assert!(of(&[QuotaScope::CrossNamespacePodAffinity], &selected));
    assert!(!of(&[QuotaScope::CrossNamespacePodAffinity], &own));
    let classed = |pod: &mut PodObject| pod.priority_class = "gold".to_owned();
    let gold = QuotaScope::PriorityClass(Operator::In, vec!["gold".to_owned()]);
    assert!(of(std::slice::from_ref(&gold), &classed));
    assert!(!of(&[gold], &|_| {}));
    assert!(of(&[QuotaScope::PriorityClass(Operator::DoesNotExist, Vec::new())], &|_| {}));
}

#[test]
fn a_quota_that_changes_or_goes_asks_for_a_session_at_once() {
    let mut state = state([asks("g", 1, &[("cpu", "2")])]);
    let gone = Event::ResourceQuotaDeleted(ObjectKey::new("ns", "q"));
    for event in [quota(&[("cpu", "3")], &[("cpu", "2")]), gone] {
        state.changed = false;
        state.apply(event);
        assert!(state.changed);
    }
}
