//! `larder-bench counter`: how fast stores increment one counter for several threads, and whether they do it
//! right.

use super::{Exit, Failure, output};
use crate::counter::entry::Entry;
use crate::counter::measure::Length;
use crate::counter::self_check::self_check;
use crate::counter::shootout::{self, Contestant, Outcome, Plan};
use crate::counter::store::{Kind, Options, Sql};
use crate::counter::table::{grouped, table};
use crate::result::{Check, Counter, Document, Environment, Verdict};
use crate::show;
use crate::workload::parse;
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Histories that `--self-check` judges: this many sound ones, and as many wrong ones.
const SELF_CHECK_HISTORIES: u32 = 20;

/// The text after the options in the help.
const AFTER_HELP: &str = "\
Each thread has a connection of its own and increments as often as it can.
Every answer is kept; with the final value they must be those of one atomic
counter (be linearizable), or the exit status is 4. Errors, and threads that were short
of CPU, make it 5: such rates are marked by ! and must not be quoted.

Run it against servers for testing: it empties what it counts in.";

/// Increment one counter from many threads, and prove that every store did it right
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP, next_line_help = true)]
pub struct Args {
    /// A store, and where it is; may be given several times. Another
    /// name for the row goes before: valkey:redis=127.0.0.1:6379
    #[arg(long = "store", value_name = "NAME=URL", verbatim_doc_comment)]
    #[arg(required_unless_present_any = ["list", "self_check"])]
    stores: Vec<Entry>,

    /// Numbers of threads: 1-10, or 1,2,4
    #[arg(short, long, default_value = "1-10", value_name = "RANGE", value_parser = parse_threads)]
    threads: Threads,

    /// How long each store is measured at a number of threads
    #[arg(short, long, default_value = "2s", value_name = "TIME", value_parser = parse_time)]
    duration: Duration,

    /// End each measurement after this many increments of all threads together, if that is sooner
    #[arg(short = 'n', long, value_name = "N", value_parser = parse_count)]
    count: Option<u64>,

    /// How often; the table shows the median
    #[arg(long, default_value_t = 1, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: u32,

    /// How databases increment: idiomatic, or as-seed (as in 2015)
    #[arg(long, value_enum, default_value_t, hide_possible_values = true)]
    sql: Sql,

    /// How long to wait for an answer before it counts as lost
    #[arg(long, default_value = "10s", value_name = "TIME", value_parser = parse_time)]
    timeout: Duration,

    /// Leave out the measurement of what the threads can do at most
    #[arg(long)]
    no_calibrate: bool,

    /// Write the result to a file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// No progress
    #[arg(short, long)]
    quiet: bool,

    /// Name the stores, with their exact statements
    #[arg(long)]
    list: bool,

    /// Judge made-up histories of N increments, half with a lost update
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "10m",
        value_parser = parse_count)]
    self_check: Option<u64>,
}

/// Numbers of threads, in the order to try them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Threads(pub Vec<u32>);

/// Runs the command.
pub fn run(args: Args) -> Exit {
    if args.list {
        return list(args.sql);
    }
    if let Some(count) = args.self_check {
        return check_self(count);
    }
    if let Some(twice) = duplicate(&args.stores) {
        eprintln!("larder-bench: two stores are called {twice}; give one another name: other:{twice}=URL");
        return Exit::Usage;
    }
    if let Some(Err(why)) = args.json.as_deref().map(writable) {
        eprintln!("larder-bench: {why}");
        return Exit::Error;
    }
    let plan = Plan {
        threads: args.threads.0.clone(),
        length: Length { duration: args.duration, increments: args.count },
        repeat: args.repeat,
        calibrates: !args.no_calibrate,
        options: Options { sql: args.sql, timeout: args.timeout },
    };
    let mut contestants = Vec::new();
    for entry in &args.stores {
        match Contestant::prepare(entry.clone(), plan.options) {
            Ok(contestant) => contestants.push(contestant),
            Err(why) => {
                eprintln!(
                    "larder-bench: {why}; check address and server, or leave --store {} out",
                    entry.label
                );
                return Exit::Error;
            }
        }
    }
    let stop = output::stop_on_signals();
    let mut document = document(&args.stores, &contestants);
    let is_live = !args.quiet && io::stderr().is_terminal();
    let outcome = shootout::run(contestants, &plan, &stop, &mut |at, total, store, threads| {
        if is_live {
            eprint!("\r\x1b[K{at}/{total} {store}, {}", show::threads(threads));
        }
    });
    if is_live {
        eprint!("\r\x1b[K");
    }
    show(&outcome, &document.notes);
    finish(&mut document, &outcome);
    let written = args.json.as_deref().map_or(Ok(()), |path| output::write_json(path, &document));
    conclude(&outcome, written)
}

