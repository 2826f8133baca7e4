//! The tree of hypernodes below a root that holds every node. A hypernode whose members contradict the others is not
//! part of it: members must be of a lower tier, which rules out cycles, and have one parent.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::{HyperNode, Problem};
use crate::event::NetworkTopology;
use crate::state::nodes::{NodeId, Nodes};

/// Dense number of a hypernode in the tree; they are sorted by tier, then name, the root first of all.
pub type DomainId = u32;
/// The root: the whole cluster.
pub const ROOT: DomainId = 0;
/// Volcano's name of the root.
pub const ROOT_NAME: &str = "<cluster-top-hypernode>";

/// One hypernode of the tree.
#[derive(Clone, Debug)]
pub struct Domain {
    /// Name.
    pub name: Arc<str>,
    /// Tier; the root's is one above all others.
    pub tier: i32,
    /// Name of the tier, empty for none.
    pub tier_name: Arc<str>,
    /// The hypernode that it belongs to; the root is its own.
    pub parent: DomainId,
    /// Hypernodes that belong to it.
    pub children: Vec<DomainId>,
    /// Nodes in it and in everything below it, in order. Empty for the root, which has all.
    pub nodes: Vec<NodeId>,
}

/// How far apart pods may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// No hypernode is asked for.
    Anywhere,
    /// In one hypernode of this tier or a lower one.
    UpTo {
        /// The tier.
        tier: i32,
        /// The closer the better, but no tier is too high.
        soft: bool,
    },
}

/// All hypernodes that are valid.
#[derive(Clone, Debug)]
pub struct Tree {
    /// Moves when the tree changes.
    pub epoch: u32,
    /// By number; the root is always there.
    domains: Vec<Domain>,
    /// Where a slot's part of `containing` begins.
    starts: Vec<u32>,
    containing: Vec<DomainId>,
}

impl Default for Tree {
    fn default() -> Self {
        Self { epoch: 0, domains: vec![root(1)], starts: Vec::new(), containing: Vec::new() }
    }
}

fn root(tier: i32) -> Domain {
    Domain {
        name: ROOT_NAME.into(),
        tier,
        tier_name: "".into(),
        parent: ROOT,
        children: Vec::new(),
        nodes: Vec::new(),
    }
}

impl std::ops::Index<DomainId> for Tree {
    type Output = Domain;

    fn index(&self, id: DomainId) -> &Domain {
        &self.domains[id as usize]
    }
}

impl Tree {
    /// Number of domains, the root included.
    pub fn len(&self) -> usize {
        self.domains.len()
    }

    /// There is nothing but the root.
    pub fn is_empty(&self) -> bool {
        self.domains.len() == 1
    }

    /// All domains but the root, by tier, then name.
    pub fn hyper_nodes(&self) -> std::ops::Range<DomainId> {
        1..self.domains.len() as DomainId
    }

    /// Domain of a name.
    pub fn get(&self, name: &str) -> Option<DomainId> {
        let at = self.domains.iter().position(|domain| &*domain.name == name)?;
        Some(at as DomainId)
    }

    /// Hypernodes that hold a node, the lowest tier first; the root is not among them.
    pub fn containing(&self, node: NodeId) -> &[DomainId] {
        let at = node as usize;
        match self.starts.get(at..at + 2) {
            Some(&[start, end]) => &self.containing[start as usize..end as usize],
            _ => &[],
        }
    }

    /// The lowest hypernode that holds a node.
    pub fn lowest(&self, node: NodeId) -> Option<DomainId> {
        self.containing(node).first().copied()
    }

    /// The domain itself, its parent, and so on up to the root.
    pub fn ancestors(&self, id: DomainId) -> impl Iterator<Item = DomainId> + '_ {
        let above = |&id: &DomainId| (id != ROOT).then(|| self[id].parent);
        std::iter::successors(Some(id), above)
    }

    /// True when `id` is `top` or lies below it.
    pub fn is_within(&self, id: DomainId, top: DomainId) -> bool {
        top == ROOT || self.ancestors(id).any(|above| above == top)
    }

    /// The lowest domain that holds both.
    pub fn common(&self, a: DomainId, b: DomainId) -> DomainId {
        self.ancestors(b).find(|&above| self.is_within(a, above)).unwrap_or(ROOT)
    }

    /// Where a gang is at home: the lowest hypernode with all its running members, and with the one that its PodGroup names
    /// (annotation `volcano.sh/job-allocated-hypernode`, B24).
    pub fn home(
        &self,
        named: Option<&str>,
        running: impl Iterator<Item = NodeId>,
    ) -> Option<DomainId> {
        let (named, running) = (named.and_then(|name| self.get(name)), self.common_of(running));
        match (named, running) {
            (Some(named), Some(running)) => Some(self.common(named, running)),
            (named, running) => named.or(running),
        }
    }

    /// The lowest domain that holds all these nodes; nodes in no hypernode say nothing. `None` when no node does.
    pub fn common_of(&self, nodes: impl Iterator<Item = NodeId>) -> Option<DomainId> {
        nodes
            .filter_map(|node| self.lowest(node))
            .reduce(|a, b| if a == b { a } else { self.common(a, b) })
    }

    /// A domain and everything below it up to a tier, grouped by tier, the lowest first.
    pub fn below(&self, top: DomainId, tier: i32) -> Vec<Vec<DomainId>> {
        let mut found: Vec<DomainId>;
        if top == ROOT {
            // Numbers go by tier already, but for the root.
            found = self.hyper_nodes().collect();
            found.extend((!self.is_empty()).then_some(ROOT));
        } else {
            found = vec![top];
            let mut next = 0;
            while next < found.len() {
                found.extend(&self[found[next]].children);
                next += 1;
            }
            found.sort_unstable();
        }
        found.retain(|&id| self[id].tier <= tier);
        found.chunk_by(|&a, &b| self[a].tier == self[b].tier).map(<[DomainId]>::to_vec).collect()
    }

    /// What a PodGroup's wish means in this tree. A hard wish for a tier that nothing names is none (2.6).
    pub fn limit(&self, topology: Option<&NetworkTopology>) -> Limit {
        let Some(topology) = topology else { return Limit::Anywhere };
        if !topology.hard {
            let tier = self[ROOT].tier;
            return if self.is_empty() {
                Limit::Anywhere
            } else {
                Limit::UpTo { tier, soft: true }
            };
        }
        let named = || {
            let of_name = |domain: &&Domain| {
                !domain.tier_name.is_empty() && *domain.tier_name == *topology.highest_tier_name
            };
            self.domains.iter().filter(of_name).map(|domain| domain.tier).max()
        };
        match topology.highest_tier.or_else(named) {
            Some(tier) => Limit::UpTo { tier, soft: false },
            None => Limit::Anywhere,
        }
    }
}

