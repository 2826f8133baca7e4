//! Affinity and topology spread: parsed owned, and only for a template that was not seen before.

use serde::Deserialize;
use tephra_core::event::{
    LabelSelector, Labels, NodeSelectorTerm, Operator, PodAffinityTerm, Requirement,
    SpreadConstraint,
};

use super::text::{List, Pairs, Text};

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct AffinityView<'a> {
    #[serde(borrow)]
    node_affinity: Option<NodeAffinityView<'a>>,
    #[serde(borrow)]
    pod_affinity: Option<PodAffinityView<'a>>,
    #[serde(borrow)]
    pod_anti_affinity: Option<PodAffinityView<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct NodeAffinityView<'a> {
    #[serde(borrow, rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    required: Option<NodeSelectorView<'a>>,
    #[serde(borrow, rename = "preferredDuringSchedulingIgnoredDuringExecution")]
    preferred: List<PreferredNodeView<'a>>,
}

/// `v1.NodeSelector`, of pods and of PersistentVolumes.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct NodeSelectorView<'a> {
    #[serde(borrow)]
    node_selector_terms: List<NodeTermView<'a>>,
}

impl NodeSelectorView<'_> {
    /// The alternatives. An empty list of alternatives matches nothing, which one empty term says.
    pub(crate) fn terms(&self) -> Vec<NodeSelectorTerm> {
        if self.node_selector_terms.0.is_empty() {
            return vec![NodeSelectorTerm::default()];
        }
        self.node_selector_terms.0.iter().map(NodeTermView::term).collect()
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct NodeTermView<'a> {
    #[serde(borrow)]
    match_expressions: List<RequirementView<'a>>,
    #[serde(borrow)]
    match_fields: List<RequirementView<'a>>,
}

impl NodeTermView<'_> {
    fn term(&self) -> NodeSelectorTerm {
        NodeSelectorTerm {
            expressions: requirements(&self.match_expressions),
            fields: requirements(&self.match_fields),
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PreferredNodeView<'a> {
    weight: Option<i64>,
    #[serde(borrow)]
    preference: Option<NodeTermView<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RequirementView<'a> {
    #[serde(borrow)]
    key: Text<'a>,
    #[serde(borrow)]
    operator: Text<'a>,
    #[serde(borrow)]
    values: List<Text<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PodAffinityView<'a> {
    #[serde(borrow, rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    required: List<PodTermView<'a>>,
    #[serde(borrow, rename = "preferredDuringSchedulingIgnoredDuringExecution")]
    preferred: List<PreferredPodView<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PreferredPodView<'a> {
    weight: Option<i64>,
    #[serde(borrow)]
    pod_affinity_term: Option<PodTermView<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PodTermView<'a> {
    #[serde(borrow)]
    label_selector: Option<SelectorView<'a>>,
    #[serde(borrow)]
    namespaces: List<Text<'a>>,
    #[serde(borrow)]
    namespace_selector: Option<SelectorView<'a>>,
    #[serde(borrow)]
    topology_key: Text<'a>,
    #[serde(borrow)]
    match_label_keys: List<Text<'a>>,
    #[serde(borrow)]
    mismatch_label_keys: List<Text<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SelectorView<'a> {
    #[serde(borrow)]
    match_labels: Pairs<'a, Text<'a>>,
    #[serde(borrow)]
    match_expressions: List<RequirementView<'a>>,
}

/// An entry of `spec.topologySpreadConstraints`.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct SpreadView<'a> {
    max_skew: Option<i64>,
    #[serde(borrow)]
    topology_key: Text<'a>,
    #[serde(borrow)]
    when_unsatisfiable: Text<'a>,
    #[serde(borrow)]
    label_selector: Option<SelectorView<'a>>,
    min_domains: Option<i64>,
    #[serde(borrow)]
    node_affinity_policy: Text<'a>,
    #[serde(borrow)]
    node_taints_policy: Text<'a>,
    #[serde(borrow)]
    match_label_keys: List<Text<'a>>,
}

/// Required alternatives of node affinity.
pub(super) fn required_node_terms(affinity: &AffinityView<'_>) -> Vec<NodeSelectorTerm> {
    let required = affinity.node_affinity.as_ref().and_then(|node| node.required.as_ref());
    required.map(NodeSelectorView::terms).unwrap_or_default()
}

/// Preferred node affinity with weights; entries of weight 0 count for nothing and are left out.
pub(super) fn preferred_node_terms(affinity: &AffinityView<'_>) -> Vec<(i32, NodeSelectorTerm)> {
    let Some(node) = &affinity.node_affinity else { return Vec::new() };
    node.preferred
        .0
        .iter()
        .filter_map(|entry| {
            let term = entry.preference.as_ref().map(NodeTermView::term).unwrap_or_default();
            Some((weight(entry.weight)?, term))
        })
        .collect()
}

/// Required inter-pod affinity (`anti` false) or anti-affinity.
pub(super) fn required_pod_terms(
    affinity: &AffinityView<'_>,
    anti: bool,
    labels: &Labels,
) -> Vec<PodAffinityTerm> {
    let side = if anti { &affinity.pod_anti_affinity } else { &affinity.pod_affinity };
    let Some(side) = side else { return Vec::new() };
    side.required.0.iter().map(|term| pod_term(term, labels)).collect()
}

