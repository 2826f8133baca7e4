//! A real control plane without containers: etcd, kube-apiserver and, where a suite asks for them,
//! kube-controller-manager and kwok (which plays nodes and pods), as child processes on free ports of 127.0.0.1 with a
//! temporary folder. Suites and the end-to-end bench start one themselves and leave nothing behind.
//!
//! [`Rig`] is the running control plane, [`program`] starts the binaries of this project against it, [`audit_log`]
//! reads what the API server itself saw (who wrote what, and what became of it): judgements about writers rest
//! on that, never on logs of the programs under test. The programs of the control plane come from `tests/rig/build.sh`.

pub mod assets;
pub mod audit_log;
pub mod chart;
pub mod component;
pub mod identity;
pub mod manifests;
pub mod nodes;
pub mod patience;
pub mod pki;
pub mod process;
pub mod program;
pub mod rights;
pub mod warden;
pub mod witness;
pub mod workload;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tempfile::TempDir;

use assets::Assets;
use audit_log::{AuditLog, Record};
use component::{Component, Layout, Ports};
use identity::Identity;
use process::Process;
use warden::Warden;

/// Tries to boot: another process may take a port between our looking for it and its use.
const TRIES: u32 = 3;
/// How long a component may take to answer; generous, since the machine may be busy compiling.
const BOOT: Duration = Duration::from_secs(180);

/// What runs beside etcd and the API server.
#[derive(Clone, Copy, Debug, Default)]
pub struct RigOptions {
    /// kube-controller-manager: Jobs, Deployments, garbage collection. Costs 2-6 CPU seconds at the start.
    pub controller_manager: bool,
    /// kwok: nodes stay Ready, bound pods run and end (`tests/rig/stages.yaml`).
    pub kwok: bool,
}

/// A running control plane; ends when dropped, and also when this process is killed.
#[derive(Debug)]
pub struct Rig {
    layout: Layout,
    processes: Mutex<BTreeMap<Component, Process>>,
    warden: Warden,
    // Last: its folder holds the logs and data of all above.
    folder: TempDir,
}

impl Rig {
    /// Starts a control plane and waits until it serves; installs the CRDs and the chart.
    ///
    /// # Errors
    /// When a program does not start or does not answer in time; the text ends with its log's last lines.
    pub async fn start(assets: &Assets, options: RigOptions) -> anyhow::Result<Self> {
        let mut tries = 1;
        loop {
            let rig = Self::prepare(assets, options).context("preparing the rig")?;
            match rig.boot(options).await {
                Ok(()) => return Ok(rig),
                Err(_) if tries < TRIES && rig.address_was_taken() => tries += 1,
                Err(error) => return Err(error),
            }
        }
    }

