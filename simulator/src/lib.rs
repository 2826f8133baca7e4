//! A Kubernetes cluster in one process: an API server without sockets or disks, virtual time, and faults on demand.
//!
//! [`ApiServer`] answers the requests that Tephra's programs, kube-rs and kubectl send, with the semantics that
//! schedulers and controllers depend on: resourceVersions and conflicts, watches with bookmarks and 410, paging, all
//! patch types, bindings, finalizers, garbage collection. `kube::Client`s reach it in process
//! ([`ApiServer::client`]), other programs over a port ([`ApiServer::serve`]).
//!
//! With a [`clock::VirtualClock`] under paused tokio time a whole run is deterministic: uids and generated names come
//! from a seed, watches wake in a fixed order, and nothing sleeps for real. It is a test double and a playground; it
//! enforces no quotas, RBAC or webhooks and fills in no defaults of schemas.

pub mod checker;
pub mod clock;
pub mod faults;
pub mod history;
pub mod kubelet;
pub mod serve;
pub mod status;

mod admission;
mod apply;
mod builtin;
mod collect;
mod columns;
mod context;
mod custom;
mod dispatch;
mod fixture;
mod form;
mod handler;
mod protobuf;
mod record;
mod request;
mod resource;
mod schema;
mod selector;
mod server;
mod service;
mod store;
mod strategic;

pub use history::WriteRecord;
pub use server::{ApiServer, ServerOptions};
pub use service::{ApiBody, ApiService};
pub use status::Refusal;
pub use store::log::Change;
