//! The Helm chart as the real helm renders it: its configurations are the named ones, its command lines are understood by
//! the programs, its pods are locked down, and values that mean nothing are refused.

use std::io::Write as _;

use kube::api::DynamicObject;
use serde_json::{Value, json};
use tephra_api::conf::SchedulerConf;
use tephra_tests::rig::assets::{self, Found};
use tephra_tests::rig::chart::{self, Release, kind};
use tephra_tests::rig::identity::RELEASE;
use tephra_tests::rig::rights;

/// The chart, unless there is no helm, which is said aloud.
fn release(test: &str) -> Option<Release> {
    let missing = match assets::find().expect("the rig's programs") {
        Found::Ready(assets) if assets.has("helm") => {
            return Some(Release::new(&assets, RELEASE).expect("helm"));
        }
        Found::Ready(_) => "KUBEBUILDER_ASSETS has no helm".to_owned(),
        Found::Missing(reason) => reason,
    };
    // Not `println!`: the test runner would swallow what a passing test says.
    let line = format!("\nSKIPPED chart/{test}: {missing}\n");
    std::io::stderr().write_all(line.as_bytes()).expect("standard error");
    None
}

fn find<'a>(objects: &'a [DynamicObject], of: &str, name: &str) -> &'a Value {
    let found = objects
        .iter()
        .find(|object| kind(object) == of && object.metadata.name.as_deref() == Some(name));
    &found.unwrap_or_else(|| panic!("no {of} {name}")).data
}

fn pod(objects: &[DynamicObject], component: &str) -> Value {
    find(objects, "Deployment", component)["spec"]["template"]["spec"].clone()
}

/// Command line of a component, with its program's name.
fn command_line(objects: &[DynamicObject], component: &str) -> Vec<String> {
    let args = pod(objects, component)["containers"][0]["args"].clone();
    let args: Vec<String> = serde_json::from_value(args).expect("arguments");
    [vec![component.to_owned()], args].concat()
}

#[test]
fn its_configurations_are_the_named_ones() {
    for (file, named) in [
        ("tephra-scheduler.conf", SchedulerConf::tephra()),
        ("volcano-scheduler.conf", SchedulerConf::volcano()),
    ] {
        let path = chart::folder().join("config").join(file);
        let text = std::fs::read_to_string(path).expect("a configuration");
        let read = SchedulerConf::parse(&text, tephra_core::registry::action_names());
        assert_eq!(read.expect("a good configuration"), named, "{file}");
    }
}

#[test]
fn it_passes_helms_lint() {
    let Some(release) = release("lint") else { return };
    release.lint().expect("nothing to complain about");
}

#[test]
fn the_programs_understand_their_command_lines_and_lead_by_leases_that_they_have_rights_for() {
    let Some(release) = release("command-lines") else { return };
    let objects = release.render().expect("rendered");
    let line = command_line(&objects, "tephra-scheduler");
    let scheduler = tephra_scheduler::flags::Flags::parse_from_go(line).expect("flags");
    assert_eq!(scheduler.without_effect, [""; 0]);
    assert_eq!(scheduler.scheduler_conf, "/etc/tephra/tephra-scheduler.conf");
    let line = command_line(&objects, "tephra-controllers");
    let controllers = tephra_controller::Flags::parse_go(line).expect("flags");
    assert_eq!(controllers.without_effect(), [""; 0]);
    let leases = [scheduler.election.lease(), controllers.options().map(|options| options.lease)];
    for (component, lease) in ["tephra-scheduler", "tephra-controllers"].iter().zip(leases) {
        let lease = lease.expect("good flags").expect("a lease");
        assert_eq!(lease.namespace, "volcano-system");
        let role = find(&objects, "Role", component);
        assert_eq!(role["rules"][1]["resourceNames"], json!([lease.name]));
    }
    let text = &find(&objects, "ConfigMap", "tephra-scheduler-configmap")["data"];
    let text = text["tephra-scheduler.conf"].as_str().expect("the mounted file");
    let conf = SchedulerConf::parse(text, tephra_core::registry::action_names());
    assert_eq!(conf.expect("a good configuration"), SchedulerConf::tephra());
}

