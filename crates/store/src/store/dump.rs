//! Lists all items of both tiers, in bounded steps, while others use the store.
//!
//! ```text
//!   1. SSD   the segments that are full, the oldest first
//!   2. RAM   every shard, bucket after bucket of its index
//!   3. SSD   the segments that were being filled when 1. began, and those opened since
//! ```
//! Records are read where they lie, a stretch of a segment at a time. One is listed if its index entry points at it,
//! or at a promoted record whose copy it is: that one may be let go again at any time, so it is listed with its copy
//! and not in 2. An item that leaves RAM before 2. comes to its bucket is found in 3., and so is one that was
//! moved on the SSD before 1. came to it. So every item is listed that is not changed meanwhile, if the segments
//! opened since are not reused before 3. comes to them; one that moves may be listed twice.

use super::Store;
use super::listing::ListedItem;
use crate::clock::Seconds;
use crate::index::entry::{Entry, SsdPlace, State, class_of_pages};
use crate::index::hash::KeyHash;
use crate::read::{Loaded, Needs, ReadPlan};
use crate::record::RecordHeader;
use crate::shard::Shard;
use crate::ssd::PAGE_BYTES;
use crate::ssd::page::{self, Page};
use crate::tiers::{Tier, Tiers};

/// Pages of a segment that one read brings.
const CHUNK_PAGES: u32 = 16;
/// Buckets of an index that one step looks at.
const STEP_BUCKETS: u32 = 64;
/// How often the third pass looks for segments that were opened since it began.
const ROUNDS_MAX: u32 = 3;

/// How far a listing of all items is: see [`Store::list_next`].
pub struct Dump {
    pass: Pass,
    /// Segments to read, the next one last.
    segments: Vec<u32>,
    /// The segment that is being read.
    reading: Option<Stretch>,
    /// Segments opened when `segments` was filled last; at first, before the oldest one that was being filled.
    openings: u32,
    /// Items of the stretch that is being read which were found in write buffers.
    buffered: Vec<ListedItem>,
}

#[derive(Clone, Copy)]
enum Pass {
    Ssd,
    Ram { shard: u32, bucket: u32 },
    SsdAgain { round: u32 },
    End,
}

/// The next pages to read of a filling of a segment.
#[derive(Clone, Copy)]
struct Stretch {
    segment: u32,
    generation: u32,
    page: u32,
}

/// One step of a listing.
#[derive(Debug)]
pub enum Listed {
    /// Some items; there may be none in a step.
    Items(Vec<ListedItem>),
    /// Perform this read, and call again with its outcome.
    Read(ReadPlan),
    /// Everything has been listed.
    End,
}

/// A record of a page, without its value.
type Facts = (RecordHeader, Vec<u8>);

fn facts_of(page: Page<'_>) -> Vec<Facts> {
    page.records().map(|record| (record.header, record.key.to_vec())).collect()
}

impl Dump {
    /// Returns the bytes that it holds, about.
    pub fn memory_bytes(&self) -> usize {
        let items: usize = self.buffered.iter().map(|item| size_of::<ListedItem>() + item.key.len()).sum();
        self.segments.capacity() * size_of::<u32>() + items
    }
}

impl Store {
    /// Begins to list all items.
    pub fn begin_listing(&self) -> Dump {
        let log = &self.tiers.log;
        let openings = log.openings_before_open();
        let mut segments = log.table.by_opening(None);
        segments.retain(|segment| log.table.was_opened_within(*segment, openings));
        Dump { pass: Pass::Ssd, segments, reading: None, openings, buffered: Vec::new() }
    }

    /// Lists some items: those of a few buckets of one shard, or of one read of the SSD, whose outcome is `loaded`.
    /// All items are listed that exist from the first call to the last one and are not changed meanwhile, as long
    /// as less is written to the SSD than it holds; one that is moved between RAM and SSD meanwhile may be listed
    /// twice. What the SSD cannot read is left out.
    pub fn list_next(&self, dump: &mut Dump, now: Seconds, loaded: Option<Loaded<'_>>) -> Listed {
        match dump.pass {
            Pass::Ssd | Pass::SsdAgain { .. } => self.list_ssd(dump, now, loaded),
            Pass::Ram { shard, bucket } => {
                let mut items = Vec::new();
                let next = self.lock(shard).list_buckets(&self.tiers, now, bucket, &mut items);
                dump.pass = match next {
                    Some(bucket) => Pass::Ram { shard, bucket },
                    None if shard + 1 < self.layout.shards => Pass::Ram { shard: shard + 1, bucket: 0 },
                    None => Pass::SsdAgain { round: 0 },
                };
                if matches!(dump.pass, Pass::SsdAgain { .. }) {
                    self.find_opened(dump);
                }
                Listed::Items(items)
            }
            Pass::End => Listed::End,
        }
    }

    /// Notes the segments that were opened since the last time.
    fn find_opened(&self, dump: &mut Dump) {
        let openings = self.tiers.log.table.openings();
        dump.segments = self.tiers.log.table.by_opening(Some(dump.openings));
        dump.openings = openings;
    }

