//! The objects that stories put on the stage, as JSON.

use serde_json::{Map, Value, json};

/// Namespace of all pods and PodGroups.
pub const NAMESPACE: &str = "team";
/// `spec.schedulerName` of our pods.
pub const SCHEDULER: &str = "volcano";
/// Name of the GPU resource.
pub const GPU: &str = "nvidia.com/gpu";

/// What one pod asks for.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// A cpu quantity; empty: none.
    pub cpu: String,
    /// A memory quantity; empty: none.
    pub memory: String,
    /// GPUs.
    pub gpus: u64,
}

impl Request {
    /// Cpu only.
    #[must_use]
    pub fn cpu(cpu: &str) -> Self {
        Self { cpu: cpu.to_owned(), ..Self::default() }
    }

    /// As `resources.requests`.
    #[must_use]
    pub fn json(&self) -> Value {
        let mut map = Map::new();
        for (name, amount) in [("cpu", &self.cpu), ("memory", &self.memory)] {
            if !amount.is_empty() {
                map.insert(name.to_owned(), amount.as_str().into());
            }
        }
        if self.gpus > 0 {
            map.insert(GPU.to_owned(), self.gpus.to_string().into());
        }
        map.into()
    }
}

/// A pod to be.
#[derive(Clone, Debug, Default)]
pub struct Pod {
    /// Its name.
    pub name: String,
    /// PodGroup it names; empty: none.
    pub group: String,
    /// Annotated queue; empty: none.
    pub queue: String,
    /// What it asks for.
    pub request: Request,
    /// Seconds it runs; none: for ever.
    pub runs_s: Option<u64>,
    /// It ends as Failed.
    pub fails: bool,
    /// It tolerates all taints.
    pub tolerant: bool,
    /// Zone it must run in; empty: any.
    pub zone: String,
    /// Priority class; empty: none.
    pub priority: String,
}

impl Pod {
    /// The object.
    #[must_use]
    pub fn json(&self) -> Value {
        let mut annotations = Map::new();
        let mut annotate = |key: &str, value: String| {
            annotations.insert(key.to_owned(), value.into());
        };
        if !self.group.is_empty() {
            annotate("scheduling.k8s.io/group-name", self.group.clone());
        }
        if !self.queue.is_empty() {
            annotate("scheduling.volcano.sh/queue-name", self.queue.clone());
        }
        if let Some(seconds) = self.runs_s {
            annotate("tephra.sh/run-for", format!("{seconds}s"));
        }
        if self.fails {
            annotate("tephra.sh/end-phase", "Failed".to_owned());
        }
        let mut spec = json!({
            "schedulerName": SCHEDULER,
            "terminationGracePeriodSeconds": 3,
            "containers": [{"name": "c", "image": "i", "resources": {"requests": self.request.json()}}],
        });
        if self.tolerant {
            spec["tolerations"] = json!([{"operator": "Exists", "effect": "NoSchedule"}]);
        }
        if !self.zone.is_empty() {
            spec["nodeSelector"] = json!({"topology.kubernetes.io/zone": self.zone});
        }
        if !self.priority.is_empty() {
            spec["priorityClassName"] = self.priority.as_str().into();
        }
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": self.name, "namespace": NAMESPACE, "annotations": annotations},
            "spec": spec,
        })
    }
}

/// A pod of another scheduler that sits on a node already.
#[must_use]
pub fn foreign_pod(name: &str, node: &str, cpu: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "kube-system",
                     "annotations": {"tephra.sh/run-for": "30s"}},
        "spec": {"nodeName": node, "schedulerName": "default-scheduler", "containers": [
            {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]},
    })
}

/// A PodGroup; `min_resources` null: none.
#[must_use]
pub fn gang(
    name: &str,
    queue: &str,
    min_member: u64,
    min_resources: &Value,
    priority: &str,
) -> Value {
    let mut spec = json!({"minMember": min_member, "queue": queue});
    if !min_resources.is_null() {
        spec["minResources"] = min_resources.clone();
    }
    if !priority.is_empty() {
        spec["priorityClassName"] = priority.into();
    }
    json!({
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": spec, "status": {"phase": "Pending"},
    })
}

/// An open queue; `capability` null: unlimited.
#[must_use]
pub fn queue(name: &str, weight: u64, capability: &Value) -> Value {
    let mut spec = json!({"weight": weight, "reclaimable": true});
    if !capability.is_null() {
        spec["capability"] = capability.clone();
    }
    json!({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
           "metadata": {"name": name}, "spec": spec, "status": {"state": "Open"}})
}

/// A node.
#[must_use]
pub fn node(name: &str, zone: &str, allocatable: &Value, tainted: bool) -> Value {
    let mut spec = json!({});
    if tainted {
        spec["taints"] = json!([{"key": "dedicated", "value": "x", "effect": "NoSchedule"}]);
    }
    json!({"apiVersion": "v1", "kind": "Node",
           "metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": zone}},
           "spec": spec,
           "status": {"allocatable": allocatable, "capacity": allocatable}})
}

/// A priority class.
#[must_use]
pub fn priority_class(name: &str, value: i64) -> Value {
    json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
           "metadata": {"name": name}, "value": value})
}
