//! The checks of `larder doctor` on the daemon itself and its host, and their short form in the log at the start.

use std::sync::Arc;
use std::thread;

use larder_cli::{Checked, Finding, Weight, examine_own};

use crate::session::{Lines, all_figures, settings};
use crate::shared::Shared;

/// The most findings that are logged at the start.
const LOGGED_MAX: usize = 5;
/// Checks that the start itself warns about, with the options that it was given.
const WARNED_ABOUT: [&str; 3] = ["io", "memory-limit", "open-files"];

/// Runs all checks.
pub fn examine(shared: &Shared) -> Vec<Checked> {
    let owned = |lines: Lines| lines.into_iter().map(|(name, value)| (name.into_owned(), value)).collect();
    let [general, larder] = all_figures(shared);
    examine_own(owned(general), owned(larder), owned(settings(shared)))
}

/// Runs all checks once, and logs what they find. A thread of its own does so, because they read many files of the
/// host. Without a thread for it nothing is logged: the daemon serves all the same.
pub fn log_findings(shared: &Arc<Shared>) {
    let shared = shared.clone();
    let work = move || {
        let checked = examine(&shared);
        let (logged, more) = short_form(&checked);
        for (check, Finding { weight, finding, fix, .. }) in logged {
            match weight {
                Weight::Error => tracing::error!(check, "{finding}; do: {fix}"),
                Weight::Warning => tracing::warn!(check, "{finding}; do: {fix}"),
            }
        }
        if more > 0 {
            tracing::warn!(more, "there are more findings; run larder doctor to see them");
        }
    };
    drop(thread::Builder::new().name("larder-doctor".into()).spawn(work));
}

/// Returns the findings to log with the names of their checks, errors first, and the number of those left out.
fn short_form(checked: &[Checked]) -> (Vec<(&str, &Finding)>, usize) {
    let new = checked.iter().filter(|checked| !WARNED_ABOUT.contains(&checked.check.as_ref()));
    let mut found: Vec<_> =
        new.filter_map(|checked| Some((checked.check.as_ref(), checked.finding.as_ref()?))).collect();
    found.sort_by_key(|(_, finding)| finding.weight != Weight::Error);
    let more = found.len().saturating_sub(LOGGED_MAX);
    found.truncate(LOGGED_MAX);
    (found, more)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(check: &'static str, weight: Option<Weight>) -> Checked {
        let found = |weight| Finding { weight, finding: check.into(), why: "".into(), fix: String::new() };
        Checked { check: check.into(), finding: weight.map(found) }
    }

    fn names(checked: &[Checked]) -> (Vec<&str>, usize) {
        let (found, more) = short_form(checked);
        (found.into_iter().map(|(check, _)| check).collect(), more)
    }

    #[test]
    fn a_start_without_findings_logs_nothing() {
        assert_eq!(names(&[checked("swap", None), checked("clock", None)]), (vec![], 0));
    }

    #[test]
    fn errors_come_first_and_no_warning_is_repeated() {
        let warning = Some(Weight::Warning);
        let all = [checked("swap", warning), checked("io", warning), checked("disk", Some(Weight::Error))];
        assert_eq!(names(&all), (vec!["disk", "swap"], 0));
    }

    #[test]
    fn a_start_logs_a_few_lines_at_most() {
        let all = ["a", "b", "c", "d", "e", "f", "g"].map(|check| checked(check, Some(Weight::Warning)));
        assert_eq!(names(&all), (vec!["a", "b", "c", "d", "e"], 2));
    }
}
