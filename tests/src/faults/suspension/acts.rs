//! What people and bad luck do: gangs come and go, people hold, resume and edit, nodes vanish, processes die in the middle of
//! a transition.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::DeleteParams;
use serde_json::{Value, json};

use super::objects::Gang;
use super::operators::group_of;
use super::story::{CPUS, Later, Story};
use crate::faults::objects::NAMESPACE;

const SUSPEND: &str = "tephra.sh/suspend";
const SUSPENDED: &str = "tephra.sh/suspended";
const HOLD: &str = "tephra.sh/hold";
/// Kinds of owners, and where their switch is.
const OWNERS: [(&str, &str); 2] =
    [("jobs", "/spec/suspend"), ("pytorchjobs", "/spec/runPolicy/suspend")];
/// Pods that exist at most at a time.
const CROWD: usize = 40;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Wait,
    Job,
    PyTorchJob,
    PlainGang,
    PlainPod,
    /// Whoever made others go is deleted.
    Abandon,
    DeleteGang,
    DeletePod,
    Hold,
    LetGo,
    Edit,
    /// A person sets the switch back that we have set.
    SwitchBack,
    /// A person suspends an owner.
    Suspend,
    /// The PodGroup of a gang that is asked or down is deleted.
    DeleteGroup,
    /// The server refuses to suspend an owner.
    Refuse,
    NodeVanishes,
    Cordon,
    Policy,
    Kill,
    ArmCrash,
    CutOff,
    Compact,
}

const ACTS: [(u32, Act); 22] = [
    (8, Act::Wait),
    (16, Act::Job),
    (7, Act::PyTorchJob),
    (10, Act::PlainGang),
    (5, Act::PlainPod),
    (4, Act::Abandon),
    (2, Act::DeleteGang),
    (2, Act::DeletePod),
    (4, Act::Hold),
    (6, Act::LetGo),
    (3, Act::Edit),
    (2, Act::SwitchBack),
    (2, Act::Suspend),
    (1, Act::DeleteGroup),
    (4, Act::Refuse),
    (2, Act::NodeVanishes),
    (2, Act::Cordon),
    (1, Act::Policy),
    (3, Act::Kill),
    (10, Act::ArmCrash),
    (2, Act::CutOff),
    (1, Act::Compact),
];

fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or("")
}

fn carries(object: &Value, key: &str) -> bool {
    object["metadata"]["annotations"][key].is_string()
}

impl Story {
    pub(super) async fn next_act(&mut self) -> anyhow::Result<()> {
        let mut act = self.dice.weighted(&ACTS);
        let new = [Act::Job, Act::PyTorchJob, Act::PlainGang, Act::PlainPod];
        if new.contains(&act) && self.server.list_values("pods").len() > CROWD {
            act = Act::Wait;
        }
        match act {
            Act::Wait => {}
            Act::Job => {
                let gang = self.gang("job");
                let job = self.server.create_value(gang.job())?;
                let mut group = gang.group();
                if self.dice.chance(0.5) {
                    group["metadata"]["ownerReferences"] = json!([{
                        "apiVersion": "batch/v1", "kind": "Job", "name": gang.name,
                        "uid": job["metadata"]["uid"]}]);
                }
                self.server.create_value(group)?;
            }
            Act::PyTorchJob => {
                let gang = self.gang("torch");
                self.server.create_value(gang.pytorch_job())?;
            }
            Act::PlainGang => {
                let gang = self.gang("plain");
                self.server.create_value(gang.group())?;
                for pod in gang.plain_pods(true) {
                    self.server.create_value(pod)?;
                }
            }
            Act::PlainPod => {
                let gang = Gang { pods: 1, min: 1, ..self.gang("pod") };
                for pod in gang.plain_pods(false) {
                    self.server.create_value(pod)?;
                }
            }
            Act::Abandon => {
                if let Some(by) = self.whoever_made_room().or_else(|| self.some_gang()) {
                    self.delete_gang(&by);
                }
            }
            Act::DeleteGang => {
                if let Some(gang) = self.some_gang() {
                    self.delete_gang(&gang);
                }
            }
            Act::DeletePod => self.delete_pod().await,
            Act::Hold => self.hold()?,
            Act::LetGo => {
                self.let_go()?;
            }
            Act::Edit => self.edit()?,
            Act::SwitchBack => self.switch(true, |owner, _| carries(owner, SUSPENDED))?,
            Act::Suspend => {
                // Their own, from the start or until they let go.
                self.switch(false, |owner, on| !on && !carries(owner, SUSPENDED))?;
            }
            Act::DeleteGroup => self.delete_group(),
            Act::Refuse => {
                let until = self.now_ms() + self.dice.within(5_000, 120_000) as i64;
                if let Some((_, owner)) = self.some_owner(|_, _| true) {
                    self.sky.refuse(name_of(&owner), until);
                }
            }
            Act::NodeVanishes => self.node_vanishes(),
            Act::Cordon => {
                let nodes = self.server.list_values("nodes");
                let mut node = Value::clone(self.dice.pick(&nodes).as_ref());
                node["spec"]["unschedulable"] = (node["spec"]["unschedulable"] != true).into();
                self.server.apply_value(node)?;
            }
            Act::Policy => {
                let queue = self.dice.pick(&self.queues).clone();
                self.policy(&queue)?;
            }
            Act::Kill => {
                let identity = self.some_process();
                self.server.kill(&identity);
            }
            Act::ArmCrash => {
                let identity = self.some_process();
                let writes = self.dice.within(1, 6);
                self.server.crash_after_write(&identity, writes);
            }
            Act::CutOff => {
                let identity = self.some_process();
                let leases_only = self.dice.chance(0.4);
                let until = self.now_ms() + self.dice.within(3_000, 25_000) as i64;
                self.sky.cut_off(&identity, leases_only, until);
            }
            Act::Compact => {
                self.server.compact();
                self.sky.deal("compaction");
            }
        }
        Ok(())
    }

