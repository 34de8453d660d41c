//! The universal scalability law: rate against concurrency with contention and coherence.

/// `rate(n) = alone * n / (1 + sigma * (n - 1) + kappa * n * (n - 1))`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// Requests a second of one alone.
    pub alone: f64,
    /// Contention: the share that only one can do at a time.
    pub sigma: f64,
    /// Coherence: what each pays for each other.
    pub kappa: f64,
    /// The share of the variance of the rates that the law explains, up to 1.
    pub explained: f64,
}

impl Fit {
    /// The law's rate at a concurrency.
    pub fn rate(&self, n: f64) -> f64 {
        self.alone * n / (1.0 + self.sigma * (n - 1.0) + self.kappa * n * (n - 1.0))
    }

    /// The concurrency of the highest rate; none when the rate never falls again.
    pub fn peak(&self) -> Option<f64> {
        (self.kappa > 0.0 && self.sigma < 1.0).then(|| ((1.0 - self.sigma) / self.kappa).sqrt())
    }
}

/// The law nearest to `(concurrency, rate)` points by relative squares, its terms not below 0; none from
/// fewer than three points of different concurrency.
pub fn fit(points: &[(f64, f64)]) -> Option<Fit> {
    let points: Vec<_> = points.iter().copied().filter(|(n, rate)| *n > 0.0 && *rate > 0.0).collect();
    let mut levels: Vec<f64> = points.iter().map(|point| point.0).collect();
    levels.sort_by(f64::total_cmp);
    levels.dedup();
    if levels.len() < 3 {
        return None;
    }
    // n / rate is linear in three terms; dividing by itself makes the squares relative.
    let row = |(n, rate): &(f64, f64)| [1.0, n - 1.0, n * (n - 1.0)].map(|term| term * rate / n);
    let rows: Vec<[f64; 3]> = points.iter().map(row).collect();
    // Non-negative least squares over three terms: the best of the subsets whose solution is not negative.
    let subsets: [&[usize]; 4] = [&[0, 1, 2], &[0, 1], &[0, 2], &[0]];
    let solved = subsets.iter().filter_map(|subset| solve(&rows, subset));
    let allowed = solved.filter(|terms| terms[0] > 0.0 && terms.iter().all(|term| *term >= 0.0));
    let error = |terms: &[f64; 3]| -> f64 {
        rows.iter().map(|row| (1.0 - (0..3).map(|i| row[i] * terms[i]).sum::<f64>()).powi(2)).sum()
    };
    let terms = allowed.min_by(|a, b| error(a).total_cmp(&error(b)))?;
    let mut fit =
        Fit { alone: 1.0 / terms[0], sigma: terms[1] / terms[0], kappa: terms[2] / terms[0], explained: 0.0 };
    let mean = points.iter().map(|point| point.1).sum::<f64>() / points.len() as f64;
    let total: f64 = points.iter().map(|(_, rate)| (rate - mean).powi(2)).sum();
    let left: f64 = points.iter().map(|(n, rate)| (rate - fit.rate(*n)).powi(2)).sum();
    fit.explained = if total > 0.0 { 1.0 - left / total } else { 1.0 };
    Some(fit)
}

/// Least squares of `rows * terms = 1` with only the terms of `subset`; the others are 0.
fn solve(rows: &[[f64; 3]], subset: &[usize]) -> Option<[f64; 3]> {
    let size = subset.len();
    let mut matrix = vec![vec![0.0; size + 1]; size];
    for row in rows {
        for (a, term_a) in subset.iter().enumerate() {
            for (b, term_b) in subset.iter().enumerate() {
                matrix[a][b] += row[*term_a] * row[*term_b];
            }
            matrix[a][size] += row[*term_a];
        }
    }
    for column in 0..size {
        let pivot =
            (column..size).max_by(|a, b| matrix[*a][column].abs().total_cmp(&matrix[*b][column].abs()))?;
        matrix.swap(column, pivot);
        if matrix[column][column].abs() < 1e-300 {
            return None;
        }
        for other in 0..size {
            if other != column {
                let factor = matrix[other][column] / matrix[column][column];
                let from = matrix[column].clone();
                (column..=size).for_each(|at| matrix[other][at] -= factor * from[at]);
            }
        }
    }
    let mut terms = [0.0; 3];
    subset.iter().enumerate().for_each(|(at, term)| terms[*term] = matrix[at][size] / matrix[at][at]);
    Some(terms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_finds_the_terms_that_made_the_points() {
        let truth = Fit { alone: 1000.0, sigma: 0.05, kappa: 0.001, explained: 1.0 };
        let points: Vec<_> = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0].map(|n| (n, truth.rate(n))).to_vec();
        let found = fit(&points).expect("there are enough points");
        assert!((found.alone / 1000.0 - 1.0).abs() < 1e-6 && (found.sigma - 0.05).abs() < 1e-6);
        assert!((found.kappa - 0.001).abs() < 1e-8 && found.explained > 0.999_999);
        assert!((found.peak().expect("it falls again") - 950f64.sqrt()).abs() < 1e-3);
    }

    #[test]
    fn a_straight_line_has_no_peak_and_two_points_no_fit() {
        let found = fit(&[(1.0, 10.0), (2.0, 20.0), (3.0, 30.0)]).expect("there are enough points");
        assert!(found.sigma < 1e-9 && found.kappa < 1e-9);
        assert!(found.peak().is_none_or(|peak| peak > 1e3));
        assert_eq!(fit(&[(1.0, 10.0), (2.0, 20.0), (2.0, 21.0)]), None);
    }
}
