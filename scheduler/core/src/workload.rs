//! Synthetic clusters for benches: deterministic event streams, produced piece by piece so that a million pods
//! cost little beyond what the core keeps of them. [`BenchWorkload`] is a mixed GPU cluster with resident pods and
//! a thousand waiting gangs; [`VolcanoWorkload`] repeats what the real Volcano was timed on; [`TopologyWorkload`] has racks and spines.

mod topology;

use std::sync::Arc;

use crate::event::{
    Amounts, Event, GroupCondition, Labels, NodeObject, NodeSelectorTerm, ObjectKey, Operator,
    PodGroupObject, PodGroupPhase, PodGroupStatus, PodObject, PodPhase, PodSpec, QueueObject,
    QueueState, Requirement, Taint, TaintEffect, Toleration,
};

pub use topology::TopologyWorkload;

const GIB: i64 = 1 << 30;
const GPU: &str = "nvidia.com/gpu";
const ZONE: &str = "topology.kubernetes.io/zone";
const GPU_TYPE: &str = "accelerator";
const POOL: &str = "node-pool";
const TAINT: &str = "reserved";
const NAMESPACE: &str = "bench";
/// Gangs that wait.
pub const GANGS: u32 = 1_000;
const QUEUES: u32 = 100;
const CLASSES: u32 = 64;
const ZONES: u32 = 4;
const POOLS: u32 = 16;
/// Nodes next to each other that look alike.
const RACK: u32 = 32;
/// Resident pods of one PodGroup.
const RESIDENT_GANG: u32 = 100;

/// A small generator (splitmix64): one number per call from a counter, so that any part of a workload can be
/// made without making what comes before it.
fn noise(seed: u64, stream: u64, at: u64) -> u64 {
    let mut z = seed
        .wrapping_add(stream.wrapping_mul(0xD1B5_4A32_D192_ED03))
        .wrapping_add(at.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A uid of the usual length.
fn uid(seed: u64, stream: u64, at: u64) -> String {
    let (a, b) = (noise(seed, stream, at), noise(seed, stream + 1000, at));
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        a >> 32,
        a >> 16 & 0xFFFF,
        a & 0xFFFF,
        b >> 48,
        b & 0xFFFF_FFFF_FFFF
    )
}

/// Milli-CPU, bytes, whole GPUs and pods as amounts in stored units.
pub fn amounts(cpu: i64, memory: i64, gpus: i64, pods: i64) -> Amounts {
    let mut amounts = vec![("cpu".to_owned(), cpu), ("memory".to_owned(), memory)];
    if gpus > 0 {
        amounts.push((GPU.to_owned(), gpus.saturating_mul(1000)));
    }
    amounts.push(("pods".to_owned(), pods));
    amounts
}

fn template(cpu: i64, memory: i64, gpus: i64) -> PodSpec {
    PodSpec {
        namespace: NAMESPACE.to_owned(),
        requests: amounts(cpu, memory, gpus, 1),
        nonzero: [cpu, memory],
        ..PodSpec::default()
    }
}

/// A hash over an ordered list of binds (64-bit FNV-1a): equal lists, equal hashes, on every machine.
#[derive(Clone, Copy, Debug)]
pub struct DecisionHash(u64);

impl Default for DecisionHash {
    fn default() -> Self {
        Self(0xCBF2_9CE4_8422_2325)
    }
}

impl DecisionHash {
    /// Takes in the next bind.
    pub fn bind(&mut self, pod_uid: &str, node: &str) {
        for byte in pod_uid.bytes().chain([0]).chain(node.bytes()).chain([0]) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
        }
    }

    /// The hash so far, as 16 hexadecimal digits.
    pub fn text(self) -> String {
        format!("{:016x}", self.0)
    }
}

