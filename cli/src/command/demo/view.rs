//! What the demo shows: a table that is redrawn on a terminal, one line per change elsewhere.

use std::io::{IsTerminal as _, Write as _};
use std::path::Path;

use comfy_table::{ContentArrangement, Table, presets};

use super::audit::Audit;
use super::samples::TEAMS;
use super::snapshot::{Snapshot, Team};

/// Columns that every terminal has.
const WIDTH: usize = 79;

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

/// One row per team and below it, in one line each, why teams wait: redrawing counts lines, so nothing may wrap.
fn board(snapshot: &Snapshot) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(["TEAM", "WEIGHT", "SHARE", "WHOLE GANGS", "RUNNING", "WAITING", "DONE"]);
    let mut reasons = String::new();
    for sample in TEAMS {
        let team = snapshot.teams.get(sample.name).cloned().unwrap_or_default();
        if !team.why.is_empty() {
            reasons.push('\n');
            reasons.push_str(&cut(&format!(" {} waits: {}", sample.name, team.why), WIDTH));
        }
        table.add_row([
            sample.name.to_owned(),
            sample.weight.to_string(),
            format!("{} %", team.share),
            format!("{}/{}", team.whole, team.gangs),
            team.running.to_string(),
            team.waiting().to_string(),
            team.done.to_string(),
        ]);
    }
    format!("{}{reasons}", table.trim_fmt())
}

/// The first `width` characters.
fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width - 3).chain("...".chars()).collect()
}

fn lines(snapshot: &Snapshot) -> String {
    let team = |(name, team): (&String, &Team)| {
        let waiting = team.waiting();
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
            let drawn = board(now);
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
    // A terminal shows the last state already.
    if !std::io::stdout().is_terminal() {
        line(&board(snapshot));
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_board_has_one_short_line_for_each_team_and_each_reason() {
        let mut snapshot = Snapshot::default();
        let vision = Team {
            pods: 30,
            bound: 10,
            running: 10,
            gangs: 3,
            whole: 1,
            share: 50,
            ..Team::default()
        };
        let speech = Team { pods: 5, why: "x".repeat(200), ..Team::default() };
        snapshot.teams.insert("vision".to_owned(), vision);
        snapshot.teams.insert("speech".to_owned(), speech);
        let board = board(&snapshot);
        let lines: Vec<&str> = board.lines().collect();
        assert_eq!(lines.len(), 5, "{board}");
        assert!(lines.iter().all(|line| line.chars().count() <= WIDTH), "{board}");
        let words: Vec<&str> = lines[1].split_whitespace().collect();
        assert_eq!(words, ["vision", "3", "50", "%", "1/3", "10", "20", "0"]);
        assert!(lines[4].starts_with(" speech waits: xxx") && lines[4].ends_with("..."));
    }
}
