//! Objects of which there are few (PodGroups, queues, classes, volumes, namespaces) from JSON values to the
//! core's event structs. Odd numbers are clamped, odd phases count as absent, wrong types and malformed
//! quantities are a [`DecodeError`] that names the field; nothing panics.

mod field;
mod suspension;

use serde_json::Value;
use tephra_core::event::{
    CheckpointMode, DisruptionBudgetObject, Event, GroupCondition, HyperNodeMember,
    HyperNodeObject, LabelSelector, MemberSelector, NamespaceObject, NetworkTopology, ObjectKey,
    Operator, PodGroupObject, PodGroupPhase, PodGroupStatus, PreemptionMode, PriorityClassObject,
    QueueObject, QueuePolicyObject, QueueState, QuotaScope, ResourceQuotaObject, SubGroupPolicy,
    VolumeClaimObject, VolumeObject,
};

use crate::decode::{self, DecodeError, Names, NodeSelectorView, clamp};
use field::Object;

/// Reads any object that matters to scheduling by its `kind`; `None` for kinds that do not. For scenario files
/// and benches, which have one list of mixed objects.
///
/// # Errors
/// When an object of a known kind cannot be read.
pub fn object(value: &Value, names: &Names) -> Result<Option<Event>, DecodeError> {
    let kind = value.get("kind").and_then(Value::as_str).unwrap_or_default();
    let bytes = || value.to_string().into_bytes();
    Ok(Some(match kind {
        "Pod" => Event::Pod(decode::pod(&bytes(), names)?),
        "Node" => Event::Node(decode::node(&bytes())?),
        "PodGroup" => Event::PodGroup(pod_group(value)?),
        "Queue" => Event::Queue(queue(value)?),
        "QueuePolicy" => Event::QueuePolicy(queue_policy(value)?),
        "HyperNode" => Event::HyperNode(hyper_node(value)?),
        "PriorityClass" => Event::PriorityClass(priority_class(value)?),
        "Namespace" => Event::Namespace(namespace(value)?),
        "PersistentVolumeClaim" => Event::VolumeClaim(volume_claim(value)?),
        "PersistentVolume" => Event::Volume(volume(value)?),
        "PodDisruptionBudget" => Event::DisruptionBudget(disruption_budget(value)?),
        "ResourceQuota" => Event::ResourceQuota(resource_quota(value)?),
        _ => return Ok(None),
    }))
}

/// A PodGroup (`scheduling.volcano.sh/v1beta1`).
///
/// # Errors
/// When a field has the wrong type or a quantity is malformed.
pub fn pod_group(value: &Value) -> Result<PodGroupObject, DecodeError> {
    let object = Object::new("PodGroup", value)?;
    let mut min_task_member: Vec<(String, i32)> = object
        .entries("spec.minTaskMember")?
        .into_iter()
        .map(|(role, count)| Ok((role, object.number(&count, "spec.minTaskMember")?.max(0))))
        .collect::<Result<_, DecodeError>>()?;
    min_task_member.sort();
    let (key, annotations) = (object.key(), object.labels("metadata.annotations")?);
    let created_ms = object.time("metadata.creationTimestamp")?;
    Ok(PodGroupObject {
        suspension: suspension::suspension(&key, &annotations),
        queued_ms: suspension::queued_ms(created_ms, &annotations),
        key,
        uid: object.text("metadata.uid")?,
        created_ms,
        queue: object.text("spec.queue")?,
        min_member: object.int("spec.minMember")?.unwrap_or(0).max(0),
        min_task_member,
        min_resources: object.amounts("spec.minResources")?,
        min_quantities: object.quantities("spec.minResources")?,
        priority_class: object.text("spec.priorityClassName")?,
        topology: topology(&object, "spec.networkTopology")?,
        sub_groups: sub_groups(&object)?,
        annotations,
        labels: object.labels("metadata.labels")?,
        status: pod_group_status(&object)?,
    })
}

