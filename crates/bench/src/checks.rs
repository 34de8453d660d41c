//! Laws that figures must obey: pure functions from figures to [`Check`]s.
//! Each was prompted by a published benchmark that broke it; tests feed those very numbers.
//!
//! A check fails when a figure cannot be true or must not be quoted as it stands; it warns when the figure is
//! right but easily misread; it is skipped, with the reason, when a figure for it is missing.

pub mod hits;
pub mod hosts;
pub mod labels;
pub mod queueing;
pub mod tiers;

#[cfg(test)]
mod seeds;

use crate::result::{Check, Verdict};

/// Returns a check of a name, a verdict, and its figures in one line.
pub fn check(name: &str, verdict: Verdict, message: impl Into<String>) -> Check {
    Check { name: name.to_string(), verdict, message: message.into() }
}

/// A figure for people: four significant digits, thousands grouped.
pub fn figure(value: f64) -> String {
    if !value.is_finite() {
        return "?".to_string();
    }
    let digits = match value.abs() {
        v if v >= 1000.0 => 0,
        v if v >= 100.0 => 1,
        v if v >= 10.0 => 2,
        v if v >= 0.01 || v == 0.0 => 3,
        _ => 6,
    };
    let text = format!("{value:.digits$}");
    let text = if digits > 0 { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let (sign, whole) = whole.strip_prefix('-').map_or(("", whole), |whole| ("-", whole));
    let mut grouped = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{sign}{grouped}{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short_and_grouped() {
        let shown = [0.0, 0.5, 12.345, 317.25, 999.96, 474_936.2, -1234.5, 0.001_25].map(figure);
        assert_eq!(shown, ["0", "0.5", "12.35", "317.2", "1,000", "474,936", "-1,234", "0.00125"]);
        assert_eq!(figure(f64::NAN), "?");
    }
}
