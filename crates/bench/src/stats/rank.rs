//! Rank correlation: whether one figure rises or falls with another, whatever the shape.

/// Ranks from 1; equal values share the mean of their ranks.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut start = 0;
    while start < order.len() {
        let same = |at: &usize| values[*at] == values[order[start]];
        let end = start + order[start..].iter().take_while(|at| same(at)).count();
        order[start..end].iter().for_each(|at| ranks[*at] = (start + 1 + end) as f64 / 2.0);
        start = end;
    }
    ranks
}

/// Spearman's rank correlation, -1 to 1; 0 when one of them does not vary or there are fewer than two pairs.
pub fn spearman(xs: &[f64], ys: &[f64]) -> f64 {
    let n = xs.len().min(ys.len());
    let (xs, ys) = (ranks(&xs[..n]), ranks(&ys[..n]));
    let (mean_x, mean_y) = (super::mean(&xs), super::mean(&ys));
    let sum = |a: &[f64], mean_a: f64, b: &[f64], mean_b: f64| -> f64 {
        a.iter().zip(b).map(|(x, y)| (x - mean_a) * (y - mean_b)).sum()
    };
    let spread = (sum(&xs, mean_x, &xs, mean_x) * sum(&ys, mean_y, &ys, mean_y)).sqrt();
    if spread == 0.0 { 0.0 } else { sum(&xs, mean_x, &ys, mean_y) / spread }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_order_counts() {
        assert!((spearman(&[1.0, 2.0, 3.0], &[10.0, 100.0, 1e9]) - 1.0).abs() < 1e-12);
        assert!((spearman(&[1.0, 2.0, 3.0], &[3.0, 2.0, -9.0]) + 1.0).abs() < 1e-12);
        assert_eq!(spearman(&[1.0, 2.0], &[5.0, 5.0]), 0.0);
        assert_eq!(ranks(&[5.0, 1.0, 5.0]), [2.5, 1.0, 2.5]);
    }
}
