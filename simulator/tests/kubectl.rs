//! The stock kubectl against the served port.
//!
//! Without kubectl on the machine the test says so on standard error and checks nothing.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tephra_api::clock::SystemClock;
use tephra_simulator::{ApiServer, ServerOptions, serve::kubeconfig};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

struct Kubectl<'a> {
    home: &'a Path,
}

impl Kubectl<'_> {
    /// Runs kubectl; standard output and error together, and whether it succeeded.
    async fn try_run(&self, arguments: &str, input: &str) -> (bool, String) {
        let mut child = Command::new("kubectl")
            .args(arguments.split_whitespace())
            .env("HOME", self.home)
            .env("KUBECONFIG", self.home.join("config"))
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("kubectl starts");
        let mut stdin = child.stdin.take().expect("piped");
        stdin.write_all(input.as_bytes()).await.expect("written");
        drop(stdin);
        let output = tokio::time::timeout(Duration::from_secs(120), child.wait_with_output())
            .await
            .expect("kubectl ends")
            .expect("kubectl runs");
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&text).into_owned())
    }

    async fn run(&self, arguments: &str, input: &str) -> String {
        let (success, text) = self.try_run(arguments, input).await;
        assert!(success, "kubectl {arguments}: {text}");
        text
    }
}

/// The words of the first line that starts with `name`.
fn row<'a>(table: &'a str, name: &str) -> Vec<&'a str> {
    table
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .find(|words| words.first() == Some(&name))
        .unwrap_or_else(|| panic!("no row {name} in\n{table}"))
}

fn queue_crd() -> String {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "queues.scheduling.volcano.sh"},
        "spec": {
            "group": "scheduling.volcano.sh", "scope": "Cluster",
            "names": {"plural": "queues", "singular": "queue", "kind": "Queue", "shortNames": ["q"]},
            "versions": [{
                "name": "v1beta1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
                "additionalPrinterColumns": [{"name": "WEIGHT", "type": "integer", "jsonPath": ".spec.weight"}],
            }],
        },
    })
    .to_string()
}

const POD: &str = "
apiVersion: v1
kind: Pod
metadata:
  name: web
  labels: {app: web}
spec:
  containers:
  - name: c
    image: nginx
    resources: {requests: {cpu: 100m}}
";

const DEPLOYMENT: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: d}
spec:
  replicas: 2
  selector: {matchLabels: {app: d}}
  template:
    metadata: {labels: {app: d}}
    spec: {containers: [{name: c, image: nginx}]}
";

const JOB: &str = "
apiVersion: batch/v1
kind: Job
metadata: {name: j}
spec:
  template:
    spec: {restartPolicy: Never, containers: [{name: c, image: nginx}]}
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[allow(clippy::print_stderr, reason = "a skipped test must say so")]
async fn stock_kubectl_works_against_the_served_port() {
    if Command::new("kubectl").arg("version").arg("--client").output().await.is_err() {
        eprintln!("SKIPPED: kubectl is not installed, nothing was checked against it");
        return;
    }
    let home = tempfile::tempdir().expect("folder");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("port");
    let url = format!("http://{}", listener.local_addr().expect("address"));
    std::fs::write(home.path().join("config"), kubeconfig(&url)).expect("written");
    let server =
        ApiServer::new(ServerOptions { clock: Arc::new(SystemClock), ..ServerOptions::default() });
    let shutdown = CancellationToken::new();
    let serving = tokio::spawn(server.clone().serve(listener, shutdown.clone()));
    let kubectl = Kubectl { home: home.path() };

    objects(&kubectl, &server).await;
    changes(&kubectl, &server).await;
    custom_resources(&kubectl, &server).await;
    waiting_and_deleting(&kubectl, &server).await;

    shutdown.cancel();
    serving.await.expect("joined").expect("served");
}

