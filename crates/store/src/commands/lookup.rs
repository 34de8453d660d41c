//! The one lookup: from a key to its item in either tier, or to the read that would tell.

use std::borrow::Cow;

use super::Call;
use crate::index::Slot;
use crate::index::entry::{Entry, State};
use crate::index::hash::KeyHash;
use crate::read::{Loaded, Needs, ReadPlan};
use crate::record::{FETCHED, Gone, RecordHeader};
use crate::shard::{RamRecord, Shard};
use crate::ssd::health::Access;
use crate::ssd::page::{self, Page, Placed};
use crate::tiers::Tiers;
use crate::value::{LargeValue, Value, ValueParts};

/// What the lookup knows.
pub(super) enum Look<'l> {
    /// There is no such item. An entry may be in the way: another key's with the same tag.
    Absent(Option<(Slot, Entry)>),
    Found(FoundItem<'l>),
    Read(ReadPlan),
}

/// An item that is there, neither expired nor flushed.
pub(super) struct FoundItem<'l> {
    pub slot: Slot,
    pub entry: Entry,
    pub header: RecordHeader,
    /// The value of an item on the SSD, if it was needed; one in RAM is lent by [`value`](Self::value).
    ssd_value: Option<Cow<'l, [u8]>>,
}

impl FoundItem<'_> {
    pub(super) fn old(&self) -> Option<(Slot, Entry)> {
        Some((self.slot, self.entry))
    }

    pub(super) fn on_ssd(&self) -> bool {
        self.entry.state() == State::Ssd
    }

    /// Whether the value can be had.
    pub(super) fn has_value(&self) -> bool {
        !self.on_ssd() || self.ssd_value.is_some()
    }

    /// Whether it has been read since it was stored.
    pub(super) fn was_fetched(&self) -> bool {
        self.header.item_flags & FETCHED != 0 || self.on_ssd() && self.entry.freq() > 0
    }

    /// Its value; empty for an item on the SSD of which only the header was needed.
    pub(super) fn value<'a>(&'a self, shard: &'a Shard, tiers: &'a Tiers) -> Value<'a> {
        if self.on_ssd() {
            return Value::Slice(self.ssd_value());
        }
        match shard.ram_record(tiers, self.entry) {
            RamRecord::Small(record) => Value::Slice(record.value),
            RamRecord::Split { value, .. } => Value::Parts(ValueParts::new(value)),
            RamRecord::Large { head, header, key } => {
                Value::Large(LargeValue::new(shard.pin(tiers, head), key.len(), header.value_len as usize))
            }
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
            Value::Parts(parts) => {
                let mut value = Vec::with_capacity(parts.len());
                parts.append_to(&mut value);
                Detached::Slice(Cow::Owned(value))
            }
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
    /// Its pieces, in order.
    pub(super) fn parts(&self) -> Vec<&[u8]> {
        match self {
            Detached::Slice(value) => vec![value],
            Detached::Large(value) => value.parts().collect(),
        }
    }
}

/// What lies on the SSD where a key's entry points.
pub(super) enum SsdLookup<'l> {
    /// The item: its header, and its value if that is needed.
    Item(RecordHeader, Option<Cow<'l, [u8]>>),
    /// The item, which has expired or been flushed.
    Gone(Gone),
    /// Another key's item.
    Absent,
}

