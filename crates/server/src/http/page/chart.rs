//! A chart over the last minutes as inline SVG, with its key and its table. Lines lie in a frame that is stretched to
//! the width of the page; letters are placed by percentages, so they keep their shape.

use std::fmt::Write as _;

use super::figure::{data, escape};
use super::table::table;
use crate::http::history::{INTERVAL, POINTS_MAX};

/// Pixels of the frame for lines, above it and below it.
const FRAME: f64 = 112.0;
const ABOVE: f64 = 6.0;
const BELOW: f64 = 20.0;
/// Units of the stretched frame from its top to its bottom.
const UNITS: f64 = 1000.0;
/// Points that a row of the table stands for: half a minute.
const ROW_POINTS: usize = 15;
/// Points of a minute. A chart is as many minutes wide as there are points for.
const MINUTE_POINTS: usize = 30;

/// One figure over time.
pub(super) struct Series {
    pub name: &'static str,
    /// Its colour, and for a line its dashes.
    pub class: &'static str,
    /// By the interval, oldest first, not a number where there is none.
    pub values: Vec<f64>,
}

/// How values become places.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Scale {
    /// Lines on a logarithmic axis.
    Log,
    /// Lines from 0.
    Lines,
    /// Surfaces on each other from 0.
    Stacked,
    /// Surfaces on each other from 0 to 1.
    Shares,
}

/// A chart.
pub(super) struct Chart {
    /// What it shows, for those who do not see it.
    pub about: &'static str,
    pub scale: Scale,
    /// The base of its units: 1000, or 1024 for bytes.
    pub base: f64,
    /// Shows a value with its unit.
    pub show: fn(f64) -> String,
    /// From the bottom up.
    pub series: Vec<Series>,
}

/// The ends of the vertical axis, and where it has lines.
struct Axis {
    low: f64,
    high: f64,
    ticks: Vec<f64>,
}

/// Returns how many points wide a chart of `points` is.
fn width(points: usize) -> usize {
    points.div_ceil(MINUTE_POINTS).clamp(1, POINTS_MAX / MINUTE_POINTS) * MINUTE_POINTS
}

impl Chart {
    /// Returns the key with the latest value of each series, and the drawing.
    pub(super) fn html(&self) -> String {
        let mut html = String::from("<dl class=\"key\">");
        let mut said = String::new();
        for series in &self.series {
            let now = series.values.last().copied().unwrap_or(f64::NAN);
            let shown = (self.show)(now);
            let form = if self.is_stacked() { "area" } else { "line" };
            let value = data(now, &shown);
            let (class, name) = (series.class, escape(series.name));
            let _ = write!(html, "<div class=\"{class} {form}\"><dt>{name}</dt><dd>{value}</dd></div>");
            let _ = write!(said, "{}{name} {}", if said.is_empty() { "" } else { ", " }, escape(&shown));
        }
        let _ = write!(
            html,
            "</dl><svg class=\"chart\" role=\"img\" aria-label=\"{}, over the last minutes. Now: {said}.\" \
             width=\"100%\" height=\"{}\">",
            escape(self.about),
            ABOVE + FRAME + BELOW,
        );
        self.draw(&mut html);
        html.push_str("</svg>");
        html
    }

    /// Returns the chart as a table of half minutes, latest first.
    pub(super) fn table(&self) -> String {
        let points = self.series.first().map_or(0, |series| series.values.len());
        let row_seconds = ROW_POINTS as u64 * INTERVAL.as_secs();
        let time = |rows: usize| {
            let seconds = rows as u64 * row_seconds;
            format!("{}:{:02}", seconds / 60, seconds % 60)
        };
        let row = |row: usize| {
            let (to, from) = (points - row * ROW_POINTS, points.saturating_sub((row + 1) * ROW_POINTS));
            let value = |series: &Series| escape(&(self.show)(self.fold(&series.values[from..to])));
            (format!("{}\u{2013}{}", time(row), time(row + 1)), self.series.iter().map(value).collect())
        };
        let rows = (0..points.div_ceil(ROW_POINTS)).map(row).collect::<Vec<_>>();
        let names: Vec<&str> = self.series.iter().map(|series| series.name).collect();
        table(&format!("{}, by half minutes", self.about), "Minutes ago", &names, &rows)
    }

    /// Returns the mean of several values; of times the largest, since a mean of quantiles is none.
    fn fold(&self, values: &[f64]) -> f64 {
        let known = values.iter().copied().filter(|value| value.is_finite());
        match self.scale {
            Scale::Log => known.fold(f64::NAN, f64::max),
            _ => known.clone().sum::<f64>() / known.count() as f64,
        }
    }

    fn is_stacked(&self) -> bool {
        matches!(self.scale, Scale::Stacked | Scale::Shares)
    }