async fn objects(kubectl: &Kubectl<'_>, server: &ApiServer) {
    assert!(kubectl.run("version", "").await.contains("Server Version: v1.35.3"));
    let resources = kubectl.run("api-resources", "").await;
    assert_eq!(row(&resources, "pods")[1], "po");
    kubectl.run("create namespace team", "").await;
    assert_eq!(row(&kubectl.run("get namespaces", "").await, "team")[1], "Active");
    kubectl.run("create -f - -n team", POD).await;
    // Client-side apply creates, leaves alone, and changes; with and without validation.
    assert_eq!(kubectl.run("apply -f -", POD).await.trim(), "pod/web created");
    assert_eq!(kubectl.run("apply --validate=false -f -", POD).await.trim(), "pod/web unchanged");
    let changed = POD.replace("nginx", "nginx:2");
    assert_eq!(kubectl.run("apply -f -", &changed).await.trim(), "pod/web configured");
    let stored = server.get_value("pods", "default", "web").expect("stored");
    assert_eq!(stored["spec"]["containers"][0]["image"], "nginx:2");
    kubectl.run("apply --server-side -f -", &POD.replace("web", "ssa")).await;

    let pods = kubectl.run("get pods -A -o wide", "").await;
    let all: Vec<&str> = pods.lines().next().expect("header").split_whitespace().collect();
    assert_eq!(
        all,
        [
            "NAMESPACE",
            "NAME",
            "READY",
            "STATUS",
            "RESTARTS",
            "AGE",
            "IP",
            "NODE",
            "NOMINATED",
            "NODE",
            "READINESS",
            "GATES"
        ]
    );
    let pods = kubectl.run("get pods", "").await;
    assert_eq!(row(&pods, "web")[1..4], ["0/1", "Pending", "0"]);
    assert!(kubectl.run("get all", "").await.contains("pod/web"));
    assert_eq!(kubectl.run("get pods -l app=web -o name", "").await.trim(), "pod/web");
    let yaml = kubectl.run("get pod web -o jsonpath={.spec.schedulerName}", "").await;
    assert_eq!(yaml, "default-scheduler");
}

async fn changes(kubectl: &Kubectl<'_>, server: &ApiServer) {
    kubectl.run("label pod web tier=front", "").await;
    kubectl.run("annotate pod web note=x", "").await;
    kubectl.run("patch pod web -p {\"metadata\":{\"labels\":{\"more\":\"1\"}}}", "").await;
    let stored = server.get_value("pods", "default", "web").expect("stored");
    assert_eq!(stored["metadata"]["labels"], json!({"app": "web", "tier": "front", "more": "1"}));
    server
        .create_value(json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e1"},
            "involvedObject": {"kind": "Pod", "name": "web", "namespace": "default", "uid": stored["metadata"]["uid"]},
            "reason": "FailedScheduling", "message": "0/3 nodes are available", "type": "Warning",
            "source": {"component": "tephra"}, "count": 1,
            "firstTimestamp": stored["metadata"]["creationTimestamp"],
            "lastTimestamp": stored["metadata"]["creationTimestamp"],
        }))
        .expect("event");
    let described = kubectl.run("describe pod web", "").await;
    assert!(described.contains("FailedScheduling"), "{described}");
    let events = kubectl.run("get events", "").await;
    assert!(events.contains("pod/web"), "{events}");
    server
        .create_value(json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"},
            "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}, "capacity": {"cpu": "4"},
                "conditions": [{"type": "Ready", "status": "True", "reason": "Up", "message": "up"}]},
        }))
        .expect("node");
    assert_eq!(row(&kubectl.run("get nodes", "").await, "n1")[1], "Ready");
    assert!(kubectl.run("describe node n1", "").await.contains("Allocated resources"));
    kubectl.run("cordon n1", "").await;
    assert_eq!(row(&kubectl.run("get nodes", "").await, "n1")[1], "Ready,SchedulingDisabled");
    kubectl.run("create -f -", DEPLOYMENT).await;
    // kubectl's generators send protobuf.
    kubectl.run("create deployment g --image=nginx --replicas=0", "").await;
    let stored = server.get_value("deployments", "default", "g").expect("stored");
    assert_eq!(stored["spec"]["replicas"], 0);
    assert_eq!(stored["spec"]["template"]["spec"]["containers"][0]["image"], "nginx");
    kubectl.run("create job k --image=nginx -- sleep 1", "").await;
    let stored = server.get_value("jobs", "default", "k").expect("stored");
    assert_eq!(
        stored["spec"]["template"]["spec"]["containers"][0]["command"],
        json!(["sleep", "1"])
    );
    kubectl.run("create configmap m --from-literal=a=b", "").await;
    kubectl.run("create secret generic s --from-literal=a=b", "").await;
    assert_eq!(server.get_value("secrets", "default", "s").expect("stored")["data"]["a"], "Yg==");
    kubectl.run("create priorityclass high --value=7", "").await;
    kubectl.run("create quota q --hard=cpu=1", "").await;
    kubectl.run("run once --image=nginx --restart=Never", "").await;
    kubectl.run("drain n1 --force --ignore-daemonsets", "").await;
    kubectl.run("scale deployment d --replicas=5", "").await;
    let stored = server.get_value("deployments", "default", "d").expect("stored");
    assert_eq!(stored["spec"]["replicas"], 5);
    kubectl.run("describe deployment d", "").await;
    kubectl.run("create -f -", JOB).await;
    assert_eq!(row(&kubectl.run("get jobs", "").await, "j")[2], "0/1");
    kubectl.run("describe job j", "").await;
    assert_eq!(
        row(&kubectl.run("get priorityclasses", "").await, "system-node-critical")[1],
        "2000001000"
    );
}

