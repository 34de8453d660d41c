//! Latencies as histograms of one geometry, so that any two can be added without loss; and their form in a
//! result.
//!
//! Recorded are nanoseconds between 100 ns and 60 s with three significant digits; a value outside is
//! counted at the nearer bound.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer as SerdeDeserializer, Serialize, Serializer as SerdeSerializer};

/// The smallest latency that is told from another, in nanoseconds.
pub const LOWEST_NS: u64 = 100;
/// The largest latency that is recorded, in nanoseconds; anything longer counts as this.
pub const HIGHEST_NS: u64 = 60_000_000_000;
/// Significant decimal digits of a recorded latency.
pub const DIGITS: u8 = 3;

/// Latencies in nanoseconds, always of the same geometry. In JSON it is HdrHistogram's own V2 deflate form in
/// base64, which other tools of the field read.
#[derive(Clone, Debug, PartialEq)]
pub struct Latency(Histogram<u64>);

impl Latency {
    /// Nothing recorded yet.
    pub fn new() -> Self {
        Self(Histogram::new_with_bounds(LOWEST_NS, HIGHEST_NS, DIGITS).expect("the geometry is valid"))
    }

    /// Records one latency; out of bounds counts at the bound.
    pub fn record(&mut self, nanoseconds: u64) {
        self.0.saturating_record(nanoseconds.clamp(LOWEST_NS, HIGHEST_NS));
    }

    /// Records the same latency `count` times.
    pub fn record_n(&mut self, nanoseconds: u64, count: u64) {
        self.0.saturating_record_n(nanoseconds.clamp(LOWEST_NS, HIGHEST_NS), count);
    }

    /// Adds what `other` recorded, without loss.
    pub fn add(&mut self, other: &Self) {
        self.0.add(&other.0).expect("one geometry");
    }

    /// Forgets everything recorded.
    pub fn clear(&mut self) {
        self.0.reset();
    }

    /// How many latencies were recorded.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The latency in nanoseconds that a share `quantile` (0 to 1) does not exceed; 0 when nothing was
    /// recorded.
    pub fn quantile_ns(&self, quantile: f64) -> u64 {
        if self.0.is_empty() { 0 } else { self.0.value_at_quantile(quantile) }
    }

    /// How many of those recorded are above `bound_ns`, to the histogram's precision.
    pub fn count_above(&self, bound_ns: u64) -> u64 {
        match bound_ns < self.0.max() {
            true => self.0.count_between(self.0.next_non_equivalent(bound_ns), self.0.max()),
            false => 0,
        }
    }

    /// The mean in nanoseconds; 0 when nothing was recorded.
    pub fn mean_ns(&self) -> f64 {
        if self.0.is_empty() { 0.0 } else { self.0.mean() }
    }

    /// The largest recorded, in nanoseconds; 0 when nothing was.
    pub fn max_ns(&self) -> u64 {
        self.0.max()
    }

    /// The histogram itself, to walk or to write out.
    pub fn histogram(&self) -> &Histogram<u64> {
        &self.0
    }
}

impl Default for Latency {
    fn default() -> Self {
        Self::new()
    }
}

impl Serialize for Latency {
    fn serialize<S: SerdeSerializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(&self.0, &mut bytes).map_err(S::Error::custom)?;
        serializer.serialize_str(&STANDARD.encode(bytes))
    }
}

impl<'de> Deserialize<'de> for Latency {
    fn deserialize<D: SerdeDeserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = STANDARD.decode(text).map_err(D::Error::custom)?;
        let read: Histogram<u64> = Deserializer::new()
            .deserialize(&mut bytes.as_slice())
            .map_err(|e| D::Error::custom(format!("{e:?}")))?;
        let mut latency = Self::new();
        latency.0.add(&read).map_err(|e| D::Error::custom(format!("another geometry: {e:?}")))?;
        Ok(latency)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_above_a_bound_is_counted() {
        let mut latency = Latency::new();
        (1..=100).for_each(|ms| latency.record(ms * 1_000_000));
        for (bound_ms, want) in [(0, 100), (50, 50), (99, 1), (100, 0), (200, 0)] {
            assert_eq!(
                latency.count_above(bound_ms * 1_000_000 + 500_000 * (bound_ms % 2)),
                want,
                "{bound_ms}"
            );
        }
        assert_eq!(Latency::new().count_above(0), 0);
    }

    #[test]
    fn json_keeps_every_count() {
        let mut latency = Latency::new();
        for ns in [0, 150, 1_000, 61_000, 400_000_000, 70_000_000_000] {
            latency.record_n(ns, 3);
        }
        let json = serde_json::to_string(&latency).expect("it is text");
        let back: Latency = serde_json::from_str(&json).expect("it was written by us");
        assert_eq!(back, latency);
        assert_eq!(back.count(), 18);
    }
}
