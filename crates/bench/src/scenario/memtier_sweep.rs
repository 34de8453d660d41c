//! `memtier-sweep`: seven hosts, four threads each, a rising number of connections; latency against
//! throughput.

mod hosts;
mod point;
mod scaling;
mod seed;
mod series;
mod summary;

use super::part::{marked, row};
use super::server::Make;
use super::{Halt, Scenario, Stage, Target, host};
use crate::checks::{check, figure, hits, queueing};
use crate::result::{Check, Run, Verdict};
use hosts::Hosts;
use scaling::Scaling;
use series::Series;
use std::time::Duration;

/// This scenario.
pub const SCENARIO: Scenario = Scenario {
    name: "memtier-sweep",
    about: "7 hosts, 4 threads each, 1 to 40 connections a thread",
    question: "How many requests a second does one server answer with a mean latency below 1 ms?",
    runs: "7 generating hosts (network namespaces around a bridge, else processes) with 4 threads of n \
           connections each, closed loop, 1 set to 10 gets of 32 bytes over 9,901 uniform keys, binary \
           protocol and text (redis: RESP2); the server is started anew for each n. Then more threads, and \
           more processes, of a server.",
    fixes: "Every connection draws keys of its own and all keys are stored before, so that each point does \
            the same work; hosts begin together; latencies are merged from histograms; the highest rate \
            has an interval.",
    document: seed::tables,
    takes: &[
        "--server",
        "--peer",
        "--sizes",
        "--count",
        "--per-thread",
        "--hosts",
        "--listen",
        "--server-threads",
        "--processes",
    ],
    weight: 0.30,
    play,
};

const HOSTS: usize = 7;
const THREADS: usize = 4;
const KEYS: u64 = 9_901;
const VALUE_BYTES: u32 = 32;
const GETS: u64 = 10;
/// RAM of a server: the document's, or less on a machine that does not have it and as much again to spare.
const MEMORY_MIB: u64 = 6144;
const LESS_MEMORY_MIB: u64 = 1024;
/// Numbers of connections a thread, those first that tell most.
const NS: [usize; 14] = [1, 8, 40, 3, 16, 2, 24, 11, 5, 17, 32, 15, 48, 13];
/// No longer window than this is worth while other points wait.
const WINDOW_S: (f64, f64) = (1.0, 10.0);
/// A server's start, the hosts' coming up, the prefill and the warm-up.
const AROUND_S: f64 = 1.6;
const WARMUP_S: f64 = 0.3;
/// With less time for a series than this, text is left out: the document's sweep is binary.
const TEXT_S: f64 = 15.0;

/// One point of the sweep.
#[derive(Clone, Debug)]
struct Measured {
    n: usize,
    /// Of all hosts.
    connections: f64,
    run: Run,
}

impl Measured {
    fn hit_ratio(&self) -> f64 {
        hit_percent(&self.run) / 100.0
    }
}

/// Gets of a run that were hits, in percent.
fn hit_percent(run: &Run) -> f64 {
    let (hits, misses) = run.verbs.iter().fold((0, 0), |(h, m), verb| (h + verb.hits, m + verb.misses));
    hits as f64 / ((hits + misses) as f64).max(1.0) * 100.0
}

/// RAM of a server in MiB.
fn memory_mib() -> u64 {
    if host::available_mib() >= 2 * MEMORY_MIB { MEMORY_MIB } else { LESS_MEMORY_MIB }
}

fn keys(stage: &Stage<'_>) -> u64 {
    stage.options.wanted.count.unwrap_or(KEYS)
}

fn value_bytes(stage: &Stage<'_>) -> u32 {
    stage.options.wanted.sizes.first().copied().unwrap_or(VALUE_BYTES)
}

fn play(stage: &mut Stage<'_>) -> Result<(), Halt> {
    let makes = stage.makes(&[Make::Memcached, Make::Redis]);
    let hosts = Hosts::new(stage)?;
    let given = stage.options.given();
    let scaling = Scaling::of(stage, &hosts);
    let series = series::all(stage, &makes, &given);
    let of_scaling = scaling.as_ref().map_or(Duration::ZERO, Scaling::time);
    let each_s = stage.left().saturating_sub(of_scaling).as_secs_f64() / series.len() as f64;
    let (ns, window) = points(each_s, &stage.options.wanted.per_thread);
    stage.part.note(format!(
        "n = {} of the document's 1 to 50, {:.1} s each (30 s there)",
        ns.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        window.as_secs_f64()
    ));
    let mut all: Vec<(Series, Vec<Measured>)> = Vec::new();
    let mut played = Ok(());
    let total = series.len() * ns.len();
    'sweep: for (row, one) in series.into_iter().enumerate() {
        let mut measured = Vec::new();
        for (column, n) in ns.iter().enumerate() {
            let connections = hosts.connections(*n);
            let what = format!("{}, n = {n} ({connections} connections)", one.name());
            stage.step(row * ns.len() + column + 1, total, &what);
            match point(stage, &hosts, &one, *n, window) {
                Ok(Some(run)) => measured.push(Measured { n: *n, connections: connections as f64, run }),
                Ok(None) => break,
                Err(Halt::Failed(why)) if !one.target.is_our_larder() => {
                    stage.part.note(format!("{}, n = {n} skipped: {why}", one.name()));
                }
                Err(halt) => {
                    played = Err(halt);
                    all.push((one, measured));
                    break 'sweep;
                }
            }
        }
        all.push((one, measured));
    }
    all.retain(|(_, measured)| !measured.is_empty());
    report(stage, &hosts, all);
    match (played, scaling) {
        (Ok(()), Some(scaling)) => scaling.play(stage, &hosts, &makes),
        (played, _) => played,
    }
}

