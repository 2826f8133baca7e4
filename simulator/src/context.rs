//! What a request carries through the handlers besides its objects: time, rights to write, and what it caused.

use std::sync::Arc;

use crate::clock::timestamp;
use crate::store::object::Stored;

/// A change that the server made on its own as a consequence of a request (garbage collection, namespace deletion).
#[derive(Debug)]
pub(crate) struct Effect {
    pub(crate) verb: &'static str,
    pub(crate) plural: String,
    pub(crate) group: String,
    pub(crate) object: Arc<Stored>,
}

/// The context of one request.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) now_ms: i64,
    /// `now_ms` as `metav1.Time`.
    pub(crate) now: String,
    /// Validate and answer, store nothing.
    pub(crate) dry_run: bool,
    /// Refuse fields that the schema does not know, and wrong types (`fieldValidation=Strict`).
    pub(crate) strict: bool,
    /// Objects come with the status to store (fixtures), instead of one reset as kube-apiserver does.
    pub(crate) trusts_status: bool,
    /// Delete objects whose owners do not exist, as the garbage collector does.
    pub(crate) collects_absent_owners: bool,
    pub(crate) effects: Vec<Effect>,
}

impl Context {
    pub(crate) fn at(now_ms: i64, collects_absent_owners: bool) -> Self {
        Self {
            now_ms,
            now: timestamp(now_ms),
            dry_run: false,
            strict: false,
            trusts_status: false,
            collects_absent_owners,
            effects: Vec::new(),
        }
    }
}
