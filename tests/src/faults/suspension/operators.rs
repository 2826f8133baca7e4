//! Operators of a cluster that the server does not have: the Job controller, Kubeflow's operator, and the training scripts that
//! write checkpoints. They see what changed a moment late, as the real ones do, so that pods are made for a job that is suspended
//! already. No fault strikes them: what becomes of a gang is up to the programs under test.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::DeleteParams;
use serde_json::{Value, json};
use tephra_simulator::ApiServer;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::objects::{ACK_AFTER, GROUP_NAME};
use crate::faults::dice::Dice;
use crate::faults::objects::NAMESPACE;
use crate::faults::weather::OPERATORS;

const REQUEST: &str = "tephra.sh/checkpoint-request";
const ACK: &str = "tephra.sh/checkpoint-ack";

/// All operators, as one task.
pub(in crate::faults) struct Operators {
    server: ApiServer,
    pods: Api<Pod>,
    dice: Dice,
    /// Whether an owner is suspended, by uid, as it was seen last.
    suspended: BTreeMap<String, bool>,
    /// When a pod (uid) was asked by a suspension (id), Unix milliseconds.
    asked: BTreeMap<(String, String), i64>,
    made: u64,
}

/// How the two kinds of owners differ.
struct Kind {
    plural: &'static str,
    switch: &'static str,
    template: &'static str,
    count: &'static str,
    /// Pods have fixed names, and their PodGroup comes and goes with them.
    kubeflow: bool,
    done: &'static str,
}

const KINDS: [Kind; 2] = [
    Kind {
        plural: "jobs",
        switch: "/spec/suspend",
        template: "/spec/template",
        count: "/spec/completions",
        kubeflow: false,
        done: "Complete",
    },
    Kind {
        plural: "pytorchjobs",
        switch: "/spec/runPolicy/suspend",
        template: "/spec/pytorchReplicaSpecs/Worker/template",
        count: "/spec/pytorchReplicaSpecs/Worker/replicas",
        kubeflow: true,
        done: "Succeeded",
    },
];

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or("")
}

fn phase(pod: &Value) -> &str {
    text(pod, "/status/phase")
}

fn is_leaving(pod: &Value) -> bool {
    !pod["metadata"]["deletionTimestamp"].is_null()
}

fn is_over(pod: &Value) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

impl Operators {
    /// Starts them.
    pub(in crate::faults) fn start(
        server: &ApiServer,
        dice: Dice,
        stop: CancellationToken,
    ) -> JoinHandle<()> {
        let operators = Self {
            server: server.clone(),
            pods: Api::namespaced(server.client_as(OPERATORS), NAMESPACE),
            dice,
            suspended: BTreeMap::new(),
            asked: BTreeMap::new(),
            made: 0,
        };
        tokio::spawn(operators.run(stop))
    }

    async fn run(mut self, stop: CancellationToken) {
        loop {
            let pause = Duration::from_millis(self.dice.within(200, 900));
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
            for kind in &KINDS {
                for owner in self.server.list_values(kind.plural) {
                    if self.dice.chance(0.7) {
                        self.reconcile(kind, &owner).await;
                    }
                }
            }
            self.acknowledge();
        }
    }

    async fn reconcile(&mut self, kind: &Kind, owner: &Arc<Value>) {
        let uid = text(owner, "/metadata/uid").to_owned();
        let conditions = owner["status"]["conditions"].as_array();
        let done = conditions.is_some_and(|all| all.iter().any(|it| it["type"] == kind.done));
        if done || is_leaving(owner) {
            return;
        }
        let is = owner.pointer(kind.switch) == Some(&Value::Bool(true));
        let known = self.suspended.entry(uid.clone()).or_insert(is);
        if *known != is && self.dice.chance(0.5) {
            *known = is;
        }
        let suspended = *known;
        let of_owner = |pod: &Arc<Value>| pod["metadata"]["ownerReferences"][0]["uid"] == *uid;
        let pods: Vec<Arc<Value>> =
            self.server.list_values("pods").into_iter().filter(of_owner).collect();
        let wanted = owner.pointer(kind.count).and_then(Value::as_u64).unwrap_or(0);
        let succeeded = pods.iter().filter(|pod| phase(pod) == "Succeeded").count() as u64;
        if suspended {
            for pod in pods.iter().filter(|pod| !is_over(pod) && !is_leaving(pod)) {
                // It may be gone already.
                let name = text(pod, "/metadata/name");
                let _ = self.pods.delete(name, &DeleteParams::default()).await;
            }
            if kind.kubeflow {
                self.drop_group(owner);
            }
        } else if succeeded < wanted {
            if kind.kubeflow {
                self.make_group(owner, wanted);
            }
            for index in 0..wanted {
                self.make_pod(kind, owner, index, &pods);
            }
        } else if kind.kubeflow {
            self.drop_group(owner);
        }
        self.tell(kind, owner, &pods, suspended, succeeded >= wanted);
    }

