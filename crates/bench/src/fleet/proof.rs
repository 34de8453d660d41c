//! Latencies that are made up, the same on every host: recorded apart and merged, they have to give the very
//! histogram that one process records.

use crate::latency::Latency;
use crate::random::{Random, mix};

/// The latencies of one host of a proof: mostly around 100 us, with a long tail.
pub fn record(into: &mut Latency, index: u32, count: u64) {
    let mut random = Random::new(mix(0xB5) ^ mix(u64::from(index)));
    for _ in 0..count {
        let mut ns = 100_000.0 * (0.5 * random.normal()).exp();
        if random.below(500) == 0 {
            ns *= 10.0 + 100.0 * random.exponential();
        }
        into.record(ns as u64);
    }
}

/// One process's histogram of the latencies of `hosts` hosts.
pub fn of_one_process(hosts: u32, count: u64) -> Latency {
    let mut latency = Latency::new();
    (0..hosts).for_each(|index| record(&mut latency, index, count));
    latency
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_eight_histograms_is_recording_in_one() {
        let one = of_one_process(8, 50_000);
        let mut merged = Latency::new();
        for index in 0..8 {
            let mut part = Latency::new();
            record(&mut part, index, 50_000);
            let sent = serde_json::to_string(&part).expect("it is text");
            merged.add(&serde_json::from_str(&sent).expect("it was written by us"));
        }
        assert_eq!(merged, one);
        assert_eq!(merged.quantile_ns(0.999), one.quantile_ns(0.999));
        assert!(one.quantile_ns(0.999) > 4 * one.quantile_ns(0.99), "the tail is long");
    }
}
