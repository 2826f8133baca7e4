//! Makes sure that nothing outlives the process that started it, however that ends: a small shell waits on a pipe
//! whose other end only we hold. When it closes (return, panic, SIGKILL), the shell kills what it was told of.
//! A rig in a `static` is never dropped; this ends it, too.

use std::io::Write as _;
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use anyhow::Context as _;

/// Environment variable that marks the children of a rig with its folder.
pub(crate) const MARK: &str = "TEPHRA_RIG";

// Only processes that carry the mark are killed: a number may belong to somebody else by then.
const SCRIPT: &str = r#"
trap '' INT TERM HUP
pids=
while read -r pid; do pids="$pids $pid"; done
for pid in $pids; do
  if tr '\0' '\n' 2>/dev/null <"/proc/$pid/environ" | grep -qxF "TEPHRA_RIG=$1"; then kill -9 "$pid"; fi
done
[ -n "${TEPHRA_RIG_KEEP:-}" ] && exit
for _ in 1 2 3 4 5; do rm -rf "$1" && break; sleep 0.2; done
"#;

/// Whether folders of rigs are left for inspection.
pub(crate) fn keep() -> bool {
    std::env::var_os("TEPHRA_RIG_KEEP").is_some()
}

/// The waiting shell of one rig.
#[derive(Debug)]
pub(crate) struct Warden {
    // Closing it is the signal; the shell is not waited for.
    pipe: Mutex<ChildStdin>,
    folder: std::path::PathBuf,
}

impl Warden {
    pub(crate) fn start(folder: &Path) -> anyhow::Result<Self> {
        use std::os::unix::process::CommandExt as _;
        let mut shell = Command::new("sh")
            .args(["-c", SCRIPT, "warden"])
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Its own group: an interrupt from the terminal must not end it before its work.
            .process_group(0)
            .spawn()
            .context("starting sh")?;
        let pipe = shell.stdin.take().context("no pipe to the shell")?;
        Ok(Self { pipe: Mutex::new(pipe), folder: folder.to_owned() })
    }

    /// Marks a command as belonging to this rig.
    pub(crate) fn mark(&self, command: &mut Command) {
        command.env(MARK, &self.folder);
    }

    /// Entrusts a marked child to the shell.
    pub(crate) fn watch(&self, pid: u32) -> anyhow::Result<()> {
        let mut pipe = self.pipe.lock().unwrap_or_else(PoisonError::into_inner);
        writeln!(pipe, "{pid}").context("the rig's warden is gone")
    }
}
