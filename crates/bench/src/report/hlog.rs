//! HdrHistogram's interval log (version 1.3), which its viewers and plotters read: every second of every run,
//! tagged with the run's name, and the whole of each verb, by response and by service time.

use super::text::moment;
use crate::latency::Latency;
use crate::result::Document;
use std::fmt::Write as _;

/// The log. A tag is `run` for its seconds; `run/verb/response`, `run/verb/service` and `run/slip` for the
/// whole of it; blanks and commas in names become underscores. Times count from the document's start.
pub fn hlog(document: &Document) -> String {
    let start = document.started_unix_ms as f64 / 1000.0;
    let mut log = format!(
        "#[Histogram log format version 1.3]\n#[StartTime: {start:.3} (seconds since epoch), {}]\n\
         \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n",
        moment(document.started_unix_ms)
    );
    for run in &document.runs {
        let name = tag(&run.label);
        let begin = run.started_unix_ms.saturating_sub(document.started_unix_ms) as f64 / 1000.0;
        for interval in run.intervals.iter().filter(|interval| interval.count > 0) {
            let at = begin + interval.at_ms as f64 / 1000.0;
            line(&mut log, &name, at, 1.0, &interval.response);
        }
        for verb in &run.verbs {
            let verb_name = tag(&verb.name);
            line(&mut log, &format!("{name}/{verb_name}/response"), begin, run.seconds, &verb.response);
            line(&mut log, &format!("{name}/{verb_name}/service"), begin, run.seconds, &verb.service);
        }
        line(&mut log, &format!("{name}/slip"), begin, run.seconds, &run.slip);
    }
    log
}

fn tag(name: &str) -> String {
    name.chars().map(|c| if c.is_control() || c.is_whitespace() || c == ',' { '_' } else { c }).collect()
}

fn line(log: &mut String, tag: &str, at: f64, seconds: f64, latency: &Latency) {
    if latency.count() == 0 {
        return;
    }
    // The histogram's own form in JSON is just the text that belongs here, between quotes.
    let Ok(serde_json::Value::String(histogram)) = serde_json::to_value(latency) else { return };
    let most_ms = latency.max_ns() as f64 / 1e6;
    let _ = writeln!(log, "Tag={tag},{at:.3},{seconds:.3},{most_ms:.3},{histogram}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{Interval, Run, Verb};
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    #[test]
    fn other_programs_read_what_we_wrote() {
        let mut response = Latency::new();
        response.record_n(1_500_000, 7);
        let interval = Interval { at_ms: 2000, count: 7, response: response.clone(), ..Interval::default() };
        let verb = Verb { name: "get".to_string(), response: response.clone(), ..Verb::default() };
        let run = Run {
            label: "larder 1, #2".to_string(),
            started_unix_ms: 1_000_500,
            seconds: 3.0,
            intervals: vec![interval],
            verbs: vec![verb],
            ..Run::default()
        };
        let document = Document { started_unix_ms: 1_000_000, runs: vec![run], ..Document::default() };
        let log = hlog(&document);
        let entries: Vec<_> =
            IntervalLogIterator::new(log.as_bytes()).map(|entry| entry.expect("it parses")).collect();
        let intervals: Vec<_> = entries
            .iter()
            .filter_map(|entry| match entry {
                LogEntry::Interval(interval) => Some(interval),
                _ => None,
            })
            .collect();
        assert_eq!(intervals.len(), 2);
        let tags: Vec<String> =
            intervals.iter().map(|i| i.tag().expect("tagged").as_str().to_string()).collect();
        assert_eq!(tags, ["larder_1__#2", "larder_1__#2/get/response"]);
        assert_eq!(intervals[0].start_timestamp().as_millis(), 2500);
        let back: Latency =
            serde_json::from_value(intervals[0].encoded_histogram().into()).expect("it is our geometry");
        assert_eq!(back, response);
    }
}
