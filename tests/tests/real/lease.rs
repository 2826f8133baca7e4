//! Two schedulers, or two controllers, and one lease: the second takes over, the first never writes again.

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::Api;
use tephra_tests::rig::audit_log::Record;
use tephra_tests::rig::identity::Identity;
use tephra_tests::rig::manifests::SYSTEM_NAMESPACE;
use tephra_tests::rig::patience::{PATIENCE, wait_until};
use tephra_tests::rig::process::Signal;
use tephra_tests::rig::program::{CONTROLLER_LEASE, SCHEDULER_LEASE, SchedulerFlags};
use tephra_tests::rig::workload::{self, PodTemplate};

use crate::case::{Case, cpus};

fn flags(case: &Case, identity: Identity) -> SchedulerFlags {
    SchedulerFlags {
        identity,
        lease: true,
        more: vec!["--bind-concurrency=2".to_owned()],
        ..SchedulerFlags::new(case.name)
    }
}

/// When `identity` got the lease; all its own writes are to come later, all of others earlier.
fn takeover(records: &[Record], identity: Identity) -> Option<usize> {
    records.iter().position(|record| {
        record.user() == identity.user
            && record.accepted()
            && record.resource() == "leases"
            && record.object_ref.as_ref().is_some_and(|object| {
                object.namespace == SYSTEM_NAMESPACE
                    && (object.name == SCHEDULER_LEASE || object.name.is_empty())
            })
    })
}

/// Once the second scheduler has the case's lease the first writes nothing any more, and the second nothing before that.
pub(crate) fn assert_fenced(case: &mut Case) {
    let records = case.writes();
    let at = takeover(records, Identity::RIVAL).expect("the second got the lease");
    let acquired = records[at].answered;
    let late: Vec<_> = records
        .iter()
        .filter(|record| record.user() == Identity::SCHEDULER.user && record.received > acquired)
        .filter(|record| record.accepted() || record.resource() != "leases")
        .collect();
    assert!(late.is_empty(), "the deposed scheduler wrote: {late:#?}");
    let early: Vec<_> = records[..at]
        .iter()
        .filter(|record| record.user() == Identity::RIVAL.user && record.resource() != "leases")
        .collect();
    assert!(early.is_empty(), "the second scheduler wrote before it led: {early:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_scheduler_takes_over_and_the_paused_first_writes_nothing_when_it_resumes() {
    let Some(mut case) = Case::open("lease", 41, cpus(10)).await else { return };
    let mut first = case.start_scheduler(&flags(&case, Identity::SCHEDULER));
    let leases: Api<Lease> = Api::namespaced(case.client.clone(), SYSTEM_NAMESPACE);
    wait_until("the first scheduler holds the lease", PATIENCE, async || {
        Ok(leases.get_opt(SCHEDULER_LEASE).await?.is_some())
    })
    .await
    .expect("a lease");
    let _second = case.start_scheduler(&flags(&case, Identity::RIVAL));

    let gangs: Vec<_> = (0..40).map(|index| case.gang(&format!("gang{index}"), 10, "1")).collect();
    case.create(&gangs).await;
    case.bound(50).await;
    first.signal(Signal::Stop).expect("paused");
    let bound = case.attempted().len();
    assert!(bound < 400, "paused too late to prove anything: {bound} bound");

    case.bound(400).await;
    first.signal(Signal::Continue).expect("resumed");
    let status = first.ended(PATIENCE).await.expect("a deposed scheduler ends");
    assert!(!status.success(), "losing the lease is an error, so that it is restarted: {status}");
    // The survivor still works: whatever the first had queued has had its chance by then.
    case.create(&[case.gang("last", 10, "1")]).await;
    case.bound(410).await;

    let stored = case.assert_bound_once(410).await;
    stored.assert_at_most_per_node(10);
    stored.assert_whole(10);
    assert_fenced(&mut case);
    let by_second = case.writes().iter().filter(|record| record.user() == Identity::RIVAL.user);
    assert!(by_second.filter(|record| record.binding().is_some()).count() > 400 - bound);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_controller_takes_over_when_the_first_is_gone() {
    let Some(mut case) = Case::open("lease-controller", 1, cpus(8)).await else { return };
    case.stop_controller();
    let _scheduler = case.scheduler(&[]);
    let leases: Api<Lease> = Api::namespaced(case.client.clone(), SYSTEM_NAMESPACE);
    let holder = async || {
        let lease = leases.get_opt(CONTROLLER_LEASE).await?;
        anyhow::Ok(lease.and_then(|lease| lease.spec?.holder_identity).unwrap_or_default())
    };
    let mut first = case.start_controller(true, &[]);
    wait_until("the first controller leads", PATIENCE, async || Ok(!holder().await?.is_empty()))
        .await
        .expect("a lease");
    let leader = holder().await.expect("the lease");
    let _second = case.start_controller(true, &[]);
    plain_pods(&case, "before").await;
    case.bound(2).await;
    assert_eq!(holder().await.expect("the lease"), leader, "the second waits");

    first.kill();
    plain_pods(&case, "after").await;
    case.bound(4).await;
    assert_ne!(holder().await.expect("the lease"), leader);
    case.assert_bound_once(4).await;
}

/// Two pods that only a working controller gives PodGroups.
async fn plain_pods(case: &Case, name: &str) {
    let template = PodTemplate {
        scheduler: case.name.to_owned(),
        cpu: "1".to_owned(),
        group: None,
        run_for: None,
    };
    let pods = (0..2).map(|index| (format!("{name}-{index}"), template.clone()));
    workload::create_pods(&case.client, case.name, pods).await.expect("pods");
}