/// Builds the tree of all hypernodes that do not contradict those of lower tiers, or of equal tier and smaller name.
pub(super) fn build(
    objects: &BTreeMap<Arc<str>, HyperNode>,
    nodes: &Nodes,
    epoch: u32,
) -> (Tree, Vec<Problem>) {
    let mut order: Vec<(&Arc<str>, &HyperNode)> = objects.iter().collect();
    order.sort_by_key(|(_, row)| row.tier);
    let mut domains = vec![root(1)];
    let mut ids: FxHashMap<&str, DomainId> = FxHashMap::default();
    let mut problems = Vec::new();
    for (name, row) in order {
        match children_of(name, row, objects, &ids, &domains) {
            Ok(children) => {
                let id = domains.len() as DomainId;
                let mut held: Vec<NodeId> = row.nodes.iter().copied().collect();
                for &child in &children {
                    domains[child as usize].parent = id;
                    held.extend(&domains[child as usize].nodes);
                }
                held.sort_unstable();
                held.dedup();
                ids.insert(name, id);
                domains.push(Domain {
                    name: name.clone(),
                    tier: row.tier,
                    tier_name: row.tier_name.clone(),
                    parent: ROOT,
                    children,
                    nodes: held,
                });
            }
            Err(message) => {
                problems.push(Problem { name: name.clone(), uid: row.uid.clone(), message });
            }
        }
    }
    let above_all = domains.iter().skip(1).map(|domain| domain.tier.saturating_add(1)).max();
    domains[0].tier = above_all.unwrap_or(1).max(1);
    let tops = (1..domains.len() as DomainId).filter(|&id| domains[id as usize].parent == ROOT);
    domains[0].children = tops.collect();
    let (starts, containing) = by_slot(&domains, nodes.len());
    (Tree { epoch, domains, starts, containing }, problems)
}

/// The valid children of a hypernode, or why it is not valid itself. Children that do not exist (yet) are left out.
fn children_of(
    name: &Arc<str>,
    row: &HyperNode,
    objects: &BTreeMap<Arc<str>, HyperNode>,
    ids: &FxHashMap<&str, DomainId>,
    domains: &[Domain],
) -> Result<Vec<DomainId>, String> {
    if let Some(problem) = &row.problem {
        return Err(problem.clone());
    }
    let mut children = Vec::new();
    for child in &row.children {
        let Some(object) = objects.get(child.as_str()) else { continue };
        if **child == **name {
            return Err("it names itself as a member".to_owned());
        }
        if object.tier >= row.tier {
            return Err(format!(
                "member {child} is of tier {}, which is not below its own tier {}",
                object.tier, row.tier
            ));
        }
        let Some(&id) = ids.get(child.as_str()) else { continue };
        let parent = domains[id as usize].parent;
        if parent != ROOT {
            let parent = &domains[parent as usize].name;
            return Err(format!("member {child} already belongs to {parent}"));
        }
        if !children.contains(&id) {
            children.push(id);
        }
    }
    Ok(children)
}

/// For each slot the hypernodes that hold it, as one list with the start of each slot's part.
fn by_slot(domains: &[Domain], slots: usize) -> (Vec<u32>, Vec<DomainId>) {
    let mut starts = vec![0_u32; slots + 1];
    for domain in domains {
        for &node in &domain.nodes {
            starts[node as usize + 1] += 1;
        }
    }
    for slot in 0..slots {
        starts[slot + 1] += starts[slot];
    }
    let mut next = starts.clone();
    let mut containing = vec![ROOT; starts[slots] as usize];
    for (id, domain) in domains.iter().enumerate() {
        for &node in &domain.nodes {
            let at = &mut next[node as usize];
            containing[*at as usize] = id as DomainId;
            *at += 1;
        }
    }
    (starts, containing)
}
