//! Plays a story to the core and to the reference at the same time and compares what each session decides.

use std::collections::BTreeMap;

use tephra_api::conf::SchedulerConf;
use tephra_core::decision::Decision;
use tephra_core::event::{
    Event, NodeObject, ObjectKey, PodGroupObject, PodObject, PodPhase, QueueObject, QueueState,
};
use tephra_core::{Core, Options};

use crate::model::{Decided, Model};
use crate::objects::app;
use crate::story::{Step, Story, configuration, namespaces, priority_classes, queue_name};

/// One bind: gang, pod uid, node.
pub type Bind = (ObjectKey, String, String);

/// Both schedulers and the objects as the API server would have them.
pub struct Lockstep {
    pub core: Core,
    model: Model,
    nodes: BTreeMap<String, NodeObject>,
    pods: BTreeMap<String, PodObject>,
    groups: BTreeMap<ObjectKey, PodGroupObject>,
    queues: BTreeMap<String, QueueObject>,
    sessions: i64,
    now_ms: i64,
    /// All binds so far.
    pub binds: Vec<Bind>,
    /// How binds end, in turn.
    ends: Vec<u8>,
    ended: usize,
}

impl Lockstep {
    /// Nothing has happened yet.
    pub fn new(conf: &SchedulerConf, ends: Vec<u8>) -> Self {
        Self {
            core: Core::new(Options::default(), conf),
            model: Model::new(conf),
            nodes: BTreeMap::new(),
            pods: BTreeMap::new(),
            groups: BTreeMap::new(),
            queues: BTreeMap::new(),
            sessions: 0,
            now_ms: 0,
            binds: Vec::new(),
            ends,
            ended: 0,
        }
    }

    /// Plays a whole story; gives the first difference.
    pub fn play(story: &Story) -> Result<Self, String> {
        let mut both = Self::new(&configuration(story.conf), story.ends.clone());
        for namespace in namespaces() {
            both.tell(Event::Namespace(namespace));
        }
        for class in priority_classes() {
            both.tell(Event::PriorityClass(class));
        }
        for (number, queue) in story.queues.iter().enumerate() {
            both.tell(Event::Queue(queue.object(number)));
        }
        for (number, node) in story.nodes.iter().enumerate() {
            both.tell(Event::Node(node.object(number)));
        }
        for (number, resident) in story.residents.iter().enumerate() {
            both.tell(Event::Pod(resident.object(number, story.nodes.len())));
        }
        let mut arrivals = story.gangs.iter().enumerate();
        for (number, gang) in arrivals.by_ref().take(story.present) {
            both.arrive(gang.objects(number, story.queues.len()));
        }
        both.session()?;
        for (at, step) in story.steps.iter().enumerate() {
            match step {
                Step::Session => both.session()?,
                Step::Arrive => {
                    if let Some((number, gang)) = arrivals.next() {
                        both.arrive(gang.objects(number, story.queues.len()));
                    }
                }
                step => both.happen(story, at, step),
            }
        }
        both.session()?;
        both.session()?;
        Ok(both)
    }

    fn arrive(&mut self, (group, pods): (PodGroupObject, Vec<PodObject>)) {
        self.tell(Event::PodGroup(group));
        for pod in pods {
            self.tell(Event::Pod(pod));
        }
    }

