//! What this story puts on the stage: gangs of several kinds, policies of queues, the definition of PyTorchJob.

use serde_json::{Map, Value, json};

use crate::faults::objects::{NAMESPACE, SCHEDULER};

/// Annotation that names the PodGroup of a pod.
pub(in crate::faults) const GROUP_NAME: &str = "scheduling.k8s.io/group-name";
/// Annotation of our pods: seconds after which the training script acknowledges a request for a checkpoint. Absent: never.
pub(in crate::faults) const ACK_AFTER: &str = "story/ack-after";

/// A gang to be.
#[derive(Clone, Debug)]
pub(in crate::faults) struct Gang {
    /// Its name, and that of its PodGroup and owner.
    pub(in crate::faults) name: String,
    pub(in crate::faults) queue: String,
    /// Priority class; empty: none.
    pub(in crate::faults) priority: &'static str,
    pub(in crate::faults) pods: u64,
    /// `minMember`.
    pub(in crate::faults) min: u64,
    /// Cpus of a pod.
    pub(in crate::faults) cpus: u64,
    /// Seconds its pods run; none: until they are deleted.
    pub(in crate::faults) runs_s: Option<u64>,
    /// Seconds from the delete of a pod to its end.
    pub(in crate::faults) grace_s: u64,
    /// Seconds until a request is acknowledged; none: never.
    pub(in crate::faults) ack_s: Option<u64>,
    /// Plain pods: created again on resume.
    pub(in crate::faults) recreate: bool,
}

impl Gang {
    /// `metadata` (annotations) and `spec` of its pods.
    pub(in crate::faults) fn template(&self, in_group: bool) -> Value {
        let mut annotations = Map::new();
        let mut annotate = |key: &str, value: String| {
            annotations.insert(key.to_owned(), value.into());
        };
        if in_group {
            annotate(GROUP_NAME, self.name.clone());
        } else {
            annotate("scheduling.volcano.sh/queue-name", self.queue.clone());
        }
        if let Some(seconds) = self.runs_s {
            annotate("tephra.sh/run-for", format!("{seconds}s"));
        }
        if let Some(seconds) = self.ack_s {
            annotate(ACK_AFTER, seconds.to_string());
        }
        if self.recreate {
            annotate("tephra.sh/recreate", "true".to_owned());
        }
        let mut spec = json!({
            "schedulerName": SCHEDULER, "restartPolicy": "Never",
            "terminationGracePeriodSeconds": self.grace_s,
            "containers": [{"name": "c", "image": "i",
                            "resources": {"requests": {"cpu": self.cpus.to_string()}}}],
        });
        if !self.priority.is_empty() {
            spec["priorityClassName"] = self.priority.into();
        }
        json!({"metadata": {"annotations": annotations, "labels": {"app": self.name}}, "spec": spec})
    }

    /// Its PodGroup.
    pub(in crate::faults) fn group(&self) -> Value {
        let mut spec = json!({
            "minMember": self.min, "queue": self.queue,
            "minResources": {"cpu": (self.min * self.cpus).to_string()},
        });
        if !self.priority.is_empty() {
            spec["priorityClassName"] = self.priority.into();
        }
        json!({
            "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
            "metadata": {"name": self.name, "namespace": NAMESPACE},
            "spec": spec, "status": {"phase": "Pending"},
        })
    }

    /// Its pods, where nobody makes them.
    pub(in crate::faults) fn plain_pods(&self, in_group: bool) -> Vec<Value> {
        let pod = |at| {
            let mut pod = self.template(in_group);
            pod["apiVersion"] = "v1".into();
            pod["kind"] = "Pod".into();
            pod["metadata"]["name"] = format!("{}-{at}", self.name).into();
            pod["metadata"]["namespace"] = NAMESPACE.into();
            pod
        };
        (0..self.pods).map(pod).collect()
    }

    /// A Job of its pods.
    pub(in crate::faults) fn job(&self) -> Value {
        json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": self.name, "namespace": NAMESPACE},
            "spec": {"parallelism": self.pods, "completions": self.pods, "completionMode": "Indexed",
                     "backoffLimit": 0, "suspend": false, "template": self.template(true)},
        })
    }

    /// A PyTorchJob of its pods. Its operator makes the PodGroup.
    pub(in crate::faults) fn pytorch_job(&self) -> Value {
        let mut policy = self.group()["spec"].clone();
        if let Some(policy) = policy.as_object_mut() {
            policy.remove("minResources");
        }
        json!({
            "apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob",
            "metadata": {"name": self.name, "namespace": NAMESPACE},
            "spec": {
                "runPolicy": {"schedulingPolicy": policy},
                "pytorchReplicaSpecs": {"Worker": {"replicas": self.pods, "template": self.template(true)}},
            },
        })
    }
}

/// The definition of Kubeflow's PyTorchJob, without a schema.
pub(in crate::faults) fn pytorch_definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "pytorchjobs.kubeflow.org"},
        "spec": {
            "group": "kubeflow.org", "scope": "Namespaced",
            "names": {"kind": "PyTorchJob", "plural": "pytorchjobs", "singular": "pytorchjob",
                      "listKind": "PyTorchJobList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
                {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
        },
    })
}

/// How gangs of a queue make room.
pub(in crate::faults) fn policy(
    queue: &str,
    checkpoint: &str,
    grace_s: u64,
    min_runtime_s: u64,
) -> Value {
    json!({
        "apiVersion": "tephra.sh/v1alpha1", "kind": "QueuePolicy", "metadata": {"name": queue},
        "spec": {"preemption": {
            "mode": "Suspend", "minRuntime": format!("{min_runtime_s}s"), "maxSuspensionsPerDay": 50,
            "checkpoint": {"mode": checkpoint, "grace": format!("{grace_s}s")},
        }},
    })
}