/// A mixed cluster (core.md 5.4): nodes of three shapes with 8 GPUs and CPU nodes, taints on 8 %, resident pods, 100
/// flat queues, and [`GANGS`] waiting gangs of 64 classes with an eighth to eight times `gang` pods, every fifth with a
/// second role. Residents fill the cluster so far that about half of what waits cannot fit.
#[derive(Clone, Debug)]
pub struct BenchWorkload {
    nodes: u32,
    pods: u32,
    gang: u32,
    seed: u64,
    residents: [Arc<PodSpec>; 2],
    classes: Vec<Arc<PodSpec>>,
    launcher: Arc<PodSpec>,
    /// GPUs in use per 8, times 1000.
    fill: u64,
}

/// The mixed cluster of these many nodes, resident pods, and gangs of about this size.
pub fn bench_workload(nodes: u32, pods: u32, gang: u32, seed: u64) -> BenchWorkload {
    let mut workload = BenchWorkload {
        nodes: nodes.max(1),
        pods,
        gang: gang.max(1),
        seed,
        residents: [0, 1].map(|gpus| Arc::new(template(2_000, 8 * GIB, gpus))),
        classes: (0..CLASSES).map(|class| Arc::new(class_template(class))).collect(),
        launcher: Arc::new(template(2_000, 4 * GIB, 0)),
        fill: 0,
    };
    let demand: i64 = (0..GANGS)
        .map(|gang| i64::from(workload.size(gang)) * class_gpus(workload.class(gang)))
        .sum();
    let gpus: i64 = (0..workload.nodes).map(|node| workload.gpus(node)).sum();
    let used = (gpus - demand / 2).clamp(gpus / 20, gpus * 19 / 20);
    workload.fill = (used * 8_000 / gpus.max(1)) as u64;
    workload
}

/// GPUs that each pod of a class asks for.
fn class_gpus(class: u32) -> i64 {
    [1, 1, 2, 1, 1, 4, 1, 2][(class / 8 % 8) as usize]
}

/// A third of the classes takes any node, a third one GPU type, a sixth one zone, a sixth one pool; some tolerate the
/// taint.
fn class_template(class: u32) -> PodSpec {
    let gpus = class_gpus(class);
    let mut spec = template(4_000 * gpus, 32 * GIB * gpus, gpus);
    let select = |key: &str, value: String| vec![(key.to_owned(), value)];
    let which = class / 6;
    match class % 6 {
        0 | 1 => {}
        2 => spec.node_selector = select(GPU_TYPE, gpu_type(which % 3).to_owned()),
        3 => {
            spec.required_node_terms = vec![NodeSelectorTerm {
                expressions: vec![Requirement {
                    key: GPU_TYPE.to_owned(),
                    operator: Operator::In,
                    values: vec![gpu_type(which % 3).to_owned()],
                }],
                fields: Vec::new(),
            }];
        }
        4 => spec.node_selector = select(ZONE, format!("zone-{}", which % ZONES)),
        _ => spec.node_selector = select(POOL, format!("pool-{}", which % POOLS)),
    }
    if class % 8 == 7 {
        spec.tolerations =
            vec![Toleration { key: TAINT.to_owned(), exists: true, ..Toleration::default() }];
    }
    spec
}

fn gpu_type(shape: u32) -> &'static str {
    ["a100", "h100", "h200"][shape as usize % 3]
}

impl BenchWorkload {
    fn noise(&self, stream: u64, at: u32) -> u64 {
        noise(self.seed, stream, u64::from(at))
    }

    /// Shape of a node: 0..2 have GPUs, 3 has none (one rack in ten).
    fn shape(&self, node: u32) -> u32 {
        match self.noise(1, node / RACK) % 10 {
            9 => 3,
            n => n as u32 % 3,
        }
    }

    fn gpus(&self, node: u32) -> i64 {
        if self.shape(node) == 3 { 0 } else { 8 }
    }