fn duplicate(entries: &[Entry]) -> Option<&str> {
    let is_twice = |at: usize| entries[..at].iter().any(|earlier| earlier.label == entries[at].label);
    (0..entries.len()).find(|&at| is_twice(at)).map(|at| entries[at].label.as_str())
}

fn document(entries: &[Entry], contestants: &[Contestant]) -> Document {
    let facts = contestants.iter().map(|c| (c.entry.label.clone(), c.version.clone())).collect();
    let mut document = output::document();
    for entry in entries {
        let shown = shootout::shown(&entry.address);
        document.command.iter_mut().for_each(|word| *word = word.replace(&entry.address, &shown));
    }
    document.title = "Counter shoot-out".into();
    document.environment = Environment { facts };
    document.notes = shootout::skipped(entries);
    document
}

/// Adds the outcome to the document.
fn finish(document: &mut Document, outcome: &Outcome) {
    document.counters.clone_from(&outcome.counters);
    document.notes.extend(outcome.failures.iter().cloned());
    if outcome.is_stopped {
        document.notes.push("stopped before its end: these are the results so far".into());
    }
    let (verdict, message) = match outcome.violations.first() {
        None => (Verdict::Pass, format!("{} histories, all linearizable", outcome.counters.len())),
        Some(first) => (Verdict::Fail, format!("{} wrong; {first}", outcome.violations.len())),
    };
    document.checks.push(Check { name: "linearizable".into(), verdict, message });
    document.notes.extend(doubts(outcome));
}

/// One line for each check that failed besides the history, with the first rate that it makes doubtful.
fn doubts(outcome: &Outcome) -> Vec<String> {
    let mut first: BTreeMap<&str, (String, usize)> = BTreeMap::new();
    for counter in &outcome.counters {
        for check in counter.checks.iter().filter(|check| check.verdict == Verdict::Fail) {
            let Counter { store, threads, .. } = counter;
            let words = || (format!("{store}, {}: {}", show::threads(*threads), check.message), 0);
            first.entry(check.name.as_str()).or_insert_with(words).1 += 1;
        }
    }
    let line = |(name, (first, times)): (&str, (String, usize))| {
        format!("! NOT CERTIFIED, {times} times by {name}, first {first}")
    };
    first.into_iter().map(line).collect()
}

fn show(outcome: &Outcome, notes: &[String]) {
    let columns = output::width();
    let mut text = String::from("increments/s\n");
    text += &table(&outcome.counters, columns);
    text.push('\n');
    for note in notes.iter().chain(&doubts(outcome)) {
        text += &wrapped(note, columns);
        text.push('\n');
    }
    // The reader of a pipe may be gone; the exit status carries the result.
    let _ = io::stdout().write_all(text.as_bytes());
}

