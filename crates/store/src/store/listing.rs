//! Some of the items in RAM, to inspect a cache.

use std::cmp::Reverse;

use super::Store;
use crate::clock::{Expiry, Seconds};
use crate::index::entry::{Entry, State};
use crate::index::hash::KeyHash;
use crate::policy::s3fifo::RamQueue;
use crate::ram::pool::SegmentId;
use crate::record::{FETCHED, Head, KEY_BINARY, RecordHeader};
use crate::shard::Shard;
use crate::tiers::{Tier, Tiers};

/// Records that one listing looks at, which bounds its time: some have been overwritten or deleted.
const RECORDS_MAX: usize = 1 << 14;

/// An item of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedItem {
    /// Its key.
    pub key: Vec<u8>,
    /// The length of its value, in bytes.
    pub value_len: usize,
    /// When it expires.
    pub expiry: Expiry,
    /// Its cas unique.
    pub cas: u64,
    /// When it was last read or stored.
    pub accessed: Seconds,
    /// Whether it has been read since it was stored.
    pub fetched: bool,
    /// Whether its key was sent base64-encoded.
    pub key_is_binary: bool,
    /// Where it lies.
    pub tier: Tier,
}

impl ListedItem {
    pub(super) fn of(header: &RecordHeader, key: &[u8], tier: Tier) -> ListedItem {
        ListedItem {
            key: key.to_vec(),
            value_len: header.value_len as usize,
            expiry: Expiry::from_raw(header.expires),
            cas: header.cas,
            accessed: Seconds(header.accessed),
            fetched: header.item_flags & FETCHED != 0,
            key_is_binary: header.item_flags & KEY_BINARY != 0,
            tier,
        }
    }
}

impl Store {
    /// Returns some of the items in RAM, at most `limit`, the last stored first. It looks at the newest 16,384
    /// records at most. The keys of items on the SSD are there and nowhere else, so those are not listed.
    pub fn list_ram(&self, limit: usize, now: Seconds) -> Vec<ListedItem> {
        let shards = self.layout.shards as usize;
        // Twice a shard's share, since some have more of the newest than others.
        let most = limit.div_ceil(shards).saturating_mul(2);
        let mut listed = Vec::new();
        for number in 0..self.layout.shards {
            self.lock(number).list_newest(&self.tiers, now, most, RECORDS_MAX / shards, &mut listed);
        }
        listed.sort_unstable_by_key(|item| Reverse(item.cas));
        listed.truncate(limit);
        listed
    }
}

impl Shard {
    /// Adds the shard's newest items in RAM, at most `most`, after a look at `records` or those of one segment
    /// more.
    fn list_newest(
        &self,
        tiers: &Tiers,
        now: Seconds,
        mut most: usize,
        mut records: usize,
        listed: &mut Vec<ListedItem>,
    ) {
        for queue in [RamQueue::Small, RamQueue::Main] {
            let open = self.open(queue).map(|open| (open.id, open.used));
            let sealed = tiers.pool.queued_newest(self.queue(queue)).map(|id| (id, tiers.pool.used(id)));
            for (id, used) in open.into_iter().chain(sealed) {
                if most == 0 || records == 0 {
                    return;
                }
                let entries = match tiers.pool.is_large(id) {
                    true => {
                        vec![Entry::ram(KeyHash::default(), 0, State::RamLarge, tiers.pool.offset(id, 0))]
                    }
                    false => self.entries_of(tiers, id, used),
                };
                records = records.saturating_sub(entries.len());
                for entry in entries.into_iter().rev() {
                    let record = self.ram_record(tiers, entry);
                    let header = record.header();
                    let hash = tiers.hasher.hash(record.key());
                    let here = Entry::ram(hash, 0, entry.state(), entry.ram_offset());
                    if most > 0
                        && self.index().find_place(hash, here).is_some()
                        && !header.is_gone(now, tiers.epoch())
                    {
                        most -= 1;
                        listed.push(ListedItem::of(header, record.key(), Tier::Ram));
                    }
                }
            }
        }
    }

    /// Returns entries, without tags, for all records that begin in a log segment, oldest first.
    fn entries_of(&self, tiers: &Tiers, id: SegmentId, used: usize) -> Vec<Entry> {
        let bytes = self.segment(tiers, id);
        let (mut entries, mut at) = (Vec::new(), tiers.pool.first(id));
        while at < used {
            let Some(head) = Head::parse(&bytes[at..used.min(bytes.len())]) else { break };
            entries.push(Entry::ram(KeyHash::default(), 0, State::Ram, tiers.pool.offset(id, at)));
            at += head.header.ram_bytes();
        }
        entries
    }
}
