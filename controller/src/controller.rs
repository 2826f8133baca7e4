//! The controllers, one file each (and a folder of its own for its pure parts). `registry.rs` lists them.

pub(crate) mod pod_group;
pub(crate) mod queue;
pub(crate) mod suspension;
