//! A cluster without a free GPU, for the searches for victims (core.md 8.2): resident gangs of two priorities, four in five
//! of them rigid (all of their pods are their minimum), and gangs of a higher priority that need room.

use std::sync::Arc;

use super::{GIB, NAMESPACE, amounts, default_queue, node_name, noise, template, uid};
use crate::event::{
    Event, NodeObject, ObjectKey, PodGroupObject, PodGroupPhase, PodObject, PodPhase, PodSpec,
    PriorityClassObject,
};

/// GPUs of a node, each held by a pod.
const GPUS: u32 = 8;
/// Pods of a node that hold no GPU.
const CPU_PODS: u32 = 2;
/// Nodes of the pool that impossible gangs ask for.
const POOL: u32 = 64;

/// The cluster.
#[derive(Clone, Copy, Debug)]
pub struct PreemptionWorkload {
    /// Nodes, with ten resident pods each.
    pub nodes: u32,
    /// Seed of sizes and priorities.
    pub seed: u64,
}

impl PreemptionWorkload {
    /// Resident pods.
    pub fn pods(&self) -> u32 {
        self.nodes * (GPUS + CPU_PODS)
    }

    /// The full cluster.
    pub fn residents(&self, emit: &mut impl FnMut(Event)) {
        for (name, value) in [("low", 10), ("middle", 50), ("high", 100)] {
            let class = PriorityClassObject { name: name.to_owned(), value, global_default: false };
            emit(Event::PriorityClass(class));
        }
        emit(Event::Queue(default_queue(self.seed)));
        for node in 0..self.nodes {
            let pool = if node < POOL { "small" } else { "large" };
            emit(Event::Node(NodeObject {
                name: node_name(node),
                labels: vec![
                    ("kubernetes.io/hostname".to_owned(), node_name(node)),
                    ("pool".to_owned(), pool.to_owned()),
                ],
                allocatable: amounts(96_000, 768 * GIB, i64::from(GPUS), 110),
                ..NodeObject::default()
            }));
        }
        let on_gpus = self.gangs_on(0, GPUS, &Arc::new(template(8_000, 64 * GIB, 1)), emit);
        self.gangs_on(on_gpus, CPU_PODS, &Arc::new(template(8_000, 64 * GIB, 0)), emit);
    }

    /// Running gangs with so many pods a node, on neighbouring nodes. Gives the number of the next gang.
    fn gangs_on(
        &self,
        first: u32,
        per_node: u32,
        spec: &Arc<PodSpec>,
        emit: &mut impl FnMut(Event),
    ) -> u32 {
        let (mut gang, mut pod) = (first, 0);
        let pods = self.nodes * per_node;
        while pod < pods {
            let dice = noise(self.seed, 31, u64::from(gang));
            let size = (4 << (dice % 5)).min(pods - pod);
            let min = if dice >> 8 & 0xFF < 205 { size } else { size / 2 };
            let low = dice >> 16 & 0xFF < 154;
            self.gang(gang, min, if low { "low" } else { "middle" }, PodGroupPhase::Running, emit);
            for number in 0..size {
                let mut member = self.pod(gang, number, spec.clone());
                member.phase = PodPhase::Running;
                member.node = Some(node_name((pod + number) / per_node));
                emit(Event::Pod(member));
            }
            pod += size;
            gang += 1;
        }
        gang
    }

    /// A waiting gang of 64 to 512 pods that others can make room for.
    pub fn preemptor(&self, number: u32, emit: &mut impl FnMut(Event)) {
        let dice = noise(self.seed, 32, u64::from(number));
        let spec = Arc::new(template(8_000, 64 * GIB, 1 + (dice >> 32 & 1) as i64));
        let size = (64 + (dice % 449) as u32).min(self.nodes / 4).max(1);
        self.waiting(1 << 30 | number, size, &spec, emit);
    }

    /// A waiting gang that no eviction helps: it wants more nodes of a pool than there are.
    pub fn impossible(&self, number: u32, emit: &mut impl FnMut(Event)) {
        let mut spec = template(8_000, 64 * GIB, i64::from(GPUS));
        spec.node_selector = vec![("pool".to_owned(), "small".to_owned())];
        self.waiting(1 << 31 | number, POOL + 1, &Arc::new(spec), emit);
    }

    /// Takes an impossible gang back.
    pub fn withdraw_impossible(&self, number: u32, emit: &mut impl FnMut(Event)) {
        let gang = 1 << 31 | number;
        (0..=POOL).for_each(|pod| emit(Event::PodDeleted(self.pod_uid(gang, pod))));
        emit(Event::PodGroupDeleted(Self::key(gang)));
    }

    fn waiting(&self, gang: u32, size: u32, spec: &Arc<PodSpec>, emit: &mut impl FnMut(Event)) {
        self.gang(gang, size, "high", PodGroupPhase::Inqueue, emit);
        (0..size).for_each(|pod| emit(Event::Pod(self.pod(gang, pod, spec.clone()))));
    }

    fn gang(
        &self,
        gang: u32,
        min: u32,
        class: &str,
        phase: PodGroupPhase,
        emit: &mut impl FnMut(Event),
    ) {
        let mut group = PodGroupObject {
            key: Self::key(gang),
            uid: uid(self.seed, 33, u64::from(gang)),
            created_ms: 2_000 + i64::from(gang),
            queue: "default".to_owned(),
            min_member: min as i32,
            priority_class: class.to_owned(),
            ..PodGroupObject::default()
        };
        group.status.phase = phase;
        emit(Event::PodGroup(group));
    }

    fn pod(&self, gang: u32, number: u32, spec: Arc<PodSpec>) -> PodObject {
        PodObject {
            key: ObjectKey::new(NAMESPACE, format!("gang-{gang}-worker-{number}")),
            uid: self.pod_uid(gang, number),
            created_ms: 2_000,
            ours: true,
            group: Some(Self::key(gang).name),
            role: "worker".to_owned(),
            priority: 1,
            preemptable: true,
            spec,
            ..PodObject::default()
        }
    }

    fn key(gang: u32) -> ObjectKey {
        ObjectKey::new(NAMESPACE, format!("gang-{gang}"))
    }

    fn pod_uid(&self, gang: u32, number: u32) -> String {
        uid(self.seed, 34, u64::from(gang) << 32 | u64::from(number))
    }
}
