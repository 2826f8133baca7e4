//! Switches of a plugin's extension points, with Volcano's spellings (spec 1.3).

use serde_json::Value;

/// A switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each switch is named like the extension point it gates")]
pub enum Flag {
    JobOrder,
    JobReady,
    JobPipelined,
    JobEnqueued,
    TaskOrder,
    Preemptable,
    Reclaimable,
    Preemptive,
    QueueOrder,
    Predicate,
    BestNode,
    NodeOrder,
    TargetJob,
    ReservedNodes,
    Victim,
    JobStarving,
    Overused,
    Allocatable,
    HyperNodeOrder,
    SubJobReady,
    SubJobPipelined,
    SubJobOrder,
    HyperNodeGradient,
    Hierarchy,
    ClusterOrder,
}

/// Keys as they are written. `EnabledClusterOrder` is the one that v1.15 reads, the other spelling is that of
/// later versions (B55).
const KEYS: &[(&str, Flag)] = &[
    ("enableJobOrder", Flag::JobOrder),
    ("enableJobReady", Flag::JobReady),
    ("enableJobPipelined", Flag::JobPipelined),
    ("enableJobEnqueued", Flag::JobEnqueued),
    ("enableTaskOrder", Flag::TaskOrder),
    ("enablePreemptable", Flag::Preemptable),
    ("enableReclaimable", Flag::Reclaimable),
    ("enablePreemptive", Flag::Preemptive),
    ("enableQueueOrder", Flag::QueueOrder),
    ("enablePredicate", Flag::Predicate),
    ("enableBestNode", Flag::BestNode),
    ("enableNodeOrder", Flag::NodeOrder),
    ("enableTargetJob", Flag::TargetJob),
    ("enableReservedNodes", Flag::ReservedNodes),
    ("enabledVictim", Flag::Victim),
    ("enableJobStarving", Flag::JobStarving),
    ("enabledOverused", Flag::Overused),
    ("enabledAllocatable", Flag::Allocatable),
    ("enabledHyperNodeOrder", Flag::HyperNodeOrder),
    ("enabledSubJobReady", Flag::SubJobReady),
    ("enabledSubJobPipelined", Flag::SubJobPipelined),
    ("enabledSubJobOrder", Flag::SubJobOrder),
    ("enabledHyperNodeGradient", Flag::HyperNodeGradient),
    ("enableHierarchy", Flag::Hierarchy),
    ("EnabledClusterOrder", Flag::ClusterOrder),
    ("enabledClusterOrder", Flag::ClusterOrder),
];

impl Flag {
    /// The switch of a key.
    pub fn of_key(key: &str) -> Option<Self> {
        KEYS.iter().find(|(known, _)| *known == key).map(|(_, flag)| *flag)
    }

    /// State of a switch that is not written.
    pub fn default_on(self) -> bool {
        !matches!(self, Self::Hierarchy | Self::ClusterOrder)
    }
}

/// A boolean as YAML 1.1 spells it: users write `yes` and `off`.
pub(super) fn yaml_bool(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(on) => Some(*on),
        Value::String(text) => match text.as_str() {
            "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" | "true" | "True" | "TRUE" => {
                Some(true)
            }
            "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" | "false" | "False"
            | "FALSE" => Some(false),
            _ => None,
        },
        _ => None,
    }
}
