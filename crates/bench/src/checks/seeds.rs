//! The numbers of the five published benchmarks that this tool follows, fed to the checks: each must fire
//! where the document is wrong, and stay silent where it is right.

use super::{hits, hosts, labels, queueing, tiers};
use crate::latency::Latency;
use crate::result::Verdict;
use crate::stats::{curve, mean};

/// Seed 001: n, connections (28 n), operations a second, mean in ms, hit ratio in percent.
const MEMTIER: [(f64, f64, f64, f64, f64); 10] = [
    (1.0, 28.0, 243_324.0, 0.111, 64.7),
    (2.0, 56.0, 342_291.0, 0.160, 59.5),
    (3.0, 84.0, 375_628.0, 0.220, 52.9),
    (5.0, 140.0, 454_683.0, 0.304, 47.6),
    (8.0, 224.0, 411_619.0, 0.541, 38.2),
    (11.0, 308.0, 474_937.0, 0.668, 28.8),
    (15.0, 420.0, 424_891.0, 0.954, 22.3),
    (16.0, 448.0, 446_546.0, 1.001, 22.5),
    (17.0, 476.0, 431_312.0, 1.065, 18.2),
    (48.0, 1344.0, 872_351.0, 1.725, 22.6),
];

#[test]
fn seed_000_prints_13_seconds_for_24() {
    let wrong = labels::elapsed(1_361_324_006.0, 1_361_324_030.0, 13.0, 1.0);
    assert_eq!(wrong.verdict, Verdict::Fail);
    assert!(wrong.message.contains("24 s, printed 13 s"), "{}", wrong.message);
    // Its rate was computed from the true time.
    assert_eq!(labels::rate(200_000.0, 24.0, 8300.0).verdict, Verdict::Pass);
    assert_eq!(labels::rate(200_000.0, 13.0, 8300.0).verdict, Verdict::Fail);
}

#[test]
fn seed_000_measures_13_seconds_with_a_clock_of_one() {
    let coarse = labels::elapsed(1_361_323_435.0, 1_361_323_448.0, 13.0, 1.0);
    assert!(coarse.verdict == Verdict::Warn && coarse.message.contains("7.7 %"), "{coarse:?}");
    assert_eq!(labels::elapsed(1_361_323_670.0, 1_361_323_795.0, 125.0, 1.0).verdict, Verdict::Pass);
    assert_eq!(labels::rate(100_000.0, 13.0, 7700.0).verdict, Verdict::Pass);
    assert_eq!(labels::rate(1_000_000.0, 125.0, 8000.0).verdict, Verdict::Pass);
}

#[test]
fn seed_001_claims_476_connections_where_little_says_317() {
    let claimed = queueing::little(474_936.0, 668_000.0, 476.0);
    assert_eq!(claimed.verdict, Verdict::Fail);
    assert!(claimed.message.contains("317.3 in flight, 476"), "{}", claimed.message);
    assert_eq!(queueing::little(474_936.0, 668_000.0, 308.0).verdict, Verdict::Pass);
}

#[test]
fn seed_001_obeys_little_up_to_17_and_not_at_48() {
    for (n, connections, rate, ms, _) in MEMTIER {
        let check = queueing::little(rate, ms * 1e6, connections);
        let expected = if n < 40.0 { Verdict::Pass } else { Verdict::Fail };
        assert_eq!(check.verdict, expected, "n = {n}: {}", check.message);
        if n > 40.0 {
            assert!(check.message.contains("more than can be"), "{}", check.message);
        }
    }
}

