//! Plugin `predicates`: which node filters run. The filters themselves live in `matching` (what depends on a node
//! alone) and `stateful` (what depends on other pods).
//!
//! | argument | default |
//! | --- | --- |
//! | `predicate.NodeAffinityEnable` | true |
//! | `predicate.NodePortsEnable` | true |
//! | `predicate.TaintTolerationEnable` | true |
//! | `predicate.PodAffinityEnable` | true |
//! | `predicate.PodTopologySpreadEnable` | true |
//!
//! Switches of volume and device filters are accepted; pods that need those are held until later work.

use tephra_api::conf::Arguments;

use super::{Hooks, Plugin};
use crate::matching::static_filter::PredicateSwitches;

/// The plugin.
#[derive(Debug, Default)]
pub struct Predicates {
    switches: PredicateSwitches,
}

impl Plugin for Predicates {
    fn hooks(&self) -> Hooks {
        Hooks::PREDICATE
    }

    fn configure(&mut self, arguments: &Arguments, warnings: &mut Vec<String>) {
        let mut read = |key: &str, switch: &mut bool| {
            if let Some(on) = arguments.bool(key, warnings) {
                *switch = on;
            }
        };
        read("predicate.NodeAffinityEnable", &mut self.switches.node_affinity);
        read("predicate.NodePortsEnable", &mut self.switches.node_ports);
        read("predicate.TaintTolerationEnable", &mut self.switches.taint_toleration);
        read("predicate.PodAffinityEnable", &mut self.switches.pod_affinity);
        read("predicate.PodTopologySpreadEnable", &mut self.switches.topology_spread);
    }

    fn filters(&self, switches: &mut PredicateSwitches) {
        *switches = self.switches;
    }
}