    fn list_ssd(&self, dump: &mut Dump, now: Seconds, loaded: Option<Loaded<'_>>) -> Listed {
        if let (Some(loaded), Some(stretch)) = (loaded, dump.reading) {
            let mut items = std::mem::take(&mut dump.buffered);
            self.list_stretch(&loaded, now, &mut items);
            dump.reading = Some(Stretch { page: stretch.page + CHUNK_PAGES, ..stretch });
            return Listed::Items(items);
        }
        loop {
            if let Some(plan) = dump.reading.and_then(|stretch| self.plan_stretch(stretch, now)) {
                dump.buffered = self.list_buffered(&plan, now);
                return Listed::Read(plan);
            }
            let generation = |segment| self.tiers.log.table.generation(segment);
            let first = |segment| Stretch { segment, generation: generation(segment), page: 0 };
            dump.reading = dump.segments.pop().map(first);
            if dump.reading.is_some() {
                continue;
            }
            dump.pass = match dump.pass {
                Pass::Ssd => Pass::Ram { shard: 0, bucket: 0 },
                Pass::SsdAgain { round } if round < ROUNDS_MAX => {
                    self.find_opened(dump);
                    match dump.segments.is_empty() {
                        true => Pass::End,
                        false => Pass::SsdAgain { round: round + 1 },
                    }
                }
                _ => Pass::End,
            };
            if !matches!(dump.pass, Pass::SsdAgain { .. }) {
                return Listed::Items(Vec::new());
            }
        }
    }

    /// Returns the next read of a segment; `None` when all of it was read, or nothing of it is live any more.
    fn plan_stretch(&self, stretch: Stretch, now: Seconds) -> Option<ReadPlan> {
        let Stretch { segment, generation, page } = stretch;
        let log = &self.tiers.log;
        let used = log.table.used_pages(segment);
        if log.is_off() || page >= used || log.table.generation(segment) != generation || generation == 0 {
            return None;
        }
        if log.table.is_spent(segment, now, self.tiers.epoch()) {
            return None;
        }
        let class = class_of_pages(CHUNK_PAGES);
        let place = SsdPlace { segment, page: page as u16, class, generation: (generation & 0xF) as u8 };
        let read = log.read_of(place)?;
        let entry = log.table.entry(KeyHash::default(), 0, place);
        Some(ReadPlan::new(entry, read, Needs::Value, self.tiers.epoch()))
    }

    /// Lists what is not on the device yet of the pages that are to be read. What is written while it is read is
    /// here, and what was written before is there.
    fn list_buffered(&self, plan: &ReadPlan, now: Seconds) -> Vec<ListedItem> {
        let mut items = Vec::new();
        let first = self.tiers.log.table.place_of(plan.entry);
        if !self.tiers.log.table.has_pending(first) {
            return items;
        }
        for number in 0..(plan.bytes() / PAGE_BYTES) as u16 {
            let place = SsdPlace { page: first.page + number, class: 0, ..first };
            if let Some(facts) = self.tiers.log.with_buffered(place, facts_of) {
                self.list_page(place, &facts, now, &mut items);
            }
        }
        items
    }

    /// Lists the pages that were read.
    fn list_stretch(&self, loaded: &Loaded<'_>, now: Seconds, items: &mut Vec<ListedItem>) {
        let (first, id) = (self.tiers.log.table.place_of(loaded.plan.entry), loaded.plan.read.id);
        for (number, bytes) in loaded.bytes.unwrap_or_default().chunks_exact(PAGE_BYTES).enumerate() {
            let place = SsdPlace { page: first.page + number as u16, ..first };
            if let Some(page) = page::verify(id.behind(number), bytes) {
                self.list_page(place, &facts_of(page), now, items);
            }
        }
    }

    /// Lists those records of a page that index entries point at.
    fn list_page(&self, place: SsdPlace, records: &[Facts], now: Seconds, items: &mut Vec<ListedItem>) {
        for (number, (header, key)) in records.iter().enumerate() {
            let hash = self.hash(key);
            let shard = self.lock(self.shard_of(hash));
            let at = shard.index().find(hash).and_then(|(_, entry)| shard.place_of(&self.tiers, entry, now));
            let points_here = at.is_some_and(|at| {
                (at.segment, at.page, at.generation) == (place.segment, place.page, place.generation)
            });
            // Of several records that one entry could mean, it means the last one.
            let is_meant = |(later, other): &Facts| {
                later.tag == header.tag && (other == key || shard.index().are_rivals(hash, self.hash(other)))
            };
            let is_last = || !records[number + 1..].iter().any(is_meant);
            if points_here && is_last() && !header.is_gone(now, self.tiers.epoch()) {
                items.push(ListedItem::of(header, key, Tier::Ssd));
            }
        }
    }
}

impl Shard {
    /// Returns the place on the SSD that an entry leads to: of the item, or of the copy of a promoted one.
    fn place_of(&self, tiers: &Tiers, entry: Entry, now: Seconds) -> Option<SsdPlace> {
        match entry.state() {
            State::Ssd => Some(tiers.log.table.place_of(entry)),
            State::Ram | State::RamLarge => self.ssd_copy_of(tiers, entry),
            State::Empty => None,
        }
        .filter(|place| tiers.place_is_live(*place, now))
    }

    /// Lists the items in RAM that the next buckets lead to, but for those with a copy on the SSD. Returns the bucket
    /// to go on with; `None` at the end.
    fn list_buckets(
        &mut self,
        tiers: &Tiers,
        now: Seconds,
        from: u32,
        items: &mut Vec<ListedItem>,
    ) -> Option<u32> {
        let (entries, next) = self.walk_index(from, STEP_BUCKETS);
        for entry in entries {
            if !matches!(entry.state(), State::Ram | State::RamLarge) {
                continue;
            }
            if self.place_of(tiers, entry, now).is_some() {
                continue;
            }
            let record = self.ram_record(tiers, entry);
            if !record.header().is_gone(now, tiers.epoch()) {
                items.push(ListedItem::of(record.header(), record.key(), Tier::Ram));
            }
        }
        next
    }
}
