//! A run's seconds in a form that any weighting of them is measured in microseconds: counts by latency,
//! summed up.

use super::blocks::block_seconds;
use crate::latency::Latency;
use crate::result::Run;

/// A figure of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Measure {
    /// A quantile of the response latency, 0 to 1, in nanoseconds.
    Quantile(f64),
    /// The mean response latency in nanoseconds.
    Mean,
    /// Requests a second.
    Rate,
}

/// One second of a run.
#[derive(Clone, Copy, Debug)]
pub struct Second<'a> {
    /// The response latencies in it.
    pub response: &'a Latency,
    /// How long it was, in seconds: replies shortly after a run's end belong to its last one.
    pub length_s: f64,
}

impl<'a> From<&'a Latency> for Second<'a> {
    fn from(response: &'a Latency) -> Self {
        Self { response, length_s: 1.0 }
    }
}

impl<'a> Second<'a> {
    /// The whole seconds of a run: a last one that is only a part would look like a slow one.
    pub fn all_of(run: &'a Run) -> impl Iterator<Item = Self> {
        let whole = run.seconds.floor().max(1.0) as usize;
        let last = run.intervals.len().saturating_sub(1);
        run.intervals.iter().take(whole).enumerate().map(move |(at, interval)| {
            let length_s = if at == last { run.seconds - at as f64 } else { 1.0 };
            Self { response: &interval.response, length_s }
        })
    }
}

/// The seconds of one run, or of several one after the other.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// The latencies that occur at all, in rising order, each the highest that its histogram bin stands for.
    values_ns: Vec<u64>,
    /// For each second, how many requests took at most the latency of that rank.
    cumulative: Vec<Vec<u64>>,
    /// For each second, the sum of its latencies.
    sums_ns: Vec<f64>,
    /// How long each was.
    lengths_s: Vec<f64>,
}

