//! Leadership from its beginning to its end: wait for the lease, keep it beside the work, learn that it is lost,
//! or hand it over. Without leader election a process leads from the start, through the same calls.

use std::sync::Arc;

use kube::Client;
use tephra_api::clock::Clock;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::fence::Fence;
use crate::lease::{Keeper, LeaseLost, LeaseOptions};

/// The right to write, while it lasts. Dropping it stops the renewals; the fence then closes by itself.
#[derive(Debug)]
pub struct Leadership {
    lost: oneshot::Receiver<LeaseLost>,
    release: CancellationToken,
    keeping: JoinSet<()>,
}

impl Leadership {
    /// Waits for the lease and keeps it from then on; `None` when `shutdown` came first. `client` must not pass
    /// the fence. Without `lease` the fence is opened for good.
    pub async fn begin(
        client: Client,
        lease: Option<&LeaseOptions>,
        fence: &Fence,
        clock: Arc<dyn Clock>,
        shutdown: &CancellationToken,
    ) -> Option<Self> {
        let (lost_send, lost) = oneshot::channel();
        let release = CancellationToken::new();
        let released = release.clone();
        let mut keeping = JoinSet::new();
        let Some(options) = lease else {
            fence.unlock();
            keeping.spawn(async move {
                released.cancelled().await;
                drop(lost_send);
            });
            return Some(Self { lost, release, keeping });
        };
        let mut keeper = Keeper::new(client, options.clone(), fence.clone(), clock);
        tokio::select! {
            biased;
            () = shutdown.cancelled() => return None,
            () = keeper.acquire() => {}
        }
        keeping.spawn(async move {
            tokio::select! {
                biased;
                () = released.cancelled() => keeper.release().await,
                lost = keeper.keep() => {
                    // Nobody listens only when the process has ended.
                    let _ = lost_send.send(lost);
                }
            }
        });
        Some(Self { lost, release, keeping })
    }

    /// Waits until the lease is lost; `None` when its keeper has ended without a word.
    pub async fn lost(&mut self) -> Option<LeaseLost> {
        (&mut self.lost).await.ok()
    }

    /// Hands the lease over, so that a standby takes over at once. Writes are forbidden from here on.
    pub async fn release(mut self) {
        self.release.cancel();
        while self.keeping.join_next().await.is_some() {}
    }
}
