//! A result of memtier_benchmark (`--json-out-file`) in our own form, so that both can be laid beside each other.
//!
//! Its histograms are read as they are, in microseconds. It keeps none for a second, so a run is one interval. It
//! checks neither its own limit nor the values, so its runs are not certified.

use super::{Check, Document, Environment, Interval, Load, Run, SCHEMA, Verb, Verdict, Verified};
use crate::latency::Latency;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use serde_json::Value;

/// A number at a place of a file, such as `configuration`, `threads`; 0 where there is none.
fn number(value: &Value, name: &str) -> f64 {
    value.get(name).and_then(Value::as_f64).unwrap_or(0.0)
}

/// Returns the document in the bytes of a file, named after it; none if they are not of memtier_benchmark.
///
/// # Errors
/// They are of a version that wrote no histograms.
pub fn read(name: &str, bytes: &[u8]) -> Option<Result<Document, String>> {
    // A verb without requests has a mean that JSON has no word for.
    let text = std::str::from_utf8(bytes).ok()?.replace(": -nan", ": 0").replace(": nan", ": 0");
    let file: Value = serde_json::from_str(&text).ok()?;
    let configuration = file.get("configuration")?;
    let runs = runs_of(&file)?;
    let several = runs.len() > 1;
    let run = |(at, (title, run)): (usize, (&String, &Value))| {
        let label = if several { format!("{name} #{}", at + 1) } else { name.to_string() };
        run_of(label, configuration, run).map_err(|why| format!("{title}: {why}"))
    };
    let runs: Result<Vec<Run>, String> = runs.into_iter().enumerate().map(run).collect();
    Some(runs.map(|runs| Document {
        schema: SCHEMA,
        title: name.to_string(),
        started_unix_ms: runs.first().map_or(0, |run| run.started_unix_ms),
        environment: Environment { facts: vec![("measured with".into(), "memtier_benchmark".into())] },
        runs,
        ..Document::default()
    }))
}

/// All runs that the file has one by one; of several without `--print-all-runs`, the best and the worst.
fn runs_of(file: &Value) -> Option<Vec<(&String, &Value)>> {
    let of = |is_wanted: fn(&str) -> bool| {
        let all = file.as_object().into_iter().flatten();
        all.filter(move |(name, run)| is_wanted(name) && run.get("Totals").is_some()).collect::<Vec<_>>()
    };
    let kinds: [fn(&str) -> bool; 3] = [
        |name| name == "ALL STATS",
        |name| name.starts_with("RUN #"),
        |name| matches!(name, "BEST RUN RESULTS" | "WORST RUN RESULTS"),
    ];
    kinds.into_iter().map(of).find(|runs| !runs.is_empty())
}

fn run_of(label: String, configuration: &Value, run: &Value) -> Result<Run, String> {
    let word = |name: &str| configuration.get(name).and_then(Value::as_str).unwrap_or_default();
    let count = |name: &str| number(configuration, name);
    let runtime = run.get("Runtime").unwrap_or(&Value::Null);
    let totals = run.get("Totals").unwrap_or(&Value::Null);
    let seconds = match number(runtime, "Total duration") / 1000.0 {
        seconds if seconds > 0.0 => seconds,
        _ => number(totals, "Count") / number(totals, "Ops/sec").max(f64::MIN_POSITIVE),
    };
    let rows = run.as_object().into_iter().flatten();
    let rows = rows.filter(|(name, row)| *name != "Totals" && number(row, "Count") > 0.0);
    let verbs: Vec<Verb> = rows.map(|(name, row)| verb_of(name, row, seconds)).collect::<Result<_, _>>()?;
    let mut response = Latency::new();
    verbs.iter().for_each(|verb| response.add(&verb.response));
    let sum = |of: fn(&Verb) -> u64| verbs.iter().map(of).sum();
    let interval = Interval {
        count: sum(|v| v.count),
        hits: sum(|v| v.hits),
        misses: sum(|v| v.misses),
        response,
        ..Interval::default()
    };
    Ok(Run {
        label,
        server: "as memtier_benchmark saw it".to_string(),
        address: format!("{}:{}", word("server"), count("port")),
        protocol: word("protocol").to_string(),
        workload: format!("ratio {}, values of {} B", word("ratio"), count("data_size")),
        load: Load {
            arrival: "closed".to_string(),
            threads: count("threads") as u32,
            connections: (count("threads") * count("clients")) as u32,
            pipeline: count("pipeline") as u32,
            multi_get: 1,
            quiet_sets: 1,
            ..Load::default()
        },
        started_unix_ms: number(runtime, "Start time") as u64,
        seconds,
        verbs,
        intervals: vec![interval],
        verified: Verified { mode: "off".to_string(), ..Verified::default() },
        checks: vec![Check {
            name: "generator".to_string(),
            verdict: Verdict::Fail,
            message: "memtier_benchmark checks neither its own limit nor the values: shown, not certified"
                .to_string(),
        }],
        ..Run::default()
    })
}

