//! Host ports in use by node, counted so that taking a pod away undoes adding it exactly.

use rustc_hash::FxHashMap;

use crate::event::HostPort;

/// Address that stands for every address of a host; an absent one means the same.
const ANY_ADDRESS: &str = "0.0.0.0";
/// Protocol of a port that names none.
const DEFAULT_PROTOCOL: &str = "TCP";

/// Host ports by node slot.
#[derive(Clone, Debug, Default)]
pub struct Ports {
    taken: FxHashMap<u32, Vec<(HostPort, u32)>>,
    version: u64,
}

impl Ports {
    /// A pod with these ports is on the node.
    pub fn add(&mut self, slot: u32, ports: &[HostPort]) {
        if ports.is_empty() {
            return;
        }
        self.version += 1;
        let taken = self.taken.entry(slot).or_default();
        for port in ports {
            match taken.binary_search_by(|(known, _)| known.cmp(port)) {
                Ok(at) => taken[at].1 += 1,
                Err(at) => taken.insert(at, (port.clone(), 1)),
            }
        }
    }

    /// A pod that was added with these ports is gone from the node.
    pub fn remove(&mut self, slot: u32, ports: &[HostPort]) {
        if ports.is_empty() {
            return;
        }
        self.version += 1;
        let Some(taken) = self.taken.get_mut(&slot) else {
            return;
        };
        for port in ports {
            if let Ok(at) = taken.binary_search_by(|(known, _)| known.cmp(port)) {
                taken[at].1 -= 1;
                if taken[at].1 == 0 {
                    taken.remove(at);
                }
            }
        }
        if taken.is_empty() {
            self.taken.remove(&slot);
        }
    }

    /// Filter NodePorts (7.5): one of `wanted` has the protocol and number of a port in use, and their
    /// addresses are the same or one of them is `0.0.0.0`.
    pub fn conflicts(&self, slot: u32, wanted: &[HostPort]) -> bool {
        !wanted.is_empty()
            && self.taken.get(&slot).is_some_and(|taken| {
                wanted.iter().any(|port| taken.iter().any(|(used, _)| collide(port, used)))
            })
    }

    /// Moves whenever an answer may have changed.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Nodes with ports in use, in no particular order.
    pub fn nodes(&self) -> impl Iterator<Item = u32> + '_ {
        self.taken.keys().copied()
    }

    /// Ports in use on a node, sorted, with the number of pods that use each.
    pub fn on(&self, slot: u32) -> &[(HostPort, u32)] {
        self.taken.get(&slot).map_or(&[], Vec::as_slice)
    }
}

fn collide(a: &HostPort, b: &HostPort) -> bool {
    let (address_a, address_b) = (address(a), address(b));
    a.port != 0
        && a.port == b.port
        && protocol(a) == protocol(b)
        && (address_a == address_b || address_a == ANY_ADDRESS || address_b == ANY_ADDRESS)
}

fn address(port: &HostPort) -> &str {
    if port.ip.is_empty() { ANY_ADDRESS } else { &port.ip }
}

fn protocol(port: &HostPort) -> &str {
    if port.protocol.is_empty() { DEFAULT_PROTOCOL } else { &port.protocol }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(number: u16, protocol: &str, ip: &str) -> HostPort {
        HostPort { port: number, protocol: protocol.to_owned(), ip: ip.to_owned() }
    }

    fn with(taken: HostPort) -> Ports {
        let mut ports = Ports::default();
        ports.add(3, &[taken]);
        ports
    }

    #[test]
    fn ports_conflict_by_number_protocol_and_address() {
        let cases = [
            (port(80, "TCP", "0.0.0.0"), port(80, "TCP", "0.0.0.0"), true),
            (port(80, "TCP", "10.0.0.1"), port(80, "TCP", "10.0.0.1"), true),
            (port(80, "TCP", "10.0.0.1"), port(80, "TCP", "10.0.0.2"), false),
            (port(80, "TCP", "0.0.0.0"), port(80, "TCP", "10.0.0.2"), true),
            (port(80, "TCP", "10.0.0.2"), port(80, "TCP", "0.0.0.0"), true),
            (port(80, "TCP", ""), port(80, "TCP", "10.0.0.2"), true),
            (port(80, "", "0.0.0.0"), port(80, "TCP", "0.0.0.0"), true),
            (port(80, "TCP", "0.0.0.0"), port(80, "UDP", "0.0.0.0"), false),
            (port(80, "TCP", "0.0.0.0"), port(81, "TCP", "0.0.0.0"), false),
            (port(0, "TCP", "0.0.0.0"), port(0, "TCP", "0.0.0.0"), false),
        ];
        for (taken, wanted, expected) in cases {
            let ports = with(taken.clone());
            assert_eq!(
                ports.conflicts(3, std::slice::from_ref(&wanted)),
                expected,
                "{taken:?} {wanted:?}"
            );
        }
    }

    #[test]
    fn any_of_several_ports_is_enough() {
        let ports = with(port(80, "TCP", "0.0.0.0"));
        let wanted = [port(81, "TCP", "0.0.0.0"), port(80, "TCP", "0.0.0.0")];
        assert!(ports.conflicts(3, &wanted));
        assert!(!ports.conflicts(3, &wanted[..1]));
        assert!(!ports.conflicts(3, &[]));
    }

    #[test]
    fn other_nodes_do_not_matter() {
        let ports = with(port(80, "TCP", "0.0.0.0"));
        assert!(!ports.conflicts(4, &[port(80, "TCP", "0.0.0.0")]));
    }

    #[test]
    fn a_port_stays_taken_until_its_last_user_is_gone() {
        let taken = [port(80, "TCP", "0.0.0.0")];
        let mut ports = with(taken[0].clone());
        ports.add(3, &taken);
        ports.remove(3, &taken);
        assert!(ports.conflicts(3, &taken));
        ports.remove(3, &taken);
        assert!(!ports.conflicts(3, &taken));
        assert!(ports.on(3).is_empty());
        ports.remove(3, &taken);
        assert!(ports.on(3).is_empty());
    }
}
