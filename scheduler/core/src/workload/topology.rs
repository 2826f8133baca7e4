//! A cluster of racks and spines for gangs that must stay together: whole racks fill up gang by gang, and what no rack
//! can hold any more goes to the lowest tier that can.

use std::sync::Arc;

use super::{
    GIB, NAMESPACE, VolcanoWorkload, amounts, default_queue, node_name, template, uid,
    waiting_group,
};
use crate::event::{
    Event, HyperNodeMember, HyperNodeObject, MemberSelector, NetworkTopology, NodeObject,
    ObjectKey, PodObject,
};

/// Nodes of a rack.
const NODES: u32 = 32;
/// Racks of a spine.
const RACKS: u32 = 16;
/// Pods that a node takes of the smallest class; the others ask for up to four times as much.
const SMALLEST: i64 = 8;

/// Racks of 32 equal nodes, spines of 16 racks, and gangs that may go as high as a spine.
#[derive(Clone, Copy, Debug)]
pub struct TopologyWorkload {
    /// Nodes.
    pub nodes: u32,
    /// Pods of a gang.
    pub size: u32,
}

impl TopologyWorkload {
    /// Gangs: about as many as fit.
    pub fn gangs(&self) -> u32 {
        (self.nodes * 3 / self.size.max(1)).max(1)
    }

    /// Everything: the queue, nodes, hypernodes, gangs.
    pub fn events(&self, emit: &mut impl FnMut(Event)) {
        emit(Event::Queue(default_queue(0)));
        for node in 0..self.nodes {
            emit(Event::Node(Self::node(node)));
        }
        let racks = self.nodes.div_ceil(NODES);
        for rack in 0..racks {
            let nodes = rack * NODES..((rack + 1) * NODES).min(self.nodes);
            emit(hyper_node(format!("rack-{rack}"), 1, nodes.map(|node| (false, node_name(node)))));
        }
        for spine in 0..racks.div_ceil(RACKS) {
            let below = spine * RACKS..((spine + 1) * RACKS).min(racks);
            let members = below.map(|rack| (true, format!("rack-{rack}")));
            emit(hyper_node(format!("spine-{spine}"), 2, members));
        }
        let classes: Vec<_> = (1..=4).map(|cpu| Arc::new(template(cpu * 1_000, GIB, 0))).collect();
        for gang in 0..self.gangs() {
            let key = ObjectKey::new(NAMESPACE, format!("gang-{gang}"));
            let mut group = waiting_group(key.clone(), uid(0, 9, u64::from(gang)), self.size);
            group.queue = "default".to_owned();
            group.created_ms = 2_000 + i64::from(gang);
            group.topology =
                Some(NetworkTopology { hard: true, highest_tier: Some(2), ..Default::default() });
            emit(Event::PodGroup(group));
            for number in 0..self.size {
                emit(Event::Pod(PodObject {
                    key: ObjectKey::new(NAMESPACE, format!("gang-{gang}-worker-{number}")),
                    uid: VolcanoWorkload::uid(gang, number),
                    created_ms: 2_000,
                    ours: true,
                    group: Some(key.name.clone()),
                    priority: 1,
                    preemptable: true,
                    spec: classes[gang as usize % classes.len()].clone(),
                    ..PodObject::default()
                }));
            }
        }
    }

    /// Takes back every gang.
    pub fn withdraw(&self, emit: &mut impl FnMut(Event)) {
        VolcanoWorkload { gangs: self.gangs(), size: self.size, nodes: self.nodes }.withdraw(emit);
    }

    /// A change of 0.1 % of the nodes, different for each `round`.
    pub fn change(&self, round: u32, emit: &mut impl FnMut(Event)) {
        for at in 0..self.nodes.div_ceil(1000) {
            let mut node = Self::node((at * 1000 + round) % self.nodes);
            if let Some(memory) = node.allocatable.get_mut(1) {
                memory.1 -= GIB;
            }
            emit(Event::Node(node));
        }
    }

    fn node(node: u32) -> NodeObject {
        NodeObject {
            name: node_name(node),
            allocatable: amounts(SMALLEST * 1_000, 64 * GIB, 0, 110),
            ..NodeObject::default()
        }
    }
}

fn hyper_node(name: String, tier: i32, members: impl Iterator<Item = (bool, String)>) -> Event {
    let member = |(is_hyper_node, name)| HyperNodeMember {
        is_hyper_node,
        selector: MemberSelector::Exact(name),
    };
    let members = members.map(member).collect();
    Event::HyperNode(HyperNodeObject { name, tier, members, ..HyperNodeObject::default() })
}
