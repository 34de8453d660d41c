//! What RAM knows of each SSD segment: enough to tell a dead index entry without reading anything.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::*, compiler_fence};
use zerocopy::FromBytes;

use super::write_buffer::{Fill, WriteBufferPlace};
use super::{PAGE_BYTES, SEGMENT_PAGES};
use crate::arena::Region;
use crate::clock::Seconds;
use crate::crash::step;
use crate::index::entry::{Entry, SsdPlace, pages_of_class, part_bits};
use crate::index::hash::KeyHash;
use crate::policy::readmission::{AGES, ByAge, age};

const HOT_WORDS: usize = SEGMENT_PAGES as usize / 64;

/// One segment's line of the table.
#[derive(FromBytes)]
#[repr(C)]
pub(crate) struct SsdSegmentMeta {
    /// How often the segment has been filled; 0 never. An entry whose generation differs (modulo 16) is dead.
    generation: AtomicU32,
    /// The latest expiry of its records: from then on the whole segment is dead. 0 while empty, all ones for
    /// never.
    expires: AtomicU32,
    /// The latest flush epoch of its records: an older one than the store's makes the whole segment dead.
    epoch: AtomicU32,
    /// Index entries that point here.
    live: AtomicU32,
    /// Write buffers whose pages are not on the device yet.
    pending: AtomicU32,
    /// When it was opened, counted in openings: the ring's age.
    birth: AtomicU32,
    /// Pages of the records that index entries point at, each record's counted by itself.
    live_pages: AtomicU32,
    /// The same of all records written since it was opened.
    written_pages: AtomicU32,
    /// 1 while its live records are being moved to other segments, 2 when some could not be moved.
    cleaning: AtomicU32,
    /// Its pages up to the end of the last record written.
    used_pages: AtomicU32,
    /// Pages that hold a record which was read since it came here.
    hot: [AtomicU64; HOT_WORDS],
}

const _: () = assert!(size_of::<SsdSegmentMeta>() == 40 + 8 * HOT_WORDS, "no padding");

/// All segments' lines.
pub(crate) struct Table {
    segments: Region<SsdSegmentMeta>,
    /// Entries in state Ssd whose segment is still the one they mean.
    items: AtomicU64,
    births: AtomicU32,
    /// By segment: whether it holds records that were written again. Not in the arena: a later process takes those that
    /// it finds for new ones.
    again: Box<[AtomicBool]>,
    /// Hits since they were last taken, by the age of the segment: of others, and of such.
    hits: [[AtomicU64; AGES]; 2],
    /// What an entry holds of a hash beside the number of a segment: see [`part_bits`].
    part_bits: u32,
}

impl Table {
    pub(crate) fn new(segments: Region<SsdSegmentMeta>) -> Self {
        let part_bits = part_bits(segments.len() as u32);
        let again = segments.iter().map(|_| AtomicBool::new(false)).collect();
        Table {
            segments,
            items: AtomicU64::new(0),
            births: AtomicU32::new(0),
            again,
            hits: Default::default(),
            part_bits,
        }
    }

    /// Returns how many bits of a part every index entry has.
    pub(crate) fn part_bits(&self) -> u32 {
        self.part_bits
    }

    /// Where an Ssd entry points.
    #[inline]
    pub(crate) fn place_of(&self, entry: Entry) -> SsdPlace {
        entry.ssd_place(self.part_bits)
    }

    /// The index entry of a record at `place`.
    pub(crate) fn entry(&self, hash: KeyHash, freq: u8, place: SsdPlace) -> Entry {
        Entry::ssd(hash, self.part_bits, freq, place)
    }

    pub(crate) fn count(&self) -> u32 {
        self.segments.len() as u32
    }

    /// Live entries over all segments.
    pub(crate) fn items(&self) -> u64 {
        self.items.load(Relaxed)
    }

    /// Live entries over the segments whose records are not older than `epoch`.
    pub(crate) fn items_since(&self, epoch: u32) -> u64 {
        let current = self.segments.iter().filter(|meta| meta.epoch.load(Relaxed) >= epoch);
        current.map(|meta| u64::from(meta.live.load(Relaxed))).sum()
    }

    /// The number of the earliest opening of a segment with live entries that are not older than `epoch`.
    pub(crate) fn oldest_opening(&self, epoch: u32) -> Option<u32> {
        let newest = self.births.load(Relaxed);
        let holds = |meta: &&SsdSegmentMeta| meta.live.load(Relaxed) > 0 && meta.epoch.load(Relaxed) >= epoch;
        let births = self.segments.iter().filter(holds).map(|meta| meta.birth.load(Relaxed));
        births.max_by_key(|birth| newest.wrapping_sub(*birth))
    }

