//! One run of one test binary: did a test fail?

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tephra_api::planted::{Bug, VARIABLE};

use super::build::TestBinary;

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Every test passed.
    Passed,
    /// A test failed: the first one, and how many others.
    Caught(String),
    /// Anything else, such as a run that does not end. This catches nothing.
    Died(String),
}

/// Runs all tests of a binary with a bug, or none, switched on.
///
/// # Errors
/// When the program cannot be started.
pub(super) fn judge(
    test: &TestBinary,
    bug: Option<Bug>,
    patience: Duration,
) -> anyhow::Result<Verdict> {
    // Into a file, not a pipe: a pipe that nobody empties stops the tests.
    let mut log = test.program.clone();
    log.set_extension(format!("{}.log", bug.map_or("none", Bug::name)));
    let file = std::fs::File::create(&log).with_context(|| log.display().to_string())?;
    let mut child = Command::new(&test.program)
        .current_dir(&test.folder)
        .env("CARGO_MANIFEST_DIR", &test.folder)
        .env(VARIABLE, bug.map_or("", Bug::name))
        .stdout(file.try_clone()?)
        .stderr(file)
        .stdin(Stdio::null())
        .spawn()
        .with_context(|| format!("starting {}", test.program.display()))?;
    let ended = wait(&mut child, patience)?;
    let text = std::fs::read(&log).with_context(|| log.display().to_string())?;
    Ok(read(&String::from_utf8_lossy(&text), ended, patience))
}

/// Whether the program ended well; `None` when it had to be stopped.
fn wait(child: &mut Child, patience: Duration) -> anyhow::Result<Option<bool>> {
    let deadline = Instant::now() + patience;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status.success()));
        }
        if Instant::now() >= deadline {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Reads what a test harness printed.
fn read(output: &str, ended: Option<bool>, patience: Duration) -> Verdict {
    let failed = |line: &str| {
        let name = line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?;
        Some(name.trim_end_matches(" - should panic").to_owned())
    };
    let failures: Vec<String> = output.lines().filter_map(failed).collect();
    match (failures.split_first(), ended) {
        (Some((first, [])), _) => Verdict::Caught(first.clone()),
        (Some((first, rest)), _) => Verdict::Caught(format!("{first} and {} more", rest.len())),
        (None, Some(true)) => Verdict::Passed,
        (None, Some(false)) => Verdict::Died("it failed without a failed test".to_owned()),
        (None, None) => Verdict::Died(format!("it ran longer than {} s", patience.as_secs())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(output: &str, ended: Option<bool>) -> Verdict {
        read(output, ended, Duration::from_secs(9))
    }

    #[test]
    fn only_a_failed_test_catches_a_bug() {
        let failed = "running 2 tests\ntest a::b ... ok\ntest a::c ... FAILED\n";
        assert_eq!(judged(failed, Some(false)), Verdict::Caught("a::c".to_owned()));
        let two = format!("{failed}test d ... FAILED\n");
        assert_eq!(judged(&two, None), Verdict::Caught("a::c and 1 more".to_owned()));
        assert_eq!(judged("test a::b ... ok\n", Some(true)), Verdict::Passed);
        let died = Verdict::Died("it failed without a failed test".to_owned());
        assert_eq!(judged("test a::b ... ", Some(false)), died);
        let hung = Verdict::Died("it ran longer than 9 s".to_owned());
        assert_eq!(judged("test a::b ... ok\n", None), hung);
    }
}
