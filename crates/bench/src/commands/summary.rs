//! A run's figures as a table for the terminal.

use crate::engine::Plan;
use crate::latency::Latency;
use crate::result::{Run, Verb, Verdict};
use crate::show;
use std::fmt::Write as _;

/// Below this many columns, the table is told in lines.
const NARROW: usize = 76;

/// Returns the heading of a run.
pub fn heading(plan: &Plan, width: usize) -> String {
    heading_of(plan, &format!("{}, {}", plan.load, connections(plan)), width)
}

/// How many connections a plan has, in words.
pub fn connections(plan: &Plan) -> String {
    let several = if plan.threads == 1 { "" } else { "s" };
    format!("{} connections over {} thread{several}", plan.connections, plan.threads)
}

/// The heading of several runs, whose load is told in other words than the plan's.
pub fn heading_of(plan: &Plan, load: &str, width: usize) -> String {
    let tls = if plan.tls.is_some() { " in TLS" } else { "" };
    let text = format!("{} {}{tls}; {load}; {}", plan.place(), plan.protocol.name(), plan.words());
    wrap(&text, width, "")
}

/// Returns the table of a run.
pub fn of(run: &Run, width: usize) -> String {
    let mut text = String::new();
    if width >= NARROW {
        table(&mut text, run)
    } else {
        lines(&mut text, run)
    }
    text += &crate::fleet::table::of(&run.hosts, width);
    let mut tell = |line: String| text += &format!("{}\n", wrap(&line, width, "   "));
    batches(run).into_iter().for_each(&mut tell);
    if run.slip.count() > 0 {
        let p99 = |latency: &Latency| show::time(latency.quantile_ns(0.99) as f64);
        tell(format!("service p99 {}, slip p99 {}", p99(&run.service()), p99(&run.slip)));
    }
    let count = run.count().max(1) as f64;
    if let Some(process) = run.watch.as_ref().filter(|watch| !watch.process.is_empty()) {
        let sum = |of: fn(&crate::result::ProcessSample) -> u64| process.process.iter().map(of).sum::<u64>();
        let cpu_us = sum(|sample| sample.cpu_user_us + sample.cpu_system_us) as f64;
        let length_ms = sum(|sample| sample.interval_ms).max(1) as f64;
        let resident = process.process.last().map_or(0, |sample| sample.resident_bytes);
        tell(format!(
            "server {}: {:.2} us CPU a request, {:.0} % of a CPU, {} resident, {} switches",
            run.server,
            cpu_us / count,
            cpu_us / 10.0 / length_ms,
            show::bytes(resident as f64),
            show::rate(sum(|sample| sample.switches) as f64 * 1000.0 / length_ms),
        ));
    } else if !run.server.is_empty() {
        tell(format!("server {}", run.server));
    }
    if let Some(tls) = &run.tls {
        tell(tls.clone());
    }
    let cpu_us = (run.generator.cpu_user_us + run.generator.cpu_system_us) as f64;
    tell(format!("generator {:.2} us CPU a request", cpu_us / count));
    for check in &run.checks {
        let verdict = match check.verdict {
            Verdict::Pass => "ok  ",
            Verdict::Warn => "warn",
            Verdict::Fail => "FAIL",
            Verdict::Skipped => "skip",
        };
        tell(format!("{verdict} {}: {}", check.name, check.message));
    }
    for example in &run.verified.examples {
        tell(format!("wrong: {example}"));
    }
    match &run.cut_short {
        Some(why) => tell(format!("CUT SHORT after {:.1} s: {why}", run.seconds)),
        None if run.is_certified() => tell("CERTIFIED".to_string()),
        None => tell("NOT CERTIFIED: do not quote these figures".to_string()),
    }
    text
}

/// The rates of keys in requests of several.
fn batches(run: &Run) -> Vec<String> {
    let rate = |rate: f64| show::count(rate as u64);
    let (keys, sets) = (run.load.multi_get, run.load.quiet_sets);
    let gets = run.key_rate().map(|keys_s| format!("{} keys/s in gets of {keys} keys", rate(keys_s)));
    let sets = run.quiet_set_rate().map(|sets_s| format!("{} sets/s, {sets} to a reply", rate(sets_s)));
    gets.into_iter().chain(sets).collect()
}

fn table(text: &mut String, run: &Run) {
    let _ = writeln!(
        text,
        "{:<7}{:>10}{:>11}{:>9}{:>9}{:>9}{:>9}{:>9}",
        "", "requests", "rate", "mean", "p50", "p99", "p99.9", "max"
    );
    let mut row = |name: &str, count: u64, rate: f64, latency: &Latency| {
        let time = |quantile| short(latency.quantile_ns(quantile) as f64);
        let _ = writeln!(
            text,
            "{name:<7}{:>10}{:>11}{:>9}{:>9}{:>9}{:>9}{:>9}",
            grouped(count),
            show::rate(rate),
            short(latency.mean_ns()),
            time(0.5),
            time(0.99),
            time(0.999),
            short(latency.max_ns() as f64)
        );
    };
    for verb in &run.verbs {
        row(&verb.name, verb.count, rate_of(verb, run), &verb.response);
    }
    if run.verbs.len() != 1 {
        row("all", run.count(), run.rate(), &run.response());
    }
}

fn lines(text: &mut String, run: &Run) {
    let mut rows: Vec<(String, f64, Latency)> =
        run.verbs.iter().map(|verb| (verb.name.clone(), rate_of(verb, run), verb.response.clone())).collect();
    if rows.len() != 1 {
        rows.push(("all".to_string(), run.rate(), run.response()));
    }
    for (name, rate, latency) in rows {
        let time = |quantile| short(latency.quantile_ns(quantile) as f64);
        let _ = writeln!(text, "{name} {}", show::rate(rate));
        let _ =
            writeln!(text, "  p50 {} p99 {} max {}", time(0.5), time(0.99), short(latency.max_ns() as f64));
    }
}

fn rate_of(verb: &Verb, run: &Run) -> f64 {
    if run.seconds > 0.0 { verb.count as f64 / run.seconds } else { 0.0 }
}

/// A time without the space before its unit.
fn short(ns: f64) -> String {
    show::time(ns).replace(' ', "")
}

/// A count as it is, while it fits its column.
fn grouped(count: u64) -> String {
    if count < 1_000_000_000 { count.to_string() } else { show::count(count) }
}

/// Breaks a text between words; further lines begin with `indent`.
pub fn wrap(text: &str, width: usize, indent: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last().map_or(0, String::len);
        if line > indent.len() && line + 1 + word.len() > width {
            lines.push(indent.to_string());
        }
        if let Some(line) = lines.last_mut() {
            if line.len() > indent.len() || (!line.is_empty() && line != indent) {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_fits() {
        let mut verb = Verb { name: "delete".to_string(), count: 999_999_999, ..Verb::default() };
        verb.response.record_n(12_345_678, 9);
        let mut run = Run { seconds: 10.0, verbs: vec![verb.clone(), verb], ..Run::default() };
        run.cut_short = Some("127.0.0.1:11211 closed a connection with 3 requests in flight".to_string());
        for width in [40, 80] {
            for line in of(&run, width).lines() {
                assert!(line.len() <= width, "{width}: {line}");
            }
        }
    }
}
