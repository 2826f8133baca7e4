//! What the demo shows: a table that is redrawn on a terminal, one line per change elsewhere.

use std::io::{IsTerminal as _, Write as _};
use std::path::Path;

use comfy_table::{ContentArrangement, Table};

use super::audit::Audit;
use super::samples::TEAMS;
use super::snapshot::Snapshot;

/// Columns that every terminal has.
const WIDTH: u16 = 79;

/// Prints a line.
pub(super) fn line(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// Says how to look at the cluster; on standard error where standard output belongs to a program.
pub(super) fn hint(kubeconfig: &Path, quiet: bool) {
    let path = kubeconfig.display();
    let text = format!("kubectl --kubeconfig {path} get pods,podgroups,queues -A");
    if quiet {
        let _ = writeln!(std::io::stderr(), "{text}");
    } else {
        line(&text);
    }
}

fn table(snapshot: &Snapshot) -> Table {
    let mut table = Table::new();
    // Wrapped by the table, not by the terminal: redrawing counts lines.
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(WIDTH);
    table.set_header([
        "team",
        "weight",
        "share",
        "gangs whole",
        "running",
        "waiting",
        "done",
        "why it waits",
    ]);
    for sample in TEAMS {
        let team = snapshot.teams.get(sample.name).cloned().unwrap_or_default();
        table.add_row([
            sample.name.to_owned(),
            sample.weight.to_string(),
            format!("{} %", team.share),
            format!("{}/{}", team.whole, team.gangs),
            team.running.to_string(),
            (team.pods - team.bound).to_string(),
            team.done.to_string(),
            team.why,
        ]);
    }
    table
}

fn lines(snapshot: &Snapshot) -> String {
    let team = |(name, team): (&String, &super::snapshot::Team)| {
        let waiting = team.pods - team.bound;
        let why = if team.why.is_empty() { String::new() } else { format!(" ({})", team.why) };
        format!(
            "{name}: {} running on {} % of the GPUs, {waiting} waiting{why}, {} done",
            team.running, team.share, team.done
        )
    };
    snapshot.teams.iter().map(team).collect::<Vec<_>>().join("\n") + "\n"
}

/// Shows snapshots: redrawn in place on a terminal, lines per change elsewhere.
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

    /// Shows a snapshot; false if it is the one before.
    pub(super) fn show(&mut self, now: &Snapshot) -> bool {
        if self.last.as_ref() == Some(now) {
            return false;
        }
        if !self.quiet && self.terminal {
            if self.drawn > 0 {
                let _ = write!(std::io::stdout(), "\x1b[{}A\x1b[J", self.drawn);
            }
            let drawn = table(now).to_string();
            self.drawn = drawn.lines().count();
            line(&drawn);
        } else if !self.quiet {
            line(&lines(now));
        }
        self.last = Some(now.clone());
        true
    }
}

/// The closing words.
pub(super) fn summary(snapshot: &Snapshot, audit: &Audit) {
    line(&table(snapshot).to_string());
    if audit.violations.is_empty() {
        line(
            "audit of the API history: every pod bound once (I1), no node over its size (I2), \
             every started gang whole (I3), no queue over its capability (I4)",
        );
    }
    for violation in &audit.violations {
        line(&format!("VIOLATED {violation}"));
    }
    if !snapshot.done() {
        line("the samples have not all completed");
    }
}