/// The outcome of a look at the SSD.
enum SsdLook<'l> {
    /// The pages are here, in a write buffer or as they were read.
    Known(SsdLookup<'l>),
    /// The pages have to be read first.
    Read(ReadPlan),
    /// The pages cannot be read, or were read and did not verify.
    Unreadable,
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
        page.find(hash.tag(), key, |key| self.index().are_rivals(hash, tiers.hasher.hash(key)))
    }

    /// Returns the needed part of the key's item in the pages that were read, if they are what the plan meant; an
    /// expired or flushed record is [`SsdLookup::Gone`]. `Err` when a page is not what it should be.
    pub(super) fn find_loaded<'l>(
        &self,
        tiers: &Tiers,
        loaded: &Loaded<'l>,
        call: &Call<'_>,
        needs: Needs,
        epoch: u32,
    ) -> Result<SsdLookup<'l>, ()> {
        let page = loaded.bytes.and_then(|bytes| page::verify(loaded.plan.read.id, bytes)).ok_or(())?;
        let Some(record) = self.find_among(tiers, &page, call.hash, call.key) else {
            return Ok(SsdLookup::Absent);
        };
        match record.header.gone(call.now, epoch) {
            Some(why) => Ok(SsdLookup::Gone(why)),
            None if needs == Needs::Header => Ok(SsdLookup::Item(record.header, None)),
            None => Ok(SsdLookup::Item(record.header, Some(page.value_of(&record).ok_or(())?))),
        }
    }

    /// Looks up the needed part of the key's item; removes an item found to be expired, flushed, overwritten on
    /// the SSD or unreadable.
    pub(super) fn look<'l>(&mut self, tiers: &Tiers, call: &Call<'l>, needs: Needs) -> Look<'l> {
        let Some((slot, entry)) = self.index().find(call.hash) else {
            return Look::Absent(None);
        };
        let (now, epoch) = (call.now, tiers.epoch());
        if entry.state() != State::Ssd {
            let record = self.ram_record(tiers, entry);
            if record.key() != call.key {
                return Look::Absent(Some((slot, entry)));
            }
            let header = *record.header();
            if let Some(why) = header.gone(now, epoch) {
                self.count_gone(why);
                self.reclaim(tiers, slot, entry, &header);
                return Look::Absent(None);
            }
            return Look::Found(FoundItem { slot, entry, header, ssd_value: None });
        }
        if !tiers.ssd_is_live(entry, now) {
            // A segment that was reused holds nothing of the key; any other has expired or been flushed as a
            // whole.
            if !tiers.log.table.is_of_earlier_filling(entry) {
                let segment = tiers.log.table.place_of(entry).segment;
                let flushed = tiers.log.table.is_of_another_epoch(segment, epoch);
                self.count_gone(if flushed { Gone::Flushed } else { Gone::Expired });
            }
            self.remove(tiers, slot, entry);
            return Look::Absent(None);
        }
        let found = match self.look_on_ssd(tiers, call, entry, needs) {
            SsdLook::Known(found) => found,
            SsdLook::Read(plan) => return Look::Read(plan),
            SsdLook::Unreadable => {
                self.remove(tiers, slot, entry);
                return Look::Absent(None);
            }
        };
        match found {
            SsdLookup::Item(header, value) => {
                Look::Found(FoundItem { slot, entry, header, ssd_value: value })
            }
            SsdLookup::Gone(why) => {
                self.count_gone(why);
                self.remove(tiers, slot, entry);
                Look::Absent(None)
            }
            SsdLookup::Absent => {
                if call.loaded.as_ref().is_some_and(|loaded| loaded.plan.is_of(tiers, entry)) {
                    self.count_false_read();
                }
                Look::Absent(Some((slot, entry)))
            }
        }
    }

    /// Counts a collision if the item of an entry that another item is about to replace is known to be another key's.
    /// That of an item on the SSD is known only while its page is in a write buffer, or if it was read.
    pub(super) fn count_if_of_another_key(
        &mut self,
        tiers: &Tiers,
        call: &Call<'_>,
        old: Option<(Slot, Entry)>,
    ) {
        let Some((_, entry)) = old else { return };
        let is_of_another_key = match entry.state() {
            State::Empty => false,
            State::Ram | State::RamLarge => self.ram_record(tiers, entry).key() != call.key,
            State::Ssd => self.is_of_another_key_on_ssd(tiers, call, entry) == Some(true),
        };
        if is_of_another_key {
            self.count_collision();
        }
    }

    /// Returns whether an entry leads to another key's item on the SSD; `None` if the item is not in memory.
    fn is_of_another_key_on_ssd(&self, tiers: &Tiers, call: &Call<'_>, entry: Entry) -> Option<bool> {
        if !tiers.ssd_is_live(entry, call.now) {
            return None;
        }
        let is_absent = |page: &Page<'_>| self.find_among(tiers, page, call.hash, call.key).is_none();
        let buffered = tiers.log.with_buffered(tiers.log.table.place_of(entry), |page| is_absent(&page));
        buffered.or_else(|| {
            let loaded = call.loaded.as_ref().filter(|loaded| loaded.plan.is_of(tiers, entry))?;
            page::verify(loaded.plan.read.id, loaded.bytes?).map(|page| is_absent(&page))
        })
    }

    /// Looks at the place on the SSD that an entry points to: in a write buffer, or in the pages that were read.
    fn look_on_ssd<'l>(&self, tiers: &Tiers, call: &Call<'l>, entry: Entry, needs: Needs) -> SsdLook<'l> {
        let (place, epoch) = (tiers.log.table.place_of(entry), tiers.epoch());
        let buffered = tiers.log.with_buffered(place, |page| self.find_buffered(tiers, &page, call, needs));
        if let Some(found) = buffered {
            return SsdLook::Known(found);
        }
        let serves = |plan: &ReadPlan| plan.is_of(tiers, entry) && plan.serves(needs);
        let Some(loaded) = call.loaded.as_ref().filter(|loaded| serves(loaded.plan)) else {
            return match tiers.log.read_of(place) {
                Some(read) => SsdLook::Read(ReadPlan::new(entry, read, needs, epoch)),
                None => SsdLook::Unreadable,
            };
        };
        match self.find_loaded(tiers, loaded, call, needs, epoch) {
            Ok(found) => {
                tiers.log.count_outcome(Access::Read, true);
                SsdLook::Known(found)
            }
            Err(()) => {
                // A page that is not what it should be is an error of the device, unless its segment has been
                // filled again while it was read.
                let read = tiers.log.read_of(place);
                if loaded.bytes.is_some() && read.is_some_and(|read| read.id == loaded.plan.read.id) {
                    tiers.log.count_outcome(Access::Read, false);
                }
                SsdLook::Unreadable
            }
        }
    }

    /// Returns the needed part of the key's item in a page of a write buffer.
    fn find_buffered<'l>(
        &self,
        tiers: &Tiers,
        page: &Page<'_>,
        call: &Call<'_>,
        needs: Needs,
    ) -> SsdLookup<'l> {
        let Some(record) = self.find_among(tiers, page, call.hash, call.key) else {
            return SsdLookup::Absent;
        };
        if let Some(why) = record.header.gone(call.now, tiers.epoch()) {
            return SsdLookup::Gone(why);
        }
        if needs == Needs::Header {
            return SsdLookup::Item(record.header, None);
        }
        match page.value_of(&record) {
            Some(value) => SsdLookup::Item(record.header, Some(Cow::Owned(value.into_owned()))),
            None => SsdLookup::Absent,
        }
    }
}
