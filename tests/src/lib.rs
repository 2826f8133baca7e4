//! Suites that need more than one crate: conformance corpora, the control plane rig, fault simulation.

pub mod conformance;
pub mod faults;
pub mod functions;
pub mod promcheck;
pub mod proxy;
pub mod rig;
pub mod volcano_metrics;