fn topology(object: &Object<'_>, path: &str) -> Result<Option<NetworkTopology>, DecodeError> {
    let Some(topology) = object.part(path)? else { return Ok(None) };
    Ok(Some(NetworkTopology {
        hard: topology.text("mode")? != "soft",
        highest_tier: topology.int("highestTierAllowed")?,
        highest_tier_name: topology.text("highestTierName")?,
    }))
}

fn sub_groups(object: &Object<'_>) -> Result<Vec<SubGroupPolicy>, DecodeError> {
    object
        .items("spec.subGroupPolicy")?
        .iter()
        .map(|policy| {
            Ok(SubGroupPolicy {
                name: policy.text("name")?,
                size: policy.int("subGroupSize")?.unwrap_or(1).max(0),
                min_sub_groups: policy.int("minSubGroups")?.unwrap_or(0).max(0),
                selector: policy.selector("labelSelector")?,
                match_label_keys: policy.texts("matchLabelKeys")?,
                topology: topology(policy, "networkTopology")?,
            })
        })
        .collect()
}

/// A HyperNode (`topology.volcano.sh/v1alpha1`).
///
/// # Errors
/// When a field has the wrong type.
pub fn hyper_node(value: &Value) -> Result<HyperNodeObject, DecodeError> {
    let object = Object::new("HyperNode", value)?;
    let member = |member: &Object<'_>| {
        let exact = member.text("selector.exactMatch.name")?;
        let pattern = member.text("selector.regexMatch.pattern")?;
        let labels = member.selector("selector.labelMatch")?;
        let selector = match (exact.is_empty(), pattern.is_empty(), labels) {
            (false, ..) => MemberSelector::Exact(exact),
            (_, false, _) => MemberSelector::Regex(pattern),
            (.., Some(labels)) => MemberSelector::Labels(labels),
            (.., None) => MemberSelector::None,
        };
        Ok(HyperNodeMember { is_hyper_node: member.text("type")? == "HyperNode", selector })
    };
    Ok(HyperNodeObject {
        name: object.key().name,
        uid: object.text("metadata.uid")?,
        tier: object.int("spec.tier")?.unwrap_or(0),
        tier_name: object.text("spec.tierName")?,
        members: object.items("spec.members")?.iter().map(member).collect::<Result<_, _>>()?,
    })
}

fn pod_group_status(object: &Object<'_>) -> Result<PodGroupStatus, DecodeError> {
    let conditions = object.items("status.conditions")?;
    Ok(PodGroupStatus {
        phase: PodGroupPhase::parse(&object.text("status.phase")?),
        conditions: conditions.iter().map(condition).collect::<Result<_, _>>()?,
        running: object.int("status.running")?.unwrap_or(0),
        succeeded: object.int("status.succeeded")?.unwrap_or(0),
        failed: object.int("status.failed")?.unwrap_or(0),
    })
}

fn condition(object: &Object<'_>) -> Result<GroupCondition, DecodeError> {
    Ok(GroupCondition {
        kind: object.text("type")?,
        status: object.text("status")? == "True",
        transition_id: object.text("transitionID")?,
        since_ms: object.time("lastTransitionTime")?,
        reason: object.text("reason")?,
        message: object.text("message")?,
    })
}

/// A Queue (`scheduling.volcano.sh/v1beta1`).
///
/// # Errors
/// When a field has the wrong type or a quantity is malformed.
pub fn queue(value: &Value) -> Result<QueueObject, DecodeError> {
    let object = Object::new("Queue", value)?;
    Ok(QueueObject {
        name: object.key().name,
        uid: object.text("metadata.uid")?,
        created_ms: object.time("metadata.creationTimestamp")?,
        weight: object.int("spec.weight")?.unwrap_or(1).max(1),
        priority: object.int("spec.priority")?.unwrap_or(0),
        parent: object.text("spec.parent")?,
        capability: object.amounts("spec.capability")?,
        deserved: object.amounts("spec.deserved")?,
        guarantee: object.amounts("spec.guarantee.resource")?,
        reclaimable: object.flag("spec.reclaimable")?.unwrap_or(true),
        fifo: object.text("spec.dequeueStrategy")? == "fifo",
        state: match object.text("status.state")?.as_str() {
            // A queue that the controller has not seen yet is open (C42).
            "Open" | "" => QueueState::Open,
            "Closed" => QueueState::Closed,
            "Closing" => QueueState::Closing,
            _ => QueueState::Unknown,
        },
        allocated: object.amounts("status.allocated")?.unwrap_or_default(),
        annotations: object.labels("metadata.annotations")?,
    })
}

