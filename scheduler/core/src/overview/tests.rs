//! Overview of a small cluster.

use tephra_api::conf::SchedulerConf;

use super::*;
use crate::event::{
    Event, NodeObject, ObjectKey, PodGroupObject, PodGroupStatus, PodObject, PodPhase, PodSpec,
    QueueObject,
};
use crate::plugin::test_world::queue;
use crate::workload::amounts;
use crate::{Core, Options};

const GI: i64 = 1 << 30;

fn core(plugins: &str) -> Core {
    let text = format!("actions: \"enqueue, allocate\"\ntiers:\n- plugins: {plugins}\n");
    let conf = SchedulerConf::parse(&text, crate::registry::action_names()).unwrap();
    let mut core = Core::new(Options::default(), &conf);
    core.apply(Event::Node(NodeObject {
        name: "n".to_owned(),
        allocatable: amounts(4_000, 8 * GI, 0, 50),
        ..NodeObject::default()
    }));
    core
}

fn gang(core: &mut Core, name: &str, queue: &str, min: i32, pods: u32) {
    let key = ObjectKey::new("ns", name);
    core.apply(Event::PodGroup(PodGroupObject {
        key,
        uid: name.to_owned(),
        created_ms: 1_000,
        min_member: min,
        queue: queue.to_owned(),
        status: PodGroupStatus::default(),
        ..PodGroupObject::default()
    }));
    for number in 0..pods {
        core.apply(Event::Pod(PodObject {
            key: ObjectKey::new("ns", format!("{name}-{number}")),
            uid: format!("{name}-{number}"),
            group: Some(name.to_owned()),
            ours: true,
            phase: PodPhase::Pending,
            spec: Arc::new(PodSpec {
                namespace: "ns".to_owned(),
                requests: amounts(1_000, GI, 0, 1),
                ..PodSpec::default()
            }),
            ..PodObject::default()
        }));
    }
}

fn of<'f>(overview: &'f Overview, name: &str) -> &'f QueueOverview {
    overview.queues.iter().find(|queue| &*queue.name == name).unwrap()
}

fn cpu(named: &Named) -> f64 {
    named.iter().find(|(name, _)| &**name == "cpu").map_or(0.0, |it| it.1)
}

#[test]
fn a_queue_tells_what_it_has_deserves_and_who_waits_in_it() {
    let mut core = core("[{name: gang}, {name: proportion}, {name: predicates}]");
    core.apply(Event::Queue(QueueObject {
        capability: Some(amounts(3_000, 6 * GI, 0, 50)),
        weight: 2,
        ..queue("q", "")
    }));
    gang(&mut core, "runs", "q", 2, 2);
    gang(&mut core, "waits", "q", 3, 3);
    core.session(5_000);
    core.session(5_100);
    let overview = core.overview(9_000);
    let q = of(&overview, "q");
    assert_eq!((q.weight, q.has_jobs, q.waiting), (2, true, 1));
    assert_eq!((cpu(&q.allocated), cpu(&q.request)), (2_000.0, 5_000.0));
    assert_eq!(q.capability.as_ref().map(cpu), Some(3_000.0));
    let share = q.share.as_ref().unwrap();
    assert_eq!((cpu(&share.deserved), cpu(&share.real_capability)), (3_000.0, 3_000.0));
    assert!((share.share - 2.0 / 3.0).abs() < 1e-9 && !share.overused, "{share:?}");
    assert_eq!((overview.nodes, overview.pods, overview.jobs_below), (1, 5, 1));
    assert_eq!(overview.namespaces, [("ns".into(), 0.5)]);
}

#[test]
fn a_job_tells_when_it_was_placed_and_how_often_it_was_not_and_is_forgotten_with_its_group() {
    let mut core = core("[{name: gang}, {name: predicates}]");
    core.apply(Event::Queue(queue("q", "")));
    gang(&mut core, "runs", "q", 2, 2);
    gang(&mut core, "waits", "q", 3, 3);
    core.session(5_000);
    core.session(5_100);
    let job = |core: &Core, name: &str| {
        let jobs = core.overview(9_000).jobs;
        jobs.into_iter().find(|job| &*job.name == name)
    };
    let runs = job(&core, "runs").unwrap();
    assert_eq!((runs.created_ms, runs.placed_ms, runs.missing), (1_000, Some(5_000), 0));
    let waits = job(&core, "waits").unwrap();
    assert_eq!((waits.placed_ms, waits.missing, waits.sessions_below), (None, 3, 2));
    assert!((runs.share - 0.5).abs() < 1e-9 && waits.share == 0.0);
    for number in 0..3 {
        core.apply(Event::PodDeleted(format!("waits-{number}")));
    }
    core.apply(Event::PodGroupDeleted(ObjectKey::new("ns", "waits")));
    assert!(job(&core, "waits").is_none());
}