    fn node(&self, node: u32) -> NodeObject {
        let shape = self.shape(node);
        let (cpu, memory) = [(64, 512), (96, 768), (128, 1024), (32, 128)][shape as usize];
        let rack = node / RACK;
        let name = node_name(node);
        let mut labels: Labels = vec![
            ("kubernetes.io/hostname".to_owned(), name.clone()),
            (POOL.to_owned(), format!("pool-{}", rack % POOLS)),
            (ZONE.to_owned(), format!("zone-{}", self.noise(2, rack) % u64::from(ZONES))),
        ];
        if shape < 3 {
            labels.insert(0, (GPU_TYPE.to_owned(), gpu_type(shape).to_owned()));
        }
        let tainted = self.noise(3, node) % 100 < 8;
        NodeObject {
            name,
            labels,
            taints: if tainted {
                vec![Taint {
                    key: TAINT.to_owned(),
                    value: String::new(),
                    effect: TaintEffect::NoSchedule,
                }]
            } else {
                Vec::new()
            },
            unschedulable: false,
            allocatable: amounts(cpu * 1000, memory * GIB, self.gpus(node), 110),
            images: Vec::new(),
        }
    }

    /// A resident pod; `generation` counts how often it was replaced.
    fn resident(&self, number: u32, generation: u32) -> PodObject {
        let node = (u64::from(number) * u64::from(self.nodes) / u64::from(self.pods.max(1))) as u32;
        let first = (u64::from(node) * u64::from(self.pods)).div_ceil(u64::from(self.nodes)) as u32;
        let gpu = self.gpus(node) > 0 && u64::from(number - first) < self.holders(node);
        let gang = number / RESIDENT_GANG;
        PodObject {
            key: ObjectKey::new(NAMESPACE, format!("resident-{gang}-{number}")),
            uid: uid(self.seed, 10 + u64::from(generation), u64::from(number)),
            created_ms: 1_000,
            ours: true,
            group: Some(format!("resident-{gang}")),
            priority: 1,
            preemptable: true,
            phase: PodPhase::Running,
            node: Some(node_name(node)),
            spec: self.residents[usize::from(gpu)].clone(),
            ..PodObject::default()
        }
    }

    /// GPUs that residents hold on a GPU node, one each by its first pods.
    fn holders(&self, node: u32) -> u64 {
        ((self.fill + self.noise(4, node) % 1000) / 1000).min(8)
    }

    fn queue_of(&self, stream: u64, gang: u32) -> String {
        format!("queue-{}", self.noise(stream, gang) % u64::from(QUEUES))
    }

    fn size(&self, gang: u32) -> u32 {
        // From an eighth to eight times the given size, as many below as above it.
        let eighths = [1, 2, 4, 8, 8, 16, 32, 64][(self.noise(5, gang) % 8) as usize];
        (self.gang * eighths / 8).max(1)
    }

    fn class(&self, gang: u32) -> u32 {
        (self.noise(6, gang) % u64::from(CLASSES)) as u32
    }

    /// Pods of the second role of a gang, 0 for most.
    fn launchers(&self, gang: u32) -> u32 {
        if gang % 5 == 4 { (self.size(gang) / 8).max(1) } else { 0 }
    }

    /// Everything that is there before anything waits: queues, nodes, resident pods with their PodGroups.
    pub fn residents(&self, emit: &mut impl FnMut(Event)) {
        for queue in 0..QUEUES {
            emit(Event::Queue(QueueObject {
                name: format!("queue-{queue}"),
                uid: uid(self.seed, 7, u64::from(queue)),
                created_ms: 1,
                weight: 1 + (self.noise(7, queue) % 4) as i32,
                reclaimable: true,
                state: QueueState::Open,
                ..QueueObject::default()
            }));
        }
        (0..self.nodes).for_each(|node| emit(Event::Node(self.node(node))));
        for gang in 0..self.pods.div_ceil(RESIDENT_GANG) {
            let members = (self.pods - gang * RESIDENT_GANG).min(RESIDENT_GANG);
            let key = ObjectKey::new(NAMESPACE, format!("resident-{gang}"));
            let mut group = waiting_group(key, uid(self.seed, 8, u64::from(gang)), members);
            group.queue = self.queue_of(8, gang);
            group.created_ms = 1_000;
            group.status = PodGroupStatus {
                phase: PodGroupPhase::Running,
                running: members as i32,
                conditions: vec![GroupCondition {
                    kind: tephra_api::reasons::SCHEDULED.to_owned(),
                    status: true,
                    ..GroupCondition::default()
                }],
                ..PodGroupStatus::default()
            };
            emit(Event::PodGroup(group));
        }
        (0..self.pods).for_each(|pod| emit(Event::Pod(self.resident(pod, 0))));
    }