#[test]
fn seed_001_hits_fall_from_65_to_18_percent() {
    let points = MEMTIER.map(|(_, connections, _, _, hits)| (connections, hits / 100.0));
    let fallen = hits::steady(&points[..9]);
    assert_eq!(fallen.verdict, Verdict::Fail);
    assert!(fallen.message.contains("64.7 % at the least load, 18.2 %"), "{}", fallen.message);
    // A set in eleven operations, 30 s, keys 100 to 10000.
    let shared = |rate: f64, connections: f64| hits::shared_stream(rate / connections * 30.0 / 11.0, 9901.0);
    assert!((shared(243_324.0, 28.0) - 0.620).abs() < 0.001);
    assert!((shared(446_546.0, 448.0) - 0.126).abs() < 0.001);
    // The shared stream explains the first point, streams of their own do not.
    assert_eq!(hits::model(0.647, shared(243_324.0, 28.0)).verdict, Verdict::Pass);
    let own = hits::own_streams(243_324.0 / 28.0 * 30.0 / 11.0, 28.0, 9901.0);
    assert!(own > 0.98);
    assert_eq!(hits::model(0.647, own).verdict, Verdict::Fail);
}

#[test]
fn seed_001_recommends_nine_times_the_natural_concurrency() {
    let n_star = curve::n_star(430_000.0, 111_000.0);
    let past = queueing::past_knee(448.0, n_star);
    assert!(past.verdict == Verdict::Warn && past.message.contains("N* 48 (9.4 times)"), "{past:?}");
    assert_eq!(queueing::past_knee(56.0, n_star).verdict, Verdict::Pass);
    // Power is highest at the least load.
    let power = MEMTIER.map(|(n, _, rate, ms, _)| (n, rate / ms));
    assert_eq!(power.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).map(|best| best.0), Some(1.0));
}

#[test]
fn seed_001_picks_a_winner_among_repeats_that_differ() {
    assert_eq!(hosts::repeats(&[474_937.0, 453_094.0]).verdict, Verdict::Warn);
    assert_eq!(hosts::repeats(&[424_891.0, 489_141.0]).verdict, Verdict::Warn);
    assert_eq!(hosts::repeats(&[474_937.0]).verdict, Verdict::Skipped);
}

#[test]
fn seed_001_averages_hosts_that_are_not_equal() {
    // Seven closed loops of 192 connections, one slower: the mean of means is beyond what Little allows.
    let hosts: [(f64, f64); 7] = [2.6, 1.3, 1.3, 1.3, 1.3, 1.3, 1.3].map(|ms| (192.0 / ms, ms));
    let unweighted = mean(&hosts.map(|host| host.1));
    let means = hosts::weighted_mean(&hosts, unweighted);
    assert!(means.verdict == Verdict::Fail && means.message.contains("hosts' means"), "{means:?}");
    let rate: f64 = hosts.iter().map(|host| host.0 * 1000.0).sum();
    assert_eq!(queueing::little(rate, unweighted * 1e6, 1344.0).verdict, Verdict::Fail);
    let weighted =
        hosts.iter().map(|(n, ms)| n * ms).sum::<f64>() / hosts.iter().map(|host| host.0).sum::<f64>();
    assert_eq!(queueing::little(rate, weighted * 1e6, 1344.0).verdict, Verdict::Pass);
}

/// A million latencies along straight lines between (quantile, milliseconds).
fn latencies(points: &[(f64, f64)]) -> Latency {
    let mut latency = Latency::new();
    for pair in points.windows(2) {
        let ((from, low), (to, high)) = (pair[0], pair[1]);
        let steps = ((to - from) * 1e6).round() as u64;
        (0..steps).for_each(|at| {
            let ms = low + (high - low) * (at as f64 + 0.5) / steps as f64;
            latency.record((ms * 1e6) as u64);
        });
    }
    latency
}

