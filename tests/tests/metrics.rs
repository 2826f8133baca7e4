//! Metrics as others know them: the families of the programs against Volcano's table, and everything that reads them
//! (dashboards, alerts, the document) against the families. Prometheus' own parser judges expressions and rules; where
//! there is no Go to build it with, that part says `SKIPPED`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tephra_telemetry::metric::{Buckets, Kind, Server, families, volcano};
use tephra_tests::promcheck::Promcheck;
use tephra_tests::volcano_metrics::{Program, TABLE};

/// Labels that Prometheus adds to what it reads from a pod.
const OF_TARGETS: [&str; 4] = ["job", "instance", "namespace", "pod"];

fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

fn files(folder: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(project(folder)).expect("the folder");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{folder} is empty");
    files
}

fn promcheck(name: &str) -> Option<Promcheck> {
    let found = Promcheck::find().expect("promcheck is built");
    if found.is_none() {
        // Not `println!`: the test runner would swallow what a passing test says.
        let line = format!("\nSKIPPED metrics/{name}: no Go to build Prometheus' parser with\n");
        std::io::stderr().write_all(line.as_bytes()).expect("standard error");
    }
    found
}

/// Names that a query may use, with their labels.
fn exported() -> BTreeMap<String, BTreeSet<&'static str>> {
    let mut names = BTreeMap::new();
    for family in families() {
        let labels: BTreeSet<&str> = family.labels.iter().copied().collect();
        if family.kind != Kind::Histogram {
            names.insert(family.name.to_owned(), labels);
            continue;
        }
        for suffix in ["_sum", "_count"] {
            names.insert(format!("{}{suffix}", family.name), labels.clone());
        }
        let buckets = labels.into_iter().chain(["le"]).collect();
        names.insert(format!("{}_bucket", family.name), buckets);
    }
    names
}

/// Every string under a key, however deep.
fn strings(value: &Value, key: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(text) if name == key => found.push(text.clone()),
                    _ => strings(value, key, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| strings(item, key, found)),
        _ => {}
    }
}

/// Expressions of a dashboard, with Grafana's own interval filled in.
fn expressions(dashboard: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(dashboard).expect("the dashboard");
    let json: Value = serde_json::from_str(&text).expect("JSON");
    let mut found = Vec::new();
    strings(&json, "expr", &mut found);
    found.iter().map(|expr| expr.replace("$__rate_interval", "5m")).collect()
}

fn assert_reads_what_is_exported(promcheck: &Promcheck, of: &str, expressions: &[String]) {
    let exported = exported();
    let selections = promcheck.queries(expressions).expect("valid expressions");
    for (expression, selections) in expressions.iter().zip(selections) {
        assert!(!selections.is_empty(), "{of}: {expression} reads nothing");
        for selection in selections {
            let labels = exported.get(&selection.metric);
            let labels =
                labels.unwrap_or_else(|| panic!("{of}: nobody serves {}", selection.metric));
            let unknown: Vec<&String> = selection
                .labels
                .iter()
                .filter(|label| !labels.contains(&***label) && !OF_TARGETS.contains(&&***label))
                .collect();
            assert!(unknown.is_empty(), "{of}: {} has no labels {unknown:?}", selection.metric);
        }
    }
}

#[test]
fn every_family_of_volcano_is_there_with_its_type_labels_and_buckets_and_no_other_of_that_name() {
    let ours: BTreeMap<&str, _> = volcano::FAMILIES
        .iter()
        .map(|family| {
            let program = match family.server {
                Server::Scheduler => Program::Scheduler,
                Server::Controller => Program::Controller,
            };
            let labels = family.labels.join(" ");
            let bounds = family.buckets.map(|it| (it.min, it.max, it.count as usize));
            (family.name, (program, family.kind.word(), labels, bounds))
        })
        .collect();
    let names: Vec<String> = TABLE.iter().map(|row| format!("volcano_{}", row.1)).collect();
    let theirs: BTreeMap<&str, _> = TABLE
        .iter()
        .zip(&names)
        .map(|(&(program, _, kind, labels, buckets), name)| {
            (name.as_str(), (program, kind, labels.to_owned(), buckets))
        })
        .collect();
    assert_eq!(ours, theirs);
}

#[test]
fn the_bounds_of_a_histogram_are_volcanos() {
    // 1·5000^(i/19): the first, the eleventh and the last.
    let bounds = Buckets { min: 1.0, max: 5_000.0, count: 20 }.bounds();
    let rounded = |at: usize| (bounds[at] * 1000.0).round() / 1000.0;
    assert_eq!((bounds.len(), rounded(0), rounded(10), rounded(19)), (20, 1.0, 88.476, 5000.0));
}

#[test]
fn dashboards_read_only_what_is_exported() {
    let Some(promcheck) = promcheck("dashboards") else { return };
    for file in files("deploy/dashboards") {
        let of = file.file_name().expect("a name").to_string_lossy().into_owned();
        assert_reads_what_is_exported(&promcheck, &of, &expressions(&file));
    }
}

#[test]
fn alerts_are_valid_read_only_what_is_exported_and_say_what_to_do() {
    let Some(promcheck) = promcheck("alerts") else { return };
    for file in files("deploy/alerts") {
        let alerts = promcheck.rules(&file).expect("valid rules");
        let expressions: Vec<String> = alerts.iter().map(|alert| alert.expr.clone()).collect();
        assert_reads_what_is_exported(&promcheck, "alerts", &expressions);
        for alert in alerts {
            let severity = alert.labels.get("severity").map(String::as_str);
            assert!(matches!(severity, Some("critical" | "warning")), "{}", alert.name);
            for text in ["summary", "description"] {
                let said = alert.annotations.get(text).is_some_and(|text| !text.is_empty());
                assert!(said, "{} has no {text}", alert.name);
            }
        }
    }
}

/// Also without Go: a name that nobody serves anywhere in what is shipped.
#[test]
fn what_is_shipped_and_the_document_name_only_what_is_exported_and_the_document_names_all() {
    let exported = exported();
    let of_families: BTreeSet<&str> = families().map(|family| family.name).collect();
    let document = std::fs::read_to_string(project("docs/metrics.md")).expect("the document");
    let mut texts = vec![("docs/metrics.md".to_owned(), document.clone())];
    for file in files("deploy/dashboards").into_iter().chain(files("deploy/alerts")) {
        let text = std::fs::read_to_string(&file).expect("a text");
        texts.push((file.display().to_string(), text));
    }
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    for (of, text) in texts {
        let words = text.split(|letter| !is_part(letter));
        let is_name = |word: &&str| {
            (word.starts_with("volcano_") || word.starts_with("tephra_")) && !word.ends_with('_')
        };
        for word in words.filter(is_name) {
            assert!(exported.contains_key(word) || of_families.contains(word), "{of}: {word}");
        }
    }
    for family in families() {
        let labels: Vec<String> = family.labels.iter().map(|label| format!("`{label}`")).collect();
        let (name, kind, help) = (family.name, family.kind.word(), family.help);
        let row = format!("| `{name}` | {kind} | {} | {help} |", labels.join(", "));
        assert!(document.contains(&row), "docs/metrics.md lacks: {row}");
    }
}
