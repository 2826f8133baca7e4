//! Which nodes a member of a hypernode selects by pattern or label.

use regex::{Regex, RegexBuilder};

use crate::event::{LabelSelector, MemberSelector};
use crate::matching::label_selector;
use crate::state::nodes::NodeIdentity;

/// Compiled patterns may take up so many bytes: longer ones are refused.
const PATTERN_LIMIT: usize = 1 << 20;

/// A selector of nodes.
#[derive(Clone, Debug)]
pub(super) enum NodeSelector {
    /// The pattern is found anywhere in the name (RE2's rules: linear time whatever the pattern).
    Regex(Regex),
    /// All requirements hold for the node's labels; without any nothing is selected.
    Labels(LabelSelector),
}

impl NodeSelector {
    /// Compiles a selector; an error says what is wrong with it.
    pub(super) fn new(selector: MemberSelector) -> Result<Self, String> {
        match selector {
            MemberSelector::Regex(pattern) => RegexBuilder::new(&pattern)
                .size_limit(PATTERN_LIMIT)
                .build()
                .map(Self::Regex)
                .map_err(|error| format!("regexMatch.pattern \"{pattern}\": {error}")),
            MemberSelector::Labels(labels) => Ok(Self::Labels(labels)),
            MemberSelector::Exact(_) | MemberSelector::None => {
                Err("a member needs an exactMatch, a regexMatch or a labelMatch".to_owned())
            }
        }
    }

    pub(super) fn matches(&self, node: &NodeIdentity) -> bool {
        match self {
            Self::Regex(regex) => regex.is_match(&node.name),
            Self::Labels(selector) => {
                !selector.requirements.is_empty() && label_selector::matches(selector, &node.labels)
            }
        }
    }
}

/// True when a member of type Node selects a node (Volcano `GetMembers`); a malformed selector selects nothing.
pub fn selects(selector: &MemberSelector, node: &NodeIdentity) -> bool {
    match selector {
        MemberSelector::Exact(name) => **name == *node.name,
        other => NodeSelector::new(other.clone()).is_ok_and(|selector| selector.matches(node)),
    }
}
