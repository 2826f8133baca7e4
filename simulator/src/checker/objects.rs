//! The objects that the rules speak of, read from JSON with just the fields that matter.

use serde_json::Value;

use super::amounts::{Amounts, pod_request};

/// Text at a pointer, empty when absent.
pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or("")
}

fn number(object: &Value, pointer: &str) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0)
}

fn is_filled(object: &Value, pointer: &str) -> bool {
    match object.pointer(pointer) {
        Some(Value::Array(items)) => !items.is_empty(),
        Some(Value::Object(fields)) => !fields.is_empty(),
        _ => false,
    }
}

/// A pod.
#[derive(Clone, Debug, Default)]
pub(super) struct Pod {
    pub(super) uid: String,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) scheduler: String,
    /// Empty: not bound.
    pub(super) node: String,
    /// PodGroup it names, empty: none.
    pub(super) group: String,
    pub(super) request: Amounts,
    pub(super) phase: String,
    pub(super) deleting: bool,
    pub(super) gated: bool,
    /// Does not say that it may not be evicted.
    pub(super) preemptable: bool,
    pub(super) selector: Value,
    pub(super) tolerations: Value,
    /// Uses filters that the checker does not know: it is never called placeable.
    pub(super) exotic: bool,
    /// When it appeared, Unix milliseconds.
    pub(super) created_ms: i64,
    /// When it got its node, Unix milliseconds.
    pub(super) bound_ms: i64,
}

impl Pod {
    pub(super) fn read(pod: &Value) -> Self {
        let group = match text(pod, "/metadata/annotations/scheduling.k8s.io~1group-name") {
            "" => text(pod, "/metadata/annotations/scheduling.volcano.sh~1group-name"),
            group => group,
        };
        let ports = pod["spec"]["containers"].as_array().into_iter().flatten();
        let host_ports = ports
            .filter_map(|container| container["ports"].as_array())
            .flatten()
            .any(|port| port["hostPort"].as_i64().unwrap_or(0) > 0);
        let preemptable = ["/metadata/annotations", "/metadata/labels"]
            .map(|map| text(pod, &format!("{map}/volcano.sh~1preemptable")))
            .into_iter()
            .find(|text| !text.is_empty());
        Self {
            uid: text(pod, "/metadata/uid").to_owned(),
            preemptable: preemptable.is_none_or(|text| text == "true"),
            namespace: text(pod, "/metadata/namespace").to_owned(),
            name: text(pod, "/metadata/name").to_owned(),
            scheduler: text(pod, "/spec/schedulerName").to_owned(),
            node: text(pod, "/spec/nodeName").to_owned(),
            group: group.to_owned(),
            request: pod_request(pod),
            phase: text(pod, "/status/phase").to_owned(),
            deleting: !text(pod, "/metadata/deletionTimestamp").is_empty(),
            gated: is_filled(pod, "/spec/schedulingGates"),
            selector: pod["spec"]["nodeSelector"].clone(),
            tolerations: pod["spec"]["tolerations"].clone(),
            exotic: host_ports
                || ["/spec/affinity", "/spec/topologySpreadConstraints", "/spec/volumes"]
                    .iter()
                    .chain(&["/spec/resourceClaims"])
                    .any(|pointer| is_filled(pod, pointer)),
            created_ms: 0,
            bound_ms: 0,
        }
    }

    pub(super) fn ended(&self) -> bool {
        matches!(self.phase.as_str(), "Succeeded" | "Failed")
    }

    /// Holds room on a node.
    pub(super) fn occupies(&self) -> bool {
        !self.node.is_empty() && !self.ended()
    }

    /// Waits for a node.
    pub(super) fn waits(&self) -> bool {
        self.node.is_empty() && !self.ended() && !self.deleting && !self.gated
    }

    pub(super) fn title(&self) -> String {
        format!("pod {}/{}", self.namespace, self.name)
    }
}

/// What a node was from some moment on.
#[derive(Clone, Debug, Default)]
pub(super) struct NodeVersion {
    pub(super) since_ms: i64,
    /// None: the node does not exist.
    pub(super) node: Option<Node>,
}

/// A node.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    pub(super) allocatable: Amounts,
    pub(super) labels: Value,
    pub(super) taints: Value,
    pub(super) unschedulable: bool,
}

