//! Storing values: set, add, replace, append, prepend, with or without a cas condition.

use super::lookup::{FoundItem, Look};
use super::{ATTEMPTS_MAX, Attempt, Call, write};
use crate::clock::Expiry;
use crate::index::entry::{Entry, State};
use crate::ram::pool::Reservation;
use crate::read::Needs;
use crate::record::{HEADER_BYTES, KEY_BINARY, RecordHeader, STALE, WIN_SENT};
use crate::sample::Op;
use crate::shard::Shard;
use crate::shard::evict::OnFull;
use crate::store::{Step, Store};
use crate::tiers::Tiers;

/// How a store treats the present item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutMode {
    /// Store in any case.
    Set,
    /// Only if absent.
    Add,
    /// Only if present.
    Replace,
    /// Behind the present value, keeping its flags and expiry.
    Append,
    /// Before the present value, keeping its flags and expiry.
    Prepend,
}

/// The bytes to store.
pub enum Payload<'a> {
    /// In the caller's memory.
    Bytes(&'a [u8]),
    /// Already in the store's, all of it arrived.
    Incoming(Incoming),
    /// Taken, and with what it was appended or prepended to this many bytes: what [`Store::put`] leaves
    /// behind.
    Joined(usize),
}

/// What to store and how.
#[derive(Clone, Copy, Debug)]
pub struct Put {
    /// How to treat the present item.
    pub mode: PutMode,
    /// Opaque client flags.
    pub client_flags: u32,
    /// Expiry of the new item.
    pub expiry: Expiry,
    /// Only if the present item has this cas unique.
    pub compare: Option<u64>,
    /// The new item's cas unique, if not the store's choice.
    pub new_cas: Option<u64>,
    /// With a `compare` below the present cas: store all the same, keep the present expiry, mark stale.
    pub invalidate: bool,
    /// With append or prepend on a miss: create the item with this expiry.
    pub vivify: Option<Expiry>,
    /// Whether the key was sent encoded.
    pub key_is_binary: bool,
    /// The most bytes that header, key and value may have together after an append or prepend.
    pub item_bytes_max: usize,
}

impl Put {
    /// Stores an item with client flags of 0 that never expires, whatever cas unique the present one has.
    pub const fn new(mode: PutMode) -> Put {
        Put {
            mode,
            client_flags: 0,
            expiry: Expiry::Never,
            compare: None,
            new_cas: None,
            invalidate: false,
            vivify: None,
            key_is_binary: false,
            item_bytes_max: 1 << 30,
        }
    }
}

/// How storing ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutResult {
    /// Stored, with this cas unique.
    Stored(u64),
    /// The mode's condition did not hold.
    NotStored,
    /// The cas unique differs.
    Exists,
    /// There is nothing to compare with.
    NotFound,
    /// Appending would make the item too large.
    TooLarge,
}

/// Memory for a large value while it arrives. Dropped, it is free again.
pub struct Incoming {
    record: Reservation,
    value_len: usize,
    key_len: usize,
}

impl Incoming {
    /// Bytes of the value still to come.
    pub fn missing(&self) -> usize {
        self.record.missing().min(self.value_len)
    }

    /// Whether any of the value has come.
    pub fn has_begun(&self) -> bool {
        self.missing() < self.value_len
    }

    /// Where the next bytes of the value go; empty when all have come, and when memory has to be
    /// [taken](Store::extend) first.
    pub fn spare(&mut self) -> &mut [u8] {
        self.record.spare()
    }

    /// Whether it has to wait, since others on their way in have been promised too much of the RAM tier: all of
    /// them together at most half of it.
    pub fn waits(&self) -> bool {
        self.record.waits()
    }

    /// Counts `len` bytes of [`spare`](Self::spare) as filled.
    pub fn advance(&mut self, len: usize) {
        self.record.advance(len);
    }
}

impl Store {
    /// Begins to receive a value of more than [`Store::large_bytes`]. Its memory is taken as it arrives, by
    /// [`extend`](Self::extend).
    pub fn reserve(&self, call: &Call<'_>, value_len: usize) -> Step<Incoming> {
        let record_bytes = HEADER_BYTES + call.key.len() + value_len;
        if !self.is_storable(record_bytes) {
            return Step::NoMemory;
        }
        let record = self.tiers.pool.begin(record_bytes);
        Step::Done(Incoming { record, value_len, key_len: call.key.len() })
    }

