//! A line through shares of requests over a bound against the logarithm of the rate, and where it crosses a share.
//!
//! In a queue the logarithm of that share is nearly straight in the logarithm of the rate. The line is fitted by
//! quasi-likelihood with the canonical link (of a share the logit, of a mean the logarithm): then the fit depends on
//! the shares themselves and not on their logarithms, so that a crowd of slow requests counts as much as it is large,
//! and a probe without any counts too.

/// Newton's steps.
const STEPS: usize = 25;
/// The farthest that a step moves the line, in its own units.
const STEP_MAX: f64 = 2.0;
/// Slopes below hardly depend on the rate; those above are a wall.
const SLOPES: (f64, f64) = (0.5, 3000.0);

/// Points with less of a share, or with less than this that is not over the bound, are all on one side.
const SHARE_MIN: f64 = 1e-9;
/// How far beyond such points the crossing is put, in units of the line's height.
const BEYOND: f64 = 3.0;

/// What the line is of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Model {
    /// Shares of requests over the bound; the crossing is at this share.
    Share(f64),
    /// Means in units of the bound; the crossing is at 1.
    Mean,
}

/// The requests of a probe.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    /// The logarithm of the rate.
    pub at: f64,
    /// How many requests there were.
    pub weight: f64,
    /// The share over the bound, or the mean.
    pub share: f64,
}

/// A line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Line {
    /// Where it crosses.
    pub crossing: f64,
    /// How steep it is.
    pub slope: f64,
}

impl Model {
    /// The share of a probe that failed for another reason than its latency.
    pub fn most(self) -> f64 {
        match self {
            Self::Share(_) => 1.0,
            Self::Mean => 10.0,
        }
    }

    /// The height of the line at the crossing.
    fn target(self) -> f64 {
        match self {
            Self::Share(share) => self.height(share),
            Self::Mean => self.height(1.0),
        }
    }

    /// The height of the line at which it has a share.
    fn height(self, share: f64) -> f64 {
        match self {
            Self::Share(_) => (share / (1.0 - share)).ln(),
            Self::Mean => share.ln(),
        }
    }

    /// The share at a height of the line, and how it grows with the height.
    fn share(self, height: f64) -> (f64, f64) {
        match self {
            Self::Share(_) => {
                let share = 1.0 / (1.0 + (-height).exp());
                (share, share * (1.0 - share))
            }
            Self::Mean => (height.exp(), height.exp()),
        }
    }
}

/// Fits the line; `slope` is where to begin, and stays where the points do not tell. None of fewer than two points.
/// Points that are all far on one side put the crossing beyond them.
pub(super) fn fit(points: &[Point], model: Model, slope: f64) -> Option<Line> {
    if points.len() < 2 {
        return None;
    }
    descend(points, model, slope.clamp(SLOPES.0, SLOPES.1), SLOPES)
}

/// Fits the line within half and twice a slope. None of no points.
pub(super) fn fit_near(points: &[Point], model: Model, slope: f64) -> Option<Line> {
    descend(points, model, slope, (slope / 2.0, slope * 2.0))
}

fn descend(points: &[Point], model: Model, mut slope: f64, slopes: (f64, f64)) -> Option<Line> {
    let weight: f64 = points.iter().map(|point| point.weight).sum();
    if weight <= 0.0 {
        return None;
    }
    let mean =
        |of: fn(&Point) -> f64| points.iter().map(|point| point.weight * of(point)).sum::<f64>() / weight;
    let (middle, share) = (mean(|point| point.at), mean(|point| point.share));
    let most = if model == Model::Mean { f64::MAX } else { 1.0 - SHARE_MIN };
    if share <= SHARE_MIN || share >= most {
        let side = if share <= SHARE_MIN { 1.0 } else { -1.0 };
        return Some(Line { crossing: middle + side * BEYOND / slope, slope });
    }
    let mut height = model.height(share);
    for _ in 0..STEPS {
        let (up, steeper) = step(points, model, middle, (height, slope), slopes);
        height += up.clamp(-STEP_MAX, STEP_MAX);
        slope = (slope + steeper.clamp(-slope / 2.0, slope)).clamp(slopes.0, slopes.1);
        if up.abs() < 1e-9 && steeper.abs() < 1e-6 * slope {
            break;
        }
    }
    Some(Line { crossing: middle + (model.target() - height) / slope, slope })
}

/// Newton's step of height and slope; of the height alone where the slope is at its bound.
fn step(
    points: &[Point],
    model: Model,
    middle: f64,
    (height, slope): (f64, f64),
    slopes: (f64, f64),
) -> (f64, f64) {
    let mut score = (0.0, 0.0);
    let mut curvature = (1e-12, 0.0, 1e-12);
    for point in points {
        let x = point.at - middle;
        let (share, growth) = model.share(height + slope * x);
        let off = point.weight * (point.share - share);
        score = (score.0 + off, score.1 + off * x);
        let growth = point.weight * growth;
        curvature = (curvature.0 + growth, curvature.1 + growth * x, curvature.2 + growth * x * x);
    }
    let (a, b, c) = curvature;
    let is_bound = slope <= slopes.0 && score.1 < 0.0 || slope >= slopes.1 && score.1 > 0.0;
    let determinant = a * c - b * b;
    if is_bound || determinant <= 1e-12 * a * c {
        return (score.0 / a, 0.0);
    }
    ((c * score.0 - b * score.1) / determinant, (a * score.1 - b * score.0) / determinant)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a / b - 1.0).abs() < 1e-6
    }

    #[test]
    fn points_on_a_line_give_the_line() {
        for model in [Model::Share(0.01), Model::Mean] {
            let point = |at: f64| {
                let share = model.share(model.target() + 50.0 * (at - 9.0)).0;
                Point { at, weight: 1000.0, share }
            };
            let points = [8.98, 8.99, 9.0, 9.02].map(point);
            let found = fit(&points, model, 10.0).expect("there are points");
            assert!(close(found.crossing, 9.0) && (found.slope - 50.0).abs() < 1e-3, "{model:?} {found:?}");
        }
    }

    #[test]
    fn rare_crowds_count_as_much_as_they_are_large() {
        // One probe of ten has a tenth of its requests over the bound: one in a hundred of all.
        let points: Vec<Point> = (0..30)
            .map(|n| Point {
                at: 9.0 + f64::from(n / 10 - 1) * 0.01,
                weight: 1000.0,
                share: if n % 10 == 0 { 0.1 * (0.5 * f64::from(n / 10 - 1)).exp() } else { 0.0 },
            })
            .collect();
        let found = fit(&points, Model::Share(0.01), 10.0).expect("there are points");
        assert!((found.crossing - 9.0).abs() < 0.002, "{found:?}");
    }

    #[test]
    fn points_on_one_side_put_the_crossing_beyond() {
        let of = |share| [8.0, 8.1].map(|at| Point { at, weight: 100.0, share });
        let crossing = |share| fit(&of(share), Model::Share(0.01), 10.0).expect("there are points").crossing;
        assert!(crossing(0.0) > 8.1 && crossing(1.0) < 8.0);
        assert_eq!(fit(&of(0.5)[..1], Model::Mean, 10.0), None);
    }
}
