//! Filters and scores that need nothing but a pod's spec and one node: selectors, affinity, taints, images, and
//! the formulas over amounts. Everything here is a pure function of its arguments; nothing keeps state and
//! nothing may. What depends on pods elsewhere lives in [`crate::stateful`].
//!
//! The rules are those of the kube-scheduler filters and scores that Volcano's `predicates` and `nodeorder`
//! plugins wrap, and of Volcano's `binpack`. Rejections carry the texts that users search for.

pub mod image;
pub mod label_selector;
pub mod labels;
pub mod node_selector;
pub mod rejection;
pub mod requirement;
pub mod resource_score;
pub mod revocable;
pub mod static_filter;
pub mod static_score;
pub mod taints;

/// Highest score that one Kubernetes score gives a node (`MaxNodeScore`).
pub const MAX_NODE_SCORE: i64 = 100;
