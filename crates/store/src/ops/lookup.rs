//! The one lookup: from a key to its item in either tier, or to the read that would tell.

use std::borrow::Cow;

use super::Call;
use crate::clock::{Expiry, Seconds};
use crate::entry::{Entry, State};
use crate::hash::KeyHash;
use crate::index::Slot;
use crate::read::{Loaded, ReadPlan};
use crate::record::{FETCHED, Header};
use crate::shard::{RamRecord, Shard};
use crate::ssd::log::Access;
use crate::ssd::page::{self, Page, Placed};
use crate::tiers::Tiers;
use crate::value::{LargeValue, Value};

/// What the lookup knows.
pub(super) enum Look<'l> {
    /// There is no such item. An entry may be in the way: another key's with the same tag.
    Absent(Option<(Slot, Entry)>),
    Found(Seen<'l>),
    Read(ReadPlan),
}

/// An item that is there, neither expired nor flushed.
pub(super) struct Seen<'l> {
    pub slot: Slot,
    pub entry: Entry,
    pub header: Header,
    /// The value of an item on the SSD; one in RAM is lent by [`value`](Self::value).
    ssd_value: Option<Cow<'l, [u8]>>,
}

impl Seen<'_> {
    pub(super) fn old(&self) -> Option<(Slot, Entry)> {
        Some((self.slot, self.entry))
    }

    pub(super) fn on_ssd(&self) -> bool {
        self.ssd_value.is_some()
    }

    /// Whether it has been read since it was stored.
    pub(super) fn was_fetched(&self) -> bool {
        self.header.item_flags & FETCHED != 0 || self.on_ssd() && self.entry.hot() > 0
    }

    pub(super) fn value<'a>(&'a self, shard: &'a Shard, tiers: &'a Tiers) -> Value<'a> {
        if let Some(value) = &self.ssd_value {
            return Value::Slice(value);
        }
        match shard.ram_record(tiers, self.entry) {
            RamRecord::Small(record) => Value::Slice(record.value),
            RamRecord::Large { head, header, key } => Value::Large(LargeValue::new(
                tiers.pool.pin(&shard.owner, head),
                key.len(),
                header.value_len as usize,
            )),
        }
    }

    /// The value of an item on the SSD, where it was read to; empty for one in RAM.
    pub(super) fn ssd_value(&self) -> &[u8] {
        self.ssd_value.as_deref().unwrap_or_default()
    }

    /// The value apart from the shard, so that the shard can be changed while it is read. Only a value of a
    /// log segment is copied.
    pub(super) fn detached(&self, shard: &Shard, tiers: &Tiers) -> Detached<'_> {
        if self.on_ssd() {
            return Detached::Slice(Cow::Borrowed(self.ssd_value()));
        }
        match self.value(shard, tiers) {
            Value::Slice(value) => Detached::Slice(Cow::Owned(value.to_vec())),
            Value::Large(value) => Detached::Large(value),
        }
    }
}

/// A value that does not borrow the shard.
pub(super) enum Detached<'a> {
    Slice(Cow<'a, [u8]>),
    Large(LargeValue),
}

impl Detached<'_> {
    pub(super) fn len(&self) -> usize {
        match self {
            Detached::Slice(value) => value.len(),
            Detached::Large(value) => value.len(),
        }
    }

    /// Its pieces, in order.
    pub(super) fn parts(&self) -> Vec<&[u8]> {
        match self {
            Detached::Slice(value) => vec![value],
            Detached::Large(value) => value.parts().collect(),
        }
    }
}

/// Header and value of a record on the SSD.
type OnSsd<'l> = (Header, Cow<'l, [u8]>);

pub(super) fn is_gone(header: &Header, now: Seconds, epoch: u32) -> bool {
    Expiry::from_raw(header.expires).has_passed(now) || header.epoch < epoch
}

impl Shard {
    /// The key's record among a page's. (Rivals of other shards are not told from this one's: at worst a
    /// miss.)
    pub(crate) fn find_among<'l>(
        &self,
        tiers: &Tiers,
        page: &Page<'l>,
        hash: KeyHash,
        key: &[u8],
    ) -> Option<Placed<'l>> {
        page.find(hash.tag(), key, |key| self.index.are_rivals(hash, tiers.hasher.hash(key)))
    }

    /// The key's header and value in the pages that were read, if they are what the plan meant and the record
    /// is neither expired nor flushed. `Err` when a page is not what it should be.
    pub(super) fn find_loaded<'l>(
        &self,
        tiers: &Tiers,
        loaded: &Loaded<'l>,
        call: &Call<'_>,
        epoch: u32,
    ) -> Result<Option<OnSsd<'l>>, ()> {
        let page = loaded.bytes.and_then(|bytes| page::verify(loaded.plan.read.id, bytes)).ok_or(())?;
        let Some(record) = self.find_among(tiers, &page, call.hash, call.key) else { return Ok(None) };
        if is_gone(&record.header, call.now, epoch) {
            return Ok(None);
        }
        Ok(Some((record.header, page.value_of(&record).ok_or(())?)))
    }

    /// Looks the key up; removes what turns out to be expired, flushed, overwritten on the SSD or unreadable.
    pub(super) fn look<'l>(&mut self, tiers: &Tiers, call: &Call<'l>) -> Look<'l> {
        let Some((slot, entry)) = self.index.find(call.hash) else {
            return Look::Absent(None);
        };
        let (now, epoch) = (call.now, tiers.epoch());
        if entry.state() != State::Ssd {
            let record = self.ram_record(tiers, entry);
            if record.key() != call.key {
                return Look::Absent(Some((slot, entry)));
            }
            let header = *record.header();
            if is_gone(&header, now, epoch) {
                self.reclaim(tiers, slot, entry, &header);
                return Look::Absent(None);
            }
            return Look::Found(Seen { slot, entry, header, ssd_value: None });
        }
        if !tiers.ssd_is_live(entry, now) {
            self.remove(tiers, slot, entry);
            return Look::Absent(None);
        }
        let place = entry.ssd_place();
        let buffered = tiers.log.with_buffered(place, |page| {
            let record = self.find_among(tiers, &page, call.hash, call.key)?;
            Some((record.header, Cow::Owned(page.value_of(&record)?.into_owned())))
        });
        let found = if let Some(found) = buffered {
            found.filter(|(header, _)| !is_gone(header, now, epoch))
        } else {
            let Some(loaded) = call.loaded.as_ref().filter(|loaded| loaded.plan.is_of(tiers, entry)) else {
                let Some(read) = tiers.log.read_of(place) else {
                    self.remove(tiers, slot, entry);
                    return Look::Absent(None);
                };
                return Look::Read(ReadPlan { entry, read, epoch });
            };
            match self.find_loaded(tiers, loaded, call, epoch) {
                Ok(record) => {
                    tiers.log.count_outcome(Access::Read, true);
                    record
                }
                Err(()) => {
                    // A page that is not what it should be is an error of the device, unless its segment has
                    // been filled anew while it was read.
                    if loaded.bytes.is_some()
                        && tiers.log.read_of(place).is_some_and(|read| read == loaded.plan.read)
                    {
                        tiers.log.count_outcome(Access::Read, false);
                    }
                    self.remove(tiers, slot, entry);
                    return Look::Absent(None);
                }
            }
        };
        match found {
            Some((header, value)) => Look::Found(Seen { slot, entry, header, ssd_value: Some(value) }),
            None => Look::Absent(Some((slot, entry))),
        }
    }
}
