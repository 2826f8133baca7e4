//! A demo in its own process.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

/// The program.
pub(crate) fn tephra() -> Command {
    Command::new(env!("CARGO_BIN_EXE_tephra"))
}

/// A running demo with `-o json`; killed when dropped.
pub(crate) struct Demo {
    child: Option<Child>,
    kubeconfig: PathBuf,
}

impl Demo {
    /// Starts a demo on a free port and waits until it says where its kubeconfig is.
    pub(crate) fn start(nodes: u16) -> Self {
        let mut child = tephra()
            .args(["demo", "-o", "json", "--port", "0", "--nodes", &nodes.to_string()])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the demo starts");
        let mut hint = String::new();
        BufReader::new(child.stderr.as_mut().expect("piped")).read_line(&mut hint).expect("read");
        let mut words = hint.split_whitespace();
        words.find(|word| *word == "--kubeconfig").unwrap_or_else(|| panic!("no hint: {hint}"));
        let kubeconfig = PathBuf::from(words.next().expect("a path"));
        Self { child: Some(child), kubeconfig }
    }

    /// The file that clients use.
    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Asks it to end; gives the exit code and the figures it printed.
    pub(crate) fn finish(mut self) -> (Option<i32>, Value) {
        let child = self.child.take().expect("running");
        let asked = Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
        assert!(asked.is_ok_and(|status| status.success()), "the demo takes signals");
        let output = child.wait_with_output().expect("the demo ends");
        assert!(!self.kubeconfig.exists(), "the kubeconfig goes with the demo");
        let figures = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
            panic!("no JSON ({error}): {}", String::from_utf8_lossy(&output.stdout))
        });
        (output.status.code(), figures)
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
