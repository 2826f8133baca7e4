//! One shared [`PodSpec`] per template. Pods of one gang differ in name and uid only; parsing affinity and
//! quantities once per template keeps decoding cheap, and sharing the result keeps a million pods small.
//!
//! Two levels: the raw fields that make up a template find the spec without parsing anything, and specs that
//! turn out equal although their raw text differs share one allocation. Both compare full content: a hash
//! alone never decides.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use tephra_core::event::PodSpec;

use super::Names;
use super::error::DecodeError;
use super::pod::{self, Decoded};
use super::request;
use super::text::{Pairs, QuantityText, Text};
use super::view::{ContainerView, PodView, StatusView};

/// Number of templates below which nothing is ever thrown away.
const KEEP: usize = 4096;

/// Shares [`PodSpec`]s between pods of one template.
#[derive(Debug, Default)]
pub struct Interner {
    by_template: FxHashMap<Box<[u8]>, (Arc<PodSpec>, u64)>,
    by_content: FxHashSet<Arc<PodSpec>>,
    sweep_at: usize,
    key: Vec<u8>,
}

impl Interner {
    /// An empty interner.
    pub fn new() -> Self {
        Self { sweep_at: KEEP, ..Self::default() }
    }

    /// Decodes a pod; its spec is shared with all earlier pods of the same template.
    pub fn pod(
        &mut self,
        bytes: &[u8],
        names: &Names,
    ) -> Result<tephra_core::event::PodObject, DecodeError> {
        pod::decode(bytes, names, self).map(|decoded| decoded.pod)
    }

    /// Decodes a pod for the watch reader: with its resource version and a fingerprint of all that matters.
    pub(crate) fn decode(&mut self, bytes: &[u8], names: &Names) -> Result<Decoded, DecodeError> {
        pod::decode(bytes, names, self)
    }

    /// Number of distinct specs held.
    pub fn len(&self) -> usize {
        self.by_content.len()
    }

    /// True when nothing is held.
    pub fn is_empty(&self) -> bool {
        self.by_content.is_empty()
    }

    /// The spec of a template and the hash of its key; `parse` runs only for a template that is new.
    pub(super) fn spec(
        &mut self,
        view: &PodView<'_>,
        ours: bool,
        parse: impl FnOnce() -> Result<PodSpec, DecodeError>,
    ) -> Result<(Arc<PodSpec>, u64), DecodeError> {
        let mut key = std::mem::take(&mut self.key);
        key.clear();
        template_key(view, ours, &mut key);
        let found = match self.by_template.get(key.as_slice()) {
            Some((spec, hash)) => Ok((spec.clone(), *hash)),
            None => parse().map(|spec| self.insert(&key, spec)),
        };
        self.key = key;
        found
    }

    fn insert(&mut self, key: &[u8], spec: PodSpec) -> (Arc<PodSpec>, u64) {
        if self.by_template.len() >= self.sweep_at {
            self.sweep();
        }
        let spec = match self.by_content.get(&spec) {
            Some(known) => known.clone(),
            None => {
                let spec = Arc::new(spec);
                self.by_content.insert(spec.clone());
                spec
            }
        };
        let mut hasher = FxHasher::default();
        spec.hash(&mut hasher);
        let hash = hasher.finish();
        self.by_template.insert(key.into(), (spec.clone(), hash));
        (spec, hash)
    }

    /// Drops templates that no pod uses any more; the next sweep comes when the rest has doubled.
    fn sweep(&mut self) {
        self.by_template.clear();
        self.by_content.retain(|spec| Arc::strong_count(spec) > 1);
        self.sweep_at = (self.by_content.len() * 2).max(KEEP);
    }
}

/// Writes all that decides the [`PodSpec`], raw and length-prefixed so that no two templates run together.
fn template_key(view: &PodView<'_>, ours: bool, out: &mut Vec<u8>) {
    let spec = &view.spec;
    out.push(u8::from(ours));
    text(out, &view.metadata.namespace);
    let raw =
        [spec.affinity, spec.topology_spread_constraints].map(|raw| raw.map_or("", |r| r.get()));
    for json in raw {
        bytes(out, json.as_bytes());
    }
    if raw.iter().any(|json| memchr::memmem::find(json.as_bytes(), b"atchLabelKeys").is_some()) {
        texts(out, &view.metadata.labels);
    }
    for (list, containers) in [&spec.containers, &spec.init_containers].into_iter().enumerate() {
        out.push(list as u8);
        count(out, containers.0.len());
        for container in &containers.0 {
            self::container(out, container);
        }
    }
    quantities(out, &spec.overhead);
    out.push(u8::from(spec.resources.is_some()));
    if let Some(resources) = &spec.resources {
        quantities(out, &resources.requests);
    }
    if ours {
        out.push(u8::from(pod::revocable(view)));
        texts(out, &spec.node_selector);
        count(out, spec.tolerations.0.len());
        for toleration in &spec.tolerations.0 {
            let parts =
                [&toleration.key, &toleration.operator, &toleration.value, &toleration.effect];
            parts.into_iter().for_each(|part| text(out, part));
        }
    }
    if let Some(status) = &view.status {
        granted(out, status);
        out.push(u8::from(request::infeasible(view)));
    }
}

fn container(out: &mut Vec<u8>, container: &ContainerView<'_>) {
    text(out, &container.image);
    text(out, &container.restart_policy);
    match &container.resources {
        Some(resources) => quantities(out, &resources.requests),
        None => count(out, 0),
    }
    for port in &container.ports.0 {
        let Some(number) = port.host_port.filter(|number| *number != 0) else { continue };
        out.extend_from_slice(&number.to_le_bytes());
        text(out, &port.host_ip);
        text(out, &port.protocol);
    }
}

/// Resources granted by a kubelet differ from the template only while a pod is resized in place.
fn granted(out: &mut Vec<u8>, status: &StatusView<'_>) {
    for container in &status.container_statuses.0 {
        let Some(resources) = &container.resources else { continue };
        text(out, &container.name);
        quantities(out, &resources.requests);
        quantities(out, &container.allocated_resources);
    }
}

fn count(out: &mut Vec<u8>, number: usize) {
    out.extend_from_slice(&(number as u32).to_le_bytes());
}

fn bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    count(out, bytes.len());
    out.extend_from_slice(bytes);
}

fn text(out: &mut Vec<u8>, text: &Text<'_>) {
    bytes(out, text.as_str().as_bytes());
}

fn texts(out: &mut Vec<u8>, pairs: &Pairs<'_, Text<'_>>) {
    count(out, pairs.0.len());
    for (key, value) in &pairs.0 {
        text(out, key);
        text(out, value);
    }
}

fn quantities(out: &mut Vec<u8>, pairs: &Pairs<'_, QuantityText<'_>>) {
    count(out, pairs.0.len());
    for (key, value) in &pairs.0 {
        text(out, key);
        bytes(out, value.0.as_bytes());
    }
}
