//! What a story's acts do to the objects in the server.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod as CorePod;
use kube::api::{Api, DeleteParams};
use serde_json::{Value, json};

use super::super::objects::{self, GPU, NAMESPACE, Pod, Request};
use super::{Later, Story, name_of};

const ZONES: [&str; 2] = ["east", "west"];

impl Story {
    pub(super) fn gang(&mut self) -> anyhow::Result<()> {
        let name = self.name("gang");
        let size = *self.dice.pick(&[1, 2, 2, 3, 4, 4, 5, 6, 8]);
        let min = if self.dice.chance(0.7) { size } else { self.dice.within(1, size) };
        let created = if self.dice.chance(0.08) { size - 1 } else { size };
        let kinds = [self.request(), self.request()];
        let mixed = self.dice.chance(0.3);
        let priority = *self.dice.pick(&["", "", "low", "high"]);
        let zone = if self.dice.chance(0.15) { *self.dice.pick(&ZONES) } else { "" };
        let runs_s = self.dice.chance(0.8).then(|| self.dice.within(2, 45));
        let (tolerant, fails) = (self.dice.chance(0.2), self.dice.chance(0.05));
        let pods: Vec<Value> = (0..created)
            .map(|at| {
                let request = if mixed && at % 2 == 1 { &kinds[1] } else { &kinds[0] };
                let pod = Pod {
                    name: format!("{name}-{at}"),
                    group: name.clone(),
                    request: request.clone(),
                    runs_s,
                    fails,
                    tolerant,
                    zone: zone.to_owned(),
                    priority: priority.to_owned(),
                    ..Pod::default()
                };
                pod.json()
            })
            .collect();
        let minimum = self.dice.chance(0.6).then(|| minimum(&kinds, mixed, min));
        let queue = self.dice.pick(&self.queues).clone();
        let min_resources = minimum.unwrap_or(Value::Null);
        let group = objects::gang(&name, &queue, min, &min_resources, priority);
        // Now and then the pods come before their PodGroup, or in two parts.
        let (first, second) = match self.dice.within(0, 5) {
            0 => (pods, vec![group]),
            1 => {
                let (first, second) = pods.split_at(pods.len() / 2);
                let first = std::iter::once(group).chain(first.iter().cloned());
                (first.collect(), second.to_vec())
            }
            _ => (std::iter::once(group).chain(pods).collect::<Vec<_>>(), Vec::new()),
        };
        for object in first {
            self.server.create_value(object)?;
        }
        let wait = self.dice.within(10, 6_000);
        second.into_iter().for_each(|object| self.after(wait, Later::Create(object)));
        Ok(())
    }

    fn request(&mut self) -> Request {
        let cpu = *self.dice.pick(&["", "250m", "500m", "1", "1", "2", "3", "333m", "1100.5m"]);
        let memory = *self.dice.pick(&["", "256Mi", "1Gi", "2Gi", "1.5Gi", "3G"]);
        let gpus = *self.dice.pick(&[0, 0, 0, 1, 1, 2, 4]);
        let nothing = cpu.is_empty() && memory.is_empty() && gpus == 0 && self.dice.chance(0.7);
        let cpu = if nothing { "1" } else { cpu };
        Request { cpu: cpu.to_owned(), memory: memory.to_owned(), gpus }
    }

    pub(super) fn plain_pod(&mut self) -> anyhow::Result<()> {
        let pod = Pod {
            name: self.name("plain"),
            queue: if self.dice.chance(0.4) {
                self.dice.pick(&self.queues).clone()
            } else {
                String::new()
            },
            request: self.request(),
            runs_s: self.dice.chance(0.8).then(|| self.dice.within(2, 45)),
            ..Pod::default()
        };
        self.server.create_value(pod.json())?;
        Ok(())
    }

    pub(super) fn foreign_pod(&mut self) -> anyhow::Result<()> {
        let Some(node) = self.some("nodes") else { return Ok(()) };
        let name = self.name("foreign");
        let cpu = *self.dice.pick(&["100m", "1", "2"]);
        self.server.create_value(objects::foreign_pod(&name, name_of(&node), cpu))?;
        Ok(())
    }

    pub(super) async fn delete_pod(&mut self, pods: &[Arc<Value>]) {
        if pods.is_empty() {
            return;
        }
        let pod = Arc::clone(self.dice.pick(pods));
        if self.dice.chance(0.5) {
            self.delete("pods", &pod);
        } else {
            let api: Api<CorePod> = Api::namespaced(self.author.clone(), NAMESPACE);
            // It may be gone already.
            let _ = api.delete(name_of(&pod), &DeleteParams::default()).await;
        }
    }