fn conclude(outcome: &Outcome, written: Result<(), Failure>) -> Exit {
    let is_certified = outcome.counters.iter().all(Counter::is_certified);
    let mut exit = if is_certified { Exit::Ok } else { Exit::NotCertified };
    if outcome.is_stopped {
        eprintln!("larder-bench: stopped; these are the results so far");
        exit = Exit::Error;
    }
    for failure in &outcome.failures {
        eprintln!("larder-bench: {failure}; see the server's log, then run it again");
        exit = Exit::Error;
    }
    if let Err(failure) = written {
        eprintln!("larder-bench: {}", failure.message);
        exit = failure.exit;
    }
    for violation in &outcome.violations {
        eprintln!("larder-bench: WRONG: {violation}");
        exit = Exit::Wrong;
    }
    exit
}

fn list(sql: Sql) -> Exit {
    let columns = output::width();
    let mut text = String::new();
    for kind in Kind::ALL {
        text += &format!("{}\n", kind.name());
        let mut line = |words: &str| {
            for part in wrapped(words, columns.saturating_sub(2)).lines() {
                text += &format!("  {part}\n");
            }
        };
        line(kind.about());
        line(&format!("--store {}={}", kind.name(), kind.example()));
        if let Some(schema) = kind.schema(sql) {
            line(&format!("before: {schema}"));
        }
        line(&format!("reset: {}", kind.reset()));
        line(&format!("increment: {}", kind.statement(sql)));
        text.push('\n');
    }
    text += &wrapped("For the other statements of the databases: --sql as-seed --list", columns);
    println!("{text}");
    Exit::Ok
}

fn check_self(count: u64) -> Exit {
    let findings = self_check(count, SELF_CHECK_HISTORIES);
    println!(
        "{} increments a history, {} MB\n{} of {} lost updates found, {} false alarms in {}\n\
         slowest verdict {:.3} s",
        grouped(count),
        findings.history_bytes / 1_000_000,
        findings.found,
        findings.histories,
        findings.false_alarms,
        findings.histories,
        findings.slowest.as_secs_f64(),
    );
    let is_right = findings.found == findings.histories && findings.false_alarms == 0;
    if is_right { Exit::Ok } else { Exit::Wrong }
}

/// Breaks at spaces; a word that is longer than a line stays whole.
fn wrapped(text: &str, columns: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + word.len() <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.into()),
        }
    }
    lines.join("\n")
}

/// Returns an error if the file cannot be written, before the measurement and not after it.
fn writable(path: &Path) -> Result<(), String> {
    let opened = OpenOptions::new().append(true).create(true).open(path);
    opened.map(drop).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

fn parse_time(text: &str) -> Result<Duration, String> {
    let time = parse::duration(text)?;
    if time < Duration::from_millis(1) { Err("at least 1ms".into()) } else { Ok(time) }
}

fn parse_count(text: &str) -> Result<u64, String> {
    let is_fit = |count: &u64| (2..=1_000_000_000).contains(count);
    parse::count(text).ok().filter(is_fit).ok_or_else(|| format!("{text:?} is no number of 2 to 1g"))
}

/// Reads `1-10`, `1,2,4` or both.
///
/// # Errors
/// It is neither, or a number is not one of 1 to 1000.
pub(super) fn parse_threads(text: &str) -> Result<Threads, String> {
    let wrong = || format!("{text:?} is neither a range such as 1-10 nor a list such as 1,2,4, of 1 to 1000");
    let number = |text: &str| text.parse::<u32>().ok().filter(|number| (1..=1000).contains(number));
    let mut threads = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (number(first).ok_or_else(wrong)?, number(last).ok_or_else(wrong)?);
        if first > last {
            return Err(wrong());
        }
        threads.extend(first..=last);
    }
    Ok(Threads(threads))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_threads_are_ranges_and_lists() {
        assert_eq!(parse_threads("1-3,8"), Ok(Threads(vec![1, 2, 3, 8])));
        for wrong in ["", "0", "3-1", "1-", "x", "1001", "1,,2", "1,3-2"] {
            assert!(parse_threads(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn notes_fit_the_terminal() {
        assert_eq!(wrapped("one two three", 7), "one two\nthree");
    }
}
