//! The whole core with plugin `wfq`: gangs come, are bound, run for exactly their time and go. All gangs of a story have the same number of pods.

use std::collections::BTreeMap;
use std::sync::Arc;

use tephra_core::decision::Decision;
use tephra_core::event::{
    Event, NodeObject, ObjectKey, PodGroupObject, PodGroupPhase, PodGroupStatus, PodObject,
    PodPhase, PodSpec, QueueObject, QueueState,
};
use tephra_core::{Core, Options};

use crate::judge::{Judge, Running};
use crate::{Noise, leaves, tree};

const NODES: i64 = 4;
const SLOTS_OF_A_NODE: i64 = 6;

/// A gang of the story.
#[derive(Clone, Debug)]
struct Gang {
    leaf: usize,
    created_ms: i64,
    ms: i64,
    /// Nodes of its pods once they are bound.
    nodes: Vec<String>,
    ends_ms: Option<i64>,
}

struct Story {
    core: Core,
    conf: tephra_api::conf::SchedulerConf,
    parents: Vec<Option<usize>>,
    weights: Vec<i32>,
    pods: usize,
    gangs: BTreeMap<usize, Gang>,
    made: usize,
    /// Texts on the queues' objects.
    texts: BTreeMap<usize, String>,
    writes: usize,
    started: Vec<(i64, usize)>,
    now_ms: i64,
}

fn conf(entry: &str, store: &str) -> tephra_api::conf::SchedulerConf {
    let text = format!(
        "actions: \"enqueue, allocate\"\ntiers:\n- plugins:\n  - {{name: wfq, arguments: {{wfq.entry-charge: {entry}, wfq.store-interval: {store}}}}}\n  - name: gang\n  - name: predicates\n"
    );
    tephra_api::conf::SchedulerConf::parse(&text, tephra_core::registry::action_names()).unwrap()
}

fn name(at: usize) -> String {
    if at == 0 { "root".to_owned() } else { format!("q{at}") }
}

impl Story {
    fn new(
        parents: &[Option<usize>],
        weights: &[i32],
        pods: usize,
        entry: &str,
        store: &str,
    ) -> Self {
        let conf = conf(entry, store);
        let mut story = Self {
            core: Core::new(Options::default(), &conf),
            conf,
            parents: parents.to_vec(),
            weights: weights.to_vec(),
            pods,
            gangs: BTreeMap::new(),
            made: 0,
            texts: BTreeMap::new(),
            writes: 0,
            started: Vec::new(),
            now_ms: 1_000_000,
        };
        story.tell_all();
        story
    }

    /// A core without memory hears of everything there is.
    fn tell_all(&mut self) {
        for node in 0..NODES {
            self.core.apply(Event::Node(NodeObject {
                name: format!("n{node}"),
                allocatable: vec![
                    ("cpu".to_owned(), SLOTS_OF_A_NODE * 1000),
                    ("memory".to_owned(), 1 << 40),
                    ("pods".to_owned(), 1000),
                ],
                ..NodeObject::default()
            }));
        }
        for at in 0..self.parents.len() {
            let text = self.texts.get(&at).cloned();
            let key = tephra_api::keys::FAIRNESS.to_owned();
            self.core.apply(Event::Queue(QueueObject {
                name: name(at),
                uid: name(at),
                created_ms: at as i64,
                weight: self.weights[at],
                parent: self.parents[at].map(name).unwrap_or_default(),
                state: QueueState::Open,
                reclaimable: true,
                annotations: text.map(|text| (key, text)).into_iter().collect(),
                ..QueueObject::default()
            }));
        }
        let gangs: Vec<usize> = self.gangs.keys().copied().collect();
        gangs.into_iter().for_each(|gang| self.tell(gang));
    }

