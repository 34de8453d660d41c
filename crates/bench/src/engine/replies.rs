//! Reads the replies of a connection under load: counts, times, verifies, and returns the steps that follow.

use super::connection::{Asking, Connection};
use super::ledger::{BadRow, Basis, Known, Ledger, Outcome};
use super::split::Split;
use super::tally::{Ended, Tally};
use crate::wire::{Encoder, Garbage, Reply, Verb, What, Whose};
use crate::workload::Workload;

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
    /// The key was read, and is to be replaced if it is still the same.
    Cas {
        /// Which one.
        key: u64,
        /// The size of its new value.
        size: u32,
        /// How long that is to live.
        expiry_s: u32,
        /// The number that was read.
        unique: u64,
        /// What was read.
        basis: Basis,
    },
}

/// Reads replies. Between two calls of [`Self::read`] a reply may be half read; the rest is read
/// later.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    rules: Rules<'a>,
    steps: Vec<Then>,
    /// Errors in the server's words, the first few.
    pub said: Vec<String>,
    partial: Vec<Partial>,
    split: Split,
}

/// What the replies of a run are held against.
#[derive(Debug)]
struct Rules<'a> {
    look_aside: bool,
    /// Whether a value may have others in front and behind.
    has_additions: bool,
    ledger: &'a Ledger,
}

/// The part of a reply that was read.
#[derive(Clone, Debug, Default)]
struct Partial {
    ended: Ended,
    /// The places of the keys that were found, of a get of several.
    found: Vec<bool>,
    /// Where to look for the next name.
    at: u32,
    /// The versions in a value; kept to spare the allocation.
    versions: Vec<u64>,
}

const SAID: usize = 3;

impl<'a> Reader<'a> {
    pub fn new(workload: &Workload, ledger: &'a Ledger, connections: usize) -> Self {
        let has_additions = workload.mix.has(Verb::is_addition);
        let rules = Rules { look_aside: workload.look_aside, has_additions, ledger };
        let partial = vec![Partial::default(); connections];
        Self { rules, steps: Vec::new(), said: Vec::new(), partial, split: Split::default() }
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
        let Self { rules, steps, said, partial, split } = self;
        let partial = &mut partial[index];
        let answered = connection.replies(|asking, reply| {
            partial.ended.bytes += reply.consumed as u64;
            match &reply.what {
                What::Value(whose, data, flags) => {
                    partial.ended.hits += 1;
                    partial.value(asking, whose, (data, *flags), (encoder, rules), tally);
                }
                What::Unique(whose, data, flags, unique) => {
                    partial.ended.hits += 1;
                    let version = partial.value(asking, whose, (data, *flags), (encoder, rules), tally);
                    let basis = rules.ledger.basis(asking.flight.known, version, data.len());
                    steps.push(cas_of(asking, *unique, basis));
                }
                What::Error(words) | What::NotStored(words) => {
                    partial.ended.is_error = true;
                    if said.len() < SAID {
                        said.push(format!("{} answered {}", asking.flight.verb.name(), words.escape_ascii()));
                    }
                }
                What::Done if asking.flight.verb == Verb::Set && asking.flight.keys > 1 => {
                    partial.ended.hits = if partial.ended.is_error { 0 } else { asking.flight.keys };
                }
                What::Done | What::Count(_) if asking.flight.verb != Verb::Set => partial.ended.hits += 1,
                What::Done | What::Count(_) | What::Miss | What::Exists | What::Frame => {}
            }
            if reply.is_last {
                partial.misses(asking, reply, rules.ledger, tally);
                partial.finish(rules.look_aside, asking, reply, steps);
                end_writes(asking, reply, partial.ended.is_error, rules.ledger, tally);
                split.ended(asking.flight, &partial.ended, tally, now_ns);
                partial.ended = Ended::default();
            }
        })?;
        Ok(answered as usize)
    }
}

/// The cas that follows a gets.
fn cas_of(asking: Asking<'_>, unique: u64, basis: Basis) -> Then {
    let flight = asking.flight;
    Then::Cas { key: flight.key, size: flight.size, expiry_s: flight.expiry_s, unique, basis }
}

/// Has the writes of a request ended in the ledger, and counts an answer that no server may give.
fn end_writes(asking: Asking<'_>, reply: &Reply<'_>, is_error: bool, ledger: &Ledger, tally: &mut Tally) {
    let outcome = match reply.what {
        _ if is_error => Outcome::Refused,
        What::Exists => Outcome::Unchanged,
        What::Miss if asking.flight.verb.is_change() => Outcome::Unchanged,
        _ => Outcome::Done,
    };
    for (key, write) in asking.writes() {
        let conflict = if reply.what == What::Exists { ledger.conflict(key, write) } else { Ok(()) };
        if let Err(bad) = ledger.end(key, write, outcome).and(conflict) {
            tally.wrong(|| format!("the cas of key {key} {bad}"));
        }
    }
}

