//! What each fault meets: a queue takes its share back, then a gang of higher priority asks for room in its own queue, with
//! the scheduler behind the fault proxy and the witness beside it.

use std::path::PathBuf;

use kube::api::DeleteParams;
use tephra_simulator::checker::{self, Rules};
use tephra_simulator::history::WriteRecord;
use tephra_tests::proxy::Proxy;
use tephra_tests::rig::identity::Identity;
use tephra_tests::rig::patience::{PATIENCE, wait_for};
use tephra_tests::rig::process::Process;
use tephra_tests::rig::program::SchedulerFlags;
use tephra_tests::rig::witness::Witness;
use tephra_tests::rig::workload::{self, Gang};

use crate::case::{Case, cpus};
use crate::evict::{configuration, create_urgent_class, evicted, running, urgent};

/// The other queue, which takes its share back; named after the case.
const OTHER: &str = "other";
/// How late news may reach the scheduler: longer than any fault here lasts.
const STALENESS_MS: i64 = 30_000;

/// A case with 8 CPUs on two nodes that eight spare pods of the low gang fill, its scheduler behind a proxy.
pub(super) struct Stage {
    pub(super) case: Case,
    pub(super) proxy: Proxy,
    witness: Witness,
    conf: PathBuf,
}

impl Stage {
    /// Prepares it; the scheduler is not started yet.
    pub(super) async fn open(name: &'static str) -> Option<Self> {
        let case = Case::open(name, 2, cpus(4)).await?;
        let config = case.rig.config(Identity::SCHEDULER).await.expect("a configuration");
        let kubeconfig = case.rig.folder().join(format!("proxy-{name}.kubeconfig"));
        let proxy = Proxy::start(config, &kubeconfig).await.expect("the proxy starts");
        create_urgent_class(&case).await;
        let other = format!("{name}-{OTHER}");
        workload::create_queue(&case.client, &other).await.expect("the other queue");
        let witness = Witness::start(case.client.clone()).await.expect("the witness watches");
        let conf = configuration(&case, "enqueue, allocate, preempt, reclaim, backfill");
        Some(Self { case, proxy, witness, conf })
    }

    /// How the case's scheduler is started behind the proxy.
    pub(super) fn flags(&self) -> SchedulerFlags {
        SchedulerFlags {
            kubeconfig: Some(self.proxy.kubeconfig().to_owned()),
            more: vec![format!("--scheduler-conf={}", self.conf.display())],
            ..SchedulerFlags::new(self.case.name)
        }
    }

    pub(super) fn scheduler(&self) -> Process {
        self.case.start_scheduler(&self.flags())
    }

    /// The low gang has all CPUs.
    pub(super) async fn fill(&self) {
        let low = Gang { min_member: 1, ..self.case.gang("low", 8, "1") };
        self.case.create(&[low]).await;
        running(&self.case, "low", 8).await;
    }

    /// Two pods ask in the other queue (reclaim), two of higher priority in the queue of the low gang (preempt).
    pub(super) async fn ask(&self) {
        let queue = format!("{}-{OTHER}", self.case.name);
        let owner = Gang { queue, ..self.case.gang("owner", 2, "1") };
        self.case.create(&[owner]).await;
        self.case.create(&[urgent(&self.case, 2)]).await;
    }

    /// Both gangs run in the room of exactly four low pods, every pod was bound by one request, and the independent checker
    /// finds nothing in the history.
    pub(super) async fn settle(self) {
        self.settle_with(0).await;
    }

    /// The same with so many bound pods besides.
    pub(super) async fn settle_with(mut self, more: usize) {
        for (gang, pods) in [("owner", 2), ("urgent", 2), ("low", 4)] {
            running(&self.case, gang, pods).await;
        }
        self.judge().await;
        assert_eq!(evicted(&mut self.case), 4, "each of four pods asked for the room of one");
        self.case.assert_none_bound_twice();
        let bound = self.case.stored().await.expect("pods");
        assert_eq!(bound.count(), 8 + more);
        bound.assert_at_most_per_node(4);
        let other = format!("{}-{OTHER}", self.case.name);
        let queues = workload::queues(&self.case.client);
        queues.delete(&other, &DeleteParams::default()).await.expect("deleted");
    }

    /// Statuses follow a moment later: what is judged at rest may take a few looks.
    async fn judge(&mut self) {
        let rules = Rules {
            scheduler_name: self.case.name.to_owned(),
            staleness_ms: STALENESS_MS,
            ..Rules::default()
        };
        wait_for("the checker finds nothing", PATIENCE, async || {
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
            let history = self.witness.history(self.case.writes()).await?;
            let history = of_case(history, self.case.name);
            let ours = [Identity::SCHEDULER.user, Identity::RIVAL.user];
            let evicts = |record: &&WriteRecord| {
                record.verb == "delete" && ours.contains(&&*record.identity)
            };
            assert_eq!(history.iter().filter(evicts).count(), 4, "the checker saw the evictions");
            let found = checker::check_with(&history, &rules);
            Ok(if found.is_empty() { Ok(()) } else { Err(format!("{found:#?}")) })
        })
        .await
        .expect("no violation");
    }
}

/// What concerns a case, numbered anew: other queues may hold what earlier cases left in them.
fn of_case(mut history: Vec<WriteRecord>, name: &str) -> Vec<WriteRecord> {
    history.retain(|record| match record.resource.as_str() {
        "pods" | "podgroups" => record.namespace == name,
        "nodes" | "queues" => record.name.starts_with(name),
        _ => true,
    });
    (0..).zip(&mut history).for_each(|(seq, record)| record.seq = seq);
    history
}
