//! The one test build that carries all planted bugs.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use serde::Deserialize;

/// Test targets that are asked, by package and in this order: what is quick and close to the code goes first. Suites that
/// need a real server or kubectl are not among them.
const TARGETS: &[(&str, &str)] = &[
    ("tephra-api", "tephra_api"),
    ("tephra-api", "resource_rules"),
    ("tephra-core", "tephra_core"),
    ("tephra-process", "tephra_process"),
    ("tephra-scheduler", "tephra_scheduler"),
    ("tephra-scheduler", "simulated"),
    ("tephra-core", "reference"),
    ("tephra-tests", "conformance"),
    ("tephra-controller", "tephra_controller"),
    ("tephra-controller", "controllers"),
    ("tephra-simulator", "tephra_simulator"),
    ("tephra-simulator", "api"),
    ("tephra-simulator", "faults"),
];

/// Feature that compiles the switches in; through the scheduler it reaches the core and `api`.
const FEATURE: &str = "tephra-scheduler/planted-bugs";

/// A program made of tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TestBinary {
    /// Name of its target, as cargo calls it.
    pub(super) name: &'static str,
    /// Where it lies.
    pub(super) program: PathBuf,
    /// Folder of its package, in which cargo runs tests.
    pub(super) folder: PathBuf,
}

/// Builds the test binaries and finds them.
pub(super) fn test_binaries(root: &Path) -> anyhow::Result<Vec<TestBinary>> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["test", "--no-run", "--message-format=json-render-diagnostics"]);
    cargo.args(["--features", FEATURE, "--lib"]);
    for (package, target) in TARGETS {
        cargo.args(["--package", package]);
        if !is_library(package, target) {
            cargo.args(["--test", target]);
        }
    }
    let output = cargo
        .current_dir(root)
        .stderr(Stdio::inherit())
        .output()
        .context("running cargo test --no-run")?;
    if !output.status.success() {
        bail!("the test build failed");
    }
    binaries(&String::from_utf8(output.stdout).context("cargo wrote no UTF-8")?)
}

/// Unit tests of a library are a target of the package's own name.
fn is_library(package: &str, target: &str) -> bool {
    package.replace('-', "_") == target
}

#[derive(Debug, Deserialize)]
struct Message {
    #[serde(default)]
    package_id: String,
    #[serde(default)]
    executable: Option<PathBuf>,
    #[serde(default)]
    manifest_path: PathBuf,
    #[serde(default)]
    profile: Profile,
    #[serde(default)]
    target: Target,
}

#[derive(Debug, Default, Deserialize)]
struct Profile {
    test: bool,
}

#[derive(Debug, Default, Deserialize)]
struct Target {
    name: String,
}

/// The wanted binaries among what cargo says it built, one JSON object a line.
fn binaries(output: &str) -> anyhow::Result<Vec<TestBinary>> {
    let messages = output
        .lines()
        .filter(|line| line.starts_with('{'))
        .map(|line| serde_json::from_str(line).context("reading a message of cargo"))
        .collect::<anyhow::Result<Vec<Message>>>()?;
    let find = |package: &str, target: &'static str| {
        // `path+file:///folder#name@version`: a folder of ours is never called as its package.
        let package = format!("#{package}@");
        let wanted = |message: &&Message| {
            message.profile.test
                && message.target.name == target
                && message.package_id.contains(&package)
        };
        let message = messages.iter().find(wanted)?;
        let folder = message.manifest_path.parent()?.to_owned();
        Some(TestBinary { name: target, program: message.executable.clone()?, folder })
    };
    TARGETS
        .iter()
        .map(|(package, target)| {
            find(package, target)
                .with_context(|| format!("cargo built no tests {package} {target}"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_binaries_are_found_among_the_messages_of_cargo_in_the_order_of_the_list() {
        let line = |(package, target): (&str, &str), test: bool| {
            serde_json::json!({
                "reason": "compiler-artifact", "package_id": format!("path+file:///x#{package}@0.1.0"),
                "manifest_path": format!("/x/{package}/Cargo.toml"),
                "target": {"name": target, "kind": ["lib"]}, "profile": {"test": test},
                "executable": test.then(|| format!("/t/{package}-{target}")),
            })
            .to_string()
        };
        let mut lines: Vec<String> =
            TARGETS.iter().rev().map(|target| line(*target, true)).collect();
        lines.insert(0, line(("tephra-core", "tephra_core"), false));
        lines.insert(0, line(("tephra-other", "tephra_core"), true));
        lines.push(r#"{"reason":"build-finished","success":true}"#.to_owned());
        let found = binaries(&lines.join("\n")).unwrap();
        let names: Vec<&str> = found.iter().map(|test| test.name).collect();
        assert_eq!(names, TARGETS.iter().map(|(_, target)| *target).collect::<Vec<_>>());
        assert_eq!(found[2].program, Path::new("/t/tephra-core-tephra_core"));
        assert_eq!(found[2].folder, Path::new("/x/tephra-core"));
    }

    #[test]
    fn a_test_that_cargo_did_not_build_is_an_error() {
        let error = binaries("").unwrap_err().to_string();
        assert_eq!(error, "cargo built no tests tephra-api tephra_api");
    }
}
