//! Scores over amounts: least and most allocated, balanced allocation (section 8) and binpack (section 9), one
//! node at a time.
//!
//! These are the reference for the vector kernel, which must agree bit by bit. Hence everything is `f64`, only
//! `+ - * / floor sqrt abs min` occur, and each function states its order of operations. Amounts are whole
//! numbers. A quotient that Volcano takes in integers is the floor of the `f64` quotient here; the two are
//! equal as long as `101 * allocatable` stays below 2^53 (81 TiB of memory on a node), beyond that they may
//! differ by one point.

const MAX: f64 = super::MAX_NODE_SCORE as f64;

/// LeastAllocated 0..100 of cpu and memory.
///
/// `requested` is what the node's pods and this pod ask for (with Kubernetes' defaults for what is missing).
/// Per resource: `floor((alloc - req) * 100 / alloc)`, 0 when `req > alloc`, left out when `alloc` is 0.
/// Then `floor((cpu + memory) / count)`; equal weights of 50 cancel. 0 without any resource.
pub fn least_allocated(requested: [f64; 2], allocatable: [f64; 2]) -> f64 {
    mean_of_two(requested, allocatable, |req, alloc| {
        if req > alloc { 0.0 } else { ((alloc - req) * MAX / alloc).floor() }
    })
}

/// MostAllocated 0..100 of cpu and memory: per resource `floor(min(req, alloc) * 100 / alloc)`, combined as in
/// [`least_allocated`].
pub fn most_allocated(requested: [f64; 2], allocatable: [f64; 2]) -> f64 {
    mean_of_two(requested, allocatable, |req, alloc| (req.min(alloc) * MAX / alloc).floor())
}

fn mean_of_two(requested: [f64; 2], allocatable: [f64; 2], score: impl Fn(f64, f64) -> f64) -> f64 {
    let mut sum = 0.0;
    let mut count = 0.0;
    for (req, alloc) in requested.into_iter().zip(allocatable) {
        if alloc > 0.0 {
            sum += score(req, alloc);
            count += 1.0;
        }
    }
    if count > 0.0 { (sum / count).floor() } else { 0.0 }
}

/// One resource of [`balanced_allocation`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Balanced {
    /// Plain requests of the node's pods and this pod.
    pub requested: f64,
    /// Allocatable; 0 leaves the resource out.
    pub allocatable: f64,
}

/// True when BalancedAllocation has a say at all: the pod asks for cpu, memory or `nvidia.com/gpu` (plain
/// requests). Otherwise the score adds 0 on every node.
pub fn balanced_applies(cpu: i64, memory: i64, gpu: i64) -> bool {
    cpu > 0 || memory > 0 || gpu > 0
}

/// BalancedAllocation 0..100. Pass cpu, memory and, only if the pod asks for one, `nvidia.com/gpu`, in this
/// order (at most three).
///
/// `f = min(req / alloc, 1)` per resource that the node has. Standard deviation of two: `|(f0 - f1) / 2|`; of
/// three: `mean = ((f0 + f1) + f2) / 3`, `sqrt((((f0-mean)^2 + (f1-mean)^2) + (f2-mean)^2) / 3)`; of fewer: 0.
/// Result: `floor((1 - deviation) * 100)`.
pub fn balanced_allocation(resources: &[Balanced]) -> f64 {
    let mut fractions = [0.0; 3];
    let mut count = 0;
    for resource in resources.iter().filter(|r| r.allocatable > 0.0).take(3) {
        fractions[count] = (resource.requested / resource.allocatable).min(1.0);
        count += 1;
    }
    let deviation = match count {
        2 => ((fractions[0] - fractions[1]) / 2.0).abs(),
        3 => {
            let mean = (fractions[0] + fractions[1] + fractions[2]) / 3.0;
            let square = fractions.map(|f| (f - mean) * (f - mean));
            ((square[0] + square[1] + square[2]) / 3.0).sqrt()
        }
        _ => 0.0,
    };
    ((1.0 - deviation) * MAX).floor()
}

/// One resource of [`binpack`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Packed {
    /// What the pod asks for; more than 0.
    pub request: f64,
    /// Requests of the node's tasks that hold it, releasing ones too, pipelined ones not (P53).
    pub used: f64,
    /// Allocatable.
    pub allocatable: f64,
    /// Configured weight, 0 or more.
    pub weight: f64,
}

/// Volcano's binpack score, `0..100 * weight`, not rounded.
///
/// Pass the resources that the pod asks for and that have a configured weight: cpu, memory, then the others in
/// the order of their dimension numbers (Volcano's order of these is random). In that order
/// `sum += ((request + used) * weight) / allocatable` and `weights += weight`; a resource that the node lacks
/// adds to `weights` only (P54). A resource that would not fit makes the score 0. Result:
/// `(sum / weights) * (100 * plugin_weight)`, 0 when `weights` is 0.
pub fn binpack(resources: impl IntoIterator<Item = Packed>, plugin_weight: f64) -> f64 {
    let mut sum = 0.0;
    let mut weights = 0.0;
    for resource in resources {
        weights += resource.weight;
        if resource.allocatable <= 0.0 || resource.weight <= 0.0 {
            continue;
        }
        let filled = resource.request + resource.used;
        if filled > resource.allocatable {
            return 0.0;
        }
        sum += filled * resource.weight / resource.allocatable;
    }
    if weights > 0.0 { sum / weights * (MAX * plugin_weight) } else { 0.0 }
}

#[cfg(test)]
#[path = "resource_score_tests.rs"]
mod tests;
