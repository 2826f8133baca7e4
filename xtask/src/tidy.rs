//! Rules about source files: module docs, length, names of modules.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// Longest source file.
const MAX_LINES: usize = 800;
/// Names that say nothing about what a module is for.
const FORBIDDEN: &[&str] = &["util", "utils", "helper", "helpers", "common", "misc"];
/// Folders without sources of ours.
const SKIPPED: &[&str] = &["target", ".git", ".cargo"];
/// The scheduling core has no clock of its own.
const TIMELESS: &str = "scheduler/core/src";

/// What is wrong with the sources below a folder, in order of their paths.
pub(crate) fn problems(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut files = Vec::new();
    collect(root, &mut files)?;
    files.sort();
    let mut problems = Vec::new();
    for file in files {
        let text =
            fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
        let path = file.strip_prefix(root).unwrap_or(&file);
        problems.extend(judge(path, &text).map(|problem| format!("{}: {problem}", path.display())));
    }
    Ok(problems)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let entries = fs::read_dir(folder).with_context(|| format!("listing {}", folder.display()))?;
    for entry in entries {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            if !SKIPPED.iter().any(|skipped| entry.file_name() == *skipped) {
                collect(&path, files)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

fn judge(path: &Path, text: &str) -> impl Iterator<Item = String> {
    let mut problems = Vec::new();
    if !text.starts_with("//!") {
        problems.push("does not open with `//!` docs that tell what lives here".to_owned());
    }
    let lines = text.lines().count();
    if lines > MAX_LINES {
        problems.push(format!("has {lines} lines, more than {MAX_LINES}: split it by ideas"));
    }
    for part in path.with_extension("").iter() {
        if FORBIDDEN.iter().any(|forbidden| part == *forbidden) {
            problems.push(format!("{} is no name for a module", part.display()));
        }
    }
    if path.starts_with(TIMELESS) && text.contains(concat!("std::", "time")) {
        problems.push("reads a clock, which the core must not".to_owned());
    }
    problems.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workspace_is_tidy() {
        assert_eq!(problems(&crate::root()).unwrap(), Vec::<String>::new());
    }

    fn judged(path: &str, text: &str) -> Vec<String> {
        judge(Path::new(path), text).collect()
    }

    #[test]
    fn docs_length_and_names_are_each_judged() {
        assert_eq!(judged("api/src/keys.rs", "//! Keys."), Vec::<String>::new());
        assert_eq!(judged("a.rs", "use x;\n//! late").len(), 1);
        assert_eq!(judged("a.rs", &format!("//! Long.\n{}", "\n".repeat(799))).len(), 0);
        assert_eq!(judged("a.rs", &format!("//! Long.\n{}", "\n".repeat(800))).len(), 1);
        assert_eq!(judged("a/src/utils.rs", "//! x"), ["utils is no name for a module"]);
        assert_eq!(judged("a/src/common/b.rs", "//! x"), ["common is no name for a module"]);
    }

    #[test]
    fn only_the_core_may_not_read_a_clock() {
        let text = concat!("//! x\nuse std::", "time::Instant;");
        assert_eq!(judged("scheduler/core/src/a.rs", text).len(), 1);
        assert_eq!(judged("scheduler/src/a.rs", text), Vec::<String>::new());
    }
}