    /// The gangs that wait: half of them are admitted, half name their minimum and must be.
    pub fn waiting(&self, emit: &mut impl FnMut(Event)) {
        for gang in 0..GANGS {
            let (size, launchers) = (self.size(gang), self.launchers(gang));
            let key = self.gang_key(gang);
            let mut group =
                waiting_group(key.clone(), uid(self.seed, 9, u64::from(gang)), size + launchers);
            group.queue = self.queue_of(9, gang);
            group.created_ms = 2_000 + i64::from(gang / 10);
            if gang % 2 == 0 {
                group.status.phase = PodGroupPhase::Inqueue;
            }
            let class = &self.classes[self.class(gang) as usize];
            let mut minimum = class.requests.clone();
            for (name, amount) in &mut minimum {
                let of_launcher = self
                    .launcher
                    .requests
                    .iter()
                    .find(|(known, _)| known == name)
                    .map_or(0, |r| r.1);
                *amount = *amount * i64::from(size) + of_launcher * i64::from(launchers);
            }
            group.min_resources = Some(minimum);
            emit(Event::PodGroup(group));
            for number in 0..size + launchers {
                let launcher = number >= size;
                let role = if launcher { "launcher" } else { "worker" };
                emit(Event::Pod(PodObject {
                    key: ObjectKey::new(NAMESPACE, format!("gang-{gang}-{role}-{number}")),
                    uid: self.waiting_uid(gang, number),
                    created_ms: 2_000,
                    ours: true,
                    group: Some(key.name.clone()),
                    role: role.to_owned(),
                    priority: 1,
                    preemptable: true,
                    spec: if launcher { self.launcher.clone() } else { class.clone() },
                    ..PodObject::default()
                }));
            }
        }
    }

    fn gang_key(&self, gang: u32) -> ObjectKey {
        ObjectKey::new(NAMESPACE, format!("gang-{gang}"))
    }

    fn waiting_uid(&self, gang: u32, number: u32) -> String {
        uid(self.seed, 500, u64::from(gang) << 32 | u64::from(number))
    }

    /// Takes back all that [`BenchWorkload::waiting`] brought.
    pub fn withdraw(&self, emit: &mut impl FnMut(Event)) {
        for gang in 0..GANGS {
            for number in 0..self.size(gang) + self.launchers(gang) {
                emit(Event::PodDeleted(self.waiting_uid(gang, number)));
            }
            emit(Event::PodGroupDeleted(self.gang_key(gang)));
        }
    }

    /// A 0.1 % change, different for each `round`: so many resident pods are replaced, so many nodes tell of other
    /// amounts or labels.
    pub fn change(&self, round: u32, emit: &mut impl FnMut(Event)) {
        let (pods, nodes) = (self.pods.div_ceil(1000), self.nodes.div_ceil(1000));
        for at in 0..pods {
            // The rounds take different pods, spread over the cluster.
            let number = (at * 1000 + round % 1000).min(self.pods.saturating_sub(1));
            let generation = round / 1000;
            emit(Event::PodDeleted(self.resident(number, generation).uid));
            emit(Event::Pod(self.resident(number, generation + 1)));
        }
        for at in 0..nodes {
            let mut node = self.node((at * 1000 + round * 7 % 1000).min(self.nodes - 1));
            if at % 2 == 0 {
                node.labels.push(("zz-heartbeat".to_owned(), round.to_string()));
            } else if let Some(cpu) = node.allocatable.first_mut() {
                cpu.1 -= 1000;
            }
            emit(Event::Node(node));
        }
    }
}

