//! What a run knows of the keys it writes: which versions a get may return, and whether it may miss.
//!
//! Writes of a key (sets, deletes, cas) are numbered from 1 in the order in which they are begun, and a value carries
//! its number. Times of writes that overlap say nothing about their order in the server. So a write only
//! replaces those that had been acknowledged before it was begun:
//!
//! ```text
//!   write 4  |-----|
//!   write 5          |------------|            4 had been acknowledged: 5 replaces it
//!   write 6               |-----|              overlaps 5: the server may have either last
//!   get                             |--|       may return 5 or 6; 4 is stale
//! ```
//!
//! The *floor* of a key is the first write that nothing acknowledged has replaced. A get may return no write below the
//! floor at its begin, and none above the last one that was begun when its reply came. It may not miss a key that was
//! stored and not deleted, unless the server evicted it; such a miss is counted once until the key is stored again.
//!
//! A cas names the write that it was begun upon. It may not be stored if that write had been replaced before, nor if
//! another cas upon the same write was stored; it may not be refused if nothing else wrote the key since.
//!
//! An append or a prepend adds a value of its own, with a number of its own, and replaces nothing. A get that returns a
//! value has to return all that was added to it and acknowledged before the get began, each once (see `row`).
//!
//! The bounds are of a process that alone writes its keys. Values of earlier runs are taken as they are until this run
//! has stored the key itself.

mod row;
mod wrong;

pub use wrong::{BadCas, BadRow, Stale};

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Keys from this number on are not followed: 24 bytes are held for each that is, and 20 more in a run that changes
/// values.
pub const KEYS_MAX: u64 = 4 << 20;
/// Locks over the keys.
const STRIPES: u64 = 256;
/// Bytes of a value from which on it carries a version, and from which on the version also tells the run.
const VERSION_BYTES: (usize, usize) = (8, 24);

/// What a run knows of the keys it writes. All threads of a run share one.
#[derive(Debug)]
pub struct Ledger {
    /// In the upper half of every version, with the [`Kind`] in its lowest two bits.
    run: u32,
    keys: u64,
    /// Whether a key that was stored stays until it is evicted: nothing expires.
    is_lasting: bool,
    stripes: Vec<Mutex<Stripe>>,
}

#[derive(Debug)]
struct Stripe {
    entries: Vec<Entry>,
    /// Empty in a run that changes no values.
    changes: Vec<Changes>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// The last write that was begun; 0 before the first.
    begun: u32,
    /// The first write that nothing acknowledged has replaced; 0 while none was acknowledged.
    floor: u32,
    /// The first of the writes that overlap the last one, each directly or over others.
    first: u32,
    /// The last write that may have left nothing: a delete, or a set that was refused.
    removed: u32,
    under_way: u32,
    /// Whether a miss of the stored value was counted.
    is_missed: bool,
}

/// A key's further state in a run with cas, append or prepend.
#[derive(Clone, Copy, Debug, Default)]
struct Changes {
    /// Writes of any kind under way.
    busy: u32,
    /// The last replacing write that was begun.
    replaced_by: u32,
    /// Additions since, that were begun while no replacing write was under way, and acknowledged.
    added: u32,
    /// The write that the last stored cas was begun upon.
    base: u32,
    /// The last cas that was refused.
    refused: u32,
}

/// What a value in a row is, by its version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Base = 0,
    Appended = 1,
    Prepended = 2,
}

/// A write to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// A set.
    Set,
    /// A delete.
    Delete,
    /// A cas upon what a gets returned.
    Cas(Basis),
    /// An append.
    Append,
    /// A prepend.
    Prepend,
}

/// What a cas is begun upon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Basis {
    /// The write that the gets returned; 0 for one that is not followed.
    base: u32,
    /// The last write when the gets began, unless one was under way.
    quiet: Option<u32>,
}

/// The state of a key when a request for it begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Known {
    floor: u32,
    /// The last write that was begun, unless one was under way.
    quiet: Option<u32>,
    /// The last replacing write, and the additions to it that were acknowledged.
    row: (u32, u32),
}

