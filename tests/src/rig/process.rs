//! A child process with its log file: killed when dropped, paused and resumed, watched for its use of CPU.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use super::warden::Warden;

/// Clock ticks per second in `/proc/PID/stat`; fixed on Linux.
const TICKS: f64 = 100.0;

/// A running child.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
}

/// Signals that the suites send.
#[derive(Clone, Copy, Debug)]
pub enum Signal {
    /// Stop running, keep everything (a long pause of the machine).
    Stop,
    /// Go on.
    Continue,
    /// End in order.
    Terminate,
}

impl Process {
    /// Starts `command`; its output is appended to `<folder>/<name>.log`.
    pub(crate) fn spawn(
        name: &str,
        mut command: Command,
        folder: &Path,
        warden: &Warden,
    ) -> anyhow::Result<Self> {
        let log = folder.join(format!("{name}.log"));
        let file = File::options().create(true).append(true).open(&log)?;
        warden.mark(&mut command);
        let child = command
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()
            .with_context(|| format!("starting {name}"))?;
        let process = Self { name: name.to_owned(), child, log };
        warden.watch(process.child.id())?;
        Ok(process)
    }

    /// Process number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// False once the process has ended.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// SIGKILL, and waits until the process is gone. Harmless when it has ended already.
    pub fn kill(&mut self) {
        // Both fail only when it has ended, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Sends a signal. The standard library sends only SIGKILL; the shell has the others everywhere.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        let name = match signal {
            Signal::Stop => "STOP",
            Signal::Continue => "CONT",
            Signal::Terminate => "TERM",
        };
        let script = r#"kill -s "$0" "$1""#;
        let status = Command::new("sh")
            .args(["-c", script, name, &self.id().to_string()])
            .stderr(Stdio::null())
            .status()?;
        if !status.success() {
            bail!("{} is gone: SIG{name} was not delivered\n{}", self.name, self.log_tail(20));
        }
        Ok(())
    }

    /// Waits for the process to end by itself.
    ///
    /// # Errors
    /// When it still runs after `patience`.
    pub async fn ended(&mut self, patience: Duration) -> anyhow::Result<ExitStatus> {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            if Instant::now() > deadline {
                bail!("{} still runs after {patience:?}\n{}", self.name, self.log_tail(20));
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// CPU seconds used so far, user and system.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn cpu_seconds(&self) -> anyhow::Result<f64> {
        let path = format!("/proc/{}/stat", self.id());
        let stat = std::fs::read_to_string(&path).context(path)?;
        parse_cpu_seconds(&stat).context("unexpected form of /proc/PID/stat")
    }

    /// Largest resident size so far, in MiB.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn peak_mib(&self) -> anyhow::Result<u64> {
        let path = format!("/proc/{}/status", self.id());
        let status = std::fs::read_to_string(&path).context(path)?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().strip_suffix("kB")).context("no VmHWM")?;
        Ok(kib.trim().parse::<u64>()? / 1024)
    }

    /// The last lines of its log, headed by its name.
    pub fn log_tail(&self, lines: usize) -> String {
        tail(&self.log, lines)
    }
}

/// The last lines of a log file, headed by its name.
pub(crate) fn tail(log: &Path, lines: usize) -> String {
    let content = std::fs::read(log).unwrap_or_default();
    let content = String::from_utf8_lossy(&content);
    let all: Vec<&str> = content.lines().collect();
    let from = all.len().saturating_sub(lines);
    format!("--- {} ---\n{}", log.display(), all.get(from..).unwrap_or(&[]).join("\n"))
}

/// Fields 14 and 15; the second field, a name in brackets, may hold anything.
fn parse_cpu_seconds(stat: &str) -> Option<f64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11).map(str::parse::<f64>);
    let (user, system) = (fields.next()?.ok()?, fields.next()?.ok()?);
    Some((user + system) / TICKS)
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_read_behind_a_name_with_blanks_and_brackets() {
        let stat = "7 (a b) c) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20 0 1 0 99";
        assert_eq!(parse_cpu_seconds(stat), Some(3.0));
        assert_eq!(parse_cpu_seconds("7 (a) S 1 2"), None);
    }
}
