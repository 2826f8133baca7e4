//! The controllers against the in-process API server, in paused time: what a user sees, and how often it is written. And
//! the program as a process against the same server over HTTP.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod cluster;
mod leadership;
mod pod_groups;
mod process;
mod queues;
