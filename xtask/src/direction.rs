//! The direction of dependencies (DESIGN.md 3): which crate of the workspace may use which, and what the scheduling core
//! must never be linked with.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail};
use serde::Deserialize;

/// Normal dependencies that a crate may have on others of the workspace. Crates that are not named may use all.
const ALLOWED: &[(&str, &[&str])] = &[
    ("tephra-api", &[]),
    ("tephra-telemetry", &[]),
    ("tephra-core", &["tephra-api"]),
    ("tephra-process", &["tephra-api"]),
    ("tephra-scheduler", &["tephra-api", "tephra-core", "tephra-process", "tephra-telemetry"]),
    ("tephra-controller", &["tephra-api", "tephra-process", "tephra-telemetry"]),
    ("tephra-simulator", &["tephra-api"]),
    ("xtask", &["tephra-api"]),
];

/// Crates that neither the core nor the plain `api` may be linked with, by name or by prefix of the name.
const FORBIDDEN: &[&str] = &["tokio", "kube", "k8s-openapi", "hyper", "async-std", "futures"];

#[derive(Debug, Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Debug, Deserialize)]
struct Package {
    name: String,
    dependencies: Vec<Dependency>,
}

#[derive(Debug, Deserialize)]
struct Dependency {
    name: String,
    /// `None` for a normal one.
    kind: Option<String>,
    /// Set for crates of the workspace.
    path: Option<String>,
}

/// Dependencies that point the wrong way.
pub(crate) fn problems(root: &Path) -> anyhow::Result<Vec<String>> {
    let text = cargo(root, &["metadata", "--no-deps", "--format-version", "1"])?;
    let metadata: Metadata = serde_json::from_str(&text).context("reading cargo metadata")?;
    let mut problems = upwards(&metadata);
    for package in ["tephra-core", "tephra-api"] {
        // The whole workspace would switch features on that this crate alone leaves off.
        let arguments = ["tree", "-p", package, "-e", "normal", "--prefix", "none", "-f", "{p}"];
        problems.extend(forbidden(package, &cargo(root, &arguments)?));
    }
    Ok(problems)
}

fn cargo(root: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(program)
        .args(arguments)
        .current_dir(root)
        .output()
        .with_context(|| format!("running cargo {}", arguments.join(" ")))?;
    if !output.status.success() {
        bail!("cargo {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    String::from_utf8(output.stdout).context("cargo wrote no UTF-8")
}

fn upwards(metadata: &Metadata) -> Vec<String> {
    let mut problems = Vec::new();
    for (name, allowed) in ALLOWED {
        let Some(package) = metadata.packages.iter().find(|package| package.name == *name) else {
            problems.push(format!("there is no crate {name} in the workspace"));
            continue;
        };
        for dependency in &package.dependencies {
            let normal = dependency.kind.is_none() && dependency.path.is_some();
            if normal && !allowed.contains(&dependency.name.as_str()) {
                problems.push(format!("{name} must not depend on {}", dependency.name));
            }
        }
    }
    problems
}

fn forbidden(package: &str, tree: &str) -> Vec<String> {
    let mut names: Vec<&str> =
        tree.lines().filter_map(|line| line.split_whitespace().next()).collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|name| {
        FORBIDDEN.iter().any(|forbidden| {
            name.strip_prefix(forbidden)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        })
    });
    names.iter().map(|name| format!("{package} must not be linked with {name}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_of_the_workspace_point_one_way() {
        assert_eq!(problems(&crate::root()).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn a_wrong_turn_is_named() {
        let package = |name: &str, dependencies| Package { name: name.to_owned(), dependencies };
        let on = |name: &str, kind: Option<&str>| Dependency {
            name: name.to_owned(),
            kind: kind.map(str::to_owned),
            path: Some("/somewhere".to_owned()),
        };
        let others = ALLOWED.iter().filter(|(name, _)| *name != "tephra-core");
        let mut packages: Vec<Package> =
            others.map(|(name, _)| package(name, Vec::new())).collect();
        packages.push(package(
            "tephra-core",
            vec![
                on("tephra-api", None),
                on("tephra-scheduler", None),
                on("tephra-simulator", Some("dev")),
            ],
        ));
        let problems = upwards(&Metadata { packages });
        assert_eq!(problems, ["tephra-core must not depend on tephra-scheduler"]);
    }

    #[test]
    fn a_forbidden_crate_anywhere_in_the_graph_is_named() {
        let tree = "tephra-core v0.1.0 (/x)\nkube-core v5.0.0\nserde v1.0.0\ntokio v1.54.0 (*)\nkubernetes v1.0.0\n";
        assert_eq!(
            forbidden("tephra-core", tree),
            [
                "tephra-core must not be linked with kube-core",
                "tephra-core must not be linked with tokio"
            ]
        );
    }
}
