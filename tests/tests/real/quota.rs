//! Jobs in a namespace with a ResourceQuota: kube-apiserver enforces it, kube-controller-manager counts it and creates the pods.
//! A gang waits in its queue while the quota is full, and nobody fails.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Pod, ResourceQuota};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams, PropagationPolicy};
use serde_json::{Value, json};
use tempfile::TempDir;
use tephra_tests::rig::patience::{PATIENCE, wait_for};
use tephra_tests::rig::process::Process;
use tephra_tests::rig::workload;

use crate::case::{Case, condition, cpus};

const CONF: &str = "\
actions: \"enqueue, allocate\"
tiers:
- plugins:
  - {name: priority}
  - {name: gang}
  - {name: resourcequota}
- plugins:
  - {name: predicates}
  - {name: nodeorder}
";

/// A case with a quota `q` of cpu requests, and a scheduler that respects it.
struct Stage {
    case: Case,
    _scheduler: Process,
    _conf: TempDir,
}

impl Stage {
    async fn open(name: &'static str, cpu: u32) -> Option<Self> {
        let case = Case::open_managed(name, 2, cpus(8)).await?;
        let conf = tempfile::tempdir().expect("a folder");
        let path = conf.path().join("scheduler.conf");
        std::fs::write(&path, CONF).expect("a configuration");
        let scheduler = case.scheduler(&[&format!("--scheduler-conf={}", path.display())]);
        let stage = Self { case, _scheduler: scheduler, _conf: conf };
        let quota = json!({
            "metadata": {"name": "q"}, "spec": {"hard": {"requests.cpu": cpu.to_string()}},
        });
        let quota = serde_json::from_value(quota).expect("a quota");
        stage.quotas().create(&PostParams::default(), &quota).await.expect("the quota");
        stage.quota_where("it is counted", "hard", &cpu.to_string()).await;
        Some(stage)
    }

    fn quotas(&self) -> Api<ResourceQuota> {
        Api::namespaced(self.case.client.clone(), self.case.name)
    }

    fn jobs(&self) -> Api<Job> {
        Api::namespaced(self.case.client.clone(), self.case.name)
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.case.client.clone(), self.case.name)
    }

    async fn quota_where(&self, what: &str, list: &str, cpu: &str) {
        let look = async || {
            let quota = serde_json::to_value(self.quotas().get("q").await?)?;
            let told = &quota["status"][list]["requests.cpu"];
            Ok(if told == cpu { Ok(()) } else { Err(quota["status"].to_string()) })
        };
        wait_for(what, PATIENCE, look).await.expect("as wanted");
    }

    /// A pod of 1 cpu of another scheduler; `Err` with the code when the API server refuses it.
    async fn foreign_pod(&self, name: &str) -> Result<(), u16> {
        let pod = json!({
            "metadata": {"name": name},
            "spec": {
                "schedulerName": "another", "terminationGracePeriodSeconds": 0,
                "containers": [container()],
            },
        });
        let pod: Pod = serde_json::from_value(pod).expect("a pod");
        match self.pods().create(&PostParams::default(), &pod).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) => Err(status.code),
            Err(error) => panic!("{error}"),
        }
    }

    async fn remove_pod(&self, name: &str) {
        let now = DeleteParams::default().grace_period(0);
        self.pods().delete(name, &now).await.expect("deleted");
    }

    async fn pod_group(&self, name: &str, members: u32) {
        let amount = members.to_string();
        let group = json!({
            "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
            "metadata": {"name": name},
            "spec": {
                "minMember": members, "queue": self.case.name,
                "minResources": {"cpu": amount, "requests.cpu": amount},
            },
        });
        let group = serde_json::from_value(group).expect("a PodGroup");
        let api = workload::pod_groups(&self.case.client, self.case.name);
        api.create(&PostParams::default(), &group).await.expect("the PodGroup");
    }

    /// A Job of pods of 1 cpu that all have to start together, with its PodGroup. The first pod that fails ends it.
    async fn job(&self, name: &str, members: u32) {
        self.pod_group(name, members).await;
        let job = json!({
            "metadata": {"name": name},
            "spec": {
                "parallelism": members, "completions": members, "backoffLimit": 0,
                "template": {
                    "metadata": {"annotations": {
                        "scheduling.k8s.io/group-name": name, "tephra.sh/run-for": "100ms",
                    }},
                    "spec": {
                        "schedulerName": self.case.name, "restartPolicy": "Never",
                        "containers": [container()],
                    },
                },
            },
        });
        let job: Job = serde_json::from_value(job).expect("a Job");
        self.jobs().create(&PostParams::default(), &job).await.expect("the Job");
    }

    /// Waits until the Job is complete: no pod of it has failed, and it was never `Failed` itself.
    async fn completes(&self, name: &str, members: u32) {
        let look = async || {
            let job = serde_json::to_value(self.jobs().get(name).await?)?;
            let done = condition(&job, "Complete")["status"] == "True";
            Ok(if done { Ok(job) } else { Err(job["status"].to_string()) })
        };
        let job = wait_for(&format!("Job {name} completes"), PATIENCE, look).await.expect("it");
        assert_eq!(job["status"]["succeeded"], members);
        assert!(matches!(job["status"]["failed"].as_u64(), None | Some(0)), "{job}");
        assert_eq!(*condition(&job, "Failed"), Value::Null);
    }

    /// How many pods of Jobs the API server has refused for the quota.
    fn refused_pods(&mut self) -> usize {
        let namespace = self.case.name;
        let records = self.case.writes().iter();
        let refused = records.filter(|record| {
            let of_pods = record.resource() == "pods" && record.verb == "create";
            let here = record.object_ref.as_ref().is_some_and(|it| it.namespace == namespace);
            of_pods
                && here
                && record.code() == Some(403)
                && record.user().contains("job-controller")
        });
        refused.count()
    }
}

