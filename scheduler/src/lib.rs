//! The scheduler process: reads the cluster, feeds [`tephra_core::Core`], and carries out what it decides.
//!
//! ```text
//! watch/ --events--> run (owns Core) --decisions--> bind, evict, status, events --> API server
//!                      ^---------------- outcomes -----------------'
//! ```
//!
//! The lease (`tephra_process`) moves the [`Fence`](fence::Fence) that every write passes. `decode` and `convert` turn JSON into the core's
//! structs; scenario files and benches use the same functions. The whole also runs on a current-thread runtime
//! under tokio's paused clock, which is how the simulator drives it.

mod backoff;
mod bind;
pub mod conf;
pub mod convert;
pub mod decode;
mod dispatch;
mod events;
mod evict;
pub mod flags;
pub mod health;
pub mod metrics;
pub mod options;
mod run;
mod scheduler;
#[cfg(test)]
mod scripted;
mod status;
mod watch;
mod write;

pub use options::SchedulerOptions;
pub use scheduler::Scheduler;
pub use tephra_process::{fence, lease};