    /// Another pod takes the name of one that goes.
    pub(super) fn recreate_pod(&mut self, pods: &[Arc<Value>]) -> anyhow::Result<()> {
        if pods.is_empty() {
            return Ok(());
        }
        let pod = Arc::clone(self.dice.pick(pods));
        self.delete("pods", &pod);
        let mut again = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": pod["metadata"]["name"], "namespace": NAMESPACE,
                         "annotations": pod["metadata"]["annotations"]},
            "spec": pod["spec"],
        });
        if let Some(spec) = again["spec"].as_object_mut() {
            spec.remove("nodeName");
        }
        self.server.create_value(again)?;
        Ok(())
    }

    pub(super) fn touch_pod(&mut self, pods: &[Arc<Value>]) -> anyhow::Result<()> {
        if pods.is_empty() {
            return Ok(());
        }
        let mut pod = Value::clone(self.dice.pick(pods).as_ref());
        pod["metadata"]["labels"]["touched"] = self.dice.within(0, 999).to_string().into();
        self.server.apply_value(pod)?;
        Ok(())
    }

    pub(super) fn delete_gang(&mut self, pods: &[Arc<Value>]) {
        let Some(group) = self.some("podgroups") else {
            pods.iter().take(5).for_each(|pod| self.delete("pods", pod));
            return;
        };
        if self.dice.chance(0.5) {
            self.delete_members(name_of(&group));
            self.delete("podgroups", &group);
        } else {
            self.delete("podgroups", &group);
            self.delete_members(name_of(&group));
        }
    }

    pub(super) fn delete_members(&self, group: &str) {
        for pod in self.pods() {
            if pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == group {
                self.delete("pods", &pod);
            }
        }
    }

    pub(super) fn new_node(&mut self) -> Value {
        let name = self.name("node");
        let allocatable = json!({
            "cpu": self.dice.pick(&["2", "4", "8", "3500m", "16"]),
            "memory": self.dice.pick(&["4Gi", "8Gi", "16Gi", "7900Mi"]),
            "pods": self.dice.pick(&["4", "8", "110", "110"]),
            GPU: self.dice.pick(&["0", "0", "4", "8"]),
        });
        let zone = *self.dice.pick(&ZONES);
        objects::node(&name, zone, &allocatable, self.dice.chance(0.15))
    }

    pub(super) fn node_vanishes(&mut self) {
        if self.server.list_values("nodes").len() <= 2 {
            return;
        }
        let Some(node) = self.some("nodes") else { return };
        self.delete("nodes", &node);
        let wait = self.dice.within(100, 15_000);
        self.after(wait, Later::CollectPodsOf(name_of(&node).to_owned()));
        if self.dice.chance(0.5) {
            let mut back = json!({"apiVersion": "v1", "kind": "Node", "spec": node["spec"],
                                  "status": node["status"]});
            back["metadata"] =
                json!({"name": node["metadata"]["name"], "labels": node["metadata"]["labels"]});
            let longer = wait + self.dice.within(1, 20_000);
            self.after(longer, Later::Create(back));
        }
    }

    pub(super) fn node_changes(&mut self) -> anyhow::Result<()> {
        let Some(node) = self.some("nodes") else { return Ok(()) };
        let mut node = Value::clone(&node);
        match self.dice.within(0, 3) {
            0 => node["spec"]["unschedulable"] = (node["spec"]["unschedulable"] != true).into(),
            1 => {
                let tainted = node["spec"]["taints"].as_array().is_some_and(|it| !it.is_empty());
                node["spec"]["taints"] = if tainted {
                    json!([])
                } else {
                    json!([{"key": "dedicated", "value": "x", "effect": "NoSchedule"}])
                };
            }
            2 => {
                node["status"]["allocatable"]["cpu"] =
                    (*self.dice.pick(&["0", "1", "2", "6"])).into();
            }
            _ => node["status"]["allocatable"][GPU] = (*self.dice.pick(&["0", "2", "8"])).into(),
        }
        self.server.apply_value(node)?;
        Ok(())
    }

    pub(super) fn capability(&mut self) -> Value {
        match self.dice.within(0, 3) {
            0 => json!({"cpu": self.dice.within(2, 12).to_string()}),
            1 => json!({"cpu": self.dice.within(2, 12).to_string(), "memory": "12Gi",
                        GPU: self.dice.within(1, 8).to_string()}),
            _ => Value::Null,
        }
    }

    pub(super) fn queue_changes(&mut self) -> anyhow::Result<()> {
        let name = self.dice.pick(&self.queues).clone();
        let Some(mut queue) = self.server.get_value("queues", "", &name) else { return Ok(()) };
        if self.dice.chance(0.5) {
            queue["spec"]["weight"] = self.dice.within(1, 5).into();
        } else if name != "default" {
            queue["spec"]["capability"] = self.capability();
        }
        self.server.apply_value(queue)?;
        Ok(())
    }
}

/// `minResources` of the first `min` members.
fn minimum(kinds: &[Request; 2], mixed: bool, min: u64) -> Value {
    let milli = |text: &str| -> u64 {
        match text.strip_suffix('m') {
            Some(milli) => milli.parse::<f64>().map_or(0, |milli| milli.ceil() as u64),
            None => text.parse::<u64>().unwrap_or(0) * 1000,
        }
    };
    let (mut cpu, mut gpus) = (0, 0);
    for at in 0..min {
        let request = if mixed && at % 2 == 1 { &kinds[1] } else { &kinds[0] };
        cpu += milli(&request.cpu);
        gpus += request.gpus;
    }
    let mut resources = json!({"cpu": format!("{cpu}m")});
    if gpus > 0 {
        resources[GPU] = gpus.to_string().into();
    }
    resources
}
