//! A person suspends a Job and lets it run again, by the program's commands: nobody else undoes it.

use std::process::Command;

use tephra_tests::rig::program;

use super::*;

impl Stage {
    /// Runs `tephra` as an administrator; what it printed.
    fn tephra(&self, line: &str) -> String {
        let binaries = program::binaries().expect("built");
        let mut command = Command::new(binaries.join("tephra"));
        command.args(line.split_whitespace()).args(["-n", self.case.name]);
        command.env("KUBECONFIG", self.case.rig.kubeconfig(Identity::ADMIN));
        let output = command.output().expect("the program");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        text
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_a_person_suspends_stays_down_until_that_person_lets_it_run() {
    let stage = Stage::open_with("suspend-person", false, 1, &[CONF]).await;
    let Some(stage) = stage else { return };
    stage.job().await;
    stage.run().await;
    let runs = |group: &Value| group["status"]["phase"] == "Running";
    stage.case.pod_group_where(GANG, "runs", runs).await;
    assert_eq!(stage.tephra("why train"), "suspend-person/train is Running\n");
    let said = stage.tephra("suspend train --reason Maintenance");
    assert_eq!(said, "suspend-person/train: will be suspended until `tephra resume`\n");
    stage.pods_where("its pods are gone", <[Value]>::is_empty).await;
    let down = |group: &Value| text(group, SUSPEND).is_none() && text(group, SUSPENDED).is_some();
    stage.case.pod_group_where(GANG, "is down", down).await;
    let why = stage.tephra("why train");
    assert!(why.contains("by a person (Maintenance)\n  held by user"), "{why}");
    // There is room for it all the time; another gang starts and ends, so sessions have passed.
    let other = stage.case.gang("other", 4, "1");
    stage.case.create(&[other]).await;
    crate::evict::running(&stage.case, "other", 4).await;
    let job = stage.jobs().get(GANG).await.expect("the Job");
    assert_eq!(job.spec.and_then(|spec| spec.suspend), Some(true));
    let said = stage.tephra("resume train");
    assert_eq!(said, "suspend-person/train: runs again when there is room for it\n");
    stage.run().await;
    stage.free().await;
    stage.assert_job_unharmed(1).await;
}