    fn make_pod(&mut self, kind: &Kind, owner: &Value, index: u64, pods: &[Arc<Value>]) {
        let label = "batch.kubernetes.io/job-completion-index";
        let number = index.to_string();
        let of_index = |pod: &&Arc<Value>| pod["metadata"]["labels"][label] == number.as_str();
        // Kubeflow's names are fixed, so a successor waits until its predecessor is gone.
        let there = |pod: &Arc<Value>| kind.kubeflow || !is_leaving(pod);
        if pods.iter().filter(of_index).any(|pod| phase(pod) != "Failed" && there(pod)) {
            return;
        }
        let Some(mut pod) = owner.pointer(kind.template).cloned() else { return };
        let name = text(owner, "/metadata/name");
        self.made += 1;
        pod["metadata"]["name"] = if kind.kubeflow {
            format!("{name}-worker-{index}").into()
        } else {
            format!("{name}-{index}-{}", self.made).into()
        };
        pod["apiVersion"] = "v1".into();
        pod["kind"] = "Pod".into();
        pod["metadata"]["namespace"] = NAMESPACE.into();
        pod["metadata"]["labels"][label] = number.into();
        pod["metadata"]["ownerReferences"] = json!([reference(owner)]);
        // The name may be taken yet.
        let _ = self.server.create_value(pod);
    }

    fn make_group(&self, owner: &Value, pods: u64) {
        let name = text(owner, "/metadata/name");
        if self.server.get_arc("podgroups", NAMESPACE, name).is_some() {
            return;
        }
        let mut spec = owner["spec"]["runPolicy"]["schedulingPolicy"].clone();
        if spec["minMember"].is_null() {
            spec["minMember"] = pods.into();
        }
        let _ = self.server.create_value(json!({
            "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
            "metadata": {"name": name, "namespace": NAMESPACE, "ownerReferences": [reference(owner)]},
            "spec": spec, "status": {"phase": "Pending"},
        }));
    }

    fn drop_group(&self, owner: &Value) {
        let _ = self.server.delete_value("podgroups", NAMESPACE, text(owner, "/metadata/name"));
    }

    /// Writes the owner's status where it differs.
    fn tell(&self, kind: &Kind, owner: &Value, pods: &[Arc<Value>], suspended: bool, done: bool) {
        let active = pods.iter().filter(|pod| !is_over(pod) && !is_leaving(pod)).count();
        let failed = pods.iter().filter(|pod| phase(pod) == "Failed").count();
        let condition = |kind: &str, yes: bool| json!({"type": kind, "status": if yes { "True" } else { "False" }});
        let mut conditions = vec![condition("Suspended", suspended)];
        if done {
            conditions.push(condition(kind.done, true));
        }
        let status = json!({"active": active, "failed": failed, "conditions": conditions});
        let (namespace, name) = (NAMESPACE, text(owner, "/metadata/name"));
        let Some(mut owner) = self.server.get_value(kind.plural, namespace, name) else { return };
        if owner["status"] != status {
            owner["status"] = status;
            let _ = self.server.apply_value(owner);
        }
    }

    /// Training scripts acknowledge, some of them late, some never.
    fn acknowledge(&mut self) {
        let now_ms = self.server.clock().now_ms();
        for pod in self.server.list_values("pods") {
            let annotations = &pod["metadata"]["annotations"];
            let Some(request) = annotations[REQUEST].as_str() else { continue };
            let id = request.split(';').next().unwrap_or_default().to_owned();
            let after = annotations[ACK_AFTER].as_str().and_then(|text| text.parse::<i64>().ok());
            let Some(after) = after.filter(|_| phase(&pod) == "Running") else { continue };
            let uid = text(&pod, "/metadata/uid").to_owned();
            let asked_ms = *self.asked.entry((uid, id.clone())).or_insert(now_ms);
            if annotations[ACK] == *id || now_ms < asked_ms + after * 1_000 {
                continue;
            }
            let mut pod = Value::clone(&pod);
            pod["metadata"]["annotations"][ACK] = id.into();
            pod["metadata"]["annotations"]["tephra.sh/last-checkpoint"] =
                tephra_simulator::clock::timestamp(now_ms).into();
            let _ = self.server.apply_value(pod);
        }
    }
}

fn reference(owner: &Value) -> Value {
    json!({
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
    })
}

/// Name of the PodGroup of a pod; empty: none.
pub(in crate::faults) fn group_of(pod: &Value) -> &str {
    pod["metadata"]["annotations"][GROUP_NAME].as_str().unwrap_or("")
}
