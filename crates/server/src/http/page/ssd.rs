//! The SSD: its ring of segments, what the device does, and its wear.

use std::sync::atomic::Ordering::Relaxed;

use larder_store::SEGMENT_BYTES;

use super::chart::{Chart, Scale, Series};
use super::figure::{
    NONE, bytes, bytes_per_second, count, data, decimal_bytes, micros, per_second, percent, short, span,
};
use super::panel::Panel;
use super::requests::{QUANTILE_HEADS, quantiles};
use super::shapes::ring;
use super::table::{facts, table};
use super::view::View;
use crate::http::history::{POINTS_MAX, Point};
use crate::wear;

/// Arcs of the ring.
const ARCS: usize = 48;
/// Rows of the ring's table.
const ROWS: usize = 8;
const DAY_SECONDS: f64 = 86_400.0;
/// The years for which the page names the write limit with which the SSD lasts so long.
const LIFETIMES_YEARS: [f64; 4] = [1.0, 2.0, 3.0, 5.0];
/// The drive writes that an SSD for one a day is usually rated for: five years.
const RATED_DRIVE_WRITES: f64 = 5.0 * 365.0;

/// Returns the panel of segments by their age.
pub(super) fn segments(view: &View<'_>) -> Option<Panel> {
    if !view.has_ssd() {
        return None;
    }
    let (shared, store) = (view.shared, &view.store);
    let survey = shared.store.survey_ssd(ARCS, shared.clock.now());
    let live = mean(&survey.live_shares);
    let oldest = span(u64::from(view.ages.ssd_s));
    let about = format!(
        "Segments of the SSD from the newest to the oldest: {} used, {} of these live, the oldest {oldest} \
         old",
        percent(survey.used_share),
        percent(live)
    );
    let size = (store.ssd_segments * SEGMENT_BYTES) as f64;
    let written = view.history.mean(POINTS_MAX, |point| point.written_bytes);
    let turn = if written < 1.0 { NONE.to_string() } else { span((size / written) as u64) };
    let figures = facts(&[
        ("", "Size", data(size, &bytes(size))),
        ("", "Used", data(survey.used_share, &percent(survey.used_share))),
        ("live5", "Live of the used", data(live, &percent(live))),
        ("", "Items", data(store.ssd_items as f64, &short(store.ssd_items as f64))),
        ("", "One turn at this rate", turn),
    ]);
    let drawn = ring(&about, survey.used_share, &survey.live_shares, [oldest.as_str(), "oldest"]);
    let arcs_a_row = survey.live_shares.len().div_ceil(ROWS).max(1);
    let rows: Vec<f64> = survey.live_shares.chunks(arcs_a_row).map(mean).collect();
    let parts = rows.len();
    let row = |(at, share): (usize, f64)| {
        let name = match at {
            0 => "Newest".to_string(),
            last if last + 1 == parts => "Oldest".to_string(),
            at => (at + 1).to_string(),
        };
        (name, vec![data(share, &percent(share))])
    };
    let rows: Vec<_> = rows.into_iter().enumerate().map(row).collect();
    Some(Panel {
        id: "segments",
        title: "SSD",
        note: "segments by age, shaded by what lives",
        body: format!("<div class=\"round\">{drawn}{figures}</div>"),
        tables: table("Segments from the newest to the oldest", "Part", &["Live"], &rows),
    })
}

/// Returns the panel of what the device does.
pub(super) fn device(view: &View<'_>) -> Option<Panel> {
    if !view.has_ssd() {
        return None;
    }
    let series = |name, class, of: fn(&Point) -> f32| Series { name, class, values: view.history.series(of) };
    let chart = Chart {
        about: "Bytes read from and written to the SSD per second",
        scale: Scale::Lines,
        base: 1024.0,
        show: bytes_per_second,
        series: vec![
            series("Read", "ssd", |point| point.read_bytes),
            series("Written", "store", |point| point.written_bytes),
        ],
    };
    let history = view.history;
    let (reads, writes) = (history.now(|point| point.reads), history.now(|point| point.writes));
    let p99 = history.now(|point| point.read_p99_us);
    let reading = view.shared.reads_in_flight.load(Relaxed) as u64;
    let figures = facts(&[
        ("", "Reads", format!("{}, {reading} in flight", data(reads, &per_second(reads)))),
        (
            "",
            "Writes",
            format!("{}, {} pending", data(writes, &per_second(writes)), view.store.ssd_writes_pending),
        ),
        ("", "p99 of reads", data(p99, &micros(p99))),
        ("", "Admission", admission(view)),
    ]);
    let times = &view.times;
    let rows = [
        ("Wait of reads for their turn", &times.ssd_queue),
        ("Reads", &times.ssd_reads),
        ("Writes", &times.ssd_writes),
    ]
    .map(|(name, times)| (name.to_string(), quantiles(times)));
    let errors = [
        ("Reads that failed", view.totals.ssd_read_errors),
        ("Writes that failed", view.totals.ssd_write_errors),
        ("All failures, with wrong checksums", view.store.ssd_errors),
        ("Times that it was turned off", view.store.ssd_turned_off),
    ]
    .map(|(name, number)| (name.to_string(), vec![count(number)]));
    Some(Panel {
        id: "device",
        title: "Device",
        note: "load of the SSD",
        body: chart.html() + &figures,
        tables: chart.table()
            + &table("Times since the start", "Operation", &QUANTILE_HEADS, &rows)
            + &table("Failures since the start", "Failure", &["Number"], &errors),
    })
}

