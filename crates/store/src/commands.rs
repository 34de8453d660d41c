//! What each command means, over both tiers alike. One lookup serves them all.
//!
//! Every operation is called with the key, its hash, the time, the outcome of the read it asked for last time
//! (if it did), and returns a [`Step`]. An operation that changes an item on the SSD reads it, then checks
//! under the shard's lock that the entry is still the one it read, and else starts over; the changed item
//! lives in RAM. An operation that may be done with the header reads no more of a large item, and reads the
//! item whole if the header says that it must. Plain reads are answered from what was read even if the item
//! has changed since: they take effect when they were planned.

mod arith;
mod delete;
mod get;
mod lookup;
mod put;
mod update;

pub use arith::{Arith, ArithResult};
pub use delete::{Remove, RemoveResult};
pub use get::{Fetch, Found};
pub use put::{Incoming, Payload, Put, PutMode, PutResult};
pub use update::{UPDATE_BYTES_MAX, Updated};

use crate::clock::{Expiry, Seconds};
use crate::index::Slot;
use crate::index::entry::{Entry, State};
use crate::index::hash::KeyHash;
use crate::policy::s3fifo::RamQueue;
use crate::ram::pool::Reservation;
use crate::read::{Loaded, ReadPlan};
use crate::record::{HEADER_BYTES, KEY_BINARY, RecordHeader};
use crate::sample::{Op, Request};
use crate::shard::Shard;
use crate::shard::evict::OnFull;
use crate::store::{Step, Store, VALUE_BYTES_MAX};
use crate::tiers::Tiers;

/// Whose item, when, and what came of the read asked for before.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// The key, 1 to 250 bytes.
    pub key: &'a [u8],
    /// Its [hash](Store::hash).
    pub hash: KeyHash,
    /// The time.
    pub now: Seconds,
    /// The outcome of the [`Step::Read`] that the same operation answered before.
    pub loaded: Option<Loaded<'a>>,
    /// What to do when there is no room.
    pub on_full: OnFull,
}

impl Call<'_> {
    /// Returns what a sample is told of it.
    #[inline]
    fn request(&self) -> Request<'_> {
        Request { key: self.key, hash: self.hash, now: self.now, has_read: self.loaded.is_some() }
    }

    /// Returns the header of a new item of the key, with an empty value and client flags of 0.
    fn new_header(
        &self,
        tiers: &Tiers,
        new_cas: Option<u64>,
        expiry: Expiry,
        key_is_binary: bool,
    ) -> RecordHeader {
        RecordHeader {
            cas: new_cas.unwrap_or_else(|| tiers.next_cas()),
            expires: expiry.to_raw(),
            accessed: self.now.0,
            epoch: tiers.epoch(),
            key_len: self.key.len() as u8,
            tag: self.hash.tag(),
            item_flags: if key_is_binary { KEY_BINARY } else { 0 },
            ..RecordHeader::default()
        }
    }
}

/// How one attempt under the shard's lock ended.
enum Attempt<R> {
    Done(R),
    Read(ReadPlan),
    /// The header does not tell enough: the value is needed too.
    NeedsValue,
    /// The record to write needs this many free RAM segments.
    Room(u32),
    /// The record to write, of this many bytes, needs segments of its own.
    Large(usize),
    /// The item is on its way to the SSD and cannot change until it is there.
    Demoting,
    /// The index is full around the key, and nothing may be evicted.
    NoSlot,
}

impl<R> Attempt<R> {
    /// The same end of an attempt that is not its success.
    fn retry<S>(self) -> Attempt<S> {
        match self {
            Attempt::Done(_) => unreachable!("success is not retried"),
            Attempt::Read(plan) => Attempt::Read(plan),
            Attempt::NeedsValue => Attempt::NeedsValue,
            Attempt::Room(segments) => Attempt::Room(segments),
            Attempt::Large(bytes) => Attempt::Large(bytes),
            Attempt::Demoting => Attempt::Demoting,
            Attempt::NoSlot => Attempt::NoSlot,
        }
    }
}

/// Attempts before an operation that keeps losing its room gives up.
const ATTEMPTS_MAX: u32 = 64;

impl Store {
    /// Runs an operation under its shard's lock, as often as making room for it takes.
    fn attempt<R>(
        &self,
        call: &Call<'_>,
        mut attempt: impl FnMut(&mut Shard, &mut Option<Reservation>) -> Attempt<R>,
    ) -> Step<R> {
        self.tick(call.now);
        let own = self.shard_of(call.hash);
        let mut reservation = None;
        for _ in 0..ATTEMPTS_MAX {
            let ended = {
                let mut shard = self.change(own);
                self.grow_index(own, &mut shard);
                attempt(&mut shard, &mut reservation)
            };
            let made = match ended {
                Attempt::Done(result) => return Step::Done(result),
                Attempt::Read(plan) => return Step::Read(plan),
                Attempt::NeedsValue => Ok(()),
                Attempt::Demoting if call.on_full == OnFull::Wait => return Step::Busy,
                Attempt::Demoting | Attempt::NoSlot => return Step::NoMemory,
                Attempt::Room(segments) => self.make_room(own, segments, call.now, call.on_full),
                Attempt::Large(bytes) => self.reserve_bytes(own, bytes, call).map(|set_aside| {
                    reservation = Some(set_aside);
                }),
            };
            if let Err(step) = made {
                return step;
            }
        }
        Step::NoMemory
    }

