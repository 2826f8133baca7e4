//! What a demo prints, and its exit code.

use std::process::Output;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, PostParams};
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tephra_api::scheduling::{PodGroup, Queue};

use crate::process::{Demo, tephra};

fn run(arguments: &[&str]) -> Output {
    tephra().arg("demo").args(arguments).output().expect("the demo runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn all_gangs_of_three_teams_run_whole_and_the_audit_finds_nothing() {
    let output = run(&["--until-done", "-o", "json", "--nodes", "8"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let figures: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let team = json!({"pods": 40, "bound": 40, "completed": 40, "gangs": 4, "wholeGangs": 4});
    assert_eq!(
        figures,
        json!({
            "done": true,
            "teams": {"vision": team, "speech": team, "search": team},
            "audit": {"invariants": ["I1", "I2", "I3", "I4"], "violations": []},
        })
    );
}

#[test]
fn without_a_terminal_the_demo_prints_lines_and_the_verdict_of_the_audit() {
    let output = run(&["--until-done", "--nodes", "1"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    assert!(said.starts_with("kubectl --kubeconfig "), "{said}");
    assert!(said.contains("speech: 0 running on 0 % of the GPUs, 0 waiting, 4 done\n"), "{said}");
    assert!(said.contains("every pod bound once (I1)"), "{said}");
    assert!(!said.contains('\x1b'), "escape codes are for terminals");
}

#[test]
fn bad_arguments_are_refused_in_words() {
    let none = run(&["--nodes", "0"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(text(&none.stderr).contains("0 is not in 1..=5000"), "{}", text(&none.stderr));
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("bound").port().to_string();
    let refused = run(&["--until-done", "--port", &port]);
    assert_eq!(refused.status.code(), Some(2));
    let said = text(&refused.stderr);
    assert!(said.contains(&format!("listening on port {port}")), "{said}");
}

/// Somebody with access to the API server, who breaks promises.
struct Vandal {
    client: kube::Client,
}

impl Vandal {
    async fn of(demo: &Demo) -> Self {
        let file = Kubeconfig::read_from(demo.kubeconfig()).expect("a kubeconfig");
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(file, &options).await.expect("a configuration");
        Self { client: kube::Client::try_from(config).expect("a client") }
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), "default")
    }

    async fn pod(&self, name: &str, group: &str, scheduler: &str, cpu: &str) {
        let pod = object(json!({
            "metadata": {"name": name, "annotations": {"scheduling.k8s.io/group-name": group}},
            "spec": {"schedulerName": scheduler, "containers": [
                {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]},
        }));
        self.pods().create(&PostParams::default(), &pod).await.expect("created");
    }

    async fn group(&self, name: &str, min: i32, queue: &str) {
        let group =
            object(json!({"metadata": {"name": name}, "spec": {"minMember": min, "queue": queue}}));
        let groups: Api<PodGroup> = Api::namespaced(self.client.clone(), "default");
        groups.create(&PostParams::default(), &group).await.expect("created");
    }

    async fn queue(&self, name: &str, cpu: &str) {
        let queue =
            object(json!({"metadata": {"name": name}, "spec": {"capability": {"cpu": cpu}}}));
        let queues: Api<Queue> = Api::all(self.client.clone());
        queues.create(&PostParams::default(), &queue).await.expect("created");
    }

    /// Binds a pod past the scheduler; says whether the server allowed it.
    async fn bind(&self, name: &str) -> bool {
        let uid = self.pods().get(name).await.expect("there").metadata.uid;
        let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, "uid": uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": "node-000"}});
        let pods = self.pods();
        let answer: Result<Value, _> =
            pods.create_subresource("binding", name, &PostParams::default(), &binding).await;
        answer.is_ok()
    }

    async fn break_promise(&self, invariant: &str) {
        match invariant {
            "I1" => {
                self.pod("twice", "", "other", "1").await;
                assert!(self.bind("twice").await);
                assert!(!self.bind("twice").await, "the server refuses, but it was tried");
            }
            "I2" => {
                self.group("large", 1, "default").await;
                self.pod("large", "large", "volcano", "1000").await;
                assert!(self.bind("large").await);
            }
            "I3" => {
                self.group("part", 1000, "default").await;
                self.pod("part", "part", "volcano", "1").await;
                assert!(self.bind("part").await);
            }
            _ => {
                self.queue("tiny", "1").await;
                self.group("over", 1, "tiny").await;
                self.pod("over", "over", "volcano", "2").await;
                assert!(self.bind("over").await);
            }
        }
    }
}

fn object<K: DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).expect("an object")
}

#[tokio::test]
async fn each_broken_promise_is_named_and_makes_the_exit_code_1() {
    for invariant in ["I1", "I2", "I3", "I4"] {
        let demo = Demo::start(1);
        Vandal::of(&demo).await.break_promise(invariant).await;
        let (code, figures) = demo.finish();
        let violations = figures["audit"]["violations"].as_array().expect("a list");
        let mut named: Vec<&str> = violations
            .iter()
            .map(|it| it.as_str().and_then(|it| it.split(' ').next()).unwrap_or(""))
            .collect();
        // Gangs that were decided before the scheduler heard of the overfull node go to it too.
        named.dedup();
        assert_eq!((code, named), (Some(1), vec![invariant]), "{figures:#}");
    }
    let (code, figures) = Demo::start(1).finish();
    assert_eq!((code, &figures["audit"]["violations"]), (Some(0), &json!([])));
}
