//! A plot as inline SVG that keeps its letters at every width: lines live in a stretched inner frame, letters
//! and marks are placed by percentages across and pixels down.

use super::text::escape;
use std::fmt::Write as _;

/// Units of the stretched frame on each side.
const UNITS: f64 = 10_000.0;
/// Least distance between two labels, in pixels.
const LABEL_PIXELS: f64 = 14.0;

/// One axis: its ends, and whether it is logarithmic.
#[derive(Clone, Debug)]
pub struct Axis {
    pub low: f64,
    pub high: f64,
    pub log: bool,
    /// Where to write what.
    pub ticks: Vec<(f64, String)>,
}

impl Axis {
    /// From 0 to a little more than the highest, with round ticks.
    pub fn linear(highest: f64, ticks_max: usize, format: impl Fn(f64) -> String) -> Self {
        let highest = if highest > 0.0 && highest.is_finite() { highest } else { 1.0 };
        let rough = highest / ticks_max as f64;
        let power = 10f64.powf(rough.log10().floor());
        let round = [0.5, 1.0, 2.0, 5.0, 10.0].map(|m| m * power);
        // One tick besides the origin at least: a scale without a figure is none.
        let fits = |step: &f64| *step >= rough * 0.999 && *step <= highest;
        let step = round.into_iter().find(fits).unwrap_or(power);
        let last = (highest / step * 1.0001).floor() as usize;
        let ticks = (0..=last).map(|at| (at as f64 * step, format(at as f64 * step))).collect();
        Self { low: 0.0, high: highest, log: false, ticks }
    }

    /// As [`Axis::linear`], with ticks that are round in binary units.
    pub fn binary(highest: f64, ticks_max: usize, format: impl Fn(f64) -> String) -> Self {
        let unit = [1024f64.powi(3), 1024f64.powi(2), 1024.0]
            .into_iter()
            .find(|unit| highest >= *unit)
            .unwrap_or(1.0);
        let mut axis = Self::linear(highest / unit, ticks_max, |value| format(value * unit));
        axis.high *= unit;
        axis.ticks.iter_mut().for_each(|tick| tick.0 *= unit);
        axis
    }

    /// Logarithmic around `lowest` and `highest`; ticks at 1, 2, 5 while there are few decades, else at the
    /// decades.
    pub fn log(lowest: f64, highest: f64, format: impl Fn(f64) -> String) -> Self {
        let lowest = if lowest > 0.0 && lowest.is_finite() { lowest } else { 1.0 };
        let highest = if highest > lowest { highest.min(lowest * 1e15) } else { lowest * 10.0 };
        let decades = (highest / lowest).log10();
        let steps: &[f64] = match decades {
            d if d < 1.6 => &[1.0, 2.0, 5.0],
            d if d < 3.0 => &[1.0, 3.0],
            _ => &[1.0],
        };
        let (first, last) = (lowest.log10().floor() as i32, highest.log10().ceil() as i32);
        let all = (first..=last).flat_map(|power| steps.iter().map(move |s| s * 10f64.powi(power)));
        let inside = all.filter(|at| *at >= lowest * 0.999 && *at <= highest * 1.001);
        Self { low: lowest, high: highest, log: true, ticks: inside.map(|at| (at, format(at))).collect() }
    }

    /// Where a value lies, 0 to 1.
    pub fn share(&self, value: f64) -> f64 {
        let share = match self.log {
            true => (value.max(f64::MIN_POSITIVE) / self.low).ln() / (self.high / self.low).ln(),
            false => (value - self.low) / (self.high - self.low),
        };
        if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
    }
}

/// A plot under construction.
pub struct Plot {
    pub x: Axis,
    pub y: Axis,
    height: f64,
    under: String,
    stretched: String,
    over: String,
    labels: Vec<(f64, f64, String, String)>,
    keys: String,
}

impl Plot {
    /// An empty plot this many pixels high.
    pub fn new(x: Axis, y: Axis, height: f64) -> Self {
        let (under, stretched, over, keys) = Default::default();
        Self { x, y, height, under, stretched, over, labels: Vec::new(), keys }
    }

    fn across(&self, x: f64) -> f64 {
        (self.x.share(x) * 10_000.0).round() / 100.0
    }

    fn down(&self, y: f64) -> f64 {
        ((1.0 - self.y.share(y)) * self.height * 10.0).round() / 10.0
    }

    fn path(&self, points: &[(f64, f64)]) -> String {
        let mut path = String::new();
        for (at, (x, y)) in points.iter().enumerate() {
            let (x, y) = (self.x.share(*x) * UNITS, (1.0 - self.y.share(*y)) * UNITS);
            let _ = write!(path, "{}{x:.0} {y:.0}", if at == 0 { "M" } else { "L" });
        }
        path
    }

