//! How many requests a second the in-process server answers: `cargo run -p tephra-simulator --example throughput`.
//!
//! Creates and binds pods through a `kube::Client`, with one watch open, on a single-threaded runtime in paused time.

#![allow(clippy::print_stdout, reason = "printing the figures is what it is for")]

use std::time::Instant;

use anyhow::Context;
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams, PostParams, WatchEvent, WatchParams};
use serde_json::{Value, json};
use tephra_simulator::{ApiServer, ServerOptions};

const PODS: usize = 20_000;

fn main() -> anyhow::Result<()> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build()?;
    runtime.block_on(run())
}

fn rate(what: &str, count: usize, start: Instant) {
    println!("{what:<28} {:>9.0}/s", count as f64 / start.elapsed().as_secs_f64());
}

async fn run() -> anyhow::Result<()> {
    let server = ApiServer::new(ServerOptions { window: 100_000, ..ServerOptions::default() });
    let client = server.client();
    let pods: Api<Pod> = Api::namespaced(client.clone(), "default");
    let rv = server.resource_version().to_string();
    let mut watch = pods.watch(&WatchParams::default(), &rv).await?.boxed();
    let manifest = |i: usize| {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": format!("pod-{i:05}"), "namespace": "default", "labels": {"app": "x"},
                "annotations": {"scheduling.k8s.io/group-name": format!("g{}", i / 8)}},
            "spec": {"schedulerName": "volcano", "containers": [{"name": "c", "image": "i",
                "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]},
        })
    };
    let start = Instant::now();
    for i in 0..PODS {
        let pod: Pod = serde_json::from_value(manifest(i))?;
        pods.create(&PostParams::default(), &pod).await?;
    }
    rate("typed create (kube::Client)", PODS, start);

    let start = Instant::now();
    for i in 0..PODS {
        let body = json!({"metadata": {"name": format!("pod-{i:05}")}, "target": {"kind": "Node", "name": "n"}});
        let path = format!("/api/v1/namespaces/default/pods/pod-{i:05}/binding");
        let request = http::Request::post(path).body(serde_json::to_vec(&body)?)?;
        client.request::<Value>(request).await?;
    }
    rate("bind (raw request)", PODS, start);

    let start = Instant::now();
    for _ in 0..2 * PODS {
        let event = watch.try_next().await?.context("the watch ended")?;
        anyhow::ensure!(matches!(event, WatchEvent::Added(_) | WatchEvent::Modified(_)));
    }
    rate("watch events, typed", 2 * PODS, start);

    let start = Instant::now();
    for i in 0..PODS {
        pods.get(&format!("pod-{i:05}")).await?;
    }
    rate("typed get", PODS, start);

    let start = Instant::now();
    let list = client.request_text(http::Request::get("/api/v1/pods").body(Vec::new())?).await?;
    println!(
        "list of {PODS} pods             {:?}, {} MB",
        start.elapsed(),
        list.len() / 1_000_000
    );
    let page = pods.list(&ListParams::default().limit(500)).await?;
    anyhow::ensure!(page.items.len() == 500);

    let direct = ApiServer::default();
    let start = Instant::now();
    for i in 0..PODS {
        direct.create_value(manifest(i))?;
    }
    rate("create_value (no HTTP)", PODS, start);
    Ok(())
}
