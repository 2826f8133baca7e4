//! A plain search: can so many of these pods be put on these nodes at one time?

use super::admits::admits;
use super::amounts::Amounts;
use super::objects::{Node, Pod};

/// A node with what is left of it.
#[derive(Clone, Debug)]
pub(super) struct Space<'a> {
    pub(super) node: &'a Node,
    pub(super) free: Amounts,
}

/// What the search found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// They fit.
    Yes,
    /// They do not fit, in any way.
    No,
    /// Too many ways to try them all.
    Unknown,
}

/// Steps after which the search gives up.
const PATIENCE: u32 = 20_000;

/// Pods that are alike.
struct Kind<'a> {
    pod: &'a Pod,
    left: usize,
    /// For each space, whether the node lets the pod in.
    admitted: Vec<bool>,
}

/// Whether `need` of `pods` fit into `spaces` together.
pub(super) fn fits(pods: &[&Pod], need: usize, spaces: &[Space<'_>]) -> Found {
    if need > pods.len() {
        return Found::No;
    }
    let mut kinds: Vec<Kind<'_>> = Vec::new();
    for &pod in pods {
        let alike = kinds.iter_mut().find(|kind| {
            kind.pod.request == pod.request
                && kind.pod.selector == pod.selector
                && kind.pod.tolerations == pod.tolerations
        });
        match alike {
            Some(kind) => kind.left += 1,
            None => kinds.push(Kind {
                pod,
                left: 1,
                admitted: spaces.iter().map(|space| admits(space.node, pod).is_ok()).collect(),
            }),
        }
    }
    // Small pods first: when only some are needed, they are the easy ones.
    kinds.sort_by_key(|kind| kind.pod.request.0.values().sum::<i128>());
    let mut free: Vec<Amounts> = spaces.iter().map(|space| space.free.clone()).collect();
    let mut steps = PATIENCE;
    match place(&mut kinds, 0, 0, need, &mut free, &mut steps) {
        true => Found::Yes,
        false if steps == 0 => Found::Unknown,
        false => Found::No,
    }
}

/// Fills space `at` with pods of kind `kind`, as many as fit first, then fewer; afterwards goes on with the next.
fn place(
    kinds: &mut [Kind<'_>],
    kind: usize,
    at: usize,
    need: usize,
    free: &mut [Amounts],
    steps: &mut u32,
) -> bool {
    if need == 0 {
        return true;
    }
    if kind == kinds.len() || *steps == 0 {
        return false;
    }
    if at == free.len() {
        return place(kinds, kind + 1, 0, need, free, steps);
    }
    *steps -= 1;
    let here = &kinds[kind];
    let request = here.pod.request.clone();
    let most = if here.admitted[at] { copies(&request, &free[at], here.left.min(need)) } else { 0 };
    for count in (0..=most).rev() {
        let taken = i128::try_from(count).unwrap_or(0);
        free[at].add(&request, -taken);
        kinds[kind].left -= count;
        let done = place(kinds, kind, at + 1, need - count, free, steps);
        kinds[kind].left += count;
        free[at].add(&request, taken);
        if done || *steps == 0 {
            return done;
        }
    }
    false
}

fn copies(request: &Amounts, free: &Amounts, wanted: usize) -> usize {
    // Cpu and memory are compared even where a pod asks for none (B49): a node that shrank below what is on it takes nobody.
    if ["cpu", "memory"].iter().any(|name| free.get(name) < 0) {
        return 0;
    }
    let mut most = wanted;
    for (name, amount) in request.0.iter().filter(|(_, amount)| **amount > 0) {
        let fit = free.get(name).max(0) / amount;
        most = most.min(usize::try_from(fit).unwrap_or(usize::MAX));
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(cpu: i128) -> Pod {
        Pod { request: amounts(cpu), ..Pod::default() }
    }

    fn amounts(cpu: i128) -> Amounts {
        Amounts([("cpu".to_owned(), cpu)].into())
    }

    #[test]
    fn a_packing_that_a_greedy_hand_misses_is_found() {
        let node = Node::default();
        let spaces = [10, 8].map(|cpu| Space { node: &node, free: amounts(cpu) });
        let pods = [pod(4), pod(4), pod(5), pod(5)];
        let pods: Vec<&Pod> = pods.iter().collect();
        assert_eq!(fits(&pods, 4, &spaces), Found::Yes);
        let less = [9, 9].map(|cpu| Space { node: &node, free: amounts(cpu) });
        assert_eq!(fits(&pods, 4, &less), Found::Yes);
        let least = [9, 8].map(|cpu| Space { node: &node, free: amounts(cpu) });
        assert_eq!(fits(&pods, 4, &least), Found::No);
        assert_eq!(fits(&pods, 3, &least), Found::Yes);
    }

    #[test]
    fn a_node_that_owes_cpu_has_no_room_even_for_pods_that_ask_for_none() {
        let node = Node::default();
        let owing = Amounts([("cpu".to_owned(), -1), ("gpu".to_owned(), 4)].into());
        let spaces = [Space { node: &node, free: owing }];
        let wants_gpu = Amounts([("gpu".to_owned(), 1)].into());
        let pod = Pod { request: wants_gpu, ..Pod::default() };
        assert_eq!(fits(&[&pod], 1, &spaces), Found::No);
    }

    #[test]
    fn a_node_that_does_not_admit_a_pod_is_no_room() {
        let node = Node { unschedulable: true, ..Node::default() };
        let spaces = [Space { node: &node, free: amounts(10) }];
        assert_eq!(fits(&[&pod(1)], 1, &spaces), Found::No);
        let tolerant = Pod { tolerations: json!([{"operator": "Exists"}]), ..pod(1) };
        assert_eq!(fits(&[&tolerant], 1, &spaces), Found::Yes);
    }
}