impl Node {
    pub(super) fn read(node: &Value) -> Self {
        Self {
            allocatable: Amounts::read(&node["status"]["allocatable"]),
            labels: node["metadata"]["labels"].clone(),
            taints: node["spec"]["taints"].clone(),
            unschedulable: node["spec"]["unschedulable"] == true,
        }
    }
}

/// A PodGroup.
#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    pub(super) min_member: usize,
    /// Has rules about tasks or subgroups that the checker does not know.
    pub(super) exotic: bool,
    pub(super) queue: String,
    pub(super) priority_class: String,
    pub(super) min_resources: Option<Amounts>,
    pub(super) phase: String,
    pub(super) running: i64,
    pub(super) succeeded: i64,
    pub(super) failed: i64,
    /// It is suspended.
    pub(super) down: Option<Down>,
}

/// What a suspended gang waits for.
#[derive(Clone, Debug, Default)]
pub(super) struct Down {
    /// Its pods to be.
    pub(super) members: Vec<Pod>,
    /// A person wants it to stay down.
    pub(super) held: bool,
}

impl Down {
    fn read(group: &Value) -> Option<Self> {
        let text = |key: &str| group["metadata"]["annotations"][key].as_str();
        let record: Value = serde_json::from_str(text("tephra.sh/suspended")?).ok()?;
        if text("tephra.sh/suspend").is_some() {
            return None;
        }
        let members = record["members"].as_array().into_iter().flatten();
        let members = members.flat_map(|member| {
            let count = usize::try_from(number(member, "/count")).unwrap_or(0);
            std::iter::repeat_n(Pod::read(&member["pod"]), count)
        });
        Some(Self { members: members.collect(), held: text("tephra.sh/hold").is_some() })
    }
}

impl Group {
    pub(super) fn read(group: &Value) -> Self {
        let queue = match text(group, "/spec/queue") {
            "" => "default",
            queue => queue,
        };
        let resources = &group["spec"]["minResources"];
        Self {
            min_member: usize::try_from(number(group, "/spec/minMember")).unwrap_or(0),
            exotic: is_filled(group, "/spec/minTaskMember")
                || is_filled(group, "/spec/subGroupPolicy")
                || is_filled(group, "/spec/networkTopology"),
            queue: queue.to_owned(),
            priority_class: text(group, "/spec/priorityClassName").to_owned(),
            min_resources: resources.is_object().then(|| Amounts::read(resources)),
            phase: text(group, "/status/phase").to_owned(),
            running: number(group, "/status/running"),
            succeeded: number(group, "/status/succeeded"),
            failed: number(group, "/status/failed"),
            down: Down::read(group),
        }
    }
}

/// A queue.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    /// The queue above; empty: `root`.
    pub(super) parent: String,
    pub(super) weight: i128,
    pub(super) open: bool,
    pub(super) capability: Amounts,
    pub(super) guarantee: Amounts,
    pub(super) allocated: Amounts,
    pub(super) counts: [i64; 5],
}

/// Phases of PodGroups that a queue counts, in the order of [`Queue::counts`].
pub(super) const COUNTED: [&str; 5] = ["Pending", "Running", "Unknown", "Inqueue", "Completed"];

impl Queue {
    pub(super) fn read(queue: &Value) -> Self {
        let count = |phase: &str| number(queue, &format!("/status/{}", phase.to_lowercase()));
        Self {
            parent: text(queue, "/spec/parent").to_owned(),
            weight: i128::from(number(queue, "/spec/weight").max(1)),
            open: matches!(text(queue, "/status/state"), "" | "Open"),
            capability: Amounts::read(&queue["spec"]["capability"]),
            guarantee: Amounts::read(&queue["spec"]["guarantee"]["resource"]),
            allocated: Amounts::read(&queue["status"]["allocated"]),
            counts: COUNTED.map(count),
        }
    }

    /// What the capability says of a resource; a limit of 0 cpu or memory means none, as in Volcano.
    pub(super) fn limit(&self, name: &str) -> Option<i128> {
        let limit = self.capability.0.get(name).copied()?;
        (limit > 0 || !matches!(name, "cpu" | "memory")).then_some(limit)
    }
}
