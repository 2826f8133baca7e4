//! A pod's JSON becomes a [`PodObject`].

use std::hash::{DefaultHasher, Hash, Hasher};

use tephra_api::keys;
use tephra_core::event::{
    HostPort, Labels, ObjectKey, PodObject, PodPhase, PodSpec, TaintEffect, Toleration,
};
use tephra_core::state::waiting::positive_ms;

use super::affinity::{self, AffinityView, SpreadView, clamp};
use super::error::DecodeError;
use super::text::{List, parse_bool};
use super::view::{PodView, SpecView, TolerationView};
use super::{Interner, KIND_POD, Names, identity, request, timestamp, version};

/// A decoded pod with what the watch reader needs beside it.
#[derive(Debug)]
pub(crate) struct Decoded {
    /// The pod.
    pub(crate) pod: PodObject,
    /// `metadata.resourceVersion` as a number, 0 when absent.
    pub(crate) version: u64,
    /// Hash of every field of [`PodObject`] that may change during a pod's life: equal means no event.
    pub(crate) fingerprint: u64,
}

pub(super) fn decode(
    bytes: &[u8],
    names: &Names,
    interner: &mut Interner,
) -> Result<Decoded, DecodeError> {
    let view: PodView<'_> = serde_json::from_slice(bytes)
        .map_err(|error| DecodeError::diagnose::<PodView<'_>>(KIND_POD, bytes, &error))?;
    let meta = &view.metadata;
    if meta.name.is_empty() {
        return Err(DecodeError::at(
            KIND_POD,
            identity(meta),
            "metadata.name",
            "\"\"",
            "is missing",
        ));
    }
    let ours = names.contains(view.spec.scheduler_name.as_str());
    let labels = meta.labels.to_labels();
    let (spec, spec_hash) = interner.spec(&view, ours, || parse_spec(&view, ours, &labels))?;
    let pod = PodObject {
        key: key(&view),
        uid: meta.uid.as_str().to_owned(),
        created_ms: timestamp(KIND_POD, meta)?,
        ours,
        group: annotation(&view, keys::GROUP_NAME).map(str::to_owned),
        role: role(&view).to_owned(),
        priority: priority(&view),
        spec_priority: clamp(view.spec.priority.unwrap_or(0)),
        priority_class: view.spec.priority_class_name.as_str().to_owned(),
        preemptable: annotation_or_label(&view, keys::PREEMPTABLE).is_none_or(parse_bool),
        never_preempts: view.spec.preemption_policy.as_str() == "Never",
        cooling_until_ms: cooling_until(&view),
        runtime_ms: runtime(&view),
        last_checkpoint_ms: last_checkpoint(&view),
        started_ms: started(&view),
        phase: phase(&view),
        deleting: !meta.deletion_timestamp.is_empty(),
        evicted: is_evicted(&view),
        node: view.spec.node_name.non_empty(),
        nominated: view.status.as_ref().and_then(|status| status.nominated_node_name.non_empty()),
        gated: !view.spec.scheduling_gates.0.is_empty(),
        has_deadline: view.spec.active_deadline_seconds.is_some(),
        labels,
        claims: claims(&view),
        unsupported: view.spec.resource_claims.0.iter().map(resource_claim).collect(),
        scheduled_condition: scheduled_condition(&view),
        spec,
    };
    let fingerprint = fingerprint(&pod, spec_hash);
    Ok(Decoded { pod, version: version(meta), fingerprint })
}

fn key(view: &PodView<'_>) -> ObjectKey {
    let namespace = view.metadata.namespace.non_empty();
    ObjectKey::new(
        namespace.unwrap_or_else(|| "default".to_owned()),
        view.metadata.name.as_str().to_owned(),
    )
}

fn annotation<'v>(view: &'v PodView<'_>, key: &str) -> Option<&'v str> {
    view.metadata.annotations.get(key).filter(|value| !value.is_empty())
}

fn annotation_or_label<'v>(view: &'v PodView<'_>, key: &str) -> Option<&'v str> {
    view.metadata.annotations.get(key).or_else(|| view.metadata.labels.get(key))
}

/// When the pod's cooldown ends: label, then annotation, counted from when it was scheduled (spec 16). What cannot be read
/// protects nobody.
fn cooling_until(view: &PodView<'_>) -> Option<i64> {
    let key = keys::COOLDOWN_TIME;
    let text = view.metadata.labels.get(key).or_else(|| view.metadata.annotations.get(key))?;
    let cooldown_ms = positive_ms(text)?;
    let conditions = &view.status.as_ref()?.conditions.0;
    let scheduled = conditions.iter().find(|condition| {
        condition.kind.as_str() == "PodScheduled" && condition.status.as_str() == "True"
    })?;
    let since: jiff::Timestamp = scheduled.last_transition_time.as_str().parse().ok()?;
    Some(since.as_millisecond().saturating_add(cooldown_ms))
}

/// When the pod last wrote a checkpoint, by our annotation or Volcano's.
fn last_checkpoint(view: &PodView<'_>) -> Option<i64> {
    let told = annotation(view, keys::LAST_CHECKPOINT)
        .or_else(|| annotation(view, keys::LAST_CHECKPOINT_VOLCANO))?;
    told.parse().ok().map(jiff::Timestamp::as_millisecond)
}

/// How long the pod is expected to run: as its annotation says, and never longer than its deadline lets it.
fn runtime(view: &PodView<'_>) -> Option<i64> {
    let expected = annotation(view, keys::EXPECTED_RUNTIME).and_then(positive_ms);
    let deadline = view.spec.active_deadline_seconds.filter(|seconds| *seconds > 0);
    let deadline = deadline.map(|seconds| seconds.saturating_mul(1000));
    match (expected, deadline) {
        (Some(expected), Some(deadline)) => Some(expected.min(deadline)),
        (expected, deadline) => expected.or(deadline),
    }
}

/// When its kubelet took it on.
fn started(view: &PodView<'_>) -> Option<i64> {
    let text = view.status.as_ref()?.start_time.as_str();
    text.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_millisecond)
}

