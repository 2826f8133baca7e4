//! The scheduler configuration: where it comes from, and how a changed file takes effect. Good content replaces
//! the configuration between two sessions; bad content is logged, counted and shown on `/readyz?verbose`, and the
//! last good configuration stays.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use notify::{RecursiveMode, Watcher};
use tephra_api::conf::SchedulerConf;
use tokio::sync::{mpsc, watch};

use crate::health::Health;
use crate::metrics::Metrics;

/// How often the file is looked at without any notification (network file systems send none).
const POLL: Duration = Duration::from_secs(10);
/// A file is read this long after a notification, so that one save is one reading.
const SETTLE: Duration = Duration::from_millis(50);

/// What `--scheduler-conf` led to.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The configuration to use.
    pub conf: SchedulerConf,
    /// The file to watch; `None` for named configurations.
    pub path: Option<PathBuf>,
    /// Why the file could not be used; the built-in configuration is in place then.
    pub error: Option<String>,
}

/// Resolves `--scheduler-conf`: the name of a built-in configuration, a file, or nothing.
pub fn load(given: &str) -> Loaded {
    let named = |conf| Loaded { conf, path: None, error: None };
    match given {
        "builtin" => named(SchedulerConf::builtin()),
        "volcano" => named(SchedulerConf::volcano()),
        "tephra" => named(SchedulerConf::tephra()),
        "" => Loaded {
            error: Some("no --scheduler-conf is given".to_owned()),
            ..named(SchedulerConf::builtin())
        },
        path => {
            let path = PathBuf::from(path);
            match std::fs::read_to_string(&path).map_err(|error| error.to_string()) {
                Ok(text) => match parse(&text) {
                    Ok(conf) => Loaded { path: Some(path), ..named(conf) },
                    Err(error) => unusable(path, error),
                },
                Err(error) => unusable(path, error),
            }
        }
    }
}

fn unusable(path: PathBuf, error: String) -> Loaded {
    let error = format!("{}: {error}", path.display());
    Loaded { conf: SchedulerConf::builtin(), path: Some(path), error: Some(error) }
}

fn parse(text: &str) -> Result<SchedulerConf, String> {
    SchedulerConf::parse(text, tephra_core::registry::action_names())
        .map_err(|error| error.to_string())
}

/// Watches the file and publishes each good content that differs from the last, until the receiver is gone.
pub(crate) async fn watch_file(
    path: PathBuf,
    publish: watch::Sender<Option<SchedulerConf>>,
    health: Arc<Health>,
    metrics: Arc<Metrics>,
) {
    let (nudge, mut nudged) = mpsc::channel::<()>(1);
    let watcher = watch_directory(&path, nudge);
    if let Err(error) = &watcher {
        tracing::warn!(path = %path.display(), %error, "cannot watch for changes; looking now and then");
    }
    let mut last = tokio::fs::read_to_string(&path).await.ok();
    metrics.config_ok.set(i64::from(!health.has_conf_error()));
    loop {
        tokio::select! {
            biased;
            () = publish.closed() => return,
            Some(()) = nudged.recv(), if watcher.is_ok() => tokio::time::sleep(SETTLE).await,
            () = tokio::time::sleep(POLL) => {}
        }
        let read = tokio::fs::read_to_string(&path).await;
        let outcome = match &read {
            Ok(text) if last.as_ref() == Some(text) => continue,
            Ok(text) => parse(text),
            Err(_) if last.is_none() => continue,
            Err(error) => Err(error.to_string()),
        };
        last = read.ok();
        match outcome {
            Ok(conf) => {
                tracing::info!(path = %path.display(), "configuration reloaded");
                health.conf(None);
                metrics.config_ok.set(1);
                publish.send_replace(Some(conf));
            }
            Err(error) => {
                tracing::error!(path = %path.display(), %error, "bad configuration; the last good one stays");
                health.conf(Some(format!("{}: {error}", path.display())));
                metrics.config_ok.set(0);
                metrics.config_errors.inc();
            }
        }
    }
}

/// Watches the directory, not the file: mounted ConfigMaps change by swapping a symbolic link beside it.
fn watch_directory(
    path: &Path,
    nudge: mpsc::Sender<()>,
) -> notify::Result<notify::RecommendedWatcher> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        // A full channel means that a reading is due anyway.
        if event.is_ok_and(|event| !event.kind.is_access()) {
            let _ = nudge.try_send(());
        }
    })?;
    watcher.watch(directory, RecursiveMode::NonRecursive)?;
    Ok(watcher)
}

#[cfg(test)]
mod tests {
    use tephra_process::serve::Checks;

    use super::*;

    const GOOD: &str = "actions: \"enqueue, allocate\"\ntiers:\n- plugins:\n  - name: gang\n";

    #[test]
    fn names_and_files_are_told_apart() {
        assert!(load("builtin").error.is_none() && load("builtin").path.is_none());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("volcano-scheduler.conf");
        std::fs::write(&path, GOOD).unwrap();
        let loaded = load(path.to_str().unwrap());
        assert_eq!(
            (loaded.error, loaded.conf.actions),
            (None, vec!["enqueue".to_owned(), "allocate".to_owned()])
        );
    }

