//! How much wider an interval from few samples has to be.

/// The two-sided 95 % point of Student's t by degrees of freedom 1 to 30.
const T95: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];
/// The same of the normal distribution.
const NORMAL95: f64 = 1.960;

/// The two-sided 95 % point of Student's t.
pub fn t95(degrees: usize) -> f64 {
    match degrees {
        0 => f64::INFINITY,
        d if d <= T95.len() => T95[d - 1],
        d => NORMAL95 + 2.4 / d as f64,
    }
}

/// Returns the factor that stretches a bootstrap's percentile interval over `units` independent units:
/// resampling n units sees a variance n - 1 over n of the true one, and knows it no better than Student's t
/// says.
pub fn stretch(units: usize) -> f64 {
    let units = units.max(2);
    let n = units as f64;
    (n / (n - 1.0)).sqrt() * t95(units - 1) / NORMAL95
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wider_for_few_and_as_it_is_for_many() {
        assert!(stretch(1000) < 1.01 && stretch(1000) >= 1.0);
        assert!((stretch(10) - 1.216).abs() < 0.01);
        assert!(stretch(2) > 8.0);
        assert!((1..200).all(|n| stretch(n) >= stretch(n + 1)));
    }
}
