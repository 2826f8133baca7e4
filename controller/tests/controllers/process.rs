//! `tephra-controller` as a process: flags, kubeconfig, lease, endpoints, signals.

use std::{path::Path, process::Stdio, time::Duration};

use serde_json::json;
use tephra_controller::install_crds;
use tephra_simulator::ApiServer;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    process::{Child, Command},
    time::sleep,
};
use tokio_util::sync::CancellationToken;

fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tephra-controller"));
    command.args(arguments).kill_on_drop(true).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn kubeconfig(folder: &Path, server: &str) -> String {
    let path = folder.join("kubeconfig");
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "c", "user": {}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
    });
    std::fs::write(&path, config.to_string()).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Status line and body of a GET.
async fn get(address: &str, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).await.ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.ok()?;
    Some(answer)
}

/// An address that is free now.
async fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap().to_string()
}

async fn terminate(mut child: Child) -> Option<i32> {
    let pid = child.id().unwrap().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().await.unwrap().success());
    child.wait().await.unwrap().code()
}

#[tokio::test]
async fn the_process_works_over_http_says_when_it_is_ready_and_stops_on_sigterm() {
    let server = ApiServer::default();
    install_crds(server.client()).await.unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let shutdown = CancellationToken::new();
    tokio::spawn(server.clone().serve(listener, shutdown.clone()));
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = kubeconfig(folder.path(), &url);
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace",
                           "metadata": {"name": "volcano-system"}});
    server.create_value(namespace).unwrap();
    let [health, metrics] = [free_address().await, free_address().await];

    let child = program(&[
        "-v=3",
        "--enable_healthz",
        &format!("--healthz-address={health}"),
        "--enable-metrics",
        &format!("--listen-address={metrics}"),
        "--kubeconfig",
        &kubeconfig,
    ])
    .spawn()
    .unwrap();
    while !get(&health, "/readyz").await.is_some_and(|answer| answer.contains(" 200 ")) {
        sleep(Duration::from_millis(20)).await;
    }
    assert!(get(&health, "/healthz").await.unwrap().ends_with("\r\n\r\nok"));
    while server.list_values("queues").len() < 2 {
        sleep(Duration::from_millis(20)).await;
    }
    let numbers = get(&metrics, "/metrics").await.unwrap();
    assert!(numbers.contains("tephra_controller_leading 1\n"), "{numbers}");
    let holder = || {
        let lease = server.get_value("leases", "volcano-system", "vc-controller-manager").unwrap();
        lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned()
    };
    assert_ne!(holder(), "");
    assert_eq!(terminate(child).await, Some(0));
    assert_eq!(holder(), "", "the lease was not handed over");
    shutdown.cancel();
}

#[tokio::test]
async fn help_version_and_mistakes_have_their_exit_codes() {
    let run = async |arguments: &[&str]| {
        let output = program(arguments).output().await.unwrap();
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        (output.status.code(), text)
    };
    let (code, text) = run(&["--help"]).await;
    assert_eq!(code, Some(0));
    assert!(text.contains("--worker-threads-for-podgroup"), "{text}");
    let (code, text) = run(&["--version"]).await;
    assert_eq!(
        (code, text.trim()),
        (Some(0), concat!("tephra-controller ", env!("CARGO_PKG_VERSION")))
    );
    let (code, text) = run(&["--controllers=pg-controler"]).await;
    assert_eq!(code, Some(2));
    assert!(text.contains("unknown controller `pg-controler`"), "{text}");
    let (code, text) = run(&["--kubeconfig=/nowhere/config"]).await;
    assert_eq!(code, Some(1));
    assert!(text.contains("/nowhere/config"), "{text}");
}