    fn gang(&mut self, stem: &str) -> Gang {
        self.named += 1;
        let cpus = *self.dice.pick(&[1, 2, 4]);
        // Three nodes are always there.
        let pods = self.dice.within(1, (3 * CPUS / cpus).min(6));
        let elastic = self.dice.chance(0.2);
        let endless = !self.finite && self.dice.chance(0.4);
        Gang {
            name: format!("{stem}-{}", self.named),
            queue: self.dice.pick(&self.queues).clone(),
            priority: self.dice.pick::<&str>(&["", "low", "high", "high"]),
            pods,
            min: if elastic { self.dice.within(1, pods) } else { pods },
            cpus,
            runs_s: (!endless).then(|| self.dice.within(10, 150)),
            grace_s: *self.dice.pick(&[1, 3, 10, 30]),
            ack_s: match self.dice.within(0, 3) {
                0 => None,
                _ => Some(self.dice.within(0, 25)),
            },
            recreate: self.dice.chance(0.6),
        }
    }

    fn some_process(&mut self) -> String {
        self.dice.pick(&self.processes).vita.identity()
    }

    /// The gang that some other was asked to go for.
    fn whoever_made_room(&mut self) -> Option<String> {
        let asked: Vec<String> = self
            .server
            .list_values("podgroups")
            .iter()
            .filter_map(|group| {
                let text = group["metadata"]["annotations"][SUSPEND].as_str()?;
                let intent: Value = serde_json::from_str(text).ok()?;
                Some(intent["by"].as_str()?.split_once('/')?.1.to_owned())
            })
            .collect();
        (!asked.is_empty()).then(|| self.dice.pick(&asked).clone())
    }

    fn some_gang(&mut self) -> Option<String> {
        let groups = self.server.list_values("podgroups");
        (!groups.is_empty()).then(|| name_of(self.dice.pick(&groups).as_ref()).to_owned())
    }

    /// Owner, PodGroup and pods of a gang go, in one order or another.
    fn delete_gang(&mut self, name: &str) {
        for (plural, _) in OWNERS {
            let _ = self.server.delete_value(plural, NAMESPACE, name);
        }
        let _ = self.server.delete_value("podgroups", NAMESPACE, name);
        for pod in self.server.list_values("pods") {
            if group_of(&pod) == name {
                self.delete("pods", &pod);
            }
        }
    }

    pub(super) fn delete(&self, resource: &str, object: &Value) {
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or("");
        // What is gone already is no trouble.
        let _ = self.server.delete_value(resource, namespace, name_of(object));
    }

    async fn delete_pod(&mut self) {
        let pods = self.server.list_values("pods");
        if pods.is_empty() {
            return;
        }
        let pod = Arc::clone(self.dice.pick(&pods));
        if self.dice.chance(0.3) {
            self.delete("pods", &pod);
        } else {
            let api: Api<Pod> = Api::namespaced(self.author.clone(), NAMESPACE);
            let _ = api.delete(name_of(&pod), &DeleteParams::default()).await;
        }
    }

    /// An owner and its plural, of those that fit: told the object and whether it is suspended.
    fn some_owner(&mut self, fits: impl Fn(&Value, bool) -> bool) -> Option<(usize, Arc<Value>)> {
        let mut found = Vec::new();
        for (at, (plural, switch)) in OWNERS.iter().enumerate() {
            for owner in self.server.list_values(plural) {
                let done = owner["status"]["conditions"].as_array().is_some_and(|all| {
                    all.iter().any(|it| it["type"] == "Complete" || it["type"] == "Succeeded")
                });
                let on = owner.pointer(switch) == Some(&Value::Bool(true));
                if !done && fits(&owner, on) {
                    found.push((at, owner));
                }
            }
        }
        (!found.is_empty()).then(|| self.dice.pick(&found).clone())
    }

