//! The workloads are what they say, every time.

use super::*;

fn gathered(workload: &BenchWorkload) -> Vec<Event> {
    let mut events = Vec::new();
    workload.residents(&mut |event| events.push(event));
    workload.waiting(&mut |event| events.push(event));
    events
}

#[test]
fn equal_parameters_give_equal_events_and_another_seed_gives_others() {
    let text = |seed| format!("{:?}", gathered(&bench_workload(100, 1_000, 8, seed)));
    assert_eq!(text(1), text(1));
    assert_ne!(text(1), text(2));
}

#[test]
fn no_node_holds_more_than_it_offers() {
    let workload = bench_workload(200, 2_000, 4, 3);
    let mut held = std::collections::BTreeMap::new();
    let mut offered = std::collections::BTreeMap::new();
    workload.residents(&mut |event| match event {
        Event::Node(node) => {
            offered.insert(node.name.clone(), node.allocatable);
        }
        Event::Pod(pod) => {
            let sums: &mut Vec<Amounts> = held.entry(pod.node.unwrap()).or_default();
            sums.push(pod.spec.requests.clone());
        }
        _ => {}
    });
    assert_eq!(held.len(), 200);
    for (node, pods) in held {
        assert_eq!(pods.len(), 10, "{node}");
        for (name, limit) in &offered[&node] {
            let sum: i64 =
                pods.iter().flatten().filter(|(known, _)| known == name).map(|r| r.1).sum();
            assert!(sum <= *limit, "{node}: {name} {sum} of {limit}");
        }
    }
}

#[test]
fn a_change_replaces_a_thousandth_of_the_pods() {
    let workload = bench_workload(1_000, 10_000, 4, 3);
    let (mut gone, mut come) = (Vec::new(), Vec::new());
    workload.change(5, &mut |event| match event {
        Event::PodDeleted(uid) => gone.push(uid),
        Event::Pod(pod) => come.push(pod.uid),
        _ => {}
    });
    assert_eq!((gone.len(), come.len()), (10, 10));
    let mut known = Vec::new();
    workload.residents(&mut |event| {
        if let Event::Pod(pod) = event {
            known.push(pod.uid);
        }
    });
    assert!(gone.iter().all(|uid| known.contains(uid)));
    assert!(come.iter().all(|uid| !known.contains(uid)));
}

#[test]
fn the_hash_depends_on_the_order_of_binds() {
    let hash = |binds: &[(&str, &str)]| {
        let mut hash = DecisionHash::default();
        binds.iter().for_each(|(pod, node)| hash.bind(pod, node));
        hash.text()
    };
    assert_eq!(hash(&[("a", "n")]), hash(&[("a", "n")]));
    assert_ne!(hash(&[("a", "n"), ("b", "m")]), hash(&[("b", "m"), ("a", "n")]));
    assert_ne!(hash(&[("a", "bn")]), hash(&[("ab", "n")]));
}
