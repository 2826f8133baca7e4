//! Leader election on a `coordination.k8s.io` Lease. The decision is a pure function ([`step`]); this module
//! reads and writes the Lease and moves the [`Fence`]. Losing the lease ends the process (fail-stop): what
//! this process believes about the cluster is not repaired, it is thrown away.

pub mod step;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{Api, PostParams};
use tephra_api::clock::Clock;
use tokio::time::Instant;

use crate::fence::Fence;
use step::{LeaseState, Record, Step, Timings};

/// Which Lease to hold, as whom.
#[derive(Clone, Debug)]
pub struct LeaseOptions {
    /// Namespace of the Lease.
    pub namespace: String,
    /// Name of the Lease.
    pub name: String,
    /// Who we are; must differ between processes.
    pub identity: String,
    /// Timings.
    pub timings: Timings,
}

/// The lease was lost: the process must end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("lost the lease {lease} to {holder}")]
pub struct LeaseLost {
    /// `namespace/name`.
    pub lease: String,
    /// Who holds it now, or why it could not be renewed.
    pub holder: String,
}

/// Acquires, renews and releases one Lease. The only writer of the fence.
pub struct Keeper {
    api: Api<Lease>,
    options: LeaseOptions,
    fence: Fence,
    clock: Arc<dyn Clock>,
    origin: Instant,
    state: LeaseState,
    stored: Option<Lease>,
}

impl std::fmt::Debug for Keeper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keeper")
            .field("options", &self.options)
            .field("state", &self.state)
            .finish()
    }
}