    fn prepare(assets: &Assets, options: RigOptions) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new().prefix("tephra-rig-").tempdir()?;
        let warden = Warden::start(folder.path())?;
        pki::write(&folder.path().join("pki"))?;
        let layout = Layout {
            folder: folder.path().to_owned(),
            assets: assets.clone(),
            ports: Ports::free()?,
            controller_manager: options.controller_manager,
        };
        identity::write_tokens(&layout.tokens())?;
        std::fs::write(layout.audit_policy(), audit_log::POLICY)?;
        for identity in identity::TABLE {
            identity.write_kubeconfig(&layout)?;
        }
        Ok(Self { layout, processes: Mutex::default(), warden, folder })
    }

    async fn boot(&self, options: RigOptions) -> anyhow::Result<()> {
        self.spawn(Component::Etcd)?;
        self.spawn(Component::ApiServer)?;
        self.wait_ready().await?;
        let client = self.client(Identity::ADMIN).await?;
        manifests::install(&client, &self.layout.assets).await.context("installing the chart")?;
        for identity in identity::OURS {
            self.log_in(identity).await?;
        }
        if options.controller_manager {
            self.spawn(Component::ControllerManager)?;
        }
        if options.kwok {
            self.spawn(Component::Kwok)?;
        }
        Ok(())
    }

    fn spawn(&self, component: Component) -> anyhow::Result<()> {
        let command = component.command(&self.layout)?;
        let process = Process::spawn(component.name(), command, self.folder(), &self.warden)?;
        self.processes().insert(component, process);
        Ok(())
    }

    /// Waits until the API server serves and everything behind it is well.
    ///
    /// # Errors
    /// When it ends or does not answer within three minutes.
    pub async fn wait_ready(&self) -> anyhow::Result<()> {
        let client = self.client(Identity::ADMIN).await?;
        let deadline = Instant::now() + BOOT;
        loop {
            let request = http::Request::get("/readyz").body(Vec::new())?;
            let Err(error) = client.request_text(request).await else { return Ok(()) };
            for (component, process) in self.processes().iter_mut() {
                if !process.is_running() {
                    bail!("{component:?} ended while booting\n{}", process.log_tail(20));
                }
            }
            if Instant::now() > deadline {
                let tail = self.log_tail(Component::ApiServer, 20);
                bail!("the API server is not ready after {BOOT:?}: {error}\n{tail}");
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    fn address_was_taken(&self) -> bool {
        let taken = |process: &Process| process.log_tail(50).contains("address already in use");
        self.processes().values().any(taken)
    }

    /// Ends a component as a power cut would (SIGKILL).
    ///
    /// # Errors
    /// When it does not run.
    pub fn kill(&self, component: Component) -> anyhow::Result<()> {
        let mut processes = self.processes();
        let process = processes.remove(&component);
        process.with_context(|| format!("{component:?} does not run"))?.kill();
        Ok(())
    }

    /// Starts a component again, on the same port and data, after [`Rig::kill`].
    ///
    /// # Errors
    /// As [`Rig::start`].
    pub async fn restart(&self, component: Component) -> anyhow::Result<()> {
        self.spawn(component)?;
        match component {
            Component::Etcd | Component::ApiServer => self.wait_ready().await,
            Component::ControllerManager | Component::Kwok => Ok(()),
        }
    }

    /// Gets the token of an identity that is a service account, so that a kubeconfig and clients can be had for it.
    ///
    /// # Errors
    /// When the account does not exist.
    pub async fn log_in(&self, identity: Identity) -> anyhow::Result<()> {
        let client = self.client(Identity::ADMIN).await?;
        identity.log_in(&client, &self.layout).await
    }

    /// The programs that it is made of, and those that suites need beside it.
    pub fn assets(&self) -> &Assets {
        &self.layout.assets
    }

    /// A client that acts as `identity`. It belongs to the runtime it is made in.
    ///
    /// # Errors
    /// When the kubeconfig cannot be read.
    pub async fn client(&self, identity: Identity) -> anyhow::Result<Client> {
        Ok(Client::try_from(self.config(identity).await?)?)
    }

    /// The configuration behind [`Rig::client`].
    ///
    /// # Errors
    /// When the kubeconfig cannot be read.
    pub async fn config(&self, identity: Identity) -> anyhow::Result<Config> {
        let file = Kubeconfig::read_from(self.kubeconfig(identity))?;
        Ok(Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?)
    }

    /// The kubeconfig file of an identity.
    pub fn kubeconfig(&self, identity: Identity) -> PathBuf {
        self.layout.kubeconfig(identity)
    }

    /// Folder of data and logs; goes with the rig unless `TEPHRA_RIG_KEEP` is set.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Starts a program of ours that ends with the rig.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn run(&self, name: &str, command: std::process::Command) -> anyhow::Result<Process> {
        Process::spawn(name, command, self.folder(), &self.warden)
    }

    /// A reader of the API server's audit log that starts at its beginning.
    pub fn audit_log(&self) -> AuditLog {
        AuditLog::open(self.layout.audit_log())
    }

    /// All that the audit log holds by now.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn audit_records(&self) -> anyhow::Result<Vec<Record>> {
        self.audit_log().read()
    }

    /// CPU seconds (user and system) that a running component has used.
    ///
    /// # Errors
    /// When it does not run.
    pub fn cpu_seconds(&self, component: Component) -> anyhow::Result<f64> {
        let processes = self.processes();
        processes.get(&component).with_context(|| format!("{component:?}"))?.cpu_seconds()
    }

    /// Last lines of a component's log.
    pub fn log_tail(&self, component: Component, lines: usize) -> String {
        self.processes().get(&component).map(|process| process.log_tail(lines)).unwrap_or_default()
    }

    /// Last lines of the logs of the programs started by [`Rig::run`], for a failing case.
    pub fn logs_of_programs(&self, lines: usize) -> String {
        let mut logs = Vec::new();
        for entry in std::fs::read_dir(self.folder()).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.ends_with(".log")
                && (name.starts_with("scheduler") || name.starts_with("contr"))
            {
                logs.push(process::tail(&entry.path(), lines));
            }
        }
        logs.join("\n")
    }

    fn processes(&self) -> MutexGuard<'_, BTreeMap<Component, Process>> {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        // Clients of the API server first: they would only log that it is gone.
        for (_, mut process) in std::mem::take(&mut *self.processes()).into_iter().rev() {
            process.kill();
        }
        if warden::keep() {
            self.folder.disable_cleanup(true);
        }
    }
}
