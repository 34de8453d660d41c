//! The next request of a connection.

use super::Workload;
use super::pattern::Picker;
use super::verb::Verb;
use crate::random::Random;

/// A request that was drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The verb.
    pub verb: Verb,
    /// Its key, or the first of several.
    pub key: u64,
    /// The size of the value, for a set, a cas and the gets before it; of the addition, for an append or a prepend.
    pub size: u32,
    /// The expiry, for a set, a touch or a gat.
    pub expiry_s: u32,
}

/// The state that the connections of a thread share.
#[derive(Clone, Debug)]
pub struct Shared {
    workload: Workload,
    picker: Picker,
    /// The place of the thread's walk over the keys.
    next: u64,
}

impl Shared {
    /// Of thread `thread` of `threads`: walks begin apart, so that together they meet every key.
    pub fn new(workload: &Workload, thread: usize, threads: usize) -> Self {
        let next = (u128::from(workload.keys) * thread as u128 / threads.max(1) as u128) as u64;
        let picker = Picker::new(&workload.pattern, workload.keys);
        Self { workload: workload.clone(), picker, next }
    }

    /// The workload behind it.
    pub fn workload(&self) -> &Workload {
        &self.workload
    }
}

/// One connection's stream of requests.
#[derive(Clone, Debug)]
pub struct Draw {
    random: Random,
}

impl Draw {
    /// From a random stream of its own.
    pub fn new(random: Random) -> Self {
        Self { random }
    }

    /// The next request.
    pub fn next(&mut self, shared: &mut Shared) -> Asked {
        let verb = shared.workload.mix.draw(&mut self.random);
        let key = shared.picker.pick(&mut self.random, &mut shared.next, verb == Verb::Set);
        match verb {
            Verb::Set => self.set(shared, key),
            // It begins by reading what it is to replace.
            Verb::Cas => Asked { verb: Verb::Gets, ..self.set(shared, key) },
            Verb::Append | Verb::Prepend => Asked { verb, expiry_s: 0, ..self.set(shared, key) },
            Verb::Touch | Verb::Gat => Asked { verb, key, size: 0, expiry_s: self.expiry_s(shared) },
            Verb::Get | Verb::Gets | Verb::Incr | Verb::Delete | Verb::Connect => {
                Asked { verb, key, size: 0, expiry_s: 0 }
            }
        }
    }

    /// One more key of a get of several, or of sets in a row.
    pub fn another_key(&mut self, shared: &mut Shared, is_set: bool) -> u64 {
        shared.picker.pick(&mut self.random, &mut shared.next, is_set)
    }

    /// A set of a key.
    pub fn set(&mut self, shared: &Shared, key: u64) -> Asked {
        let size = shared.workload.sizes.of(key);
        Asked { verb: Verb::Set, key, size, expiry_s: self.expiry_s(shared) }
    }

    fn expiry_s(&mut self, shared: &Shared) -> u32 {
        let (from, to) = shared.workload.expiry_s;
        if from == to { from } else { from + self.random.below(u64::from(to - from) + 1) as u32 }
    }
}
