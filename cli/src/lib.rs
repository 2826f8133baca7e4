//! The tephra command line: scenario files, simulation, demo and benches.

pub mod cluster;
pub mod command;
pub mod report;
pub mod scenario;