    fn happen(&mut self, story: &Story, at: usize, step: &Step) {
        let node = |number: u8| number as usize % story.nodes.len();
        let queue = |number: u8| number as usize % story.queues.len();
        match step {
            Step::Leave(pod) => self.change_pod(*pod, |pod| pod.deleting = true),
            Step::Succeed(pod) => self.change_pod(*pod, |pod| {
                if pod.node.is_some() {
                    pod.phase = PodPhase::Succeeded;
                }
            }),
            Step::Fail(pod) => self.change_pod(*pod, |pod| {
                if pod.node.is_some() {
                    pod.phase = PodPhase::Failed;
                }
            }),
            Step::Lose(pod) => self.change_pod(*pod, |pod| {
                if pod.node.is_some() {
                    pod.phase = PodPhase::Unknown;
                }
            }),
            Step::Ungate(pod) => self.change_pod(*pod, |pod| pod.gated = false),
            Step::Relabel(pod, number) => self.change_pod(*pod, |pod| {
                pod.labels = vec![("app".to_owned(), app(*number))];
            }),
            Step::MoveGang(number, to) => {
                let at = *number as usize % self.groups.len().max(1);
                if let Some(group) = self.groups.values().nth(at) {
                    let queue = queue_name(queue(*to));
                    self.tell(Event::PodGroup(PodGroupObject { queue, ..group.clone() }));
                }
            }
            Step::Repeat(pod) => self.change_pod(*pod, |_| {}),
            Step::DeletePod(pod) => {
                if let Some(uid) = self.pick_pod(*pod) {
                    self.tell(Event::PodDeleted(uid));
                }
            }
            Step::DeleteNode(number) => {
                self.tell(Event::NodeDeleted(format!("node-{}", node(*number))));
            }
            Step::RestoreNode(number) => {
                let number = node(*number);
                self.tell(Event::Node(story.nodes[number].object(number)));
            }
            Step::Cordon(number) => {
                if let Some(node) = self.nodes.get(&format!("node-{}", node(*number))) {
                    let changed = NodeObject { unschedulable: !node.unschedulable, ..node.clone() };
                    self.tell(Event::Node(changed));
                }
            }
            Step::ReshapeNode(number, shape) => {
                let number = node(*number);
                let mut seed = story.nodes[number].clone();
                seed.shape = *shape;
                self.tell(Event::Node(seed.object(number)));
            }
            Step::DeleteGang(number) => {
                let at = *number as usize % self.groups.len().max(1);
                if let Some(key) = self.groups.keys().nth(at).cloned() {
                    self.tell(Event::PodGroupDeleted(key));
                }
            }
            Step::ChangeMinimum(number, minimum) => {
                let at = *number as usize % self.groups.len().max(1);
                if let Some(group) = self.groups.values().nth(at) {
                    let min_member = i32::from(*minimum);
                    self.tell(Event::PodGroup(PodGroupObject { min_member, ..group.clone() }));
                }
            }
            Step::ChangeWeight(number, weight) => {
                self.change_queue(queue(*number), |queue| queue.weight = *weight);
            }
            Step::CloseQueue(number) => {
                self.change_queue(queue(*number), |queue| queue.state = QueueState::Closed);
            }
            Step::DeleteQueue(number) => self.tell(Event::QueueDeleted(queue_name(queue(*number)))),
            Step::RestoreQueue(number) => {
                let number = queue(*number);
                self.tell(Event::Queue(story.queues[number].object(number)));
            }
            Step::ChangePriority(value) => {
                let [mut class, _] = priority_classes();
                class.value = *value;
                self.tell(Event::PriorityClass(class));
            }
            Step::Resident(resident) => {
                self.tell(Event::Pod(resident.object(100 + at, story.nodes.len())));
            }
            Step::Session | Step::Arrive => {}
        }
    }

    fn pick_pod(&self, number: u16) -> Option<String> {
        self.pods.keys().nth(number as usize % self.pods.len().max(1)).cloned()
    }

    fn change_pod(&mut self, number: u16, change: impl FnOnce(&mut PodObject)) {
        if let Some(mut pod) = self.pick_pod(number).and_then(|uid| self.pods.get(&uid)).cloned() {
            change(&mut pod);
            self.tell(Event::Pod(pod));
        }
    }

    fn change_queue(&mut self, number: usize, change: impl FnOnce(&mut QueueObject)) {
        if let Some(mut queue) = self.queues.get(&queue_name(number)).cloned() {
            change(&mut queue);
            self.tell(Event::Queue(queue));
        }
    }

