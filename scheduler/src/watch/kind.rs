//! The kinds that are watched: where they live, and how one of them becomes an event.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;
use tephra_core::event::{Event, NodeObject, ObjectKey, PodObject, PodPhase};

use super::store::Id;
use crate::convert;
use crate::decode::{self, DecodeError, Interner, Names};

/// What reading one object yields.
#[derive(Debug)]
pub(crate) struct Object {
    pub(super) id: Id,
    pub(super) version: u64,
    pub(super) fingerprint: u64,
    /// `None`: the object does not matter to scheduling (any more).
    pub(super) event: Option<Event>,
}

/// Whether the scheduler can do without a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// It cannot.
    Always,
    /// A server that does not know the kind has none of them.
    WhereKnown,
    /// Only some plugin reads it: when it may not be listed, the scheduler does without.
    WhereAllowed,
}

/// One watched kind.
pub(crate) trait Kind: Send + Sync + 'static {
    /// Name for logs and metrics, e.g. `Pod`.
    fn name(&self) -> &'static str;
    /// Path of its collection over all namespaces.
    fn path(&self) -> &'static str;
    /// Reads one object.
    fn read(&mut self, bytes: &[u8]) -> Result<Object, DecodeError>;
    /// The event that says an object is gone.
    fn gone(&self, id: &Id) -> Event;
    /// The event that says whether its objects may be read, where somebody must know.
    fn readable(&self, _readable: bool) -> Option<Event> {
        None
    }
    /// Whether the scheduler can do without it.
    fn need(&self) -> Need {
        Need::Always
    }
    /// Identity of an object that could not be read.
    fn unread(&self, error: &DecodeError) -> Id {
        Id::new(&error.object)
    }
}

/// All pods: ours, and those of others that use nodes.
pub(crate) struct Pods {
    names: Names,
    interner: Interner,
}

impl Pods {
    pub(crate) fn new(names: Names) -> Self {
        Self { names, interner: Interner::new() }
    }
}

/// Others' pods matter while they take up a node, or name a PodGroup that must then be left alone (B13).
fn matters(pod: &PodObject) -> bool {
    let ended = matches!(pod.phase, PodPhase::Succeeded | PodPhase::Failed);
    pod.ours || (!ended && (pod.node.is_some() || pod.group.is_some()))
}

impl Kind for Pods {
    fn name(&self) -> &'static str {
        "Pod"
    }

    fn path(&self) -> &'static str {
        "/api/v1/pods"
    }

    fn read(&mut self, bytes: &[u8]) -> Result<Object, DecodeError> {
        let decoded = self.interner.decode(bytes, &self.names)?;
        Ok(Object {
            id: Id::new(&decoded.pod.uid),
            version: decoded.version,
            fingerprint: decoded.fingerprint,
            event: matters(&decoded.pod).then_some(Event::Pod(decoded.pod)),
        })
    }

    fn gone(&self, id: &Id) -> Event {
        Event::PodDeleted(id.text())
    }

    fn unread(&self, error: &DecodeError) -> Id {
        Id::new(&error.uid)
    }
}

/// Nodes, all or those with one of some labels (`--node-selector`).
pub(crate) struct Nodes {
    selector: Vec<(String, String)>,
}

impl Nodes {
    pub(crate) fn new(selector: Vec<(String, String)>) -> Self {
        Self { selector }
    }

    fn selected(&self, node: &NodeObject) -> bool {
        self.selector.is_empty() || self.selector.iter().any(|label| node.labels.contains(label))
    }
}

impl Kind for Nodes {
    fn name(&self) -> &'static str {
        "Node"
    }

    fn path(&self) -> &'static str {
        "/api/v1/nodes"
    }

    fn read(&mut self, bytes: &[u8]) -> Result<Object, DecodeError> {
        let (node, version, uid) = decode::node::decode(bytes)?;
        let mut hasher = DefaultHasher::new();
        (&uid, &node.labels, &node.taints, node.unschedulable).hash(&mut hasher);
        (&node.allocatable, &node.images).hash(&mut hasher);
        Ok(Object {
            id: Id::new(&node.name),
            version,
            fingerprint: hasher.finish(),
            event: self.selected(&node).then_some(Event::Node(node)),
        })
    }

    fn gone(&self, id: &Id) -> Event {
        Event::NodeDeleted(id.text())
    }
}

/// A kind of which there are few objects: read as a JSON value.
pub(crate) struct Small {
    name: &'static str,
    path: &'static str,
    read: fn(&Value) -> Result<Event, DecodeError>,
    gone: fn(ObjectKey) -> Event,
    readable: Option<fn(bool) -> Event>,
    need: Need,
}

/// PodGroups.
pub(crate) const POD_GROUPS: Small = Small {
    name: "PodGroup",
    path: "/apis/scheduling.volcano.sh/v1beta1/podgroups",
    read: |value| convert::pod_group(value).map(Event::PodGroup),
    gone: Event::PodGroupDeleted,
    readable: None,
    need: Need::Always,
};

