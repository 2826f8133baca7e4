//! What every long-running program of Tephra is made of, whatever it does: a command line in Go's syntax, the way to
//! the API server, leader election with fencing, health and metrics endpoints, signals.
//!
//! The scheduler and the controller use the same parts, so that they behave the same on a command line, under a
//! lost lease and at the end. Nothing here knows what either of them does.

pub mod client;
pub mod connection;
pub mod election;
pub mod fence;
pub mod flags;
pub mod leadership;
pub mod lease;
pub mod runtime;
pub mod serve;
pub mod signals;
