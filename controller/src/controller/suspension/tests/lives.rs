//! Lives of gangs, told by what they come to.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Value, json};
use tephra_api::{
    keys,
    suspension::{Ledger, Mode, Record},
};

use super::world::{GANG, Kind, START, World, name};
use crate::controller::suspension::{
    gang::annotation,
    steps::{PATIENCE, Release, Step, next},
    writes::{On, writes},
};

const KINDS: [Kind; 3] = [Kind::Job, Kind::PyTorchJob, Kind::Plain];

fn second(at: i64) -> Timestamp {
    Timestamp::from_second(at).unwrap()
}

/// Keys of the protocol on an object.
fn ours(object: &Value) -> BTreeSet<String> {
    let all = object["metadata"]["annotations"].as_object().into_iter().flatten();
    all.map(|(key, _)| key.clone()).filter(|key| key.starts_with(keys::TEPHRA_PREFIX)).collect()
}

/// Every pod that was asked acknowledges.
fn acknowledge(world: &mut World) {
    let asked: Vec<_> = world.pods().iter().filter(|pod| asked(pod)).map(|pod| name(pod)).collect();
    asked.iter().for_each(|pod| world.annotate(On::Pod, pod, keys::CHECKPOINT_ACK, "s-1"));
}

fn asked(pod: &Value) -> bool {
    let request = annotation(pod, keys::CHECKPOINT_REQUEST);
    request.is_some_and(|text| text.starts_with("s-1;deadline="))
}

/// The PodGroup that waits, once the gang is down.
fn down(world: &World) -> Option<&Value> {
    let waits = world.stand_in().or_else(|| world.get(On::Group, GANG))?;
    let down =
        annotation(waits, keys::SUSPENDED).is_some() && annotation(waits, keys::SUSPEND).is_none();
    down.then_some(waits)
}

fn resume(world: &mut World) {
    let waits = name(down(world).expect("it is down"));
    world.annotate(On::Group, &waits, keys::RESUME, "s-1");
}

/// A whole life: intent, stop, resume. The controller dies before each of the writes numbered in `cuts`. Returns how
/// many writes there were.
fn live(world: &mut World, mode: Mode, cuts: &[usize]) -> usize {
    world.intend(mode);
    let (mut written, mut resumed) = (0, false);
    for _ in 0..400 {
        let cut = cuts.get(world.deaths).and_then(|cut| cut.checked_sub(written));
        let (step, wrote) = world.look(cut);
        written += wrote;
        world.others();
        world.now += 1;
        acknowledge(world);
        if down(world).is_some() && !resumed {
            resume(world);
            resumed = true;
        }
        if resumed && matches!(step, Step::Wait(None)) && down(world).is_none() {
            return written;
        }
    }
    panic!("it never comes back, cut at {cuts:?}");
}

/// It runs as before, and nothing of the protocol is left but the ledger.
fn assert_runs_again(world: &World, pods: usize, context: &str) {
    assert_eq!(world.pods().len(), pods, "{context}");
    assert!(world.pods().iter().all(|pod| pod["spec"]["nodeName"] == "n"), "{context}");
    assert!(world.pods().iter().all(|pod| !asked(pod)), "{context}");
    assert!(!world.suspended(), "{context}");
    assert_eq!(world.stand_in(), None, "{context}");
    let ledger = BTreeSet::from([keys::SUSPENSIONS.to_owned()]);
    if world.kind != Kind::PyTorchJob {
        assert_eq!(ours(world.group()), ledger, "{context}");
    } else {
        assert_eq!(ours(world.group()), BTreeSet::new(), "its PodGroup is a new one: {context}");
    }
    if world.kind != Kind::Plain {
        assert_eq!(ours(world.owner()), ledger, "{context}");
    }
    let mut stopped = world.stopped.clone();
    stopped.sort();
    let once: Vec<String> = (0..pods).map(|nth| format!("p-{nth}")).collect();
    assert_eq!(stopped, once, "every pod is stopped once: {context}");
}