/// Queues.
pub(crate) const QUEUES: Small = Small {
    name: "Queue",
    path: "/apis/scheduling.volcano.sh/v1beta1/queues",
    read: |value| convert::queue(value).map(Event::Queue),
    gone: |key| Event::QueueDeleted(key.name),
    readable: None,
    need: Need::Always,
};

/// Policies of queues. A cluster may not have the kind.
pub(crate) const QUEUE_POLICIES: Small = Small {
    name: "QueuePolicy",
    path: "/apis/tephra.sh/v1alpha1/queuepolicies",
    read: |value| convert::queue_policy(value).map(Event::QueuePolicy),
    gone: |key| Event::QueuePolicyDeleted(key.name),
    readable: None,
    need: Need::WhereKnown,
};

/// Hypernodes. A cluster may not have the kind.
pub(crate) const HYPER_NODES: Small = Small {
    name: "HyperNode",
    path: "/apis/topology.volcano.sh/v1alpha1/hypernodes",
    read: |value| convert::hyper_node(value).map(Event::HyperNode),
    gone: |key| Event::HyperNodeDeleted(key.name),
    readable: None,
    need: Need::WhereKnown,
};

/// Priority classes.
pub(crate) const PRIORITY_CLASSES: Small = Small {
    name: "PriorityClass",
    path: "/apis/scheduling.k8s.io/v1/priorityclasses",
    read: |value| convert::priority_class(value).map(Event::PriorityClass),
    gone: |key| Event::PriorityClassDeleted(key.name),
    readable: None,
    need: Need::Always,
};

/// Namespaces.
pub(crate) const NAMESPACES: Small = Small {
    name: "Namespace",
    path: "/api/v1/namespaces",
    read: |value| convert::namespace(value).map(Event::Namespace),
    gone: |key| Event::NamespaceDeleted(key.name),
    readable: None,
    need: Need::Always,
};

/// Claims on volumes.
pub(crate) const VOLUME_CLAIMS: Small = Small {
    name: "PersistentVolumeClaim",
    path: "/api/v1/persistentvolumeclaims",
    read: |value| convert::volume_claim(value).map(Event::VolumeClaim),
    gone: Event::VolumeClaimDeleted,
    readable: None,
    need: Need::Always,
};

/// Volumes.
pub(crate) const VOLUMES: Small = Small {
    name: "PersistentVolume",
    path: "/api/v1/persistentvolumes",
    read: |value| convert::volume(value).map(Event::Volume),
    gone: |key| Event::VolumeDeleted(key.name),
    readable: None,
    need: Need::Always,
};

/// Budgets of plugin `pdb`.
pub(crate) const DISRUPTION_BUDGETS: Small = Small {
    name: "PodDisruptionBudget",
    path: "/apis/policy/v1/poddisruptionbudgets",
    read: |value| convert::disruption_budget(value).map(Event::DisruptionBudget),
    gone: Event::DisruptionBudgetDeleted,
    readable: Some(Event::DisruptionBudgetsReadable),
    need: Need::WhereAllowed,
};

/// Quotas of plugin `resourcequota`.
pub(crate) const RESOURCE_QUOTAS: Small = Small {
    name: "ResourceQuota",
    path: "/api/v1/resourcequotas",
    read: |value| convert::resource_quota(value).map(Event::ResourceQuota),
    gone: Event::ResourceQuotaDeleted,
    readable: None,
    need: Need::WhereAllowed,
};

impl Kind for Small {
    fn name(&self) -> &'static str {
        self.name
    }

    fn path(&self) -> &'static str {
        self.path
    }

    fn readable(&self, readable: bool) -> Option<Event> {
        self.readable.map(|event| event(readable))
    }

    fn need(&self) -> Need {
        self.need
    }

    fn read(&mut self, bytes: &[u8]) -> Result<Object, DecodeError> {
        let value: Value = serde_json::from_slice(bytes).map_err(|error| {
            DecodeError::at(self.name, ("", "", ""), ".", "", error.to_string())
        })?;
        let event = (self.read)(&value)?;
        let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).unwrap_or("");
        let id = match (text("/metadata/namespace"), text("/metadata/name")) {
            ("", name) => name.to_owned(),
            (namespace, name) => format!("{namespace}/{name}"),
        };
        let mut hasher = DefaultHasher::new();
        // These structs have no floating point and no hash maps: their debug text is their content.
        format!("{event:?}").hash(&mut hasher);
        Ok(Object {
            id: Id::new(&id),
            version: text("/metadata/resourceVersion").parse().unwrap_or(0),
            fingerprint: hasher.finish(),
            event: Some(event),
        })
    }

    fn gone(&self, id: &Id) -> Event {
        let text = id.text();
        let key = match text.split_once('/') {
            Some((namespace, name)) => ObjectKey::new(namespace, name),
            None => ObjectKey::new("", text),
        };
        (self.gone)(key)
    }
}
