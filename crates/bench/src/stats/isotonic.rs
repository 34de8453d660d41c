//! The isotonic fit: the rising steps nearest to measured points, since latency cannot truly fall as load
//! rises.

/// The non-decreasing values nearest to `ys` by weighted distance: pool adjacent violators, each pool at its
/// median, so that a single point in which the host stood still does not lift its neighbours. As long as
/// `ys`; a missing weight counts 1.
pub fn fit(ys: &[f64], weights: &[f64]) -> Vec<f64> {
    // Each pool: its median, and its points with their weights.
    let mut pools: Vec<(f64, Vec<(f64, f64)>)> = Vec::with_capacity(ys.len());
    for (at, y) in ys.iter().enumerate() {
        let mut pool = (*y, vec![(*y, weights.get(at).copied().unwrap_or(1.0))]);
        while let Some((_, mut points)) = pools.pop_if(|before| before.0 > pool.0) {
            points.append(&mut pool.1);
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            pool = (lower_median(&points), points);
        }
        pools.push(pool);
    }
    pools.iter().flat_map(|(value, points)| std::iter::repeat_n(*value, points.len())).collect()
}

/// The least of the sorted values that half of the weight does not exceed.
fn lower_median(points: &[(f64, f64)]) -> f64 {
    let half = points.iter().map(|point| point.1).sum::<f64>() / 2.0;
    let mut sum = 0.0;
    let reaches_half = |point: &&(f64, f64)| {
        sum += point.1;
        sum >= half
    };
    points.iter().find(reaches_half).or(points.last()).map_or(0.0, |point| point.0)
}

/// Where a rising fit crosses `bound`, on the axis of `xs`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Crossing {
    /// Already the first point is above.
    Below,
    /// Here, between two points, on a straight line between them.
    At(f64),
    /// Even the last point is not above.
    Above,
}

/// The crossing of the rising values `fitted` at `xs` with `bound`. Between the last point within and the
/// first beyond it is a straight line; where the axis itself falls back (overload answers less), the last
/// point within.
pub fn crossing(xs: &[f64], fitted: &[f64], bound: f64) -> Crossing {
    match fitted.iter().position(|y| *y > bound) {
        None => Crossing::Above,
        Some(0) => Crossing::Below,
        Some(at) => {
            let share = (bound - fitted[at - 1]) / (fitted[at] - fitted[at - 1]);
            Crossing::At(xs[at - 1] + share.clamp(0.0, 1.0) * (xs[at] - xs[at - 1]).max(0.0))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn violators_are_pooled_by_weight() {
        assert_eq!(fit(&[1.0, 2.0, 3.0], &[]), [1.0, 2.0, 3.0]);
        assert_eq!(fit(&[1.0, 3.0, 2.0, 4.0], &[]), [1.0, 2.0, 2.0, 4.0]);
        assert_eq!(fit(&[3.0, 2.0, 1.0], &[1.0, 1.0, 2.0]), [1.0, 1.0, 1.0]);
        assert_eq!(fit(&[1.0, 900.0, 2.0, 3.0, 4.0], &[]), [1.0, 2.0, 2.0, 3.0, 4.0]);
        assert_eq!(fit(&[], &[]), Vec::<f64>::new());
    }

    #[test]
    fn the_crossing_lies_between_its_neighbours() {
        let xs = [10.0, 20.0, 30.0];
        assert_eq!(crossing(&xs, &[1.0, 2.0, 4.0], 3.0), Crossing::At(25.0));
        assert_eq!(crossing(&xs, &[1.0, 2.0, 4.0], 0.5), Crossing::Below);
        assert_eq!(crossing(&xs, &[1.0, 2.0, 4.0], 4.0), Crossing::Above);
        assert_eq!(crossing(&[10.0, 20.0, 15.0], &[1.0, 2.0, 4.0], 3.0), Crossing::At(20.0));
    }
}
