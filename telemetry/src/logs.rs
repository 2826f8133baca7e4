//! Logs: readable text on a terminal, one JSON object a line otherwise. `RUST_LOG` refines or replaces the level
//! that `-v` gives.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// How a program logs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogOptions {
    /// klog's `-v`: 0-2 info, 3-4 debug, 5 and more trace.
    pub verbosity: i32,
}

/// The level that a klog verbosity stands for.
pub fn level(verbosity: i32) -> &'static str {
    match verbosity {
        i32::MIN..=2 => "info",
        3..=4 => "debug",
        _ => "trace",
    }
}

/// Starts logging to standard error. Later calls change nothing, so that tests may call it freely.
pub fn init(options: LogOptions) {
    let level = level(options.verbosity);
    // Libraries below us are of interest only from trace on.
    let ours = match level {
        "trace" => "trace,hyper=info,hyper_util=info,rustls=info,tower=info,h2=info".to_owned(),
        level => format!(
            "warn,tephra={level},tephra_scheduler={level},tephra_controller={level},tephra_simulator={level}"
        ),
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(ours));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // An error means that logging has been started before.
    let _ = if std::io::stderr().is_terminal() {
        builder.try_init()
    } else {
        builder.json().flatten_event(true).try_init()
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn klog_verbosity_maps_to_levels() {
        let levels = [-1, 0, 2, 3, 4, 5, 10].map(level);
        assert_eq!(levels, ["info", "info", "info", "debug", "debug", "trace", "trace"]);
    }

    #[test]
    fn starting_twice_is_harmless() {
        init(LogOptions::default());
        init(LogOptions { verbosity: 5 });
    }
}
