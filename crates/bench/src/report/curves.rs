//! Latency against throughput: a line a server, with the service level, the capacity's interval and the knee.

use super::plot::{Axis, Plot, colour};
use super::tables;
use super::text::{count, latency, quantile};
use super::verdict::{estimate, slo_name};
use crate::result::{Curve, Document, Point, Run};
use crate::stats::{Measure, Series, bootstrap, median};

/// The figure drawn of a point: the quantile of the service level when it is one of those kept, else p99.
fn drawn(curves: &[Curve]) -> f64 {
    let asked = curves.iter().find_map(|curve| curve.slo).map_or(0.99, |slo| slo.quantile);
    if [0.0, 0.5, 0.99, 0.999].contains(&asked) { asked } else { 0.99 }
}

fn latency_at(point: &Point, quantile: f64) -> f64 {
    match quantile {
        q if q <= 0.0 => point.mean_ns,
        q if q <= 0.5 => point.p50_ns as f64,
        q if q <= 0.99 => point.p99_ns as f64,
        _ => point.p999_ns as f64,
    }
}

/// Settings that reached loads within this share of each other stand at one place of a line.
const TOGETHER: f64 = 0.02;

/// A place of a line: the repeats of a setting, and of others that reached nearly the same load.
struct Place<'a> {
    points: Vec<&'a Point>,
}

impl Place<'_> {
    /// The median of a figure of its points.
    fn median(&self, figure: impl Fn(&Point) -> f64) -> f64 {
        median(&self.points.iter().map(|point| figure(point)).collect::<Vec<_>>())
    }

    /// The median load.
    fn rate(&self) -> f64 {
        self.median(|point| point.rate)
    }

    /// The median load and the median latency.
    fn middle(&self, quantile: f64) -> (f64, f64) {
        (self.rate(), self.median(|point| latency_at(point, quantile)))
    }

    /// The median load, the lowest and the highest latency.
    fn range(&self, quantile: f64) -> (f64, f64, f64) {
        let all = || self.points.iter().map(|point| latency_at(point, quantile));
        (self.rate(), all().fold(f64::MAX, f64::min), all().fold(0.0, f64::max))
    }
}

/// The places of a line in the order of the loads that were reached.
fn places<'a>(points: impl Iterator<Item = &'a Point>) -> Vec<Place<'a>> {
    let mut points: Vec<&Point> = points.filter(|point| point.rate > 0.0).collect();
    points.sort_by(|a, b| a.at.total_cmp(&b.at));
    let settings = points.chunk_by(|a, b| a.at == b.at).map(|repeats| Place { points: repeats.to_vec() });
    let mut settings: Vec<Place<'_>> = settings.collect();
    settings.sort_by(|a, b| a.rate().total_cmp(&b.rate()));
    let mut places: Vec<Place<'_>> = Vec::new();
    for setting in settings {
        match places.last_mut() {
            Some(place) if setting.rate() <= place.rate() * (1.0 + TOGETHER) => {
                place.points.extend(setting.points)
            }
            _ => places.push(setting),
        }
    }
    places
}

/// The figure of all curves and its data; empty without curves.
pub fn section(document: &Document) -> String {
    let curves: Vec<&Curve> =
        document.curves.iter().filter(|c| c.points.iter().any(|p| p.rate > 0.0)).collect();
    if curves.is_empty() {
        return String::new();
    }
    let main = drawn(&document.curves);
    let all = || curves.iter().flat_map(|curve| &curve.points).filter(|point| point.rate > 0.0);
    let bounds = curves.iter().filter_map(|curve| curve.slo).map(|slo| slo.bound_ns as f64);
    let highs = all().map(|point| latency_at(point, main)).chain(bounds.clone());
    let (high, low) =
        (highs.fold(1.0, f64::max), all().map(|point| point.p50_ns as f64).fold(1e12, f64::min));
    let rate = all().map(|point| point.rate).fold(0.0, f64::max);
    let x = Axis::linear(rate * 1.04, 6, count);
    let y = Axis::log(low.min(bounds.fold(1e12, f64::min)) * 0.8, high * 1.25, latency);
    let mut plot = Plot::new(x, y, 340.0);
    let mut levels: Vec<(u64, String)> = Vec::new();
    for (at, curve) in curves.iter().enumerate() {
        draw(&mut plot, curve, &colour(at), main, &document.runs);
        if let Some(slo) = curve.slo {
            levels.push((slo.bound_ns, slo_name(curve)));
        }
    }
    levels.sort();
    levels.dedup();
    for (bound, name) in levels {
        plot.level(bound as f64, "slo");
        plot.label(0.0, bound as f64, "t slo-t", &name);
    }
    let name = quantile(main);
    let about = format!("{name} latency against answered requests a second, one line a server");
    let figure = plot.svg(&about, "answered requests a second", &format!("{name} response time"));
    let key = format!(
        "<p class=\"key\">Line and dots: {name}, in order of the rates that were reached. Shaded along the \
         line: from the lowest to the highest of repeats, and of settings whose rates differ by less than \
         {:.0} %; bars: the 95 % interval of a point alone. Thin line: p50. Grey: not certified. Upright \
         band: the capacity's 95 % interval. Diamond: power knee (rate / mean latency is highest). \
         Response time counts from the moment a request was due.</p>",
        TOGETHER * 100.0
    );
    format!("<figure>{figure}{key}{}{}</figure>", capacities(&curves), data(&curves))
}

