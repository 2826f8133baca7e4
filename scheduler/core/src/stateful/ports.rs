//! NodePorts: two pods cannot take one port of a host.

use super::StatefulState;
use crate::event::{HostPort, PodSpec};

const EVERY_ADDRESS: &str = "0.0.0.0";

fn collide(a: &HostPort, b: &HostPort) -> bool {
    a.port == b.port
        && a.protocol == b.protocol
        && (a.ip == b.ip || a.ip == EVERY_ADDRESS || b.ip == EVERY_ADDRESS)
}

/// A pod on the node already has a port that the spec wants.
pub(super) fn conflict(state: &StatefulState, spec: &PodSpec, node: u32) -> bool {
    !spec.host_ports.is_empty()
        && state
            .pods
            .values()
            .filter(|pod| pod.node == node)
            .flat_map(|pod| &pod.spec.host_ports)
            .any(|taken| spec.host_ports.iter().any(|wanted| collide(taken, wanted)))
}
