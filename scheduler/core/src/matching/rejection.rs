//! How final a rejection is.

/// Status code of a rejected node (Volcano's `Unschedulable` and `UnschedulableAndUnresolvable`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RejectionCode {
    /// Evicting pods could make room (`U`, 2). Further filters are still asked, so reasons add up.
    Unschedulable,
    /// Nothing that happens to other pods can help (`UU`, 3). Ends the filters for this node.
    UnschedulableAndUnresolvable,
}

impl RejectionCode {
    /// True when no later filter is asked about the node (Volcano `ShouldAbort`).
    pub fn is_final(self) -> bool {
        self == Self::UnschedulableAndUnresolvable
    }
}

/// PreFilter text for required node affinity whose terms each name contradicting nodes.
pub const TERMS_CONFLICT: &str = "pod affinity terms conflict";

#[cfg(test)]
mod tests {
    use super::RejectionCode;

    #[test]
    fn only_the_unresolvable_code_ends_the_filters() {
        assert!(RejectionCode::UnschedulableAndUnresolvable.is_final());
        assert!(!RejectionCode::Unschedulable.is_final());
    }
}
