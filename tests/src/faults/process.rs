//! Processes that crash and come back: schedulers and the controller, each watched over by a supervisor as a kubelet would.
//!
//! Every life of a process has an identity of its own (`scheduler-a-3`), so that the history tells them apart. A crash breaks
//! all its connections at once and drops its task: nothing of it goes on.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tephra_controller::ControllerOptions;
use tephra_scheduler::lease::LeaseLost;
use tephra_scheduler::{Scheduler, SchedulerOptions};
use tephra_simulator::ApiServer;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::dice::Dice;
use super::weather::Sky;

/// How often readers of both programs compare with a fresh list: soon, since runs are short.
pub const AUDIT: Duration = Duration::from_secs(20);

/// What a process is.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "two or three of them in a run")]
pub enum Program {
    /// A scheduler with these options; its lease identity is set for each life.
    Scheduler(SchedulerOptions),
    /// The controller.
    Controller,
}

/// What becomes known of a process outside of its supervisor.
#[derive(Debug, Default)]
pub struct Vita {
    identity: Mutex<String>,
    ends: Mutex<Vec<String>>,
}

impl Vita {
    /// Identity of the present life.
    pub fn identity(&self) -> String {
        self.identity.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends that no fault explains.
    pub fn strange_ends(&self) -> Vec<String> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn ended(&self, why: String) {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner).push(why);
    }
}

/// A process under supervision.
#[derive(Debug)]
pub struct Process {
    /// What is known of it.
    pub vita: Arc<Vita>,
    stop: CancellationToken,
    supervisor: JoinHandle<()>,
}

impl Process {
    /// Starts it, for as many lives as it takes.
    #[must_use]
    pub fn start(
        server: &ApiServer,
        name: &str,
        program: Program,
        dice: Dice,
        sky: Arc<Sky>,
    ) -> Self {
        let (vita, stop) = (Arc::new(Vita::default()), CancellationToken::new());
        let supervisor = Supervisor {
            server: server.clone(),
            name: name.to_owned(),
            program,
            dice,
            sky,
            vita: Arc::clone(&vita),
            stop: stop.clone(),
        };
        Self { vita, stop, supervisor: tokio::spawn(supervisor.run()) }
    }

    /// Ends it cleanly.
    pub async fn stop(self) {
        self.stop.cancel();
        if let Err(error) = self.supervisor.await {
            self.vita.ended(format!("the supervisor failed: {error}"));
        }
    }
}

struct Supervisor {
    server: ApiServer,
    name: String,
    program: Program,
    dice: Dice,
    sky: Arc<Sky>,
    vita: Arc<Vita>,
    stop: CancellationToken,
}

impl Supervisor {
    async fn run(mut self) {
        let mut life = 0;
        while !self.stop.is_cancelled() {
            life += 1;
            let identity = format!("{}-{life}", self.name);
            *self.vita.identity.lock().unwrap_or_else(PoisonError::into_inner) = identity.clone();
            self.live(&identity).await;
            // In calm weather nothing is left to chance.
            let pause = if self.sky.is_calm() { 500 } else { self.dice.within(50, 4_000) };
            tokio::select! {
                biased;
                () = self.stop.cancelled() => {}
                () = tokio::time::sleep(Duration::from_millis(pause)) => {}
            }
        }
    }

    /// One life, until its end.
    async fn live(&self, identity: &str) {
        let shutdown = CancellationToken::new();
        let mut task = self.spawn(identity, shutdown.clone());
        tokio::select! {
            biased;
            () = self.server.crashed(identity) => {
                self.sky.deal("crash");
                task.abort();
                let _ = task.await;
            }
            end = &mut task => self.note(identity, end),
            () = self.stop.cancelled() => {
                shutdown.cancel();
                let end = task.await;
                self.note(identity, end);
            }
        }
        // Whatever it left in the air never arrives.
        self.server.kill(identity);
    }

    fn spawn(&self, identity: &str, shutdown: CancellationToken) -> JoinHandle<anyhow::Result<()>> {
        let client = self.server.client_as(identity);
        let clock = self.server.clock();
        match &self.program {
            Program::Scheduler(options) => {
                let mut options = options.clone();
                if let Some(lease) = &mut options.lease {
                    identity.clone_into(&mut lease.identity);
                }
                tokio::spawn(Scheduler::new(client, options, clock).run(shutdown))
            }
            Program::Controller => {
                let options =
                    ControllerOptions { relist_period: AUDIT, ..ControllerOptions::default() };
                tokio::spawn(tephra_controller::run(client, options, clock, shutdown))
            }
        }
    }

    /// A process may end when it is told to or when it has lost its lease; any other end is a finding.
    fn note(&self, identity: &str, end: Result<anyhow::Result<()>, tokio::task::JoinError>) {
        match end {
            Ok(Ok(())) if self.stop.is_cancelled() => {}
            Ok(Ok(())) => self.vita.ended(format!("{identity} ended by itself")),
            Ok(Err(error)) if error.is::<LeaseLost>() => self.sky.deal("lease lost"),
            Ok(Err(error)) => self.vita.ended(format!("{identity} failed: {error:#}")),
            Err(error) => self.vita.ended(format!("{identity} panicked: {error}")),
        }
    }
}