fn draw(plot: &mut Plot, curve: &Curve, colour: &str, main: f64, runs: &[Run]) {
    if let Some(capacity) = curve.slo_capacity {
        plot.band(capacity.least, capacity.most, &format!("band {colour}"));
        plot.upright(capacity.estimate, &format!("cap {colour}"));
    }
    let all = places(curve.points.iter());
    let certified = places(curve.points.iter().filter(|point| point.certified));
    let middles = |places: &[Place<'_>], quantile| -> Vec<(f64, f64)> {
        places.iter().map(|place| place.middle(quantile)).collect()
    };
    if curve.points.iter().any(|point| !point.certified) {
        plot.line(&middles(&all, main), "line off");
    }
    if main > 0.5 {
        plot.line(&middles(&certified, 0.5), &format!("thin {colour}"));
    }
    let ranges: Vec<_> = certified.iter().map(|place| place.range(main)).collect();
    plot.ribbon(&ranges, &format!("ribbon {colour}"));
    let line = middles(&certified, main);
    plot.line(&line, &format!("line {colour}"));
    for place in &all {
        let is_alone = place.points.len() == 1;
        place.points.iter().for_each(|point| mark(plot, point, colour, main, runs, is_alone));
    }
    if let Some(knee) = curve.knee {
        let before = line.iter().rfind(|point| point.0 <= knee.estimate).or(line.first());
        let ns = before.map_or(plot.y.low, |point| point.1);
        let title = format!("{}: power knee at {}/s", curve.label, count(knee.estimate));
        plot.note((knee.estimate, ns), (0.0, 5.5), "middle", &format!("mark {colour}"), "\u{25c6}");
        plot.dot(knee.estimate, ns, 8.0, "hit", &title);
    }
    // The name stands at the end of its line: the highest rate is farthest from the other lines.
    let uncertified = middles(&all, main);
    match (line.last(), uncertified.last()) {
        (Some(last), _) => plot.label(last.0, last.1, &format!("name {colour}"), &curve.label),
        (None, Some(last)) => plot.label(last.0, last.1, "name off", &curve.label),
        (None, None) => {}
    }
}

/// Marks one point: grey where it is not certified, and with the interval within its run where no repeat stands there
/// too.
fn mark(plot: &mut Plot, point: &Point, colour: &str, main: f64, runs: &[Run], is_alone: bool) {
    let ns = latency_at(point, main);
    let mut title = format!("{}: {}/s, {} {}", point.run, count(point.rate), quantile(main), latency(ns));
    if !point.certified {
        return plot.dot(point.rate, ns, 3.5, "ring off", &format!("{title}, not certified"));
    }
    let measure = if main > 0.0 { Measure::Quantile(main) } else { Measure::Mean };
    let run = runs.iter().find(|run| run.label == point.run).filter(|_| is_alone);
    if let Some(found) = run.and_then(|run| bootstrap::interval(&Series::of_run(run), measure, 1)) {
        plot.whisker(point.rate, found.least, found.most, &format!("bar {colour}"));
        title.push_str(&format!(", 95 %: {} to {}", latency(found.least), latency(found.most)));
    }
    plot.dot(point.rate, ns, 3.5, &format!("dot {colour}"), &title);
}

fn capacities(curves: &[&Curve]) -> String {
    let rows: Vec<Vec<String>> = curves
        .iter()
        .map(|curve| {
            let cell = |found: Option<crate::result::Estimate>| match found.map(estimate) {
                Some((figure, interval)) => [figure, interval],
                None => ["-".to_string(), "-".to_string()],
            };
            let mut row = vec![curve.label.clone(), slo_name(curve)];
            row.extend(cell(curve.slo_capacity));
            row.extend(cell(curve.knee));
            row.extend(cell(curve.max_rate));
            row
        })
        .collect();
    let columns =
        ["server", "service level", "capacity", "95 %", "power knee", "95 %", "highest rate", "95 %"];
    tables::table(&columns, &rows)
}

fn data(curves: &[&Curve]) -> String {
    let mut rows = Vec::new();
    for curve in curves {
        for point in &curve.points {
            rows.push(vec![
                curve.label.clone(),
                count(point.at),
                format!("{:.0}", point.rate),
                latency(point.mean_ns),
                latency(point.p50_ns as f64),
                latency(point.p99_ns as f64),
                latency(point.p999_ns as f64),
                point.server_cpu_us.map_or("-".to_string(), |us| latency(us * 1000.0)),
                if point.certified { "yes" } else { "no" }.to_string(),
                point.run.clone(),
            ]);
        }
    }
    let varied = curves.first().map_or("set", |curve| curve.varied.as_str());
    let columns =
        ["server", varied, "rate/s", "mean", "p50", "p99", "p99.9", "server cpu/op", "certified", "run"];
    tables::data(&columns, &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(at: f64, rate: f64, p99_ns: u64) -> Point {
        Point { at, rate, p99_ns, certified: true, ..Point::default() }
    }

    #[test]
    fn a_line_follows_the_rates_that_were_reached() {
        // Offered 40 and 50 K/s, an overloaded server reached less than with 30.
        let points = [point(40e3, 28e3, 9), point(20e3, 20e3, 1), point(30e3, 30e3, 2), point(50e3, 25e3, 8)];
        let line: Vec<f64> = places(points.iter()).iter().map(|place| place.middle(0.99).0).collect();
        assert_eq!(line, [20e3, 25e3, 28e3, 30e3]);
    }

    #[test]
    fn repeats_stand_at_one_place_from_the_lowest_to_the_highest() {
        let points =
            [point(1.0, 1000.0, 5), point(1.0, 1010.0, 7), point(1.0, 1005.0, 6), point(2.0, 2000.0, 9)];
        let places = places(points.iter());
        let ranges: Vec<_> = places.iter().map(|place| place.range(0.99)).collect();
        assert_eq!(ranges, [(1005.0, 5.0, 7.0), (2000.0, 9.0, 9.0)]);
    }
}