fn point(
    stage: &mut Stage<'_>,
    hosts: &Hosts,
    series: &Series,
    n: usize,
    window: Duration,
) -> Result<Option<Run>, Halt> {
    stage.go_on()?;
    match series.aim(stage, hosts, n)? {
        Some(aim) => point::measure(stage, hosts, &aim, n, window).map(Some),
        None => Ok(None),
    }
}

/// How many points fit into a series of this many seconds, and how long each is measured. Those that the user chose are
/// all measured, if shortly.
fn points(series_s: f64, chosen: &[usize]) -> (Vec<usize>, Duration) {
    if !chosen.is_empty() {
        let window_s = (series_s / chosen.len() as f64 - AROUND_S).clamp(WINDOW_S.0, WINDOW_S.1);
        return (chosen.to_vec(), Duration::from_secs_f64(window_s));
    }
    let window_s = (series_s / 6.0 - AROUND_S).clamp(WINDOW_S.0, 4.0);
    let count = ((series_s / (AROUND_S + window_s)) as usize).clamp(3, NS.len());
    let window_s = (series_s / count as f64 - AROUND_S).clamp(WINDOW_S.0, WINDOW_S.1);
    let mut ns = NS[..count].to_vec();
    ns.sort_unstable();
    (ns, Duration::from_secs_f64(window_s))
}

fn report(stage: &mut Stage<'_>, hosts: &Hosts, all: Vec<(Series, Vec<Measured>)>) {
    stage.part.tables.extend(seed::tables());
    let has_given = all.iter().any(|(series, _)| matches!(series.target, Target::Given(_)));
    for (series, measured) in &all {
        let mut rows = Vec::new();
        for one in measured {
            let theirs = seed::POINTS.iter().find(|point| point.n == one.n);
            let cell = |of: fn(&seed::Point) -> String| theirs.map_or_else(|| "-".to_string(), of);
            let response = one.run.response();
            rows.push(row([
                &one.n,
                &one.connections,
                &cell(|point| figure(point.rate)),
                &cell(|point| figure(point.mean_ms)),
                &cell(|point| figure(point.hits)),
                &marked(figure(one.run.rate()), one.run.is_certified()),
                &figure(response.mean_ns() / 1e6),
                &figure(response.quantile_ns(0.99) as f64 / 1e6),
                &figure(hit_percent(&one.run)),
            ]));
        }
        let columns =
            ["n", "conns", "document op/s", "mean ms", "hit %", "ours op/s", "mean ms", "p99 ms", "hit %"];
        stage.part.table(&format!("latency against throughput, {}", series.name()), &columns, rows);
        for check in checks(measured, stage.options.as_seed.then(|| keys(stage))) {
            stage.part.check_of(&series.name(), check);
        }
    }
    let curves: Vec<_> =
        all.iter().map(|(series, measured)| summary::curve(&series.name(), measured)).collect();
    summary::table(stage, hosts, &curves, &all);
    stage.part.curves = curves;
    for (_, measured) in all {
        stage.part.runs.extend(measured.into_iter().map(|one| one.run));
    }
    let mean = match stage.options.as_seed {
        true => "as in the document, all connections draw one stream of keys, and nothing is stored before",
        false => {
            "every connection draws its own stream of keys, and all keys are stored before: the document's \
                  hits fell from 65 to 18 % as n rose, since its connections shared one stream"
        }
    };
    stage.part.note(mean);
    stage.part.note(format!(
        "the document's server had 6 cores, its hosts a network of 1 Gb/s; here the server runs on CPU {}, \
         {}; RAM {} MiB ({MEMORY_MIB} there), of which these keys use 1",
        host::list(&stage.host.server_cpus),
        match hosts.are_here() {
            true => format!("all hosts on CPU {}", host::list(&stage.host.load_cpus)),
            false => "the hosts are those of --hosts".to_string(),
        },
        memory_mib(),
    ));
    if has_given {
        stage.part.note(
            "a server that runs already is not started anew for each n, and has the RAM and the threads \
             that it has",
        );
    }
}

