//! Why an object could not be read: which object, which field, which value. The fast decoder does not keep
//! track of where it is; only when it fails is the object read a second time to find the place.

use serde::de::DeserializeOwned;
use serde_json::Value;

/// Longest piece of an offending value that is quoted.
const QUOTED: usize = 120;

/// An object that cannot be read. It costs only itself: the watch goes on with the next one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} {object}: {path}: {problem}, got {value}")]
pub struct DecodeError {
    /// `Pod`, `Node`, `PodGroup`, ...
    pub kind: &'static str,
    /// `namespace/name` or name; `?` when even that could not be read.
    pub object: String,
    /// Namespace of the object, empty for cluster-scoped ones.
    pub namespace: String,
    /// Name of the object, empty when unknown.
    pub name: String,
    /// Uid of the object, empty when unknown.
    pub uid: String,
    /// Path of the field, e.g. `spec.containers[2].resources.requests.memory`.
    pub path: String,
    /// The value found there, as JSON, shortened.
    pub value: String,
    /// What is wrong with it.
    pub problem: String,
}

impl DecodeError {
    /// An error at a known place of an object whose metadata could be read.
    pub(crate) fn at(
        kind: &'static str,
        (namespace, name, uid): (&str, &str, &str),
        path: impl Into<String>,
        value: &str,
        problem: impl Into<String>,
    ) -> Self {
        let object = match (namespace, name) {
            (_, "") => "?".to_owned(),
            ("", name) => name.to_owned(),
            (namespace, name) => format!("{namespace}/{name}"),
        };
        Self {
            kind,
            object,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            uid: uid.to_owned(),
            path: path.into(),
            value: shorten(value),
            problem: problem.into(),
        }
    }

    /// Reads failed input a second time, by a decoder that reports the path, and names field and value.
    pub(crate) fn diagnose<'a, T: serde::Deserialize<'a>>(
        kind: &'static str,
        bytes: &'a [u8],
        first: &serde_json::Error,
    ) -> Self {
        let mut json = serde_json::Deserializer::from_slice(bytes);
        let (path, problem) = match serde_path_to_error::deserialize::<_, T>(&mut json) {
            Ok(_) => (".".to_owned(), first.to_string()),
            Err(error) => (error.path().to_string(), error.inner().to_string()),
        };
        let document = owned::<Value>(bytes).unwrap_or(Value::Null);
        let text = |pointer: &str| document.pointer(pointer).and_then(Value::as_str).unwrap_or("");
        let identity = (text("/metadata/namespace"), text("/metadata/name"), text("/metadata/uid"));
        let value =
            find(&document, &path).map_or_else(|| "invalid JSON".to_owned(), Value::to_string);
        let problem = problem.split(" at line ").next().unwrap_or_default().to_owned();
        Self::at(kind, identity, path, &value, problem)
    }
}

fn owned<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    serde_json::from_slice(bytes).ok()
}

/// Follows a path as `serde_path_to_error` writes it (`a.b[3].c`).
fn find<'v>(document: &'v Value, path: &str) -> Option<&'v Value> {
    let mut value = document;
    for part in path.split(['.', '[']).filter(|part| !part.is_empty()) {
        value = match part.strip_suffix(']') {
            Some(index) => value.get(index.parse::<usize>().ok()?)?,
            None => value.get(part)?,
        };
    }
    Some(value)
}

fn shorten(value: &str) -> String {
    match value.char_indices().nth(QUOTED) {
        Some((end, _)) => format!("{}...", value.get(..end).unwrap_or_default()),
        None => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_are_cut_between_characters() {
        let long = "ä".repeat(500);
        assert_eq!(shorten(&long).chars().count(), QUOTED + 3);
    }

    #[test]
    fn display_names_object_field_value_and_problem() {
        let error = DecodeError::at("Pod", ("ns", "a", "u"), "spec.priority", "\"x\"", "no number");
        assert_eq!(error.to_string(), "Pod ns/a: spec.priority: no number, got \"x\"");
    }
}