/// A write under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteMark {
    /// Its number; 0 for one that is not followed.
    number: u32,
    /// The first of the writes that it does not replace.
    first: u32,
    effect: Effect,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Effect {
    #[default]
    Replaces,
    /// It replaces what it was begun upon; with the floor at its begin.
    ReplacesIf(Basis, u32),
    /// It adds to this write; 0 for one that is not sure.
    AddsTo(u32),
}

/// How a write ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was acknowledged.
    Done,
    /// It was refused by an error. Servers also remove what a refused set was to replace.
    Refused,
    /// It was not done, since the key was absent or had another unique number.
    Unchanged,
}

/// A miss, as far as the run's own writes explain it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Miss {
    /// The run never stored the key.
    Cold,
    /// The key was deleted, may have expired, or was not acknowledged yet.
    Expected,
    /// The key was stored and is not there: the server evicted or lost it.
    Lost,
    /// The same key was missed before.
    Again,
}

impl Ledger {
    /// A ledger of `keys` keys for a run that is told from others by `run`, but for its two lowest bits; `is_lasting`
    /// when nothing expires, and `has_changes` when values are changed by cas, append or prepend.
    pub fn new(run: u32, keys: u64, is_lasting: bool, has_changes: bool) -> Self {
        let keys = keys.min(KEYS_MAX);
        let each = keys.div_ceil(STRIPES) as usize;
        let stripe = |_| {
            let changes = if has_changes { each } else { 0 };
            let entries = vec![Entry::default(); each];
            Mutex::new(Stripe { entries, changes: vec![Changes::default(); changes] })
        };
        Self { run: run & !3, keys, is_lasting, stripes: (0..STRIPES).map(stripe).collect() }
    }

    /// A ledger that follows no key.
    pub fn off() -> Self {
        Self { run: 0, keys: 0, is_lasting: false, stripes: Vec::new() }
    }

    /// Whether it follows any key.
    pub fn is_on(&self) -> bool {
        self.keys > 0
    }

    /// The entry of a key that is followed; its stripe is locked meanwhile.
    fn entry<T>(&self, key: u64, look: impl FnOnce(&mut Entry, &mut Changes) -> T) -> Option<T> {
        if key >= self.keys {
            return None;
        }
        let stripe = self.stripes.get((key % STRIPES) as usize)?;
        let mut stripe: MutexGuard<'_, _> = stripe.lock().unwrap_or_else(PoisonError::into_inner);
        let Stripe { entries, changes } = &mut *stripe;
        let at = (key / STRIPES) as usize;
        let mut unused = Changes::default();
        entries.get_mut(at).map(|entry| look(entry, changes.get_mut(at).unwrap_or(&mut unused)))
    }

    /// Begins a write of a key: call it before the first byte is sent. Returns the write, and the version that its
    /// value is to carry; none for a key that is not followed.
    pub fn begin(&self, key: u64, write: Write) -> Option<(WriteMark, u64)> {
        let mark = self.entry(key, |entry, changes| {
            entry.begun += 1;
            changes.busy += 1;
            let number = entry.begun;
            if matches!(write, Write::Append | Write::Prepend) {
                let base = if entry.under_way == 0 { changes.replaced_by } else { 0 };
                return WriteMark { number, first: 0, effect: Effect::AddsTo(base) };
            }
            if entry.under_way == 0 {
                entry.first = number;
            }
            entry.under_way += 1;
            (changes.replaced_by, changes.added) = (number, 0);
            if write == Write::Delete {
                entry.removed = number;
            }
            let effect = match write {
                Write::Cas(basis) => Effect::ReplacesIf(basis, entry.floor),
                _ => Effect::Replaces,
            };
            WriteMark { number, first: entry.first, effect }
        })?;
        let kind = match write {
            Write::Append => Kind::Appended,
            Write::Prepend => Kind::Prepended,
            Write::Set | Write::Delete | Write::Cas(_) => Kind::Base,
        };
        Some((mark, u64::from(self.run | kind as u32) << 32 | u64::from(mark.number)))
    }