#[test]
fn seed_002_prints_p70_as_p75() {
    // Its program takes the 0.70th of the answers and prints p75.
    let set = [
        (0.0, 0.4),
        (0.25, 156.0),
        (0.5, 387.0),
        (0.70, 570.0),
        (0.95, 963.0),
        (0.99, 1140.0),
        (0.999, 1304.0),
        (1.0, 1430.4),
    ];
    let measured = latencies(&set);
    assert!((measured.mean_ns() / 413e6 - 1.0).abs() < 0.05, "the printed mean is 413 ms");
    let printed =
        [(25.0, 156.0), (50.0, 387.0), (75.0, 570.0), (95.0, 963.0), (99.0, 1140.0), (99.9, 1304.0)];
    let printed = printed.map(|(percentile, ms)| (percentile, (ms * 1e6) as u64));
    let check = labels::percentiles(&printed, &measured);
    assert_eq!(check.verdict, Verdict::Fail);
    assert!(check.message.starts_with("570 ms printed as p75 is p70"), "{}", check.message);
    assert!(!check.message.contains(';'), "the other labels are right: {}", check.message);
}

#[test]
fn seed_002_quotes_the_latency_of_an_overloaded_server() {
    let set = queueing::overload(100_000.0, 93_532.1, 413e6, 100);
    assert_eq!(set.verdict, Verdict::Fail);
    assert!(set.message.contains("38,629 requests waiting on 100 connections"), "{}", set.message);
    assert_eq!(queueing::overload(4000.0, 4000.2, 595.6e6, 100).verdict, Verdict::Pass);
}

#[test]
fn seed_002_get_run_is_limited_by_its_generator() {
    assert_eq!(queueing::generator(0.986).verdict, Verdict::Fail);
    assert_eq!(queueing::generator(0.809).verdict, Verdict::Warn);
}

#[test]
fn seed_002_device_figures_agree_with_each_other() {
    let iostat =
        [(31_790.0, 0.18, 5.83), (32_843.5, 0.19, 6.15), (31_946.5, 0.19, 6.09), (30_559.5, 0.17, 5.20)];
    for (reads, wait, queue) in iostat {
        let check = queueing::device_queue(reads, wait, queue);
        assert_eq!(check.verdict, Verdict::Pass, "{}", check.message);
        assert_eq!(queueing::reads_per_get(reads, 32_000.0, 0.9).verdict, Verdict::Pass);
    }
}

#[test]
fn seed_003_tiered_lmc_never_hits() {
    // Elapsed seconds over 50,000 iterations; sets from the write-heavy loop less the gets.
    let us = |seconds: f64| seconds / 50_000.0 * 1e6;
    let (remote, local) = (us(101.018_182), us(3.473_889));
    let costs = tiers::Costs {
        l1_get: local,
        l1_set: us(11.377_581) - local,
        l2_get: remote,
        l2_set: us(129.661_46) - remote,
    };
    let read = tiers::first_tier(&costs, us(113.350_251), false);
    assert!(read.verdict == Verdict::Fail && read.message.contains("never hits"), "{read:?}");
    let write = tiers::first_tier(&costs, us(149.111_689), true);
    assert!(write.verdict == Verdict::Fail && write.message.contains("2,979"), "{write:?}");
    assert!((costs.set() + costs.get_miss() - 2979.0).abs() < 1.0);
}

#[test]
fn seed_003_the_other_tiers_hit() {
    let us = |seconds: f64| seconds / 50_000.0 * 1e6;
    let remote = us(101.018_182);
    let tiered = |get: f64, both: f64| tiers::Costs {
        l1_get: us(get),
        l1_set: us(both) - us(get),
        l2_get: remote,
        l2_set: us(129.661_46) - remote,
    };
    let (mmap, fast) = (tiered(5.370_702, 12.923_498), tiered(3.165_09, 7.368_855));
    assert_eq!(tiers::first_tier(&mmap, us(9.488_398), false).verdict, Verdict::Pass);
    assert_eq!(tiers::first_tier(&mmap, us(44.160_01), true).verdict, Verdict::Pass);
    assert_eq!(tiers::first_tier(&fast, us(5.193_063), false).verdict, Verdict::Pass);
    assert_eq!(tiers::first_tier(&fast, us(40.125_187), true).verdict, Verdict::Pass);
}
