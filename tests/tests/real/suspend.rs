//! Suspension by the controller, with the real Job controller: told before it is stopped, recorded before its pods go, back when
//! it is let. The cases here play the scheduler's part of the protocol, and the training script's; [`whole`] has the scheduler too.

mod kinds;
mod person;
mod whole;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tephra_tests::rig::audit_log::Record;
use tephra_tests::rig::identity::Identity;
use tephra_tests::rig::patience::{PATIENCE, wait_for};
use tephra_tests::rig::process::Process;
use tephra_tests::rig::workload;

use crate::case::{Case, cpus};

const SUSPEND: &str = "tephra.sh/suspend";
const SUSPENDED: &str = "tephra.sh/suspended";
const CONF: &str = "--scheduler-conf=tephra";
const REQUEST: &str = "tephra.sh/checkpoint-request";
/// PodGroup of every case.
const GANG: &str = "train";
const PODS: usize = 4;
const CPUS: u32 = 8;

struct Stage {
    case: Case,
    scheduler: Process,
    /// The controller is killed at each transition.
    kills: bool,
}

impl Stage {
    async fn open(name: &'static str, kills: bool) -> Option<Self> {
        Self::open_with(name, kills, 2, &[]).await
    }

    /// So many nodes with [`CPUS`] together.
    async fn open_with(
        name: &'static str,
        kills: bool,
        nodes: u32,
        flags: &[&str],
    ) -> Option<Self> {
        let case = Case::open_managed(name, nodes, cpus(CPUS / nodes)).await?;
        let scheduler = case.scheduler(flags);
        Some(Self { case, scheduler, kills })
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.case.client.clone(), self.case.name)
    }

    fn jobs(&self) -> Api<Job> {
        Api::namespaced(self.case.client.clone(), self.case.name)
    }

    /// A Job of [`PODS`] pods that run until they are deleted, with its PodGroup. The first pod that fails ends it.
    async fn job(&self) {
        let gang = self.case.gang(GANG, u32::try_from(PODS).expect("few"), "1");
        workload::create_pod_groups(&self.case.client, self.case.name, &[gang]).await.expect("it");
        let job = json!({
            "metadata": {"name": GANG},
            "spec": {
                "parallelism": PODS, "completions": PODS, "completionMode": "Indexed",
                "backoffLimit": 0,
                "template": {
                    "metadata": {"annotations": {"scheduling.k8s.io/group-name": GANG}},
                    "spec": {
                        "schedulerName": self.case.name, "restartPolicy": "Never",
                        "containers": [{
                            "name": "main", "image": "registry.example/work:1",
                            "resources": {"requests": {"cpu": "1", "memory": "64Mi"}},
                        }],
                    },
                },
            },
        });
        let job: Job = serde_json::from_value(job).expect("a Job");
        self.jobs().create(&PostParams::default(), &job).await.expect("the Job");
    }

    /// Pods of the gang as JSON, by name.
    async fn gang(&self) -> Vec<Value> {
        let list = self.pods().list(&ListParams::default()).await.expect("pods");
        let pods = list.into_iter().map(|pod| serde_json::to_value(pod).expect("JSON"));
        pods.filter(|pod| text(pod, "scheduling.k8s.io/group-name") == Some(GANG)).collect()
    }

    async fn pods_where(&self, what: &str, wanted: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        let look = async || {
            let pods = self.gang().await;
            Ok(if wanted(&pods) { Ok(pods) } else { Err(json!(pods).to_string()) })
        };
        wait_for(what, PATIENCE, look).await.expect("as wanted")
    }

    async fn run(&self) -> Vec<Value> {
        let runs = |pod: &Value| pod["status"]["phase"] == "Running" && !leaves(pod);
        self.pods_where("the gang runs", |pods| pods.len() == PODS && pods.iter().all(runs)).await
    }

    /// Its pods shall be created again when they had to go.
    async fn recreate(&self) {
        for pod in self.run().await {
            let name = pod["metadata"]["name"].as_str().expect("a name");
            let patch = json!({"metadata": {"annotations": {"tephra.sh/recreate": "true"}}});
            let patch = Patch::Merge(&patch);
            self.pods().patch(name, &PatchParams::default(), &patch).await.expect("annotated");
        }
    }

    async fn annotate_group(&self, key: &str, value: Value) {
        let patch = json!({"metadata": {"annotations": {(key): value}}});
        let groups = workload::pod_groups(&self.case.client, self.case.name);
        groups.patch(GANG, &PatchParams::default(), &Patch::Merge(&patch)).await.expect("patched");
    }

    /// The scheduler wants the room, and rests from then on. Returns the deadline.
    async fn intend(&mut self, id: &str, mode: &str, seconds: i64) -> Timestamp {
        self.scheduler.kill();
        let deadline = Timestamp::now() + SignedDuration::from_secs(seconds);
        let intent = json!({
            "id": id, "by": "ns/big", "reason": "Preempt", "deadline": deadline.to_string(),
            "mode": mode,
        });
        self.annotate_group(SUSPEND, json!(intent.to_string())).await;
        deadline
    }

    async fn acknowledge(&self, pod: &Value, id: &str) {
        let name = pod["metadata"]["name"].as_str().expect("a name");
        let patch = json!({"metadata": {"annotations": {"tephra.sh/checkpoint-ack": id}}});
        let patch = Patch::Merge(&patch);
        self.pods().patch(name, &PatchParams::default(), &patch).await.expect("acknowledged");
    }

    async fn asked(&self, id: &str) -> Vec<Value> {
        let asked = |pod: &Value| {
            let request = pod["metadata"]["annotations"][REQUEST].as_str().unwrap_or_default();
            request.starts_with(&format!("{id};deadline=")) && !leaves(pod)
        };
        self.pods_where("all are asked", |pods| pods.len() == PODS && pods.iter().all(asked)).await
    }

    /// Waits until the gang is down, and returns the record.
    async fn down(&self) -> Value {
        let down =
            |group: &Value| text(group, SUSPENDED).is_some() && text(group, SUSPEND).is_none();
        let group = self.case.pod_group_where(GANG, "is down", down).await;
        assert!(self.gang().await.iter().all(leaves), "down, but pods run");
        serde_json::from_str(text(&group, SUSPENDED).expect("a record")).expect("JSON")
    }

    /// Waits until nothing of the protocol is left on the PodGroup.
    async fn free(&self) {
        let free = |group: &Value| {
            [SUSPEND, SUSPENDED, "tephra.sh/resume"].iter().all(|key| text(group, key).is_none())
        };
        self.case.pod_group_where(GANG, "nothing of the protocol is left", free).await;
    }

    /// Waits until the point of no return: the record is written.
    async fn recorded(&self) {
        let recorded = |group: &Value| text(group, SUSPENDED).is_some();
        self.case.pod_group_where(GANG, "is recorded", recorded).await;
    }

    /// Lets it run again and waits until all of it does, by other pods than before.
    async fn resume(&mut self, id: &str, before: &[Value]) -> Vec<Value> {
        self.annotate_group("tephra.sh/resume", json!(id)).await;
        self.transition();
        self.free().await;
        self.transition();
        self.scheduler = self.case.scheduler(&[]);
        let after = self.run().await;
        assert!(uids(&after).iter().all(|uid| !uids(before).contains(uid)), "an old pod");
        after
    }

    fn transition(&mut self) {
        if self.kills {
            self.case.restart_controller();
        }
    }

    /// The Job runs, has not failed anything, and carries nothing of the protocol but its history.
    async fn assert_job_unharmed(&self, suspensions: u64) {
        let job =
            serde_json::to_value(self.jobs().get(GANG).await.expect("the Job")).expect("JSON");
        assert_eq!(job["spec"]["suspend"], false);
        assert!(matches!(job["status"]["failed"].as_u64(), None | Some(0)), "{job}");
        assert_eq!(text(&job, SUSPENDED), None);
        let history = text(&job, "tephra.sh/suspensions").expect("its history");
        let history: Value = serde_json::from_str(history).expect("JSON");
        assert_eq!(history["suspensions"], suspensions);
    }

    /// Accepted writes of the case that `wanted` tells apart, in the order in which the server answered.
    fn places(&mut self, wanted: impl Fn(&Record) -> bool) -> Vec<usize> {
        let namespace = self.case.name;
        let here = |record: &Record| {
            record.object_ref.as_ref().is_some_and(|it| it.namespace == namespace)
        };
        let writes = self.case.writes().iter().enumerate();
        let found = writes.filter(|(_, it)| it.accepted() && here(it) && wanted(it));
        found.map(|(place, _)| place).collect()
    }
}

