//! Checks of printed figures against measurements: percentile labels, elapsed time, operations a second.

use super::{check, figure};
use crate::latency::Latency;
use crate::result::{Check, Verdict};

/// A printed percentile may be off by this much of the distribution, for bins and rounding.
const QUANTILE_SLACK: f64 = 0.01;
/// A clock's step as a share of the time measured with it that is worth a word.
const CLOCK_SHARE: f64 = 0.05;
/// How far a printed figure may be from the one computed: it was rounded by hand.
const ROUNDING: f64 = 0.05;

/// Whether the latencies that were printed as percentiles are those: `printed` are (percentile 0 to 100,
/// nanoseconds).
pub fn percentiles(printed: &[(f64, u64)], measured: &Latency) -> Check {
    if measured.count() == 0 || printed.is_empty() {
        return check("percentiles", Verdict::Skipped, "nothing was measured");
    }
    let wrong: Vec<String> = printed
        .iter()
        .filter_map(|(percentile, ns)| {
            let slack = QUANTILE_SLACK.min((1.0 - percentile / 100.0) / 2.0);
            let low = below(measured, *ns) - slack;
            let high = measured.histogram().quantile_below(*ns) + slack;
            let wanted = percentile / 100.0;
            let ms = *ns as f64 / 1e6;
            let truly = (measured.histogram().quantile_below(*ns) * 100.0).round();
            let right = measured.quantile_ns(wanted) as f64 / 1e6;
            (wanted < low || wanted > high).then(|| {
                format!(
                    "{} ms printed as p{percentile} is p{truly}, p{percentile} is {} ms",
                    figure(ms),
                    figure(right)
                )
            })
        })
        .collect();
    match wrong.is_empty() {
        true => check("percentiles", Verdict::Pass, format!("{} labels are what they say", printed.len())),
        false => check("percentiles", Verdict::Fail, wrong.join("; ")),
    }
}

/// The share of requests that were faster than the bin of `ns`.
fn below(measured: &Latency, ns: u64) -> f64 {
    let start = measured.histogram().lowest_equivalent(ns);
    if start == 0 { 0.0 } else { measured.histogram().quantile_below(start - 1) }
}

/// Whether the printed time is the difference of the printed timestamps, and whether the clock is fine
/// enough. All in seconds.
pub fn elapsed(start: f64, end: f64, printed: f64, clock_step: f64) -> Check {
    let truly = end - start;
    let message = format!("{} to {}: {} s, printed {} s", start, end, figure(truly), figure(printed));
    if (printed - truly).abs() > (truly * ROUNDING).min(clock_step / 2.0).max(1e-9) {
        return check(
            "elapsed",
            Verdict::Fail,
            format!("{message}; the printed time is not that of its timestamps"),
        );
    }
    let share = clock_step / truly;
    match share > CLOCK_SHARE {
        true => check(
            "elapsed",
            Verdict::Warn,
            format!("{message}; a clock of {clock_step} s is +-{:.1} %", share * 100.0),
        ),
        false => check("elapsed", Verdict::Pass, message),
    }
}

/// Whether operations a second are operations by seconds.
pub fn rate(operations: f64, seconds: f64, printed: f64) -> Check {
    let truly = operations / seconds;
    let message = format!(
        "{} in {} s: {}/s, printed {}/s",
        figure(operations),
        figure(seconds),
        figure(truly),
        figure(printed)
    );
    let fits = (printed / truly - 1.0).abs() <= ROUNDING;
    check("rate-printed", if fits { Verdict::Pass } else { Verdict::Fail }, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn right_labels_pass_and_a_swapped_one_fails() {
        let mut latency = Latency::new();
        (1..=10_000u64).for_each(|us| latency.record(us * 1000));
        let right = [(50.0, 5_000_000), (75.0, 7_500_000), (99.0, 9_900_000), (99.9, 9_990_000)];
        assert_eq!(
            percentiles(&right, &latency).verdict,
            Verdict::Pass,
            "{:?}",
            percentiles(&right, &latency)
        );
        assert_eq!(percentiles(&[(99.9, 9_900_000)], &latency).verdict, Verdict::Fail);
        assert_eq!(percentiles(&[], &latency).verdict, Verdict::Skipped);
    }

    #[test]
    fn a_bin_that_holds_many_is_right_for_all_of_them() {
        let mut latency = Latency::new();
        latency.record_n(1_000_000, 90);
        latency.record_n(2_000_000, 10);
        let printed = [(10.0, 1_000_000), (50.0, 1_000_000), (90.0, 1_000_000), (99.0, 2_000_000)];
        assert_eq!(percentiles(&printed, &latency).verdict, Verdict::Pass);
    }
}
