//! `larder config` shows the settings of a running daemon, compares them with those of another start, and makes the
//! daemon read its files again.

mod reload;

use std::ffi::OsString;

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use crate::connect::One;
use crate::exit::{Failure, Outcome, Verdict, print, print_json};
use crate::http::HttpSource;

/// What the verb does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    /// Every setting of the daemon, and where it comes from
    Show,
    /// The settings that a start with OPTIONS would change
    Diff,
    /// Make a daemon of this host read users, certificates and the cluster's servers again
    Reload,
}

/// Shows the settings of a daemon, what other options would change, or has files read again
///
/// The daemon shows settings over its --http. A start reads OPTIONS, the environment and the file of --config as
/// the daemon does, here and now. The exit code of diff is 2 if there is a difference; it takes effect at the next
/// start. Reload sends SIGHUP to the daemon's process, which --http or --server tells; its log has the result.
#[derive(Debug, Args)]
pub struct ConfigArguments {
    /// What to show
    #[arg(value_enum)]
    what: What,
    /// The options of a start, behind --
    #[arg(last = true, value_name = "OPTIONS")]
    options: Vec<OsString>,
    /// Print the settings as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    http: HttpSource,
    #[command(flatten)]
    one: One,
}

/// A setting: one value, and where it comes from. A list has several of one name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// The long name of its option.
    pub name: String,
    /// The value, as text.
    pub value: String,
    /// Where the value comes from, such as `flag -m`.
    pub origin: String,
}

/// Returns the settings that a start with some options would have, or why there would be none.
pub type SettingsOf = fn(&[OsString]) -> Result<Vec<Setting>, String>;

/// A setting that differs. A list counts as one value.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Difference {
    name: String,
    running: Option<Shown>,
    next_start: Option<Shown>,
}

/// The values of one name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Shown {
    value: String,
    origin: String,
}

/// Runs the verb.
///
/// # Errors
/// The daemon cannot be asked, or the options are wrong.
pub fn run(arguments: &ConfigArguments, settings_of: SettingsOf) -> Outcome<Verdict> {
    let ConfigArguments { what, options, json, http, one } = arguments;
    if *what != What::Diff && !options.is_empty() {
        return Err(Failure::Usage("only diff takes the options of a start".to_string()));
    }
    let alone = http.alone(one)?;
    if *what == What::Reload {
        return reload::run(alone, one, *json).map(|()| Verdict::Fine);
    }
    let running: Vec<Setting> = http.json("/api/v1/config")?;
    if *what == What::Show {
        let shown = || {
            running.iter().map(|Setting { name, value, origin }| format!("{name} = {value}  ({origin})\n"))
        };
        match json {
            true => print_json(&running)?,
            false => print(&shown().collect::<String>())?,
        }
        return Ok(Verdict::Fine);
    }
    let next = settings_of(options).map_err(Failure::Usage)?;
    let differences = differences(&running, &next);
    match json {
        true => print_json(&differences)?,
        false => print(&text(&differences))?,
    }
    Ok(if differences.is_empty() { Verdict::Fine } else { Verdict::Findings })
}

/// Returns what differs, in the order of the daemon's settings.
fn differences(running: &[Setting], next: &[Setting]) -> Vec<Difference> {
    let mut names: Vec<&str> = Vec::new();
    for Setting { name, .. } in running.iter().chain(next) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let difference = |name: &str| Difference {
        name: name.to_string(),
        running: values(running, name),
        next_start: values(next, name),
    };
    let value = |shown: &Option<Shown>| shown.as_ref().map(|shown| shown.value.clone());
    let differ = |found: &Difference| value(&found.running) != value(&found.next_start);
    names.into_iter().map(difference).filter(differ).collect()
}

/// Returns the values of a name, with the origin of the last one; `None` if there are none.
fn values(settings: &[Setting], name: &str) -> Option<Shown> {
    let of_name: Vec<&Setting> = settings.iter().filter(|setting| setting.name == name).collect();
    let value = of_name.iter().map(|setting| setting.value.as_str()).collect::<Vec<_>>().join(", ");
    of_name.last().map(|last| Shown { value, origin: last.origin.clone() })
}

fn text(differences: &[Difference]) -> String {
    let mut text = String::new();
    for Difference { name, running, next_start } in differences {
        text.push_str(&format!("{name}\n"));
        for (when, shown) in [("running", running), ("next start", next_start)] {
            text.push_str(&match shown {
                Some(Shown { value, origin }) => format!("  {when:<10}  {value}  ({origin})\n"),
                None => format!("  {when:<10}  not set\n"),
            });
        }
    }
    text + &match differences.len() {
        0 => "no setting differs\n".to_string(),
        1 => "1 setting differs; a restart changes it\n".to_string(),
        count => format!("{count} settings differ; a restart changes them\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(of: &[(&str, &str)]) -> Vec<Setting> {
        let setting = |(name, value): &(&str, &str)| Setting {
            name: name.to_string(),
            value: value.to_string(),
            origin: "default".to_string(),
        };
        of.iter().map(setting).collect()
    }

    fn names(one: &[(&str, &str)], other: &[(&str, &str)]) -> Vec<String> {
        differences(&settings(one), &settings(other)).into_iter().map(|difference| difference.name).collect()
    }

    #[test]
    fn settings_differ_by_their_values_and_not_by_where_these_come_from() {
        let running = [("memory-limit", "1 GiB"), ("listen", "127.0.0.1"), ("listen", "::1"), ("io", "auto")];
        let mut other = settings(&running);
        other[0].origin = "flag -m".to_string();
        assert_eq!(differences(&settings(&running), &other), []);
        assert_eq!(names(&running, &running[..3]), ["io"]);
        assert_eq!(names(&running[..3], &running), ["io"]);
        assert_eq!(names(&running, &[running[0], running[1], running[3]]), ["listen"]);
        assert_eq!(
            names(&running, &[("memory-limit", "2 GiB"), running[1], running[2], ("io", "uring")]),
            ["memory-limit", "io"]
        );
    }

    #[test]
    fn a_difference_shows_both_values_and_their_origins() {
        let shown =
            text(&differences(&settings(&[("io", "auto")]), &settings(&[("io", "threads"), ("udp", "1")])));
        assert_eq!(
            shown,
            "io\n  running     auto  (default)\n  next start  threads  (default)\n\
             udp\n  running     not set\n  next start  1  (default)\n\
             2 settings differ; a restart changes them\n"
        );
        assert_eq!(text(&[]), "no setting differs\n");
    }
}
