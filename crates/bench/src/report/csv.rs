//! The seconds of all runs as one CSV table, the server's and the device's beside them.

use super::text::plain;
use crate::result::{Document, Run};
use std::fmt::Write as _;

const HEADER: &str = "run,server,second,unix_ms,requests,hits,misses,errors,\
                      mean_ns,p50_ns,p90_ns,p99_ns,p999_ns,max_ns,\
                      server_user_us,server_system_us,server_resident_bytes,server_switches,\
                      device_reads_per_s,device_writes_per_s,\
                      device_read_bytes_per_s,device_written_bytes_per_s,\
                      device_read_await_ms,device_write_await_ms,device_queue,device_utilisation,certified";

/// A cell: quoted when it has to be; a name that a spreadsheet would take for a formula gets an apostrophe.
fn cell(text: &str) -> String {
    let text = plain(text);
    let text = if text.starts_with(['=', '+', '-', '@']) { format!("'{text}") } else { text };
    if text.contains(['"', ',']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

/// A row a second and run, latencies from the intended time; a column without a figure is empty.
pub fn csv(document: &Document) -> String {
    let mut csv = format!("{HEADER}\n");
    document.runs.iter().for_each(|run| rows(&mut csv, run));
    csv
}

fn rows(csv: &mut String, run: &Run) {
    let (label, server) = (cell(&run.label), cell(&run.server));
    for interval in &run.intervals {
        let response = &interval.response;
        let _ = write!(
            csv,
            "{label},{server},{:.3},{},{},{},{},{},{:.0}",
            interval.at_ms as f64 / 1000.0,
            run.started_unix_ms + interval.at_ms,
            interval.count,
            interval.hits,
            interval.misses,
            interval.errors,
            response.mean_ns()
        );
        for quantile in [0.5, 0.9, 0.99, 0.999, 1.0] {
            let _ = write!(csv, ",{}", response.quantile_ns(quantile));
        }
        let middle = interval.at_ms + 500;
        let watch = run.watch.as_ref();
        match watch
            .and_then(|watch| watch.process.iter().find(|s| s.at_ms >= middle && s.at_ms < middle + 1000))
        {
            Some(s) => {
                let _ =
                    write!(csv, ",{},{},{},{}", s.cpu_user_us, s.cpu_system_us, s.resident_bytes, s.switches);
            }
            None => csv.push_str(",,,,"),
        }
        match watch
            .and_then(|watch| watch.device.iter().find(|s| s.at_ms >= middle && s.at_ms < middle + 1000))
        {
            Some(s) => {
                let _ = write!(
                    csv,
                    ",{:.1},{:.1},{:.0},{:.0},{:.4},{:.4},{:.3},{:.4}",
                    s.reads,
                    s.writes,
                    s.read_bytes,
                    s.written_bytes,
                    s.read_await_ms,
                    s.write_await_ms,
                    s.queue,
                    s.utilisation
                );
            }
            None => csv.push_str(",,,,,,,,"),
        }
        csv.push_str(if run.is_certified() { ",yes\n" } else { ",no\n" });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Interval;

    #[test]
    fn every_row_has_as_many_cells_as_the_header() {
        let run = Run {
            label: "=cmd,\"x\"".to_string(),
            intervals: vec![Interval::default(), Interval { at_ms: 1000, ..Interval::default() }],
            ..Run::default()
        };
        let text = csv(&Document { runs: vec![run], ..Document::default() });
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines[1].starts_with("\"'=cmd,\"\"x\"\"\","), "{}", lines[1]);
        let commas = |line: &str| line.matches(',').count();
        assert_eq!(commas(lines[0]) + 1, commas(lines[1]), "the label holds one itself");
    }
}
