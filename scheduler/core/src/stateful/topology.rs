//! Nodes as the stateful filters see them, and the domains they form: per topology key the value of every node,
//! interned, so that a counter by domain is a plain vector.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::event::{Labels, Taint};
use crate::matching::labels;

/// Number of a topology key.
pub type KeyId = u32;
/// Number of a value of a topology key.
pub type ValueId = u32;
/// Topology key whose domains are single nodes.
pub const HOSTNAME_KEY: &str = "kubernetes.io/hostname";
/// The node does not have the key.
const NO_VALUE: ValueId = ValueId::MAX;

/// What spread constraints and domains depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeFacts {
    /// Name.
    pub name: Arc<str>,
    /// Labels.
    pub labels: Arc<Labels>,
    /// Taints.
    pub taints: Arc<Vec<Taint>>,
}

#[derive(Clone, Debug)]
struct Key {
    name: String,
    hostname: bool,
    /// Value by slot.
    values: Vec<ValueId>,
    ids: FxHashMap<Arc<str>, ValueId>,
    /// Text by value.
    texts: Vec<Arc<str>>,
    /// Nodes by value.
    nodes: Vec<u32>,
    /// Values that no node has any more. Their counters are all 0 again, so they are given out anew.
    unused: Vec<ValueId>,
}

impl Key {
    fn assign(&mut self, slot: usize, value: Option<&str>) {
        if self.values.len() <= slot {
            self.values.resize(slot + 1, NO_VALUE);
        }
        let before = self.values[slot];
        let after = value.map_or(NO_VALUE, |value| self.intern(value));
        if after != NO_VALUE {
            self.nodes[after as usize] += 1;
        }
        self.values[slot] = after;
        if before != NO_VALUE {
            self.nodes[before as usize] -= 1;
            if self.nodes[before as usize] == 0 {
                self.ids.remove(&self.texts[before as usize]);
                self.unused.push(before);
            }
        }
    }

    fn intern(&mut self, value: &str) -> ValueId {
        if let Some(&id) = self.ids.get(value) {
            return id;
        }
        let text: Arc<str> = value.into();
        let id = self.unused.pop().unwrap_or_else(|| {
            self.nodes.push(0);
            self.texts.push(text.clone());
            self.nodes.len() as ValueId - 1
        });
        self.texts[id as usize] = text.clone();
        self.ids.insert(text, id);
        id
    }
}

/// Nodes by slot and their domains.
#[derive(Clone, Debug, Default)]
pub struct Topology {
    nodes: Vec<Option<NodeFacts>>,
    keys: Vec<Key>,
    by_name: FxHashMap<String, KeyId>,
    version: u64,
}

impl Topology {
    /// Number of a key. Counters over it start empty.
    pub fn key(&mut self, name: &str) -> KeyId {
        if let Some(&id) = self.by_name.get(name) {
            return id;
        }
        let mut key = Key {
            name: name.to_owned(),
            hostname: name == HOSTNAME_KEY,
            values: Vec::new(),
            ids: FxHashMap::default(),
            texts: Vec::new(),
            nodes: Vec::new(),
            unused: Vec::new(),
        };
        for (slot, node) in self.nodes.iter().enumerate() {
            key.assign(slot, node.as_ref().and_then(|node| labels::value(&node.labels, name)));
        }
        let id = self.keys.len() as KeyId;
        self.keys.push(key);
        self.by_name.insert(name.to_owned(), id);
        id
    }

    /// Sets or forgets the node in a slot. Counters must not count anything on the slot meanwhile.
    pub fn replace(&mut self, slot: u32, facts: Option<NodeFacts>) {
        self.version += 1;
        let at = slot as usize;
        if self.nodes.len() <= at {
            self.nodes.resize_with(at + 1, || None);
        }
        for key in &mut self.keys {
            let value = facts.as_ref().and_then(|node| labels::value(&node.labels, &key.name));
            key.assign(at, value);
        }
        self.nodes[at] = facts;
    }

