//! The controllers against the in-process API server, in paused time: what a user sees, and how often it is written.

mod cluster;
mod pod_groups;
mod queues;