fn leaves(pod: &Value) -> bool {
    !pod["metadata"]["deletionTimestamp"].is_null()
}

fn text<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object["metadata"]["annotations"][key].as_str()
}

fn uids(pods: &[Value]) -> Vec<Value> {
    pods.iter().map(|pod| pod["metadata"]["uid"].clone()).collect()
}

fn by_controller(record: &Record, verb: &str, resource: &str) -> bool {
    record.user() == Identity::CONTROLLER.user
        && record.verb == verb
        && record.resource() == resource
}

fn time(record: &Value, field: &str) -> Timestamp {
    record[field].as_str().and_then(|at| at.parse().ok()).expect("a time")
}

/// Notice, acknowledgements, record, stop, resume of a Job, and that they come in this order.
async fn a_life(mut stage: Stage) {
    stage.job().await;
    let before = stage.run().await;
    let deadline = stage.intend("s-1", "Ack", 600).await;
    stage.transition();
    let asked = stage.asked("s-1").await;
    stage.transition();
    for pod in &asked {
        assert_eq!(
            stage.case.pod_group(GANG).await["metadata"]["annotations"][SUSPENDED],
            Value::Null
        );
        stage.acknowledge(pod, "s-1").await;
    }
    stage.transition();
    stage.recorded().await;
    stage.transition();
    let record = stage.down().await;
    assert!(time(&record, "at") < deadline, "{record}");
    assert_eq!(
        (&record["members"][0]["count"], &record["owner"]["kind"]),
        (&json!(PODS), &json!("Job"))
    );
    assert_eq!(record["members"].as_array().map(Vec::len), Some(1), "{record}");
    let job = serde_json::to_value(stage.jobs().get(GANG).await.expect("the Job")).expect("JSON");
    assert_eq!(job["spec"]["suspend"], true);
    stage.transition();
    stage.resume("s-1", &before).await;
    stage.assert_job_unharmed(1).await;

    let acks = stage.places(|it| {
        it.user() == Identity::ADMIN.user && it.verb == "patch" && it.resource() == "pods"
    });
    let records = stage.places(|it| by_controller(it, "patch", "podgroups"));
    let stops = stage.places(|it| by_controller(it, "patch", "jobs"));
    let deaths = stage.places(|it| it.verb == "delete" && it.resource() == "pods");
    assert_eq!((acks.len(), deaths.len() >= PODS), (PODS, true));
    assert!(acks.last() < records.first(), "recorded before all had acknowledged");
    assert!(records.first() < stops.first(), "stopped before it was recorded");
    assert!(stops.first() < deaths.first(), "a pod died before its Job was suspended");
    assert_eq!(stops.len(), 2, "one patch stops the Job, one lets it run");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_is_told_before_it_is_stopped_and_runs_again_when_it_is_let() {
    let Some(stage) = Stage::open("suspend", false).await else { return };
    a_life(stage).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_controller_killed_at_each_transition_of_a_suspension_loses_nothing() {
    let Some(stage) = Stage::open("suspend-killed", true).await else { return };
    a_life(stage).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_of_which_one_pod_is_silent_is_stopped_at_the_deadline_and_that_is_told() {
    let Some(mut stage) = Stage::open("suspend-deadline", false).await else { return };
    stage.job().await;
    let before = stage.run().await;
    let deadline = stage.intend("s-1", "Ack", 3).await;
    for pod in &stage.asked("s-1").await[1..] {
        stage.acknowledge(pod, "s-1").await;
    }
    let record = stage.down().await;
    assert!(time(&record, "at") >= deadline, "{record}");
    let silent = before[0]["metadata"]["name"].as_str().expect("a name");
    let events: Api<Event> = Api::namespaced(stage.case.client.clone(), stage.case.name);
    wait_for("the event", PATIENCE, async || {
        let all = events.list(&ListParams::default()).await?;
        let told = all.iter().find(|it| it.reason.as_deref() == Some("CheckpointNotAcknowledged"));
        let text = told.and_then(|event| event.message.clone()).unwrap_or_default();
        Ok(if text.contains(silent) && text.starts_with("1 pods") { Ok(()) } else { Err(text) })
    })
    .await
    .expect("it is told");
    stage.resume("s-1", &before).await;
    // A second time: it is no failure either, and it is counted.
    let before = stage.run().await;
    stage.intend("s-2", "None", 0).await;
    stage.down().await;
    stage.resume("s-2", &before).await;
    stage.assert_job_unharmed(2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_intent_that_is_withdrawn_stops_nobody() {
    let Some(mut stage) = Stage::open("suspend-withdrawn", true).await else { return };
    stage.job().await;
    let before = stage.run().await;
    stage.intend("s-1", "Ack", 600).await;
    stage.asked("s-1").await;
    stage.annotate_group(SUSPEND, Value::Null).await;
    stage.transition();
    let quiet = |pods: &[Value]| pods.iter().all(|pod| text(pod, REQUEST).is_none());
    let after = stage.pods_where("the requests are taken back", quiet).await;
    assert_eq!(uids(&before), uids(&after));
    assert_eq!(stage.places(|it| it.verb == "delete" && it.resource() == "pods"), [0; 0]);
    assert_eq!(stage.places(|it| by_controller(it, "patch", "jobs")), [0; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plain_pods_are_evicted_and_created_again_also_by_a_controller_that_is_killed() {
    // One node: what the server copies from it is the same wherever a pod comes back.
    let Some(mut stage) = Stage::open_with("suspend-plain", true, 1, &[]).await else { return };
    let gang = stage.case.gang(GANG, u32::try_from(PODS).expect("few"), "1");
    stage.case.create(&[gang]).await;
    stage.recreate().await;
    let before = stage.run().await;
    stage.intend("s-1", "None", 600).await;
    stage.transition();
    let record = stage.down().await;
    stage.transition();
    assert_eq!(record["members"][0]["count"], PODS);
    assert_eq!(record.get("owner"), None);
    let after = stage.resume("s-1", &before).await;
    let kept = |pods: &[Value]| -> Vec<Value> {
        let of = |pod: &Value| {
            json!([
                pod["metadata"]["name"],
                pod["metadata"]["labels"],
                pod["spec"]["containers"][0]["resources"]
            ])
        };
        pods.iter().map(of).collect()
    };
    assert_eq!(kept(&before), kept(&after));
    let evictions = stage.places(|it| by_controller(it, "create", "pods/eviction"));
    assert_eq!(evictions.len(), PODS);
}
