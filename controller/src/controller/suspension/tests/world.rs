//! A world of plain objects: a server that checks versions, an operator, a scheduler, and the controller's loop.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};
use tephra_api::{
    keys,
    suspension::{Intent, Mode, Owner, Record},
};

use crate::controller::suspension::{
    gang::{Gang, SlimPod, Top, annotation, pod_seen, stand_in_name},
    owner::Switched,
    steps::{Step, next},
    writes::{On, Write, writes},
};

pub(super) const START: i64 = 1_800_000_000;
/// Name of the gang's PodGroup and of its owner.
pub(super) const GANG: &str = "g";

/// Who makes the pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Job,
    PyTorchJob,
    Plain,
}

#[derive(Clone)]
pub(super) struct World {
    pub(super) kind: Kind,
    objects: BTreeMap<(On, String), Value>,
    pub(super) now: i64,
    version: u64,
    uids: u64,
    /// Pods that were stopped, by name.
    pub(super) stopped: Vec<String>,
    /// The server refuses patches of the owner.
    pub(super) refuses: bool,
    /// The operator does nothing.
    pub(super) lazy: bool,
    /// How often the controller died.
    pub(super) deaths: usize,
    /// What the controller remembers.
    former: Option<Owner>,
    refused: bool,
}

impl World {
    /// A gang of `pods` running pods.
    pub(super) fn new(kind: Kind, pods: usize) -> World {
        let mut world = World {
            kind,
            objects: BTreeMap::new(),
            now: START,
            version: 0,
            uids: 0,
            stopped: Vec::new(),
            refuses: false,
            lazy: false,
            deaths: 0,
            former: None,
            refused: false,
        };
        world.put(On::Group, group());
        match kind {
            Kind::Job => world
                .put(On::Owner, json!({"metadata": {"name": GANG}, "spec": {"parallelism": pods}})),
            Kind::PyTorchJob => {
                let spec = json!({"parallelism": pods, "runPolicy": {"cleanPodPolicy": "All"}});
                world.put(On::Owner, json!({"metadata": {"name": GANG}, "spec": spec}));
            }
            Kind::Plain => (0..pods).for_each(|nth| {
                let pod = world.pod(nth, &json!({(keys::RECREATE): "true"}));
                world.put(On::Pod, pod);
            }),
        }
        world.others();
        world
    }

    /// A plain pod that is not to be created again.
    pub(super) fn plain_pod(&mut self, nth: usize) {
        let pod = self.pod(nth, &json!({}));
        self.put(On::Pod, pod);
    }

    fn put(&mut self, on: On, mut object: Value) {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        if object["metadata"]["uid"].is_null() {
            self.uids += 1;
            object["metadata"]["uid"] = json!(format!("u{}", self.uids));
            let created = Timestamp::from_second(self.now).unwrap();
            object["metadata"]["creationTimestamp"] = json!(created.to_string());
        }
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        self.objects.insert((on, name), object);
    }

    pub(super) fn get(&self, on: On, name: &str) -> Option<&Value> {
        self.objects.get(&(on, name.to_owned()))
    }

    pub(super) fn group(&self) -> &Value {
        self.get(On::Group, GANG).expect("the PodGroup")
    }

    pub(super) fn stand_in(&self) -> Option<&Value> {
        self.get(On::Group, &stand_in_name(GANG))
    }

    pub(super) fn owner(&self) -> &Value {
        self.get(On::Owner, GANG).expect("the owner")
    }

    pub(super) fn pods(&self) -> Vec<&Value> {
        self.objects.iter().filter(|((on, _), _)| *on == On::Pod).map(|(_, pod)| pod).collect()
    }

    /// Merges a change into an object, as anybody may do at any time.
    pub(super) fn change(&mut self, on: On, name: &str, patch: &Value) {
        let mut object = self.get(on, name).expect("it exists").clone();
        json_patch::merge(&mut object, patch);
        self.put(on, object);
    }

