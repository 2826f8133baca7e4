//! Where the programs of the control plane are: `tests/rig/build.sh` says, and builds them when they are missing.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

/// Exit code of `build.sh` when it has nothing to build with.
pub(crate) const NO_TOOLS: i32 = 3;

/// A folder with at least `etcd` and `kube-apiserver`.
#[derive(Clone, Debug)]
pub struct Assets {
    folder: PathBuf,
}

/// What was found.
#[derive(Clone, Debug)]
pub enum Found {
    /// The programs are there.
    Ready(Assets),
    /// Neither Go nor `KUBEBUILDER_ASSETS`: suites that need a server cannot run. The text says so.
    Missing(String),
}

/// Folder of the rig's own files: Go modules, build script, kwok stages.
pub(crate) fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("rig")
}

/// Finds the programs, building them first when that is possible (about 16 minutes of CPU on a machine that never
/// did; `tests/run.sh` therefore starts the build early, beside cargo's).
///
/// # Errors
/// When the build fails for another reason than missing tools.
pub fn find() -> anyhow::Result<Found> {
    let script = source().join("build.sh");
    // Progress goes to our standard error: a silent quarter of an hour would look like a hang.
    let output = Command::new("bash")
        .arg(&script)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("running {}", script.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    match output.status.code() {
        Some(0) => {
            let folder = text.lines().last().context("build.sh printed no folder")?.into();
            Ok(Found::Ready(Assets { folder }))
        }
        Some(NO_TOOLS) => Ok(Found::Missing("neither Go nor KUBEBUILDER_ASSETS is there".into())),
        _ => bail!("{} failed: {}", script.display(), output.status),
    }
}

impl Assets {
    /// Path of a program.
    ///
    /// # Errors
    /// When the folder does not have it (`KUBEBUILDER_ASSETS` usually has etcd and kube-apiserver alone).
    pub fn program(&self, name: &str) -> anyhow::Result<PathBuf> {
        let path = self.folder.join(name);
        if !path.is_file() {
            bail!("{} has no {name}", self.folder.display());
        }
        Ok(path)
    }

    /// Path of a folder among the programs, e.g. `volcano-chart`.
    ///
    /// # Errors
    /// When there is none of that name.
    pub fn folder_of(&self, name: &str) -> anyhow::Result<PathBuf> {
        let path = self.folder.join(name);
        if !path.is_dir() {
            bail!("{} has no folder {name}", self.folder.display());
        }
        Ok(path)
    }

    /// Whether the folder has a program.
    pub fn has(&self, name: &str) -> bool {
        self.program(name).is_ok()
    }
}
