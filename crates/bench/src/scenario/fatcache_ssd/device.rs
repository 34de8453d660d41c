//! The device while gets were measured, as iostat shows it, theirs beside ours.

use super::{Found, seed};
use crate::checks::figure;
use crate::result::{DeviceSample, Run};
use crate::scenario::Stage;
use crate::scenario::part::row;
use crate::stats::mean;

/// Lines of each run that are shown; the others are in the report's panel.
const LINES: usize = 3;
const SECTOR_BYTES: f64 = 512.0;

fn samples(run: &Run) -> &[DeviceSample] {
    run.watch.as_ref().map_or(&[], |watch| &watch.device)
}

/// The samples within the window: the last may reach beyond it.
fn within(run: &Run) -> Vec<&DeviceSample> {
    let end_ms = (run.seconds * 1000.0) as u64 + 100;
    let inside: Vec<_> = samples(run).iter().filter(|sample| sample.at_ms <= end_ms).collect();
    if inside.is_empty() { samples(run).iter().take(1).collect() } else { inside }
}

/// Reads a second in the mean; none when no device was watched.
pub fn reads(run: &Run) -> Option<f64> {
    let reads: Vec<f64> = within(run).iter().map(|sample| sample.reads).collect();
    (!reads.is_empty()).then(|| mean(&reads))
}

/// Reads of the device for each get.
pub(super) fn reads_a_get(one: &Found) -> Option<f64> {
    let get = one.get.as_ref().filter(|run| run.rate() > 0.0)?;
    Some(reads(get)? / get.rate())
}

/// The sample with the most reads.
pub fn busiest(run: &Run) -> Option<&DeviceSample> {
    within(run).into_iter().max_by(|a, b| a.reads.total_cmp(&b.reads)).filter(|sample| sample.reads > 0.0)
}

/// A figure with two digits behind the point, as iostat prints it.
pub fn hundredths(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

/// The panel.
pub(super) fn table(stage: &mut Stage<'_>, found: &[Found]) {
    let mut rows = Vec::new();
    for (reads, kb, sectors, queue, wait, _, busy) in seed::IOSTAT.iter().take(LINES) {
        let cells = [*reads, 0.0, *kb, 0.0, *sectors, *queue, *wait, *busy].map(figure);
        rows.push(std::iter::once("document".to_string()).chain(cells).collect());
    }
    for one in found {
        let Some(get) = &one.get else { continue };
        for sample in within(get).into_iter().take(LINES) {
            rows.push(line(one.arrangement.name, sample));
        }
    }
    let columns = ["", "r/s", "w/s", "rkB/s", "wkB/s", "avgrq-sz", "avgqu-sz", "await ms", "% util"];
    stage.part.table("the device while gets were measured", &columns, rows);
}

fn line(name: &str, sample: &DeviceSample) -> Vec<String> {
    let requests = sample.reads + sample.writes;
    let bytes = sample.read_bytes + sample.written_bytes;
    let sectors = if requests > 0.0 { bytes / SECTOR_BYTES / requests } else { 0.0 };
    let rounded = |value: f64| figure(hundredths(value));
    row([
        &name,
        &figure(sample.reads.round()),
        &figure(sample.writes.round()),
        &figure((sample.read_bytes / 1024.0).round()),
        &figure((sample.written_bytes / 1024.0).round()),
        &rounded(sectors),
        &rounded(sample.queue),
        &rounded(sample.read_await_ms),
        &rounded(sample.utilisation * 100.0),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Watch;

    #[test]
    fn a_sample_after_the_window_does_not_count() {
        let sample =
            |at_ms, reads| DeviceSample { at_ms, interval_ms: 1000, reads, ..DeviceSample::default() };
        let watch = Watch {
            device: vec![sample(1000, 100.0), sample(2000, 300.0), sample(9000, 0.0)],
            ..Watch::default()
        };
        let run = Run { seconds: 2.0, watch: Some(watch), ..Run::default() };
        assert_eq!(reads(&run), Some(200.0));
        assert_eq!(busiest(&run).map(|sample| sample.reads), Some(300.0));
        assert_eq!(reads(&Run::default()), None);
        let sample = DeviceSample { reads: 10.0, read_bytes: 40_960.0, ..DeviceSample::default() };
        assert_eq!(line("x", &sample)[5], "8");
    }
}