    /// A line through points, in the order given.
    pub fn line(&mut self, points: &[(f64, f64)], class: &str) {
        let path = self.path(points);
        let _ = write!(self.stretched, "<path class=\"{class}\" d=\"{path}\"/>");
    }

    /// A surface between points and the bottom.
    pub fn area(&mut self, points: &[(f64, f64)], class: &str) {
        if let (Some(first), Some(last)) = (points.first(), points.last()) {
            let (from, to) = (self.x.share(first.0) * UNITS, self.x.share(last.0) * UNITS);
            let path = self.path(points);
            let _ = write!(
                self.stretched,
                "<path class=\"{class}\" d=\"{path}L{to:.0} {UNITS} L{from:.0} {UNITS}z\"/>"
            );
        }
    }

    /// A surface between the lowest and the highest value at each `x`: `(x, low, high)`.
    pub fn ribbon(&mut self, ranges: &[(f64, f64, f64)], class: &str) {
        if ranges.iter().all(|(_, low, high)| low == high) {
            return;
        }
        let upper = ranges.iter().map(|(x, _, high)| (*x, *high));
        let lower = ranges.iter().rev().map(|(x, low, _)| (*x, *low));
        let path = self.path(&upper.chain(lower).collect::<Vec<_>>());
        let _ = write!(self.stretched, "<path class=\"{class}\" d=\"{path}z\"/>");
    }

    /// Raw content of the stretched frame, whose sides are `width` and `height` units.
    pub fn raw(&mut self, width: usize, height: usize, content: &str) {
        let _ = write!(
            self.stretched,
            "<svg viewBox=\"0 0 {width} {height}\" preserveAspectRatio=\"none\" width=\"{UNITS}\" \
             height=\"{UNITS}\">{content}</svg>"
        );
    }

    /// A vertical band from `from` to `to`.
    pub fn band(&mut self, from: f64, to: f64, class: &str) {
        let (from, to) = (self.across(from), self.across(to));
        let width = (to - from).max(0.15);
        let height = self.height;
        let _ = write!(
            self.under,
            "<rect class=\"{class}\" x=\"{from}%\" y=\"0\" width=\"{width:.2}%\" height=\"{height}\"/>"
        );
    }

    /// A vertical line over the whole height.
    pub fn upright(&mut self, x: f64, class: &str) {
        let (x, height) = (self.across(x), self.height);
        let _ =
            write!(self.under, "<line class=\"{class}\" x1=\"{x}%\" x2=\"{x}%\" y1=\"0\" y2=\"{height}\"/>");
    }

    /// A horizontal line over the whole width.
    pub fn level(&mut self, y: f64, class: &str) {
        let y = self.down(y);
        let _ = write!(self.under, "<line class=\"{class}\" x1=\"0\" x2=\"100%\" y1=\"{y}\" y2=\"{y}\"/>");
    }

    /// A bar from `low` to `high` at `x`.
    pub fn whisker(&mut self, x: f64, low: f64, high: f64, class: &str) {
        let (x, low, high) = (self.across(x), self.down(low), self.down(high));
        let _ =
            write!(self.over, "<line class=\"{class}\" x1=\"{x}%\" x2=\"{x}%\" y1=\"{low}\" y2=\"{high}\"/>");
    }

    /// A mark with a text for the pointer.
    pub fn dot(&mut self, x: f64, y: f64, radius: f64, class: &str, title: &str) {
        let (x, y) = (self.across(x), self.down(y));
        let title =
            if title.is_empty() { String::new() } else { format!("<title>{}</title>", escape(title)) };
        let _ = write!(
            self.over,
            "<circle class=\"{class}\" cx=\"{x}%\" cy=\"{y}\" r=\"{radius}\">{title}</circle>"
        );
    }

    /// Letters at a point, moved by pixels; `anchor` is `start`, `middle` or `end`.
    pub fn note(&mut self, at: (f64, f64), moved: (f64, f64), anchor: &str, class: &str, text: &str) {
        let (x, y) = (self.across(at.0), self.down(at.1));
        let _ = write!(
            self.over,
            "<text class=\"{class}\" x=\"{x}%\" y=\"{:.1}\" dx=\"{}\" text-anchor=\"{anchor}\">{}</text>",
            y + moved.1,
            moved.0,
            escape(text)
        );
    }

    /// A line's name beside its end; names that would lie on each other are moved apart.
    pub fn label(&mut self, x: f64, y: f64, class: &str, text: &str) {
        self.labels.push((self.across(x), self.down(y), class.to_string(), escape(text)));
    }

    /// A line's name above the plot, in its colour: where the plot is too low for names inside.
    pub fn key(&mut self, class: &str, text: &str) {
        let _ = write!(self.keys, " <b class=\"{class}\">{}</b>", escape(text));
    }

