//! Workloads over time: jobs of several teams arrive, run and end in virtual time, the real scheduling core decides who
//! starts, and the figures say how fair and how full that was (`tephra simulate --report`).
//!
//! A [`workload`] file (or a public [`trace`]) becomes a [`plan`]: nodes, queues and a list of jobs, fixed by a seed. The
//! [`engine`] plays a plan against a [`tephra_core::Core`]; the [`account`] integrates what each queue holds; [`figures`]
//! turns that into the metrics that `docs/report.md` defines; [`summary`] compares policies and takes medians over seeds.

pub mod account;
pub mod engine;
pub mod figures;
pub mod generate;
pub mod objects;
pub mod picture;
pub mod plan;
pub mod private_share;
pub mod summary;
pub mod trace;
pub mod victim;
pub mod workload;