    /// Whether a segment holds records, and none of `epoch`.
    pub(crate) fn is_of_another_epoch(&self, segment: u32, epoch: u32) -> bool {
        let found = self.segments[segment as usize].epoch.load(Relaxed);
        found != 0 && found != epoch
    }

    fn of(&self, place: SsdPlace) -> Option<&SsdSegmentMeta> {
        self.segments.get(place.segment as usize)
    }

    /// The full generation of the segment, if `place` means its present filling.
    #[inline]
    pub(crate) fn current_generation(&self, place: SsdPlace) -> Option<u32> {
        let generation = self.of(place)?.generation.load(Relaxed);
        (generation & 0xF == u32::from(place.generation) && generation != 0).then_some(generation)
    }

    /// Whether an Ssd entry means an earlier filling of its segment: it leads nowhere.
    pub(crate) fn is_of_earlier_filling(&self, entry: Entry) -> bool {
        self.current_generation(self.place_of(entry)).is_none()
    }

    /// Returns whether `place` means its segment's present filling and that has not been retired.
    pub(crate) fn is_current(&self, place: SsdPlace) -> bool {
        self.current_generation(place).is_some()
            && self.of(place).is_some_and(|meta| meta.expires.load(Relaxed) != 0)
    }

    /// Whether a record at `place` can still be there, as far as the table knows.
    #[inline]
    pub(crate) fn is_live(&self, place: SsdPlace, now: Seconds, epoch: u32) -> bool {
        let Some(meta) = self.of(place) else { return false };
        let generation = meta.generation.load(Relaxed);
        generation & 0xF == u32::from(place.generation)
            && generation != 0
            && meta.expires.load(Relaxed) > now.0
            && meta.epoch.load(Relaxed) >= epoch
    }

    /// Takes over what an earlier process left, but for the live entries, which are to be counted anew.
    pub(crate) fn recover(&self) {
        for meta in self.segments.iter() {
            meta.pending.store(0, Relaxed);
            meta.live.store(0, Relaxed);
            meta.live_pages.store(0, Relaxed);
            meta.cleaning.store(0, Relaxed);
        }
        let newest = self.segments.iter().map(|meta| meta.birth.load(Relaxed)).max();
        self.births.store(newest.unwrap_or(0), Relaxed);
    }

    /// Counts `live` more entries into a segment, whose records have `pages` pages.
    pub(crate) fn add_live(&self, segment: u32, live: u32, pages: u32) {
        let meta = &self.segments[segment as usize];
        meta.live.fetch_add(live, Relaxed);
        meta.live_pages.fetch_add(pages, Relaxed);
        self.items.fetch_add(u64::from(live), Relaxed);
    }

    /// Returns the share of a segment that live records take, from 0 to 1, by their pages: an index entry tells
    /// no more of a record's size. Records of one page count alike.
    pub(crate) fn live_share(&self, segment: u32) -> f64 {
        let meta = &self.segments[segment as usize];
        if meta.live.load(Relaxed) == 0 {
            return 0.0;
        }
        let written = meta.written_pages.load(Relaxed).max(1);
        let of_written = f64::from(meta.live_pages.load(Relaxed)) / f64::from(written);
        of_written.min(1.0) * f64::from(meta.used_pages.load(Relaxed)) / f64::from(SEGMENT_PAGES)
    }

    /// Marks whether a segment's live records are being moved to other segments.
    pub(super) fn set_cleaning(&self, segment: u32, cleaning: bool) {
        self.segments[segment as usize].cleaning.store(cleaning.into(), SeqCst);
    }

    /// Marks a segment of which some live records could not be moved.
    pub(super) fn set_stuck(&self, segment: u32) {
        self.segments[segment as usize].cleaning.store(2, SeqCst);
    }

    /// Returns whether some live records of a segment could not be moved.
    pub(super) fn is_stuck(&self, segment: u32) -> bool {
        self.segments[segment as usize].cleaning.load(SeqCst) == 2
    }

    /// Returns whether the records of `place`'s segment are being moved to other segments.
    pub(crate) fn is_cleaning(&self, place: SsdPlace) -> bool {
        self.of(place).is_some_and(|meta| meta.cleaning.load(SeqCst) == 1)
    }