/// The pod may use revocable nodes: by its annotation, or without one because it says that it is preemptable (2.3).
pub(super) fn revocable(view: &PodView<'_>) -> bool {
    let annotations = &view.metadata.annotations;
    match annotations.get(keys::REVOCABLE_ZONE) {
        Some(zone) => zone == "*",
        None => annotations.get(keys::PREEMPTABLE).is_some_and(parse_bool),
    }
}

/// Role of the pod in its gang; an empty annotation leaves the word to the label.
fn role<'v>(view: &'v PodView<'_>) -> &'v str {
    annotation(view, keys::TASK_SPEC)
        .or_else(|| view.metadata.labels.get(keys::TASK_SPEC))
        .unwrap_or_default()
}

/// Task priority (B50): annotation, then `spec.priority`, then 1.
fn priority(view: &PodView<'_>) -> i32 {
    annotation(view, keys::TASK_PRIORITY)
        .and_then(|text| text.parse().ok())
        .or_else(|| view.spec.priority.map(clamp))
        .unwrap_or(1)
}

fn phase(view: &PodView<'_>) -> PodPhase {
    match view.status.as_ref().map_or("", |status| status.phase.as_str()) {
        "" | "Pending" => PodPhase::Pending,
        "Running" => PodPhase::Running,
        "Succeeded" => PodPhase::Succeeded,
        "Failed" => PodPhase::Failed,
        _ => PodPhase::Unknown,
    }
}

/// Names of the claims that a pod mounts. A generic ephemeral volume owns a claim `<pod>-<volume>`.
fn claims(view: &PodView<'_>) -> Vec<String> {
    view.spec
        .volumes
        .0
        .iter()
        .filter_map(|volume| match (&volume.persistent_volume_claim, &volume.ephemeral) {
            (Some(claim), _) => Some(claim.claim_name.as_str().to_owned()),
            (None, Some(_)) => {
                Some(format!("{}-{}", view.metadata.name.as_str(), volume.name.as_str()))
            }
            (None, None) => None,
        })
        .collect()
}

fn resource_claim(claim: &super::view::ClaimView<'_>) -> String {
    format!("ResourceClaim \"{}\"", claim.name.as_str())
}

/// A scheduler has decided to evict it.
fn is_evicted(view: &PodView<'_>) -> bool {
    let conditions = view.status.iter().flat_map(|status| &status.conditions.0);
    conditions.into_iter().any(|condition| {
        condition.kind.as_str() == "DisruptionTarget"
            && condition.status.as_str() == "True"
            && condition.reason.as_str() == "PreemptionByScheduler"
    })
}

fn scheduled_condition(view: &PodView<'_>) -> Option<(String, String)> {
    let conditions = &view.status.as_ref()?.conditions.0;
    let condition = conditions.iter().find(|condition| {
        condition.kind.as_str() == "PodScheduled" && condition.status.as_str() == "False"
    })?;
    Some((condition.reason.as_str().to_owned(), condition.message.as_str().to_owned()))
}

