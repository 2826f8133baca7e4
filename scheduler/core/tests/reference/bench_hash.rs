//! The bench's workload, decided by the core and by the reference: equal decision hashes.

use tephra_api::conf::SchedulerConf;
use tephra_core::decision::Decision;
use tephra_core::event::Event;
use tephra_core::{Core, Options};

use crate::model::Model;
use tephra_core::workload::{DecisionHash, bench_workload, volcano_workload};

/// Plays events to both until nothing more is bound; gives both hashes and the pods bound.
fn hashes(events: impl Fn(&mut dyn FnMut(Event))) -> (String, String, usize) {
    let conf = SchedulerConf::volcano();
    let mut core = Core::new(Options::default(), &conf);
    let mut model = Model::new(&conf);
    events(&mut |event| {
        core.apply(event.clone());
        model.apply(event);
    });
    let (mut by_core, mut by_model, mut bound) =
        (DecisionHash::default(), DecisionHash::default(), 0);
    loop {
        let report = core.session(1_000);
        for decision in &report.decisions {
            if let Decision::Bind(gang) = decision {
                for (pod, node) in &gang.binds {
                    by_core.bind(&pod.uid, node);
                    bound += 1;
                }
            }
        }
        for (_, binds) in model.session(1_000).binds {
            binds.iter().for_each(|(pod, node)| by_model.bind(pod, node));
        }
        if report.bound == 0 {
            return (by_core.text(), by_model.text(), bound);
        }
    }
}

#[test]
fn the_bench_at_500_nodes_is_decided_as_the_reference_decides_it() {
    let workload = bench_workload(500, 5_000, 2, 1);
    let (core, model, bound) = hashes(|emit| {
        let mut emit = |event| emit(event);
        workload.residents(&mut emit);
        workload.waiting(&mut emit);
    });
    assert!(bound > 500, "only {bound} pods were bound");
    assert_eq!(core, model);
}

#[test]
fn volcanos_workload_is_decided_as_the_reference_decides_it() {
    let workload = volcano_workload(10, 100, 20);
    let (core, model, bound) = hashes(|emit| workload.events(&mut |event| emit(event)));
    assert_eq!(bound, 1_000);
    assert_eq!(core, model);
}