impl Partial {
    /// Verifies a value if it is its turn, and returns its version.
    fn value(
        &mut self,
        asking: Asking<'_>,
        whose: &Whose<'_>,
        value: (&[u8], Option<u32>),
        (encoder, rules): (&Encoder, &Rules<'_>),
        tally: &mut Tally,
    ) -> Option<u64> {
        let is_to_verify = tally.is_to_verify();
        let several = asking.flight.keys > 1;
        let is_to_find = several && (rules.look_aside || rules.ledger.is_on());
        if !is_to_verify && !is_to_find {
            return None;
        }
        let place = match whose {
            Whose::Only => Some(0),
            Whose::Index(index) => Some(*index),
            Whose::Name(name) => encoder.items.number(name).and_then(|key| self.place(asking, key)),
        };
        let key = place.and_then(|place| asking.key(place));
        let (Some(place), Some(key)) = (place, key) else {
            let asked = asking.flight.key;
            tally.wrong(|| format!("a get of key {asked} was answered with a key it did not ask for"));
            return None;
        };
        if several {
            self.found.resize(asking.flight.keys as usize, false);
            self.found[place as usize] = true;
        }
        if !is_to_verify {
            return None;
        }
        self.verify((key, asking.known(place)), value, (encoder, rules), tally)
    }

    /// Verifies the value of a key, and returns the version of what a set or cas stored there.
    fn verify(
        &mut self,
        (key, known): (u64, Known),
        (data, flags): (&[u8], Option<u32>),
        (encoder, rules): (&Encoder, &Rules<'_>),
        tally: &mut Tally,
    ) -> Option<u64> {
        let hash = encoder.items.hash(key);
        self.versions.clear();
        let verified = if rules.has_additions {
            encoder.pool.verify_row(data, hash, |version| self.versions.push(version))
        } else {
            let whole = encoder.pool.verify(data, hash).map(|version| self.versions.push(version));
            whole.or_else(|wrong| self.of_an_earlier_run(data, hash, (encoder, rules)).ok_or(wrong))
        };
        let told = format_args!("the value of key {key}, {} bytes,", data.len());
        if let Err(wrong) = verified {
            tally.wrong(|| format!("{told} {wrong}"));
            return None;
        }
        let stored = encoder.items.flags(key);
        if let Some(found) = flags.filter(|flags| *flags != stored) {
            tally.wrong(|| format!("{told} has the client flags {found}, and was stored with {stored}"));
            return None;
        }
        let checked = if rules.has_additions {
            rules.ledger.check_row(key, known, &self.versions, data.len())
        } else {
            let version = self.versions.first().copied().unwrap_or(0);
            rules.ledger.check(key, known, version, data.len()).map_err(BadRow::Stale)
        };
        match checked {
            Ok(()) => {}
            Err(BadRow::Stale(stale)) => tally.stale(|| format!("{told} {stale}")),
            Err(bad) => tally.wrong(|| format!("{told} {bad}")),
        }
        rules.ledger.base_of(&self.versions)
    }

    /// Whether a value is what an earlier run stored and added to, while this one adds to none.
    fn of_an_earlier_run(
        &mut self,
        data: &[u8],
        hash: u64,
        (encoder, rules): (&Encoder, &Rules<'_>),
    ) -> Option<()> {
        self.versions.clear();
        let found = encoder.pool.verify_row(data, hash, |version| self.versions.push(version));
        let is_earlier = found.is_ok() && !self.versions.iter().any(|version| rules.ledger.is_ours(*version));
        is_earlier.then_some(())
    }

    /// Has the misses of a get, or of a change of a value, explained.
    fn misses(&mut self, asking: Asking<'_>, reply: &Reply<'_>, ledger: &Ledger, tally: &mut Tally) {
        let flight = asking.flight;
        let is_error = matches!(reply.what, What::Error(_)) || self.ended.is_error;
        let looks = flight.verb.is_read() || flight.verb.is_change() && reply.what == What::Miss;
        if !looks || is_error || self.ended.hits >= flight.keys || !ledger.is_on() {
            return;
        }
        self.found.resize(flight.keys as usize, false);
        for place in (0..flight.keys).filter(|place| !self.found[*place as usize]) {
            if let Some(key) = asking.key(place) {
                tally.missed(flight, ledger.miss(key, asking.known(place)));
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
        if flight.verb.is_read() && !self.ended.is_error {
            self.ended.misses = flight.keys.saturating_sub(self.ended.hits);
            if look_aside && self.ended.misses > 0 {
                self.found.resize(flight.keys as usize, false);
                let missed = (0..flight.keys).filter(|place| !self.found[*place as usize]);
                let store = |key| Then::Store { key, size: flight.size, expiry_s: flight.expiry_s };
                steps.extend(missed.filter_map(|place| asking.key(place)).map(store));
            }
        } else if matches!(reply.what, What::Miss | What::Exists) {
            self.ended.misses = 1;
        }
        self.found.clear();
        self.at = 0;
    }
}
