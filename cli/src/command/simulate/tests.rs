//! The command end to end, on files in a temporary folder.

use std::path::Path;

use super::*;

const PASSING: &str = "name: good\nexpect: {bindCount: 0}\n";
const FAILING: &str = "name: bad\nexpect: {bindCount: 1}\n";
const MANIFESTS: &str = r#"
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: "1", memory: 4Gi, pods: "10"}}
---
kind: Pod
metadata: {name: fits}
spec: {containers: [{name: c, resources: {requests: {cpu: "1"}}}]}
---
kind: Pod
metadata: {name: waits}
spec: {containers: [{name: c, resources: {requests: {cpu: "2"}}}]}
---
kind: Deployment
metadata: {name: web}
"#;

fn args(paths: &[&Path]) -> SimulateArgs {
    SimulateArgs {
        paths: paths.iter().map(|path| path.to_path_buf()).collect(),
        conf: None,
        cycles: None,
        check: false,
        output: Output::Table,
        expected_failures: None,
        report: report::ReportArgs::default(),
    }
}

fn simulate_text(args: &SimulateArgs) -> (u8, String, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = simulate(args, &mut out, &mut err).expect("no internal error");
    (code, String::from_utf8(out).expect("text"), String::from_utf8(err).expect("text"))
}

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("folder");
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("parent")).expect("folder");
        std::fs::write(path, text).expect("file");
    }
    folder
}

#[test]
fn check_prints_failures_and_a_closing_line_and_exits_1() {
    let files =
        folder(&[("a.yaml", PASSING), ("deep/b.yml", FAILING), ("c.yaml", "name: nothing\n")]);
    let (code, out, _) = simulate_text(&SimulateArgs { check: true, ..args(&[files.path()]) });
    assert_eq!(code, 1);
    assert_eq!(out, "FAIL bad: bindCount: expected 1, got 0\n1 passed, 1 failed, 1 skipped\n");
}

#[test]
fn check_exits_0_when_all_pass() {
    let files = folder(&[("a.yaml", PASSING)]);
    let (code, out, _) = simulate_text(&SimulateArgs { check: true, ..args(&[files.path()]) });
    assert_eq!((code, out.as_str()), (0, "1 passed, 0 failed, 0 skipped\n"));
}

#[test]
fn expected_failures_are_listed_in_a_file() {
    let files = folder(&[("a.yaml", FAILING), ("list.txt", "bad later work\n")]);
    let list = Some(files.path().join("list.txt"));
    let check = SimulateArgs { check: true, expected_failures: list, ..args(&[files.path()]) };
    let (code, out, _) = simulate_text(&check);
    assert_eq!((code, out.as_str()), (0, "0 passed, 0 failed, 0 skipped (1 failed as expected)\n"));
}

#[test]
fn bad_input_exits_2_names_the_place_and_checks_the_rest() {
    let files = folder(&[("a.yaml", PASSING), ("b.yaml", "name: b\nexpct: {}\n")]);
    let (code, out, err) = simulate_text(&SimulateArgs { check: true, ..args(&[files.path()]) });
    assert_eq!(code, 2);
    assert_eq!(out, "1 passed, 0 failed, 0 skipped\n");
    assert!(err.contains("b.yaml:2: ") && err.contains("expct"), "{err}");
}

#[test]
fn a_missing_path_and_an_empty_folder_exit_2() {
    let files = folder(&[]);
    for path in [files.path().join("none.yaml"), files.path().to_owned()] {
        let (code, _, err) = simulate_text(&args(&[&path]));
        assert_eq!(code, 2);
        assert!(err.contains(&*path.to_string_lossy()), "{err}");
    }
}

#[test]
fn a_configuration_flag_that_is_wrong_exits_2() {
    let files = folder(&[("a.yaml", PASSING), ("c.conf", "actions: nothing\n")]);
    for conf in [files.path().join("c.conf"), files.path().join("none.conf")] {
        let conf = Some(conf.to_string_lossy().into_owned());
        let (code, _, err) = simulate_text(&SimulateArgs { conf, ..args(&[files.path()]) });
        assert_eq!(code, 2);
        assert!(err.starts_with("error: "), "{err}");
    }
}

#[test]
fn manifests_are_scheduled_and_the_table_says_why_a_pod_waits() {
    let files = folder(&[("all.yaml", MANIFESTS)]);
    let (code, out, _) = simulate_text(&args(&[files.path()]));
    assert_eq!(code, 0);
    let line = |pod: &str| out.lines().find(|line| line.contains(pod)).expect("row").to_owned();
    assert!(line("default/fits").contains("n1"), "{out}");
    let waits = line("default/waits");
    assert!(waits.contains("pending") && waits.contains("cpu"), "{out}");
    assert!(out.contains("kind Deployment"), "{out}");
}

#[test]
fn json_output_is_one_document() {
    let files = folder(&[("all.yaml", MANIFESTS)]);
    let (_, out, _) =
        simulate_text(&SimulateArgs { output: Output::Json, ..args(&[files.path()]) });
    let document: Value = serde_json::from_str(&out).expect("json");
    assert_eq!(document["scenarios"][0]["bind"], json!({"default/fits": "n1"}));
    let rows = document["scenarios"][0]["pods"].as_array().expect("rows");
    assert_eq!(rows.len(), 2);
}

#[test]
fn yaml_output_of_a_check_counts() {
    let files = folder(&[("a.yaml", PASSING), ("b.yaml", FAILING)]);
    let check = SimulateArgs { check: true, output: Output::Yaml, ..args(&[files.path()]) };
    let (code, out, _) = simulate_text(&check);
    assert_eq!(code, 1);
    let document: Value = serde_saphyr::from_str(&out).expect("yaml");
    assert_eq!((&document["passed"], &document["failed"]), (&json!(1), &json!(1)));
    assert_eq!(document["scenarios"][1]["verdict"], "failed");
}