    /// Index entries that point into a segment.
    pub(crate) fn live(&self, segment: u32) -> u32 {
        self.segments[segment as usize].live.load(Relaxed)
    }

    /// Openings since the segment was opened.
    pub(crate) fn age_of(&self, segment: u32) -> u32 {
        let birth = self.segments[segment as usize].birth.load(Relaxed);
        self.births.load(Relaxed).wrapping_sub(birth)
    }

    /// Whether pages can be of a segment's present filling.
    pub(super) fn is_of_generation(&self, place: WriteBufferPlace, fill: &Fill) -> bool {
        let pages = fill.page_at.div_ceil(PAGE_BYTES) as u64 + u64::from(fill.open.bytes > 0);
        self.segments.get(place.segment as usize).is_some_and(|meta| {
            place.generation != 0
                && meta.generation.load(Relaxed) == place.generation
                && u64::from(place.first_page) + pages <= u64::from(SEGMENT_PAGES)
        })
    }

    /// Openings since `place`'s segment was opened; more for an older one.
    pub(crate) fn age(&self, place: SsdPlace) -> u64 {
        let births = self.births.load(Relaxed);
        self.of(place).map_or(u64::MAX, |meta| u64::from(births.wrapping_sub(meta.birth.load(Relaxed))) + 1)
    }

    /// Segments opened so far.
    pub(crate) fn openings(&self) -> u32 {
        self.births.load(Relaxed)
    }

    /// Segments that were filled at least once, the one opened last first: all, or those opened after the first
    /// `since` openings.
    pub(crate) fn by_opening(&self, since: Option<u32>) -> Vec<u32> {
        let openings = self.births.load(Relaxed);
        let ages = since.map_or(u32::MAX, |since| openings.wrapping_sub(since));
        let is_wanted = |segment: &u32| self.generation(*segment) != 0 && self.age_of(*segment) < ages;
        let mut segments: Vec<u32> = (0..self.count()).filter(is_wanted).collect();
        segments.sort_unstable_by_key(|segment| self.age_of(*segment));
        segments
    }

    /// Returns whether a segment was opened by one of the first `openings`.
    pub(crate) fn was_opened_within(&self, segment: u32, openings: u32) -> bool {
        self.age_of(segment) >= self.births.load(Relaxed).wrapping_sub(openings)
    }

    /// Returns the pages of a segment up to the end of the last record written.
    pub(crate) fn used_pages(&self, segment: u32) -> u32 {
        self.segments[segment as usize].used_pages.load(Relaxed)
    }

    pub(crate) fn has_pending(&self, place: SsdPlace) -> bool {
        self.of(place).is_some_and(|meta| meta.pending.load(Acquire) > 0)
    }

    pub(crate) fn pending(&self, segment: u32) -> u32 {
        self.segments[segment as usize].pending.load(Acquire)
    }

    pub(crate) fn add_pending(&self, segment: u32) {
        self.segments[segment as usize].pending.fetch_add(1, Release);
    }

    pub(crate) fn remove_pending(&self, segment: u32) {
        self.segments[segment as usize].pending.fetch_sub(1, Release);
    }

    /// Begins a new filling of a segment, which makes every entry into the old one dead; returns its generation.
    pub(crate) fn open(&self, segment: u32) -> u32 {
        let meta = &self.segments[segment as usize];
        let mut generation = meta.generation.load(Relaxed).wrapping_add(1);
        if generation == 0 {
            generation = 16;
        }
        step();
        meta.expires.store(0, Relaxed);
        step();
        meta.epoch.store(0, Relaxed);
        step();
        meta.birth.store(self.births.fetch_add(1, Relaxed).wrapping_add(1), Relaxed);
        step();
        for word in &meta.hot {
            word.store(0, Relaxed);
        }
        self.items.fetch_sub(u64::from(meta.live.swap(0, Relaxed)), Relaxed);
        meta.live_pages.store(0, Relaxed);
        meta.written_pages.store(0, Relaxed);
        meta.used_pages.store(0, Relaxed);
        meta.cleaning.store(0, Relaxed);
        // Last, and not earlier by the compiler's choice: until then the old entries are dead by expiry.
        step();
        compiler_fence(SeqCst);
        meta.generation.store(generation, Relaxed);
        compiler_fence(SeqCst);
        step();
        generation
    }