    /// Takes memory for the next bytes of a value, so that [`Incoming::spare`] is not empty while some are
    /// missing. While it [waits](Incoming::waits), the step is [`Step::Busy`], or [`Step::NoMemory`] with
    /// [`OnFull::Drop`].
    pub fn extend(&self, call: &Call<'_>, incoming: &mut Incoming) -> Step<()> {
        let own = self.shard_of(call.hash);
        for _ in 0..ATTEMPTS_MAX {
            if incoming.missing() == 0 || !incoming.record.spare().is_empty() {
                return Step::Done(());
            }
            if !incoming.record.promise() {
                return if call.on_full == OnFull::Wait { Step::Busy } else { Step::NoMemory };
            }
            if let Err(step) = self.make_room(own, 1, call.now, call.on_full) {
                return step;
            }
            if incoming.record.grow() && incoming.record.is_new() {
                incoming.record.push(&[0; HEADER_BYTES]);
                incoming.record.push(call.key);
            }
        }
        Step::NoMemory
    }

    /// Appends what has arrived of a value to it, and takes the memory that this needs. How much was appended
    /// shows in [`Incoming::missing`], also when the step is not [`Step::Done`].
    pub fn receive(&self, call: &Call<'_>, incoming: &mut Incoming, mut bytes: &[u8]) -> Step<()> {
        while !bytes.is_empty() {
            match self.extend(call, incoming) {
                Step::Done(()) => {}
                other => return other,
            }
            let spare = incoming.spare();
            let len = spare.len().min(bytes.len());
            if len == 0 {
                break;
            }
            spare[..len].copy_from_slice(&bytes[..len]);
            incoming.advance(len);
            bytes = &bytes[len..];
        }
        Step::Done(())
    }

    /// Stores a value. An [`Incoming`] payload is taken out of `payload` when it was stored, and left there
    /// when not.
    pub fn put(&self, call: &Call<'_>, put: &Put, payload: &mut Payload<'_>) -> Step<PutResult> {
        let tiers = &self.tiers;
        let joins = matches!(put.mode, PutMode::Append | PutMode::Prepend);
        let mut needs = Needs::Header;
        self.attempt(call, |shard, reservation| {
            let old = if put.mode == PutMode::Set && put.compare.is_none() {
                shard.index().find(call.hash)
            } else {
                match shard.look(tiers, call, needs) {
                    Look::Read(plan) => return Attempt::Read(plan),
                    Look::Absent(old) => match put.when_absent() {
                        Ok(()) => old,
                        Err(result) => return Attempt::Done(result),
                    },
                    Look::Found(seen) => {
                        let stale = match put.when_found(seen.header.cas) {
                            Ok(stale) => stale,
                            Err(result) => {
                                shard.bump(seen.slot, seen.entry);
                                return Attempt::Done(result);
                            }
                        };
                        if joins {
                            let value_len = seen.header.value_len as usize + payload.len();
                            if HEADER_BYTES + call.key.len() + value_len > put.item_bytes_max {
                                return Attempt::Done(PutResult::TooLarge);
                            }
                            if !seen.has_value() {
                                needs = Needs::Value;
                                return Attempt::NeedsValue;
                            }
                            return join(shard, tiers, call, put, &seen, payload, reservation);
                        }
                        if stale {
                            let mut header = put.header(tiers, call, payload);
                            header.expires = seen.header.expires;
                            header.item_flags |= STALE | seen.header.item_flags & WIN_SENT;
                            return store_new(shard, tiers, call, seen.old(), header, payload, reservation);
                        }
                        seen.old()
                    }
                }
            };
            let mut header = put.header(tiers, call, payload);
            if joins {
                header.expires = put.vivify.unwrap_or(put.expiry).to_raw();
            }
            store_new(shard, tiers, call, old, header, payload, reservation)
        })
    }
}

