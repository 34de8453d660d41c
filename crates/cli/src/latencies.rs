//! The times of requests, from a daemon's metrics.

use std::collections::BTreeMap;

const SERIES: &str = "larder_request_duration_seconds_bucket{class=\"";

/// The times of requests since the daemon's start, or between two moments.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Latencies {
    /// For each class, the numbers of requests that took at most so many microseconds.
    classes: BTreeMap<String, Vec<(f64, u64)>>,
}

impl Latencies {
    /// Reads them from the text of metrics.
    pub fn of(metrics: &str) -> Latencies {
        let mut latencies = Latencies::default();
        for line in metrics.lines() {
            let Some((class, rest)) = line.strip_prefix(SERIES).and_then(|rest| rest.split_once('"')) else {
                continue;
            };
            let Some((bound, count)) = rest.strip_prefix(",le=\"").and_then(|rest| rest.split_once("\"} "))
            else {
                continue;
            };
            let bound = if bound == "+Inf" { Ok(f64::INFINITY) } else { bound.parse::<f64>() };
            if let (Ok(bound), Ok(count)) = (bound, count.parse::<f64>()) {
                latencies.classes.entry(class.to_string()).or_default().push((bound * 1e6, count as u64));
            }
        }
        latencies
    }

    /// Returns those since an earlier moment. A daemon that was started again counts from 0.
    pub fn since(&self, before: &Latencies) -> Latencies {
        let mut since = self.clone();
        for (class, buckets) in &mut since.classes {
            let Some(before) = before.classes.get(class) else { continue };
            let is_restarted = buckets.iter().zip(before).any(|(now, before)| now.1 < before.1);
            for (now, before) in buckets.iter_mut().zip(before).filter(|_| !is_restarted) {
                now.1 -= before.1;
            }
        }
        since
    }

    /// Returns the bound of the bucket that 99 of 100 requests of a class took at most, in microseconds; `None` if
    /// there were no requests.
    pub fn p99_us(&self, class: &str) -> Option<f64> {
        let buckets = self.classes.get(class)?;
        let all = buckets.last().map(|(_, count)| *count).filter(|all| *all > 0)?;
        let wanted = (all as f64 * 0.99).ceil() as u64;
        buckets.iter().find(|(_, count)| *count >= wanted).map(|(bound, _)| *bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metrics(counts: [u64; 3]) -> String {
        let [one, two, all] = counts;
        format!(
            "# TYPE larder_request_duration_seconds histogram\n\
             larder_request_duration_seconds_bucket{{class=\"ram\",le=\"0.000001\"}} {one}\n\
             larder_request_duration_seconds_bucket{{class=\"ram\",le=\"0.000002\"}} {two}\n\
             larder_request_duration_seconds_bucket{{class=\"ram\",le=\"+Inf\"}} {all}\n\
             larder_request_duration_seconds_count{{class=\"ram\"}} {all}\n"
        )
    }

    #[test]
    fn a_quantile_is_of_the_requests_between() {
        let (before, now) =
            (Latencies::of(&metrics([1000, 1000, 1000])), Latencies::of(&metrics([1001, 1100, 1100])));
        assert_eq!(now.since(&before).p99_us("ram"), Some(2.0));
        assert_eq!(before.p99_us("ram"), Some(1.0));
        assert_eq!(now.since(&now).p99_us("ram"), None);
        assert_eq!(now.p99_us("ssd"), None);
        assert_eq!(before.since(&now), before);
    }
}
