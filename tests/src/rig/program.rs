//! The binaries of this project as a user runs them: found beside the running test, started with a kubeconfig.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

use super::identity::Identity;
use super::process::Process;
use super::{Rig, nodes};

/// Folder of the built binaries: `$TEPHRA_BIN`, else the folder that the running executable was built into, where
/// cargo is asked to bring them up to date first (at once when they are).
///
/// # Errors
/// When they cannot be built.
pub fn binaries() -> anyhow::Result<PathBuf> {
    if let Some(folder) = std::env::var_os("TEPHRA_BIN") {
        return Ok(folder.into());
    }
    let executable = std::env::current_exe()?;
    let mut folder = executable.parent().context("the executable has no folder")?;
    if folder.ends_with("deps") {
        folder = folder.parent().context("deps has no parent")?;
    }
    build(folder)?;
    Ok(folder.to_owned())
}

/// Only cargo sets `CARGO`; an executable started by hand takes the binaries as they are.
fn build(folder: &Path) -> anyhow::Result<()> {
    let Some(cargo) = std::env::var_os("CARGO") else { return Ok(()) };
    let target = folder.parent().context("no target folder")?;
    let profile = match folder.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(profile) => profile,
    };
    // With this package selected, too, features are the same as in the build of the tests: nothing is built twice.
    let status = Command::new(cargo)
        .args(["build", "--locked", "--bins", "--profile", profile, "--target-dir"])
        .arg(target)
        .args(["-p", "tephra-scheduler", "-p", "tephra-controller", "-p", "tephra-tests"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null())
        .status()
        .context("running cargo")?;
    ensure!(status.success(), "cargo build of the binaries failed");
    Ok(())
}

/// Name of the scheduler's lease: that of the chart, whose rights hold for no other.
pub const SCHEDULER_LEASE: &str = "volcano";
/// The same of the controllers.
pub const CONTROLLER_LEASE: &str = "vc-controller-manager";

const NO_LEASE: &[&str] = &["--leader-elect=false"];
/// Shorter than the default, but not so short that a busy machine loses it.
const SHORT_LEASE: &[&str] = &[
    "--leader-elect-lease-duration=8s",
    "--leader-elect-renew-deadline=6s",
    "--leader-elect-retry-period=1s",
];

/// How to start a scheduler.
#[derive(Clone, Debug)]
pub struct SchedulerFlags {
    /// Scheduler name and pool: it takes pods of this name and uses nodes of the pool of this name.
    pub pool: String,
    /// Who it is.
    pub identity: Identity,
    /// Where it finds the server, e.g. behind a proxy; `None`: as its identity does.
    pub kubeconfig: Option<PathBuf>,
    /// Whether it works under the chart's lease.
    pub lease: bool,
    /// Further flags.
    pub more: Vec<String>,
}

impl SchedulerFlags {
    /// The scheduler of a pool, without a lease.
    pub fn new(pool: &str) -> Self {
        Self {
            pool: pool.to_owned(),
            identity: Identity::SCHEDULER,
            kubeconfig: None,
            lease: false,
            more: Vec::new(),
        }
    }
}

impl Rig {
    /// Starts `tephra-scheduler`.
    ///
    /// # Errors
    /// When the binary is missing.
    pub fn scheduler(&self, binaries: &Path, flags: &SchedulerFlags) -> anyhow::Result<Process> {
        let mut command = Command::new(program(binaries, "tephra-scheduler")?);
        let kubeconfig = flags.kubeconfig.clone();
        let kubeconfig = kubeconfig.unwrap_or_else(|| self.kubeconfig(flags.identity));
        command.arg(format!("--kubeconfig={}", kubeconfig.display())).args([
            format!("--scheduler-name={}", flags.pool),
            format!("--node-selector={}:{}", nodes::POOL_LABEL, flags.pool),
            "--scheduler-conf=volcano".to_owned(),
            "-v=3".to_owned(),
        ]);
        command.args(if flags.lease { SHORT_LEASE } else { NO_LEASE });
        command.args(&flags.more);
        self.run(&format!("scheduler-{}-{}", flags.pool, flags.identity.user), command)
    }

    /// Starts `tephra-controller` for pods of a scheduler name, with further flags.
    ///
    /// # Errors
    /// When the binary is missing.
    pub fn controller(
        &self,
        binaries: &Path,
        scheduler: &str,
        lease: bool,
        more: &[&str],
    ) -> anyhow::Result<Process> {
        let mut command = Command::new(program(binaries, "tephra-controller")?);
        command.arg(format!("--kubeconfig={}", self.kubeconfig(Identity::CONTROLLER).display()));
        command.args([&format!("--scheduler-name={scheduler}"), "-v=3"]);
        command.args(if lease { SHORT_LEASE } else { NO_LEASE }).args(more);
        self.run("controller", command)
    }
}

fn program(binaries: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let path = binaries.join(name);
    ensure!(path.is_file(), "{} is missing: cargo build -p {name}", path.display());
    Ok(path)
}