    fn place_labels(&mut self) {
        // From the lowest up: a name gives way upwards, off its line, as long as there is room.
        self.labels.sort_by(|a, b| b.1.total_cmp(&a.1));
        let mut most = self.height - 6.0;
        let least = |above: usize| LABEL_PIXELS - 4.0 + above as f64 * LABEL_PIXELS;
        for (at, (x, y, class, text)) in self.labels.iter().enumerate() {
            let y = (y - 8.0).max(least(self.labels.len() - 1 - at)).min(most);
            most = y - LABEL_PIXELS;
            // The gutter is narrower than a name: near the right edge it ends at the mark, else it begins
            // there.
            let (anchor, dx) = if *x > 55.0 { ("end", -6) } else { ("start", 6) };
            let _ = write!(
                self.over,
                "<text class=\"{class}\" x=\"{x}%\" y=\"{y:.1}\" dx=\"{dx}\" \
                 text-anchor=\"{anchor}\">{text}</text>"
            );
        }
    }

    /// The figure's SVG. `about` describes it in words. Axis titles stand at the ends of their axes.
    pub fn svg(mut self, about: &str, x_title: &str, y_title: &str) -> String {
        self.place_labels();
        let height = self.height;
        let mut grid = String::new();
        for (value, text) in &self.y.ticks {
            let y = self.down(*value);
            let _ = write!(
                grid,
                "<line class=\"g\" x1=\"0\" x2=\"100%\" y1=\"{y}\" y2=\"{y}\"/>\
                 <text class=\"t\" x=\"0\" dx=\"-7\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                y + 4.0,
                escape(text)
            );
        }
        let crowded = self.x.ticks.len() > 6;
        for (at, (value, text)) in self.x.ticks.iter().enumerate() {
            // Every second one can go where the page is narrow.
            let class = if crowded && at % 2 == 1 { "t odd" } else { "t" };
            let x = self.across(*value);
            let anchor = if x > 97.0 { "end" } else { "middle" };
            let _ = write!(
                grid,
                "<line class=\"g\" x1=\"{x}%\" x2=\"{x}%\" y1=\"{height}\" y2=\"{}\"/>\
                 <text class=\"{class}\" x=\"{x}%\" y=\"{}\" text-anchor=\"{anchor}\">{}</text>",
                height + 4.0,
                height + 17.0,
                escape(text)
            );
        }
        let keys = |class: &str| if class == "yt" { self.keys.as_str() } else { "" };
        let titled = |class: &str, text: &str| match text {
            "" => String::new(),
            text => format!("<span class=\"{class}\">{}{}</span>", escape(text), keys(class)),
        };
        let bottom = if self.x.ticks.is_empty() { "" } else { " ticked" };
        format!(
            "<div class=\"plot{bottom}\">{}<svg role=\"img\" aria-label=\"{}\" width=\"100%\" \
             height=\"{height}\">\
             {grid}{}<svg viewBox=\"0 0 {UNITS} {UNITS}\" preserveAspectRatio=\"none\" width=\"100%\" \
             height=\"100%\">{}</svg>{}<line class=\"ax\" x1=\"0\" x2=\"100%\" y1=\"{height}\" \
              y2=\"{height}\"/>\
             </svg>{}</div>",
            titled("yt", y_title),
            escape(about),
            self.under,
            self.stretched,
            self.over,
            titled("xt", x_title),
        )
    }
}

/// The class of the colour of the series at an index; they repeat after eight.
pub fn colour(at: usize) -> String {
    format!("c{}", at % 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        let axis = Axis::linear(87_000.0, 6, |v| format!("{v}"));
        let at: Vec<f64> = axis.ticks.iter().map(|tick| tick.0).collect();
        assert_eq!(at, [0.0, 20_000.0, 40_000.0, 60_000.0, 80_000.0]);
        let axis = Axis::log(80_000.0, 9e6, |v| format!("{v}"));
        let at: Vec<f64> = axis.ticks.iter().map(|tick| tick.0.round()).collect();
        assert_eq!(at, [1e5, 3e5, 1e6, 3e6]);
        assert!(Axis::linear(0.0, 5, |v| format!("{v}")).ticks.len() >= 2);
        assert!(Axis::log(f64::NAN, f64::INFINITY, |v| format!("{v}")).ticks.len() < 400);
    }

    #[test]
    fn shares_stay_within_the_frame() {
        let axis = Axis::log(1.0, 100.0, |v| format!("{v}"));
        assert_eq!([0.0, 1.0, 10.0, 1e9].map(|v| (axis.share(v) * 100.0).round()), [0.0, 0.0, 50.0, 100.0]);
        assert_eq!(axis.share(f64::NAN), 0.0);
    }
}
