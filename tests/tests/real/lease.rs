//! Two schedulers, one lease: the second takes over, the first never writes again.

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::Api;
use tephra_tests::rig::audit_log::Record;
use tephra_tests::rig::identity::Identity;
use tephra_tests::rig::manifests::SYSTEM_NAMESPACE;
use tephra_tests::rig::patience::{PATIENCE, wait_until};
use tephra_tests::rig::process::Signal;
use tephra_tests::rig::program::SchedulerFlags;

use crate::case::{Case, cpus};

fn flags(case: &Case, identity: Identity) -> SchedulerFlags {
    SchedulerFlags {
        identity,
        lease: Some(case.name.to_owned()),
        more: vec!["--bind-concurrency=2".to_owned()],
        ..SchedulerFlags::new(case.name)
    }
}

/// When `identity` got the lease; all its own writes are to come later, all of others earlier.
fn takeover(records: &[Record], identity: Identity, lease: &str) -> Option<usize> {
    records.iter().position(|record| {
        record.user() == identity.user
            && record.accepted()
            && record.resource() == "leases"
            && record.object_ref.as_ref().is_some_and(|object| {
                object.namespace == SYSTEM_NAMESPACE
                    && (object.name == lease || object.name.is_empty())
            })
    })
}

/// Once the second scheduler has the case's lease the first writes nothing any more, and the second nothing before that.
pub(crate) fn assert_fenced(case: &mut Case) {
    let lease = case.name;
    let records = case.writes();
    let at = takeover(records, Identity::RIVAL, lease).expect("the second got the lease");
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
        Ok(leases.get_opt(case.name).await?.is_some())
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
