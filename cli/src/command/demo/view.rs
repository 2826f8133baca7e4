//! What the demo shows: a table that is redrawn on a terminal, plain lines elsewhere, and at the end a check of the
//! promises that the API server's record can prove.

use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Write as _};

use comfy_table::Table;
use serde_json::{Value, json};
use tephra_simulator::ApiServer;

use super::samples::TEAMS;

/// Prints a line.
pub(super) fn line(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// Figures of one team.
#[derive(Clone, Debug, Default, PartialEq)]
struct Team {
    pods: usize,
    bound: usize,
    running: usize,
    done: usize,
    gangs: usize,
    whole: usize,
    why: String,
}

/// State of the samples at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Snapshot {
    teams: BTreeMap<String, Team>,
}

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

impl Snapshot {
    /// Reads the state from the API server.
    pub(super) fn take(server: &ApiServer) -> Self {
        let mut teams: BTreeMap<String, Team> =
            TEAMS.iter().map(|(team, _)| ((*team).to_owned(), Team::default())).collect();
        let mut bound_by_gang: BTreeMap<(String, String), usize> = BTreeMap::new();
        for pod in server.list_values("pods") {
            let Some(team) = teams.get_mut(text(&pod, "/metadata/namespace")) else { continue };
            team.pods += 1;
            let phase = text(&pod, "/status/phase");
            team.running += usize::from(phase == "Running");
            team.done += usize::from(phase == "Succeeded");
            if !text(&pod, "/spec/nodeName").is_empty() {
                team.bound += 1;
                let group = pod
                    .pointer("/metadata/annotations/scheduling.k8s.io~1group-name")
                    .and_then(Value::as_str)
                    .unwrap_or_default();
                let key = (text(&pod, "/metadata/namespace").to_owned(), group.to_owned());
                *bound_by_gang.entry(key).or_default() += 1;
            }
        }
        for group in server.list_values("podgroups") {
            let namespace = text(&group, "/metadata/namespace").to_owned();
            let Some(team) = teams.get_mut(&namespace) else { continue };
            team.gangs += 1;
            let min =
                group.pointer("/spec/minMember").and_then(Value::as_u64).unwrap_or(0) as usize;
            let name = text(&group, "/metadata/name").to_owned();
            let bound = bound_by_gang.get(&(namespace, name)).copied().unwrap_or(0);
            team.whole += usize::from(bound >= min);
            let waits = group
                .pointer("/status/conditions")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .find(|c| text(c, "/type") == "Unschedulable" && text(c, "/status") == "True");
            if let Some(condition) = waits.filter(|_| team.why.is_empty()) {
                team.why = text(condition, "/message").to_owned();
            }
        }
        Self { teams }
    }

    /// Every pod of the samples has succeeded.
    pub(super) fn done(&self) -> bool {
        self.teams.values().all(|team| team.pods > 0 && team.done == team.pods)
    }

    /// What the API server's record contradicts, empty when all promises held: bound once (I1), no node over its
    /// GPUs at any bind (I2), whole gangs (I3). The samples set no capability (I4).
    pub(super) fn audit(&self, server: &ApiServer) -> Vec<String> {
        let mut findings = Vec::new();
        let mut binds: BTreeMap<String, usize> = BTreeMap::new();
        for write in server.history() {
            if write.subresource == "binding" && (200..300).contains(&write.outcome) {
                *binds.entry(write.uid.clone()).or_default() += 1;
            }
        }
        for (uid, count) in binds.iter().filter(|(_, count)| **count > 1) {
            findings.push(format!("I1: pod {uid} was bound {count} times"));
        }
        let mut gpus: BTreeMap<String, usize> = BTreeMap::new();
        for pod in server.list_values("pods") {
            if text(&pod, "/status/phase") != "Succeeded"
                && !text(&pod, "/spec/nodeName").is_empty()
            {
                *gpus.entry(text(&pod, "/spec/nodeName").to_owned()).or_default() += 1;
            }
        }
        for (node, count) in gpus.iter().filter(|(_, count)| **count > 8) {
            findings.push(format!("I2: node {node} holds {count} pods of one GPU"));
        }
        for (name, team) in &self.teams {
            if self.done() && team.whole != team.gangs {
                findings.push(format!(
                    "I3: team {name} has {} whole gangs of {}",
                    team.whole, team.gangs
                ));
            }
        }
        findings
    }

    /// The figures as JSON.
    pub(super) fn report(&self, audit: &[String]) -> Value {
        let teams: serde_json::Map<String, Value> = self
            .teams
            .iter()
            .map(|(name, team)| {
                let figures = json!({"pods": team.pods, "bound": team.bound, "completed": team.done,
                                     "gangs": team.gangs, "wholeGangs": team.whole});
                (name.clone(), figures)
            })
            .collect();
        json!({"done": self.done(), "teams": teams,
               "audit": {"invariants": ["I1", "I2", "I3", "I4"], "violations": audit}})
    }
}

fn table(snapshot: &Snapshot) -> Table {
    let mut table = Table::new();
    table.set_header([
        "team",
        "weight",
        "gangs whole",
        "running",
        "waiting",
        "done",
        "why it waits",
    ]);
    for (name, weight) in TEAMS {
        let team = snapshot.teams.get(name).cloned().unwrap_or_default();
        let why: String = team.why.chars().take(60).collect();
        table.add_row([
            name.to_owned(),
            weight.to_string(),
            format!("{}/{}", team.whole, team.gangs),
            team.running.to_string(),
            (team.pods - team.bound).to_string(),
            team.done.to_string(),
            why,
        ]);
    }
    table
}

/// Shows snapshots: redrawn in place on a terminal, one line per change elsewhere.
#[derive(Debug)]
pub(super) struct Screen {
    quiet: bool,
    terminal: bool,
    last: Option<Snapshot>,
    drawn: usize,
}

impl Screen {
    pub(super) fn new(quiet: bool) -> Self {
        Self { quiet, terminal: std::io::stdout().is_terminal(), last: None, drawn: 0 }
    }

    pub(super) fn show(&mut self, now: &Snapshot) {
        if self.quiet || self.last.as_ref() == Some(now) {
            return;
        }
        if self.terminal {
            if self.drawn > 0 {
                let _ = write!(std::io::stdout(), "\x1b[{}A\x1b[J", self.drawn);
            }
            let drawn = table(now).to_string();
            self.drawn = drawn.lines().count();
            line(&drawn);
        } else {
            let parts: Vec<String> = now
                .teams
                .iter()
                .map(|(name, team)| {
                    format!(
                        "{name}: {} running, {} waiting, {} done",
                        team.running,
                        team.pods - team.bound,
                        team.done
                    )
                })
                .collect();
            line(&parts.join("; "));
        }
        self.last = Some(now.clone());
    }
}

/// The closing words.
pub(super) fn summary(snapshot: &Snapshot, audit: &[String]) {
    line(&table(snapshot).to_string());
    if audit.is_empty() {
        line("audit: every pod bound once, no node over its size, every started gang whole");
    }
    for finding in audit {
        line(&format!("VIOLATED {finding}"));
    }
}