/// Preferred inter-pod affinity; anti-affinity with negative weights.
pub(super) fn preferred_pod_terms(
    affinity: &AffinityView<'_>,
    labels: &Labels,
) -> Vec<(i32, PodAffinityTerm)> {
    let sides = [(&affinity.pod_affinity, 1), (&affinity.pod_anti_affinity, -1)];
    let mut terms = Vec::new();
    for (side, sign) in sides {
        let Some(side) = side else { continue };
        for entry in &side.preferred.0 {
            let (Some(weight), Some(term)) = (weight(entry.weight), &entry.pod_affinity_term)
            else {
                continue;
            };
            terms.push((sign * weight, pod_term(term, labels)));
        }
    }
    terms
}

/// Topology spread constraints with `matchLabelKeys` merged in.
pub(super) fn spread(views: &List<SpreadView<'_>>, labels: &Labels) -> Vec<SpreadConstraint> {
    views.0.iter().map(|view| spread_constraint(view, labels)).collect()
}

fn spread_constraint(view: &SpreadView<'_>, labels: &Labels) -> SpreadConstraint {
    let mut selector = match &view.label_selector {
        Some(selector) => label_selector(selector),
        // Kubernetes: no selector counts no pod.
        None => LabelSelector { requirements: vec![nothing()] },
    };
    add_label_keys(&mut selector, &view.match_label_keys, Operator::In, labels);
    SpreadConstraint {
        max_skew: clamp(view.max_skew.unwrap_or(1)).max(1),
        topology_key: view.topology_key.as_str().to_owned(),
        hard: view.when_unsatisfiable.as_str() != "ScheduleAnyway",
        selector,
        min_domains: clamp(view.min_domains.unwrap_or(1)).max(1),
        honor_affinity: view.node_affinity_policy.as_str() != "Ignore",
        honor_taints: view.node_taints_policy.as_str() == "Honor",
    }
}

fn pod_term(view: &PodTermView<'_>, labels: &Labels) -> PodAffinityTerm {
    let mut selector = view.label_selector.as_ref().map(label_selector);
    if let Some(selector) = &mut selector {
        add_label_keys(selector, &view.match_label_keys, Operator::In, labels);
        add_label_keys(selector, &view.mismatch_label_keys, Operator::NotIn, labels);
    }
    PodAffinityTerm {
        selector,
        namespaces: view.namespaces.0.iter().map(|name| name.as_str().to_owned()).collect(),
        namespace_selector: view.namespace_selector.as_ref().map(label_selector),
        topology_key: view.topology_key.as_str().to_owned(),
    }
}

/// The API server merges these keys itself since 1.29 (affinity) and 1.34 (spread); older ones leave it to us.
fn add_label_keys(
    selector: &mut LabelSelector,
    keys: &List<Text<'_>>,
    operator: Operator,
    labels: &Labels,
) {
    for key in &keys.0 {
        let Ok(at) = labels.binary_search_by(|(k, _)| k.as_str().cmp(key.as_str())) else {
            continue;
        };
        let requirement = Requirement {
            key: key.as_str().to_owned(),
            operator,
            values: vec![labels[at].1.clone()],
        };
        if !selector.requirements.contains(&requirement) {
            selector.requirements.push(requirement);
        }
    }
}

/// Reads a label selector from a JSON value.
pub(crate) fn label_selector_of(value: &serde_json::Value) -> serde_json::Result<LabelSelector> {
    let text = value.to_string();
    let view: SelectorView<'_> = serde_json::from_str(&text)?;
    Ok(label_selector(&view))
}

fn label_selector(view: &SelectorView<'_>) -> LabelSelector {
    let equal = view.match_labels.to_labels().into_iter().map(|(key, value)| Requirement {
        key,
        operator: Operator::In,
        values: vec![value],
    });
    LabelSelector { requirements: equal.chain(requirements(&view.match_expressions)).collect() }
}

fn requirements(views: &List<RequirementView<'_>>) -> Vec<Requirement> {
    views
        .0
        .iter()
        .map(|view| Requirement {
            key: view.key.as_str().to_owned(),
            operator: operator(view.operator.as_str()),
            values: view.values.0.iter().map(|value| value.as_str().to_owned()).collect(),
        })
        .collect()
}

fn operator(text: &str) -> Operator {
    match text {
        "In" => Operator::In,
        "NotIn" => Operator::NotIn,
        "Exists" => Operator::Exists,
        "DoesNotExist" => Operator::DoesNotExist,
        "Gt" => Operator::Gt,
        "Lt" => Operator::Lt,
        _ => Operator::Invalid,
    }
}

/// A requirement that nothing satisfies.
fn nothing() -> Requirement {
    Requirement { key: String::new(), operator: Operator::Invalid, values: Vec::new() }
}

/// The API server admits 1..=100.
fn weight(weight: Option<i64>) -> Option<i32> {
    weight.map(|weight| clamp(weight.clamp(0, 100))).filter(|weight| *weight != 0)
}

/// Numbers beyond 32 bits saturate.
pub(crate) fn clamp(number: i64) -> i32 {
    i32::try_from(number).unwrap_or(if number < 0 { i32::MIN } else { i32::MAX })
}
