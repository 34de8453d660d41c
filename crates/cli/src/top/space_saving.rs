//! The most frequent of very many names, in bounded memory: Space-Saving (Metwally, Agrawal and El Abbadi 2005), which
//! drops many names at a time instead of one.
//!
//! A name that was dropped, or is new, begins at the largest count that was ever dropped. So a count is never too
//! small, and by no more too large than its error.

use std::collections::HashMap;

/// What is added up for a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weight {
    /// What names are ranked by.
    pub count: u64,
    /// Added up since the name is known.
    pub hits: u64,
    /// Added up since the name is known.
    pub bytes: u64,
}

/// The counters.
#[derive(Debug)]
pub struct SpaceSaving {
    names_max: usize,
    names: HashMap<Vec<u8>, (Weight, u64)>,
    /// The largest count that was dropped.
    floor: u64,
}

impl SpaceSaving {
    /// Makes counters that keep so many names after each drop, and twice as many before.
    pub fn new(names_max: usize) -> SpaceSaving {
        SpaceSaving { names_max: names_max.max(1), names: HashMap::new(), floor: 0 }
    }

    /// Adds to the counts of a name.
    pub fn add(&mut self, name: &[u8], weight: Weight) {
        if !self.names.contains_key(name) {
            if self.names.len() >= 2 * self.names_max {
                self.drop_rare();
            }
            let begun = Weight { count: self.floor, ..Weight::default() };
            self.names.insert(name.to_vec(), (begun, self.floor));
        }
        if let Some((sum, _)) = self.names.get_mut(name) {
            sum.count += weight.count;
            sum.hits += weight.hits;
            sum.bytes += weight.bytes;
        }
    }

    /// Returns the names with the largest counts, the largest first, each with the error of its count.
    pub fn top(&self, names: usize) -> Vec<(Vec<u8>, Weight, u64)> {
        let mut all: Vec<_> =
            self.names.iter().map(|(name, (sum, error))| (name.clone(), *sum, *error)).collect();
        all.sort_by(|one, other| other.1.count.cmp(&one.1.count).then_with(|| one.0.cmp(&other.0)));
        all.truncate(names);
        all
    }

    fn drop_rare(&mut self) {
        let mut counts: Vec<u64> = self.names.values().map(|(sum, _)| sum.count).collect();
        let at = counts.len().saturating_sub(self.names_max);
        let (_, bound, _) = counts.select_nth_unstable(at.saturating_sub(1));
        self.floor = self.floor.max(*bound);
        let floor = self.floor;
        self.names.retain(|_, (sum, _)| sum.count > floor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Weight = Weight { count: 1, hits: 1, bytes: 10 };

    #[test]
    fn few_names_are_counted_exactly() {
        let mut counters = SpaceSaving::new(4);
        for name in [&b"a"[..], b"b", b"a", b"c", b"a", b"b"] {
            counters.add(name, ONE);
        }
        let top: Vec<_> =
            counters.top(2).into_iter().map(|(name, sum, error)| (name, sum.count, error)).collect();
        assert_eq!(top, [(b"a".to_vec(), 3, 0), (b"b".to_vec(), 2, 0)]);
    }

    #[test]
    fn frequent_names_are_found_among_very_many() {
        let (mut counters, mut truth) = (SpaceSaving::new(64), HashMap::<Vec<u8>, u64>::new());
        for number in 0u64..100_000 {
            let name = match number % 10 {
                0..3 => format!("hot-{}", number % 3),
                _ => format!("cold-{number}"),
            };
            counters.add(name.as_bytes(), ONE);
            *truth.entry(name.into_bytes()).or_default() += 1;
            assert!(counters.names.len() <= 128);
        }
        let top = counters.top(3);
        assert!(top.iter().all(|(name, ..)| name.starts_with(b"hot-")), "{top:?}");
        for (name, sum, error) in counters.top(128) {
            let real = truth[&name];
            assert!(sum.count >= real && sum.count - error <= real, "{sum:?} {error} {real}");
        }
    }
}
