//! The filters that depend on a pod's spec and a node's labels, taints and cordon only. The core judges each
//! pair of static key and node signature once with [`check`] and remembers the verdict.

use std::fmt;
use std::sync::Arc;

use super::node_selector::required_affinity_matches;
use super::rejection::RejectionCode;
use super::taints::{first_untolerated, tolerates_unschedulable};
use crate::event::{Labels, PodSpec, Taint};

/// What the static filters read of a node, borrowed from wherever the node is kept.
#[derive(Clone, Copy, Debug)]
pub struct NodeSignature<'n> {
    /// Labels; those that no selector mentions may be left out.
    pub labels: &'n Labels,
    /// Taints.
    pub taints: &'n [Taint],
    /// `spec.unschedulable`.
    pub unschedulable: bool,
    /// Name; `None` where a signature stands for several nodes. Terms over names then match nothing.
    pub name: Option<&'n str>,
}

/// Filters that the configuration can switch off (plugin `predicates`, arguments of 7.1). NodeUnschedulable
/// has no switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PredicateSwitches {
    /// `predicate.NodeAffinityEnable`.
    pub node_affinity: bool,
    /// `predicate.TaintTolerationEnable`.
    pub taint_toleration: bool,
    /// `predicate.NodePortsEnable`.
    pub node_ports: bool,
    /// `predicate.PodAffinityEnable`.
    pub pod_affinity: bool,
    /// `predicate.PodTopologySpreadEnable`.
    pub topology_spread: bool,
}

impl PredicateSwitches {
    /// Everything off.
    pub const NONE: Self = Self {
        node_affinity: false,
        taint_toleration: false,
        node_ports: false,
        pod_affinity: false,
        topology_spread: false,
    };
}

impl Default for PredicateSwitches {
    /// Everything on, as Volcano starts.
    fn default() -> Self {
        Self {
            node_affinity: true,
            taint_toleration: true,
            node_ports: true,
            pod_affinity: true,
            topology_spread: true,
        }
    }
}

/// Why a static filter rejects a node.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StaticReason {
    /// Filter NodeUnschedulable.
    Unschedulable,
    /// Filter NodeAffinity.
    NodeAffinity,
    /// Filter TaintToleration.
    Taints,
    /// Filter of plugin tdm, in its words.
    RevocableZone(Arc<str>),
}

impl StaticReason {
    /// The text that users see (7.5).
    pub fn text(&self) -> &str {
        match self {
            Self::Unschedulable => "node(s) were unschedulable",
            Self::NodeAffinity => "node(s) didn't match Pod's node affinity/selector",
            Self::Taints => "node(s) had untolerated taint(s)",
            Self::RevocableZone(text) => text,
        }
    }

    /// How final it is: no eviction changes labels, taints or a cordon.
    pub fn code(&self) -> RejectionCode {
        RejectionCode::UnschedulableAndUnresolvable
    }
}

impl fmt::Display for StaticReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// Runs the stable group of filters in their order (7.2): NodeUnschedulable, NodeAffinity, TaintToleration.
/// The first rejection is the answer because all of them are final.
pub fn check(
    spec: &PodSpec,
    node: &NodeSignature<'_>,
    switches: &PredicateSwitches,
) -> Result<(), StaticReason> {
    if node.unschedulable && !tolerates_unschedulable(&spec.tolerations) {
        return Err(StaticReason::Unschedulable);
    }
    if switches.node_affinity && !required_affinity_matches(spec, node.name, node.labels) {
        return Err(StaticReason::NodeAffinity);
    }
    if switches.taint_toleration && first_untolerated(&spec.tolerations, node.taints).is_some() {
        return Err(StaticReason::Taints);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{TaintEffect, Toleration};

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    fn wants_zone_a() -> PodSpec {
        PodSpec { node_selector: labels(&[("zone", "a")]), ..PodSpec::default() }
    }

    fn hard_taint() -> Vec<Taint> {
        vec![Taint { key: "gpu".into(), value: String::new(), effect: TaintEffect::NoSchedule }]
    }

    fn judge(
        spec: &PodSpec,
        node_labels: &Labels,
        taints: &[Taint],
        unschedulable: bool,
        switches: PredicateSwitches,
    ) -> Result<(), StaticReason> {
        let node = NodeSignature { labels: node_labels, taints, unschedulable, name: Some("n1") };
        check(spec, &node, &switches)
    }

    #[test]
    fn rejections_come_in_the_order_unschedulable_affinity_taints() {
        let spec = wants_zone_a();
        let on = PredicateSwitches::default();
        let (zone_a, zone_b) = (labels(&[("zone", "a")]), labels(&[("zone", "b")]));
        let taints = hard_taint();
        assert_eq!(judge(&spec, &zone_b, &taints, true, on), Err(StaticReason::Unschedulable));
        assert_eq!(judge(&spec, &zone_b, &taints, false, on), Err(StaticReason::NodeAffinity));
        assert_eq!(judge(&spec, &zone_a, &taints, false, on), Err(StaticReason::Taints));
        assert_eq!(judge(&spec, &zone_a, &[], false, on), Ok(()));
    }

    #[test]
    fn switches_silence_their_filter_and_no_other() {
        let spec = wants_zone_a();
        let zone_b = labels(&[("zone", "b")]);
        let taints = hard_taint();
        let no_affinity = PredicateSwitches { node_affinity: false, ..Default::default() };
        let no_taints = PredicateSwitches { taint_toleration: false, ..Default::default() };
        let off = PredicateSwitches::NONE;
        assert_eq!(judge(&spec, &zone_b, &taints, false, no_affinity), Err(StaticReason::Taints));
        assert_eq!(
            judge(&spec, &zone_b, &taints, false, no_taints),
            Err(StaticReason::NodeAffinity)
        );
        assert_eq!(judge(&spec, &zone_b, &taints, false, off), Ok(()));
        assert_eq!(judge(&spec, &zone_b, &taints, true, off), Err(StaticReason::Unschedulable));
    }

    #[test]
    fn a_pod_that_tolerates_everything_goes_to_a_cordoned_tainted_node() {
        let spec = PodSpec {
            tolerations: vec![Toleration { exists: true, ..Toleration::default() }],
            ..PodSpec::default()
        };
        let none = labels(&[]);
        assert_eq!(judge(&spec, &none, &hard_taint(), true, PredicateSwitches::default()), Ok(()));
    }

    #[test]
    fn texts_are_the_ones_users_search_for() {
        let texts = [StaticReason::Unschedulable, StaticReason::NodeAffinity, StaticReason::Taints]
            .map(|reason| (reason.to_string(), reason.code()));
        let last = RejectionCode::UnschedulableAndUnresolvable;
        assert_eq!(
            texts,
            [
                ("node(s) were unschedulable".to_owned(), last),
                ("node(s) didn't match Pod's node affinity/selector".to_owned(), last),
                ("node(s) had untolerated taint(s)".to_owned(), last),
            ]
        );
    }
}
