//! `larder_mrc_*`: what caches of other sizes would miss. docs/metrics.md explains each.

use larder_store::Admission;
use larder_store::shadow::{Axis, Estimate, Point, State};

use super::text::Exposition;
use super::text::Kind::{Counter, Gauge};
use crate::curves::Curve;
use crate::shared::Shared;

/// A part of an estimate.
type Part = fn(&Estimate) -> f64;

/// Adds them, if there are shadows. An estimate that is not known has no sample.
pub(super) fn add(text: &mut Exposition, shared: &Shared) {
    let Some(curve) = shared.curves.latest() else { return };
    add_samples(text, &curve);
    add_chosen(text, &curve);
    let estimates: [(&str, &str, Part); 3] = [
        ("larder_mrc_miss_ratio", "Misses of all gets that a cache of this size would have.", |estimate| {
            estimate.miss_ratio
        }),
        ("larder_mrc_miss_ratio_low", "The lower end of the interval of 95 % around it.", |estimate| {
            estimate.low
        }),
        ("larder_mrc_miss_ratio_high", "The upper end of that interval.", |estimate| estimate.high),
    ];
    for (name, help, of) in estimates {
        add_points(text, name, help, &curve.points, |point| point.estimate.as_ref().map(of));
    }
    let help = "The size: of the memory limit, or of the SSD.";
    add_points(text, "larder_mrc_size_bytes", help, &curve.points, |point| Some(size_of(point)));
    let help = "1 if the shadow of this size has filled.";
    let filled = |point: &Point| Some(u64::from(point.is_full));
    add_points(text, "larder_mrc_filled", help, &curve.points, filled);
    if curve.points.iter().any(|point| point.ssd_bytes > 0) {
        let help = "Bytes that a cache of this size would have written to the SSD in the window.";
        let written = |point: &Point| Some(point.ssd_bytes_written);
        add_points(text, "larder_mrc_ssd_written_bytes", help, &curve.points, written);
    }
}

/// Adds what speaks for the admission, if it is chosen.
fn add_chosen(text: &mut Exposition, curve: &Curve) {
    let Some(chosen) = &curve.chosen else { return };
    let rules = [Admission::All, Admission::Returning].map(Admission::name);
    let name = "larder_mrc_admission_chosen";
    text.family(name, Gauge, "1 for the admission to the SSD that is chosen, by rule.");
    for rule in rules {
        text.sample(name, &[("rule", rule)], u64::from(rule == chosen.admission.name()));
    }
    let help = "How often another admission was chosen.";
    text.single("larder_mrc_admission_changes_total", Counter, help, chosen.switches);
    let each = |values: [u64; 2]| rules.into_iter().zip(values);
    let help = "Gets that the shadow of a rule has missed, multiplied by its sample rate.";
    text.labelled(("larder_mrc_admission_misses_total", Counter, help), "rule", each(chosen.misses));
    let help = "Bytes that a cache by a rule would have written to the SSD.";
    let written = each(chosen.ssd_bytes_written);
    text.labelled(("larder_mrc_admission_ssd_written_bytes_total", Counter, help), "rule", written);
}

fn size_of(point: &Point) -> u64 {
    match point.axis {
        Axis::Ram => point.memory_bytes,
        Axis::Ssd => point.ssd_bytes,
    }
}

/// Adds what is known of the samples.
fn add_samples(text: &mut Exposition, curve: &Curve) {
    let name = "larder_mrc_ready";
    text.family(name, Gauge, "1 while the sample along an axis tells enough for estimates.");
    for sample in &curve.samples {
        let is_ready = u64::from(sample.state == State::Ready);
        text.sample(name, &[("axis", sample.axis.name())], is_ready);
    }
    let name = "larder_mrc_sample_rate";
    text.family(name, Gauge, "One key of so many is in the sample along an axis.");
    for sample in &curve.samples {
        text.sample(name, &[("axis", sample.axis.name())], sample.scale);
    }
    let help = "The time that the estimates are of.";
    text.single("larder_mrc_window_seconds", Gauge, help, curve.window.at.0);
    let help = "Sampled requests, by what became of them.";
    let results = [("taken", curve.events), ("dropped", curve.events_dropped)];
    text.labelled(("larder_mrc_events_total", Counter, help), "result", results);
}

/// Adds a family with a sample for each size.
fn add_points<V: std::fmt::Display>(
    text: &mut Exposition,
    name: &str,
    help: &str,
    points: &[Point],
    value: impl Fn(&Point) -> Option<V>,
) {
    text.family(name, Gauge, help);
    for point in points {
        if let Some(value) = value(point) {
            let times = point.times.to_string();
            text.sample(name, &[("axis", point.axis.name()), ("times", &times)], value);
        }
    }
}