/// Returns the panel of how fast the SSD wears.
pub(super) fn wear_of(view: &View<'_>) -> Option<Panel> {
    if !view.has_ssd() {
        return None;
    }
    let (shared, store) = (view.shared, &view.store);
    let size = (store.ssd_segments * SEGMENT_BYTES) as f64;
    let now = view.history.mean(POINTS_MAX, |point| point.written_bytes) * DAY_SECONDS;
    let lately = wear::bytes_per_day(shared, store.ssd_bytes_written);
    let amplification = store.ssd_bytes_written as f64 / store.ssd_bytes_admitted as f64;
    let a_day = |rate: f64| data(rate, &format!("{} a day", decimal_bytes(rate)));
    let drive_writes = |rate: f64| data(rate / size, &short(rate / size));
    let amplified = match store.ssd_bytes_admitted {
        0 => NONE.to_string(),
        _ => data(amplification, &format!("{amplification:.2}")),
    };
    let lifetime: u64 = shared.lifetime_written.iter().map(|bytes| bytes.load(Relaxed)).sum();
    let lasts = match shared.config.ssd_endurance_bytes {
        None => ("", "Until 1,825 drive writes", left(size, lifetime as f64, now)),
        Some(_) => {
            let days = wear::days_left(shared, store.ssd_bytes_written);
            let shown = |days: u64| data(days as f64, &days_shown(days as f64));
            ("", "Until --ssd-endurance", days.map_or(NONE.to_string(), shown))
        }
    };
    let figures = facts(&[
        ("", "Last 5 min", a_day(now)),
        ("", "Last day, or since the start", a_day(lately)),
        ("", "Drive writes a day", drive_writes(now)),
        ("", "Write amplification", amplified),
        ("", "Written in its life", data(lifetime as f64, &decimal_bytes(lifetime as f64))),
        lasts,
    ]);
    let paths = shared.config.ssd.iter().zip(&shared.lifetime_written);
    let row = |path: &std::path::Path, bytes: u64| (path.display().to_string(), vec![count(bytes)]);
    let rows: Vec<_> = paths.map(|(ssd, bytes)| row(&ssd.path, bytes.load(Relaxed))).collect();
    let bytes = [
        ("Written to the device", store.ssd_bytes_written),
        ("Of records that left RAM", store.ssd_bytes_admitted),
        ("Of records moved within the SSD", store.ssd_bytes_moved),
    ]
    .map(|(name, bytes)| (name.to_string(), vec![count(bytes)]));
    let limits = LIFETIMES_YEARS.iter().filter_map(|years| {
        let limit = wear::limit_to_last(shared, years * 365.0)?;
        let share = limit * DAY_SECONDS / lately;
        let figures = vec![data(limit, &bytes_per_second(limit)), data(share, &percent(share))];
        Some((format!("{years} years"), figures))
    });
    let limits: Vec<_> = limits.collect();
    let limits = match limits.is_empty() {
        true => String::new(),
        false => table("What a write limit would buy", "To last", &["Limit", "Of what is written"], &limits),
    };
    Some(Panel {
        id: "wear",
        title: "Wear",
        note: "bytes written to the SSD",
        body: figures,
        tables: table("Bytes written in the life of each path", "Path", &["Bytes"], &rows)
            + &table("Bytes since the start", "", &["Bytes"], &bytes)
            + &limits,
    })
}

/// Returns which items are written to the SSD, and whether that is chosen.
fn admission(view: &View<'_>) -> String {
    let name = view.shared.store.admission().name();
    let curve = view.shared.curves.latest();
    let Some(chosen) = curve.and_then(|curve| curve.chosen) else { return name.to_string() };
    let changed = match chosen.switches {
        1 => "once".to_string(),
        times => format!("{} times", count(times)),
    };
    format!("{name}, chosen by shadows, changed {changed}")
}

/// Returns the mean of shares; not a number if there are none.
fn mean(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    sum / shares.len() as f64
}

/// Returns how long an SSD lasts that bears 1,825 writes of `size` bytes, one a day for five years, after `written`
/// bytes and with `rate` bytes a day.
fn left(size: f64, written: f64, rate: f64) -> String {
    let days = (RATED_DRIVE_WRITES * size - written).max(0.0) / rate;
    data(days, &days_shown(days))
}

/// Returns a number of days in years, or in its two largest units.
fn days_shown(days: f64) -> String {
    match days {
        days if !days.is_finite() || days > 100.0 * 365.0 => "> 100 years".to_string(),
        days if days > 3.0 * 365.0 => format!("{:.1} years", days / 365.0),
        days => span((days * DAY_SECONDS) as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_follows_from_what_was_written_and_the_rate() {
        assert_eq!(left(1e12, 0.0, 1e12), "<data value=\"1825\">5.0 years</data>");
        assert_eq!(left(1e12, 1725e12, 2e12), "<data value=\"50\">50\u{a0}d 0\u{a0}h</data>");
        assert_eq!(left(1e12, 9e15, 2e12), "<data value=\"0\">0\u{a0}s</data>");
        assert_eq!(left(1e12, 0.0, 0.0), "&gt; 100 years");
    }
}