    fn tell(&mut self, number: usize) {
        let gang = &self.gangs[&number];
        let phase =
            if gang.ends_ms.is_some() { PodGroupPhase::Running } else { PodGroupPhase::Inqueue };
        self.core.apply(Event::PodGroup(PodGroupObject {
            key: ObjectKey::new("ns", format!("g{number}")),
            uid: format!("g{number}"),
            created_ms: gang.created_ms,
            queue: name(gang.leaf),
            min_member: self.pods as i32,
            status: PodGroupStatus { phase, ..PodGroupStatus::default() },
            ..PodGroupObject::default()
        }));
        for pod in 0..self.pods {
            let node = gang.nodes.get(pod).cloned();
            self.core.apply(Event::Pod(PodObject {
                key: ObjectKey::new("ns", format!("g{number}-{pod}")),
                uid: format!("g{number}-{pod}"),
                ours: true,
                group: Some(format!("g{number}")),
                phase: if node.is_some() { PodPhase::Running } else { PodPhase::Pending },
                node,
                spec: Arc::new(PodSpec {
                    namespace: "ns".to_owned(),
                    requests: vec![("cpu".to_owned(), 1000), ("pods".to_owned(), 1)],
                    ..PodSpec::default()
                }),
                ..PodObject::default()
            }));
        }
    }

    fn submit(&mut self, leaf: usize, ms: i64) {
        let (number, created_ms) = (self.made, self.now_ms);
        self.made += 1;
        self.gangs.insert(number, Gang { leaf, created_ms, ms, nodes: Vec::new(), ends_ms: None });
        self.tell(number);
    }

    fn waiting(&self, leaf: usize) -> usize {
        self.gangs.values().filter(|gang| gang.leaf == leaf && gang.ends_ms.is_none()).count()
    }

    fn running(&self) -> Vec<Running> {
        let running = |gang: &Gang| {
            let slots = self.pods as i128;
            gang.ends_ms.map(|ends_ms| Running { leaf: gang.leaf, slots, ends_ms })
        };
        self.gangs.values().filter_map(running).collect()
    }

    fn session(&mut self) {
        loop {
            let report = self.core.session(self.now_ms);
            for decision in report.decisions {
                match decision {
                    Decision::Bind(bind) => {
                        let number: usize =
                            bind.group.name.trim_start_matches('g').parse().unwrap();
                        let gang = self.gangs.get_mut(&number).unwrap();
                        gang.nodes = bind.binds.iter().map(|(_, node)| node.to_string()).collect();
                        gang.ends_ms = Some(self.now_ms + gang.ms);
                        self.started.push((self.now_ms, number));
                        for (pod, _) in &bind.binds {
                            self.core.apply(Event::BindOk(pod.uid.to_string()));
                        }
                        self.tell(number);
                    }
                    Decision::QueueFairness { queue, text } => {
                        self.writes += 1;
                        let at = (0..self.parents.len()).find(|&at| name(at) == queue).unwrap();
                        self.texts.insert(at, text);
                    }
                    _ => {}
                }
            }
            if report.bound == 0 {
                break;
            }
        }
        assert_eq!(self.core.audit(), []);
    }

    /// Time passes; gangs end.
    fn run(&mut self, now_ms: i64) {
        self.now_ms = now_ms;
        let over = |gang: &Gang| gang.ends_ms.is_some_and(|end| end <= now_ms);
        let ended: Vec<usize> =
            self.gangs.iter().filter(|(_, gang)| over(gang)).map(|(&number, _)| number).collect();
        for number in ended {
            self.gangs.remove(&number);
            for pod in 0..self.pods {
                self.core.apply(Event::PodDeleted(format!("g{number}-{pod}")));
            }
            let key = ObjectKey::new("ns", format!("g{number}"));
            self.core.apply(Event::PodGroupDeleted(key));
        }
    }

    fn next_end(&self) -> Option<i64> {
        self.gangs.values().filter_map(|gang| gang.ends_ms).min()
    }

    fn restart(&mut self) {
        self.core = Core::new(Options::default(), &self.conf);
        self.tell_all();
    }
}

