//! The bench ends with the same decisions however often it runs, and refuses what it cannot build.

use clap::Parser;
use serde_json::Value;

use super::*;

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    args: BenchArgs,
}

fn args(words: &str) -> BenchArgs {
    Command::parse_from(std::iter::once("bench").chain(words.split_whitespace())).args
}

#[test]
fn json_has_exactly_the_promised_keys_in_order() {
    let figures = measure(&args("--nodes 50 --gang 2")).unwrap();
    let mut out = Vec::new();
    print(&figures, Format::Json, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    let keys = [
        "scenario",
        "nodes",
        "pods",
        "gang",
        "bound",
        "refused",
        "evicted",
        "seconds",
        "pods_per_s",
        "open_ms",
        "session_ms",
        "gang_ms",
        "rss_mib",
        "decision_hash",
    ];
    let places: Vec<Option<usize>> =
        keys.iter().map(|key| text.find(&format!("\"{key}\":"))).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{text}");
    let Value::Object(map) = serde_json::from_str(&text).unwrap() else { panic!("{text}") };
    assert_eq!(map.len(), keys.len());
    assert_eq!(map["scenario"], "core");
    assert_eq!(map["pods"], 500);
}

#[test]
fn equal_arguments_give_equal_decisions_and_the_reference_agrees() {
    let args = args("--nodes 60 --pods 300 --gang 3");
    let first = measure(&args).unwrap();
    assert!(first.bound > 0 && first.refused > 0, "{first:?}");
    assert_eq!(first.decision_hash, measure(&args).unwrap().decision_hash);
    assert_eq!(first.decision_hash, reference_hash(&args).unwrap());
}

#[test]
fn volcanos_workload_is_bound_whole() {
    let figures = measure(&args("--nodes 10 --scenario volcano-10x100")).unwrap();
    assert_eq!((figures.bound, figures.refused, figures.gang, figures.pods), (1_000, 0, 100, 0));
}

#[test]
fn a_scenario_that_does_not_exist_is_refused_with_the_names_that_do() {
    let error = Command::try_parse_from(["bench", "--scenario", "volcano-0x1"]).err().unwrap();
    assert!(error.to_string().contains("volcano-10x100"), "{error}");
    assert!(Command::try_parse_from(["bench", "--nodes", "0"]).is_err());
}
