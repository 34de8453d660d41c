//! Requests in the exact order that a document's program made them.

use crate::random::{Random, mix};
use crate::wire::Verb;
use crate::workload::trace::{Record, Trace};

/// Sets one key after the other; with `lag`, each set is followed by a get of the key that was set this many
/// sets before (0: the key just set), as soon as there is one.
#[derive(Clone, Debug)]
pub struct SetThenGet {
    /// How many keys.
    pub items: u64,
    /// Bytes of a value.
    pub size: u32,
    /// Seconds that a value lives, from and to.
    pub expiry_s: (u32, u32),
    /// Sets between that of a key and its get.
    pub lag: u64,
}

impl Trace for SetThenGet {
    fn part(&self, thread: usize, threads: usize) -> Box<dyn Iterator<Item = Record> + Send + '_> {
        let span = u64::from(self.expiry_s.1 - self.expiry_s.0) + 1;
        let keys = (thread as u64..self.items).step_by(threads);
        Box::new(keys.flat_map(move |key| {
            let expiry_s = self.expiry_s.0 + (mix(key) % span) as u32;
            let set = Record { at_ns: 0, key, size: self.size, expiry_s, verb: Verb::Set };
            let get =
                key.checked_sub(self.lag).map(|key| Record { key, expiry_s: 0, verb: Verb::Get, ..set });
            [Some(set), get].into_iter().flatten()
        }))
    }

    fn words(&self) -> String {
        let of =
            if self.lag == 0 { "its get".to_string() } else { format!("a get of {} sets before", self.lag) };
        format!("set and then {of}, {} keys of {} B, in order", self.items, self.size)
    }

    fn keys(&self) -> u64 {
        self.items
    }
}

/// Gets of keys in the order in which they were stored, each once; behind the last key comes the first.
#[derive(Clone, Debug)]
pub struct Walk {
    /// The first key.
    pub from: u64,
    /// How many are read.
    pub count: u64,
    /// How many keys there are.
    pub keys: u64,
    /// Bytes of a value.
    pub size: u32,
}

impl Trace for Walk {
    fn part(&self, thread: usize, threads: usize) -> Box<dyn Iterator<Item = Record> + Send + '_> {
        let steps = (thread as u64..self.count).step_by(threads);
        Box::new(steps.map(|step| {
            let key = (self.from + step) % self.keys;
            Record { at_ns: 0, key, size: self.size, expiry_s: 0, verb: Verb::Get }
        }))
    }

    fn words(&self) -> String {
        format!("get {} of {} keys in the order they were stored", self.count, self.keys)
    }

    fn keys(&self) -> u64 {
        self.keys
    }
}

/// All connections draw the same stream of uniform keys, as load generators do that start each connection
/// from one seed: keys that one writes, the others write again. Connections of a thread take the same record
/// each in turn, so that they go through the stream side by side.
#[derive(Clone, Debug)]
pub struct SharedStream {
    /// How many keys.
    pub keys: u64,
    /// Bytes of a value.
    pub size: u32,
    /// Gets for one set.
    pub gets: u64,
    /// Connections of each thread.
    pub connections: usize,
    /// Where the stream begins.
    pub seed: u64,
}

impl Trace for SharedStream {
    fn part(&self, _thread: usize, _threads: usize) -> Box<dyn Iterator<Item = Record> + Send + '_> {
        let mut random = Random::new(self.seed);
        let stream = std::iter::repeat_with(move || {
            let verb = if random.below(self.gets + 1) == 0 { Verb::Set } else { Verb::Get };
            Record { at_ns: 0, key: random.below(self.keys), size: self.size, expiry_s: 0, verb }
        });
        Box::new(stream.flat_map(|record| std::iter::repeat_n(record, self.connections)))
    }

    fn words(&self) -> String {
        let (keys, gets) = (self.keys, self.gets);
        format!(
            "uniform over {keys} keys, {} B, 1 set to {gets} gets, one stream for all connections",
            self.size
        )
    }

    fn keys(&self) -> u64 {
        self.keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_get_follows_its_set() {
        let trace = SetThenGet { items: 3, size: 9, expiry_s: (60, 600), lag: 0 };
        let seen: Vec<_> = trace.part(0, 1).map(|record| (record.verb, record.key)).collect();
        let (s, g) = (Verb::Set, Verb::Get);
        assert_eq!(seen, [(s, 0), (g, 0), (s, 1), (g, 1), (s, 2), (g, 2)]);
        assert!(trace.part(0, 1).all(|r| r.verb == g || (60..=600).contains(&r.expiry_s)));
        let later = SetThenGet { lag: 2, ..trace };
        let seen: Vec<_> = later.part(0, 1).map(|record| (record.verb, record.key)).collect();
        assert_eq!(seen, [(s, 0), (s, 1), (s, 2), (g, 0)]);
    }

    #[test]
    fn all_connections_share_the_stream() {
        let trace = SharedStream { keys: 100, size: 32, gets: 10, connections: 2, seed: 1 };
        let keys = |thread| trace.part(thread, 4).take(200).map(|record| record.key).collect::<Vec<_>>();
        assert_eq!(keys(0), keys(3));
        assert!(keys(0).chunks(2).all(|pair| pair[0] == pair[1]));
        let sets = trace.part(0, 1).take(22_000).filter(|record| record.verb == Verb::Set).count();
        assert!((1800..2200).contains(&sets), "{sets}");
    }

    #[test]
    fn a_walk_ends() {
        let walk = Walk { from: 5, count: 4, keys: 7, size: 1 };
        assert_eq!(walk.part(0, 1).map(|record| record.key).collect::<Vec<_>>(), [5, 6, 0, 1]);
        assert_eq!(walk.part(1, 2).map(|record| record.key).collect::<Vec<_>>(), [6, 1]);
    }
}
