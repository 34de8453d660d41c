//! What a run knows of the keys it writes: which versions a get may return, and whether it may miss.
//!
//! Writes of a key (sets and deletes) are numbered from 1 in the order in which they are begun, and a value carries
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
//! The bounds are of a process that alone writes its keys. Values of earlier runs are taken as they are until this run
//! has stored the key itself.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Keys from this number on are not followed: 24 bytes are held for each that is.
pub const KEYS_MAX: u64 = 4 << 20;
/// Locks over the keys.
const STRIPES: u64 = 256;
/// Bytes of a value from which on it carries a version, and from which on the version also tells the run.
const VERSION_BYTES: (usize, usize) = (8, 24);

/// What a run knows of the keys it writes. All threads of a run share one.
#[derive(Debug)]
pub struct Ledger {
    /// In the upper half of every version.
    run: u32,
    keys: u64,
    /// Whether a key that was stored stays until it is evicted: nothing expires.
    is_lasting: bool,
    stripes: Vec<Mutex<Vec<Entry>>>,
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

/// A write under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteMark {
    /// Its number; 0 for one that is not followed.
    number: u32,
    /// The first of the writes that it does not replace.
    first: u32,
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

/// Why a value is not one that a get may return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stale {
    /// It is this write, and this later one had replaced it before the get began.
    Replaced(u32, u32),
    /// It is of another run, although this run's set had been acknowledged before the get began.
    OtherRun,
    /// It is this write, which was not begun yet.
    Unwritten(u32),
}

impl fmt::Display for Stale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Replaced(write, by) => {
                write!(
                    f,
                    "is stale: write {write} of the key, and {by} was acknowledged before the get began"
                )
            }
            Self::OtherRun => {
                write!(
                    f,
                    "is of another run or writer, and a set of this run was acknowledged before the get began"
                )
            }
            Self::Unwritten(write) => write!(f, "is write {write} of the key, which was not sent yet"),
        }
    }
}

