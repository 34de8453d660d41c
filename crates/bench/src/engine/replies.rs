//! Reads the replies of a connection under load: counts, times, verifies, and returns the steps that follow.

use super::connection::{Asking, Connection};
use super::ledger::Ledger;
use super::tally::{Ended, Tally};
use crate::wire::{Encoder, Garbage, Reply, Verb, What, Whose};

/// A step that follows a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    /// The key was missed, and is to be stored.
    Store {
        /// Which one.
        key: u64,
        /// Its size, as the get gave it.
        size: u32,
        /// How long it is to live.
        expiry_s: u32,
    },
}

/// Reads replies. Between two calls of [`Self::read`] a reply may be half read; the rest is read
/// later.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    look_aside: bool,
    ledger: &'a Ledger,
    steps: Vec<Then>,
    /// Errors in the server's words, the first few.
    pub said: Vec<String>,
    partial: Vec<Partial>,
}

/// The part of a reply that was read.
#[derive(Clone, Debug, Default)]
struct Partial {
    ended: Ended,
    /// The places of the keys that were found, of a get of several.
    found: Vec<bool>,
    /// Where to look for the next name.
    at: u32,
}

const SAID: usize = 3;

impl<'a> Reader<'a> {
    pub fn new(look_aside: bool, ledger: &'a Ledger, connections: usize) -> Self {
        let partial = vec![Partial::default(); connections];
        Self { look_aside, ledger, steps: Vec::new(), said: Vec::new(), partial }
    }

    /// Returns the next step that follows, if any.
    pub fn next_step(&mut self) -> Option<Then> {
        self.steps.pop()
    }

    /// Reads a connection's replies; returns how many requests were answered to their end.
    pub fn read(
        &mut self,
        index: usize,
        connection: &mut Connection,
        encoder: &Encoder,
        tally: &mut Tally,
        now_ns: u64,
    ) -> Result<usize, Garbage> {
        let Self { look_aside, ledger, steps, said, partial } = self;
        let partial = &mut partial[index];
        let answered = connection.replies(|asking, reply| {
            partial.ended.bytes += reply.consumed as u64;
            match &reply.what {
                What::Value(whose, data) => {
                    partial.ended.hits += 1;
                    let looks_for = *look_aside || ledger.is_on();
                    partial.value(looks_for, asking, whose, data, (encoder, ledger), tally);
                }
                What::Error(words) | What::NotStored(words) => {
                    partial.ended.is_error = true;
                    if said.len() < SAID {
                        said.push(format!("{} answered {}", asking.flight.verb.name(), words.escape_ascii()));
                    }
                }
                What::Done | What::Count(_) if asking.flight.verb != Verb::Set => partial.ended.hits += 1,
                What::Done | What::Count(_) | What::Miss | What::Frame => {}
            }
            if reply.is_last {
                partial.misses(asking, reply, ledger, tally);
                partial.finish(*look_aside, asking, reply, steps);
                ledger.end(asking.flight.key, asking.flight.write, !partial.ended.is_error);
                tally.ended(asking.flight, &partial.ended, now_ns);
                partial.ended = Ended::default();
            }
        })?;
        Ok(answered as usize)
    }
}

impl Partial {
    fn value(
        &mut self,
        looks_for_misses: bool,
        asking: Asking<'_>,
        whose: &Whose<'_>,
        data: &[u8],
        (encoder, ledger): (&Encoder, &Ledger),
        tally: &mut Tally,
    ) {
        let is_to_verify = tally.is_to_verify();
        let several = asking.flight.keys > 1;
        let is_to_find = several && looks_for_misses;
        if !is_to_verify && !is_to_find {
            return;
        }
        let place = match whose {
            Whose::Only => Some(0),
            Whose::Index(index) => Some(*index),
            Whose::Name(name) => encoder.items.number(name).and_then(|key| self.place(asking, key)),
        };
        let key = place.and_then(|place| asking.key(place));
        let (Some(place), Some(key)) = (place, key) else {
            let asked = asking.flight.key;
            return tally
                .wrong(|| format!("a get of key {asked} was answered with a key it did not ask for"));
        };
        if several {
            self.found.resize(asking.flight.keys as usize, false);
            self.found[place as usize] = true;
        }
        if !is_to_verify {
            return;
        }
        match encoder.pool.verify(data, encoder.items.hash(key)) {
            Err(wrong) => tally.wrong(|| format!("the value of key {key}, {} bytes, {wrong}", data.len())),
            Ok(version) => {
                if let Err(stale) = ledger.check(key, asking.floor(place), version, data.len()) {
                    tally.stale(|| format!("the value of key {key}, {} bytes, {stale}", data.len()));
                }
            }
        }
    }

    /// Has the misses of a get explained.
    fn misses(&mut self, asking: Asking<'_>, reply: &Reply<'_>, ledger: &Ledger, tally: &mut Tally) {
        let flight = asking.flight;
        let is_error = matches!(reply.what, What::Error(_)) || self.ended.is_error;
        if flight.verb != Verb::Get || is_error || self.ended.hits >= flight.keys || !ledger.is_on() {
            return;
        }
        self.found.resize(flight.keys as usize, false);
        for place in (0..flight.keys).filter(|place| !self.found[*place as usize]) {
            if let Some(key) = asking.key(place) {
                tally.missed(flight, ledger.miss(key, asking.floor(place)));
            }
        }
    }

    /// The place of a key in the request: servers answer in order, so the search goes on from the last one.
    fn place(&mut self, asking: Asking<'_>, key: u64) -> Option<u32> {
        let keys = asking.flight.keys;
        let mut places = (self.at..keys).chain(0..self.at);
        let place = places.find(|place| asking.key(*place) == Some(key))?;
        self.at = place + 1;
        Some(place)
    }

    fn finish(&mut self, look_aside: bool, asking: Asking<'_>, reply: &Reply<'_>, steps: &mut Vec<Then>) {
        let flight = asking.flight;
        if flight.verb == Verb::Get && !self.ended.is_error {
            self.ended.misses = flight.keys.saturating_sub(self.ended.hits);
            if look_aside && self.ended.misses > 0 {
                self.found.resize(flight.keys as usize, false);
                let missed = (0..flight.keys).filter(|place| !self.found[*place as usize]);
                let store = |key| Then::Store { key, size: flight.size, expiry_s: flight.expiry_s };
                steps.extend(missed.filter_map(|place| asking.key(place)).map(store));
            }
        } else if reply.what == What::Miss {
            self.ended.misses = 1;
        }
        self.found.clear();
        self.at = 0;
    }
}