fn verb_of(name: &str, row: &Value, seconds: f64) -> Result<Verb, String> {
    let latencies = row.get("Percentile Latencies").and_then(|of| of.get("Histogram log format"));
    let encoded = latencies.and_then(|of| of.get("Compressed Histogram")).and_then(Value::as_str);
    let encoded = encoded.ok_or_else(|| {
        format!("{name} have no histogram; memtier_benchmark 1.4 or newer writes one (--json-out-file)")
    })?;
    let response = latency(encoded).ok_or_else(|| format!("the histogram of {name} cannot be read"))?;
    let of_a_second = |name: &str| (number(row, name) * seconds).round() as u64;
    Ok(Verb {
        // Its rows are called Sets and Gets.
        name: name.to_lowercase().trim_end_matches('s').to_string(),
        count: number(row, "Count") as u64,
        hits: of_a_second("Hits/sec"),
        misses: of_a_second("Misses/sec"),
        errors: number(row, "Connection Errors") as u64,
        bytes_out: of_a_second("KB/sec TX") * 1024,
        bytes_in: of_a_second("KB/sec RX") * 1024,
        service: response.clone(),
        response,
        ..Verb::default()
    })
}

/// The histogram of microseconds in a text of HdrHistogram's own form.
fn latency(encoded: &str) -> Option<Latency> {
    let bytes = STANDARD.decode(encoded).ok()?;
    let read: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).ok()?;
    let mut latency = Latency::new();
    for bin in read.iter_recorded() {
        latency.record_n(bin.value_iterated_to().saturating_mul(1000), bin.count_at_value());
    }
    Some(latency)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
    use serde_json::json;

    fn histogram(values_us: &[(u64, u64)]) -> String {
        let mut histogram =
            Histogram::<u64>::new_with_bounds(10, 600_000_000, 3).expect("memtier's own bounds");
        values_us.iter().for_each(|(us, count)| histogram.record_n(*us, *count).expect("it is within"));
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(&histogram, &mut bytes).expect("to memory");
        STANDARD.encode(bytes)
    }

    fn row(count: u64, rate: f64, values_us: &[(u64, u64)]) -> Value {
        let log = json!({ "Compressed Histogram": histogram(values_us) });
        json!({
            "Count": count, "Ops/sec": rate, "Hits/sec": rate * 0.75, "Misses/sec": rate * 0.25,
            "Connection Errors": 0, "Percentile Latencies": { "p50.00": 0.1, "Histogram log format": log },
        })
    }

    fn file(name: &str, gets: &Value) -> Value {
        let sets = row(100, 50.0, &[(500, 100)]);
        let runtime = json!({ "Start time": 1_700_000_000_000u64, "Total duration": 2000 });
        let waits = json!({ "Count": 0 });
        json!({
            "configuration": {
                "server": "db", "port": 11211, "protocol": "memcache_text", "clients": 5, "threads": 4,
                "ratio": "1:9", "pipeline": 2, "data_size": 32,
            },
            name: {
                "Sets": sets, "Gets": gets, "Waits": waits, "Totals": { "Count": 1000 }, "Runtime": runtime,
            },
        })
    }

    fn runs(file: &Value) -> Vec<Run> {
        let read = read("m", file.to_string().as_bytes()).expect("it is memtier's");
        read.expect("it has histograms").runs
    }

    #[test]
    fn a_result_of_memtier_is_a_run_that_is_not_certified() {
        let runs = runs(&file("ALL STATS", &row(900, 450.0, &[(100, 890), (20_000, 10)])));
        let run = &runs[0];
        assert_eq!((run.count(), run.rate(), run.seconds), (1000, 500.0, 2.0));
        assert_eq!(run.verbs.iter().map(|verb| verb.name.as_str()).collect::<Vec<_>>(), ["get", "set"]);
        assert_eq!((run.verbs[0].hits, run.verbs[0].misses), (675, 225));
        assert_eq!((run.load.connections, run.address.as_str()), (20, "db:11211"));
        let p50_us = run.response().quantile_ns(0.5) as f64 / 1000.0;
        assert!((p50_us / 100.0 - 1.0).abs() < 0.05, "{p50_us}");
        let p999_us = run.response().quantile_ns(0.999) as f64 / 1000.0;
        assert!((p999_us / 20_000.0 - 1.0).abs() < 0.01, "{p999_us}");
        assert!(!run.is_certified());
    }

    #[test]
    fn repeats_have_numbers() {
        let mut all = file("RUN #1 RESULTS", &row(900, 450.0, &[(100, 900)]));
        all["RUN #2 RESULTS"] = all["RUN #1 RESULTS"].clone();
        all["BEST RUN RESULTS"] = all["RUN #1 RESULTS"].clone();
        let labels: Vec<String> = runs(&all).into_iter().map(|run| run.label).collect();
        assert_eq!(labels, ["m #1", "m #2"]);
    }

    #[test]
    fn files_of_others_and_of_old_versions_are_told_apart() {
        assert!(read("m", b"{\"schema\": 1}").is_none() && read("m", b"x").is_none());
        let old = file("ALL STATS", &json!({ "Count": 900, "Ops/sec": 450.0 }));
        let why = read("m", old.to_string().as_bytes()).expect("it is memtier's").expect_err("no histograms");
        assert!(why.contains("memtier_benchmark 1.4"), "{why}");
        let nan = file("ALL STATS", &row(900, 450.0, &[(100, 900)])).to_string();
        let nan = nan.replace("\"Waits\":{\"Count\":0}", "\"Waits\":{\"Count\":0,\"Latency\": -nan}");
        assert!(read("m", nan.as_bytes()).is_some_and(|read| read.is_ok()), "{nan}");
    }
}
