//! What caches of other sizes would miss: a curve over the memory limit, and one over the SSD.

use std::fmt::Write as _;

use larder_store::shadow::{Axis, Estimate, Point, State};

use super::figure::{bytes, data, escape, per_second, percent};
use super::panel::Panel;
use super::table::table;
use super::view::View;
use crate::curves::Curve;

/// Pixels of the frame for the curve, above it and below it.
const FRAME: f64 = 112.0;
const ABOVE: f64 = 6.0;
const BELOW: f64 = 20.0;
/// Units of the stretched frame from its top to its bottom, and from its left to its right.
const UNITS: f64 = 1000.0;
/// How much the curve must bend for a knee: so many times the chart's height for its width.
const KNEE: f64 = 0.3;

/// Returns the panel of other memory limits.
pub(super) fn memory_sizes(view: &View<'_>) -> Option<Panel> {
    panel(view, Axis::Ram)
}

/// Returns the panel of other SSDs.
pub(super) fn ssd_sizes(view: &View<'_>) -> Option<Panel> {
    panel(view, Axis::Ssd)
}

fn panel(view: &View<'_>, axis: Axis) -> Option<Panel> {
    let curve = view.shared.curves.latest()?;
    let sample = curve.samples.iter().find(|sample| sample.axis == axis)?;
    let mut points: Vec<Point> = curve.points.iter().filter(|point| point.axis == axis).copied().collect();
    points.sort_by(|one, next| one.times.total_cmp(&next.times));
    let (id, title) = match axis {
        Axis::Ram => ("memory-sizes", "Other memory limits"),
        Axis::Ssd => ("ssd-sizes", "Other SSDs"),
    };
    let said = sentence(&curve, axis, sample.state);
    let drawn = match sample.state {
        State::Ready => Drawing::new(axis, &points).svg(),
        State::Filling | State::Few => String::new(),
    };
    let rows: Vec<_> = points.iter().map(row).collect();
    let heads = ["Misses", "Lowest", "Highest", "Written to the SSD", "Filled"];
    Some(Panel {
        id,
        title,
        note: "misses of all gets, estimated",
        body: format!("<p>{}</p>{drawn}", escape(&said)),
        tables: table("Misses by size", "Size", &heads, &rows),
    })
}

fn size_of(point: &Point) -> f64 {
    match point.axis {
        Axis::Ram => point.memory_bytes as f64,
        Axis::Ssd => point.ssd_bytes as f64,
    }
}

/// Returns a row of the table: the size, and what it would do.
fn row(point: &Point) -> (String, Vec<String>) {
    let of = |part: fn(&Estimate) -> f64| {
        let share = point.estimate.as_ref().map_or(f64::NAN, part);
        data(share, &percent(share))
    };
    let written = point.ssd_bytes_written as f64;
    let cells = vec![
        of(|estimate| estimate.miss_ratio),
        of(|estimate| estimate.low),
        of(|estimate| estimate.high),
        data(written, &bytes(written)),
        if point.is_full { "yes" } else { "no" }.to_string(),
    ];
    (bytes(size_of(point)), cells)
}

/// Returns what doubling would buy, or why that is not known.
fn sentence(curve: &Curve, axis: Axis, state: State) -> String {
    let name = match axis {
        Axis::Ram => "memory limit",
        Axis::Ssd => "SSD",
    };
    match state {
        State::Filling => return "The cache has not filled yet, so a larger one would miss no less.".into(),
        State::Few => {
            return "The sample is too small to tell; it grows with traffic and --shadow-memory.".into();
        }
        State::Ready => {}
    }
    let point = |times: f64| curve.points.iter().find(|point| point.axis == axis && point.times == times);
    let doubled = point(2.0).and_then(|point| Some((point, point.estimate?)));
    let now = point(1.0).and_then(|point| point.estimate).map_or(0.0, |own| own.miss_ratio);
    let Some((point, estimate)) = doubled.filter(|_| now > 0.0) else {
        return format!("What twice the {name} would miss is not known yet.");
    };
    let saved = |ratio: f64| ((now - ratio) / now).max(0.0);
    let misses = curve.window.misses as f64 / f64::from(curve.window.at.0.max(1));
    let full = if point.is_full { "" } else { " so far: its shadow has not filled yet" };
    format!(
        "Twice the {name} ({}) would save {} of the misses, {} ({} to {}){full}.",
        bytes(size_of(point)),
        percent(saved(estimate.miss_ratio)),
        per_second(misses * saved(estimate.miss_ratio)),
        percent(saved(estimate.high)),
        percent(saved(estimate.low)),
    )
}