    /// Ends a write: call it when its reply was read.
    ///
    /// # Errors
    /// A server that keeps the rules of cas could not have answered so.
    pub fn end(&self, key: u64, write: WriteMark, outcome: Outcome) -> Result<(), BadCas> {
        if write.number == 0 {
            return Ok(());
        }
        let ended = self.entry(key, |entry, changes| {
            changes.busy = changes.busy.saturating_sub(1);
            if outcome == Outcome::Refused {
                entry.removed = entry.removed.max(write.number);
            }
            if let Effect::AddsTo(base) = write.effect {
                let is_sure = outcome == Outcome::Done && base != 0 && base == changes.replaced_by;
                changes.added += u32::from(is_sure);
                return Ok(());
            }
            entry.under_way = entry.under_way.saturating_sub(1);
            match outcome {
                Outcome::Done => {
                    entry.floor = entry.floor.max(write.first);
                    entry.is_missed = false;
                }
                Outcome::Refused => {}
                Outcome::Unchanged => changes.refused = write.number,
            }
            match write.effect {
                Effect::ReplacesIf(basis, floor) => changes.end_cas(basis, floor, outcome),
                Effect::Replaces | Effect::AddsTo(_) => Ok(()),
            }
        });
        ended.unwrap_or(Ok(()))
    }

    /// A cas was refused since the key has another unique number.
    ///
    /// # Errors
    /// Nothing else wrote the key since it was read.
    pub fn conflict(&self, key: u64, write: WriteMark) -> Result<(), BadCas> {
        let Effect::ReplacesIf(Basis { quiet: Some(last), .. }, _) = write.effect else { return Ok(()) };
        let begun = self.entry(key, |entry, _| entry.begun);
        if begun == Some(write.number) && write.number == last + 1 { Err(BadCas::Needless) } else { Ok(()) }
    }

    /// Returns what is known of a key: ask before the first byte of a request for it is sent.
    pub fn known(&self, key: u64) -> Known {
        let known = self.entry(key, |entry, changes| Known {
            floor: entry.floor,
            quiet: (changes.busy == 0).then_some(entry.begun),
            row: (changes.replaced_by, changes.added),
        });
        known.unwrap_or_default()
    }

    /// Whether a write of a key was acknowledged.
    pub fn is_written(&self, key: u64) -> bool {
        self.known(key).floor > 0
    }

    /// Returns what a cas is begun upon, of a gets that returned `version` in a value of `bytes` bytes.
    pub fn basis(&self, known: Known, version: Option<u64>, bytes: usize) -> Basis {
        let ours = version.filter(|version| bytes >= VERSION_BYTES.1 && self.is_ours(*version));
        Basis { base: ours.unwrap_or(0) as u32, quiet: known.quiet }
    }

    /// Returns the version of what a set or a cas stored, of the versions in a value.
    pub fn base_of(&self, versions: &[u64]) -> Option<u64> {
        let is_base = |version: &&u64| (**version >> 32) as u32 & 3 == Kind::Base as u32;
        versions.iter().find(is_base).copied()
    }

    /// Whether this run made a version, and not an earlier one.
    pub fn is_ours(&self, version: u64) -> bool {
        (version >> 32) as u32 & !3 == self.run
    }

    /// Checks the version of a value of `bytes` bytes that a get returned, before which `known` was known.
    ///
    /// # Errors
    /// The get may not return it.
    pub fn check(&self, key: u64, known: Known, version: u64, bytes: usize) -> Result<(), Stale> {
        if bytes < VERSION_BYTES.0 || key >= self.keys {
            return Ok(());
        }
        let is_ours = bytes < VERSION_BYTES.1 || self.is_ours(version);
        let write = version as u32;
        match (is_ours, known.floor) {
            (false, 0) => return Ok(()),
            (false, _) => return Err(Stale::OtherRun),
            // A short value of an earlier run looks like any other.
            (true, 0) if bytes < VERSION_BYTES.1 => return Ok(()),
            (true, floor) if write < floor => return Err(Stale::Replaced(write, floor)),
            (true, _) => {}
        }
        match self.entry(key, |entry, changes| (entry.begun, changes.refused)).unwrap_or_default() {
            (begun, _) if write > begun => Err(Stale::Unwritten(write)),
            (_, refused) if write == refused => Err(Stale::Refused(write)),
            _ => Ok(()),
        }
    }

