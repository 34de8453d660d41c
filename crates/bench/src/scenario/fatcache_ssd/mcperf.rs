//! The lines that the document's load generator prints of a run, theirs beside ours.

use super::seed::{self, Block};
use super::{CONNECTIONS, Found};
use crate::checks::figure;
use crate::result::Run;
use crate::scenario::Stage;

/// The percentiles that it prints.
pub const PERCENTILES: [f64; 6] = [25.0, 50.0, 75.0, 95.0, 99.0, 99.9];
/// The document's name of each: its 75th is its 70th.
const NAMES: [&str; 6] = ["p25", "p50", "p75 (theirs is p70)", "p95", "p99", "p999"];

/// A table of sets and one of gets.
pub(super) fn tables(stage: &mut Stage<'_>, found: &[Found]) {
    for (verb, block) in [("set", seed::SET), ("get", seed::GET)] {
        let run = |one: &'_ Found| if verb == "set" { one.set.clone() } else { one.get.clone() };
        let ours: Vec<(&Found, Run)> = found.iter().filter_map(|one| Some((one, run(one)?))).collect();
        if ours.is_empty() {
            continue;
        }
        let mut rows: Vec<Vec<String>> =
            theirs(block, verb).into_iter().map(|(name, cell)| vec![name, cell]).collect();
        for (one, run) in &ours {
            let servers = one.arrangement.servers;
            rows.iter_mut().zip(lines(run, servers)).for_each(|(row, cell)| row.push(cell));
        }
        let mut columns = vec!["", "document"];
        columns.extend(ours.iter().map(|(one, _)| one.arrangement.name));
        stage.part.table(&format!("{verb} as its load generator prints it"), &columns, rows);
    }
}

fn theirs(block: Block, verb: &str) -> Vec<(String, String)> {
    let [p25, p50, p75, p95, p99, p999] = block.percentiles_ms.map(figure);
    let (mean, least, most) = block.times_ms;
    let (stored, value) = if verb == "set" { ("1,000,000", "0") } else { ("0", "1,000,000") };
    let cells = [
        ("servers", "1 of 8".to_string()),
        ("connections a server", CONNECTIONS.to_string()),
        ("requests", "1,000,000".to_string()),
        ("test-duration [s]", figure(block.seconds)),
        ("offered req/s", figure(block.offered)),
        ("request rate [req/s]", figure(block.rate)),
        ("request size [B]", figure(block.bytes.0)),
        ("response size [B]", figure(block.bytes.1)),
        ("response time [ms] avg", figure(mean)),
        ("min", figure(least)),
        ("max", figure(most)),
        (NAMES[0], p25),
        (NAMES[1], p50),
        (NAMES[2], p75),
        (NAMES[3], p95),
        (NAMES[4], p99),
        (NAMES[5], p999),
        ("stored", stored.to_string()),
        ("value", value.to_string()),
        ("errors", "0".to_string()),
        ("CPU [%] user", figure(block.cpu.0)),
        ("CPU [%] system", figure(block.cpu.1)),
    ];
    cells.map(|(name, cell)| (name.to_string(), cell)).into()
}

/// The same lines of one of our runs, all its servers together.
fn lines(run: &Run, servers: u32) -> Vec<String> {
    let response = run.response();
    let ms = |ns: f64| figure(ns / 1e6);
    let count = run.count().max(1) as f64;
    let sum = |of: fn(&crate::result::Verb) -> u64| run.verbs.iter().map(of).sum::<u64>() as f64;
    let of_verb = |name: &str| run.verbs.iter().find(|verb| verb.name == name);
    let stored = of_verb("set").map_or(0, |verb| verb.count - verb.errors);
    let value = of_verb("get").map_or(0, |verb| verb.hits);
    let cpu = |us: u64| figure(us as f64 / 1e4 / run.seconds.max(1e-9));
    let mut cells = vec![
        servers.to_string(),
        CONNECTIONS.to_string(),
        figure(run.count() as f64),
        figure(run.seconds),
        run.load.rate.map_or("-".to_string(), |rate| figure(rate.round())),
        figure(run.rate()),
        figure((sum(|verb| verb.bytes_out) / count * 10.0).round() / 10.0),
        figure((sum(|verb| verb.bytes_in) / count * 10.0).round() / 10.0),
        ms(response.mean_ns()),
        ms(response.quantile_ns(0.0) as f64),
        ms(response.max_ns() as f64),
    ];
    cells.extend(PERCENTILES.map(|percentile| ms(response.quantile_ns(percentile / 100.0) as f64)));
    cells.extend([
        figure(stored as f64),
        figure(value as f64),
        figure(sum(|verb| verb.errors)),
        cpu(run.generator.cpu_user_us),
        cpu(run.generator.cpu_system_us),
    ]);
    cells
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Verb;

    #[test]
    fn both_sides_have_the_same_lines() {
        let mut verb =
            Verb { name: "set".into(), count: 10, bytes_out: 1290, bytes_in: 80, ..Verb::default() };
        verb.response.record_n(2_000_000, 10);
        let run = Run { seconds: 2.0, verbs: vec![verb], ..Run::default() };
        let (theirs, ours) = (theirs(seed::SET, "set"), lines(&run, 8));
        assert_eq!(theirs.len(), ours.len());
        let of = |name: &str| theirs.iter().position(|line| line.0 == name).map(|at| ours[at].clone());
        assert_eq!(of("request rate [req/s]").as_deref(), Some("5"));
        assert_eq!(of("request size [B]").as_deref(), Some("129"));
        assert_eq!(of("stored").as_deref(), Some("10"));
    }
}