/// A QueuePolicy (`tephra.sh/v1alpha1`). The definition of the kind refuses what cannot be read here.
///
/// # Errors
/// When a field has the wrong type, or a duration or word is none of its own.
pub fn queue_policy(value: &Value) -> Result<QueuePolicyObject, DecodeError> {
    let object = Object::new("QueuePolicy", value)?;
    Ok(QueuePolicyObject {
        name: object.key().name,
        mode: object.word(
            "spec.preemption.mode",
            &[
                ("Evict", PreemptionMode::Evict),
                ("Suspend", PreemptionMode::Suspend),
                ("Never", PreemptionMode::Never),
            ],
        )?,
        min_runtime_ms: object.duration("spec.preemption.minRuntime")?,
        max_suspensions_per_day: object
            .int("spec.preemption.maxSuspensionsPerDay")?
            .map(|count| count.max(0) as u32),
        checkpoint: object.word(
            "spec.preemption.checkpoint.mode",
            &[
                ("None", CheckpointMode::None),
                ("Signal", CheckpointMode::Signal),
                ("Ack", CheckpointMode::Ack),
            ],
        )?,
        grace_ms: object.duration("spec.preemption.checkpoint.grace")?,
        weight_from_deserved: object
            .word("spec.fairness.weightFrom", &[("Deserved", true), ("Weight", false)])?,
        credit_window_ms: object.duration("spec.fairness.creditWindow")?,
        burst_ms: object.duration("spec.fairness.burst")?,
        wait_priority_ms: object.duration("spec.fairness.waitPriority")?,
    })
}

/// A PriorityClass.
///
/// # Errors
/// When a field has the wrong type.
pub fn priority_class(value: &Value) -> Result<PriorityClassObject, DecodeError> {
    let object = Object::new("PriorityClass", value)?;
    Ok(PriorityClassObject {
        name: object.key().name,
        value: object.int("value")?.unwrap_or(0),
        global_default: object.flag("globalDefault")?.unwrap_or(false),
    })
}

/// A Namespace.
///
/// # Errors
/// When a field has the wrong type.
pub fn namespace(value: &Value) -> Result<NamespaceObject, DecodeError> {
    let object = Object::new("Namespace", value)?;
    Ok(NamespaceObject { name: object.key().name, labels: object.labels("metadata.labels")? })
}

/// A PersistentVolumeClaim. It counts as bound only in phase `Bound` with a volume name.
///
/// # Errors
/// When a field has the wrong type.
pub fn volume_claim(value: &Value) -> Result<VolumeClaimObject, DecodeError> {
    let object = Object::new("PersistentVolumeClaim", value)?;
    let volume = object.text("spec.volumeName")?;
    let bound = object.text("status.phase")? == "Bound" && !volume.is_empty();
    Ok(VolumeClaimObject {
        key: object.key(),
        volume: bound.then_some(volume),
        deleting: object.get("metadata.deletionTimestamp").is_some(),
    })
}

