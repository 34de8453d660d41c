//! Checks of hit ratios: the share of written keys that should be found, and a workload that changes with the
//! load.

use super::check;
use crate::result::{Check, Verdict};
use crate::stats::rank::spearman;

/// How far a hit ratio may be from its model, as a difference.
const MODEL_DIFFERENCE: f64 = 0.05;
/// A fall of the hit ratio over a sweep that is more than chance.
const FALL: f64 = 0.05;

/// The hit ratio over a run that begins empty, when every connection draws the same stream of `keys` uniform
/// keys: keys that one connection writes, the others write again. `sets` is how many each connection wrote.
///
/// The share written after `s` sets is 1 - e^(-s / keys); over the run its mean is 1 - (1 - e^-x) / x with
/// x = sets / keys.
pub fn shared_stream(sets: f64, keys: f64) -> f64 {
    let x = sets / keys;
    if x <= 0.0 { 0.0 } else { 1.0 - (1.0 - (-x).exp()) / x }
}

/// The same when every connection draws a stream of its own: all of their sets count.
pub fn own_streams(sets: f64, connections: f64, keys: f64) -> f64 {
    shared_stream(sets * connections, keys)
}

/// Checks a hit ratio (0 to 1) against the workload's model.
pub fn model(measured: f64, expected: f64) -> Check {
    let message = format!("hit ratio {:.1} %, model {:.1} %", measured * 100.0, expected * 100.0);
    match (measured - expected).abs() <= MODEL_DIFFERENCE {
        true => check("hits-model", Verdict::Pass, message),
        false => check(
            "hits-model",
            Verdict::Fail,
            format!("{message}: the workload is not what it was meant to be"),
        ),
    }
}

/// Whether the hit ratio stayed as the load rose. When it falls, each point did other work and the sweep
/// compares nothing: as a rule all connections draw the same stream of keys. `points` are (load, hit ratio 0
/// to 1).
pub fn steady(points: &[(f64, f64)]) -> Check {
    if points.len() < 3 {
        return check("hits-steady", Verdict::Skipped, "fewer than three points");
    }
    let (loads, ratios): (Vec<f64>, Vec<f64>) = points.iter().copied().unzip();
    let by_load = |a: &&(f64, f64), b: &&(f64, f64)| a.0.total_cmp(&b.0);
    let (Some(first), Some(last)) = (points.iter().min_by(by_load), points.iter().max_by(by_load)) else {
        return check("hits-steady", Verdict::Skipped, "no points");
    };
    let message =
        format!("hit ratio {:.1} % at the least load, {:.1} % at the most", first.1 * 100.0, last.1 * 100.0);
    match spearman(&loads, &ratios) < -0.7 && first.1 - last.1 > FALL {
        true => {
            let why = "it falls as load rises, so that the points did not do the same work; are the \
             streams of keys shared?";
            check("hits-steady", Verdict::Fail, format!("{message}: {why}"))
        }
        false => check("hits-steady", Verdict::Pass, message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn independent_streams_fill_the_cache() {
        assert!(own_streams(23_700.0, 28.0, 9901.0) > 0.98);
        assert_eq!(shared_stream(0.0, 100.0), 0.0);
        assert!((shared_stream(1.0, 1e4) - 0.5e-4).abs() < 1e-7);
    }

    #[test]
    fn noise_is_no_fall() {
        let points = [(1.0, 0.981), (2.0, 0.983), (3.0, 0.979), (4.0, 0.978), (5.0, 0.98)];
        assert_eq!(steady(&points).verdict, Verdict::Pass);
        assert_eq!(steady(&points[..2]).verdict, Verdict::Skipped);
        assert_eq!(model(0.98, 0.985).verdict, Verdict::Pass);
    }
}
