//! What all parts of Tephra agree on: quantities and resource vectors, the request of a pod, the scheduler
//! configuration, well-known keys and reasons, and (with feature `crd`) the custom resources.
//!
//! There is no I/O here and no async; without features there is no Kubernetes client either, which is how the
//! scheduling core uses this crate.

#![warn(missing_docs)]

pub mod clock;
pub mod conf;
pub mod keys;
pub mod planted;
pub mod pod_request;
pub mod quantity;
#[cfg(feature = "crd")]
pub mod queue_policy;
pub mod reasons;
pub mod resource;
#[cfg(feature = "crd")]
pub mod scheduling;
pub mod suspension;
#[cfg(feature = "crd")]
pub mod topology;