/// A PersistentVolume.
///
/// # Errors
/// When a field has the wrong type.
pub fn volume(value: &Value) -> Result<VolumeObject, DecodeError> {
    let object = Object::new("PersistentVolume", value)?;
    let node_terms = match object.get("spec.nodeAffinity.required") {
        None => Vec::new(),
        Some(required) => {
            let text = required.to_string();
            let selector: NodeSelectorView<'_> = serde_json::from_str(&text).map_err(|error| {
                object.error("spec.nodeAffinity.required", required, error.to_string())
            })?;
            selector.terms()
        }
    };
    Ok(VolumeObject { name: object.key().name, node_terms })
}

/// A PodDisruptionBudget (`policy/v1`). Of what cannot be read the safe reading is taken: such a budget covers every pod of
/// its namespace, or allows nothing.
///
/// # Errors
/// When it has no name.
pub fn disruption_budget(value: &Value) -> Result<DisruptionBudgetObject, DecodeError> {
    let object = Object::new("PodDisruptionBudget", value)?;
    let selector = object.get("spec.selector").map(|selector| {
        decode::selector(&selector.to_string()).unwrap_or_else(|_| LabelSelector::default())
    });
    let number = |path: &str| object.get(path).and_then(Value::as_i64);
    // A status from before the latest change of the specification says nothing about it.
    let is_current = number("status.observedGeneration").unwrap_or(i64::MAX)
        >= number("metadata.generation").unwrap_or(0);
    let allowed = number("status.disruptionsAllowed").filter(|_| is_current).unwrap_or(0);
    let pods = object.get("status.disruptedPods").and_then(Value::as_object);
    let mut disrupted: Vec<String> =
        pods.into_iter().flatten().map(|(pod, _)| pod.clone()).collect();
    disrupted.sort();
    Ok(DisruptionBudgetObject {
        key: object.key(),
        selector,
        allowed: u32::try_from(allowed.max(0)).unwrap_or(u32::MAX),
        disrupted,
    })
}

/// A ResourceQuota.
///
/// # Errors
/// When a quantity is malformed or a scope has the wrong type.
pub fn resource_quota(value: &Value) -> Result<ResourceQuotaObject, DecodeError> {
    let object = Object::new("ResourceQuota", value)?;
    Ok(ResourceQuotaObject {
        key: object.key(),
        hard: object.quantities("status.hard")?,
        used: object.quantities("status.used")?,
        scopes: quota_scopes(&object)?,
    })
}

fn quota_scopes(object: &Object<'_>) -> Result<Vec<QuotaScope>, DecodeError> {
    let plain = object.texts("spec.scopes")?;
    let mut scopes: Vec<QuotaScope> =
        plain.iter().map(|name| quota_scope(name, Operator::Exists, Vec::new())).collect();
    for selected in object.items("spec.scopeSelector.matchExpressions")? {
        let operator = match selected.text("operator")?.as_str() {
            "In" => Operator::In,
            "NotIn" => Operator::NotIn,
            "Exists" => Operator::Exists,
            "DoesNotExist" => Operator::DoesNotExist,
            _ => Operator::Invalid,
        };
        let values = selected.texts("values")?;
        scopes.push(quota_scope(&selected.text("scopeName")?, operator, values));
    }
    Ok(scopes)
}

/// Scopes other than the one of priority classes have no operator but `Exists`; the API server sees to that.
fn quota_scope(name: &str, operator: Operator, values: Vec<String>) -> QuotaScope {
    match name {
        "BestEffort" => QuotaScope::BestEffort(true),
        "NotBestEffort" => QuotaScope::BestEffort(false),
        "Terminating" => QuotaScope::Terminating(true),
        "NotTerminating" => QuotaScope::Terminating(false),
        "PriorityClass" => QuotaScope::PriorityClass(operator, values),
        "CrossNamespacePodAffinity" => QuotaScope::CrossNamespacePodAffinity,
        _ => QuotaScope::NotOfPods,
    }
}

/// Key of a namespaced object; objects in files may leave the namespace out.
fn default_key(namespace: &str, name: &str) -> ObjectKey {
    ObjectKey::new(if namespace.is_empty() { "default" } else { namespace }, name)
}

#[cfg(test)]
mod tests;
