//! Plugin `predicates`: may a task go to a node, room apart (7.5)?

use tephra_core::event::{
    HostPort, Labels, NodeObject, NodeSelectorTerm, Operator, PodSpec, Requirement, Taint,
    TaintEffect, Toleration,
};

use super::session::Session;

impl Session {
    /// Every filter passes.
    pub fn feasible(&self, task: usize, slot: usize) -> bool {
        let (task_row, Some(node)) = (&self.tasks[task], &self.nodes[slot]) else { return false };
        // The number of pods is a limit of the node, whatever plugins there are.
        let one_more = (node.pods as f64) < node.allocatable.get("pods");
        if !self.has("predicates") {
            return one_more;
        }
        let spec = &task_row.spec;
        one_more
            && statically_feasible(spec, &node.object)
            && !spec.host_ports.iter().any(|port| node.ports.iter().any(|p| collide(port, p)))
            && self.affinity_allows(task, slot)
            && self.spread_allows(task, slot)
    }
}

/// The filters that look at a node alone.
pub fn statically_feasible(spec: &PodSpec, node: &NodeObject) -> bool {
    let cordon = Taint {
        key: "node.kubernetes.io/unschedulable".to_owned(),
        value: String::new(),
        effect: TaintEffect::NoSchedule,
    };
    (!node.unschedulable || tolerated(&spec.tolerations, &cordon))
        && selects(spec, node)
        && taints_tolerated(spec, node)
}

/// Node selector and required node affinity.
pub fn selects(spec: &PodSpec, node: &NodeObject) -> bool {
    spec.node_selector.iter().all(|(key, value)| label(&node.labels, key) == Some(value))
        && (spec.required_node_terms.is_empty()
            || spec.required_node_terms.iter().any(|term| term_selects(term, node)))
}

/// No taint keeps the pod away.
pub fn taints_tolerated(spec: &PodSpec, node: &NodeObject) -> bool {
    node.taints
        .iter()
        .filter(|taint| taint.effect != TaintEffect::PreferNoSchedule)
        .all(|taint| tolerated(&spec.tolerations, taint))
}

/// All requirements of a term hold; a term without any selects nothing.
pub fn term_selects(term: &NodeSelectorTerm, node: &NodeObject) -> bool {
    let fields = vec![("metadata.name".to_owned(), node.name.clone())];
    !(term.expressions.is_empty() && term.fields.is_empty())
        && term.expressions.iter().all(|requirement| holds(requirement, &node.labels))
        && term.fields.iter().all(|requirement| holds(requirement, &fields))
}

/// A requirement holds for these labels.
pub fn holds(requirement: &Requirement, labels: &Labels) -> bool {
    let value = label(labels, &requirement.key);
    let listed = || value.is_some_and(|value| requirement.values.contains(value));
    let compare = |wanted: fn(i64, i64) -> bool| {
        let limit = requirement.values.first().and_then(|text| text.parse().ok());
        let value = value.and_then(|text| text.parse().ok());
        value.zip(limit).is_some_and(|(value, limit)| wanted(value, limit))
    };
    match requirement.operator {
        Operator::In => listed(),
        Operator::NotIn => !listed(),
        Operator::Exists => value.is_some(),
        Operator::DoesNotExist => value.is_none(),
        Operator::Gt => compare(|value, limit| value > limit),
        Operator::Lt => compare(|value, limit| value < limit),
        Operator::Invalid => false,
    }
}

/// Value of a label.
pub fn label<'l>(labels: &'l Labels, key: &str) -> Option<&'l String> {
    labels.iter().find(|(known, _)| known == key).map(|(_, value)| value)
}

/// Some toleration covers the taint.
pub fn tolerated(tolerations: &[Toleration], taint: &Taint) -> bool {
    tolerations.iter().any(|toleration| {
        let effect = toleration.effect.is_none_or(|effect| effect == taint.effect);
        let key = (toleration.key.is_empty() && toleration.exists) || toleration.key == taint.key;
        effect && key && (toleration.exists || toleration.value == taint.value)
    })
}

fn collide(a: &HostPort, b: &HostPort) -> bool {
    let any = "0.0.0.0";
    a.port == b.port && a.protocol == b.protocol && (a.ip == b.ip || a.ip == any || b.ip == any)
}
