//! Prometheus' own code as a judge: `rig/prometheus/main.go`, built once by `rig/build.sh`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail, ensure};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::rig::assets;

/// The program.
#[derive(Clone, Debug)]
pub struct Promcheck(PathBuf);

/// A metrics page as Prometheus reads it.
#[derive(Clone, Debug, Deserialize)]
pub struct Page {
    /// Type of each family that says one.
    pub types: BTreeMap<String, String>,
    /// Series in their order.
    pub series: Vec<Series>,
}

/// One series.
#[derive(Clone, Debug, Deserialize)]
pub struct Series {
    /// Name of the metric.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    value: String,
}

impl Series {
    /// Its value; NaN when it is no number.
    pub fn value(&self) -> f64 {
        self.value.parse().unwrap_or(f64::NAN)
    }
}

impl Page {
    /// Series of a name that have these labels, perhaps among others.
    pub fn find<'p>(
        &'p self,
        name: &'p str,
        labels: &'p [(&'p str, &'p str)],
    ) -> impl Iterator<Item = &'p Series> {
        self.series.iter().filter(move |series| {
            let has = |(label, value): &(&str, &str)| {
                series.labels.get(*label).is_some_and(|found| found == value)
            };
            series.name == name && labels.iter().all(has)
        })
    }

    /// Value of the one series of a name with these labels.
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let mut found = self.find(name, labels);
        let first = found.next()?.value();
        found.next().is_none().then_some(first)
    }
}

/// An alert of a rules file.
#[derive(Clone, Debug, Deserialize)]
pub struct Alert {
    /// Its name.
    pub name: String,
    /// When it fires.
    pub expr: String,
    /// Labels, `severity` among them.
    pub labels: BTreeMap<String, String>,
    /// Texts for a person.
    pub annotations: BTreeMap<String, String>,
}

/// What an expression selects.
#[derive(Clone, Debug, Deserialize)]
pub struct Selection {
    /// Name of the metric.
    pub metric: String,
    /// Labels that the expression names for it.
    pub labels: BTreeSet<String>,
}

impl Promcheck {
    /// Finds the program, building it first when that is possible; `None` where there is no Go.
    ///
    /// # Errors
    /// When the build fails for another reason.
    pub fn find() -> anyhow::Result<Option<Self>> {
        let output = Command::new("bash")
            .arg(assets::source().join("build.sh"))
            .arg("promcheck")
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .context("running build.sh")?;
        let text = String::from_utf8_lossy(&output.stdout);
        match output.status.code() {
            Some(0) => {
                let path = text.lines().last().context("build.sh printed no path")?;
                Ok(Some(Self(path.into())))
            }
            Some(assets::NO_TOOLS) => Ok(None),
            _ => bail!("build.sh promcheck failed: {}", output.status),
        }
    }

    /// Fetches a metrics page as a Prometheus server does.
    ///
    /// # Errors
    /// When it is not there or Prometheus would refuse it.
    pub fn scrape(&self, url: &str) -> anyhow::Result<Page> {
        self.ask(&["scrape", url], "")
    }

    /// Validates a file of rules.
    ///
    /// # Errors
    /// When Prometheus would refuse it.
    pub fn rules(&self, file: &Path) -> anyhow::Result<Vec<Alert>> {
        self.ask(&["rules", &file.to_string_lossy()], "")
    }

    /// What each of these PromQL expressions selects.
    ///
    /// # Errors
    /// When one is not valid.
    pub fn queries(&self, expressions: &[String]) -> anyhow::Result<Vec<Vec<Selection>>> {
        self.ask(&["queries"], &serde_json::to_string(expressions)?)
    }

    fn ask<T: DeserializeOwned>(&self, arguments: &[&str], input: &str) -> anyhow::Result<T> {
        let mut command = Command::new(&self.0);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().context("starting promcheck")?;
        child.stdin.take().context("a pipe")?.write_all(input.as_bytes())?;
        let output = child.wait_with_output()?;
        let words = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{}", words.trim());
        Ok(serde_json::from_slice(&output.stdout)?)
    }
}
