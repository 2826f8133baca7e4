//! Single functions against calls recorded from the real Volcano.

use std::collections::{BTreeMap, BTreeSet};

use tephra_tests::functions;

#[test]
fn every_recorded_call_is_answered_as_volcano_did_or_its_function_is_listed() {
    let list = functions::without_counterpart().expect("the list is readable");
    let Some(calls) = functions::recorded().expect("readable recordings") else {
        println!("SKIPPED: ../shared/conformance/functions is not there; no call was compared");
        return;
    };
    let counterparts = functions::counterparts();
    let (mut wrong, mut answered) = (Vec::new(), BTreeMap::<&str, u32>::new());
    let (mut unknown, mut used) = (BTreeSet::new(), BTreeSet::new());
    for functions::Recorded { place, call } in &calls {
        let listed = functions::entry_for(&list, &call.function);
        used.extend(listed);
        let Some((name, counterpart)) = counterparts.get_key_value(call.function.as_str()) else {
            if listed.is_none() {
                unknown.insert(&call.function);
            }
            continue;
        };
        assert!(listed.is_none(), "{name} is listed although it has a counterpart");
        *answered.entry(name).or_default() += 1;
        if let Some(difference) = functions::difference(call, &counterpart(call)) {
            wrong.push(format!("{name} ({place}): {difference}"));
        }
    }
    let count: u32 = answered.values().sum();
    println!("{count} of {} calls, {} functions", calls.len(), answered.len());
    assert!(wrong.is_empty(), "{} differ\n{}", wrong.len(), wrong.join("\n"));
    assert!(unknown.is_empty(), "neither answered nor listed: {unknown:?}");
    let unused: Vec<&str> = list.names().filter(|name| !used.contains(name)).collect();
    assert!(unused.is_empty(), "listed, but never called: {unused:?}");
    let silent: Vec<_> = counterparts.keys().filter(|name| !answered.contains_key(*name)).collect();
    assert!(silent.is_empty(), "counterparts that no recording calls: {silent:?}");
}