/// Parses what pods of one template share. Of a pod that is not ours only its use of a node and its own
/// affinity terms count, so that daemon pods, which name their node in an affinity, still share one spec.
fn parse_spec(view: &PodView<'_>, ours: bool, labels: &Labels) -> Result<PodSpec, DecodeError> {
    let spec = &view.spec;
    let affinity: AffinityView<'_> = raw(view, spec.affinity, "spec.affinity")?.unwrap_or_default();
    let (requests, nonzero) = request::of_pod(view)?;
    let mut parsed = PodSpec {
        namespace: key(view).namespace,
        requests,
        nonzero,
        host_ports: host_ports(spec),
        pod_affinity: affinity::required_pod_terms(&affinity, false, labels),
        pod_anti_affinity: affinity::required_pod_terms(&affinity, true, labels),
        preferred_pod_affinity: affinity::preferred_pod_terms(&affinity, labels),
        ..PodSpec::default()
    };
    if ours {
        let path = "spec.topologySpreadConstraints";
        let spread: List<SpreadView<'_>> =
            raw(view, spec.topology_spread_constraints, path)?.unwrap_or_default();
        parsed.node_selector = spec.node_selector.to_labels();
        parsed.required_node_terms = affinity::required_node_terms(&affinity);
        parsed.preferred_node_terms = affinity::preferred_node_terms(&affinity);
        parsed.tolerations = spec.tolerations.0.iter().filter_map(toleration).collect();
        parsed.spread = affinity::spread(&spread, labels);
        parsed.images = images(spec);
        parsed.revocable = revocable(view);
    }
    Ok(parsed)
}

/// Parses a part that was kept as raw text; an error names the field inside it.
fn raw<'v, T: serde::Deserialize<'v>>(
    view: &PodView<'_>,
    raw: Option<&'v serde_json::value::RawValue>,
    path: &str,
) -> Result<Option<T>, DecodeError> {
    let Some(raw) = raw else { return Ok(None) };
    serde_json::from_str(raw.get()).map(Some).map_err(|error| {
        let inner = DecodeError::diagnose::<T>(KIND_POD, raw.get().as_bytes(), &error);
        let path = match inner.path.as_str() {
            "." => path.to_owned(),
            inner if inner.starts_with('[') => format!("{path}{inner}"),
            inner => format!("{path}.{inner}"),
        };
        DecodeError::at(KIND_POD, identity(&view.metadata), path, &inner.value, inner.problem)
    })
}

/// A toleration; `None` for one that covers no taint: an effect or an operator that these filters do not know (`Gt` and
/// `Lt` are behind a gate that Volcano does not hand through, spec 7.1).
fn toleration(view: &TolerationView<'_>) -> Option<Toleration> {
    let effect = match view.effect.as_str() {
        "" => None,
        text => Some(taint_effect(text)?),
    };
    let exists = match view.operator.as_str() {
        "" | "Equal" => false,
        "Exists" => true,
        _ => return None,
    };
    Some(Toleration {
        key: view.key.as_str().to_owned(),
        value: view.value.as_str().to_owned(),
        exists,
        effect,
    })
}

/// Effect of a taint or toleration; `None` when absent or unknown.
pub(super) fn taint_effect(text: &str) -> Option<TaintEffect> {
    match text {
        "NoSchedule" => Some(TaintEffect::NoSchedule),
        "PreferNoSchedule" => Some(TaintEffect::PreferNoSchedule),
        "NoExecute" => Some(TaintEffect::NoExecute),
        _ => None,
    }
}

/// Host ports of containers and sidecars, sorted, each once.
fn host_ports(spec: &SpecView<'_>) -> Vec<HostPort> {
    let sidecars =
        spec.init_containers.0.iter().filter(|init| init.restart_policy.as_str() == "Always");
    let mut ports: Vec<HostPort> = spec
        .containers
        .0
        .iter()
        .chain(sidecars)
        .flat_map(|container| &container.ports.0)
        .filter_map(|port| {
            let number = port.host_port.and_then(|number| u16::try_from(number).ok())?;
            (number != 0).then(|| HostPort {
                port: number,
                protocol: port.protocol.non_empty().unwrap_or_else(|| "TCP".to_owned()),
                ip: port.host_ip.non_empty().unwrap_or_else(|| "0.0.0.0".to_owned()),
            })
        })
        .collect();
    ports.sort();
    ports.dedup();
    ports
}

fn images(spec: &SpecView<'_>) -> Vec<String> {
    let containers = spec.init_containers.0.iter().chain(&spec.containers.0);
    containers.filter_map(|container| container.image.non_empty()).collect()
}

/// Hash of all that can change while a pod lives and matters then (`evicted` matters only to a scheduler that starts). SipHash with fixed keys: a collision would hide a change.
fn fingerprint(pod: &PodObject, spec: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    (&pod.key, &pod.group, &pod.role, pod.priority, pod.spec_priority).hash(&mut hasher);
    (&pod.priority_class, pod.preemptable, pod.phase, pod.deleting).hash(&mut hasher);
    (pod.cooling_until_ms, pod.has_deadline, pod.runtime_ms, pod.started_ms).hash(&mut hasher);
    pod.last_checkpoint_ms.hash(&mut hasher);
    (&pod.node, &pod.nominated, pod.gated, &pod.labels, &pod.claims).hash(&mut hasher);
    (&pod.unsupported, &pod.scheduled_condition, spec, pod.ours).hash(&mut hasher);
    hasher.finish()
}
