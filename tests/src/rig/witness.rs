//! The history of a real API server for the independent checker: every version of the objects that it judges, in the order
//! of their resourceVersions (one counter for all kinds), as watched past the programs under test; and from the audit log
//! who bound and who deleted.
//!
//! Leases are left out: holders name processes, the audit log names users. Suites judge those by the audit log.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, ensure};
use futures::TryStreamExt as _;
use jiff::Timestamp;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, WatchEvent, WatchParams};
use serde_json::{Value, json};
use tephra_simulator::history::WriteRecord;
use tokio::task::JoinSet;

use super::audit_log::Record;
use super::patience::{PATIENCE, wait_for};
use super::workload;

/// One version of an object.
#[derive(Clone, Debug)]
struct Version {
    rv: u64,
    time_ms: i64,
    kind: usize,
    exists: bool,
    object: Value,
}

/// Watches from when it is started until it is dropped.
#[derive(Debug)]
pub struct Witness {
    apis: Vec<Api<DynamicObject>>,
    kinds: Vec<ApiResource>,
    seen: Arc<Mutex<Vec<Version>>>,
    // Dropping it ends the watches.
    _watches: JoinSet<anyhow::Result<()>>,
}

fn kinds() -> Vec<ApiResource> {
    let core = |kind: &str, group: &str, plural: &str| {
        let kind = kube::api::GroupVersionKind::gvk(group, "v1", kind);
        ApiResource::from_gvk_with_plural(&kind, plural)
    };
    vec![
        core("Pod", "", "pods"),
        core("Node", "", "nodes"),
        core("PriorityClass", "scheduling.k8s.io", "priorityclasses"),
        workload::pod_group_kind(),
        workload::queue_kind(),
    ]
}

fn rv(text: Option<&str>) -> anyhow::Result<u64> {
    text.context("no resourceVersion")?.parse().context("a resourceVersion is a number")
}

impl Witness {
    /// Starts to watch; what exists by now counts as created.
    ///
    /// # Errors
    /// When a kind cannot be listed.
    pub async fn start(client: Client) -> anyhow::Result<Self> {
        let (kinds, seen) = (kinds(), Arc::new(Mutex::new(Vec::new())));
        let (mut apis, mut watches) = (Vec::new(), JoinSet::new());
        for (kind, resource) in kinds.iter().enumerate() {
            let api: Api<DynamicObject> = Api::all_with(client.clone(), resource);
            let list = api.list(&ListParams::default()).await?;
            let from = list.metadata.resource_version.context("no resourceVersion")?;
            for object in list.items {
                note(&seen, kind, true, &object)?;
            }
            watches.spawn(watch(api.clone(), kind, from, Arc::clone(&seen)));
            apis.push(api);
        }
        Ok(Self { apis, kinds, seen, _watches: watches })
    }

    /// The history until now: it holds at least all that is stored when this is called.
    ///
    /// # Errors
    /// When a watch falls behind for good, or a write has no author in the audit log.
    pub async fn history(&self, audit: &[Record]) -> anyhow::Result<Vec<WriteRecord>> {
        for (kind, api) in self.apis.iter().enumerate() {
            wait_for("the witness has seen all", PATIENCE, async || {
                let mut stored = BTreeMap::new();
                for object in api.list(&ListParams::default()).await? {
                    stored.insert(
                        object.metadata.uid,
                        rv(object.metadata.resource_version.as_deref())?,
                    );
                }
                let seen = self.standing(kind);
                Ok(if seen == stored { Ok(()) } else { Err(format!("{seen:?} not {stored:?}")) })
            })
            .await?;
        }
        let mut versions = self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
        versions.sort_by_key(|version| version.rv);
        records(&self.kinds, versions, audit)
    }

    /// Newest version of each object that exists.
    fn standing(&self, kind: usize) -> BTreeMap<Option<String>, u64> {
        let mut standing = BTreeMap::new();
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        for version in seen.iter().filter(|version| version.kind == kind) {
            let uid = version.object["metadata"]["uid"].as_str().map(str::to_owned);
            if version.exists {
                standing.insert(uid, version.rv);
            } else {
                standing.remove(&uid);
            }
        }
        standing
    }
}

async fn watch(
    api: Api<DynamicObject>,
    kind: usize,
    mut from: String,
    seen: Arc<Mutex<Vec<Version>>>,
) -> anyhow::Result<()> {
    let params = WatchParams::default().timeout(280);
    loop {
        // An API server that is restarted ends the watch; the version stays valid.
        let Ok(events) = api.watch(&params, &from).await else {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            continue;
        };
        let mut events = std::pin::pin!(events);
        while let Ok(Some(event)) = events.try_next().await {
            let (exists, object) = match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => (true, object),
                WatchEvent::Deleted(object) => (false, object),
                WatchEvent::Bookmark(mark) => {
                    from = mark.metadata.resource_version;
                    continue;
                }
                WatchEvent::Error(error) => anyhow::bail!("the witness has a gap: {error:?}"),
            };
            note(&seen, kind, exists, &object)?;
            from = object.metadata.resource_version.context("no resourceVersion")?;
        }
    }
}

