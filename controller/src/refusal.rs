//! What an API call of a controller can come back with, sorted by what to do about it.

use kube::Error;
use thiserror::Error as ThisError;

/// Why a reconciliation did not finish. It is tried again in any case; the kind decides how loudly that is said.
#[derive(Debug, ThisError)]
pub(crate) enum ReconcileError {
    /// The API server could not be asked or said no.
    #[error("{action}: {source}")]
    Api {
        action: String,
        #[source]
        source: Box<Error>,
    },
    /// The objects are in a state nothing can be done with until somebody changes them.
    #[error("{0}")]
    Stuck(String),
}

impl ReconcileError {
    /// Another writer was faster; the newer object is on its way here.
    pub(crate) fn is_conflict(&self) -> bool {
        matches!(self, ReconcileError::Api { source, .. } if is_conflict(source))
    }

    /// The server understood and refused (admission webhook, quota, validation): text for the object's owner.
    pub(crate) fn refusal(&self) -> Option<&str> {
        match self {
            ReconcileError::Api { source, .. } => match source.as_ref() {
                Error::Api(status) if matches!(status.code, 400 | 403 | 422) => {
                    Some(status.message.as_str())
                }
                _ => None,
            },
            ReconcileError::Stuck(text) => Some(text),
        }
    }
}

/// Adds what was being done to an API error.
pub(crate) trait Doing<T> {
    /// `action` in the infinitive with the object's name, e.g. `create PodGroup a/b`.
    fn doing(self, action: impl FnOnce() -> String) -> Result<T, ReconcileError>;
}

impl<T> Doing<T> for Result<T, Error> {
    fn doing(self, action: impl FnOnce() -> String) -> Result<T, ReconcileError> {
        self.map_err(|source| ReconcileError::Api { action: action(), source: Box::new(source) })
    }
}

/// 404: the object is gone (or its kind is not installed).
pub(crate) fn is_not_found(error: &Error) -> bool {
    matches!(error, Error::Api(status) if status.code == 404)
}

/// 409 `Conflict`: the object changed since we saw it.
pub(crate) fn is_conflict(error: &Error) -> bool {
    matches!(error, Error::Api(status) if status.code == 409 && status.reason != "AlreadyExists")
}

/// 409 `AlreadyExists`: somebody (maybe we, before a lost answer) created it.
pub(crate) fn already_exists(error: &Error) -> bool {
    matches!(error, Error::Api(status) if status.code == 409 && status.reason == "AlreadyExists")
}
