//! From the API server's JSON to the core's event structs, for the two kinds of which there are many: pods and
//! nodes. Decoding borrows from the input and reads only what scheduling needs (`view.rs`); an object that
//! cannot be read is a [`DecodeError`] that names the field and its value, never a panic.
//!
//! The watch readers decode through one [`Interner`], so that pods of one template share their [`PodSpec`];
//! scenario files and benches may use the plain functions [`pod`] and [`node`].
//!
//! [`PodSpec`]: tephra_core::event::PodSpec

mod affinity;
mod error;
mod intern;
pub(crate) mod node;
pub(crate) mod pod;
mod request;
pub(crate) mod text;
pub(crate) mod view;

#[cfg(test)]
mod tests;

use tephra_core::event::{NodeObject, PodObject};

pub(crate) use affinity::{NodeSelectorView, clamp, label_selector_of};
pub use error::DecodeError;
pub use intern::Interner;
use view::MetaView;

pub(crate) const KIND_POD: &str = "Pod";
pub(crate) const KIND_NODE: &str = "Node";

/// The scheduler names that make a pod ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names(Option<Vec<String>>);

impl Names {
    /// Pods whose `spec.schedulerName` is one of these are ours.
    pub fn new<S: Into<String>>(names: impl IntoIterator<Item = S>) -> Self {
        Self(Some(names.into_iter().map(Into::into).collect()))
    }

    /// All pods are ours (recorded scenarios do not say which scheduler they were for).
    pub fn any() -> Self {
        Self(None)
    }

    /// Whether a pod with this `spec.schedulerName` is ours.
    pub fn contains(&self, name: &str) -> bool {
        self.0.as_ref().is_none_or(|names| names.iter().any(|ours| ours == name))
    }
}

/// Decodes one pod.
///
/// # Errors
/// When the JSON is no pod, or a quantity, number or time in it cannot be read.
pub fn pod(bytes: &[u8], names: &Names) -> Result<PodObject, DecodeError> {
    Interner::new().pod(bytes, names)
}

/// Decodes one node.
///
/// # Errors
/// When the JSON is no node, or a quantity in it cannot be read.
pub fn node(bytes: &[u8]) -> Result<NodeObject, DecodeError> {
    node::decode(bytes).map(|(node, _, _)| node)
}

/// Namespace, name and uid for error messages.
pub(crate) fn identity<'m>(meta: &'m MetaView<'_>) -> (&'m str, &'m str, &'m str) {
    (meta.namespace.as_str(), meta.name.as_str(), meta.uid.as_str())
}

/// `metadata.resourceVersion` as a number; 0 when absent or opaque, which switches ordering checks off.
pub(crate) fn version(meta: &MetaView<'_>) -> u64 {
    meta.resource_version.as_str().parse().unwrap_or(0)
}

/// `metadata.creationTimestamp` in milliseconds since the epoch; 0 when absent.
pub(crate) fn timestamp(kind: &'static str, meta: &MetaView<'_>) -> Result<i64, DecodeError> {
    let text = meta.creation_timestamp.as_str();
    if text.is_empty() {
        return Ok(0);
    }
    text.parse::<jiff::Timestamp>().map(jiff::Timestamp::as_millisecond).map_err(|_| {
        let path = "metadata.creationTimestamp";
        DecodeError::at(kind, identity(meta), path, text, "is no RFC 3339 time")
    })
}