    fn reserve_bytes<T>(
        &self,
        own: u32,
        record_bytes: usize,
        call: &Call<'_>,
    ) -> Result<Reservation, Step<T>> {
        let pool = &self.tiers.pool;
        if !self.is_storable(record_bytes) {
            return Err(Step::NoMemory);
        }
        for _ in 0..ATTEMPTS_MAX {
            self.make_room(own, pool.segments_for(record_bytes), call.now, call.on_full)?;
            if let Some(reservation) = pool.reserve(record_bytes) {
                return Ok(reservation);
            }
        }
        Err(Step::NoMemory)
    }

    /// Whether the RAM tier could hold a record of so many bytes at all.
    fn is_storable(&self, record_bytes: usize) -> bool {
        let record_bytes_max = VALUE_BYTES_MAX + HEADER_BYTES as u64 + u64::from(u8::MAX);
        record_bytes as u64 <= record_bytes_max
            && self.tiers.pool.segments_for(record_bytes) <= self.tiers.pool.limit() / 2
    }
}

/// Writes a record for the key, in RAM, and points its entry there; `old` is what the entry was. Samples the request
/// as a set.
fn write(
    shard: &mut Shard,
    tiers: &Tiers,
    call: &Call<'_>,
    old: Option<(Slot, Entry)>,
    header: &RecordHeader,
    value: &[&[u8]],
    reservation: &mut Option<Reservation>,
) -> Attempt<()> {
    let written = write_record(shard, tiers, call, old, header, value, reservation);
    if let Attempt::Done(()) = written {
        shard.sample(Op::Set, call.request(), header.bytes(), header.expires);
    }
    written
}

/// Writes a record for the key as [`write()`] does, and samples nothing.
fn write_record(
    shard: &mut Shard,
    tiers: &Tiers,
    call: &Call<'_>,
    old: Option<(Slot, Entry)>,
    header: &RecordHeader,
    value: &[&[u8]],
    reservation: &mut Option<Reservation>,
) -> Attempt<()> {
    let has_slot = match old {
        None => shard.has_slot(tiers, call.now, call.hash),
        // Another key's item, with the same tag, would give way.
        Some((_, entry)) if !tiers.evict && entry.state() != State::Ssd => {
            shard.ram_record(tiers, entry).key() == call.key
        }
        Some(_) => true,
    };
    if !has_slot {
        return Attempt::NoSlot;
    }
    let freq = old.map_or(0, |(_, old)| old.freq());
    let header = &header.stored_again(old.is_some());
    let bytes = header.bytes();
    if bytes > tiers.large_bytes {
        let Some(mut record) = reservation.take().filter(|record| record.missing() == bytes) else {
            return Attempt::Large(bytes);
        };
        record.push(&[0; HEADER_BYTES]);
        record.push(call.key);
        for part in value {
            record.push(part);
        }
        let queue = shard.queue_for(call.hash, old.is_none());
        let offset = shard.adopt(tiers, queue, header, record, None);
        shard.count_if_of_another_key(tiers, call, old);
        shard.place(tiers, call.now, call.hash, old, Entry::ram(call.hash, freq, State::RamLarge, offset));
        return Attempt::Done(());
    }
    if let Some((slot, entry)) = old.filter(|(_, entry)| entry.state() == State::Ram)
        && shard.overwrite(tiers, entry, header, call.key, value)
    {
        // It keeps its place in the queue, so nothing else tells a busy counter from an unused one.
        shard.bump(slot, entry);
        return Attempt::Done(());
    }
    let segments = shard.segments_wanted(RamQueue::Small, header);
    if segments > 0 && tiers.pool.free_count() < tiers.spare_segments() + segments {
        return Attempt::Room(segments);
    }
    let queue = shard.queue_for(call.hash, old.is_none());
    let Some(offset) = shard.append(tiers, queue, header, call.key, value, None) else {
        return Attempt::Room(segments.max(1));
    };
    if old.is_some() {
        tiers.note_freed(header.ram_bytes());
        shard.count_if_of_another_key(tiers, call, old);
    }
    shard.place(tiers, call.now, call.hash, old, Entry::ram(call.hash, freq, State::Ram, offset));
    Attempt::Done(())
}
