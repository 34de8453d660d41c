//! Checks over several hosts or connections: windows that overlap, means that are weighted, shares that are
//! fair, and repeats that agree.

use super::{check, figure};
use crate::result::{Check, Host, Verdict};
use crate::stats::{deviation, jain, mean};

/// Totals over hosts whose windows overlap less than this describe no real moment.
pub const OVERLAP: f64 = 0.99;
/// Unweighted means that differ more than this from the mean over all requests.
const MEANS_SHARE: f64 = 0.02;
/// Jain's index below which some were served worse than others.
const FAIR: f64 = 0.90;
/// Repeats of one point that differ more than this.
const REPEATS_SHARE: f64 = 0.04;

/// Whether all hosts were measuring at the same time.
pub fn overlap(hosts: &[Host]) -> Check {
    let Some(worst) = hosts.iter().min_by(|a, b| a.overlap.total_cmp(&b.overlap)) else {
        return check("overlap", Verdict::Skipped, "one host");
    };
    let message =
        format!("{} hosts, {} overlaps the others {:.2} %", hosts.len(), worst.name, worst.overlap * 100.0);
    match worst.overlap >= OVERLAP {
        true => check("overlap", Verdict::Pass, message),
        false => {
            check("overlap", Verdict::Fail, format!("{message}: totals would add rates of different times"))
        }
    }
}

/// Whether the mean of the hosts' means, each counted once, is the mean over all requests. `hosts` are
/// (requests, mean latency) of each; `quoted` is the printed figure, in the same unit.
pub fn weighted_mean(hosts: &[(f64, f64)], quoted: f64) -> Check {
    let requests: f64 = hosts.iter().map(|host| host.0).sum();
    if hosts.len() < 2 || requests <= 0.0 {
        return check("means", Verdict::Skipped, "one host");
    }
    let truly = hosts.iter().map(|(n, mean)| n * mean).sum::<f64>() / requests;
    let unweighted = mean(&hosts.iter().map(|host| host.1).collect::<Vec<_>>());
    let message = format!("mean over all requests {}, printed {}", figure(truly), figure(quoted));
    if (quoted / truly - 1.0).abs() <= MEANS_SHARE {
        return check("means", Verdict::Pass, message);
    }
    let why = match (quoted / unweighted - 1.0).abs() <= MEANS_SHARE / 10.0 {
        true => "that is the mean of the hosts' means, in which a slow host counts as much as a fast one",
        false => "that is neither this nor the mean of the hosts' means",
    };
    check("means", Verdict::Fail, format!("{message}: {why}"))
}

/// Whether a percentile over hosts was merged from histograms and not averaged: `hosts` are the hosts'
/// percentiles, `merged` the one of all requests, `quoted` the printed one.
pub fn merged_percentile(hosts: &[f64], merged: f64, quoted: f64) -> Check {
    let message = format!("merged {}, printed {}", figure(merged), figure(quoted));
    if (quoted / merged - 1.0).abs() <= MEANS_SHARE {
        return check("merged", Verdict::Pass, message);
    }
    let averaged = (quoted / mean(hosts) - 1.0).abs() <= MEANS_SHARE / 10.0;
    let why =
        if averaged { "percentiles were averaged, which gives none" } else { "it is not of these hosts" };
    check("merged", Verdict::Fail, format!("{message}: {why}"))
}

/// Whether hosts or connections were served alike.
pub fn fairness(rates: &[f64]) -> Check {
    let index = jain(rates);
    let verdict = if index >= FAIR { Verdict::Pass } else { Verdict::Warn };
    check("fairness", verdict, format!("Jain's index {index:.3} over {}", rates.len()))
}

/// Whether repeats of one point agree. The highest of noisy points is a winner by luck: it needs an interval.
pub fn repeats(rates: &[f64]) -> Check {
    if rates.len() < 2 {
        return check("repeats", Verdict::Skipped, "made once: its noise is not known");
    }
    let (least, most) = rates.iter().fold((f64::MAX, 0.0f64), |(a, b), rate| (a.min(*rate), b.max(*rate)));
    let share = (most - least) / mean(rates);
    let message = format!(
        "{} repeats: {} to {}, deviation {:.1} %",
        rates.len(),
        figure(least),
        figure(most),
        deviation(rates) / mean(rates) * 100.0
    );
    match share > REPEATS_SHARE {
        true => check("repeats", Verdict::Warn, format!("{message}: a difference below this says nothing")),
        false => check("repeats", Verdict::Pass, message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str, overlap: f64) -> Host {
        Host { name: name.to_string(), overlap, ..Host::default() }
    }

    #[test]
    fn hosts_that_ran_together_pass() {
        assert_eq!(overlap(&[host("a", 0.9991), host("b", 1.0)]).verdict, Verdict::Pass);
        assert_eq!(overlap(&[]).verdict, Verdict::Skipped);
        assert_eq!(weighted_mean(&[(100.0, 1.0), (100.0, 1.2)], 1.1).verdict, Verdict::Pass);
        assert_eq!(merged_percentile(&[2.0, 2.1], 2.05, 2.05).verdict, Verdict::Pass);
        assert_eq!(fairness(&[10.0, 11.0, 9.5]).verdict, Verdict::Pass);
        assert_eq!(repeats(&[100.0, 101.0, 100.5]).verdict, Verdict::Pass);
    }

    #[test]
    fn a_late_host_an_unweighted_mean_and_an_averaged_percentile_are_seen() {
        let late = overlap(&[host("a", 1.0), host("b", 0.93)]);
        assert!(late.verdict == Verdict::Fail && late.message.contains('b'), "{late:?}");
        let means = weighted_mean(&[(900.0, 1.0), (100.0, 3.0)], 2.0);
        assert!(means.verdict == Verdict::Fail && means.message.contains("hosts' means"), "{means:?}");
        let averaged = merged_percentile(&[1.0, 9.0], 8.0, 5.0);
        assert!(averaged.verdict == Verdict::Fail && averaged.message.contains("averaged"), "{averaged:?}");
        assert_eq!(fairness(&[100.0, 1.0]).verdict, Verdict::Warn);
    }
}
