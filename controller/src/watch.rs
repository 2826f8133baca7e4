//! Endless watches: kube's watcher with growing pauses after errors, and a full list now and then.

use std::{fmt::Debug, time::Duration};

use backon::ExponentialBuilder;
use futures::{Stream, StreamExt, future, stream, stream::BoxStream};
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
/// controller, so nobody to keep apart from, and a simulation must repeat itself. After each `relist` the watch begins anew
/// with a full list: an event that was lost on the way costs a delay, not a pod.
pub(crate) fn watch<K>(
    api: Api<K>,
    config: watcher::Config,
    relist: Duration,
) -> impl Stream<Item = Event<K>> + Send
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let url = api.resource_url().to_owned();
    let pauses = ExponentialBuilder::new()
        .with_min_delay(Duration::from_millis(200))
        .with_max_delay(Duration::from_secs(10))
        .without_max_times();
    let watches = stream::repeat_with(move || {
        watcher::watcher(api.clone(), config.clone())
            .backoff(ExponentialBackoff::from(pauses))
            .take_until(tokio::time::sleep(relist))
    });
    watches.flatten().filter_map(move |event| {
        future::ready(match event {
            Ok(event) => Some(event),
            Err(error @ watcher::Error::WatchError(_)) => {
                // 410 and the like: the watcher starts over by itself.
                debug!(%url, %error, "watch starts over");
                None
            }
            Err(error) => {
                warn!(%url, %error, "watch failed, trying again");
                None
            }
        })
    })
}

/// Watches the pods of each of these schedulers, with the index of its name.
pub(crate) fn watch_pods<K>(
    api: &Api<K>,
    scheduler_names: &[String],
    relist: Duration,
) -> Vec<BoxStream<'static, (usize, Event<K>)>>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    let pods = scheduler_names.iter().enumerate().map(|(which, name)| {
        let ours = watcher::Config::default().fields(&format!("spec.schedulerName={name}"));
        watch(api.clone(), ours, relist).map(move |event| (which, event)).boxed()
    });
    pods.collect()
}