#[test]
fn its_pods_have_no_root_no_capabilities_and_nothing_to_write_to() {
    let Some(release) = release("pods") else { return };
    let objects = release.render().expect("rendered");
    for component in ["tephra-scheduler", "tephra-controllers"] {
        let pod = pod(&objects, component);
        assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
        assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
        assert_eq!(
            pod["containers"][0]["securityContext"],
            json!({"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
                "capabilities": {"drop": ["ALL"]}})
        );
        let volumes = pod["volumes"].as_array();
        assert!(volumes.into_iter().flatten().all(|volume| volume["configMap"].is_object()));
        for it in ["PodDisruptionBudget", "NetworkPolicy", "ServiceAccount"] {
            find(&objects, it, component);
        }
    }
}

#[test]
fn rights_of_controllers_that_are_off_are_not_granted() {
    let Some(release) = release("controllers") else { return };
    let granted = |list: Option<&str>| {
        let set = list.map(|list| {
            format!("custom.controller_enabled_controllers={}", list.replace(',', "\\,"))
        });
        let set = set.iter().flat_map(|set| ["--set", set.as_str()]);
        let objects = release.clone().with(set).render().expect("rendered");
        let all = rights::granted(&objects).expect("rights")["tephra-controllers"].clone();
        all.into_iter().map(|right| right.to_string()).collect::<Vec<_>>()
    };
    let (queues, jobs) = ("patch queues/status.scheduling.volcano.sh", "patch jobs.batch");
    let sets = "watch replicasets.apps";
    for (list, expected) in [
        (None, [true, true, true]),
        (Some("*,-sharding-controller"), [true, true, true]),
        (Some("*,-pg-controller,-queue-controller"), [false, true, false]),
        (Some("+pg-controller, suspension-controller"), [false, true, true]),
        (Some("queue-controller"), [true, false, false]),
    ] {
        let granted = granted(list);
        let has = [queues, jobs, sets].map(|right| granted.iter().any(|it| it == right));
        assert_eq!(has, expected, "{list:?}: {granted:?}");
    }
}

#[test]
fn no_right_is_a_wildcard_and_none_reaches_secrets() {
    let Some(release) = release("wildcards") else { return };
    for (account, all) in rights::granted(&release.render().expect("rendered")).expect("rights") {
        for right in all {
            let text = right.to_string();
            assert!(!text.contains('*') && right.resource != "secrets", "{account}: {text}");
        }
    }
}

#[test]
fn values_of_volcanos_chart_mean_the_same_and_those_without_meaning_are_refused() {
    let Some(release) = release("values") else { return };
    let set = |values: &[&str]| {
        release.clone().with(values.iter().flat_map(|value| ["--set", value])).render()
    };
    let objects = set(&[
        "basic.image_registry=registry.example",
        "basic.scheduler_image_name=team/scheduler",
        "basic.scheduler_image_tag_version=v9",
        "basic.scheduler_config_file=config/volcano-scheduler.conf",
        "custom.scheduler_name=other",
        "custom.leader_elect_enable=false",
        "custom.scheduler_replicas=1",
        "custom.controller_replicas=1",
        "custom.scheduler_ns.disk=fast",
        "custom.default_ns.disk=any",
        "custom.scheduler_metrics_enable=false",
    ])
    .expect("rendered");
    let pod = pod(&objects, "tephra-scheduler");
    assert_eq!(pod["containers"][0]["image"], "registry.example/team/scheduler:v9");
    assert_eq!(pod["nodeSelector"], json!({"disk": "fast"}));
    let flags = command_line(&objects, "tephra-scheduler");
    let flags = tephra_scheduler::flags::Flags::parse_from_go(flags).expect("flags");
    assert_eq!(flags.scheduler_name, ["other"]);
    assert_eq!(flags.scheduler_conf, "/etc/tephra/volcano-scheduler.conf");
    assert!(!flags.election.leader_elect && !flags.endpoints.enable_metrics);

    for (values, named) in [
        (["custom.admission_enable=true"], "admission_enable"),
        (["custom.scheduler_replicas=many"], "scheduler_replicas"),
        (["custom.leader_elect_enable=false"], "more than one needs custom.leader_elect_enable"),
        (["basic.scheduler_config_file=config/none.conf"], "config/none.conf"),
    ] {
        let refused = set(&values).expect_err("refused").to_string();
        assert!(refused.contains(named), "{values:?}: {refused}");
    }
}
