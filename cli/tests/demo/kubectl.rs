//! The stock kubectl against a running demo, as a stranger would use it. (What the API server understands at all is
//! tested in the simulator; here scheduler, controllers and kubelets take part.)
//!
//! Without kubectl on the machine these tests say so on standard error and check nothing.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::process::Demo;

const GANG: &str = "
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: mine}
spec: {weight: 2, capability: {cpu: 100}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: GANG}
spec: {minMember: 2, queue: mine, minResources: {cpu: 32}}
---
apiVersion: v1
kind: Pod
metadata: {name: GANG-0, labels: {gang: GANG}, annotations: {scheduling.k8s.io/group-name: GANG}}
spec: {schedulerName: volcano, containers: [{name: c, image: i, resources: {requests: {cpu: 16}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: GANG-1, labels: {gang: GANG}, annotations: {scheduling.k8s.io/group-name: GANG}}
spec: {schedulerName: volcano, containers: [{name: c, image: i, resources: {requests: {cpu: 16}}}]}
";

/// A queue, and a gang in it of two pods that together fill a node.
fn gang(name: &str) -> String {
    GANG.replace("GANG", name)
}

/// kubectl with the kubeconfig that the demo prints, and the demo.
struct Session {
    demo: Demo,
    home: tempfile::TempDir,
}

impl Session {
    /// A demo whose samples have completed, or none where kubectl is missing.
    #[allow(clippy::print_stderr, reason = "a skipped test must say so")]
    fn start() -> Option<Self> {
        if Command::new("kubectl").args(["version", "--client"]).output().is_err() {
            eprintln!("SKIPPED: kubectl is not installed, nothing was checked against the demo");
            return None;
        }
        let home = tempfile::tempdir().expect("a folder");
        let session = Self { demo: Demo::start(1), home };
        // Sample pods that are not there yet cannot be waited for.
        session.until("get pods -n search -o name", |names| names.lines().count() == 4);
        session.run("wait --for=jsonpath={.status.phase}=Succeeded pods -A -l tephra.sh/demo --timeout=100s");
        Some(session)
    }

    fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new("kubectl");
        command
            .arg("--kubeconfig")
            .arg(self.demo.kubeconfig())
            .args(arguments.split_whitespace())
            .env("HOME", self.home.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Whether kubectl succeeded, and what it said on both channels.
    fn attempt(&self, arguments: &str, input: &str) -> (bool, String) {
        let mut child = self.command(arguments).spawn().expect("kubectl starts");
        // A kubectl that has seen enough closes its end.
        let _ = child.stdin.take().expect("piped").write_all(input.as_bytes());
        let output = child.wait_with_output().expect("kubectl ends");
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&said).into_owned())
    }

    fn feed(&self, arguments: &str, input: &str) -> String {
        let (success, said) = self.attempt(arguments, input);
        assert!(success, "kubectl {arguments}: {said}");
        said
    }

    fn run(&self, arguments: &str) -> String {
        self.feed(arguments, "")
    }

    fn apply(&self, objects: &str) -> String {
        self.feed("apply -f -", objects)
    }

    fn refused(&self, arguments: &str, input: &str) -> String {
        let (success, said) = self.attempt(arguments, input);
        assert!(!success, "kubectl {arguments}: {said}");
        said
    }

    /// Asks until the answer is as wanted, for a minute at most.
    fn until(&self, arguments: &str, wanted: impl Fn(&str) -> bool) -> String {
        let mut said = String::new();
        for _ in 0..300 {
            said = self.run(arguments);
            if wanted(&said) {
                return said;
            }
            std::thread::sleep(std::time::Duration::from_millis(200));
        }
        panic!("kubectl {arguments} still says: {said}");
    }

    fn until_phase(&self, gang: &str, phase: &str) {
        self.run(&format!(
            "wait --for=jsonpath={{.status.phase}}={phase} pg/{gang} --timeout=100s"
        ));
    }
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// The words of the first line that starts with `name`.
fn row<'a>(table: &'a str, name: &str) -> Vec<&'a str> {
    let rows = table.lines().map(words);
    rows.into_iter()
        .find(|row| row.first() == Some(&name))
        .unwrap_or_else(|| panic!("no row {name} in\n{table}"))
}

#[test]
fn a_gang_applied_with_kubectl_is_scheduled_and_deleting_its_pods_lets_the_next_one_start() {
    let Some(kubectl) = Session::start() else { return };
    assert_eq!(
        kubectl.apply(&gang("first")).lines().collect::<Vec<_>>(),
        [
            "queue.scheduling.volcano.sh/mine created",
            "podgroup.scheduling.volcano.sh/first created",
            "pod/first-0 created",
            "pod/first-1 created",
        ]
    );
    kubectl.run("wait --for=condition=Ready pod/first-0 pod/first-1 --timeout=100s");
    kubectl.until_phase("first", "Running");
    kubectl.apply(&gang("second"));
    kubectl.run("wait --for=condition=Unschedulable pg/second --timeout=100s");
    let why = kubectl.run("get pg second -o jsonpath={.status.conditions[*].message}");
    assert!(why.contains("cpu"), "{why}");
    let pods = kubectl.run("get pods -l gang=second");
    assert_eq!((row(&pods, "second-0")[2], row(&pods, "second-1")[2]), ("Pending", "Pending"));
    let told = kubectl.run("get events --field-selector involvedObject.name=second");
    assert!(told.contains("podgroup/second") && told.contains("Unschedulable"), "{told}");
    let described = kubectl.run("describe podgroup second");
    assert!(
        described.contains("Unschedulable  ") && described.contains("overused cpu"),
        "{described}"
    );

    kubectl.run("delete pods -l gang=first");
    kubectl.until_phase("second", "Running");
    kubectl.run("wait --for=condition=Ready pods -l gang=second --timeout=100s");
    kubectl.feed("delete -f -", &gang("second"));
    assert_eq!(kubectl.run("get pods").trim(), "No resources found in default namespace.");
    let (code, figures) = kubectl.demo.finish();
    assert_eq!(code, Some(0), "{figures:#}");
}

#[test]
fn apply_knows_created_unchanged_and_changed_objects_and_other_writes_do_what_they_say() {
    let Some(kubectl) = Session::start() else { return };
    kubectl.apply(&gang("job"));
    let said = kubectl.apply(&gang("job"));
    assert!(said.lines().all(|line| line.ends_with(" unchanged")), "{said}");
    let changed =
        gang("job").replace("weight: 2", "weight: 3").replace("minMember: 2", "minMember: 1");
    let said = kubectl.apply(&changed);
    let outcomes: Vec<&str> = said.lines().map(|line| words(line)[1]).collect();
    assert_eq!(outcomes, ["configured", "configured", "unchanged", "unchanged"]);
    kubectl.feed("apply --server-side --force-conflicts -f -", &gang("job"));
    assert_eq!(kubectl.run("get pg job -o jsonpath={.spec.minMember}"), "2");
    let said = kubectl.refused(
        "apply --server-side --field-manager=else -f -",
        "---\n{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: mine}, spec: {weight: 9}}",
    );
    assert!(said.contains("conflict with \"kubectl\": .spec.weight"), "{said}");

    kubectl.run("patch pg job --type=merge -p {\"spec\":{\"minMember\":1}}");
    kubectl.run(
        "patch pg job --type=json -p [{\"op\":\"test\",\"path\":\"/spec/minMember\",\"value\":1}]",
    );
    let said = kubectl.refused("patch pg job -p {\"spec\":{\"minMember\":1}}", "");
    assert!(said.contains("application/merge-patch+json"), "{said}");
    kubectl.run("label podgroup job team=a");
    kubectl.run("annotate queue mine note=b");
    assert_eq!(
        kubectl.run("get pg -l team=a -o name").trim(),
        "podgroup.scheduling.volcano.sh/job"
    );
    // What an editor does: read, change, put back; putting back an old version is a conflict.
    kubectl.until_phase("job", "Running");
    let read = kubectl.run("get pg job -o yaml").replace("minMember: 1", "minMember: 2");
    assert!(kubectl.feed("replace -f -", &read).contains("replaced"));
    assert!(kubectl.refused("replace -f -", &read).contains("the object has been modified"));
    assert_eq!(kubectl.run("get pg job -o jsonpath={.spec.minMember}"), "2");
    let created = kubectl.refused("create -f -", &gang("job"));
    assert!(
        created.contains("podgroups.scheduling.volcano.sh \"job\" already exists"),
        "{created}"
    );
    let scaled = kubectl.refused("scale podgroup job --replicas=3", "");
    assert!(scaled.contains("could not find the requested resource"), "{scaled}");
}

#[test]
fn get_prints_the_columns_of_the_definitions_and_takes_selectors_and_all_formats() {
    let Some(kubectl) = Session::start() else { return };
    let all = kubectl.run("get pods,podgroups,queues -A");
    assert_eq!(row(&all, "search")[1..4], ["pod/train-0-worker-0", "0/1", "Completed"]);
    assert!(all.contains("podgroup.scheduling.volcano.sh/train-0"), "{all}");
    assert!(all.contains("queue.scheduling.volcano.sh/vision"), "{all}");
    let groups = kubectl.run("get podgroups -n vision");
    assert_eq!(row(&groups, "NAME"), ["NAME", "STATUS", "MINMEMBER", "RUNNINGS", "AGE"]);
    assert_eq!(row(&groups, "train-0")[1..3], ["Completed", "1"]);
    let wide = kubectl.run("get pg -n vision -o wide");
    assert_eq!(row(&wide, "NAME").last(), Some(&"QUEUE"));
    assert_eq!(row(&wide, "train-0").last(), Some(&"vision"));
    let queues = kubectl.run("get q");
    assert_eq!(
        (row(&queues, "NAME"), row(&queues, "vision")),
        (vec!["NAME", "PARENT"], vec!["vision", "root"])
    );

    let list: Value = serde_json::from_str(&kubectl.run("get pg -n vision -o json")).expect("JSON");
    assert_eq!(
        (list["kind"].as_str(), list["items"].as_array().map(Vec::len)),
        (Some("List"), Some(4))
    );
    assert_eq!(list["items"][0]["kind"], "PodGroup");
    let yaml = kubectl.run("get queue vision -o yaml");
    assert!(yaml.contains("kind: Queue\n") && yaml.contains("weight: 3\n"), "{yaml}");
    kubectl.apply(&gang("g"));
    kubectl.until_phase("g", "Running");
    assert_eq!(kubectl.run("get pods -A -l gang=g -o name"), "pod/g-0\npod/g-1\n");
    let running =
        kubectl.run("get pods -A --field-selector status.phase=Running,spec.nodeName=node-000");
    assert_eq!(running.lines().count(), 3, "{running}");
    let unknown = kubectl.refused("get pods --field-selector colour=red", "");
    assert!(unknown.contains("field label not supported: colour"), "{unknown}");
    let wide = kubectl.run("get pods -o wide");
    assert_eq!(row(&wide, "g-0")[6], "node-000");
    assert_eq!(
        kubectl.run("get pods -n nowhere").trim(),
        "No resources found in nowhere namespace."
    );
}

#[test]
fn a_watch_shows_a_pod_on_its_way() {
    let Some(kubectl) = Session::start() else { return };
    let mut watch = kubectl
        .command("get pods --watch --no-headers --request-timeout=100s")
        .spawn()
        .expect("kubectl starts");
    kubectl.apply(&gang("w"));
    let mut states = Vec::new();
    for line in BufReader::new(watch.stdout.take().expect("piped")).lines() {
        let line = line.expect("text");
        let row = words(&line);
        if row[0] == "w-0" {
            states.push(row[2].to_owned());
        }
        if row[..3] == ["w-0", "1/1", "Running"] {
            break;
        }
    }
    watch.kill().expect("killed");
    watch.wait().expect("ended");
    states.dedup();
    assert_eq!(states.last().map(String::as_str), Some("Running"), "{states:?}");
}

#[test]
fn describe_and_explain_tell_about_objects_and_their_fields() {
    let Some(kubectl) = Session::start() else { return };
    kubectl.apply(&gang("g"));
    kubectl.until_phase("g", "Running");
    let pod = kubectl.run("describe pod g-0");
    assert!(pod.contains("Node:             node-000/") || pod.contains("node-000/"), "{pod}");
    let group = kubectl.run("describe podgroup g");
    assert!(group.contains("Min Member:  2") && group.contains("pod group is ready"), "{group}");
    let queue = kubectl.run("describe queue mine");
    assert!(queue.contains("Weight:") && queue.contains("State:      Open"), "{queue}");
    let node = kubectl.run("describe node node-000");
    assert!(node.contains("HolderIdentity:  node-000") && node.contains("g-0"), "{node}");
    let spec = kubectl.run("explain podgroup.spec");
    for field in [
        "minMember\t<integer>",
        "minResources\t<map",
        "queue\t<string>",
        "networkTopology\t<Object>",
    ] {
        assert!(spec.contains(field), "{field} in {spec}");
    }
    assert!(kubectl.run("explain queue.spec.capability").contains("Hard limit"));
    let resources = kubectl.run("api-resources --api-group=scheduling.volcano.sh");
    assert_eq!(
        row(&resources, "podgroups")[1..],
        ["pg,podgroup-v1beta1", "scheduling.volcano.sh/v1beta1", "true", "PodGroup"]
    );
    assert_eq!(row(&resources, "queues")[3], "false");
    assert_eq!(kubectl.run("auth can-i create podgroups").trim(), "yes");
    assert_eq!(kubectl.run("get --raw /healthz"), "ok");
    assert!(kubectl.run("cluster-info").contains("is running at"));
}

#[test]
fn what_a_simulated_cluster_cannot_do_is_refused_in_words() {
    let Some(kubectl) = Session::start() else { return };
    kubectl.apply(&gang("g"));
    kubectl.run("wait --for=condition=Ready pod/g-0 --timeout=100s");
    for (arguments, words) in [
        ("exec g-0 -- ls", "pod g-0 is simulated"),
        ("attach g-0", "pod g-0 is simulated"),
        ("top pods", "Metrics API not available"),
        ("top nodes", "Metrics API not available"),
        ("get nosuch", "the server doesn't have a resource type \"nosuch\""),
        ("delete pod nosuch", "pods \"nosuch\" not found"),
        ("wait --for=condition=Ready pod/nosuch --timeout=1s", "pods \"nosuch\" not found"),
    ] {
        let said = kubectl.refused(arguments, "");
        assert!(said.contains(words), "kubectl {arguments}: {said}");
    }
    assert!(kubectl.run("logs g-0").contains("simulated: it has no output"));
}

#[test]
fn faulty_objects_are_refused_with_the_field_and_a_gang_beside_them_runs() {
    let Some(kubectl) = Session::start() else { return };
    let group = |spec: &str| {
        format!(
            "{{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {{name: bad}}, spec: {spec}}}"
        )
    };
    let queue = |spec: &str| {
        format!(
            "{{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {{name: bad}}, spec: {spec}}}"
        )
    };
    let pod = |name: &str, containers: &str| {
        format!(
            "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}}}, spec: {{schedulerName: volcano, containers: {containers}}}}}"
        )
    };
    let asks = |amount: &str| {
        format!("[{{name: c, image: i, resources: {{requests: {{memory: {amount}}}}}}}]")
    };
    for (object, said) in [
        (group("{minMember: -1}"), "spec.minMember: Invalid value: -1"),
        (group("{minMember: 2147483648}"), "spec.minMember: Invalid value: 2147483648"),
        (group("{minMember: two}"), "spec.minMember: Invalid value: \"string\""),
        (group("{queue: Odd Name}"), "spec.queue: Invalid value: \"Odd Name\""),
        (group("{minResources: {cpu: 1Gib}}"), "spec.minResources.cpu: Invalid value: \"1Gib\""),
        (
            group("{networkTopology: {mode: firm}}"),
            "Unsupported value: \"firm\": supported values: \"hard\", \"soft\"",
        ),
        (queue("{weight: 0}"), "spec.weight: Invalid value: 0"),
        (queue("{capability: {cpu: []}}"), "spec.capability.cpu: Invalid value: \"array\""),
        (pod("bad", &asks("1Gib")), "1Gib"),
        (
            pod("bad", &asks("-1")),
            "spec.containers[0].resources.requests[memory]: Invalid value: \"-1\"",
        ),
        (pod("bad", "[]"), "spec.containers: Required value"),
        (pod("Bad_1", &asks("1Gi")), "metadata.name: Invalid value: \"Bad_1\""),
        (
            pod("bad", "[{name: c, image: i, colour: red}]"),
            "unknown field \"spec.containers[0].colour\"",
        ),
        (
            "{apiVersion: v1, kind: Nope, metadata: {name: x}}".to_owned(),
            "no matches for kind \"Nope\" in version \"v1\"",
        ),
        ("a: b: c".to_owned(), "error parsing"),
    ] {
        // Without the first line kubectl takes an object in braces for JSON.
        let refusal = kubectl.refused("apply -f -", &format!("---\n{object}"));
        assert!(refusal.contains(said), "{object}: {refusal}");
    }
    assert!(!kubectl.run("get pods,pg -o name").contains("bad"));
    kubectl.apply(&gang("good"));
    kubectl.until_phase("good", "Running");
}

#[test]
fn fields_of_other_versions_are_stored_and_defaults_are_those_of_volcano() {
    let Some(kubectl) = Session::start() else { return };
    kubectl.apply(
        "
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: d}
spec: {minMember: 3, later: {x: [1]}, networkTopology: {}, subGroupPolicy: [{name: s, later: true}]}
status: {later: 7}
",
    );
    kubectl.run("wait --for=jsonpath={.status.phase}=Inqueue pg/d --timeout=100s");
    let stored: Value = serde_json::from_str(&kubectl.run("get pg d -o json")).expect("JSON");
    assert_eq!(
        stored["spec"],
        serde_json::json!({
            "minMember": 3, "queue": "default", "later": {"x": [1]}, "networkTopology": {"mode": "hard"},
            "subGroupPolicy": [{"name": "s", "later": true, "subGroupSize": 1, "minSubGroups": 0}],
        })
    );
    assert_eq!(stored["status"]["later"], 7, "the scheduler's status leaves what it does not know");
}
