//! Puts the results of several hosts together on one axis, and checks whether they may be added up.

use super::offset::Offset;
use crate::checks;
use crate::engine::{Load, Plan};
use crate::result::{Check, Host, Interval, Run, Verdict};
use crate::show;
use std::collections::BTreeMap;

/// How far apart the hosts may begin, in microseconds, before it is reported.
pub const SKEW_MAX_US: f64 = 1000.0;

/// Examples of wrong values and of errors that are kept.
const EXAMPLES: usize = 10;

/// The measurements of one host, and the offset of its clock.
#[derive(Clone, Debug)]
pub struct Part {
    /// Its name.
    pub name: String,
    /// Its run.
    pub run: Run,
    /// When its load was to begin, on its own clock.
    pub began_ns: i64,
    /// Its clock just before the start.
    pub before: Offset,
    /// Its clock after the end; the same as before when the end did not come to that.
    pub after: Offset,
}

/// A host's time on the coordinator's clock.
#[derive(Clone, Copy, Debug)]
struct Window {
    /// When its load was to begin.
    began_ns: i64,
    /// When it really measured from.
    from_ns: i64,
    /// When it had nothing more to offer.
    to_ns: i64,
    /// When its last answer was there.
    end_ns: i64,
}

impl Window {
    fn of(part: &Part, plan: &Plan) -> Self {
        let began_ns = part.before.ours(&part.after, part.began_ns);
        let late_ns = (part.run.generator.start_late_us * 1000.0) as i64;
        let warmup_ns = plan.warmup.as_nanos() as i64;
        let active_s = part.run.seconds.min(plan.duration.as_secs_f64());
        let start_ns = began_ns + warmup_ns;
        Self {
            began_ns,
            from_ns: began_ns + warmup_ns.max(late_ns),
            to_ns: start_ns + (active_s * 1e9) as i64,
            end_ns: start_ns + (part.run.seconds * 1e9) as i64,
        }
    }

    fn share(&self, from_ns: i64, to_ns: i64) -> f64 {
        let own_ns = (self.to_ns - self.from_ns).max(1);
        ((to_ns - from_ns) as f64 / own_ns as f64).clamp(0.0, 1.0)
    }
}

/// Adds up the hosts' runs of a plan that was to begin at `start_ns` of our clock. The result has no
/// checks but those of the fleet itself, and says nothing of the server.
pub fn merge(plan: &Plan, start_ns: i64, parts: &[Part]) -> Run {
    let windows: Vec<Window> = parts.iter().map(|part| Window::of(part, plan)).collect();
    let Some(first) = parts.first() else { return Run::default() };
    let warmup_ns = plan.warmup.as_nanos() as i64;
    let begin_ns = windows.iter().map(|window| window.began_ns + warmup_ns).min().unwrap_or(start_ns);
    let end_ns = windows.iter().map(|window| window.end_ns).max().unwrap_or(begin_ns);
    let from_ns = windows.iter().map(|window| window.from_ns).max().unwrap_or(begin_ns);
    let to_ns = windows.iter().map(|window| window.to_ns).min().unwrap_or(begin_ns);
    let mut run = Run {
        label: plan.label.clone(),
        server: first.run.server.clone(),
        address: first.run.address.clone(),
        protocol: first.run.protocol.clone(),
        tls: first.run.tls.clone(),
        workload: first.run.workload.clone(),
        load: first.run.load.clone(),
        started_unix_ms: first.run.started_unix_ms,
        seconds: (end_ns - begin_ns).max(0) as f64 / 1e9,
        ..Run::default()
    };
    run.load.threads = parts.iter().map(|part| part.run.load.threads).sum();
    run.load.connections = parts.iter().map(|part| part.run.load.connections).sum();
    if let Load::Open { rate, .. } = plan.load {
        run.load.rate = run.load.rate.map(|_| rate);
    }
    let mut seconds = BTreeMap::new();
    for (part, window) in parts.iter().zip(&windows) {
        add(&mut run, &part.run, &part.name);
        let shift_ms = (window.began_ns + warmup_ns - begin_ns) / 1_000_000;
        part.run.intervals.iter().for_each(|interval| add_interval(&mut seconds, interval, shift_ms));
        run.hosts.push(Host {
            name: part.name.clone(),
            count: part.run.count(),
            rate: part.run.rate(),
            response: part.run.response(),
            start_skew_us: (window.began_ns - start_ns) as f64 / 1000.0 + part.run.generator.start_late_us,
            clock_offset_us: part.before.offset_ns as f64 / 1000.0,
            connections: part.run.load.connections,
            clock_error_us: part.before.error_ns.max(part.after.error_ns) as f64 / 1000.0,
            overlap: window.share(from_ns, to_ns),
        });
    }
    run.intervals = seconds.into_values().collect();
    // What all can do at most is known when it is known of each.
    let ceilings: Option<Vec<f64>> = parts.iter().map(|part| part.run.generator.ceiling).collect();
    run.generator.ceiling =
        plan.ceiling.map(|ceiling| ceiling.rate).or_else(|| ceilings.map(|each| each.iter().sum()));
    run.generator.ceiling_spread = match plan.ceiling {
        Some(ceiling) => ceiling.spread,
        None => parts.iter().map(|part| part.run.generator.ceiling_spread).fold(0.0, f64::max),
    };
    run.checks = vec![overlap(&run.hosts, &windows), start(&run.hosts), fairness(plan, &run.hosts)];
    run
}