async fn custom_resources(kubectl: &Kubectl<'_>, server: &ApiServer) {
    kubectl.run("create -f -", &queue_crd()).await;
    kubectl
        .run("wait --for=condition=Established crd/queues.scheduling.volcano.sh --timeout=10s", "")
        .await;
    let queue = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: gold}\nspec: {weight: 3}";
    kubectl.run("apply -f -", queue).await;
    assert_eq!(
        kubectl.run("apply -f -", &queue.replace('3', "4")).await.trim(),
        "queue.scheduling.volcano.sh/gold configured"
    );
    let table = kubectl.run("get queues,pods -A", "").await;
    assert!(table.contains("queue.scheduling.volcano.sh/gold"), "{table}");
    assert_eq!(row(&kubectl.run("get q", "").await, "gold")[1], "4");
    kubectl.run("patch queue gold --type=merge --subresource=status -p {\"status\":{\"state\":\"Open\"}}", "").await;
    let stored: Value = server.get_value("queues", "", "gold").expect("stored");
    assert_eq!(stored["status"]["state"], "Open");
    assert!(kubectl.run("describe queue gold", "").await.contains("Weight"));
}

async fn waiting_and_deleting(kubectl: &Kubectl<'_>, server: &ApiServer) {
    let ready = {
        let server = server.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(500)).await;
            let mut pod = server.get_value("pods", "default", "web").expect("there");
            pod["status"]["phase"] = json!("Running");
            pod["status"]["conditions"] = json!([{"type": "Ready", "status": "True"}]);
            server.apply_value(pod).expect("applied");
        })
    };
    kubectl.run("wait --for=condition=Ready pod/web --timeout=60s", "").await;
    ready.await.expect("joined");
    assert_eq!(row(&kubectl.run("get pods", "").await, "web")[2], "Running");
    let (success, text) = kubectl.try_run("get pod none", "").await;
    assert!(!success);
    assert_eq!(text.trim(), "Error from server (NotFound): pods \"none\" not found");
    let (success, text) = kubectl.try_run("create -f -", POD).await;
    assert!(!success);
    assert!(text.contains("pods \"web\" already exists"), "{text}");
    let (success, text) =
        kubectl.try_run("create -f -", &POD.replace("name: web", "name: Web_1")).await;
    assert!(!success);
    assert!(text.contains("metadata.name: Invalid value"), "{text}");
    kubectl.run("delete pod web", "").await;
    assert!(server.get_value("pods", "default", "web").is_none());
    kubectl.run("delete namespace team", "").await;
    assert!(server.get_value("pods", "team", "web").is_none());
    kubectl.run("delete pods --all", "").await;
    kubectl.run("delete crd queues.scheduling.volcano.sh", "").await;
    assert!(!kubectl.try_run("get queues", "").await.0);
}