    /// A person sets or clears the switch of an owner.
    fn switch(&mut self, clear: bool, fits: fn(&Value, bool) -> bool) -> anyhow::Result<()> {
        if let Some((at, owner)) = self.some_owner(fits) {
            self.set_switch(at, &owner, !clear)?;
        }
        Ok(())
    }

    fn set_switch(&self, at: usize, owner: &Value, on: bool) -> anyhow::Result<()> {
        let mut owner = owner.clone();
        match at {
            0 => owner["spec"]["suspend"] = on.into(),
            _ => owner["spec"]["runPolicy"]["suspend"] = on.into(),
        }
        self.server.apply_value(owner)?;
        Ok(())
    }

    /// A person wants a gang to stay down: one that is down, is asked, or runs.
    fn hold(&mut self) -> anyhow::Result<()> {
        let by = *self.dice.pick(&["user", "user", ""]);
        let groups = self.server.list_values("podgroups");
        let mut places: Vec<Arc<Value>> = groups
            .iter()
            .filter(|it| carries(it, SUSPEND) || carries(it, SUSPENDED))
            .cloned()
            .collect();
        if self.dice.chance(0.4)
            && let Some((_, owner)) = self.some_owner(|owner, _| carries(owner, SUSPENDED))
        {
            places = vec![owner];
        }
        if places.is_empty() {
            places = groups;
        }
        if places.is_empty() {
            return Ok(());
        }
        let mut object = Value::clone(self.dice.pick(&places).as_ref());
        object["metadata"]["annotations"][HOLD] = by.into();
        self.server.apply_value(object)?;
        Ok(())
    }

    /// A person lets go of something that they hold or have suspended; false when there is nothing.
    pub(super) fn let_go(&mut self) -> anyhow::Result<bool> {
        let held = ["podgroups", "jobs", "pytorchjobs"]
            .into_iter()
            .flat_map(|plural| self.server.list_values(plural))
            .find(|object| carries(object, HOLD));
        if let Some(object) = held {
            let mut object = Value::clone(&object);
            if let Some(annotations) = object["metadata"]["annotations"].as_object_mut() {
                annotations.remove(HOLD);
            }
            self.server.apply_value(object)?;
            return Ok(true);
        }
        let theirs = self.some_owner(|owner, on| on && !carries(owner, SUSPENDED));
        let Some((at, owner)) = theirs else { return Ok(false) };
        self.set_switch(at, &owner, false)?;
        Ok(true)
    }

    /// A person edits a job that is down.
    fn edit(&mut self) -> anyhow::Result<()> {
        let pods = self.server.list_values("pods");
        let has_pods = |owner: &Value| pods.iter().any(|pod| group_of(pod) == name_of(owner));
        let found = self.some_owner(|owner, on| on && !has_pods(owner));
        let Some((at, owner)) = found else { return Ok(()) };
        let mut owner = Value::clone(&owner);
        let path = ["/spec/template", "/spec/pytorchReplicaSpecs/Worker/template"][at];
        let cpus = *self.dice.pick(&[1, 2, 4]);
        if let Some(template) = owner.pointer_mut(path) {
            template["metadata"]["labels"]["edited"] = "yes".into();
            template["spec"]["containers"][0]["resources"]["requests"]["cpu"] =
                cpus.to_string().into();
        }
        self.server.apply_value(owner)?;
        Ok(())
    }

    fn delete_group(&mut self) {
        let mut groups = self.server.list_values("podgroups");
        groups.retain(|group| carries(group, SUSPEND) || carries(group, SUSPENDED));
        if !groups.is_empty() {
            let group = Arc::clone(self.dice.pick(&groups));
            self.delete("podgroups", &group);
            // Whoever made it makes it anew, where no operator does.
            let mut again = Value::clone(&group);
            again["metadata"] = json!({"name": name_of(&group), "namespace": NAMESPACE});
            again["status"] = json!({"phase": "Pending"});
            let wait = self.dice.within(2_000, 40_000);
            if !name_of(&group).ends_with("-suspended") {
                self.after(wait, Later::Create(again));
            }
        }
    }

    fn node_vanishes(&mut self) {
        let nodes = self.server.list_values("nodes");
        if nodes.len() <= 2 {
            return;
        }
        let node = Arc::clone(self.dice.pick(&nodes));
        self.delete("nodes", &node);
        let wait = self.dice.within(100, 15_000);
        self.after(wait, Later::Collect(name_of(&node).to_owned()));
        let mut back = json!({"apiVersion": "v1", "kind": "Node", "spec": node["spec"], "status": node["status"]});
        back["metadata"] =
            json!({"name": node["metadata"]["name"], "labels": node["metadata"]["labels"]});
        let longer = wait + self.dice.within(1, 60_000);
        self.after(longer, Later::Create(back));
    }
}
