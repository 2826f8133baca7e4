//! Nodes come, change and go. A slot is given back when the node is gone and nobody is on it any more.

use std::sync::Arc;

use crate::event::NodeObject;
use crate::state::State;
use crate::state::nodes::{NodeId, NodeIdentity};

impl State {
    pub(super) fn set_node(&mut self, node: NodeObject) {
        for (name, _) in &node.allocatable {
            self.dims.intern(name);
        }
        self.nodes.ensure_dimensions(self.dims.len());
        let id = self.nodes.slot(&node.name);
        let before = self.nodes.identity[id as usize].clone();
        let changed = !before.known
            || before.unschedulable != node.unschedulable
            || *before.labels != node.labels
            || *before.taints != node.taints
            || *before.images != node.images;
        if before.is_open() {
            self.count_node(id, -1);
        }
        let mut amounts = vec![0; self.dims.len()];
        for (name, stored) in &node.allocatable {
            if let Some(dim) = self.dims.get(name) {
                amounts[dim as usize] = self.dims.to_core(dim, *stored);
            }
        }
        for (dim, amount) in amounts.into_iter().enumerate() {
            self.nodes.set_allocatable(id, dim as u16, amount);
        }
        if !node.unschedulable {
            self.count_node(id, 1);
        }
        if changed {
            self.nodes.identity[id as usize] = NodeIdentity {
                name: before.name.clone(),
                known: true,
                labels: Arc::new(node.labels),
                taints: Arc::new(node.taints),
                unschedulable: node.unschedulable,
                images: Arc::new(node.images),
            };
            self.classes.node_changed(id, &before.images, &mut self.nodes);
            if !before.known || before.labels != self.nodes.identity[id as usize].labels {
                self.hyper_nodes.node_changed(id, &self.nodes);
            }
            if self.stateful_fed {
                self.tell_stateful_node(id);
            }
        }
        self.nodes.touch(id);
        self.quota_epoch += 1;
        self.released();
    }

    /// Adds or removes an open node's amounts in the sums over the cluster.
    fn count_node(&mut self, id: NodeId, sign: i64) {
        for dim in 0..self.dims.len() as u16 {
            let used = self.nodes.used(id, dim);
            self.total.add(dim, i128::from(self.nodes.allocatable(id, dim) * sign));
            self.used.add(dim, i128::from(used * sign));
        }
    }

    pub(super) fn remove_node(&mut self, name: &str) {
        let Some(id) = self.nodes.get(name) else { return };
        let before = self.nodes.identity[id as usize].clone();
        if before.is_open() {
            self.count_node(id, -1);
        }
        self.nodes.identity[id as usize] =
            NodeIdentity { name: before.name.clone(), ..NodeIdentity::default() };
        for dim in 0..self.dims.len() as u16 {
            self.nodes.set_allocatable(id, dim, 0);
        }
        self.classes.node_changed(id, &before.images, &mut self.nodes);
        self.hyper_nodes.node_changed(id, &self.nodes);
        if self.stateful_fed {
            self.tell_stateful_node(id);
        }
        self.nodes.touch(id);
        self.quota_epoch += 1;
        self.nodes.release_if_empty(id);
        self.released();
    }
}