    fn draw(&self, html: &mut String) {
        let layers = self.layers();
        let width = width(layers.first().map_or(0, Vec::len));
        let axis = self.axis(&layers);
        let down = |value: f64| ABOVE + FRAME * (1.0 - axis.share(value));
        for y in axis.ticks.iter().map(|tick| down(*tick)) {
            let _ = write!(html, "<line class=\"grid\" x2=\"100%\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>");
        }
        let _ = write!(
            html,
            "<svg viewBox=\"0 0 {} {UNITS}\" preserveAspectRatio=\"none\" y=\"{ABOVE}\" width=\"100%\" \
             height=\"{FRAME}\">",
            width - 1
        );
        self.draw_layers(html, &layers, &axis);
        html.push_str("</svg>");
        for tick in &axis.ticks {
            let shown = (self.show)(*tick).replace(".0\u{a0}%", "\u{a0}%");
            let _ = write!(
                html,
                "<text class=\"tick\" y=\"{:.1}\">{}</text>",
                down(*tick) + 12.0,
                escape(&shown)
            );
        }
        let (floor, foot) = (ABOVE + FRAME, ABOVE + FRAME + 15.0);
        let _ = write!(
            html,
            "<line class=\"floor\" x2=\"100%\" y1=\"{floor}\" y2=\"{floor}\"/>\
             <text class=\"tick\" y=\"{foot}\">{}\u{a0}min ago</text>\
             <text class=\"tick\" x=\"100%\" y=\"{foot}\" text-anchor=\"end\">now</text>",
            width / MINUTE_POINTS
        );
    }

    /// Draws surfaces from the bottom up, then lines from the top down: of lines at the same place, the lowest
    /// surface's is seen.
    fn draw_layers(&self, html: &mut String, layers: &[Vec<f64>], axis: &Axis) {
        if self.is_stacked() {
            for (at, (series, upper)) in self.series.iter().zip(layers).enumerate() {
                let lower = at.checked_sub(1).map(|below| layers[below].as_slice());
                let path = surface(lower, upper, axis);
                let _ = write!(html, "<path class=\"area {}\" d=\"{path}\"/>", series.class);
            }
        }
        let form = if self.is_stacked() { "line" } else { "line dashes" };
        for (series, layer) in self.series.iter().zip(layers).rev() {
            let path = line(layer, axis);
            let _ = write!(html, "<path class=\"{form} {}\" d=\"{path}\"/>", series.class);
        }
    }

    /// Returns the height of each series, with those below it where they are stacked.
    fn layers(&self) -> Vec<Vec<f64>> {
        let mut layers: Vec<Vec<f64>> = Vec::new();
        for series in &self.series {
            let below = layers.last().filter(|_| self.is_stacked());
            let sum = |(at, value): (usize, &f64)| value + below.map_or(0.0, |below| below[at]);
            layers.push(series.values.iter().enumerate().map(sum).collect());
        }
        layers
    }

    fn axis(&self, layers: &[Vec<f64>]) -> Axis {
        let known = || layers.iter().flatten().copied().filter(|value| value.is_finite());
        let highest = known().fold(0.0, f64::max);
        match self.scale {
            Scale::Shares => Axis { low: 0.0, high: 1.0, ticks: vec![0.5, 1.0] },
            Scale::Log => Axis::decades(known().fold(f64::INFINITY, f64::min), highest),
            Scale::Lines | Scale::Stacked => Axis::from_zero(highest, self.base),
        }
    }
}

impl Axis {
    /// Returns an axis from 0 to a round value in units of `base`.
    fn from_zero(highest: f64, base: f64) -> Axis {
        let unit = base.powf(highest.max(1.0).log(base).floor());
        let in_units = highest / unit;
        let power = 10_f64.powf(in_units.max(1e-3).log10().floor());
        // A thousand of them is not round where the next unit has 1024.
        let round = [1.0, 2.0, 4.0, 6.0, 8.0, 10.0].map(|first| first * power);
        let round = round.map(|round| if round == 1000.0 { base } else { round });
        let high = round.into_iter().find(|round| *round >= in_units && highest > 0.0).unwrap_or(1.0) * unit;
        // What is 0 all the time has no scale.
        let ticks = if highest > 0.0 { vec![high / 2.0, high] } else { vec![] };
        Axis { low: 0.0, high, ticks }
    }

    /// Returns an axis over whole powers of ten.
    fn decades(lowest: f64, highest: f64) -> Axis {
        if !lowest.is_finite() {
            return Axis { low: 1.0, high: 10.0, ticks: vec![] };
        }
        let lowest = lowest.max(1.0);
        let first = lowest.log10().floor();
        let last = highest.max(lowest).log10().ceil().max(first + 2.0);
        let step = if last - first > 4.0 { 2 } else { 1 };
        let ticks = (first as i32 + 1..=last as i32).rev().step_by(step);
        Axis {
            low: 10_f64.powf(first),
            high: 10_f64.powf(last),
            ticks: ticks.map(|p| 10_f64.powi(p)).collect(),
        }
    }

    /// Returns the place of a value, from 0 to 1.
    fn share(&self, value: f64) -> f64 {
        let share = match self.low {
            0.0 => value / self.high,
            low => (value.max(low) / low).ln() / (self.high / low).ln(),
        };
        share.clamp(0.0, 1.0)
    }

