//! Two caches at Meta, as published with CacheLib: popularity and value sizes as histograms
//! (`data/SOURCES.md`).

use serde::Deserialize;

/// The histograms of one cache.
#[derive(Clone, Debug, Deserialize)]
pub struct Shape {
    /// Requests for keys that are asked for only once, as a share of requests.
    pub one_hits: f64,
    /// Requests of each bucket of keys.
    pub weights: Vec<u64>,
    /// Keys of each bucket; within one, all are asked for alike.
    pub buckets: Vec<u64>,
    /// Sizes of values in bytes.
    pub value_bytes: Vec<u32>,
    /// How often each size occurs.
    pub value_weights: Vec<u64>,
    /// Bounds of the ranges of key lengths.
    pub key_bytes: Vec<u16>,
    /// How often each range occurs; one less than bounds.
    pub key_weights: Vec<f64>,
}

/// `kvcache_reg`: a look-aside key-value cache.
///
/// # Panics
/// Never: the data is part of the program, and tested.
pub fn kvcache() -> Shape {
    serde_json::from_str(include_str!("../../data/meta_kvcache.json")).expect("the data is whole")
}

/// `graph_cache_leader_fbobj`: objects of the social graph.
///
/// # Panics
/// Never: the data is part of the program, and tested.
pub fn graph() -> Shape {
    serde_json::from_str(include_str!("../../data/meta_graph.json")).expect("the data is whole")
}

impl Shape {
    /// The mean size of a value.
    pub fn mean_value_bytes(&self) -> f64 {
        let pairs = self.value_bytes.iter().zip(&self.value_weights);
        let sum: f64 = pairs.map(|(size, weight)| f64::from(*size) * *weight as f64).sum();
        sum / self.value_weights.iter().sum::<u64>() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_are_whole() {
        for shape in [kvcache(), graph()] {
            assert_eq!(shape.weights.len(), shape.buckets.len());
            assert_eq!(shape.value_bytes.len(), shape.value_weights.len());
            assert_eq!(shape.key_bytes.len(), shape.key_weights.len() + 1);
            assert!(shape.one_hits > 0.0 && shape.one_hits < 1.0);
        }
        assert_eq!((kvcache().weights.len(), graph().value_bytes.len()), (805, 2674));
    }
}
