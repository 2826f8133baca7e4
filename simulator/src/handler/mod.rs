//! One module per thing a client can ask of a resource. Handlers run under the server's lock, never wait, and answer
//! with stored objects or refusals; `server.rs` turns these into HTTP.

pub(crate) mod delete;
pub(crate) mod discovery;
pub(crate) mod openapi;
pub(crate) mod patch;
pub(crate) mod read;
pub(crate) mod render;
pub(crate) mod review;
pub(crate) mod scale;
pub(crate) mod subresource;
pub(crate) mod table;
pub(crate) mod watch;
pub(crate) mod write;
