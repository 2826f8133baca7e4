//! Plugin `nodeorder`: the weighted sum of Kubernetes' node scores.
//!
//! | argument | default | score |
//! | --- | --- | --- |
//! | `leastrequested.weight` | 1 | LeastAllocated |
//! | `mostrequested.weight` | 0 | MostAllocated |
//! | `balancedresource.weight` | 1 | BalancedAllocation |
//! | `nodeaffinity.weight` | 2 | preferred node affinity |
//! | `podaffinity.weight` | 2 | inter-pod affinity |
//! | `tainttoleration.weight` | 3 | PreferNoSchedule taints |
//! | `imagelocality.weight` | 1 | ImageLocality |
//! | `podtopologyspread.weight` | 2 | soft spread constraints |
//!
//! Weight 0 switches a score off; a negative one inverts it and is reported (P49).

use tephra_api::conf::Arguments;

use super::{Hooks, Plugin};
use crate::index::score::ScoreConfig;

const ARGUMENTS: [(&str, i64); 8] = [
    ("leastrequested.weight", 1),
    ("mostrequested.weight", 0),
    ("balancedresource.weight", 1),
    ("nodeaffinity.weight", 2),
    ("podaffinity.weight", 2),
    ("tainttoleration.weight", 3),
    ("imagelocality.weight", 1),
    ("podtopologyspread.weight", 2),
];

/// The plugin.
#[derive(Debug)]
pub struct NodeOrder {
    weights: [i64; 8],
}

impl Default for NodeOrder {
    fn default() -> Self {
        Self { weights: ARGUMENTS.map(|(_, default)| default) }
    }
}

impl Plugin for NodeOrder {
    fn hooks(&self) -> Hooks {
        Hooks::NODE_ORDER
    }

    fn configure(&mut self, arguments: &Arguments, warnings: &mut Vec<String>) {
        for ((key, _), weight) in ARGUMENTS.iter().zip(&mut self.weights) {
            if let Some(value) = arguments.int(key, warnings) {
                if value < 0 {
                    warnings.push(format!("argument {key} is negative: the score is inverted"));
                }
                // A weight beyond this would only drown every other score in rounding.
                *weight = value.clamp(-1_000_000_000, 1_000_000_000);
            }
        }
    }

    fn scores(&self, config: &mut ScoreConfig) {
        let [least, most, balanced, affinity, pod_affinity, taints, images, spread] = self.weights;
        config.least = least as f64;
        config.most = most as f64;
        config.balanced = balanced as f64;
        config.fixed.affinity = affinity;
        config.fixed.taints = taints;
        config.fixed.images = images;
        config.pod_affinity = pod_affinity as f64;
        config.spread = spread as f64;
    }
}