/// Adds one host's counts and histograms.
fn add(sum: &mut Run, run: &Run, name: &str) {
    for verb in &run.verbs {
        match sum.verbs.iter_mut().find(|row| row.name == verb.name) {
            Some(row) => row.add(verb),
            None => sum.verbs.push(verb.clone()),
        }
    }
    sum.slip.add(&run.slip);
    sum.dropped += run.dropped;
    sum.verified.mode.clone_from(&run.verified.mode);
    sum.verified.checked += run.verified.checked;
    sum.verified.wrong += run.verified.wrong;
    sum.verified.stale += run.verified.stale;
    sum.verified.lost += run.verified.lost;
    sum.verified.cold += run.verified.cold;
    let said = |text: &String| format!("{name}: {text}");
    sum.verified.examples.extend(run.verified.examples.iter().map(said));
    sum.verified.examples.truncate(EXAMPLES);
    sum.errors_said.extend(run.errors_said.iter().map(said));
    sum.errors_said.truncate(EXAMPLES);
    let (total, more) = (&mut sum.generator, &run.generator);
    total.cpu_user_us += more.cpu_user_us;
    total.cpu_system_us += more.cpu_system_us;
    total.busiest_thread = total.busiest_thread.max(more.busiest_thread);
    total.most_waiting_thread = total.most_waiting_thread.max(more.most_waiting_thread);
    total.most_occupied_thread = total.most_occupied_thread.max(more.most_occupied_thread);
    total.start_late_us = total.start_late_us.max(more.start_late_us);
}

/// Adds an interval to the second of the common axis that it lies in most.
fn add_interval(seconds: &mut BTreeMap<u64, Interval>, interval: &Interval, shift_ms: i64) {
    let second = (interval.at_ms as i64 + shift_ms + 500).max(0) as u64 / 1000;
    let sum = seconds.entry(second).or_default();
    sum.add(interval);
    sum.at_ms = second * 1000;
}

/// Whether all hosts measured at the same time; and if not, the host that was out of step. The share of one
/// that is says nothing of that, since it misses as much of the others as they of it.
fn overlap(hosts: &[Host], windows: &[Window]) -> Check {
    let mut check = checks::hosts::overlap(hosts);
    let all = || hosts.iter().zip(windows);
    let began_last = all().max_by_key(|(_, window)| window.from_ns);
    let ended_first = all().min_by_key(|(_, window)| window.to_ns);
    let begins = all().map(|(_, window)| window.from_ns).min();
    let ends = all().map(|(_, window)| window.to_ns).max();
    if let (Verdict::Fail, Some((last, late)), Some((first, early)), Some(begin_ns), Some(end_ns)) =
        (check.verdict, began_last, ended_first, begins, ends)
    {
        let (late_ns, early_ns) = (late.from_ns - begin_ns, end_ns - early.to_ns);
        check.message += &if late_ns >= early_ns {
            format!("; {} began last, {} after the first", last.name, show::time(late_ns as f64))
        } else {
            format!("; {} ended first, {} before the last", first.name, show::time(early_ns as f64))
        };
    }
    check
}

/// Whether all hosts began at the same time.
fn start(hosts: &[Host]) -> Check {
    let bound =
        |pick: fn(f64, f64) -> f64| hosts.iter().map(|host| host.start_skew_us).reduce(pick).unwrap_or(0.0);
    let apart_us = bound(f64::max) - bound(f64::min);
    let error_us = hosts.iter().map(|host| host.clock_error_us).fold(0.0, f64::max);
    let message = format!(
        "{} hosts began within {} (clocks known to {})",
        hosts.len(),
        show::time(apart_us * 1000.0),
        show::time(error_us * 1000.0)
    );
    let verdict = if apart_us + error_us > SKEW_MAX_US { Verdict::Warn } else { Verdict::Pass };
    Check { name: "start".to_string(), verdict, message }
}

