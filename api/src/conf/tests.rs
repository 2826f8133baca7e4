//! Configuration files as users write them, good and bad.

use super::*;

const KNOWN: &[&str] = &["enqueue", "allocate", "backfill"];

fn parse(text: &str) -> Result<SchedulerConf, ConfError> {
    SchedulerConf::parse(text, KNOWN)
}

#[test]
fn the_shipped_file_reads_as_the_named_configuration() {
    let text = r#"
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: binpack
"#;
    assert_eq!(parse(text), Ok(SchedulerConf::volcano()));
}

#[test]
fn wfq_and_a_tree_of_drf_are_refused_together_in_whatever_tiers() {
    let text = |drf: &str| {
        format!(
            "actions: allocate\ntiers: [{{plugins: [{{name: wfq}}]}}, {{plugins: [{{name: drf{drf}}}]}}]"
        )
    };
    assert_eq!(parse(&text(", enableHierarchy: true")), Err(ConfError::TurnsConflict));
    assert!(parse(&text("")).is_ok());
}

#[test]
fn our_own_configuration_orders_by_turns_first_and_has_no_ceiling_of_shares() {
    let conf = SchedulerConf::tephra();
    assert_eq!(conf.actions, ["enqueue", "allocate", "preempt", "reclaim", "backfill"]);
    let names: Vec<Vec<&str>> = conf
        .tiers
        .iter()
        .map(|tier| tier.plugins.iter().map(|p| p.name.as_str()).collect())
        .collect();
    assert_eq!(names[0], ["wfq", "priority", "gang", "conformance", "reservation", "suspend"]);
    assert_eq!(names[1], ["overcommit", "drf", "predicates", "capacity", "nodeorder", "binpack"]);
    let capacity = &conf.tiers[1].plugins[3];
    assert!(capacity.enabled(Flag::Hierarchy));
    assert_eq!(capacity.arguments.get("deservedByWeight"), Some(&serde_json::Value::Bool(true)));
    assert!(!conf.tiers[0].plugins[2].enabled(Flag::Reclaimable));
}

#[test]
fn switches_default_to_on_except_two_and_keep_their_odd_spellings() {
    let conf = parse("actions: allocate\ntiers: [{plugins: [{name: a, enabledVictim: off, enabledOverused: no, EnabledClusterOrder: yes, enableHierarchy: true}, {name: b}]}]").unwrap();
    let [a, b] = &conf.tiers[0].plugins[..] else { panic!("two plugins") };
    assert!(!a.enabled(Flag::Victim) && !a.enabled(Flag::Overused));
    assert!(
        a.enabled(Flag::ClusterOrder) && a.enabled(Flag::Hierarchy) && a.enabled(Flag::JobOrder)
    );
    assert!(
        b.enabled(Flag::Victim) && !b.enabled(Flag::ClusterOrder) && !b.enabled(Flag::Hierarchy)
    );
}

#[test]
fn recorded_configurations_turn_unwritten_switches_off() {
    let value = serde_json::json!({"actions": "allocate", "unsetFlags": "disabled", "tiers": [{"plugins": [{"name": "gang", "enableJobReady": true}]}]});
    let conf = SchedulerConf::from_value(value, KNOWN).unwrap();
    let gang = &conf.tiers[0].plugins[0];
    assert!(gang.enabled(Flag::JobReady) && !gang.enabled(Flag::JobOrder));
}

#[test]
fn a_misspelt_or_missing_action_is_refused_by_name() {
    let error = parse("actions: \"enqueue, allocat\"").unwrap_err().to_string();
    assert!(error.starts_with("failed to find Action allocat;"), "{error}");
    for text in ["", "tiers: []", "actions: ''", "actions:"] {
        assert_eq!(parse(text), Err(ConfError::NoActions), "{text:?}");
    }
}

#[test]
fn text_that_is_no_yaml_names_the_line() {
    let error = parse("actions: allocate\ntiers: [\n  {plugins: [}\n").unwrap_err().to_string();
    assert!(error.contains("line 3"), "{error}");
}

#[test]
fn parts_of_the_wrong_type_are_named() {
    let cases = [
        ("- allocate", "the configuration must be a mapping"),
        ("actions: [allocate]", "actions must be a comma-separated text"),
        ("actions: allocate\ntiers: 3", "tiers must be a list"),
        (
            "actions: allocate\ntiers: [{plugins: [{name: gang, enableJobOrder: 3}]}]",
            "tiers[0].plugins[0].enableJobOrder must be true or false",
        ),
        (
            "actions: allocate\ntiers: [{plugins: [{name: gang, arguments: x}]}]",
            "tiers[0].plugins[0].arguments must be a mapping",
        ),
    ];
    for (text, message) in cases {
        assert_eq!(parse(text).unwrap_err().to_string(), message);
    }
}

#[test]
fn hierarchical_drf_and_proportion_conflict_in_one_tier_and_warn_across_tiers() {
    let one = "actions: allocate\ntiers: [{plugins: [{name: drf, enableHierarchy: true}, {name: proportion}]}]";
    assert_eq!(parse(one), Err(ConfError::HierarchyConflict));
    let two = "actions: allocate\ntiers: [{plugins: [{name: drf, enableHierarchy: true}]}, {plugins: [{name: proportion}]}]";
    assert_eq!(parse(two).unwrap().warnings().len(), 1);
}

#[test]
fn arguments_of_the_wrong_type_are_reported_and_ignored() {
    let arguments = Arguments::new([
        ("n".to_owned(), serde_json::json!("7")),
        ("f".to_owned(), serde_json::json!(2)),
        ("b".to_owned(), serde_json::json!("T")),
    ]);
    let mut warnings = Vec::new();
    assert_eq!(arguments.int("n", &mut warnings), None);
    assert_eq!(arguments.float("f", &mut warnings), Some(2.0));
    assert_eq!(arguments.bool("b", &mut warnings), Some(true));
    assert_eq!(arguments.int("absent", &mut warnings), None);
    assert_eq!(warnings, ["argument n must be a whole number, not \"7\": ignored"]);
}

#[test]
fn yaml_is_read_as_volcanos_library_reads_it() {
    let text = "actions: enqueue\nactions: allocate\ntiers:\n- plugins:\n  - name: nodeorder\n    \
                arguments: {a: 010, b: 1_000, c: yes, d: off, e: 1.5, f: '1'}\n---\nactions: backfill\n";
    let conf = parse(text).unwrap();
    assert_eq!(conf.actions, ["allocate"]);
    let arguments = &conf.tiers[0].plugins[0].arguments;
    let mut warnings = Vec::new();
    assert_eq!(arguments.int("a", &mut warnings), Some(8));
    assert_eq!(arguments.int("b", &mut warnings), Some(1000));
    assert_eq!(arguments.bool("c", &mut warnings), Some(true));
    assert_eq!(arguments.bool("d", &mut warnings), Some(false));
    assert_eq!(arguments.bool("f", &mut warnings), Some(true));
    assert!(warnings.is_empty(), "{warnings:?}");
    assert_eq!(arguments.int("e", &mut warnings), None);
    assert_eq!(arguments.int("f", &mut warnings), None);
    assert_eq!(warnings.len(), 2);
}

#[test]
fn a_name_that_yaml_takes_for_a_number_is_still_a_name() {
    let conf = parse("actions: allocate\ntiers: [{plugins: [{name: 5}]}]").unwrap();
    assert_eq!(conf.tiers[0].plugins[0].name, "5");
    assert!(matches!(parse("actions: 7"), Err(ConfError::UnknownAction { .. })));
}