    /// The node in a slot.
    pub fn node(&self, slot: u32) -> Option<&NodeFacts> {
        self.nodes.get(slot as usize)?.as_ref()
    }

    /// Slots that were ever used.
    pub fn slots(&self) -> u32 {
        self.nodes.len() as u32
    }

    /// Domain of a node.
    pub fn value(&self, key: KeyId, slot: u32) -> Option<ValueId> {
        let value = *self.keys[key as usize].values.get(slot as usize)?;
        (value != NO_VALUE).then_some(value)
    }

    /// Text of a domain.
    pub fn text(&self, key: KeyId, value: ValueId) -> &str {
        &self.keys[key as usize].texts[value as usize]
    }

    /// Name of a key.
    pub fn key_name(&self, key: KeyId) -> &str {
        &self.keys[key as usize].name
    }

    /// Nodes by slot.
    pub fn nodes(&self) -> impl Iterator<Item = (u32, &NodeFacts)> {
        let entries = self.nodes.iter().enumerate();
        entries.filter_map(|(slot, node)| Some((slot as u32, node.as_ref()?)))
    }

    /// True for the key whose domains are single nodes.
    pub fn is_hostname(&self, key: KeyId) -> bool {
        self.keys[key as usize].hostname
    }

    /// Moves with every change of a node.
    pub fn version(&self) -> u64 {
        self.version
    }
}

/// A count by domain. Domains past the end count 0.
#[derive(Clone, Debug, Default)]
pub struct DomainCounts(Vec<i64>);

impl DomainCounts {
    /// Count of a domain.
    pub fn get(&self, value: ValueId) -> i64 {
        self.0.get(value as usize).copied().unwrap_or(0)
    }

    /// Adds to a domain.
    pub fn add(&mut self, value: ValueId, amount: i64) {
        let at = value as usize;
        if self.0.len() <= at {
            self.0.resize(at + 1, 0);
        }
        self.0[at] += amount;
    }

    /// Domains that do not count 0.
    pub fn nonzero(&self) -> impl Iterator<Item = (ValueId, i64)> + '_ {
        let entries = self.0.iter().enumerate().map(|(value, &count)| (value as ValueId, count));
        entries.filter(|&(_, count)| count != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, pairs: &[(&str, &str)]) -> Option<NodeFacts> {
        let labels = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Some(NodeFacts { name: name.into(), labels: Arc::new(labels), taints: Arc::default() })
    }

    #[test]
    fn nodes_with_the_same_value_share_a_domain() {
        let mut topology = Topology::default();
        topology.replace(0, node("a", &[("zone", "x")]));
        let zone = topology.key("zone");
        topology.replace(1, node("b", &[("zone", "y")]));
        topology.replace(2, node("c", &[("zone", "x")]));
        topology.replace(3, node("d", &[]));
        assert_eq!(topology.value(zone, 0), topology.value(zone, 2));
        assert_ne!(topology.value(zone, 0), topology.value(zone, 1));
        assert_eq!(topology.value(zone, 3), None);
        assert_eq!(topology.value(zone, 99), None);
        assert_eq!(topology.key("zone"), zone);
    }

    #[test]
    fn an_empty_value_is_a_domain() {
        let mut topology = Topology::default();
        let zone = topology.key("zone");
        topology.replace(0, node("a", &[("zone", "")]));
        assert!(topology.value(zone, 0).is_some());
    }

    #[test]
    fn values_that_no_node_has_are_given_out_again() {
        let mut topology = Topology::default();
        let host = topology.key(HOSTNAME_KEY);
        for round in 0..100 {
            topology.replace(0, node("a", &[(HOSTNAME_KEY, &format!("host-{round}"))]));
        }
        let value = topology.value(host, 0).unwrap();
        assert_eq!(topology.text(host, value), "host-99");
        assert!(topology.keys[host as usize].nodes.len() <= 2);
        assert!(topology.is_hostname(host));
    }
}
