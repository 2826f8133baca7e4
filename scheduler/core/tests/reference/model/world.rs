//! What the reference knows of the world between sessions: the objects as the events tell them.

use std::collections::BTreeMap;
use std::sync::Arc;

use tephra_core::event::{
    Event, NamespaceObject, NodeObject, ObjectKey, PodGroupObject, PodGroupPhase, PodObject,
    PodPhase, PodSpec, PriorityClassObject, QueueObject,
};

/// Status of a task (2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Pending,
    Allocated,
    Pipelined,
    Binding,
    Bound,
    Running,
    Releasing,
    Succeeded,
    Failed,
    Unknown,
}

/// A pod and where it is.
#[derive(Clone, Debug)]
pub struct Pod {
    pub object: PodObject,
    pub status: Status,
    pub node: Option<String>,
    /// Asks for nothing but a place, and no node could give one.
    pub stuck: bool,
    /// A bind was refused and no session has seen that yet.
    pub bind_refused: bool,
}

impl Pod {
    /// The gang that it names.
    pub fn group(&self) -> Option<ObjectKey> {
        let group = self.object.group.as_ref()?;
        Some(ObjectKey::new(self.object.key.namespace.clone(), group.clone()))
    }

    /// Takes room on its node.
    pub fn occupies(&self) -> bool {
        self.node.is_some()
            && !matches!(self.status, Status::Pending | Status::Succeeded | Status::Failed)
    }
}

/// A slot in use: the name, and the node unless only pods mention it.
#[derive(Clone, Debug)]
pub struct Slot {
    pub name: String,
    pub node: Option<NodeObject>,
}

/// Binds of a gang that the API server refused since one went through.
#[derive(Clone, Copy, Debug, Default)]
pub struct Refusals {
    pub count: u32,
    /// With more than one, allocate does not try the gang before.
    pub retry_at_ms: i64,
}

/// A gang that broke: since when sessions have seen it so, and the places that its members left.
#[derive(Clone, Debug, Default)]
pub struct Broken {
    pub since_ms: Option<i64>,
    /// Slots with the specs of the pods that had room there, latest last.
    pub left: Vec<(usize, Arc<PodSpec>)>,
}

/// Every object.
#[derive(Debug, Default)]
pub struct World {
    pub slots: Vec<Option<Slot>>,
    pub pods: BTreeMap<String, Pod>,
    pub groups: BTreeMap<ObjectKey, PodGroupObject>,
    pub queues: BTreeMap<String, QueueObject>,
    pub priority_classes: BTreeMap<String, PriorityClassObject>,
    pub namespaces: BTreeMap<String, NamespaceObject>,
    /// Refused binds by gang.
    pub refusals: BTreeMap<ObjectKey, Refusals>,
    /// Since when gangs have been admitted without pods.
    pub idle: BTreeMap<ObjectKey, i64>,
    /// Gangs that lost members.
    pub broken: BTreeMap<ObjectKey, Broken>,
}

impl World {
    /// Hears of a change.
    pub fn apply(&mut self, event: Event) {
        match event {
            Event::Node(node) => {
                let at = self.slot(&node.name);
                if let Some(slot) = &mut self.slots[at] {
                    slot.node = Some(node);
                }
            }
            Event::NodeDeleted(name) => {
                if let Some(slot) = self.slots.iter_mut().flatten().find(|slot| slot.name == name) {
                    slot.node = None;
                }
            }
            Event::Pod(pod) => self.set_pod(pod),
            Event::PodDeleted(uid) => {
                if let Some(pod) = self.pods.remove(&uid) {
                    self.note_left_place(&pod);
                }
            }
            Event::PodGroup(group) => {
                self.groups.insert(group.key.clone(), group);
            }
            Event::PodGroupDeleted(key) => {
                self.groups.remove(&key);
                self.idle.remove(&key);
            }
            Event::Queue(queue) => {
                self.queues.insert(queue.name.clone(), queue);
            }
            Event::QueueDeleted(name) => {
                self.queues.remove(&name);
            }
            Event::PriorityClass(class) => {
                self.priority_classes.insert(class.name.clone(), class);
            }
            Event::PriorityClassDeleted(name) => {
                self.priority_classes.remove(&name);
            }
            Event::Namespace(namespace) => {
                self.namespaces.insert(namespace.name.clone(), namespace);
            }
            Event::NamespaceDeleted(name) => {
                self.namespaces.remove(&name);
            }
            Event::BindOk(uid) => {
                if let Some(pod) = self.pods.get_mut(&uid)
                    && pod.status == Status::Binding
                {
                    pod.status = Status::Bound;
                    let group = pod.group();
                    self.forgive(group);
                }
            }
            Event::BindFailed { uid, .. } => {
                if let Some(pod) = self.pods.get_mut(&uid)
                    && pod.status == Status::Binding
                {
                    pod.status = Status::Pending;
                    pod.node = None;
                    pod.bind_refused = true;
                    if let Some(group) = pod.group() {
                        self.refusals.entry(group).or_default().count += 1;
                    }
                }
            }
            Event::HyperNode(_)
            | Event::HyperNodeDeleted(_)
            | Event::VolumeClaim(_)
            | Event::VolumeClaimDeleted(_)
            | Event::Volume(_)
            | Event::VolumeDeleted(_)
            | Event::DisruptionBudget(_)
            | Event::DisruptionBudgetDeleted(_)
            | Event::DisruptionBudgetsReadable(_)
            | Event::ResourceQuota(_)
            | Event::ResourceQuotaDeleted(_)
            | Event::EvictOk(_)
            | Event::EvictFailed { .. }
            | Event::QueuePolicy(_)
            | Event::QueuePolicyDeleted(_) => {}
        }
        self.free_slots();
        let (groups, pods) = (&self.groups, &self.pods);
        let known = |key: &ObjectKey| {
            groups.contains_key(key) || pods.values().any(|pod| pod.group().as_ref() == Some(key))
        };
        self.refusals.retain(|key, _| known(key));
        self.broken.retain(|key, _| known(key));
    }

