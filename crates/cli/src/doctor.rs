//! `larder doctor`: checks a server and its host, and says what mends what it finds.

mod host;
mod server;

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use serde::{Deserialize, Serialize};

use crate::connect::{One, is_local};
use crate::exit::{Outcome, Verdict, print, print_json};
use crate::figures::{Figures, stats};
use crate::http::HttpSource;
use crate::screen::width;
use host::Host;

/// Checks a server and its host, and says what mends what it finds
///
/// What the server counts is checked over its port; its host is checked if that is this one, by its process in /proc.
/// With --http the daemon runs the checks itself, those of its host too. The exit code is 2 if there are findings.
#[derive(Debug, Args)]
pub struct DoctorArguments {
    /// Check the host below this folder, which holds its proc and sys, instead of /
    #[arg(long, value_name = "FOLDER", default_value = "/", conflicts_with = "http")]
    root: PathBuf,
    /// Print all checks as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    http: HttpSource,
    #[command(flatten)]
    one: One,
}

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Weight {
    /// Items are lost, or will be.
    Error,
    /// It costs speed, memory or hits.
    Warning,
}

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// How much it matters.
    pub weight: Weight,
    /// What is so.
    pub finding: String,
    /// Why it matters.
    pub why: Cow<'static, str>,
    /// What mends it: a command, an option or a setting.
    pub fix: String,
}

/// One check and its outcome.
#[derive(Debug, Serialize, Deserialize)]
pub struct Checked {
    /// The check's name, one for each.
    pub check: Cow<'static, str>,
    /// What it found; `None` if all is well.
    #[serde(flatten)]
    pub finding: Option<Finding>,
}

/// What checks look at.
struct Scene {
    figures: Figures,
    /// `stats settings`.
    settings: Vec<(String, String)>,
    /// None if the server is elsewhere.
    host: Option<Host>,
}

type Check = (&'static str, fn(&Scene) -> Option<Finding>);

/// Runs the verb.
///
/// # Errors
/// The server cannot be asked.
pub fn run(arguments: &DoctorArguments) -> Outcome<Verdict> {
    let (checked, has_host) = match arguments.http.alone(&arguments.one)? {
        Some(http) => (http.json("/api/v1/doctor")?, true),
        None => {
            let client = arguments.one.client()?;
            let figures = Figures::ask(&client)?;
            let settings = stats(&client, "settings")?;
            let root = is_local(arguments.one.address()).then_some(arguments.root.as_path());
            examine(figures, settings, root)
        }
    };
    let is_fine = checked.iter().all(|checked| checked.finding.is_none());
    if arguments.json {
        print_json(&checked)?;
    } else {
        print(&text(&checked, has_host, width(&std::io::stdout())))?;
    }
    Ok(if is_fine { Verdict::Fine } else { Verdict::Findings })
}

/// Checks a server of this host by its own figures: the lines of `stats`, `stats larder` and `stats settings`. Its
/// process is the one whose id `stats` has.
pub fn examine_own(
    general: Vec<(String, String)>,
    larder: Vec<(String, String)>,
    settings: Vec<(String, String)>,
) -> Vec<Checked> {
    examine(Figures::new(Instant::now(), general, larder), settings, Some(Path::new("/"))).0
}

/// Runs all checks, those of the host if its root folder is given and the server's process is found there. Returns
/// whether it was.
fn examine(figures: Figures, settings: Vec<(String, String)>, root: Option<&Path>) -> (Vec<Checked>, bool) {
    let host = root.zip(figures.get("pid")).and_then(|(root, pid)| Host::of(root, pid));
    let scene = Scene { figures, settings, host };
    let mut checked = run_checks(&scene, server::CHECKS);
    if scene.host.is_some() {
        checked.extend(run_checks(&scene, host::CHECKS));
    }
    (checked, scene.host.is_some())
}

fn run_checks(scene: &Scene, checks: &[Check]) -> Vec<Checked> {
    checks.iter().map(|(check, run)| Checked { check: Cow::Borrowed(check), finding: run(scene) }).collect()
}

fn text(checked: &[Checked], has_host: bool, columns: usize) -> String {
    let mut text = String::new();
    for Checked { check, finding } in checked {
        let Some(Finding { weight, finding, why, fix }) = finding else { continue };
        let weight = if *weight == Weight::Error { "ERROR" } else { "warning" };
        wrap(&mut text, &format!("{weight} {check}: {finding}"), "  ", columns);
        wrap(&mut text, &format!("  why: {why}"), "       ", columns);
        wrap(&mut text, &format!("  do: {fix}"), "       ", columns);
        text.push('\n');
    }
    let findings = checked.iter().filter(|checked| checked.finding.is_some()).count();
    let host = if has_host { "" } else { "; its host was not checked: run doctor there" };
    let result = if findings == 0 { "nothing found".to_string() } else { format!("findings: {findings}") };
    wrap(&mut text, &format!("{result}, in {} checks{host}", checked.len()), "", columns);
    text
}

/// Appends text, broken at blanks so that no line is wider than `columns`, if its words allow.
fn wrap(text: &mut String, line: &str, indent: &str, columns: usize) {
    let mut used = 0;
    let own = line.chars().take_while(|c| *c == ' ').count();
    text.push_str(&" ".repeat(own));
    for word in line.split_whitespace() {
        let width = word.chars().count();
        if used > 0 && own + used + 1 + width > columns {
            text.push('\n');
            text.push_str(indent);
            used = indent.len().saturating_sub(own);
        } else if used > 0 {
            text.push(' ');
            used += 1;
        }
        text.push_str(word);
        used += width;
    }
    text.push('\n');
}

impl Scene {
    fn setting(&self, name: &str) -> Option<&str> {
        self.settings.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn number(&self, name: &str) -> u64 {
        self.figures.get(name).unwrap_or(0)
    }

    fn has_ssd(&self) -> bool {
        self.number("ssd_segments") > 0
    }
}

fn warning(finding: String, why: &'static str, fix: impl Into<String>) -> Option<Finding> {
    Some(Finding { weight: Weight::Warning, finding, why: why.into(), fix: fix.into() })
}

fn error(finding: String, why: &'static str, fix: impl Into<String>) -> Option<Finding> {
    Some(Finding { weight: Weight::Error, finding, why: why.into(), fix: fix.into() })
}

/// Reads a file of a host; `None` if there is none.
fn read(root: &Path, path: &str) -> Option<String> {
    std::fs::read_to_string(root.join(path)).ok()
}

#[cfg(test)]
mod tests;
