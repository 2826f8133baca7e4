//! Hypernodes: which nodes are close to each other in the network, as HyperNode objects say. Each object's selectors
//! are followed as nodes come, go and change their labels; what they add up to is a [`Tree`], built anew when a
//! session needs it and something changed. Events write here; sessions read the tree.

mod selector;
mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::nodes::{NodeId, Nodes};
use crate::event::{HyperNodeObject, MemberSelector};
use selector::NodeSelector;
pub use selector::selects;
pub use tree::{Domain, DomainId, Limit, ROOT, ROOT_NAME, Tree};

/// One object.
#[derive(Clone, Debug, Default)]
struct HyperNode {
    uid: String,
    tier: i32,
    tier_name: Arc<str>,
    /// Names of hypernodes that it holds.
    children: Vec<String>,
    /// Selectors by pattern or label.
    selectors: Vec<NodeSelector>,
    /// Names of nodes that it holds.
    exact: Vec<String>,
    /// Nodes that it holds itself and that exist.
    nodes: BTreeSet<NodeId>,
    /// What is wrong with its own text.
    problem: Option<String>,
}

/// Something wrong with a hypernode: it counts as absent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Name of the hypernode.
    pub name: Arc<str>,
    /// Its uid.
    pub uid: String,
    /// Text for a person.
    pub message: String,
}

/// All hypernodes.
#[derive(Debug, Default)]
pub struct HyperNodes {
    objects: BTreeMap<Arc<str>, HyperNode>,
    /// Node name to the hypernodes that name it.
    by_exact_name: FxHashMap<String, Vec<Arc<str>>>,
    tree: Tree,
    problems: Vec<Problem>,
    /// Problems that were told, by name.
    told: BTreeMap<Arc<str>, String>,
    stale: bool,
}

impl HyperNodes {
    /// Takes over an object.
    pub fn set(&mut self, object: HyperNodeObject, nodes: &Nodes) {
        self.remove(&object.name);
        let name: Arc<str> = object.name.as_str().into();
        let mut row = HyperNode {
            uid: object.uid,
            tier: object.tier.max(0),
            tier_name: object.tier_name.as_str().into(),
            ..HyperNode::default()
        };
        for member in object.members {
            match (member.is_hyper_node, member.selector) {
                (true, MemberSelector::Exact(child)) => row.children.push(child),
                (true, _) => {
                    row.problem = Some("members of type HyperNode need an exactMatch".to_owned());
                }
                (false, MemberSelector::Exact(node)) => {
                    row.nodes.extend(nodes.get(&node).filter(|&id| is_known(nodes, id)));
                    self.by_exact_name.entry(node.clone()).or_default().push(name.clone());
                    row.exact.push(node);
                }
                (false, selector) => match NodeSelector::new(selector) {
                    Ok(selector) => {
                        let matching = nodes
                            .known()
                            .filter(|&id| selector.matches(&nodes.identity[id as usize]));
                        row.nodes.extend(matching);
                        row.selectors.push(selector);
                    }
                    Err(problem) => row.problem = Some(problem),
                },
            }
        }
        self.objects.insert(name, row);
        self.stale = true;
    }

    /// Forgets an object.
    pub fn remove(&mut self, name: &str) {
        let Some((name, row)) = self.objects.remove_entry(name) else { return };
        for node in row.exact {
            if let Some(holders) = self.by_exact_name.get_mut(&node) {
                holders.retain(|holder| *holder != name);
                if holders.is_empty() {
                    self.by_exact_name.remove(&node);
                }
            }
        }
        self.stale = true;
    }

    /// A node came, went, or has other labels: hypernodes that select it hold it from now on, others do not.
    pub fn node_changed(&mut self, id: NodeId, nodes: &Nodes) {
        if self.objects.is_empty() {
            return;
        }
        let identity = &nodes.identity[id as usize];
        let by_name = self.by_exact_name.get(&*identity.name);
        for (name, row) in &mut self.objects {
            let holds = identity.known
                && (row.selectors.iter().any(|selector| selector.matches(identity))
                    || by_name.is_some_and(|holders| holders.contains(name)));
            if holds {
                row.nodes.insert(id)
            } else {
                row.nodes.remove(&id)
            };
        }
        self.stale = true;
    }

    /// Builds the tree anew if something changed.
    pub fn refresh(&mut self, nodes: &Nodes) {
        if !std::mem::take(&mut self.stale) {
            return;
        }
        let epoch = self.tree.epoch.wrapping_add(1);
        let (tree, problems) = tree::build(&self.objects, nodes, epoch);
        self.tree = tree;
        self.problems = problems;
    }

    /// The tree as of the last [`HyperNodes::refresh`].
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// What is wrong with single hypernodes and was not told yet.
    pub fn untold_problems(&mut self) -> Vec<Problem> {
        let problems = &self.problems;
        self.told.retain(|name, _| problems.iter().any(|problem| problem.name == *name));
        let mut untold = Vec::new();
        for problem in problems {
            if self.told.get(&problem.name) != Some(&problem.message) {
                self.told.insert(problem.name.clone(), problem.message.clone());
                untold.push(problem.clone());
            }
        }
        untold
    }
}

fn is_known(nodes: &Nodes, id: NodeId) -> bool {
    nodes.identity[id as usize].known
}

#[cfg(test)]
mod tests;
