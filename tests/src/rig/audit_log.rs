//! What the API server saw: one JSON line for each write, with the writer's identity and the outcome; of our own programs
//! also for each read, since these use rights, too. The file is written before the answer is sent, so an outcome that a
//! client knows is in the log; of a client that dies first it says 504, whether the write took effect or not.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;

use anyhow::Context as _;
use jiff::Timestamp;
use serde::Deserialize;

/// Writes of everybody, reads of our programs; a binding with its body, since only that names the node.
pub(crate) const POLICY: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- {level: Request, resources: [{group: '', resources: [pods/binding]}]}
- {level: Metadata, userGroups: ['system:serviceaccounts:volcano-system']}
- {level: None, verbs: [get, list, watch]}
- {level: None, users: ['system:apiserver']}
- {level: Metadata}
";

/// One request, accepted or refused.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// `create`, `update`, `patch`, `delete`, `deletecollection`; of reads `get`, `list`, `watch`.
    pub verb: String,
    user: User,
    /// What was written; `None` for paths that are no objects.
    #[serde(default)]
    pub object_ref: Option<ObjectRef>,
    #[serde(default)]
    response_status: Option<ResponseStatus>,
    #[serde(default)]
    request_object: Option<RequestObject>,
    /// When the server received it.
    #[serde(rename = "requestReceivedTimestamp")]
    pub received: Timestamp,
    /// When the server had its answer.
    #[serde(rename = "stageTimestamp")]
    pub answered: Timestamp,
}

#[derive(Clone, Debug, Deserialize)]
struct User {
    username: String,
}

/// The object of a write.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectRef {
    /// Empty for the core group.
    pub api_group: String,
    /// Plural, e.g. `pods`.
    pub resource: String,
    /// Empty for cluster-scoped kinds.
    pub namespace: String,
    /// Empty when the server makes the name.
    pub name: String,
    /// E.g. `binding`; empty for the object itself.
    pub subresource: String,
}

#[derive(Clone, Debug, Deserialize)]
struct ResponseStatus {
    #[serde(default)]
    code: u16,
}

#[derive(Clone, Debug, Deserialize)]
struct RequestObject {
    target: Option<Target>,
}

#[derive(Clone, Debug, Deserialize)]
struct Target {
    #[serde(default)]
    name: String,
}

impl Record {
    /// Who asked.
    pub fn user(&self) -> &str {
        &self.user.username
    }

    /// Whether it changes nothing.
    pub fn reads(&self) -> bool {
        matches!(self.verb.as_str(), "get" | "list" | "watch")
    }

    /// Whether the write took effect.
    pub fn accepted(&self) -> bool {
        self.code().is_some_and(|code| (200..300).contains(&code))
    }

    /// Whether nobody knows by the answer if the write took effect: its sender died first, or time ran out.
    pub fn unknown(&self) -> bool {
        self.code().is_none_or(|code| code == 504)
    }

    /// HTTP code of the answer.
    pub fn code(&self) -> Option<u16> {
        self.response_status.as_ref().map(|status| status.code)
    }

    /// `resource` or `resource/subresource`.
    pub fn resource(&self) -> String {
        match &self.object_ref {
            None => String::new(),
            Some(object) if object.subresource.is_empty() => object.resource.clone(),
            Some(object) => format!("{}/{}", object.resource, object.subresource),
        }
    }

    /// Whether it concerns an object of this kind, namespace and name.
    pub fn names(&self, resource: &str, namespace: &str, name: &str) -> bool {
        self.object_ref.as_ref().is_some_and(|object| {
            object.resource == resource && object.namespace == namespace && object.name == name
        })
    }

    /// The pod (`namespace`, `name`) and node of a request to bind.
    pub fn binding(&self) -> Option<(&str, &str, &str)> {
        let object = self.object_ref.as_ref()?;
        if object.resource != "pods" || object.subresource != "binding" {
            return None;
        }
        let target = self.request_object.as_ref()?.target.as_ref()?;
        Some((&object.namespace, &object.name, &target.name))
    }
}