#[test]
fn a_life_cut_off_before_any_two_of_its_writes_comes_to_the_same_end() {
    for kind in KINDS {
        for mode in [Mode::None, Mode::Signal, Mode::Ack] {
            let mut whole = World::new(kind, 3);
            let writes = live(&mut whole, mode, &[]);
            assert_runs_again(&whole, 3, "uncut");
            for first in 0..writes {
                for second in first..=writes {
                    let mut world = World::new(kind, 3);
                    live(&mut world, mode, &[first, second]);
                    let context = format!("{kind:?} {mode:?} cut at {first} and {second}");
                    assert!(world.deaths >= 1, "{context}");
                    assert_runs_again(&world, 3, &context);
                }
            }
        }
    }
}

#[test]
fn a_job_is_told_waited_for_recorded_stopped_and_let_run_in_this_order() {
    let mut world = World::new(Kind::Job, 2);
    world.intend(Mode::Ack);
    assert_eq!(world.settle(), [Step::Notify(vec![0, 1])]);
    assert!(!world.suspended());
    acknowledge(&mut world);
    let steps = [Step::Record { silent: vec![] }, Step::Stop, Step::Settle];
    assert_eq!(world.settle(), steps);
    assert_eq!(ours(world.group()), BTreeSet::from([keys::SUSPENDED.to_owned()]));
    resume(&mut world);
    assert_eq!(world.settle(), [Step::Run, Step::Release(Release::Resumed)]);
}

#[test]
fn the_record_holds_the_pods_for_the_scheduler_and_the_owners_copy_does_not() {
    let mut world = World::new(Kind::Job, 3);
    world.intend(Mode::None);
    world.settle();
    let record = |object| Record::parse(annotation(object, keys::SUSPENDED).unwrap()).unwrap();
    let of_group = record(world.group());
    assert_eq!((of_group.members.len(), of_group.members[0].count), (1, 3));
    assert_eq!(of_group.members[0].pod["spec"], json!({"containers": [{"name": "c"}]}));
    assert_eq!((of_group.by.as_str(), of_group.reason.as_str()), ("ns/big", "Preempt"));
    assert_eq!(of_group.owner.as_ref().map(|owner| owner.kind.as_str()), Some("Job"));
    assert_eq!(of_group.queued.map(|at| at.as_second()), Some(START));
    assert_eq!(record(world.owner()), of_group.without_members());
}

#[test]
fn one_pod_that_is_silent_holds_the_gang_until_the_deadline_and_no_longer() {
    let mut world = World::new(Kind::Job, 3);
    world.intend(Mode::Ack);
    world.settle();
    for pod in ["p-0", "p-2"] {
        world.annotate(On::Pod, pod, keys::CHECKPOINT_ACK, "s-1");
    }
    world.annotate(On::Pod, "p-1", keys::CHECKPOINT_ACK, "s-0");
    world.now = START + 59;
    assert_eq!(world.look(None).0, Step::Wait(Some(second(START + 60))));
    world.now = START + 60;
    assert_eq!(world.look(None).0, Step::Record { silent: vec![1] });
}

#[test]
fn mode_none_asks_nobody_and_mode_signal_gives_all_the_time_there_is() {
    let mut world = World::new(Kind::Job, 2);
    world.intend(Mode::None);
    assert_eq!(world.look(None).0, Step::Record { silent: vec![] });
    let mut world = World::new(Kind::Job, 2);
    world.intend(Mode::Signal);
    assert_eq!(world.settle(), [Step::Notify(vec![0, 1])]);
    acknowledge(&mut world);
    assert_eq!(world.look(None).0, Step::Wait(Some(second(START + 60))));
    world.now = START + 60;
    assert_eq!(world.look(None).0, Step::Record { silent: vec![] });
}

#[test]
fn a_withdrawn_intent_stops_nobody_and_takes_the_requests_back() {
    for kind in KINDS {
        let mut world = World::new(kind, 2);
        world.intend(Mode::Ack);
        world.settle();
        acknowledge(&mut world);
        world.annotate(On::Group, GANG, keys::SUSPEND, Value::Null);
        assert_eq!(world.settle(), [Step::Hush(vec![0, 1])]);
        assert_eq!(world.stopped, [""; 0]);
        let acknowledged = |pod: &Value| annotation(pod, keys::CHECKPOINT_ACK).is_some();
        assert!(!world.pods().into_iter().any(acknowledged));
    }
}