/// Plays a random story; after each of the steps given the scheduler restarts and looks at once. Gives what started when, and how many pairs waited together.
fn play(seed: u64, store: &str, restarts: &[usize]) -> (Vec<(i64, usize)>, usize) {
    let mut noise = Noise(seed);
    let parents = tree(&mut noise);
    let weights: Vec<i32> = parents.iter().map(|_| 1 + noise.below(9) as i32).collect();
    let entry_s = [0, 5, 60][noise.below(3) as usize];
    let pods = [1, 2, 3, 6][noise.below(4) as usize];
    let steady = noise.below(2) == 0;
    let leaves = leaves(&parents);
    let mut story = Story::new(&parents, &weights, pods, &format!("{entry_s}s"), store);
    let wide: Vec<i128> = weights.iter().map(|&weight| weight.into()).collect();
    let slots = i128::from(NODES * SLOTS_OF_A_NODE);
    let mut judge = Judge::new(&parents, &wide, slots, entry_s * 1000);
    for step in 0..40 {
        for &leaf in &leaves {
            while (steady || noise.below(5) == 0) && story.waiting(leaf) < 24 / pods {
                story.submit(leaf, 1 + noise.below(100_000) as i64);
            }
        }
        story.session();
        if restarts.contains(&step) {
            story.restart();
            story.session();
        }
        let waiting: Vec<usize> =
            leaves.iter().copied().filter(|&leaf| story.waiting(leaf) > 0).collect();
        let running = story.running();
        judge.see(story.now_ms, &running, &waiting);
        let pause = story.now_ms + 1 + noise.below(50_000) as i64;
        let next = story.next_end().map_or(pause, |end| if steady { end } else { end.min(pause) });
        judge.run(&running, next - story.now_ms);
        story.run(next);
    }
    let pairs = judge.assert_fair(&format!("seed {seed}"));
    (story.started, pairs)
}

#[test]
fn the_core_keeps_the_bound_and_decides_alike_each_time() {
    let pairs: usize = (0..200)
        .map(|seed| {
            let (started, pairs) = play(seed, "5s", &[]);
            if seed % 10 == 0 {
                assert_eq!(play(seed, "5s", &[]).0, started, "seed {seed}");
            }
            pairs
        })
        .sum();
    assert!(pairs > 300, "stories in which nobody waits prove nothing: {pairs}");
}

#[test]
fn a_scheduler_that_restarts_goes_on_as_if_nothing_had_happened() {
    for seed in 0..100 {
        let (undisturbed, _) = play(seed, "0s", &[]);
        let (restarted, _) = play(seed, "0s", &[7, 8, 20, 33]);
        assert_eq!(restarted, undisturbed, "seed {seed}");
    }
}

#[test]
fn without_what_the_objects_carry_a_restart_forgets_whose_turn_it_is() {
    let turn = |forget: bool| {
        let mut story = Story::new(&[None, Some(0), Some(0)], &[1, 1, 1], 6, "0s", "0s");
        (0..4).for_each(|_| story.submit(1, 10_000));
        story.session();
        story.submit(1, 10_000);
        story.submit(2, 20_000);
        // Half way the younger queue has waited, the older one has had all.
        story.run(story.now_ms + 5_000);
        story.session();
        if forget {
            story.texts.clear();
        }
        story.restart();
        story.run(story.now_ms + 5_000);
        story.session();
        story.started[4].1
    };
    assert_eq!((turn(false), turn(true)), (5, 4));
}

#[test]
fn one_job_beside_ten_thousand_of_another_team_gets_the_first_slot_that_is_freed() {
    let mut story = Story::new(&[None, Some(0), Some(0)], &[1, 1, 1], 6, "60s", "5s");
    (0..1000).for_each(|at| story.submit(1, 60_000 + at * 1000));
    story.session();
    story.run(story.now_ms + 1_000);
    story.submit(2, 60_000);
    story.session();
    let first_end = story.next_end().unwrap();
    story.run(first_end);
    story.session();
    assert_eq!(story.started[4], (first_end, 1000));
}

#[test]
fn a_queue_is_written_at_starts_ends_and_changes_of_its_backlog_and_no_oftener_than_it_may() {
    let writes = |store: &str| {
        let mut story = Story::new(&[None, Some(0)], &[1, 1], 6, "60s", store);
        let mut seen = Vec::new();
        (0..4).for_each(|_| story.submit(1, 2_500));
        for _ in 0..6 {
            story.session();
            seen.push(story.writes);
            story.run(story.now_ms + 1_000);
        }
        seen
    };
    // It starts and waits no more; it ends.
    assert_eq!(writes("0s"), [1, 1, 1, 2, 2, 2]);
    assert_eq!(writes("5s"), [1, 1, 1, 1, 1, 2]);
}