/// Whether every host was served alike. In a closed loop, one with a connection more may do as much more.
fn fairness(plan: &Plan, hosts: &[Host]) -> Check {
    let is_open = matches!(plan.load, Load::Open { .. });
    let share =
        |host: &Host| if is_open { host.rate } else { host.rate / f64::from(host.connections.max(1)) };
    checks::hosts::fairness(&hosts.iter().map(share).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::proof;
    use crate::latency::Latency;
    use crate::result::Verb;
    use std::time::Duration;

    const BEGAN_NS: i64 = 5_000_000_000;

    /// A host whose clock is off by `offset_ns`, that began `late_ns` late and measured for `seconds`.
    fn part(name: &str, offset_ns: i64, late_ns: i64, seconds: f64) -> Part {
        let clock = Offset { offset_ns, error_ns: 40_000, round_trip_ns: 100_000, at_ns: BEGAN_NS - 1 };
        let mut response = Latency::new();
        proof::record(&mut response, name.len() as u32, 1000);
        let get =
            Verb { name: "get".to_string(), count: 1000, hits: 990, misses: 10, response, ..Verb::default() };
        let second = Interval { count: 500, response: Latency::new(), ..Interval::default() };
        let intervals = vec![second.clone(), Interval { at_ms: 1000, ..second }];
        let mut run = Run { seconds, verbs: vec![get], intervals, ..Run::default() };
        run.load.connections = 4;
        Part {
            name: name.to_string(),
            run,
            began_ns: BEGAN_NS + offset_ns + late_ns,
            before: clock,
            after: clock,
        }
    }

    fn plan() -> Plan {
        Plan { duration: Duration::from_secs(2), ..Plan::default() }
    }

    fn verdict(run: &Run, name: &str) -> Verdict {
        run.checks.iter().find(|check| check.name == name).expect(name).verdict
    }

    #[test]
    fn totals_are_the_sums_and_histograms_lose_nothing() {
        let parts = [part("a", -7_000_000_000, 0, 2.0), part("bb", 1 << 50, 200_000, 2.0)];
        let run = merge(&plan(), BEGAN_NS, &parts);
        let mut one = Latency::new();
        proof::record(&mut one, 1, 1000);
        proof::record(&mut one, 2, 1000);
        assert_eq!(run.response(), one);
        assert_eq!((run.count(), run.verbs[0].hits, run.verbs[0].misses), (2000, 1980, 20));
        assert_eq!(run.load.connections, 8);
        let seconds: Vec<_> = run.intervals.iter().map(|second| (second.at_ms, second.count)).collect();
        assert_eq!(seconds, [(0, 1000), (1000, 1000)]);
        let skews: Vec<f64> = run.hosts.iter().map(|host| host.start_skew_us).collect();
        assert_eq!(skews, [0.0, 200.0]);
        assert!(run.is_certified(), "{:?}", run.checks);
    }

    #[test]
    fn windows_that_do_not_overlap_are_refused() {
        for (late_ns, seconds, want) in [
            (0, 2.0, Verdict::Pass),
            (19_000_000, 2.0, Verdict::Pass),
            (21_000_000, 2.0, Verdict::Fail),
            (3_000_000_000, 2.0, Verdict::Fail),
            (0, 1.97, Verdict::Fail),
            // A long wait for the last answers is no other window.
            (0, 3.0, Verdict::Pass),
        ] {
            let run = merge(&plan(), BEGAN_NS, &[part("a", 0, 0, 2.0), part("bb", 9, late_ns, seconds)]);
            assert_eq!(verdict(&run, "overlap"), want, "{late_ns} {seconds}");
            assert_eq!(run.is_certified(), want == Verdict::Pass);
            let message = &run.checks[0].message;
            assert_eq!(message.contains("bb began last"), want == Verdict::Fail && late_ns > 0, "{message}");
            assert_eq!(
                message.contains("bb ended first"),
                want == Verdict::Fail && late_ns == 0,
                "{message}"
            );
        }
    }

    #[test]
    fn a_host_that_was_asleep_at_the_start_did_not_share_that_time() {
        let mut asleep = part("bb", 0, 0, 2.0);
        asleep.run.generator.start_late_us = 500_000.0;
        let run = merge(&plan(), BEGAN_NS, &[part("a", 0, 0, 2.0), asleep]);
        assert_eq!(verdict(&run, "overlap"), Verdict::Fail);
        assert_eq!(verdict(&run, "start"), Verdict::Warn);
        assert!((run.hosts[0].overlap - 0.75).abs() < 1e-6, "{}", run.hosts[0].overlap);
    }

    #[test]
    fn one_host_that_gets_little_is_said() {
        let mut poor = part("bb", 0, 0, 2.0);
        poor.run.verbs[0].count = 100;
        let run = merge(&plan(), BEGAN_NS, &[part("a", 0, 0, 2.0), poor]);
        assert_eq!(verdict(&run, "fairness"), Verdict::Warn);
        assert!(run.is_certified());
    }
}
