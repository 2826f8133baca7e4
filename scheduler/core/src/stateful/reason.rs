//! Why a filter over pods elsewhere rejects a node.

use std::fmt;

use crate::matching::rejection::RejectionCode;

/// Rejection by NodePorts, InterPodAffinity or PodTopologySpread (7.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StatefulReason {
    /// NodePorts: a host port is taken.
    Ports,
    /// InterPodAffinity: a required affinity term has no match in the node's domain, or the node has no domain.
    Affinity,
    /// InterPodAffinity: a pod in the node's domain matches one of the pod's own anti-affinity terms.
    AntiAffinity,
    /// InterPodAffinity: a pod in the node's domain keeps pods like this one away.
    ExistingAntiAffinity,
    /// PodTopologySpread: the node lacks the label that names its domain.
    SpreadMissingLabel,
    /// PodTopologySpread: the domain would be too far above the emptiest one.
    Spread,
}

impl StatefulReason {
    /// The text that users see.
    pub fn text(self) -> &'static str {
        match self {
            Self::Ports => "node(s) didn't have free ports for the requested pod ports",
            Self::Affinity => "node(s) didn't match pod affinity rules",
            Self::AntiAffinity => "node(s) didn't match pod anti-affinity rules",
            Self::ExistingAntiAffinity => {
                "node(s) didn't satisfy existing pods anti-affinity rules"
            }
            Self::SpreadMissingLabel => {
                "node(s) didn't match pod topology spread constraints (missing required label)"
            }
            Self::Spread => "node(s) didn't match pod topology spread constraints",
        }
    }

    /// How final it is. Evicting pods frees ports and domains, but brings neither a pod to be near nor a label.
    pub fn code(self) -> RejectionCode {
        match self {
            Self::Affinity | Self::SpreadMissingLabel => {
                RejectionCode::UnschedulableAndUnresolvable
            }
            Self::Ports | Self::AntiAffinity | Self::ExistingAntiAffinity | Self::Spread => {
                RejectionCode::Unschedulable
            }
        }
    }
}

impl fmt::Display for StatefulReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_codes_are_the_ones_of_kubernetes() {
        use StatefulReason::*;
        let table = [
            (Ports, false, "node(s) didn't have free ports for the requested pod ports"),
            (Affinity, true, "node(s) didn't match pod affinity rules"),
            (AntiAffinity, false, "node(s) didn't match pod anti-affinity rules"),
            (
                ExistingAntiAffinity,
                false,
                "node(s) didn't satisfy existing pods anti-affinity rules",
            ),
            (
                SpreadMissingLabel,
                true,
                "node(s) didn't match pod topology spread constraints (missing required label)",
            ),
            (Spread, false, "node(s) didn't match pod topology spread constraints"),
        ];
        for (reason, is_final, text) in table {
            assert_eq!(reason.to_string(), text);
            assert_eq!(reason.code().is_final(), is_final, "{text}");
        }
    }
}