fn container() -> Value {
    json!({
        "name": "main", "image": "registry.example/work:1",
        "resources": {"requests": {"cpu": "1", "memory": "64Mi"}},
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_waits_while_the_quota_is_full_and_completes_when_it_is_raised() {
    let Some(mut stage) = Stage::open("quota-raised", 2).await else { return };
    stage.foreign_pod("full-0").await.expect("room");
    stage.foreign_pod("full-1").await.expect("room");
    stage.quota_where("it is full", "used", "2").await;
    stage.job("train", 2).await;

    let waits = |group: &Value| {
        let message = condition(group, "Unschedulable")["message"].as_str().unwrap_or_default();
        message.contains(
            "requested: requests.cpu 2, used: requests.cpu 2, limited: requests.cpu 2 (quota q)",
        )
    };
    let group = stage.case.pod_group_where("train", "waits for the quota", waits).await;
    assert_eq!(group["status"]["phase"], "Pending");
    wait_for("the Job's pods are refused", PATIENCE, async || {
        let count = stage.refused_pods();
        Ok(if count >= 2 { Ok(()) } else { Err(format!("{count}")) })
    })
    .await
    .expect("refused");
    assert_eq!(stage.case.stored().await.expect("pods").count(), 0);

    let raised = json!({"spec": {"hard": {"requests.cpu": "4"}}});
    let (by, patch) = (PatchParams::default(), Patch::Merge(&raised));
    stage.quotas().patch("q", &by, &patch).await.expect("raised");
    let admitted = |group: &Value| group["status"]["phase"] != "Pending";
    stage.case.pod_group_where("train", "is admitted", admitted).await;
    stage.completes("train", 2).await;
    let group = stage.case.pod_group("train").await;
    assert_ne!(condition(&group, "Unschedulable")["status"], "True", "{group}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn foreign_pods_that_race_for_the_last_unit_lose_nobody_and_leave_nothing_promised() {
    let Some(stage) = Stage::open("quota-race", 2).await else { return };
    stage.foreign_pod("resident").await.expect("room");
    let mut foreign_won = 0;
    for round in 0..20 {
        let (job, rival) = (format!("race-{round}"), format!("rival-{round}"));
        // The rival is early in one round and late in the next.
        let rival_came = if round % 2 == 0 {
            tokio::join!(stage.job(&job, 1), stage.foreign_pod(&rival)).1
        } else {
            stage.job(&job, 1).await;
            stage.foreign_pod(&rival).await
        };
        match rival_came {
            Ok(()) => {
                foreign_won += 1;
                stage.remove_pod(&rival).await;
            }
            Err(code) => assert_eq!(code, 403, "the quota alone refuses"),
        }
        stage.completes(&job, 1).await;
        let gone = DeleteParams {
            propagation_policy: Some(PropagationPolicy::Background),
            ..DeleteParams::default()
        };
        stage.jobs().delete(&job, &gone).await.expect("deleted");
    }
    assert!(foreign_won > 0, "there was no race");
    stage.remove_pod("resident").await;
    stage.quota_where("nobody uses it", "used", "0").await;
    // A gang that needs all of the quota is let in only if nothing of it is promised.
    stage.pod_group("everything", 2).await;
    let admitted = |group: &Value| group["status"]["phase"] == "Inqueue";
    stage.case.pod_group_where("everything", "is admitted", admitted).await;
}