#[test]
fn of_a_withdrawal_and_a_record_at_the_same_time_one_wins() {
    let mut world = World::new(Kind::Job, 2);
    world.intend(Mode::None);
    let gang = world.read();
    let step = next(&gang.seen());
    assert_eq!(step, Step::Record { silent: vec![] });
    world.annotate(On::Group, GANG, keys::SUSPEND, Value::Null);
    world.write(writes(&gang, &step), None, step);
    assert_eq!(world.settle(), []);
    assert_eq!((ours(world.group()), world.stopped.len()), (BTreeSet::new(), 0));
}

#[test]
fn what_a_person_holds_is_never_resumed_until_it_is_let_go() {
    for on in [On::Group, On::Owner] {
        let mut world = World::new(Kind::Job, 2);
        world.intend(Mode::None);
        world.settle();
        world.annotate(on, GANG, keys::HOLD, "user");
        resume(&mut world);
        assert_eq!(world.settle(), [Step::Refuse]);
        assert_eq!(annotation(world.group(), keys::RESUME), None);
        world.annotate(on, GANG, keys::HOLD, Value::Null);
        resume(&mut world);
        assert_eq!(world.settle(), [Step::Run, Step::Release(Release::Resumed)]);
    }
}

#[test]
fn what_a_person_lets_run_is_not_stopped_again_whenever_it_happens() {
    for kind in [Kind::Job, Kind::PyTorchJob] {
        // Steps that the controller has taken by then: from the stop on, the switch is on.
        for steps in 2..6 {
            let mut world = World::new(kind, 2);
            world.intend(Mode::None);
            (0..steps).for_each(|_| drop(world.look(None)));
            if !world.suspended() {
                continue;
            }
            world.others();
            let on = world.switch().trim_start_matches('/').split('/').rev();
            let off = on.fold(json!(false), |inner, field| json!({(field): inner}));
            world.change(On::Owner, GANG, &off);
            world.others();
            world.settle();
            assert!(!world.suspended(), "{kind:?} after {steps} steps");
            assert_runs_again(&world, 2, &format!("{kind:?} after {steps} steps"));
        }
    }
}

#[test]
fn an_owner_that_ends_or_that_somebody_else_suspends_is_left_alone() {
    let ended = json!({"status": {"conditions": [{"type": "Complete", "status": "True"}]}});
    for change in [ended, json!({"spec": {"suspend": true}})] {
        let mut world = World::new(Kind::Job, 2);
        world.intend(Mode::Ack);
        world.settle();
        world.lazy = true;
        world.change(On::Owner, GANG, &change);
        let steps = world.settle();
        assert_eq!(steps[0], Step::Release(Release::NothingToStop));
        assert_eq!((ours(world.group()), ours(world.owner())), (BTreeSet::new(), BTreeSet::new()));
    }
}

#[test]
fn pods_of_an_owner_that_the_server_will_not_have_suspended_are_evicted_in_the_end() {
    let mut world = World::new(Kind::Job, 2);
    world.intend(Mode::None);
    world.refuses = true;
    while world.stopped.is_empty() {
        world.look(None);
        world.now += 1;
    }
    assert_eq!(world.now, START + 60 + PATIENCE + 1);
    assert_eq!(world.stopped, ["p-0", "p-1"]);
    world.settle();
    assert_eq!(ours(world.group()), BTreeSet::from([keys::SUSPENSIONS.to_owned()]));
    assert_eq!(world.pods().len(), 2, "the Job has made new ones, which wait in the queue");
}

#[test]
fn pods_that_stay_though_their_owner_is_suspended_are_evicted() {
    let mut world = World::new(Kind::Job, 2);
    world.intend(Mode::None);
    world.lazy = true;
    let waits = world.settle();
    assert_eq!(waits, [Step::Record { silent: vec![] }, Step::Stop]);
    world.now = START + 60 + PATIENCE;
    assert_eq!(world.settle(), [Step::Evict { pods: vec![0, 1], force: true }, Step::Settle]);
}