    /// Makes every record of a segment dead until the segment is opened again; returns how many index entries
    /// pointed at one.
    pub(super) fn retire(&self, segment: u32) -> u32 {
        let meta = &self.segments[segment as usize];
        step();
        meta.expires.store(0, SeqCst);
        step();
        let live = meta.live.swap(0, Relaxed);
        meta.live_pages.store(0, Relaxed);
        self.items.fetch_sub(u64::from(live), Relaxed);
        live
    }

    /// Counts a record that is about to be written to an open segment, at `place`.
    pub(crate) fn admit(&self, place: SsdPlace, expires: u32, epoch: u32) {
        let meta = &self.segments[place.segment as usize];
        let pages = pages_of_class(place.class);
        step();
        meta.written_pages.fetch_add(pages, Relaxed);
        meta.used_pages.fetch_max((u32::from(place.page) + pages).min(SEGMENT_PAGES), Relaxed);
        meta.expires.fetch_max(if expires == 0 { u32::MAX } else { expires }, Relaxed);
        meta.epoch.fetch_max(epoch, Relaxed);
    }

    /// An index entry now points at `entry`'s place.
    pub(crate) fn link(&self, entry: Entry) {
        let place = self.place_of(entry);
        if let Some(meta) = self.of(place) {
            step();
            meta.live.fetch_add(1, Relaxed);
            meta.live_pages.fetch_add(pages_of_class(place.class), Relaxed);
            self.items.fetch_add(1, Relaxed);
        }
    }

    /// An index entry no longer points there. Dead entries were discounted when their segment was opened
    /// anew.
    pub(crate) fn unlink(&self, entry: Entry) {
        let place = self.place_of(entry);
        if self.current_generation(place).is_none() {
            return;
        }
        let Some(meta) = self.of(place) else { return };
        if meta.live.fetch_update(Relaxed, Relaxed, |live| live.checked_sub(1)).is_ok() {
            let pages = pages_of_class(place.class);
            let fewer = |live: u32| Some(live.saturating_sub(pages));
            let _ = meta.live_pages.fetch_update(Relaxed, Relaxed, fewer);
            self.items.fetch_sub(1, Relaxed);
        }
    }

    /// Counts a hit, by the kind and the age of its segment.
    #[inline]
    pub(crate) fn count_hit(&self, place: SsdPlace) {
        let kind = usize::from(self.is_again(place.segment));
        self.hits[kind][self.quarter(place.segment)].fetch_add(1, Relaxed);
    }

    /// Returns the hits that were counted since the last call.
    pub(super) fn take_hits(&self) -> ByAge {
        let take = |kind: usize| self.hits[kind].each_ref().map(|hits| hits.swap(0, Relaxed) as f64);
        ByAge { new: take(0), again: take(1) }
    }

    /// Marks whether a segment that was just opened is for records that are written again.
    pub(super) fn set_again(&self, segment: u32, is_again: bool) {
        self.again[segment as usize].store(is_again, Relaxed);
    }

    /// Returns whether a segment holds records that were written again.
    #[inline]
    pub(super) fn is_again(&self, segment: u32) -> bool {
        self.again[segment as usize].load(Relaxed)
    }

    /// Returns the age of a segment, in quarters of a turn of the log.
    #[inline]
    pub(super) fn quarter(&self, segment: u32) -> usize {
        age(self.age_of(segment), self.count())
    }

    /// Remembers that a record of this page was read.
    #[inline]
    pub(crate) fn mark_hot(&self, place: SsdPlace) {
        if let Some(meta) = self.of(place) {
            let (word, bit) = (usize::from(place.page) / 64, place.page % 64);
            if meta.hot[word].load(Relaxed) & (1 << bit) == 0 {
                meta.hot[word].fetch_or(1 << bit, Relaxed);
            }
        }
    }

    /// The first page from `from` on with a record that was read.
    pub(crate) fn next_hot_page(&self, segment: u32, from: u32) -> Option<u32> {
        let meta = &self.segments[segment as usize];
        (from..SEGMENT_PAGES).find(|page| meta.hot[*page as usize / 64].load(Relaxed) >> (page % 64) & 1 == 1)
    }

    /// Whether everything in the segment has expired or been flushed.
    pub(crate) fn is_spent(&self, segment: u32, now: Seconds, epoch: u32) -> bool {
        let meta = &self.segments[segment as usize];
        meta.generation.load(Relaxed) != 0
            && (meta.expires.load(Relaxed) <= now.0 || meta.epoch.load(Relaxed) < epoch)
    }

    pub(crate) fn generation(&self, segment: u32) -> u32 {
        self.segments[segment as usize].generation.load(Relaxed)
    }
}
