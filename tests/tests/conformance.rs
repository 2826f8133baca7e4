//! The conformance tier: every scenario of every corpus comes out as expected.

use tephra_tests::conformance;

/// Corpora that live outside the checkout and may be absent from a clone.
const SHARED: [&str; 2] = ["scenarios", "conformance"];

fn assert_none(failures: Vec<String>, closing: &str) {
    assert!(failures.is_empty(), "{closing}\n{}", failures.join("\n"));
}

#[test]
fn own_scenarios_all_pass() {
    let list = Default::default();
    let summary = conformance::run_folder(&conformance::own_folder(), &list).expect("readable");
    println!("tests/scenarios: {}", summary.closing());
    assert_none(conformance::failures(&summary), &summary.closing());
    let judged = tephra::scenario::corpus::Count::Skipped;
    assert_eq!(summary.count(judged), 0, "an own scenario that expects nothing is a mistake");
    assert!(summary.entries.len() >= 60, "only {} own scenarios", summary.entries.len());
}

#[test]
fn shared_scenarios_are_as_listed() {
    let list = conformance::not_yet().expect("the list is readable");
    let mut summaries = Vec::new();
    let mut failures = Vec::new();
    for name in SHARED {
        let Some(folder) = conformance::shared_folder(name) else {
            println!("SKIPPED: ../shared/{name} is not there; its scenarios were not run");
            continue;
        };
        let summary = conformance::run_folder(&folder, &list).expect("readable");
        println!("../shared/{name}: {}", summary.closing());
        failures.extend(conformance::failures(&summary));
        summaries.push(summary);
    }
    if summaries.len() == SHARED.len() {
        let summaries: Vec<_> = summaries.iter().collect();
        let strangers = conformance::strangers(&list, &summaries);
        assert!(strangers.is_empty(), "not-yet.txt lists unknown scenarios: {strangers:?}");
    }
    let closing: Vec<String> = summaries.iter().map(|summary| summary.closing()).collect();
    assert_none(failures, &closing.join("; "));
}
