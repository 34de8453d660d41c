//! A sweep on the terminal: a line for each point, and the conclusions below.

use crate::commands::summary::wrap;
use crate::result::{Curve, Estimate, Run};
use crate::stats::search::Found;
use crate::{show, sweep};

/// With fewer columns only the rate and p99 are shown.
const WIDE: usize = 76;

/// Returns the line above the points.
pub(super) fn head(width: usize) -> String {
    match width >= WIDE {
        true => format!(
            "{:>10}{:>12}{:>10}{:>10}{:>10}{:>10}{:>11}",
            "at", "rate", "mean", "p50", "p99", "p99.9", "us CPU/op"
        ),
        false => format!("{:>9}{:>12}{:>10}", "at", "rate", "p99"),
    }
}

/// Returns the line of one point.
pub(super) fn row(at: f64, run: &Run, width: usize) -> String {
    let point = sweep::point(at, run);
    let time = |ns: f64| show::time(ns).replace(' ', "");
    let mark = if run.is_certified() { "" } else { " !" };
    if width < WIDE {
        return format!(
            "{:>9}{:>12}{:>10}{mark}",
            show::count(at as u64),
            show::rate(point.rate),
            time(point.p99_ns as f64)
        );
    }
    let cpu = point.server_cpu_us.map_or_else(|| "-".to_string(), |us| format!("{us:.2}"));
    format!(
        "{:>10}{:>12}{:>10}{:>10}{:>10}{:>10}{cpu:>11}{mark}",
        show::count(at as u64),
        show::rate(point.rate),
        time(point.mean_ns),
        time(point.p50_ns as f64),
        time(point.p99_ns as f64),
        time(point.p999_ns as f64),
    )
}

/// Returns the meaning of the mark `!` for the points that have it: which checks failed, how often, and what one of
/// each says; nothing where no point has it.
pub(super) fn legend(runs: &[(f64, &Run)], width: usize) -> String {
    let mut failed: Vec<(&str, usize, &str)> = Vec::new();
    for (_, run) in runs {
        if let Some(why) = &run.cut_short {
            failed.push(("cut short", 1, why));
        }
        for check in run.failed() {
            match failed.iter_mut().find(|(name, ..)| *name == check.name) {
                Some((_, times, _)) => *times += 1,
                None => failed.push((&check.name, 1, &check.message)),
            }
        }
    }
    let marked = runs.iter().filter(|(_, run)| !run.is_certified()).count();
    if marked == 0 {
        return String::new();
    }
    let head = format!("! NOT CERTIFIED: do not quote these points ({marked} of {})", runs.len());
    let mut text = wrap(&head, width, "  ") + "\n";
    for (name, times, message) in failed {
        text += &wrap(&format!("{name}, {times} times, such as: {message}"), width, "   ");
        text += "\n";
    }
    text
}

/// Returns the words for what lies between two rates; 0 and infinity are no bounds.
fn range(passed: f64, failed: f64) -> String {
    match (passed > 0.0, failed.is_finite()) {
        (true, true) => format!("between {} and {}", show::rate(passed), show::rate(failed)),
        (true, false) => format!("{} or more", show::rate(passed)),
        (false, true) => format!("less than {}", show::rate(failed)),
        (false, false) => "not known".to_string(),
    }
}

/// Returns the capacity, the highest rate and the knee, a line each.
pub(super) fn conclusions(curve: &Curve, found: Option<Found>, width: usize) -> String {
    let estimate =
        |e: Estimate| format!("{} [{}, {}]", show::rate(e.estimate), show::rate(e.least), show::rate(e.most));
    let mut text = String::new();
    let mut tell = |name: &str, message: String| {
        text += &(wrap(&format!("{name:<9} {message}"), width, "          ") + "\n")
    };
    if let Some(slo) = curve.slo {
        let message = match (curve.slo_capacity, found) {
            (Some(capacity), _) => estimate(capacity),
            (None, Some(Found::Above(rate))) => format!("above {}, the highest rate tried", show::rate(rate)),
            (None, Some(Found::Below(rate))) => format!("below {}", show::rate(rate)),
            (None, Some(Found::Spoiled(passed, at))) => format!(
                "not found: the generator, not the server, set the figures at {}; {} is kept",
                show::rate(at),
                show::rate(passed)
            ),
            (None, Some(Found::Between(a, b))) => format!("{}: --budget was too short", range(a, b)),
            (None, _) => "not crossed by these points".to_string(),
        };
        tell("capacity", format!("{message} within {}", sweep::slo_words(slo)));
    }
    if let Some(rate) = curve.max_rate {
        tell("highest", estimate(rate));
    }
    if let Some(knee) = curve.knee {
        tell("knee", format!("{} (rate over mean latency is highest)", estimate(knee)));
    }
    text
}
