//! Endless watches: kube's watcher with growing pauses after errors, errors logged once per kind of trouble.

use std::{fmt::Debug, time::Duration};

use backon::ExponentialBuilder;
use futures::{Stream, StreamExt, future};
use kube::{
    Api, Resource,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, ExponentialBackoff},
    },
};
use serde::de::DeserializeOwned;
use tracing::{debug, warn};

/// Watches everything `config` selects, for ever. Pauses after errors grow from 0.2 s to 10 s, without jitter: there is one
/// controller, so nobody to keep apart from, and a simulation must repeat itself.
pub(crate) fn watch<K>(api: Api<K>, config: watcher::Config) -> impl Stream<Item = Event<K>> + Send
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let pauses = ExponentialBuilder::new()
        .with_min_delay(Duration::from_millis(200))
        .with_max_delay(Duration::from_secs(10))
        .without_max_times();
    watcher::watcher(api, config).backoff(ExponentialBackoff::from(pauses)).filter_map(|event| {
        future::ready(match event {
            Ok(event) => Some(event),
            Err(error @ watcher::Error::WatchError(_)) => {
                // 410 and the like: the watcher starts over by itself.
                debug!(kind = %K::kind(&()), %error, "watch starts over");
                None
            }
            Err(error) => {
                warn!(kind = %K::kind(&()), %error, "watch failed, trying again");
                None
            }
        })
    })
}