/// A curve in its frame: sizes on a logarithmic axis to the right, the share of misses upwards.
struct Drawing<'a> {
    axis: Axis,
    points: Vec<(&'a Point, Estimate)>,
    /// The sizes at the left and at the right, and the share at the top.
    ends: (f64, f64),
    top: f64,
}

impl<'a> Drawing<'a> {
    fn new(axis: Axis, points: &'a [Point]) -> Drawing<'a> {
        let points: Vec<_> = points.iter().filter_map(|point| Some((point, point.estimate?))).collect();
        let size =
            |point: Option<&(&Point, Estimate)>| point.map_or(1.0, |(point, _)| size_of(point).max(1.0));
        let ends = (size(points.first()), size(points.last()));
        let highest = points.iter().map(|(_, estimate)| estimate.high).fold(0.0, f64::max);
        // Round shares, so that the axis rests.
        let top = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5].into_iter().find(|top| *top >= highest).unwrap_or(1.0);
        Drawing { axis, points, ends, top }
    }

    /// Returns how far to the right a size lies, from 0 to 1.
    fn right(&self, point: &Point) -> f64 {
        let (first, last) = self.ends;
        if last <= first { 0.5 } else { (size_of(point) / first).ln() / (last / first).ln() }
    }

    /// Returns how far down a share of misses lies, from 0 to 1.
    fn down(&self, share: f64) -> f64 {
        1.0 - share / self.top
    }

    fn place(&self, point: &Point, share: f64) -> String {
        format!("{:.0} {:.0}", self.right(point) * UNITS, self.down(share) * UNITS)
    }

    fn svg(&self) -> String {
        let class = self.axis.name();
        let of = |part: fn(&Estimate) -> f64| {
            move |(point, estimate): &(&Point, Estimate)| self.place(point, part(estimate))
        };
        let curve: Vec<String> = self.points.iter().map(of(|estimate| estimate.miss_ratio)).collect();
        let upper = self.points.iter().map(of(|estimate| estimate.high));
        let band: Vec<String> =
            upper.chain(self.points.iter().rev().map(of(|estimate| estimate.low))).collect();
        let said: Vec<String> = self
            .points
            .iter()
            .map(|(point, estimate)| format!("{} {}", bytes(size_of(point)), percent(estimate.miss_ratio)))
            .collect();
        let mut svg = format!(
            "<svg class=\"chart\" role=\"img\" aria-label=\"Misses of all gets by size: {}.\" width=\"100%\" \
             height=\"{}\">",
            escape(&said.join(", ")),
            ABOVE + FRAME + BELOW,
        );
        for share in [self.top, self.top / 2.0] {
            let y = ABOVE + FRAME * self.down(share);
            let _ = write!(
                svg,
                "<line class=\"grid\" x2=\"100%\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
                 <text class=\"tick\" y=\"{:.1}\">{}</text>",
                y + 12.0,
                escape(&percent(share)),
            );
        }
        let _ = write!(
            svg,
            "<svg viewBox=\"0 0 {UNITS} {UNITS}\" preserveAspectRatio=\"none\" y=\"{ABOVE}\" width=\"100%\" \
             height=\"{FRAME}\"><path class=\"area {class}\" d=\"M{}Z\"/>\
             <path class=\"line {class}\" d=\"M{}\"/></svg>",
            band.join("L"),
            curve.join("L"),
        );
        self.draw_sizes(&mut svg);
        svg.push_str("</svg>");
        svg
    }

    /// Returns how far to the right the knee lies: the size up to which more of it saves the most, relative to what
    /// still more would save. `None` if there is no such size.
    fn knee(&self) -> Option<f64> {
        let slope = |one: &(&Point, Estimate), next: &(&Point, Estimate)| {
            (one.1.miss_ratio - next.1.miss_ratio) / (self.right(next.0) - self.right(one.0)).max(1e-9)
        };
        let bend = |three: &[(&Point, Estimate)]| slope(&three[0], &three[1]) - slope(&three[1], &three[2]);
        let sharpest = self.points.windows(3).max_by(|one, next| bend(one).total_cmp(&bend(next)))?;
        (bend(sharpest) >= KNEE * self.top).then(|| self.right(sharpest[1].0))
    }