    #[test]
    fn without_a_usable_file_the_built_in_configuration_is_used_and_the_reason_is_kept() {
        let missing = load("/nowhere/at/all.conf");
        assert_eq!(missing.conf.actions, SchedulerConf::builtin().actions);
        assert!(missing.error.unwrap().starts_with("/nowhere/at/all.conf: "));
        assert_eq!(load("").error.unwrap(), "no --scheduler-conf is given");
    }

    /// What somebody may leave in the file, and words of the complaint.
    const BAD: [(&str, &str); 7] = [
        ("actions: [", "line"),
        ("actions: \"enqueue, alocate\"", "failed to find Action alocate"),
        ("", "`actions` names none"),
        ("- allocate", "the configuration must be a mapping"),
        ("actions: [allocate]", "actions must be a comma-separated text"),
        (
            "actions: allocate\ntiers: [{plugins: [{name: gang, arguments: x}]}]",
            "tiers[0].plugins[0].arguments must be a mapping",
        ),
        (
            "actions: allocate\ntiers: [{plugins: [{name: gang, enableJobOrder: maybe}]}]",
            "tiers[0].plugins[0].enableJobOrder must be true or false",
        ),
    ];

    #[test]
    fn each_bad_file_is_named_with_its_fault_and_the_built_in_configuration_serves() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("conf");
        for (text, words) in BAD {
            std::fs::write(&path, text).unwrap();
            let loaded = load(path.to_str().unwrap());
            assert_eq!(loaded.conf.actions, SchedulerConf::builtin().actions, "{text:?}");
            let error = loaded.error.unwrap();
            assert!(error.starts_with(path.to_str().unwrap()) && error.contains(words), "{error}");
        }
        std::fs::write(&path, b"actions: \xff\xfe").unwrap();
        assert!(load(path.to_str().unwrap()).error.unwrap().contains("UTF-8"));
        assert!(load(folder.path().to_str().unwrap()).error.unwrap().contains("directory"));
    }

    #[test]
    fn an_unknown_plugin_or_a_wrong_argument_is_no_bad_file() {
        let text = "actions: allocate\ntiers: [{plugins: [{name: proporton}, {name: binpack, arguments: {binpack.weight: heavy}}]}]";
        assert_eq!(parse(text).unwrap().tiers[0].plugins.len(), 2);
    }

    /// A good file that is being watched.
    struct Watched {
        path: PathBuf,
        health: Arc<Health>,
        metrics: Arc<Metrics>,
        published: watch::Receiver<Option<SchedulerConf>>,
        task: tokio::task::JoinHandle<()>,
        folder: tempfile::TempDir,
    }

    impl Watched {
        async fn start() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("conf");
            std::fs::write(&path, GOOD).unwrap();
            let health = Arc::new(Health::new(Duration::from_secs(1), None));
            let metrics: Arc<Metrics> = Arc::default();
            let (publish, published) = watch::channel(None);
            let watching = watch_file(path.clone(), publish, health.clone(), metrics.clone());
            let task = tokio::spawn(watching);
            while metrics.config_ok.get() != 1 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            Self { path, health, metrics, published, task, folder }
        }
    }

    #[tokio::test]
    async fn each_bad_change_and_a_removed_file_leave_the_last_good_configuration_in_use() {
        let Watched { path, health, metrics, mut published, task, folder: _folder } =
            Watched::start().await;
        let told = async |words: &str| {
            while metrics.config_ok.get() != 0 || !health.verbose().contains(words) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        for (text, words) in BAD {
            std::fs::write(&path, text).unwrap();
            let patience = Duration::from_secs(60);
            let in_time = tokio::time::timeout(patience, told(words)).await;
            assert!(in_time.is_ok(), "{text:?}: {}", health.verbose());
            assert!(!published.has_changed().unwrap(), "{text:?}");
        }
        std::fs::remove_file(&path).unwrap();
        told("No such file").await;
        assert!(!published.has_changed().unwrap());
        std::fs::write(&path, GOOD.replace(", allocate", "")).unwrap();
        published.changed().await.unwrap();
        assert_eq!(published.borrow_and_update().clone().unwrap().actions, ["enqueue"]);
        assert_eq!(metrics.config_ok.get(), 1);
        task.abort();
    }

    #[tokio::test]
    async fn a_bad_file_is_reported_and_good_content_is_published() {
        let Watched { path, health, metrics, mut published, task, folder: _folder } =
            Watched::start().await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        std::fs::write(&path, "actions: [").unwrap();
        while metrics.config_ok.get() != 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert!(health.verbose().contains("last good one in use"));
        assert!(!published.has_changed().unwrap());
        std::fs::write(&path, GOOD.replace(", allocate", "")).unwrap();
        published.changed().await.unwrap();
        let conf = published.borrow_and_update().clone().unwrap();
        assert_eq!(conf.actions, ["enqueue"]);
        task.abort();
    }
}