    pub(super) fn annotate(&mut self, on: On, name: &str, key: &str, value: impl Into<Value>) {
        self.change(on, name, &json!({"metadata": {"annotations": {(key): value.into()}}}));
    }

    pub(super) fn remove(&mut self, on: On, name: &str) {
        self.objects.remove(&(on, name.to_owned()));
    }

    /// The scheduler wants the room within a minute.
    pub(super) fn intend(&mut self, mode: Mode) {
        let deadline = Timestamp::from_second(self.now + 60).unwrap();
        let intent = Intent {
            id: "s-1".into(),
            by: "ns/big".into(),
            reason: "Preempt".into(),
            deadline,
            mode,
        };
        self.annotate(On::Group, GANG, keys::SUSPEND, intent.text());
    }

    pub(super) fn switch(&self) -> &'static str {
        if self.kind == Kind::Job { "/spec/suspend" } else { "/spec/runPolicy/suspend" }
    }

    pub(super) fn suspended(&self) -> bool {
        self.kind != Kind::Plain && self.owner().pointer(self.switch()) == Some(&json!(true))
    }

    fn pod(&self, nth: usize, annotations: &Value) -> Value {
        let mut pod = json!({
            "metadata": {
                "name": format!("p-{nth}"), "namespace": "ns", "labels": {"nth": "x"},
                "annotations": {(keys::GROUP_NAME): GANG},
            },
            "spec": {"containers": [{"name": "c"}]},
        });
        json_patch::merge(&mut pod["metadata"]["annotations"], annotations);
        if self.kind != Kind::Plain {
            pod["metadata"]["ownerReferences"] = json!([{
                "apiVersion": self.api_version(), "kind": format!("{:?}", self.kind), "name": GANG,
                "uid": self.owner()["metadata"]["uid"], "controller": true,
            }]);
        }
        pod
    }

    fn api_version(&self) -> &'static str {
        if self.kind == Kind::Job { "batch/v1" } else { "kubeflow.org/v1" }
    }

    /// Everybody else does what there is to do: the operator, and a scheduler that binds the pods of a gang without a record.
    pub(super) fn others(&mut self) {
        if self.kind != Kind::Plain && !self.lazy {
            let names: Vec<String> = self.pods().iter().map(|pod| name(pod)).collect();
            if self.suspended() {
                names.iter().for_each(|name| self.stop(name));
                if self.kind == Kind::PyTorchJob {
                    self.remove(On::Group, GANG);
                }
            } else {
                let wanted = self.owner()["spec"]["parallelism"].as_u64().unwrap();
                for nth in 0..usize::try_from(wanted).unwrap() {
                    let pod = self.pod(nth, &json!({}));
                    if !names.contains(&name(&pod)) {
                        self.put(On::Pod, pod);
                    }
                }
                if self.kind == Kind::PyTorchJob && self.get(On::Group, GANG).is_none() {
                    self.put(On::Group, group());
                }
            }
        }
        let group = self.get(On::Group, GANG);
        if group.is_some_and(|group| annotation(group, keys::SUSPENDED).is_none()) {
            let names: Vec<String> = self.pods().iter().map(|pod| name(pod)).collect();
            for name in names {
                if self.get(On::Pod, &name).unwrap()["spec"]["nodeName"].is_null() {
                    self.change(On::Pod, &name, &json!({"spec": {"nodeName": "n"}}));
                }
            }
        }
    }

    fn stop(&mut self, pod: &str) {
        let waits = [GANG.to_owned(), stand_in_name(GANG)];
        let recorded = waits.iter().filter_map(|name| self.get(On::Group, name));
        let recorded = recorded.filter_map(|group| annotation(group, keys::SUSPENDED)).next();
        let record = Record::parse(recorded.expect("a record before a pod is stopped")).unwrap();
        assert_eq!(record.group, GANG);
        self.stopped.push(pod.to_owned());
        self.remove(On::Pod, pod);
    }

    /// Carries out a write as the server would; `false`: it refused.
    fn apply(&mut self, write: Write) -> bool {
        match write {
            Write::Patch { on, name, mut body } => {
                let Some(stored) = self.get(on, &name) else { return true };
                if on == On::Owner && self.refuses {
                    self.refused = true;
                    return false;
                }
                let metadata = body["metadata"].as_object_mut().unwrap();
                for field in ["uid", "resourceVersion"] {
                    let meant = metadata.remove(field);
                    assert!(meant.is_some() || on == On::Pod, "any version of {name} is patched");
                    if meant.is_some_and(|it| it != stored["metadata"][field]) {
                        return false;
                    }
                }
                self.change(on, &name, &body);
            }
            Write::Create { on, body } => {
                if self.get(on, &name(&body)).is_some() {
                    return false;
                }
                self.put(on, body);
            }
            Write::Delete { name, uid } => {
                let found = self.get(On::Group, &name);
                if found.is_some_and(|group| group["metadata"]["uid"] == uid) {
                    self.remove(On::Group, &name);
                }
            }
            Write::Evict { name, .. } => self.stop(&name),
        }
        true
    }

    /// What a look at the gang reads.
    pub(super) fn read(&self) -> Gang {
        let bodies: Vec<Value> = self.pods().into_iter().cloned().collect();
        let slim = bodies.iter().map(|pod| serde_json::from_value::<SlimPod>(pod.clone()).unwrap());
        let pods: Vec<_> = slim.map(|pod| pod_seen(&pod).unwrap().1).collect();
        let mut gang = Gang {
            namespace: "ns".into(),
            name: GANG.into(),
            group: self.get(On::Group, GANG).cloned(),
            stand_in: self.stand_in().cloned(),
            owner: Top::Pods,
            pods,
            bodies,
            refused: self.refused,
            now: Timestamp::from_second(self.now).unwrap(),
        };
        let of_pods = gang.pods.first().and_then(|pod| pod.controller.clone());
        let known = match gang.record() {
            Some(record) => record.owner,
            None => self.former.clone().or(of_pods),
        };
        if let Some(known) = known {
            let found = self.get(On::Owner, &known.name).cloned();
            let found = found.and_then(|object| Switched::of(&known, object));
            gang.owner = found.map_or(Top::Gone, |owner| Top::Switch(Box::new(owner)));
        }
        gang
    }

    /// One look of the controller, which dies before write number `cut` of it. Returns the step and how much it wrote.
    pub(super) fn look(&mut self, cut: Option<usize>) -> (Step, usize) {
        let gang = self.read();
        if let Some(owner) = gang.record().and_then(|record| record.owner) {
            self.former = Some(owner);
        }
        let step = next(&gang.seen());
        let todo = writes(&gang, &step);
        self.write(todo, cut, step)
    }

    pub(super) fn write(
        &mut self,
        todo: Vec<Write>,
        cut: Option<usize>,
        step: Step,
    ) -> (Step, usize) {
        self.refused &= !matches!(step, Step::Stop);
        let mut written = 0;
        for write in todo {
            if cut == Some(written) {
                self.restart();
                break;
            }
            written += 1;
            if !self.apply(write) {
                break;
            }
        }
        (step, written)
    }

    /// The controller dies and comes back: it remembers nothing.
    pub(super) fn restart(&mut self) {
        (self.former, self.refused) = (None, false);
        self.deaths += 1;
    }

    /// The controller works until it has nothing to do, and the others with it; a second each.
    pub(super) fn settle(&mut self) -> Vec<Step> {
        let mut steps = Vec::new();
        for _ in 0..100 {
            let (step, _) = self.look(None);
            let idle = matches!(step, Step::Wait(_));
            if !idle {
                steps.push(step);
            }
            let before = self.version;
            self.others();
            self.now += 1;
            if idle && self.version == before {
                return steps;
            }
        }
        panic!("it does not come to rest: {steps:?}");
    }
}

pub(super) fn name(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap().to_owned()
}

fn group() -> Value {
    json!({
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
        "metadata": {"name": GANG, "namespace": "ns", "labels": {"team": "a"}, "annotations": {}},
        "spec": {"minMember": 2, "queue": "q"},
    })
}