/// Appends to a value, or prepends.
fn join(
    shard: &mut Shard,
    tiers: &Tiers,
    call: &Call<'_>,
    put: &Put,
    seen: &FoundItem<'_>,
    payload: &mut Payload<'_>,
    reservation: &mut Option<Reservation>,
) -> Attempt<PutResult> {
    let present = seen.detached(shard, tiers);
    let addition = payload.parts();
    let value_len = seen.header.value_len as usize + payload.len();
    let parts = match put.mode {
        PutMode::Append => [present.parts(), addition].concat(),
        _ => [addition, present.parts()].concat(),
    };
    let header = RecordHeader {
        value_len: value_len as u32,
        cas: put.new_cas.unwrap_or_else(|| tiers.next_cas()),
        item_flags: seen.header.item_flags & KEY_BINARY,
        accessed: call.now.0,
        ..seen.header
    };
    match write(shard, tiers, call, seen.old(), &header, &parts, reservation) {
        Attempt::Done(()) => {
            *payload = Payload::Joined(value_len);
            Attempt::Done(PutResult::Stored(header.cas))
        }
        other => other.retry(),
    }
}

fn store_new(
    shard: &mut Shard,
    tiers: &Tiers,
    call: &Call<'_>,
    old: Option<(crate::index::Slot, Entry)>,
    header: RecordHeader,
    payload: &mut Payload<'_>,
    reservation: &mut Option<Reservation>,
) -> Attempt<PutResult> {
    match payload {
        Payload::Bytes(value) => match write(shard, tiers, call, old, &header, &[value], reservation) {
            Attempt::Done(()) => Attempt::Done(PutResult::Stored(header.cas)),
            other => other.retry(),
        },
        Payload::Joined(_) => unreachable!("what was joined has been stored"),
        Payload::Incoming(_) => {
            if old.is_none() && !shard.has_slot(tiers, call.now, call.hash) {
                return Attempt::NoSlot;
            }
            let Payload::Incoming(incoming) = std::mem::replace(payload, Payload::Bytes(&[])) else {
                unreachable!("just matched")
            };
            let header = header.stored_again(old.is_some());
            let queue = shard.queue_for(call.hash, old.is_none());
            let freq = old.map_or(0, |(_, old)| old.freq());
            let offset = shard.adopt(tiers, queue, &header, incoming.record, None);
            let entry = Entry::ram(call.hash, freq, State::RamLarge, offset);
            shard.count_if_of_another_key(tiers, call, old);
            shard.place(tiers, call.now, call.hash, old, entry);
            shard.sample(Op::Set, call.request(), header.bytes(), header.expires);
            Attempt::Done(PutResult::Stored(header.cas))
        }
    }
}

impl Payload<'_> {
    /// Bytes of the value.
    #[expect(clippy::len_without_is_empty, reason = "nobody asks")]
    pub fn len(&self) -> usize {
        match self {
            Payload::Bytes(bytes) => bytes.len(),
            Payload::Incoming(incoming) => incoming.value_len,
            Payload::Joined(bytes) => *bytes,
        }
    }

    /// The value's pieces, in order.
    fn parts(&self) -> Vec<&[u8]> {
        match self {
            Payload::Bytes(bytes) => vec![bytes],
            Payload::Incoming(incoming) => {
                let mut skip = HEADER_BYTES + incoming.key_len;
                let value_of = |part| {
                    let part: &[u8] = part;
                    let from = skip.min(part.len());
                    skip -= from;
                    &part[from..]
                };
                incoming.record.parts().map(value_of).collect()
            }
            Payload::Joined(_) => vec![],
        }
    }
}

impl Put {
    fn header(&self, tiers: &Tiers, call: &Call<'_>, payload: &Payload<'_>) -> RecordHeader {
        RecordHeader {
            value_len: payload.len() as u32,
            client_flags: self.client_flags,
            ..call.new_header(tiers, self.new_cas, self.expiry, self.key_is_binary)
        }
    }

    fn when_absent(&self) -> Result<(), PutResult> {
        match self.mode {
            PutMode::Set if self.compare.is_some() => Err(PutResult::NotFound),
            PutMode::Set | PutMode::Add => Ok(()),
            PutMode::Append | PutMode::Prepend if self.vivify.is_some() => Ok(()),
            PutMode::Replace if self.compare.is_some() => Err(PutResult::NotFound),
            _ => Err(PutResult::NotStored),
        }
    }

    /// Whether to store over an item with this cas, and then whether as stale.
    fn when_found(&self, cas: u64) -> Result<bool, PutResult> {
        if self.mode == PutMode::Add {
            return Err(PutResult::NotStored);
        }
        match self.compare {
            Some(compare) if compare != cas => {
                let replaces = matches!(self.mode, PutMode::Set | PutMode::Replace);
                if self.invalidate && compare < cas && replaces { Ok(true) } else { Err(PutResult::Exists) }
            }
            _ => Ok(false),
        }
    }
}