    /// Tells both of a change.
    pub fn tell(&mut self, event: Event) {
        match &event {
            Event::Node(node) => {
                self.nodes.insert(node.name.clone(), node.clone());
            }
            Event::NodeDeleted(name) => {
                self.nodes.remove(name);
            }
            Event::Pod(pod) => {
                self.pods.insert(pod.uid.clone(), pod.clone());
            }
            Event::PodDeleted(uid) => {
                self.pods.remove(uid);
            }
            Event::PodGroup(group) => {
                self.groups.insert(group.key.clone(), group.clone());
            }
            Event::PodGroupDeleted(key) => {
                self.groups.remove(key);
            }
            Event::Queue(queue) => {
                self.queues.insert(queue.name.clone(), queue.clone());
            }
            Event::QueueDeleted(name) => {
                self.queues.remove(name);
            }
            _ => {}
        }
        self.core.apply(event.clone());
        self.model.apply(event);
    }

    /// Runs a session on both and compares.
    pub fn session(&mut self) -> Result<(), String> {
        self.sessions += 1;
        // Now and then patience runs out between two sessions.
        self.now_ms += if self.sessions % 4 == 0 { 45_000 } else { 1_000 };
        let report = self.core.session(self.now_ms);
        let decided = self.model.session(self.now_ms);
        let mut binds: Vec<Bind> = Vec::new();
        for decision in &report.decisions {
            match decision {
                Decision::Bind(gang) => binds.extend(gang.binds.iter().map(|(pod, node)| {
                    (gang.group.clone(), pod.uid.to_string(), node.to_string())
                })),
                Decision::PodGroupStatus { group, status, .. } => {
                    if let Some(known) = self.groups.get_mut(group) {
                        known.status = status.clone();
                    }
                }
                _ => {}
            }
        }
        self.compare(&binds, &decided)?;
        let refused = decided.refused.len();
        // Later on, gangs for which nothing was released are not tried again by the core.
        if self.sessions == 1
            && !(refused..=refused + decided.incomplete).contains(&(report.refused as usize))
        {
            return Err(self.different("refused gangs", &report.refused, &decided.refused));
        }
        let findings = self.core.audit();
        if !findings.is_empty() {
            return Err(self.different("audit", &findings, &"nothing"));
        }
        for (key, group) in &self.groups {
            self.model.set_status(key, &group.status);
        }
        for (_, uid, node) in &binds {
            self.end_bind(uid, node);
        }
        self.binds.extend(binds);
        Ok(())
    }

    fn compare(&self, binds: &[Bind], decided: &Decided) -> Result<(), String> {
        let expected: Vec<Bind> = decided
            .binds
            .iter()
            .flat_map(|(gang, pods)| {
                pods.iter().map(|(pod, node)| (gang.clone(), pod.clone(), node.clone()))
            })
            .collect();
        if binds != expected {
            let at = binds.iter().zip(&expected).take_while(|(core, model)| core == model).count();
            let (core, model) = (binds.get(at..), expected.get(at..));
            return Err(self.different(&format!("binds from number {at} on"), &core, &model));
        }
        for (key, phase) in &decided.phases {
            let Some(group) = self.groups.get(key) else { continue };
            let core = group.status.phase;
            if core != *phase {
                return Err(self.different(&format!("phase of {key}"), &core, phase));
            }
        }
        Ok(())
    }

    fn different(
        &self,
        what: &str,
        core: &dyn std::fmt::Debug,
        model: &dyn std::fmt::Debug,
    ) -> String {
        format!("session {}: {what}\n  core:      {core:?}\n  reference: {model:?}", self.sessions)
    }

    /// The outside carries out a bind, or does not.
    fn end_bind(&mut self, uid: &str, node: &str) {
        let end = self.ends[self.ended % self.ends.len()];
        self.ended += 1;
        let Some(mut pod) = self.pods.get(uid).cloned() else { return };
        match end {
            0 => {}
            1 => self.tell(Event::BindFailed { uid: uid.to_owned(), message: "no".to_owned() }),
            2..=6 => {
                self.pods.entry(uid.to_owned()).and_modify(|pod| pod.node = Some(node.to_owned()));
                self.tell(Event::BindOk(uid.to_owned()));
            }
            _ => {
                pod.node = Some(node.to_owned());
                if end > 9 {
                    pod.phase = PodPhase::Running;
                }
                self.tell(Event::Pod(pod));
            }
        }
    }
}