/// What every series of points must obey; `shared_keys` are those of a stream that all connections share.
fn checks(measured: &[Measured], shared_keys: Option<u64>) -> Vec<Check> {
    let mut found = Vec::new();
    // With so few rounds, the edges of the window weigh more than the check is fine.
    let long = measured.iter().filter(|one| one.run.count() as f64 >= 100.0 * one.connections);
    let little = long.map(|one| {
        let response = one.run.response();
        let found = queueing::little(one.run.rate(), response.mean_ns(), one.connections);
        let off = one.run.rate() * response.mean_ns() / 1e9 / one.connections - 1.0;
        (off.abs(), Check { message: format!("n = {}: {}", one.n, found.message), ..found })
    });
    // The point that is farthest off speaks for all.
    match little.max_by(|a, b| a.0.total_cmp(&b.0)) {
        Some((_, worst)) => found.push(worst),
        None => found.push(check("little", Verdict::Skipped, "no window was long enough for 100 rounds")),
    }
    let ratios: Vec<(f64, f64)> = measured.iter().map(|one| (one.connections, one.hit_ratio())).collect();
    found.push(hits::steady(&ratios));
    if let Some(first) = measured.first() {
        let sets = first.run.verbs.iter().find(|verb| verb.name == "set").map_or(0, |verb| verb.count);
        let expected = match shared_keys {
            Some(keys) => hits::shared_stream(sets as f64 / first.connections, keys as f64),
            None => 1.0,
        };
        let check = hits::model(first.hit_ratio(), expected);
        found.push(Check { message: format!("n = {}: {}", first.n, check.message), ..check });
    }
    let least = measured.iter().map(|one| one.run.response().mean_ns()).fold(f64::MAX, f64::min);
    let best = measured.iter().max_by(|a, b| a.run.rate().total_cmp(&b.run.rate()));
    if let Some(best) = best.filter(|_| measured.len() > 1) {
        let n_star = crate::stats::curve::n_star(best.run.rate(), least);
        let check = queueing::past_knee(best.connections, n_star);
        // That the highest rate needs many connections is how it is, and no flaw of the run.
        let verdict = if check.verdict == Verdict::Fail { Verdict::Warn } else { check.verdict };
        found.push(Check { verdict, message: format!("at the highest rate: {}", check.message), ..check });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{Interval, Verb};

    /// A closed loop of `n` that answers at `rate` and finds `hits` of 100 keys.
    fn measured(n: usize, rate: u64, hits: u64) -> Measured {
        let connections = (HOSTS * THREADS * n) as f64;
        let mean_ns = connections / rate as f64 * 1e9;
        let mut get = Verb { name: "get".into(), count: rate, hits, misses: 100 - hits, ..Verb::default() };
        get.response.record_n(mean_ns as u64, rate);
        let second = Interval { count: rate, response: get.response.clone(), ..Interval::default() };
        let run = Run { seconds: 1.0, verbs: vec![get], intervals: vec![second], ..Run::default() };
        Measured { n, connections, run }
    }

    #[test]
    fn points_fit_the_budget() {
        for series_s in [3.0, 10.0, 60.0, 300.0] {
            let (ns, window) = points(series_s, &[]);
            assert!(ns.len() >= 3 && ns.is_sorted(), "{ns:?}");
            let whole = ns.len() as f64 * (window.as_secs_f64() + AROUND_S);
            assert!(whole <= series_s.max(3.0 * (AROUND_S + 1.0)) + 0.1, "{series_s}: {whole}");
        }
        assert_eq!(points(1.0, &[]).0, [1, 8, 40]);
        assert_eq!(points(1.0, &[7, 9]).0, [7, 9], "those of the user are all measured");
    }

    #[test]
    fn a_sound_sweep_passes_and_a_falling_hit_ratio_does_not() {
        let sound = [measured(1, 100_000, 100), measured(8, 200_000, 100), measured(40, 210_000, 100)];
        assert!(
            checks(&sound, None).iter().all(|check| check.verdict != Verdict::Fail),
            "{:?}",
            checks(&sound, None)
        );
        let falling = [measured(1, 100_000, 65), measured(8, 200_000, 40), measured(40, 210_000, 18)];
        let names: Vec<String> = checks(&falling, None)
            .into_iter()
            .filter(|check| check.verdict == Verdict::Fail)
            .map(|check| check.name)
            .collect();
        assert_eq!(names, ["hits-steady", "hits-model"]);
    }

    #[test]
    fn the_summary_has_the_documents_lines() {
        let all = [measured(1, 100_000, 100), measured(8, 200_000, 100), measured(40, 210_000, 100)];
        let curve = summary::curve("x", &all);
        assert_eq!(curve.points.len(), 3);
        assert!(curve.knee.is_some() && curve.max_rate.is_some());
        // 8: 224 connections at 200 K/s are 1.12 ms; 1: 0.28 ms.
        let lines = summary::lines(&curve, (HOSTS * THREADS) as f64);
        assert_eq!(lines.rate_below, 100_000.0);
        assert!((lines.mean_ms_below - 0.28).abs() < 0.01);
        assert_eq!(lines.best_n, 40);
    }
}
