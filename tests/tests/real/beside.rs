//! Both ways to run beside Volcano, and the ways from one to the other: with Volcano's own controller manager (ours of PodGroups
//! and queues are off), and alone. Nothing that runs is restarted, and no status has two writers.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, PostParams,
};
use serde_json::json;
use tephra_tests::rig::audit_log::Record;
use tephra_tests::rig::chart::{self, Release, kind};
use tephra_tests::rig::identity::Identity;
use tephra_tests::rig::patience::{PATIENCE, wait_for, wait_until};
use tephra_tests::rig::process::Process;
use tephra_tests::rig::workload::{self, PodTemplate};

use crate::case::{Case, cpus};

/// The controllers that Volcano has, too.
const OFF: &str = "--controllers=*,-pg-controller,-queue-controller";
/// How long nothing may be written for the statuses to count as settled.
const QUIET: Duration = Duration::from_secs(3);

struct Stage {
    case: Case,
    _scheduler: Process,
    /// Uid of every pod that ran at some time.
    seen: BTreeMap<String, String>,
}

impl Stage {
    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.case.client.clone(), self.case.name)
    }

    /// Waits until so many pods run, and compares them with those that ran before.
    async fn run(&mut self, count: usize) {
        let running = async || {
            let pods = self.pods().list(&ListParams::default()).await?;
            let runs = |pod: &&Pod| {
                pod.status.as_ref().and_then(|it| it.phase.as_deref()) == Some("Running")
            };
            let running = pods.iter().filter(runs);
            let uids: BTreeMap<String, String> =
                running.map(|pod| (pod.name_any(), pod.uid().unwrap_or_default())).collect();
            Ok(if uids.len() == count { Ok(uids) } else { Err(format!("{uids:?}")) })
        };
        let uids = wait_for("all pods run", PATIENCE, running).await.expect("they run");
        for (pod, uid) in &self.seen {
            assert_eq!(uids.get(pod), Some(uid), "{pod} is another one now");
        }
        self.seen = uids;
    }

    /// A gang, and a plain pod that needs a controller to get its PodGroup; 3 pods.
    async fn submit(&self, name: &str) {
        self.case.create(&[self.case.gang(name, 2, "1")]).await;
        let plain = PodTemplate {
            scheduler: self.case.name.to_owned(),
            cpu: "1".to_owned(),
            group: None,
            run_for: None,
        };
        let plain = [(format!("{name}-plain"), plain)];
        workload::create_pods(&self.case.client, self.case.name, plain).await.expect("a pod");
    }

    /// Waits until nobody writes PodGroups and queues any more; answers who wrote them until then, since record `from`.
    async fn settle(&mut self, from: usize) -> BTreeSet<String> {
        let statuses = |record: &&Record| {
            let object = record.object_ref.as_ref();
            object.is_some_and(|it| matches!(it.resource.as_str(), "podgroups" | "queues"))
        };
        let mut count = usize::MAX;
        loop {
            let written = self.case.writes()[from..].iter().filter(statuses).count();
            if written == count {
                break;
            }
            count = written;
            tokio::time::sleep(QUIET).await;
        }
        let written = self.case.writes()[from..].iter().filter(statuses);
        written.filter(|it| it.accepted()).map(|it| it.user().to_owned()).collect()
    }

    async fn queue_is(&self, name: &str, state: &str) {
        let queues = workload::queues(&self.case.client);
        wait_for(&format!("queue {name} is {state}"), PATIENCE, async || {
            let queue = queues.get(name).await?;
            let told = &queue.data["status"]["state"];
            Ok(if told == state { Ok(()) } else { Err(told.to_string()) })
        })
        .await
        .expect("as wanted");
    }
}

fn api(case: &Case, group: &str, kind: &str, plural: &str, namespace: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk(group, "v1alpha1", kind);
    let resource = ApiResource::from_gvk_with_plural(&kind, plural);
    Api::namespaced_with(case.client.clone(), namespace, &resource)
}

/// Installs what Volcano's chart brings for its controllers: access rules, and the kinds that we do not have.
async fn install_volcano(case: &Case) {
    let assets = case.rig.assets();
    let chart = assets.folder_of("volcano-chart").expect("Volcano's chart");
    let mut objects = Release::of(assets, chart, "volcano").expect("helm").render().expect("it");
    let ours = ["scheduling.volcano.sh", "topology.volcano.sh"];
    objects.retain(|object| {
        let name = object.name_any();
        let ours = ours.iter().any(|group| name.ends_with(group));
        let rights = ["ServiceAccount", "ClusterRole", "ClusterRoleBinding"];
        let needed = rights.contains(&kind(object)) && name.starts_with("volcano-controllers");
        needed || (kind(object) == "CustomResourceDefinition" && !ours)
    });
    chart::apply(&case.client, &objects).await.expect("installed");
    case.rig.log_in(Identity::VOLCANO).await.expect("a token");
}