    /// Returns the place of a value in units of the stretched frame, from its top.
    fn down(&self, value: f64) -> f64 {
        (UNITS * (1.0 - self.share(value))).round()
    }
}

/// Returns the runs of values that are numbers, as pairs of their first and the one after their last.
fn runs(values: &[f64]) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for at in (0..values.len()).filter(|&at| values[at].is_finite()) {
        match runs.last_mut() {
            Some((_, to)) if *to == at => *to += 1,
            _ => runs.push((at, at + 1)),
        }
    }
    runs
}

/// Returns a path along the values. The latest one is at the right end.
fn line(values: &[f64], axis: &Axis) -> String {
    let first = width(values.len()) - values.len();
    let mut path = String::new();
    for (from, to) in runs(values) {
        for (at, value) in values.iter().enumerate().take(to).skip(from) {
            let _ =
                write!(path, "{}{} {}", if at == from { "M" } else { " " }, first + at, axis.down(*value));
        }
        if to - from == 1 {
            // A point is seen as a line that goes nowhere.
            path.push_str("h0");
        }
    }
    path
}

/// Returns a path around the surface between two layers, or between one and the bottom.
fn surface(lower: Option<&[f64]>, upper: &[f64], axis: &Axis) -> String {
    let first = width(upper.len()) - upper.len();
    let mut path = String::new();
    for (from, to) in runs(upper) {
        for (at, value) in upper.iter().enumerate().take(to).skip(from) {
            let _ =
                write!(path, "{}{} {}", if at == from { "M" } else { " " }, first + at, axis.down(*value));
        }
        match lower {
            None => {
                let _ = write!(path, "V{UNITS}H{}z", first + from);
            }
            Some(lower) => {
                for at in (from..to).rev() {
                    let _ = write!(path, " {} {}", first + at, axis.down(lower[at]));
                }
                path.push('z');
            }
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::super::figure::short;
    use super::*;

    fn chart(scale: Scale, values: &[&[f64]]) -> Chart {
        let series =
            values.iter().map(|values| Series { name: "a<b", class: "ram", values: values.to_vec() });
        Chart { about: "Things", scale, base: 1000.0, show: short, series: series.collect() }
    }

    #[test]
    fn the_latest_value_is_at_the_right_end_and_gaps_stay_open() {
        let axis = Axis { low: 0.0, high: 10.0, ticks: vec![] };
        assert_eq!(line(&[0.0, 10.0, f64::NAN, 5.0], &axis), "M26 1000 27 0M29 500h0");
        assert_eq!(surface(None, &[5.0, 10.0], &axis), "M28 500 29 0V1000H28z");
        assert_eq!(surface(Some(&[0.0, 5.0]), &[5.0, 10.0], &axis), "M28 500 29 0 29 500 28 1000z");
        assert_eq!(line(&[], &axis), "");
        assert_eq!([0, 30, 31, 150].map(width), [30, 30, 60, 150]);
    }

    #[test]
    fn axes_end_at_round_values() {
        let high = |highest, base| Axis::from_zero(highest, base).high;
        let highs = [0.0, 0.3, 1.0, 87.0, 430_000.0].map(|highest| high(highest, 1000.0));
        assert_eq!(highs.map(|high| (high * 1e3).round() / 1e3), [1.0, 0.4, 1.0, 100.0, 600_000.0]);
        assert_eq!(high(3e6, 1024.0), 4.0 * 1024.0 * 1024.0);
        assert_eq!(high(900.0 * 1024.0, 1024.0), 1024.0 * 1024.0);
        let axis = Axis::decades(2.0, 512.0);
        assert_eq!((axis.low, axis.high), (1.0, 1000.0));
        assert_eq!(axis.ticks, [1000.0, 100.0, 10.0]);
        assert!(Axis::decades(f64::INFINITY, 0.0).ticks.is_empty(), "nothing was timed");
    }

    #[test]
    fn stacked_values_lie_on_each_other() {
        let stacked = chart(Scale::Stacked, &[&[1.0, 2.0], &[3.0, 4.0]]);
        assert_eq!(stacked.layers(), [[1.0, 2.0], [4.0, 6.0]]);
        assert_eq!(chart(Scale::Lines, &[&[1.0], &[3.0]]).layers(), [[1.0], [3.0]]);
    }

    #[test]
    fn the_table_has_a_row_for_each_half_minute_with_means_or_largest_times() {
        let values: Vec<f64> = (0..20).map(f64::from).collect();
        let table = chart(Scale::Lines, &[&values]).table();
        assert!(table.contains("0:00\u{2013}0:30</th><td>12</td>"), "{table}");
        assert!(
            table.contains("0:30\u{2013}1:00</th><td>2</td>") && !table.contains("1:00\u{2013}1:30"),
            "{table}"
        );
        let table = chart(Scale::Log, &[&values]).table();
        assert!(table.contains("<td>19</td>") && table.contains("<td>4</td>"), "{table}");
        assert!(chart(Scale::Log, &[&[f64::NAN]]).table().contains("<td>\u{2013}</td>"));
        assert!(table.contains("a&lt;b"));
    }
}
