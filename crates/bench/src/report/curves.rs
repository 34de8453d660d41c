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

/// The points of each setting put together: (median rate, median latency).
fn medians(curve: &Curve, quantile: f64) -> Vec<(f64, f64)> {
    let mut points: Vec<&Point> = curve.points.iter().filter(|point| point.rate > 0.0).collect();
    points.sort_by(|a, b| a.at.total_cmp(&b.at));
    let groups = points.chunk_by(|a, b| a.at == b.at);
    let of = |group: &[&Point], figure: &dyn Fn(&Point) -> f64| {
        median(&group.iter().map(|point| figure(point)).collect::<Vec<_>>())
    };
    groups.map(|group| (of(group, &|p| p.rate), of(group, &|p| latency_at(p, quantile)))).collect()
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
        plot.note((0.0, bound as f64), (6.0, -6.0), "start", "t slo-t", &name);
    }
    let name = quantile(main);
    let about = format!("{name} latency against answered requests a second, one line a server");
    let figure = plot.svg(&about, "answered requests a second", &format!("{name} response time"));
    let key = format!(
        "<p class=\"key\">Line and dots: {name}, bars: its 95 % interval within the run. Thin line: p50. \
         Ring: the \
         generator was not trusted there. Shaded: the capacity's 95 % interval. Diamond: power knee (rate \
          / mean \
         latency is highest). Response time counts from the moment a request was due.</p>"
    );
    format!("<figure>{figure}{key}{}{}</figure>", capacities(&curves), data(&curves))
}

fn draw(plot: &mut Plot, curve: &Curve, colour: &str, main: f64, runs: &[Run]) {
    if let Some(capacity) = curve.slo_capacity {
        plot.band(capacity.least, capacity.most, &format!("band {colour}"));
        plot.upright(capacity.estimate, &format!("cap {colour}"));
    }
    if main > 0.5 {
        plot.line(&medians(curve, 0.5), &format!("thin {colour}"));
    }
    let line = medians(curve, main);
    plot.line(&line, &format!("line {colour}"));
    let measure = if main > 0.0 { Measure::Quantile(main) } else { Measure::Mean };
    for point in curve.points.iter().filter(|point| point.rate > 0.0) {
        let run = runs.iter().find(|run| run.label == point.run);
        let interval = run.and_then(|run| bootstrap::interval(&Series::of_run(run), measure, 1));
        let ns = latency_at(point, main);
        let mut title = format!("{}: {}/s, {} {}", point.run, count(point.rate), quantile(main), latency(ns));
        if let Some(found) = interval {
            plot.whisker(point.rate, found.least, found.most, &format!("bar {colour}"));
            title.push_str(&format!(", 95 %: {} to {}", latency(found.least), latency(found.most)));
        }
        let class = if point.certified { "dot" } else { "ring" };
        plot.dot(point.rate, ns, 3.5, &format!("{class} {colour}"), &title);
    }
    if let Some(knee) = curve.knee {
        let before = line.iter().rfind(|point| point.0 <= knee.estimate).or(line.first());
        let ns = before.map_or(plot.y.low, |point| point.1);
        let title = format!("{}: power knee at {}/s", curve.label, count(knee.estimate));
        plot.note((knee.estimate, ns), (0.0, 5.5), "middle", &format!("mark {colour}"), "\u{25c6}");
        plot.dot(knee.estimate, ns, 8.0, "hit", &title);
    }
    // The name stands at the end of its line: the highest rate is farthest from the other lines.
    if let Some(last) = line.last() {
        plot.label(last.0, last.1, &format!("name {colour}"), &curve.label);
    }
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
