//! Suspension from end to end, under configuration `tephra`: a gang of higher priority needs the whole cluster, the Job (or the
//! plain pods) that has it makes room, and comes back by itself. Scheduler, controller and Job controller are the real ones.

use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use tephra_tests::rig::workload::Gang;

use super::*;
use crate::evict::{create_urgent_class, running, urgent};

/// How long the gang of higher priority runs.
const RUN_FOR: &str = "3s";

impl Stage {
    /// The queue's jobs are asked for a checkpoint before they are stopped.
    async fn ask_for_checkpoints(&self) {
        let kind = GroupVersionKind::gvk("tephra.sh", "v1alpha1", "QueuePolicy");
        let kind = ApiResource::from_gvk_with_plural(&kind, "queuepolicies");
        let api: Api<DynamicObject> = Api::all_with(self.case.client.clone(), &kind);
        let policy = json!({
            "apiVersion": "tephra.sh/v1alpha1", "kind": "QueuePolicy",
            "metadata": {"name": self.case.name},
            "spec": {"preemption": {"checkpoint": {"mode": "Ack", "grace": "2m"}}},
        });
        let policy = serde_json::from_value(policy).expect("a policy");
        api.create(&PostParams::default(), &policy).await.expect("the policy");
    }

    /// A gang that needs all there is, and ends by itself.
    async fn urgent_gang(&self) {
        create_urgent_class(&self.case).await;
        let gang = Gang { run_for: Some(RUN_FOR.to_owned()), ..urgent(&self.case, CPUS) };
        self.case.create(&[gang]).await;
    }

    /// The intent that the scheduler has written.
    async fn intent(&self) -> Value {
        let wanted = |group: &Value| text(group, SUSPEND).is_some();
        let group = self.case.pod_group_where(GANG, "is asked to make room", wanted).await;
        serde_json::from_str(text(&group, SUSPEND).expect("an intent")).expect("JSON")
    }

    fn crash(&mut self) {
        self.transition();
        if self.kills {
            self.scheduler.kill();
            self.scheduler = self.case.scheduler(&[CONF]);
        }
    }

    /// The gang makes room, and is back when that is free again. Pods acknowledge where they are asked.
    async fn makes_room(&mut self, asked: bool) {
        let before = self.run().await;
        self.urgent_gang().await;
        if asked {
            let intent = self.intent().await;
            self.crash();
            assert_eq!(intent["by"], format!("{}/urgent", self.case.name));
            let id = intent["id"].as_str().expect("an id").to_owned();
            for pod in self.asked(&id).await {
                self.acknowledge(&pod, &id).await;
            }
            self.crash();
        }
        self.recorded().await;
        self.crash();
        running(&self.case, "urgent", u64::from(CPUS)).await;
        self.crash();
        // It ends, and the other one is back: by other pods than before.
        let gone = uids(&before);
        let runs = |pod: &&Value| {
            let new = !gone.contains(&pod["metadata"]["uid"]);
            new && pod["status"]["phase"] == "Running" && !leaves(pod)
        };
        let back = |pods: &[Value]| pods.iter().filter(runs).count() == PODS;
        self.pods_where("the gang is back", back).await;
        self.free().await;
    }

    /// No pod was deleted by the scheduler; what was stopped was stopped after its record.
    fn assert_asked_only(&mut self) {
        let scheduler = Identity::SCHEDULER.user;
        let deletes = self
            .places(|it| it.user() == scheduler && it.verb == "delete" && it.resource() == "pods");
        assert_eq!(deletes, [0; 0]);
    }
}

/// A Job makes room and comes back, and nothing counts as a failure of its.
async fn a_job_makes_room(stage: &mut Stage) {
    stage.ask_for_checkpoints().await;
    stage.job().await;
    stage.makes_room(true).await;
    stage.assert_job_unharmed(1).await;
    stage.case.assert_none_bound_twice();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_makes_room_for_a_gang_of_higher_priority_and_comes_back_by_itself() {
    let stage = Stage::open_with("suspend-whole", false, 2, &[CONF]).await;
    let Some(mut stage) = stage else { return };
    a_job_makes_room(&mut stage).await;
    stage.assert_asked_only();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_suspension_goes_on_although_both_programs_are_killed_at_each_transition() {
    let stage = Stage::open_with("suspend-crashes", true, 2, &[CONF]).await;
    let Some(mut stage) = stage else { return };
    a_job_makes_room(&mut stage).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plain_pods_make_room_and_come_back_by_themselves() {
    let stage = Stage::open_with("suspend-pods", false, 2, &[CONF]).await;
    let Some(mut stage) = stage else { return };
    let gang = stage.case.gang(GANG, u32::try_from(PODS).expect("few"), "1");
    stage.case.create(&[gang]).await;
    stage.recreate().await;
    stage.makes_room(false).await;
    stage.assert_asked_only();
}
