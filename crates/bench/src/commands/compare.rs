//! `larder-bench compare`: two results, pair by pair, with intervals and an exit status for CI.

use super::{Exit, Failure, pairs, report};
use crate::result::Run;
use std::path::{Path, PathBuf};

/// What to compare with what.
#[derive(Debug, clap::Args)]
#[command(after_long_help = AFTER_HELP)]
pub struct Args {
    /// The result before; several with commas between
    #[arg(value_name = "A.json", value_delimiter = ',', num_args = 1, required = true)]
    #[arg(action = clap::ArgAction::Set)]
    before: Vec<PathBuf>,
    /// The result after; several with commas between
    #[arg(value_name = "B.json", value_delimiter = ',', num_args = 1, required = true)]
    #[arg(action = clap::ArgAction::Set)]
    after: Vec<PathBuf>,
    #[command(flatten)]
    rules: pairs::Args,
}

const AFTER_HELP: &str = "Runs of one label are a pair; `#1`, `#2` at a label's end tell repeats apart. \
 When no \
label is in both results, runs are paired in their order. The figures in brackets are the change with its \
 95 % \
interval: least, estimate, most. It takes 3 pairs or more to see how runs differ from each other; make \
 them in \
the order A B B A.";

/// Compares and prints.
///
/// # Errors
/// A result cannot be read, or nothing can be paired.
pub fn run(args: Args) -> Result<Exit, Failure> {
    let (before, after) = (runs_of(&args.before)?, runs_of(&args.after)?);
    args.rules.conclude(&pairs_of(&before, &after).map_err(Failure::error)?)
}

/// Returns the runs of all files that recorded something.
fn runs_of(files: &[PathBuf]) -> Result<Vec<Run>, Failure> {
    let read = |file: &PathBuf| report::read(Path::new(file)).map(|document| document.runs);
    let runs: Vec<Vec<Run>> = files.iter().map(read).collect::<Result<_, _>>()?;
    Ok(runs.into_iter().flatten().filter(|run| run.count() > 0).collect())
}

/// Returns pairs of runs by label without its `#N`; by order when no label is in both.
fn pairs_of<'a>(before: &'a [Run], after: &'a [Run]) -> Result<Vec<pairs::Pairs<'a>>, String> {
    let mut labels: Vec<&str> = Vec::new();
    for run in before {
        let is_new = !labels.contains(&base(&run.label));
        if is_new && after.iter().any(|other| base(&other.label) == base(&run.label)) {
            labels.push(base(&run.label));
        }
    }
    if labels.is_empty() {
        if before.is_empty() || before.len() != after.len() {
            return Err(format!(
                "no label is in both results, and they hold {} and {} runs: nothing can be paired",
                before.len(),
                after.len()
            ));
        }
        return Ok(vec![(String::new(), before.iter().zip(after).collect())]);
    }
    let of_label = |runs: &'a [Run], label: &str| -> Vec<&'a Run> {
        runs.iter().filter(|run| base(&run.label) == label).collect()
    };
    let pair = |label: &str| {
        (label.to_string(), of_label(before, label).into_iter().zip(of_label(after, label)).collect())
    };
    Ok(labels.into_iter().map(pair).collect())
}

/// A label without the number of its repeat.
fn base(label: &str) -> &str {
    match label.rsplit_once(" #") {
        Some((base, number)) if number.bytes().all(|b| b.is_ascii_digit()) => base,
        _ => label,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Verb;

    fn runs(labels: &[&str]) -> Vec<Run> {
        let verbs = vec![Verb { count: 300, ..Verb::default() }];
        let run = |label: &&str| Run { label: label.to_string(), verbs: verbs.clone(), ..Run::default() };
        labels.iter().map(run).collect()
    }

    #[test]
    fn repeats_of_a_label_are_pairs() {
        let a = runs(&["x 5/s #1", "x 5/s #2", "y"]);
        let b = runs(&["x 5/s #1", "z", "x 5/s #2"]);
        let found = pairs_of(&a, &b).expect("they share a label");
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].0.as_str(), found[0].1.len()), ("x 5/s", 2));
        let (p, q) = (runs(&["p"]), runs(&["q"]));
        let found = pairs_of(&p, &q).expect("in their order");
        assert_eq!(found[0].1.len(), 1);
        assert!(pairs_of(&runs(&["p"]), &runs(&[])).is_err());
    }
}