#[test]
fn where_the_operator_deletes_the_pod_group_another_one_waits_in_its_place() {
    let mut world = World::new(Kind::PyTorchJob, 2);
    world.intend(Mode::None);
    let steps = [Step::Record { silent: vec![] }, Step::StandIn, Step::Stop, Step::Settle];
    assert_eq!(world.settle(), steps);
    assert_eq!(world.get(On::Group, GANG), None);
    let waits = world.stand_in().unwrap();
    assert_eq!(waits["spec"], json!({"minMember": 2, "queue": "q"}));
    assert_eq!(waits["metadata"]["labels"], json!({"team": "a"}));
    assert_eq!(waits["metadata"]["ownerReferences"][0]["uid"], world.owner()["metadata"]["uid"]);
    assert_eq!(ours(waits), BTreeSet::from([keys::SUSPENDED.to_owned()]));
    let record = Record::parse(annotation(waits, keys::SUSPENDED).unwrap()).unwrap();
    assert_eq!((record.group.as_str(), record.queued.unwrap().as_second()), (GANG, START));
}

#[test]
fn the_place_in_the_queue_outlives_the_pod_group() {
    let mut world = World::new(Kind::PyTorchJob, 2);
    live(&mut world, Mode::None, &[]);
    world.intend(Mode::None);
    world.settle();
    let record = annotation(world.stand_in().unwrap(), keys::SUSPENDED).unwrap();
    let record = Record::parse(record).unwrap();
    assert_eq!((record.suspensions, record.queued.unwrap().as_second()), (2, START));
    let ledger =
        Ledger::of(annotation(world.owner(), keys::SUSPENSIONS), &record.owner.unwrap().uid);
    assert_eq!(ledger.suspended_seconds, record.suspended_seconds);
    assert!(record.suspended_seconds > 0);
}

#[test]
fn a_job_whose_pod_group_is_deleted_while_it_waits_runs_again() {
    let mut world = World::new(Kind::Job, 2);
    world.intend(Mode::None);
    world.settle();
    world.remove(On::Group, GANG);
    assert_eq!(world.settle(), [Step::Run]);
    assert!(!world.suspended());
}

#[test]
fn plain_pods_come_back_with_their_names_and_labels_and_their_pod_group_is_theirs_again() {
    let mut world = World::new(Kind::Plain, 1);
    let owner = json!([{"kind": "Pod", "name": "p-0", "uid": "old"}]);
    world.change(On::Group, GANG, &json!({"metadata": {"ownerReferences": owner}}));
    let before = world.pods()[0].clone();
    world.intend(Mode::None);
    let steps = [
        Step::Record { silent: vec![] },
        Step::Evict { pods: vec![0], force: false },
        Step::Settle,
    ];
    assert_eq!(world.settle(), steps);
    assert_eq!(world.group()["metadata"]["ownerReferences"], json!([]));
    resume(&mut world);
    assert_eq!(world.settle(), [Step::Create, Step::Release(Release::Resumed)]);
    let after = world.pods()[0].clone();
    assert_ne!(before["metadata"]["uid"], after["metadata"]["uid"]);
    assert_eq!(
        (name(&before), &before["metadata"]["labels"]),
        (name(&after), &after["metadata"]["labels"])
    );
    assert_eq!(before["metadata"]["annotations"], after["metadata"]["annotations"]);
}

#[test]
fn plain_pods_that_nobody_creates_again_are_evicted_and_that_is_the_end() {
    let mut world = World::new(Kind::Plain, 0);
    for nth in 0..2 {
        world.plain_pod(nth);
    }
    world.others();
    world.intend(Mode::None);
    world.look(None);
    assert_eq!(world.look(None).0, Step::Evict { pods: vec![0, 1], force: false });
    assert_eq!(world.settle(), [Step::Release(Release::Evicted)]);
    assert_eq!(ours(world.group()), BTreeSet::from([keys::SUSPENSIONS.to_owned()]));
}

#[test]
fn a_disruption_budget_is_respected_until_the_deadline() {
    let mut world = World::new(Kind::Plain, 1);
    world.intend(Mode::None);
    world.look(None);
    let step = |world: &World| next(&world.read().seen());
    assert_eq!(step(&world), Step::Evict { pods: vec![0], force: false });
    world.now = START + 60;
    assert_eq!(step(&world), Step::Evict { pods: vec![0], force: true });
}