/// The one queue of a cluster without teams.
fn default_queue(seed: u64) -> QueueObject {
    QueueObject {
        name: "default".to_owned(),
        uid: uid(seed, 7, 0),
        created_ms: 1,
        weight: 1,
        reclaimable: true,
        state: QueueState::Open,
        ..QueueObject::default()
    }
}

fn node_name(node: u32) -> String {
    format!("node-{node}")
}

fn waiting_group(key: ObjectKey, uid: String, members: u32) -> PodGroupObject {
    PodGroupObject { key, uid, min_member: members as i32, ..PodGroupObject::default() }
}

/// What the real Volcano was timed on (volcano-baseline.md): equal nodes of 128 CPU, 1 TiB and 256 pods, an empty
/// cluster, one queue, gangs of pods that ask for 1 CPU and 1 GiB.
#[derive(Clone, Copy, Debug)]
pub struct VolcanoWorkload {
    /// Gangs.
    pub gangs: u32,
    /// Pods of each.
    pub size: u32,
    /// Nodes.
    pub nodes: u32,
}

/// So many gangs of so many pods on so many nodes.
pub fn volcano_workload(gangs: u32, size: u32, nodes: u32) -> VolcanoWorkload {
    VolcanoWorkload { gangs, size, nodes }
}

impl VolcanoWorkload {
    /// Everything: the queue, nodes, gangs.
    pub fn events(&self, emit: &mut impl FnMut(Event)) {
        emit(Event::Queue(default_queue(0)));
        for node in 0..self.nodes {
            emit(Event::Node(Self::node(node)));
        }
        let spec = Arc::new(template(1_000, GIB, 0));
        for gang in 0..self.gangs {
            let key = ObjectKey::new(NAMESPACE, format!("gang-{gang}"));
            let mut group = waiting_group(key.clone(), uid(0, 9, u64::from(gang)), self.size);
            group.queue = "default".to_owned();
            group.created_ms = 2_000 + i64::from(gang);
            let size = i64::from(self.size);
            group.min_resources = Some(amounts(1_000 * size, GIB * size, 0, size));
            emit(Event::PodGroup(group));
            for number in 0..self.size {
                emit(Event::Pod(PodObject {
                    key: ObjectKey::new(NAMESPACE, format!("gang-{gang}-worker-{number}")),
                    uid: Self::uid(gang, number),
                    created_ms: 2_000,
                    ours: true,
                    group: Some(key.name.clone()),
                    role: "worker".to_owned(),
                    priority: 1,
                    preemptable: true,
                    spec: spec.clone(),
                    ..PodObject::default()
                }));
            }
        }
    }

    /// Takes back every gang.
    pub fn withdraw(&self, emit: &mut impl FnMut(Event)) {
        for gang in 0..self.gangs {
            for number in 0..self.size {
                emit(Event::PodDeleted(Self::uid(gang, number)));
            }
            emit(Event::PodGroupDeleted(ObjectKey::new(NAMESPACE, format!("gang-{gang}"))));
        }
    }

    /// A change of 0.1 % of the nodes, different for each `round`.
    pub fn change(&self, round: u32, emit: &mut impl FnMut(Event)) {
        for at in 0..self.nodes.div_ceil(1000) {
            let mut node = Self::node((at * 1000 + round) % self.nodes);
            if let Some(cpu) = node.allocatable.first_mut() {
                cpu.1 -= 1000;
            }
            emit(Event::Node(node));
        }
    }

    fn node(node: u32) -> NodeObject {
        NodeObject {
            name: node_name(node),
            labels: vec![("kubernetes.io/hostname".to_owned(), node_name(node))],
            allocatable: amounts(128_000, 1024 * GIB, 0, 256),
            ..NodeObject::default()
        }
    }

    fn uid(gang: u32, number: u32) -> String {
        uid(0, 500, u64::from(gang) << 32 | u64::from(number))
    }
}

pub mod preemption;
#[cfg(test)]
mod tests;