    /// A bind of the gang went through: refusals that sessions have seen are forgotten.
    fn forgive(&mut self, group: Option<ObjectKey>) {
        let fresh = |pod: &Pod| pod.bind_refused && pod.group() == group;
        if let Some(group) = &group
            && !self.pods.values().any(fresh)
            && let Some(refusals) = self.refusals.get_mut(group)
        {
            refusals.count = 0;
        }
    }

    /// A session sees which binds were refused since the last one; the gangs wait, longer each time.
    pub fn see_refusals(&mut self, now_ms: i64) {
        for (group, refusals) in &mut self.refusals {
            if refusals.count == 0 || !self.groups.contains_key(group) {
                continue;
            }
            let seen = self.pods.values_mut().filter(|pod| {
                let waits = pod.status == Status::Pending && pod.object.ours && !pod.object.gated;
                waits && pod.bind_refused && pod.group().as_ref() == Some(group)
            });
            if seen.map(|pod| pod.bind_refused = false).count() > 0 {
                refusals.retry_at_ms = now_ms + (1000 << refusals.count.saturating_sub(2).min(6));
            }
        }
    }

    /// Notes which gangs with a claim are admitted and have no pod with a node.
    pub fn see_idle_claims(&mut self, now_ms: i64) {
        for (key, group) in &self.groups {
            let admitted = group.status.phase == PodGroupPhase::Inqueue;
            let pods: Vec<&Pod> =
                self.pods.values().filter(|pod| pod.group().as_ref() == Some(key)).collect();
            let waits = pods.iter().any(|pod| pod.status == Status::Pending)
                && !pods.iter().any(|pod| super::session::is_allocated(pod.status));
            if admitted && group.min_resources.is_some() && (pods.is_empty() || waits) {
                self.idle.entry(key.clone()).or_insert(now_ms);
            } else {
                self.idle.remove(key);
            }
        }
    }

    fn set_pod(&mut self, object: PodObject) {
        let before = self.pods.get(&object.uid);
        if before.is_none() && !object.ours && object.node.is_none() {
            return;
        }
        // A bind that the watch does not show yet still holds (B11), and what was bound stays bound.
        let stuck = before.is_some_and(|pod| pod.stuck);
        let bind_refused = before.is_some_and(|pod| pod.bind_refused);
        let holds = [Status::Binding, Status::Bound, Status::Running];
        let assumed = before.filter(|pod| holds.contains(&pod.status) && object.node.is_none());
        let (mut status, mut node) = (status_of(&object), object.node.clone());
        if let Some(pod) = assumed {
            node = pod.node.clone();
            if !matches!(status, Status::Succeeded | Status::Failed) {
                status = pod.status;
            }
        }
        let pod = Pod { status, node, stuck, bind_refused, object };
        if let Some(before) = before.cloned()
            && !(pod.occupies() && pod.node == before.node)
            && pod.status != Status::Succeeded
        {
            self.note_left_place(&before);
        }
        if pod.occupies()
            && let Some(node) = &pod.node
        {
            self.slot(node);
        }
        self.pods.insert(pod.object.uid.clone(), pod);
    }

    /// A member of a gang is not on its node any more.
    fn note_left_place(&mut self, pod: &Pod) {
        let slot = self.slots.iter().position(|slot| {
            slot.as_ref().is_some_and(|slot| pod.node.as_ref() == Some(&slot.name))
        });
        if let (true, Some(slot), Some(group)) = (pod.occupies(), slot, pod.group()) {
            let least = self.groups.get(&group).map_or(0, |group| group.min_member.max(0));
            let left = &mut self.broken.entry(group).or_default().left;
            if left.len() >= (least as usize).max(1) {
                left.remove(0);
            }
            left.push((slot, pod.object.spec.clone()));
        }
    }

    /// Slot of a name, the lowest free one if it has none.
    fn slot(&mut self, name: &str) -> usize {
        let known =
            self.slots.iter().position(|slot| slot.as_ref().is_some_and(|s| s.name == name));
        if let Some(at) = known {
            return at;
        }
        let at = self.slots.iter().position(Option::is_none).unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[at] = Some(Slot { name: name.to_owned(), node: None });
        at
    }

    /// Gives back the slots of nodes that are gone and empty.
    fn free_slots(&mut self) {
        for slot in &mut self.slots {
            let gone = slot.as_ref().is_some_and(|slot| {
                slot.node.is_none()
                    && !self
                        .pods
                        .values()
                        .any(|pod| pod.occupies() && pod.node.as_ref() == Some(&slot.name))
            });
            if gone {
                *slot = None;
            }
        }
    }
}

fn status_of(pod: &PodObject) -> Status {
    match pod.phase {
        PodPhase::Running | PodPhase::Pending if pod.deleting => Status::Releasing,
        PodPhase::Running => Status::Running,
        PodPhase::Pending if pod.node.is_some() => Status::Bound,
        PodPhase::Pending => Status::Pending,
        PodPhase::Succeeded => Status::Succeeded,
        PodPhase::Failed => Status::Failed,
        PodPhase::Unknown => Status::Unknown,
    }
}