impl Ledger {
    /// A ledger of `keys` keys for a run that is told from others by `run`; `is_lasting` when nothing expires.
    pub fn new(run: u32, keys: u64, is_lasting: bool) -> Self {
        let keys = keys.min(KEYS_MAX);
        let stripe = |_| Mutex::new(vec![Entry::default(); keys.div_ceil(STRIPES) as usize]);
        Self { run, keys, is_lasting, stripes: (0..STRIPES).map(stripe).collect() }
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
    fn entry<T>(&self, key: u64, look: impl FnOnce(&mut Entry) -> T) -> Option<T> {
        if key >= self.keys {
            return None;
        }
        let stripe = self.stripes.get((key % STRIPES) as usize)?;
        let mut stripe: MutexGuard<'_, _> = stripe.lock().unwrap_or_else(PoisonError::into_inner);
        stripe.get_mut((key / STRIPES) as usize).map(look)
    }

    /// Begins a write of a key: call it before the first byte is sent. Returns the write, and the version that its
    /// value is to carry; none for a key that is not followed.
    pub fn begin(&self, key: u64, is_delete: bool) -> Option<(WriteMark, u64)> {
        let write = self.entry(key, |entry| {
            entry.begun += 1;
            if entry.under_way == 0 {
                entry.first = entry.begun;
            }
            entry.under_way += 1;
            if is_delete {
                entry.removed = entry.begun;
            }
            WriteMark { number: entry.begun, first: entry.first }
        })?;
        Some((write, u64::from(self.run) << 32 | u64::from(write.number)))
    }

    /// Ends a write: call it when its reply was read. `is_done` is whether it was acknowledged, and not refused.
    pub fn end(&self, key: u64, write: WriteMark, is_done: bool) {
        if write.number == 0 {
            return;
        }
        self.entry(key, |entry| {
            entry.under_way = entry.under_way.saturating_sub(1);
            if is_done {
                entry.floor = entry.floor.max(write.first);
                entry.is_missed = false;
            } else {
                // Servers also remove what a refused set was to replace.
                entry.removed = entry.removed.max(write.number);
            }
        });
    }

    /// The floor of a key: ask before the first byte of a get is sent.
    pub fn floor(&self, key: u64) -> u32 {
        self.entry(key, |entry| entry.floor).unwrap_or(0)
    }

    /// Checks the version of a value of `bytes` bytes that a get returned, which began when the key's floor was
    /// `floor`.
    ///
    /// # Errors
    /// The get may not return it.
    pub fn check(&self, key: u64, floor: u32, version: u64, bytes: usize) -> Result<(), Stale> {
        if bytes < VERSION_BYTES.0 || key >= self.keys {
            return Ok(());
        }
        let is_ours = bytes < VERSION_BYTES.1 || version >> 32 == u64::from(self.run);
        let write = version as u32;
        match (is_ours, floor) {
            (false, 0) => return Ok(()),
            (false, _) => return Err(Stale::OtherRun),
            // A short value of an earlier run looks like any other.
            (true, 0) if bytes < VERSION_BYTES.1 => return Ok(()),
            (true, _) if write < floor => return Err(Stale::Replaced(write, floor)),
            (true, _) => {}
        }
        match self.entry(key, |entry| entry.begun).unwrap_or(0) {
            begun if write > begun => Err(Stale::Unwritten(write)),
            _ => Ok(()),
        }
    }

    /// Explains a miss of a get that began when the key's floor was `floor`.
    pub fn miss(&self, key: u64, floor: u32) -> Miss {
        let explained = self.entry(key, |entry| match floor {
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

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: u32 = 7;

    fn ledger() -> Ledger {
        Ledger::new(RUN, 10, true)
    }

    fn version(write: u32) -> u64 {
        u64::from(RUN) << 32 | u64::from(write)
    }

    fn begin(ledger: &Ledger) -> WriteMark {
        ledger.begin(3, false).expect("it is followed").0
    }

    fn stored(ledger: &Ledger) -> u32 {
        let write = begin(ledger);
        ledger.end(3, write, true);
        write.number
    }

    #[test]
    fn what_an_acknowledged_set_replaced_is_stale() {
        let ledger = ledger();
        let (old, new) = (stored(&ledger), stored(&ledger));
        let floor = ledger.floor(3);
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
        ledger.end(3, b, true);
        let floor = ledger.floor(3);
        assert!(ledger.check(3, floor, version(a.number), 100).is_ok());
        assert!(ledger.check(3, floor, version(b.number), 100).is_ok());
        assert!(ledger.check(3, floor, version(old), 100).is_err());
        ledger.end(3, a, true);
        assert!(ledger.check(3, ledger.floor(3), version(a.number), 100).is_ok());
    }

    #[test]
    fn a_get_that_began_before_the_acknowledgement_may_return_what_it_replaced() {
        let ledger = ledger();
        let old = stored(&ledger);
        let floor = ledger.floor(3);
        stored(&ledger);
        assert_eq!(ledger.check(3, floor, version(old), 100), Ok(()));
    }

    #[test]
    fn a_value_of_an_earlier_run_is_right_until_the_first_set() {
        let ledger = ledger();
        let other = u64::from(RUN + 1) << 32 | 5;
        assert_eq!(ledger.check(3, ledger.floor(3), other, 100), Ok(()));
        stored(&ledger);
        assert_eq!(ledger.check(3, ledger.floor(3), other, 100), Err(Stale::OtherRun));
    }

    #[test]
    fn a_refused_set_replaces_nothing() {
        let ledger = ledger();
        let old = stored(&ledger);
        ledger.end(3, begin(&ledger), false);
        assert_eq!(ledger.check(3, ledger.floor(3), version(old), 100), Ok(()));
        assert_eq!(ledger.miss(3, ledger.floor(3)), Miss::Expected);
    }

    #[test]
    fn a_miss_of_what_was_stored_is_counted_once() {
        let ledger = ledger();
        assert_eq!(ledger.miss(3, 0), Miss::Cold);
        let before = ledger.floor(3);
        stored(&ledger);
        assert_eq!(ledger.miss(3, before), Miss::Expected);
        let floor = ledger.floor(3);
        assert_eq!((ledger.miss(3, floor), ledger.miss(3, floor)), (Miss::Lost, Miss::Again));
        stored(&ledger);
        assert_eq!(ledger.miss(3, floor), Miss::Again);
        assert_eq!(ledger.miss(3, ledger.floor(3)), Miss::Lost);
    }

    #[test]
    fn a_deleted_key_may_be_missed_and_its_value_may_not_come_back() {
        let ledger = ledger();
        let old = stored(&ledger);
        let at_begin = ledger.floor(3);
        let (delete, _) = ledger.begin(3, true).expect("it is followed");
        assert_eq!(ledger.miss(3, at_begin), Miss::Expected);
        ledger.end(3, delete, true);
        assert_eq!(ledger.miss(3, ledger.floor(3)), Miss::Expected);
        assert!(ledger.check(3, ledger.floor(3), version(old), 100).is_err());
        stored(&ledger);
        assert_eq!(ledger.miss(3, ledger.floor(3)), Miss::Lost);
    }

    #[test]
    fn keys_beyond_the_bound_are_not_followed() {
        let ledger = ledger();
        assert_eq!(ledger.begin(10, false), None);
        assert_eq!((ledger.floor(10), ledger.miss(10, 0)), (0, Miss::Expected));
        assert!(!Ledger::off().is_on() && Ledger::off().begin(0, false).is_none());
    }
}
