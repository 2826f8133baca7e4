//! What the dispatcher adds to decisions on their way.

use tephra_core::event::{PodObject, QueueObject};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::*;

#[derive(Debug)]
struct Fixed;
impl Clock for Fixed {
    fn now_ms(&self) -> i64 {
        1_000
    }
}

struct Sent {
    binds: UnboundedReceiver<Vec<Bind>>,
    statuses: UnboundedReceiver<Message>,
    notices: UnboundedReceiver<Notice>,
}

fn dispatcher() -> (Dispatcher, Sent) {
    let (binds, bound) = unbounded_channel();
    let (evictions, _) = unbounded_channel();
    let (statuses, written) = unbounded_channel();
    let (notices, told) = unbounded_channel();
    let outbox = Outbox { binds, evictions, statuses, notices };
    let dispatcher = Dispatcher::new(outbox, Arc::new(Fixed), "volcano".to_owned(), Arc::default());
    (dispatcher, Sent { binds: bound, statuses: written, notices: told })
}

fn pod() -> PodRef {
    PodRef::new("ns", "a", "u")
}

fn condition() -> Decision {
    let message = "no room".into();
    Decision::PodCondition { pod: pod(), reason: "Unschedulable", message, nominated: None }
}

fn since(message: Message) -> Option<String> {
    match message {
        Message::Write(StatusWrite::Pod { since, .. }) => since,
        other => panic!("{other:?}"),
    }
}

#[test]
fn only_the_first_condition_of_a_pod_sets_the_transition_time() {
    let (mut dispatcher, mut sent) = dispatcher();
    dispatcher.carry_out(condition());
    dispatcher.carry_out(condition());
    assert_eq!(since(sent.statuses.try_recv().unwrap()), Some("1970-01-01T00:00:01Z".to_owned()));
    assert_eq!(since(sent.statuses.try_recv().unwrap()), None);
}

#[test]
fn a_pod_that_came_with_a_condition_keeps_its_transition_time() {
    let (mut dispatcher, mut sent) = dispatcher();
    let marked = Some(("Unschedulable".to_owned(), "x".to_owned()));
    dispatcher.observe(&mut Event::Pod(PodObject {
        uid: "u".to_owned(),
        ours: true,
        scheduled_condition: marked,
        ..PodObject::default()
    }));
    dispatcher.carry_out(condition());
    assert_eq!(since(sent.statuses.try_recv().unwrap()), None);
}

#[test]
fn a_bind_drops_a_waiting_condition_first() {
    let (mut dispatcher, mut sent) = dispatcher();
    dispatcher.carry_out(condition());
    dispatcher.carry_out(Decision::Bind(GangBind {
        group: ObjectKey::new("ns", "g"),
        min_member: 1,
        ready_before: 0,
        group_created_ms: 0,
        binds: vec![(pod(), "n1".into())],
        created_ms: vec![0],
    }));
    sent.statuses.try_recv().unwrap();
    assert!(matches!(sent.statuses.try_recv(), Ok(Message::Binding(_, true))));
    assert!(matches!(sent.statuses.try_recv(), Ok(Message::Forget(uid)) if uid == "u"));
    dispatcher.observe(&mut Event::BindOk("u".to_owned()));
    assert!(matches!(sent.statuses.try_recv(), Ok(Message::Binding(_, false))));
    dispatcher.observe(&mut Event::PodDeleted("u".to_owned()));
    assert!(sent.statuses.try_recv().is_err() && dispatcher.unsettled.is_empty());
    assert_eq!(&*sent.binds.try_recv().unwrap()[0].node, "n1");
}

#[test]
fn a_pod_that_the_server_said_is_bound_stays_bound_although_older_events_come_later() {
    let (mut dispatcher, _sent) = dispatcher();
    let seen = |dispatcher: &mut Dispatcher, node: Option<&str>| {
        let node = node.map(str::to_owned);
        let pod = PodObject { uid: "u".to_owned(), ours: true, node, ..PodObject::default() };
        let mut event = Event::Pod(pod);
        dispatcher.observe(&mut event);
        match event {
            Event::Pod(pod) => pod.node,
            other => panic!("{other:?}"),
        }
    };
    dispatcher.carry_out(Decision::Bind(GangBind {
        group: ObjectKey::new("ns", "g"),
        min_member: 1,
        ready_before: 0,
        group_created_ms: 0,
        binds: vec![(pod(), "n1".into())],
        created_ms: vec![0],
    }));
    assert_eq!(seen(&mut dispatcher, None), None);
    dispatcher.observe(&mut Event::BindOk("u".to_owned()));
    assert_eq!(seen(&mut dispatcher, None), Some("n1".to_owned()));
    assert_eq!(seen(&mut dispatcher, Some("n1")), Some("n1".to_owned()));
    assert!(dispatcher.binding.is_empty());
}

#[test]
fn keys_that_a_queue_has_stored_and_no_longer_uses_are_named_for_removal() {
    let (mut dispatcher, mut sent) = dispatcher();
    let amounts = |names: &[&str]| names.iter().map(|name| ((*name).to_owned(), 1)).collect();
    dispatcher.observe(&mut Event::Queue(QueueObject {
        name: "q".to_owned(),
        allocated: amounts(&["cpu", "gpu"]),
        ..QueueObject::default()
    }));
    let mut stale_of = |names: &[&str]| {
        let allocated = amounts(names);
        dispatcher.carry_out(Decision::QueueAllocated { queue: "q".to_owned(), allocated });
        match sent.statuses.try_recv().unwrap() {
            Message::Write(StatusWrite::Queue { stale, .. }) => stale,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(stale_of(&["cpu", "memory"]), ["gpu"]);
    assert_eq!(stale_of(&["cpu"]), ["memory"]);
}

#[test]
fn an_unreadable_object_is_told_once_on_itself() {
    let (mut dispatcher, mut sent) = dispatcher();
    let error = DecodeError::at("Pod", ("ns", "a", "u"), "spec.x", "\"1Gib\"", "is no quantity");
    dispatcher.reject(&error);
    dispatcher.reject(&error);
    let notice = sent.notices.try_recv().unwrap();
    assert_eq!((notice.reason, notice.object.to_string()), ("InvalidObject", "ns/a".to_owned()));
    assert_eq!(notice.message, "spec.x: is no quantity, got \"1Gib\"");
    assert!(sent.notices.try_recv().is_err());
}
