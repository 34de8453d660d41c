//! `stats mrc`: what caches of other sizes would miss.

use larder_store::shadow::{Chosen, Point, Sample};

use super::Lines;
use crate::curves::Curve;
use crate::shared::Shared;

/// Returns the lines: `state` alone if nothing is estimated.
pub(super) fn lines(shared: &Shared) -> Lines {
    let Some(curve) = shared.curves.latest() else {
        return vec![("state".into(), "off".into())];
    };
    let Curve { samples, points, window, .. } = &*curve;
    let mut lines: Lines = vec![("state".into(), "on".into())];
    let numbers = [
        ("memory_bytes", curve.memory_bytes),
        ("events", curve.events),
        ("events_dropped", curve.events_dropped),
        ("window_seconds", window.at.0.into()),
        ("window_gets", window.gets),
        ("window_misses", window.misses),
    ];
    lines.extend(numbers.map(|(name, value)| (name.into(), value.to_string())));
    samples.iter().for_each(|sample| add_sample(&mut lines, sample, window.gets));
    if let Some(chosen) = &curve.chosen {
        add_chosen(&mut lines, chosen);
    }
    points.iter().for_each(|point| add_point(&mut lines, point));
    lines
}

fn add_sample(lines: &mut Lines, sample: &Sample, gets: u64) {
    let axis = sample.axis.name();
    let mut add = |name: &str, value: String| lines.push((format!("{axis}_{name}").into(), value));
    add("state", sample.state.name().into());
    add("sample_rate", sample.scale.to_string());
    add("sample_items", sample.items.to_string());
    add("sample_miss_ratio", ratio(sample.misses as f64 / gets.max(1) as f64));
}

fn add_chosen(lines: &mut Lines, chosen: &Chosen) {
    let mut add = |name: &str, value: String| lines.push((format!("admission_{name}").into(), value));
    add("chosen", chosen.admission.name().into());
    add("changes", chosen.switches.to_string());
    add("sample_rate", chosen.scale.to_string());
    add("returning_saves", format!("{:.6}", chosen.gain));
    for (rule, misses, written) in [
        ("all", chosen.misses[0], chosen.ssd_bytes_written[0]),
        ("returning", chosen.misses[1], chosen.ssd_bytes_written[1]),
    ] {
        add(&format!("{rule}_misses"), misses.to_string());
        add(&format!("{rule}_ssd_bytes_written"), written.to_string());
    }
}

fn add_point(lines: &mut Lines, point: &Point) {
    let (axis, times) = (point.axis.name(), point.times);
    let mut add = |name: &str, value: String| lines.push((format!("{axis}:{times}:{name}").into(), value));
    add("memory_bytes", point.memory_bytes.to_string());
    add("ssd_bytes", point.ssd_bytes.to_string());
    add("is_full", u64::from(point.is_full).to_string());
    let shown = |of: fn(&larder_store::shadow::Estimate) -> f64| {
        point.estimate.as_ref().map_or("unknown".to_string(), |estimate| ratio(of(estimate)))
    };
    add("miss_ratio", shown(|estimate| estimate.miss_ratio));
    add("miss_ratio_low", shown(|estimate| estimate.low));
    add("miss_ratio_high", shown(|estimate| estimate.high));
    add("ssd_bytes_written", point.ssd_bytes_written.to_string());
}

fn ratio(ratio: f64) -> String {
    format!("{:.6}", ratio.clamp(0.0, 1.0))
}
