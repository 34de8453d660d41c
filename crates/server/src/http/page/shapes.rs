//! Bars and the ring of the SSD as inline SVG.

use std::f64::consts::TAU;
use std::fmt::Write as _;

use super::figure::{escape, percent};

/// A part of a bar: its class, and its share of the bar from 0 to 1.
pub(super) type Part = (&'static str, f64);

/// Returns a bar of parts behind each other, `height` pixels high. `about` says what it shows.
pub(super) fn bar(about: &str, height: u32, parts: &[Part]) -> String {
    let mut html = format!(
        "<svg class=\"bar\" role=\"img\" aria-label=\"{}\" width=\"100%\" height=\"{height}\">\
         <rect class=\"track\" width=\"100%\" height=\"{height}\"/>",
        escape(about)
    );
    let mut from = 0.0;
    for (class, share) in parts {
        let share = if share.is_finite() { share.clamp(0.0, 1.0 - from) } else { 0.0 };
        if share > 0.0 {
            let (x, width) = (100.0 * from, 100.0 * share);
            let _ = write!(
                html,
                "<rect class=\"part {class}\" x=\"{x:.2}%\" width=\"{width:.2}%\" height=\"{height}\"/>"
            );
        }
        from += share;
    }
    html.push_str("</svg>");
    html
}

/// Returns a figure above a bar that shows its share of the whole, from 0 to 1. The figure is HTML.
pub(super) fn meter(name: &str, figure: &str, share: f64) -> String {
    let drawn = bar(&format!("{name}: {}", percent(share)), 8, &[("m1", share)]);
    format!("<dl class=\"facts meter\"><div><dt>{}</dt><dd>{figure}</dd></div></dl>{drawn}", escape(name))
}

/// The ring's shades, from nothing live to all.
const SHADES: usize = 6;

/// Returns a ring that begins at its top and turns to the right: `used` of it, from 0 to 1, is divided into equal
/// arcs, each shaded by a share from 0 to 1. Two lines of text stand in its middle.
pub(super) fn ring(about: &str, used: f64, shares: &[f64], middle: [&str; 2]) -> String {
    let mut html = format!(
        "<svg class=\"ring\" role=\"img\" aria-label=\"{}\" viewBox=\"-60 -60 120 120\" width=\"132\" \
         height=\"132\"><circle class=\"track\" r=\"48\"/>",
        escape(about)
    );
    let place = |at: usize| used.clamp(0.0, 1.0) * at as f64 / shares.len().max(1) as f64;
    let mut at = 0;
    while at < shares.len() {
        let own = shade(shares[at]);
        let same = shares[at..].iter().take_while(|share| shade(**share) == own).count();
        let _ = write!(html, "<path class=\"live{own}\" d=\"{}\"/>", arc(place(at), place(at + same)));
        at += same;
    }
    let [first, second] = middle.map(escape);
    let _ = write!(
        html,
        "<text class=\"middle\" y=\"2\" text-anchor=\"middle\">{first}</text>\
         <text class=\"tick\" y=\"18\" text-anchor=\"middle\">{second}</text></svg>"
    );
    html
}

fn shade(share: f64) -> usize {
    (share.clamp(0.0, 1.0) * (SHADES - 1) as f64).round() as usize
}

/// Returns the path of an arc between two shares of the turn.
fn arc(from: f64, to: f64) -> String {
    // An arc from a point to itself is none.
    let to = to.min(from + 0.9999);
    let point = |share: f64| (48.0 * (TAU * share).sin(), -48.0 * (TAU * share).cos());
    let ((x, y), (to_x, to_y)) = (point(from), point(to));
    let is_large = u8::from(to - from > 0.5);
    format!("M{x:.1} {y:.1}A48 48 0 {is_large} 1 {to_x:.1} {to_y:.1}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_never_fuller_than_full() {
        let shown = bar("a<b", 8, &[("x", 0.25), ("y", f64::NAN), ("z", 7.0), ("w", 0.1)]);
        assert!(shown.contains("aria-label=\"a&lt;b\""));
        assert!(shown.contains("<rect class=\"part x\" x=\"0.00%\" width=\"25.00%\" height=\"8\"/>"));
        assert!(shown.contains("<rect class=\"part z\" x=\"25.00%\" width=\"75.00%\" height=\"8\"/>"));
        assert!(!shown.contains("part y") && !shown.contains("part w"));
    }

    #[test]
    fn neighbours_of_one_shade_are_one_arc() {
        let shown = ring("", 0.5, &[1.0, 1.0, 0.99, 0.0], ["a", "b"]);
        assert_eq!(shown.matches("<path").count(), 2);
        assert!(shown.contains("<path class=\"live5\" d=\"M0.0 -48.0A48 48 0 0 1 "), "{shown}");
        assert!(shown.contains("<path class=\"live0\" d=\"M"));
        assert_eq!(ring("", 0.0, &[], ["a", "b"]).matches("<path").count(), 0);
        assert!(!arc(0.0, 1.0).ends_with("A48 48 0 1 1 0.0 -48.0"), "a full turn is drawn");
    }
}