fn start_volcano(case: &Case) -> Process {
    let program = case.rig.assets().program("vc-controller-manager").expect("it is built");
    let mut command = Command::new(program);
    command.arg(format!("--kubeconfig={}", case.rig.kubeconfig(Identity::VOLCANO).display()));
    command.arg(format!("--scheduler-name={}", case.name));
    command.args(["--leader-elect=false", "--logtostderr", "-v=2"]);
    case.rig.run("controllers-of-volcano", command).expect("it starts")
}

fn volcano_job(case: &Case) -> DynamicObject {
    serde_json::from_value(json!({
        "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "vcjob"},
        "spec": {
            "minAvailable": 2, "queue": case.name, "schedulerName": case.name, "maxRetry": 3,
            "tasks": [{
                "name": "worker", "replicas": 2, "minAvailable": 2,
                "template": {"spec": {
                    "restartPolicy": "Never", "terminationGracePeriodSeconds": 0,
                    "containers": [{
                        "name": "main", "image": "registry.example/work:1",
                        "resources": {"requests": {"cpu": "1", "memory": "64Mi"}},
                    }],
                }},
            }],
        },
    }))
    .expect("a job")
}

fn close(queue: &DynamicObject) -> DynamicObject {
    let name = queue.name_any();
    serde_json::from_value(json!({
        "apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command",
        "metadata": {"name": format!("{name}-close")},
        "action": "CloseQueue",
        "target": {
            "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
            "name": name, "uid": queue.uid(), "controller": true,
        },
    }))
    .expect("a command")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_volcanos_controllers_and_alone_and_back_nothing_restarts_and_no_status_has_two_writers()
 {
    let Some(case) = Case::open_managed("beside", 2, cpus(8)).await else { return };
    if !case.rig.assets().has("vc-controller-manager") {
        return case.skip("KUBEBUILDER_ASSETS has no vc-controller-manager");
    }
    let scheduler = case.scheduler(&[]);
    let mut stage = Stage { case, _scheduler: scheduler, seen: BTreeMap::new() };
    let side = format!("{}-side", stage.case.name);
    workload::create_queue(&stage.case.client, &side).await.expect("another queue");
    let (scheduler, ours) = (Identity::SCHEDULER.user, Identity::CONTROLLER.user);
    let volcanos = Identity::VOLCANO.user;

    // Alone.
    stage.submit("alone").await;
    stage.run(3).await;
    stage.queue_is(&side, "Open").await;
    stage.settle(0).await;

    // With Volcano's controllers: its jobs run, and it can close what we have opened.
    install_volcano(&stage.case).await;
    stage.case.restart_controller_with(&[OFF]);
    let from = stage.case.writes().len();
    let mut volcano = start_volcano(&stage.case);
    stage.submit("beside").await;
    let jobs = api(&stage.case, "batch.volcano.sh", "Job", "jobs", stage.case.name);
    jobs.create(&PostParams::default(), &volcano_job(&stage.case)).await.expect("a vcjob");
    stage.run(8).await;
    wait_until("Volcano's job is Running", PATIENCE, async || {
        Ok(jobs.get("vcjob").await?.data["status"]["state"]["phase"] == "Running")
    })
    .await
    .expect("it runs");
    let queue = workload::queues(&stage.case.client).get(&side).await.expect("the queue");
    let commands = api(&stage.case, "bus.volcano.sh", "Command", "commands", "default");
    commands.create(&PostParams::default(), &close(&queue)).await.expect("a command");
    stage.queue_is(&side, "Closed").await;
    let writers = stage.settle(from).await;
    assert!(writers.contains(scheduler) && writers.contains(volcanos), "{writers:?}");
    assert!(!writers.contains(ours), "ours are off: {writers:?}");

    // Alone again.
    volcano.kill();
    stage.case.restart_controller_with(&[]);
    let from = stage.case.writes().len();
    stage.submit("again").await;
    stage.run(11).await;
    let writers = stage.settle(from).await;
    assert!(writers.contains(scheduler) && writers.contains(ours), "{writers:?}");
    assert!(!writers.contains(volcanos), "{writers:?}");
    stage.queue_is(&side, "Closed").await;

    let of_case = stage.case.name;
    let killed = stage.case.writes().iter().filter(|record| {
        let object = record.object_ref.as_ref();
        let pods = object.is_some_and(|it| it.resource == "pods" && it.namespace == of_case);
        pods && record.verb.starts_with("delete")
    });
    assert_eq!(killed.count(), 0, "a pod was deleted");
    stage.case.assert_bound_once(11).await;
    workload::queues(&stage.case.client)
        .delete(&side, &DeleteParams::default())
        .await
        .expect("deleted");
}
