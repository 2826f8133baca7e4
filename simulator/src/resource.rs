//! What the server knows about a resource: names, versions, subresources and printed columns.
//!
//! Built-in resources come from the table in `builtin.rs`, custom ones from CustomResourceDefinitions (`custom.rs`).
//! Handlers only see a [`Route`]: a resource in the version that the request asked for.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::columns::CustomColumn;

/// A resource, in all its served versions.
#[derive(Debug)]
pub(crate) struct ResourceType {
    pub(crate) group: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) kind: String,
    pub(crate) list_kind: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) namespaced: bool,
    /// Comes from a CustomResourceDefinition.
    pub(crate) custom: bool,
    /// A create may carry a status (nodes register with theirs).
    pub(crate) keeps_status_on_create: bool,
    /// Served versions, the stored one first.
    pub(crate) versions: Vec<Version>,
}

/// What differs between the versions of a resource.
#[derive(Debug)]
pub(crate) struct Version {
    pub(crate) name: String,
    /// `group/version`, or the version alone in the core group.
    pub(crate) api_version: String,
    pub(crate) status: bool,
    pub(crate) scale: Option<ScalePaths>,
    /// Additional printer columns of a custom resource; `None` for the ones the server draws itself.
    pub(crate) columns: Option<Vec<CustomColumn>>,
    /// Lists that server-side apply merges by key, by path (`spec.tasks`), for custom resources.
    pub(crate) map_lists: BTreeMap<String, Vec<String>>,
    /// OpenAPI schema of a custom resource.
    pub(crate) schema: Option<Value>,
}

/// JSON pointers of the scale subresource.
#[derive(Debug, Clone)]
pub(crate) struct ScalePaths {
    pub(crate) spec: String,
    pub(crate) status: String,
    pub(crate) selector: Option<String>,
}

/// How stored objects look through a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// As stored.
    Native,
    /// Another served version of a custom resource: only `apiVersion` differs (conversion strategy None).
    OtherVersion,
    /// `events.k8s.io/v1` over the store of core events.
    NewEvents,
}

/// A resource as one `group/version/plural` path reaches it.
#[derive(Debug, Clone)]
pub(crate) struct Route {
    /// Index of the table that holds the objects.
    pub(crate) table: usize,
    pub(crate) ty: Arc<ResourceType>,
    pub(crate) version: usize,
    pub(crate) form: Form,
}

impl Route {
    pub(crate) fn version(&self) -> &Version {
        &self.ty.versions[self.version]
    }

    pub(crate) fn api_version(&self) -> &str {
        &self.version().api_version
    }

    pub(crate) fn has_status(&self) -> bool {
        self.version().status
    }
}

/// `group/version`, or `version` for the core group.
pub(crate) fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// Splits an `apiVersion` into group and version.
pub(crate) fn split_api_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

/// The key of a route in the registry.
pub(crate) fn route_key(group: &str, version: &str, plural: &str) -> String {
    let mut key = String::with_capacity(group.len() + version.len() + plural.len() + 2);
    for part in [group, "/", version, "/", plural] {
        key.push_str(part);
    }
    key
}
