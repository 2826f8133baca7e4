//! Plugins `nodeorder` (8) and `binpack` (9) with their default weights: which node is best for a task.

use tephra_api::resource::Resource;
use tephra_core::event::{PodSpec, TaintEffect};

use super::filter::{statically_feasible, term_selects, tolerated};
use super::node::Node;
use super::session::{Session, Task};

const MIB: i64 = 1 << 20;

impl Session {
    /// Best of the given nodes (slots in order) for a task; the first among equals.
    pub fn best_node(&self, task: usize, slots: &[usize]) -> Option<usize> {
        if slots.len() < 2 {
            return slots.first().copied();
        }
        let scores = self.scores(task, slots);
        let mut best = 0;
        for at in 1..slots.len() {
            if scores[at] > scores[best] {
                best = at;
            }
        }
        Some(slots[best])
    }

    /// Total score of each of the given nodes.
    pub fn scores(&self, task: usize, slots: &[usize]) -> Vec<f64> {
        let row = &self.tasks[task];
        let nodes: Vec<&Node> =
            slots.iter().filter_map(|&slot| self.nodes[slot].as_ref()).collect();
        let mut totals = vec![0.0; slots.len()];
        if self.has("nodeorder") {
            let affinity = self.affinity_scores(task, slots);
            let spread = self.spread_scores(task, slots);
            let possible: Vec<&Node> = self
                .nodes
                .iter()
                .flatten()
                .filter(|node| {
                    !self.has("predicates") || statically_feasible(&row.spec, &node.object)
                })
                .collect();
            let most_preferred = possible.iter().map(|node| preferred(&row.spec, node)).max();
            let most_tainted = possible.iter().map(|node| avoided(&row.spec, node)).max();
            let (most_preferred, most_tainted) =
                (most_preferred.unwrap_or(0), most_tainted.unwrap_or(0));
            for (at, node) in nodes.iter().enumerate() {
                let tainted = if most_tainted == 0 {
                    100
                } else {
                    100 - avoided(&row.spec, node) * 100 / most_tainted
                };
                let preference = if most_preferred == 0 {
                    0
                } else {
                    preferred(&row.spec, node) * 100 / most_preferred
                };
                let sum = least_allocated(row, node)
                    + balanced(row, node)
                    + 2 * preference
                    + 3 * tainted
                    + self.image_locality(&row.spec, node)
                    + 2 * affinity[at]
                    + 2 * spread[at];
                totals[at] += sum as f64;
            }
        }
        if self.has("binpack") {
            for (total, node) in totals.iter_mut().zip(&nodes) {
                *total += binpack(&row.request, node);
            }
        }
        totals
    }

    fn image_locality(&self, spec: &PodSpec, node: &Node) -> i64 {
        if spec.images.is_empty() {
            return 0;
        }
        let all = self.nodes.iter().flatten().count() as f64;
        let mut sum = 0;
        for image in &spec.images {
            let image = with_tag(image);
            let here = node.object.images.iter().find(|(name, _)| with_tag(name) == image);
            if let Some((_, size)) = here {
                let having =
                    self.nodes.iter().flatten().filter(|n| {
                        n.object.images.iter().any(|(name, _)| with_tag(name) == image)
                    });
                sum += (*size as f64 * (having.count() as f64 / all)) as i64;
            }
        }
        let (low, high) = (23 * MIB, 1000 * MIB * spec.images.len() as i64);
        (sum.clamp(low, high) - low) * 100 / (high - low)
    }
}

fn preferred(spec: &PodSpec, node: &Node) -> i64 {
    let terms = spec.preferred_node_terms.iter();
    terms.filter(|(_, t)| term_selects(t, &node.object)).map(|(weight, _)| i64::from(*weight)).sum()
}

fn avoided(spec: &PodSpec, node: &Node) -> i64 {
    let taints = node.object.taints.iter().filter(|t| t.effect == TaintEffect::PreferNoSchedule);
    taints.filter(|taint| !tolerated(&spec.tolerations, taint)).count() as i64
}

fn least_allocated(task: &Task, node: &Node) -> i64 {
    let allocatable = [node.allocatable.milli_cpu as i64, node.allocatable.memory as i64];
    let (mut sum, mut weights) = (0, 0);
    for (r, allocatable) in allocatable.into_iter().enumerate() {
        if allocatable == 0 {
            continue;
        }
        let left = i128::from(allocatable - node.nonzero[r] - task.spec.nonzero[r]);
        let score = if left < 0 { 0 } else { left * 100 / i128::from(allocatable) };
        sum += 50 * score as i64;
        weights += 50;
    }
    if weights == 0 { 0 } else { sum / weights }
}

fn balanced(task: &Task, node: &Node) -> i64 {
    let names = ["cpu", "memory", "nvidia.com/gpu"];
    if names.iter().all(|name| task.request.get(name) == 0.0) {
        return 0;
    }
    let mut fractions = Vec::new();
    for name in names {
        let allocatable = node.allocatable.get(name);
        let scalar_unasked = name.contains('/') && task.request.get(name) == 0.0;
        if allocatable == 0.0 || scalar_unasked {
            continue;
        }
        let requested = node.plain.get(name) + task.request.get(name);
        fractions.push((requested / allocatable).min(1.0));
    }
    let deviation = match fractions.as_slice() {
        [a, b] => ((a - b) / 2.0).abs(),
        [a, b, c] => {
            let mean = (a + b + c) / 3.0;
            let squares =
                (a - mean) * (a - mean) + (b - mean) * (b - mean) + (c - mean) * (c - mean);
            (squares / 3.0).sqrt()
        }
        _ => 0.0,
    };
    ((1.0 - deviation) * 100.0) as i64
}

fn binpack(request: &Resource, node: &Node) -> f64 {
    let (mut sum, mut weights) = (0.0, 0.0);
    for name in ["cpu", "memory"] {
        if request.get(name) < 0.1 {
            continue;
        }
        weights += 1.0;
        let allocatable = node.allocatable.get(name);
        if allocatable == 0.0 {
            continue;
        }
        let used = request.get(name) + node.used.get(name);
        if used > allocatable {
            return 0.0;
        }
        sum += used / allocatable;
    }
    if weights == 0.0 { 0.0 } else { sum / weights * 100.0 }
}

/// An image name with its tag, `latest` when it has none.
fn with_tag(name: &str) -> String {
    if name.rfind(':') <= name.rfind('/') { format!("{name}:latest") } else { name.to_owned() }
}