impl Keeper {
    /// A keeper that holds nothing yet. `client` must not pass the fence at the socket.
    pub fn new(
        client: kube::Client,
        options: LeaseOptions,
        fence: Fence,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            api: Api::namespaced(client, &options.namespace),
            options,
            fence,
            clock,
            origin: Instant::now(),
            state: LeaseState::default(),
            stored: None,
        }
    }

    /// Waits until we lead. Errors of the API server are logged and tried again.
    pub async fn acquire(&mut self) {
        let mut told = String::new();
        loop {
            self.read().await;
            let wait = match self.step() {
                Step::Wait(wait) => wait,
                Step::Acquire => {
                    if self.write().await {
                        tracing::info!(identity = %self.options.identity, "acquired the lease");
                        return;
                    }
                    self.options.timings.retry_period
                }
                Step::Renew | Step::Lost => self.options.timings.retry_period,
            };
            let holder = self.state.record.as_ref().map_or("", |record| record.holder.as_str());
            if holder != told && holder != self.options.identity {
                tracing::info!(%holder, "another process leads; standing by");
                told = holder.to_owned();
            }
            tokio::time::sleep(wait).await;
        }
    }

    /// Renews until the lease is lost. The fence is closed when this returns.
    pub async fn keep(&mut self) -> LeaseLost {
        loop {
            match self.step() {
                Step::Wait(wait) => tokio::time::sleep(wait).await,
                Step::Renew | Step::Acquire => {
                    if !self.write().await {
                        self.read().await;
                        let pause = self.options.timings.retry_period / 4;
                        tokio::time::sleep(pause).await;
                    }
                }
                Step::Lost => break,
            }
        }
        self.fence.close();
        self.state.renewed_at = None;
        let me = &self.options.identity;
        let holder = match &self.state.record {
            Some(record) if record.holder != *me => record.holder.clone(),
            _ => "nobody: it could not be renewed in time".to_owned(),
        };
        LeaseLost { lease: format!("{}/{}", self.options.namespace, self.options.name), holder }
    }

    /// Gives the lease back so that a standby takes over at once. Writes are forbidden from here on.
    pub async fn release(&mut self) {
        self.fence.close();
        if self.state.renewed_at.take().is_none() {
            return;
        }
        // A renewal may have been under way: the version to replace is the one stored now.
        self.read().await;
        let ours = self.state.record.as_ref().is_some_and(|it| it.holder == self.options.identity);
        let Some(mut lease) = self.stored.take().filter(|_| ours) else { return };
        let spec = lease.spec.get_or_insert_default();
        spec.holder_identity = Some(String::new());
        spec.lease_duration_seconds = Some(1);
        spec.renew_time = Some(self.now());
        let params = PostParams::default();
        let write = self.api.replace(&self.options.name, &params, &lease);
        match tokio::time::timeout(self.patience(), write).await {
            Ok(Ok(_)) => tracing::info!("released the lease"),
            Ok(Err(error)) => tracing::warn!(%error, "could not release the lease"),
            Err(_) => tracing::warn!("could not release the lease in time"),
        }
    }

    fn step(&self) -> Step {
        step::step(&self.state, &self.options.identity, &self.options.timings, self.elapsed())
    }

    fn elapsed(&self) -> Duration {
        Instant::now().saturating_duration_since(self.origin)
    }

    /// Longest wait for one request: two attempts fit into the time in which writes are still allowed.
    fn patience(&self) -> Duration {
        self.options.timings.renew_deadline / 2
    }

    async fn read(&mut self) {
        match tokio::time::timeout(self.patience(), self.api.get_opt(&self.options.name)).await {
            Ok(Ok(lease)) => self.observe(lease),
            Ok(Err(error)) => tracing::warn!(%error, "could not read the lease"),
            Err(_) => tracing::warn!("could not read the lease in time"),
        }
    }

    fn observe(&mut self, lease: Option<Lease>) {
        let now = self.elapsed();
        self.state.observe(lease.as_ref().map(record), &self.options.identity, now);
        self.stored = lease;
    }

    /// Writes our name into the Lease as last read; true when the server took it. The resource version makes
    /// sure that nobody wrote in between.
    async fn write(&mut self) -> bool {
        let start = Instant::now();
        let wanted = self.desired();
        let params = PostParams::default();
        let attempt = async {
            if self.stored.is_some() {
                self.api.replace(&self.options.name, &params, &wanted).await
            } else {
                self.api.create(&params, &wanted).await
            }
        };
        let lease = match tokio::time::timeout(self.patience(), attempt).await {
            Ok(Ok(lease)) => lease,
            Ok(Err(kube::Error::Api(status))) if status.is_conflict() || status.is_not_found() => {
                tracing::debug!(code = status.code, "the lease changed meanwhile");
                self.forget_if_gone(&status);
                return false;
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "could not write the lease");
                return false;
            }
            Err(_) => {
                tracing::warn!("could not write the lease in time");
                return false;
            }
        };
        if self.is_too_late() {
            tracing::warn!("the lease was renewed too late: writes have been refused meanwhile");
            return false;
        }
        self.observe(Some(lease));
        self.state.renewed_at = Some(start.saturating_duration_since(self.origin));
        // Others may take over a full lease duration after they saw this renewal, which is later than
        // `start`; the difference to the renew deadline is the margin for writes already under way.
        self.fence.extend(start, self.options.timings.renew_deadline);
        true
    }

    /// The fence has been closed while the renewal was under way. Writes that met it are given up for good, so this
    /// process may not go on as if nothing had happened. The fence counts whole milliseconds.
    fn is_too_late(&self) -> bool {
        let term = self.options.timings.renew_deadline;
        let now = self.elapsed() + Duration::from_millis(1);
        self.state.renewed_at.is_some_and(|renewed_at| now >= renewed_at + term)
    }

    fn forget_if_gone(&mut self, status: &kube::core::Status) {
        if status.is_not_found() {
            self.observe(None);
        }
    }

    fn desired(&self) -> Lease {
        let mut lease = self.stored.clone().unwrap_or_default();
        lease.metadata.name = Some(self.options.name.clone());
        lease.metadata.namespace = Some(self.options.namespace.clone());
        let me = self.options.identity.clone();
        let now = self.now();
        let spec = lease.spec.get_or_insert_default();
        if spec.holder_identity.as_ref() != Some(&me) {
            spec.acquire_time = Some(now.clone());
            let previous = spec.holder_identity.is_some();
            spec.lease_transitions =
                Some(spec.lease_transitions.unwrap_or(0).saturating_add(i32::from(previous)));
        }
        spec.holder_identity = Some(me);
        spec.lease_duration_seconds =
            Some(self.options.timings.lease_duration.as_secs().clamp(1, i32::MAX as u64) as i32);
        spec.renew_time = Some(now);
        lease
    }

    fn now(&self) -> MicroTime {
        let now = jiff::Timestamp::from_millisecond(self.clock.now_ms());
        MicroTime(now.unwrap_or(jiff::Timestamp::UNIX_EPOCH))
    }
}

fn record(lease: &Lease) -> Record {
    let empty = LeaseSpec::default();
    let spec = lease.spec.as_ref().unwrap_or(&empty);
    Record {
        holder: spec.holder_identity.clone().unwrap_or_default(),
        renewed: spec.renew_time.as_ref().map(|time| time.0.to_string()).unwrap_or_default(),
        transitions: spec.lease_transitions.unwrap_or(0),
        duration: Duration::from_secs(spec.lease_duration_seconds.unwrap_or(0).max(0) as u64),
    }
}