fn note(
    seen: &Mutex<Vec<Version>>,
    kind: usize,
    exists: bool,
    object: &DynamicObject,
) -> anyhow::Result<()> {
    let version = Version {
        rv: rv(object.metadata.resource_version.as_deref())?,
        time_ms: Timestamp::now().as_millisecond(),
        kind,
        exists,
        object: serde_json::to_value(object)?,
    };
    seen.lock().unwrap_or_else(PoisonError::into_inner).push(version);
    Ok(())
}

/// Joins the versions with the requests that made them.
fn records(
    kinds: &[ApiResource],
    versions: Vec<Version>,
    audit: &[Record],
) -> anyhow::Result<Vec<WriteRecord>> {
    let mut authors = Authors::read(audit);
    let mut before: BTreeMap<String, Value> = BTreeMap::new();
    let (mut records, mut now_ms): (Vec<WriteRecord>, i64) = (Vec::new(), 0);
    for (seq, version) in (0..).zip(versions) {
        let kind = &kinds[version.kind];
        let text = |pointer: &str| {
            version.object.pointer(pointer).and_then(Value::as_str).unwrap_or("").to_owned()
        };
        let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
        let uid = text("/metadata/uid");
        let old = before.insert(uid.clone(), version.object.clone());
        let was = |pointer: &str| old.as_ref().is_some_and(|old| old.pointer(pointer).is_some());
        let deleting = !version.exists || !text("/metadata/deletionTimestamp").is_empty();
        let pod = kind.plural == "pods";
        let key = (namespace.clone(), name.clone());
        let mut record = WriteRecord {
            seq,
            rv: version.rv,
            // Kinds are watched apart: a little later in one is no earlier in the order of writes.
            time_ms: version.time_ms.max(now_ms),
            identity: "".into(),
            verb: if old.is_some() { "update" } else { "create" },
            group: kind.group.clone(),
            resource: kind.plural.clone(),
            namespace,
            name,
            uid,
            subresource: String::new(),
            outcome: 200,
            answered: true,
            body: Arc::new(version.object.clone()),
            exists: version.exists,
            after: Some(Arc::new(version.object.clone())),
        };
        if pod && old.is_some() && !was("/spec/nodeName") && !text("/spec/nodeName").is_empty() {
            let author = authors.binder(&key, &text("/spec/nodeName"));
            record.identity = author.with_context(|| format!("nobody bound {key:?}"))?.into();
            (record.verb, record.subresource) = ("create", "binding".to_owned());
            record.body = Arc::new(json!({"metadata": {"uid": record.uid}}));
        } else if deleting && !was("/metadata/deletionTimestamp") {
            record.verb = "delete";
            if let Some(author) = authors.deleter(&kind.plural, &key) {
                record.identity = author.into();
            }
        }
        now_ms = record.time_ms;
        records.push(record);
    }
    let left = authors.accepted_binds();
    ensure!(left.is_empty(), "bound, but not seen so: {left:?}");
    Ok(records)
}

/// Requests that were carried out, or may have been, in their order.
struct Authors<'a> {
    audit: Vec<Option<&'a Record>>,
}

impl<'a> Authors<'a> {
    fn read(audit: &'a [Record]) -> Self {
        let done = audit.iter().filter(|record| record.accepted() || record.unknown());
        let mut done: Vec<_> = done.collect();
        // The log is in the order of the answers: a kubelet that finishes an eviction may have its answer before whoever began it.
        done.sort_by_key(|record| record.received);
        Self { audit: done.into_iter().map(Some).collect() }
    }

    fn take(&mut self, wanted: impl Fn(&Record) -> bool) -> Option<String> {
        let found = self.audit.iter_mut().find(|it| it.is_some_and(&wanted))?;
        found.take().map(|record| record.user().to_owned())
    }

    fn binder(&mut self, pod: &(String, String), node: &str) -> Option<String> {
        self.take(|record| record.binding() == Some((&pod.0, &pod.1, node)))
    }

    fn deleter(&mut self, resource: &str, object: &(String, String)) -> Option<String> {
        self.take(|record| record.verb == "delete" && record.names(resource, &object.0, &object.1))
    }

    /// Bindings that were accepted and made no version.
    fn accepted_binds(&self) -> Vec<(&str, &str, &str)> {
        let left = self.audit.iter().flatten().filter(|record| record.accepted());
        left.filter_map(|record| record.binding()).collect()
    }
}