    /// Draws the horizontal axis with the sizes at its ends, today's and the knee.
    fn draw_sizes(&self, svg: &mut String) {
        let (floor, foot) = (ABOVE + FRAME, ABOVE + FRAME + 15.0);
        let _ = write!(svg, "<line class=\"floor\" x2=\"100%\" y1=\"{floor}\" y2=\"{floor}\"/>");
        let mut add = |x: f64, anchor: &str, text: &str| {
            let _ = write!(
                svg,
                "<text class=\"tick\" x=\"{:.1}%\" y=\"{foot}\" text-anchor=\"{anchor}\">{}</text>",
                x * 100.0,
                escape(text),
            );
        };
        add(0.0, "start", &bytes(self.ends.0));
        add(1.0, "end", &bytes(self.ends.1));
        let own = self.points.iter().find(|(point, _)| point.times == 1.0).map(|(own, _)| self.right(own));
        let knee = self.knee();
        let mut marks = Vec::new();
        match (own, knee) {
            (Some(own), Some(knee)) if (own - knee).abs() < 0.1 => marks.push((own, "today, knee")),
            (own, knee) => {
                marks.extend(own.map(|x| (x, "today")));
                marks.extend(knee.map(|x| (x, "knee")));
            }
        }
        for (x, text) in &marks {
            if (0.1..0.9).contains(x) {
                add(*x, "middle", text);
            }
        }
        for (x, _) in marks {
            let x = x * 100.0;
            let _ = write!(
                svg,
                "<line class=\"grid\" x1=\"{x:.1}%\" x2=\"{x:.1}%\" y1=\"{ABOVE}\" y2=\"{floor}\"/>"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use larder_store::Seconds;
    use larder_store::shadow::{PrefixReport, Real};

    fn point(times: f64, ratios: Option<(f64, f64, f64)>) -> Point {
        Point {
            axis: Axis::Ram,
            times,
            memory_bytes: (times * f64::from(1 << 30)) as u64,
            ssd_bytes: 0,
            estimate: ratios.map(|(low, miss_ratio, high)| Estimate { miss_ratio, low, high }),
            ssd_bytes_written: 0,
            is_full: true,
        }
    }

    fn curve(points: Vec<Point>) -> Curve {
        let window = Real { gets: 10_000, misses: 2_000, at: Seconds(10) };
        Curve {
            samples: vec![],
            points,
            chosen: None,
            prefixes: PrefixReport { rows: vec![], delimiter: b':', scale: 1, state: State::Ready },
            trial: Default::default(),
            window,
            memory_bytes: 0,
            events: 0,
            events_dropped: 0,
        }
    }

    #[test]
    fn a_sentence_tells_what_doubling_would_buy_or_why_it_is_not_known() {
        let known = curve(vec![point(1.0, Some((0.2, 0.2, 0.2))), point(2.0, Some((0.1, 0.15, 0.16)))]);
        let said = sentence(&known, Axis::Ram, State::Ready).replace('\u{a0}', " ");
        let wanted =
            "Twice the memory limit (2 GiB) would save 25.0 % of the misses, 50/s (20.0 % to 50.0 %).";
        assert_eq!(said, wanted);
        let unknown = curve(vec![point(1.0, None)]);
        assert!(sentence(&unknown, Axis::Ram, State::Ready).contains("not known yet"));
        assert!(sentence(&unknown, Axis::Ram, State::Filling).contains("has not filled"));
        assert!(sentence(&unknown, Axis::Ssd, State::Few).contains("--shadow-memory"));
    }

    #[test]
    fn the_knee_is_where_more_begins_to_save_little() {
        let ratio = |ratio| Some((ratio, ratio, ratio));
        let points = [
            point(0.25, ratio(0.4)),
            point(0.5, ratio(0.2)),
            point(1.0, ratio(0.19)),
            point(2.0, ratio(0.18)),
        ];
        let knee = Drawing::new(Axis::Ram, &points).knee().expect("it bends");
        assert!((knee - 1.0 / 3.0).abs() < 1e-6, "{knee}");
        assert!(Drawing::new(Axis::Ram, &points).svg().contains(">knee</text>"));
        let straight = [0.4, 0.3, 0.2, 0.1].into_iter().zip([0.25, 0.5, 1.0, 2.0]);
        let straight: Vec<Point> = straight.map(|(miss, times)| point(times, ratio(miss))).collect();
        assert_eq!(Drawing::new(Axis::Ram, &straight).knee(), None);
    }

    #[test]
    fn a_curve_lies_in_its_frame() {
        let points = [
            point(0.5, Some((0.3, 0.32, 0.34))),
            point(1.0, Some((0.2, 0.2, 0.2))),
            point(2.0, Some((0.1, 0.15, 0.16))),
        ];
        let svg = Drawing::new(Axis::Ram, &points).svg();
        assert!(svg.contains("d=\"M0 360L500 600L1000 700\""), "{svg}");
        assert!(svg.contains("d=\"M0 320L500 600L1000 680L1000 800L500 600L0 400Z\""), "{svg}");
        assert!(svg.contains("x=\"50.0%\"") && svg.contains(">today<"), "{svg}");
        // Nothing is known, and one size alone.
        Drawing::new(Axis::Ram, &[point(1.0, None)]).svg();
        Drawing::new(Axis::Ram, &points[..1]).svg();
    }
}
