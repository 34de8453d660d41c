//! Blocks of neighbouring seconds: how long they are, and how often each second is drawn.

use crate::random::Random;

/// The length of a block for seconds that measured `values`: the longer, the more a second has in common with
/// the next (optimal for a first-order autoregression), at least 1 and at most a quarter of them.
pub fn block_seconds(values: &[f64]) -> usize {
    let n = values.len();
    let mean = super::mean(values);
    let along: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
    let across: f64 = values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    let alike = if along > 0.0 { (across / along).clamp(0.0, 0.9) } else { 0.0 };
    let factor = (1.5 * (2.0 * alike / (1.0 - alike * alike)).powi(2)).cbrt();
    ((factor * (n as f64).cbrt()).round() as usize).clamp(1, (n / 4).max(1))
}

/// Draws how often each of `seconds` seconds is taken, in circular blocks.
pub fn draw(rng: &mut Random, seconds: usize, block: usize, weights: &mut Vec<u32>) {
    weights.clear();
    weights.resize(seconds, 0);
    let mut left = seconds;
    while left > 0 {
        let start = rng.index(seconds);
        for offset in 0..block.min(left) {
            weights[(start + offset) % seconds] += 1;
        }
        left -= block.min(left);
    }
}