impl Series {
    /// One entry a second.
    pub fn new<'a, S: Into<Second<'a>>>(seconds: impl IntoIterator<Item = S>) -> Self {
        let (seconds, lengths_s): (Vec<Vec<(u64, u64)>>, Vec<f64>) = (seconds.into_iter().map(S::into))
            .map(|second: Second<'_>| (bins(second.response), second.length_s))
            .unzip();
        let mut values_ns: Vec<u64> = seconds.iter().flatten().map(|(value, _)| *value).collect();
        values_ns.sort_unstable();
        values_ns.dedup();
        let cumulative = seconds.iter().map(|bins| cumulate(bins, &values_ns)).collect();
        let sums_ns = seconds.iter().map(|bins| bins.iter().map(|(v, n)| *v as f64 * *n as f64).sum());
        Self { sums_ns: sums_ns.collect(), values_ns, cumulative, lengths_s }
    }

    /// The whole seconds of a run.
    pub fn of_run(run: &Run) -> Self {
        Self::new(Second::all_of(run))
    }

    /// The length of a bootstrap's block for some of the seconds: what their rates or their mean latencies
    /// ask for.
    pub fn block_seconds(&self, range: std::ops::Range<usize>) -> usize {
        let counts =
            self.cumulative[range.clone()].iter().map(|second| second.last().copied().unwrap_or(0) as f64);
        let counts: Vec<f64> = counts.collect();
        let means =
            self.sums_ns[range].iter().zip(&counts).map(|(sum, count)| (sum / count.max(1.0)).max(1.0).ln());
        let means: Vec<f64> = means.collect();
        block_seconds(&counts).max(block_seconds(&means))
    }

    /// How many seconds it holds.
    pub fn seconds(&self) -> usize {
        self.cumulative.len()
    }

    /// Requests of all seconds.
    pub fn count(&self) -> u64 {
        self.cumulative.iter().filter_map(|second| second.last()).sum()
    }

    /// The measure over all seconds; none when nothing was recorded.
    pub fn measure(&self, measure: Measure) -> Option<f64> {
        self.weighted(measure, &vec![1; self.seconds()])
    }

    /// The measure when second `i` is taken `weights[i]` times, as if the histograms had been merged.
    pub fn weighted(&self, measure: Measure, weights: &[u32]) -> Option<f64> {
        let at = |rank: usize| -> u64 {
            let seconds = self.cumulative.iter().zip(weights);
            seconds.map(|(second, weight)| second[rank] * u64::from(*weight)).sum()
        };
        let total = at(self.values_ns.len().checked_sub(1)?);
        if total == 0 {
            return None;
        }
        match measure {
            Measure::Rate => {
                let lengths = self.lengths_s.iter().zip(weights);
                Some(
                    total as f64
                        / lengths.map(|(length_s, weight)| length_s * f64::from(*weight)).sum::<f64>(),
                )
            }
            Measure::Mean => {
                let sums = self.sums_ns.iter().zip(weights);
                Some(sums.map(|(sum, weight)| sum * f64::from(*weight)).sum::<f64>() / total as f64)
            }
            Measure::Quantile(quantile) => {
                let wanted = ((quantile.clamp(0.0, 1.0) * total as f64).ceil() as u64).max(1);
                let (mut low, mut high) = (0, self.values_ns.len() - 1);
                while low < high {
                    let middle = (low + high) / 2;
                    if at(middle) >= wanted { high = middle } else { low = middle + 1 }
                }
                Some(self.values_ns[low] as f64)
            }
        }
    }

    /// The measure of each second by itself; seconds without a request are left out.
    pub fn each_second(&self, measure: Measure) -> Vec<f64> {
        let mut weights = vec![0; self.seconds()];
        (0..self.seconds())
            .filter_map(|second| {
                weights.fill(0);
                weights[second] = 1;
                self.weighted(measure, &weights)
            })
            .collect()
    }
}

/// The latencies of a histogram that occur, each with its count.
fn bins(latency: &Latency) -> Vec<(u64, u64)> {
    let recorded = latency.histogram().iter_recorded();
    recorded.map(|bin| (bin.value_iterated_to(), bin.count_at_value())).collect()
}

fn cumulate(bins: &[(u64, u64)], values_ns: &[u64]) -> Vec<u64> {
    let mut bins = bins.iter().peekable();
    let mut sum = 0;
    values_ns
        .iter()
        .map(|value| {
            while let Some((_, count)) = bins.next_if(|(bin, _)| bin <= value) {
                sum += count;
            }
            sum
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use crate::result::Interval;

    fn seconds(n: usize) -> Vec<Latency> {
        let mut rng = Random::new(3);
        let second = |rng: &mut Random| {
            let mut latency = Latency::new();
            (0..500).for_each(|_| latency.record((rng.exponential() * 200_000.0) as u64));
            latency
        };
        (0..n).map(|_| second(&mut rng)).collect()
    }

    #[test]
    fn weights_measure_what_merging_would() {
        let seconds = seconds(5);
        let series = Series::new(&seconds);
        let mut merged = Latency::new();
        let weights = [2u32, 0, 1, 3, 0];
        for (second, weight) in seconds.iter().zip(weights) {
            (0..weight).for_each(|_| merged.add(second));
        }
        for quantile in [0.001, 0.25, 0.5, 0.9, 0.99, 0.999, 1.0] {
            let ours = series.weighted(Measure::Quantile(quantile), &weights).expect("there are samples");
            assert_eq!(ours as u64, merged.quantile_ns(quantile), "at {quantile}");
        }
        let mean = series.weighted(Measure::Mean, &weights).expect("there are samples");
        assert!((mean / merged.mean_ns() - 1.0).abs() < 0.002);
        assert_eq!(series.weighted(Measure::Rate, &weights), Some(500.0));
        assert_eq!(series.count(), 2500);
    }

    #[test]
    fn what_came_in_after_the_end_is_no_higher_rate() {
        let second = |count| {
            let mut response = Latency::new();
            response.record_n(1000, count);
            Interval { count, response, ..Interval::default() }
        };
        let of = |seconds, counts: &[u64]| {
            let intervals = counts.iter().map(|count| second(*count)).collect();
            Series::of_run(&Run { seconds, intervals, ..Run::default() }).measure(Measure::Rate)
        };
        assert_eq!(of(2.25, &[100, 125]), Some(100.0));
        // A last second that is only a part is left out.
        assert_eq!(of(2.5, &[100, 100, 10]), Some(100.0));
        assert_eq!(of(0.5, &[100]), Some(200.0));
    }

    #[test]
    fn an_empty_run_has_no_figures() {
        assert_eq!(Series::default().measure(Measure::Mean), None);
        assert_eq!(Series::of_run(&Run::default()).measure(Measure::Rate), None);
        assert_eq!(Series::new(&[Latency::new()]).measure(Measure::Quantile(0.5)), None);
    }
}