/// Accepted bindings of a namespace: the nodes that each pod was given to, in order. Anything but one is wrong.
pub fn accepted_bindings(records: &[Record], namespace: &str) -> BTreeMap<String, Vec<String>> {
    let mut nodes_of: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (of, pod, node) in records.iter().filter(|r| r.accepted()).filter_map(Record::binding) {
        if of == namespace {
            nodes_of.entry(pod.to_owned()).or_default().push(node.to_owned());
        }
    }
    nodes_of
}

/// Reads the log as it grows; a clone goes on from the same place.
#[derive(Clone, Debug)]
pub struct AuditLog {
    path: PathBuf,
    offset: u64,
}

impl AuditLog {
    pub(crate) fn open(path: PathBuf) -> Self {
        Self { path, offset: 0 }
    }

    /// Goes to the end: what was written until now is not returned by [`AuditLog::read`].
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn skip(&mut self) -> anyhow::Result<()> {
        self.read().map(drop)
    }

    /// Writes since the last call. A line that is not complete yet is left for the next one.
    ///
    /// # Errors
    /// When the file cannot be read or a line is not an audit record.
    pub fn read(&mut self) -> anyhow::Result<Vec<Record>> {
        let mut records = self.read_all()?;
        records.retain(|record| !record.reads());
        Ok(records)
    }

    /// The same with the reads of our programs.
    ///
    /// # Errors
    /// As [`AuditLog::read`].
    pub fn read_all(&mut self) -> anyhow::Result<Vec<Record>> {
        let mut file = File::open(&self.path).context("the audit log")?;
        file.seek(SeekFrom::Start(self.offset))?;
        let mut new = Vec::new();
        file.read_to_end(&mut new)?;
        let complete = new.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        new.truncate(complete);
        self.offset += u64::try_from(complete)?;
        let lines = new.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines
            .map(|line| {
                serde_json::from_slice(line)
                    .with_context(|| format!("audit line {}", String::from_utf8_lossy(line)))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BINDING: &str = r#"{"kind":"Event","verb":"create","user":{"username":"tephra-scheduler"},
        "objectRef":{"resource":"pods","namespace":"n","name":"p","subresource":"binding"},
        "responseStatus":{"metadata":{},"code":201},
        "requestObject":{"kind":"Binding","target":{"kind":"Node","name":"node-1"}},
        "requestReceivedTimestamp":"2026-12-02T05:00:00.000001Z","stageTimestamp":"2026-12-02T05:00:00.004Z"}"#;

    fn line(code: &str) -> String {
        BINDING.replace('\n', "").replace("201", code) + "\n"
    }

    #[test]
    fn an_unfinished_line_is_returned_when_it_is_complete() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let (line, mut log) = (line("201"), AuditLog::open(file.path().to_owned()));
        let (first, second) = line.as_bytes().split_at(40);
        std::fs::write(file.path(), [line.as_bytes(), first].concat()).unwrap();
        assert_eq!(log.read().unwrap().len(), 1);
        assert_eq!(log.read().unwrap().len(), 0);
        std::fs::write(file.path(), [line.as_bytes(), first, second].concat()).unwrap();
        assert_eq!(log.read().unwrap().len(), 1);
    }

    #[test]
    fn reads_are_among_all_requests_but_not_among_the_writes() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let read = line("200").replace("\"create\"", "\"watch\"");
        std::fs::write(file.path(), line("201") + &read).unwrap();
        let verbs = |records: Vec<Record>| -> Vec<String> {
            records.into_iter().map(|record| record.verb).collect()
        };
        let log = || AuditLog::open(file.path().to_owned());
        assert_eq!(verbs(log().read().unwrap()), ["create"]);
        assert_eq!(verbs(log().read_all().unwrap()), ["create", "watch"]);
    }

    #[test]
    fn only_accepted_bindings_of_the_namespace_count() {
        let parse = |code: &str| serde_json::from_str::<Record>(&line(code)).unwrap();
        let records = [parse("201"), parse("409")];
        assert_eq!(records[0].user(), "tephra-scheduler");
        let expected = BTreeMap::from([("p".to_owned(), vec!["node-1".to_owned()])]);
        assert_eq!(accepted_bindings(&records, "n"), expected);
        assert_eq!(accepted_bindings(&records, "other"), BTreeMap::new());
    }
}