    /// Explains a miss of a request before which `known` was known.
    pub fn miss(&self, key: u64, known: Known) -> Miss {
        let floor = known.floor;
        let explained = self.entry(key, |entry, _| match floor {
            0 if entry.begun == 0 => Miss::Cold,
            0 => Miss::Expected,
            _ if !self.is_lasting || entry.removed >= floor => Miss::Expected,
            // A write that was acknowledged meanwhile is no reason to count the miss before it twice.
            _ if entry.is_missed || entry.floor != floor => Miss::Again,
            _ => {
                entry.is_missed = true;
                Miss::Lost
            }
        });
        explained.unwrap_or(Miss::Expected)
    }
}

impl Changes {
    fn end_cas(&mut self, basis: Basis, floor: u32, outcome: Outcome) -> Result<(), BadCas> {
        let base = basis.base;
        if outcome != Outcome::Done || base == 0 {
            return Ok(());
        }
        let is_again = self.base == base;
        self.base = base;
        match () {
            () if base < floor => Err(BadCas::Replaced(base, floor)),
            () if is_again => Err(BadCas::Again(base)),
            () => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: u32 = 8;

    fn ledger() -> Ledger {
        Ledger::new(RUN, 10, true, true)
    }

    fn version(write: u32) -> u64 {
        u64::from(RUN) << 32 | u64::from(write)
    }

    fn begin(ledger: &Ledger) -> WriteMark {
        ledger.begin(3, Write::Set).expect("it is followed").0
    }

    fn stored(ledger: &Ledger) -> u32 {
        let write = begin(ledger);
        end(ledger, write, Outcome::Done);
        write.number
    }

    fn end(ledger: &Ledger, write: WriteMark, outcome: Outcome) {
        ledger.end(3, write, outcome).expect("it is right");
    }

    #[test]
    fn what_an_acknowledged_set_replaced_is_stale() {
        let ledger = ledger();
        let (old, new) = (stored(&ledger), stored(&ledger));
        let floor = ledger.known(3);
        assert_eq!(ledger.check(3, floor, version(old), 100), Err(Stale::Replaced(old, new)));
        assert_eq!(ledger.check(3, floor, version(new), 100), Ok(()));
        assert_eq!(ledger.check(3, floor, version(new + 1), 100), Err(Stale::Unwritten(new + 1)));
        // A short value has a number and no run.
        assert_eq!(ledger.check(3, floor, u64::from(old), 10), Err(Stale::Replaced(old, new)));
    }

    #[test]
    fn sets_that_overlap_may_end_in_either_order() {
        let ledger = ledger();
        let old = stored(&ledger);
        let (a, b) = (begin(&ledger), begin(&ledger));
        end(&ledger, b, Outcome::Done);
        let floor = ledger.known(3);
        assert!(ledger.check(3, floor, version(a.number), 100).is_ok());
        assert!(ledger.check(3, floor, version(b.number), 100).is_ok());
        assert!(ledger.check(3, floor, version(old), 100).is_err());
        end(&ledger, a, Outcome::Done);
        assert!(ledger.check(3, ledger.known(3), version(a.number), 100).is_ok());
    }

    #[test]
    fn a_get_that_began_before_the_acknowledgement_may_return_what_it_replaced() {
        let ledger = ledger();
        let old = stored(&ledger);
        let floor = ledger.known(3);
        stored(&ledger);
        assert_eq!(ledger.check(3, floor, version(old), 100), Ok(()));
    }

    #[test]
    fn a_value_of_an_earlier_run_is_right_until_the_first_set() {
        let ledger = ledger();
        let other = u64::from(RUN + 4) << 32 | 5;
        assert_eq!(ledger.check(3, ledger.known(3), other, 100), Ok(()));
        stored(&ledger);
        assert_eq!(ledger.check(3, ledger.known(3), other, 100), Err(Stale::OtherRun));
    }

    #[test]
    fn a_refused_set_replaces_nothing() {
        let ledger = ledger();
        let old = stored(&ledger);
        end(&ledger, begin(&ledger), Outcome::Refused);
        assert_eq!(ledger.check(3, ledger.known(3), version(old), 100), Ok(()));
        assert_eq!(ledger.miss(3, ledger.known(3)), Miss::Expected);
    }

    #[test]
    fn a_miss_of_what_was_stored_is_counted_once() {
        let ledger = ledger();
        assert_eq!(ledger.miss(3, Known::default()), Miss::Cold);
        let before = ledger.known(3);
        stored(&ledger);
        assert_eq!(ledger.miss(3, before), Miss::Expected);
        let floor = ledger.known(3);
        assert_eq!((ledger.miss(3, floor), ledger.miss(3, floor)), (Miss::Lost, Miss::Again));
        stored(&ledger);
        assert_eq!(ledger.miss(3, floor), Miss::Again);
        assert_eq!(ledger.miss(3, ledger.known(3)), Miss::Lost);
    }

    #[test]
    fn a_deleted_key_may_be_missed_and_its_value_may_not_come_back() {
        let ledger = ledger();
        let old = stored(&ledger);
        let at_begin = ledger.known(3);
        let (delete, _) = ledger.begin(3, Write::Delete).expect("it is followed");
        assert_eq!(ledger.miss(3, at_begin), Miss::Expected);
        end(&ledger, delete, Outcome::Done);
        assert_eq!(ledger.miss(3, ledger.known(3)), Miss::Expected);
        assert!(ledger.check(3, ledger.known(3), version(old), 100).is_err());
        stored(&ledger);
        assert_eq!(ledger.miss(3, ledger.known(3)), Miss::Lost);
    }

    #[test]
    fn keys_beyond_the_bound_are_not_followed() {
        let ledger = ledger();
        assert_eq!(ledger.begin(10, Write::Set), None);
        assert_eq!((ledger.known(10), ledger.miss(10, Known::default())), (Known::default(), Miss::Expected));
        assert!(!Ledger::off().is_on() && Ledger::off().begin(0, Write::Set).is_none());
    }

    /// A cas upon a write that a gets returned, before which `known` was known.
    fn begin_cas(ledger: &Ledger, known: Known, read: u32) -> WriteMark {
        let basis = ledger.basis(known, Some(version(read)), 100);
        ledger.begin(3, Write::Cas(basis)).expect("it is followed").0
    }

    #[test]
    fn a_cas_upon_what_was_replaced_may_not_be_stored() {
        let ledger = ledger();
        let (known, old) = (ledger.known(3), stored(&ledger));
        let new = stored(&ledger);
        let late = begin_cas(&ledger, known, old);
        assert_eq!(ledger.end(3, late, Outcome::Done), Err(BadCas::Replaced(old, new)));
    }

    #[test]
    fn of_two_cas_upon_one_write_one_is_stored() {
        let ledger = ledger();
        let base = stored(&ledger);
        let known = ledger.known(3);
        let (a, b) = (begin_cas(&ledger, known, base), begin_cas(&ledger, known, base));
        assert_eq!(ledger.end(3, b, Outcome::Done), Ok(()));
        assert_eq!(ledger.conflict(3, a), Ok(()));
        assert_eq!(ledger.end(3, a, Outcome::Done), Err(BadCas::Again(base)));
    }

    #[test]
    fn a_refused_cas_is_never_read_and_needs_another_writer() {
        let ledger = ledger();
        let base = stored(&ledger);
        let cas = begin_cas(&ledger, ledger.known(3), base);
        assert_eq!(ledger.conflict(3, cas), Err(BadCas::Needless));
        end(&ledger, cas, Outcome::Unchanged);
        let known = ledger.known(3);
        assert_eq!(ledger.check(3, known, version(cas.number), 100), Err(Stale::Refused(cas.number)));
        assert_eq!(ledger.check(3, known, version(base), 100), Ok(()));
        // A set that was under way when the value was read may be what the cas met.
        let set = begin(&ledger);
        let known = ledger.known(3);
        end(&ledger, set, Outcome::Done);
        let cas = begin_cas(&ledger, known, base);
        assert_eq!(ledger.conflict(3, cas), Ok(()));
    }
}
