//! Who is taken off revocable nodes, and when.

use std::sync::Arc;

use serde_json::json;
use tephra_api::keys::{self, JDB_MAX_UNAVAILABLE, REVOCABLE_ZONE};

use super::*;
use crate::event::{Event, ObjectKey, PodGroupObject, PodObject, PodSpec};
use crate::plugin::test_cluster::{group, labels, names, node, pod, state, tasks, victims};

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;

/// Zone `day` is open from 8 to 18 hours, zone `bad` has no window that can be read.
fn tdm() -> Tdm {
    let mut plugin = Tdm::default();
    let arguments = Arguments::new([
        ("tdm.revocable-zone.day".to_owned(), json!("8:00-18:00")),
        ("tdm.revocable-zone.bad".to_owned(), json!("8-18")),
        ("tdm.evict.period".to_owned(), json!("2m")),
    ]);
    let mut warnings = Vec::new();
    plugin.configure(&arguments, &mut warnings);
    assert_eq!(
        warnings,
        [
            "argument tdm.revocable-zone.bad: parsing time \"8\" as \"15:04\": cannot parse \"\" as \":\"; \
          its nodes take nobody"
        ]
    );
    plugin
}

fn gang(name: &str, max_unavailable: &str) -> Event {
    let annotations = labels(&[(JDB_MAX_UNAVAILABLE, max_unavailable)]);
    Event::PodGroup(PodGroupObject { annotations, ..group(name) })
}

/// Two gangs on a node of zone `day`, one pod on a node of zone `bad` and one on a node of none.
fn cluster() -> State {
    let nodes = [
        node("lent", &[(REVOCABLE_ZONE, "day")]),
        node("odd", &[(REVOCABLE_ZONE, "bad")]),
        node("own", &[]),
    ];
    let pods = [
        pod("a-0", "a", "lent"),
        pod("a-1", "a", "lent"),
        pod("a-2", "a", "own"),
        PodObject { preemptable: false, ..pod("b-0", "b", "lent") },
        pod("b-1", "b", "lent"),
        pod("b-2", "b", "odd"),
    ];
    let gangs = [gang("a", "1"), gang("b", "100%")];
    state(nodes.into_iter().chain(gangs).chain(pods.map(Event::Pod)))
}

#[test]
fn outside_the_window_each_gang_loses_what_it_can_spare_once_in_a_period() {
    let (mut plugin, mut state) = (tdm(), cluster());
    let running = tasks(&state, &["a-0", "a-1", "a-2", "b-0", "b-1", "b-2"]);
    let mut at = |ms| {
        state.now_ms = ms;
        let victims = plugin.victim_tasks(&state, &running);
        names(&state, &victims)
    };
    assert_eq!(at(18 * HOUR + 999), [""; 0], "the window closes with its last second");
    let victims = ["a-0", "b-1"];
    assert_eq!(at(18 * HOUR + 3 * MINUTE), victims);
    assert_eq!(at(18 * HOUR + 5 * MINUTE - 1), [""; 0]);
    assert_eq!(at(18 * HOUR + 5 * MINUTE), victims);
}

#[test]
fn the_time_of_day_is_that_of_the_time_zone() {
    let (plugin, mut state) = (tdm(), cluster());
    state.now_ms = 7 * HOUR;
    let closed = |state: &State| plugin.zones(state).unwrap().list[1].closed.clone();
    assert_eq!(
        closed(&state).as_deref(),
        Some("current time beyond revocable zone day:8:00-18:00")
    );
    state.time_zone = Some(TimeZone::fixed(jiff::tz::offset(2)));
    assert_eq!(closed(&state), None);
}

#[test]
fn a_pod_that_may_be_revoked_itself_preempts_nobody() {
    let mut state = cluster();
    let waiting = |name| PodObject { node: None, phase: Default::default(), ..pod(name, "c", "") };
    let revocable = PodSpec { revocable: true, ..(*waiting("revocable").spec).clone() };
    for pod in [
        waiting("soft"),
        PodObject { preemptable: false, ..waiting("strict") },
        PodObject { preemptable: false, spec: Arc::new(revocable), ..waiting("revocable") },
    ] {
        state.apply(Event::Pod(pod));
    }
    let all = ["a-0", "a-2", "b-0", "b-2"];
    assert_eq!(victims(&tdm(), &state, "soft", &all), [""; 0]);
    assert_eq!(victims(&tdm(), &state, "revocable", &all), [""; 0]);
    assert_eq!(victims(&tdm(), &state, "strict", &all), ["a-2"], "only off nodes of no zone");
}

#[test]
fn jobs_that_say_they_are_preemptable_go_last_and_never_starve() {
    let says = |name: &str, text: &str| {
        let annotations = labels(&[(keys::PREEMPTABLE, text)]);
        Event::PodGroup(PodGroupObject { annotations, ..group(name) })
    };
    let mut state =
        state([says("yes", "true"), says("odd", "perhaps"), Event::PodGroup(group("mute"))]);
    for name in ["yes", "odd", "mute"] {
        let waiting = PodObject { node: None, phase: Default::default(), ..pod(name, name, "") };
        state.apply(Event::Pod(waiting));
    }
    let plugin = tdm();
    let view = |name| {
        let job = state.job(&ObjectKey::new("ns", name)).unwrap();
        let mut key = OrderKey::default();
        plugin.job_order(&state, job, &mut key);
        (key, plugin.job_starving(&state, job))
    };
    assert_eq!(view("odd"), view("mute"));
    assert!(view("mute").0 < view("yes").0);
    assert!(view("mute").1 && !view("yes").1);
}
