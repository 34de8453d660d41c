//! Moves records out of the SSD segment that is reused next. Which segment that is, and what to read of it, is
//! `ssd::log::readmission`'s business.

use super::Store;
use crate::clock::Seconds;
use crate::index::entry::{SsdPlace, State};
use crate::index::hash::KeyHash;
use crate::read::{Loaded, Needs, ReadPlan};
use crate::record::FETCHED;
use crate::ssd::PAGE_BYTES;
use crate::ssd::log::readmission::ReadBack;
use crate::ssd::log::stream::Stream;
use crate::ssd::log::{Log, Refused};
use crate::ssd::page::{self, Page, Placed};

/// What became of one record of a page that was read back.
enum Moved {
    /// It need not be moved, or is on its way.
    Done,
    /// So many bytes were written again.
    Written(usize),
    /// It goes on in pages that were not read.
    GoesOn,
    /// There is no room for it just now.
    NoRoom,
    /// No segment is free for it.
    NoSegment,
}

impl Store {
    /// The next read of the store's own, if there is one to do: of a segment that is reused next, all of it or
    /// the bytes read there, or of a device that failed. Give its outcome to [`Store::readmit`].
    pub fn next_readmission(&self) -> Option<ReadPlan> {
        if let Some(read) = self.tiers.log.next_probe_read() {
            let place = SsdPlace { segment: read.id.segment, page: 0, class: 0, generation: 0 };
            return Some(ReadPlan::new(
                self.tiers.log.table.entry(KeyHash::default(), 0, place),
                read,
                Needs::Value,
                self.tiers.epoch(),
            ));
        }
        self.sweep_if_wanted();
        let place = self.tiers.log.next_readmission()?;
        let Some(read) = self.tiers.log.read_of(place) else {
            self.tiers.log.rescued(place, ReadBack::default());
            return None;
        };
        Some(ReadPlan::new(
            self.tiers.log.table.entry(KeyHash::default(), 0, place),
            read,
            Needs::Value,
            self.tiers.epoch(),
        ))
    }

    /// Writes those records of the pages read back that are kept into another segment.
    pub fn readmit(&self, loaded: Loaded<'_>, now: Seconds) {
        if Log::is_probe_read(&loaded.plan.read) {
            return self.tiers.log.complete_probe(loaded.bytes);
        }
        let place = self.tiers.log.table.place_of(loaded.plan.entry);
        let Some((moves_all, is_chunk)) = self.tiers.log.reclaim_of(place) else { return };
        let Some(bytes) = loaded.bytes else {
            return self.tiers.log.rescued(place, ReadBack { failed: true, ..ReadBack::default() });
        };
        self.tiers.log.note_time(now, self.tiers.epoch());
        let mut outcome = ReadBack::default();
        let (id, pages) = (loaded.plan.read.id, bytes.len() / PAGE_BYTES);
        let pages = if is_chunk { pages } else { pages.min(1) };
        for number in 0..pages {
            let (id, rest) = (id.behind(number), &bytes[number * PAGE_BYTES..]);
            let place = SsdPlace { page: place.page + number as u16, ..place };
            let Some(page) = page::verify(id, rest) else { continue };
            let pages = page.pages();
            let (bytes_written, worst) = self.move_records(place, &page, moves_all, now);
            outcome.bytes_written += bytes_written;
            match worst {
                Moved::Done | Moved::Written(_) => {}
                // One of the pages behind is not what it should be.
                Moved::GoesOn if pages * PAGE_BYTES <= rest.len() => {}
                Moved::GoesOn | Moved::NoRoom => outcome.again.push((place.page.into(), pages as u32)),
                Moved::NoSegment => outcome.no_segment = true,
            }
        }
        self.tiers.log.rescued(place, outcome);
    }

    /// Moves those records of a page that are live, or, without `moves_all`, that were read too. Returns the bytes
    /// written again, and what became of the record that fared worst.
    fn move_records(
        &self,
        place: SsdPlace,
        page: &Page<'_>,
        moves_all: bool,
        now: Seconds,
    ) -> (usize, Moved) {
        let (mut bytes_written, mut worst) = (0, Moved::Done);
        for record in page.records() {
            match self.move_record(place, page, &record, moves_all, now) {
                Moved::Done => {}
                Moved::Written(bytes) => bytes_written += bytes,
                // Another record of the page must not hide that one goes on.
                Moved::NoRoom if matches!(worst, Moved::GoesOn) => {}
                other => worst = other,
            }
        }
        (bytes_written, worst)
    }

    fn move_record(
        &self,
        place: SsdPlace,
        page: &Page<'_>,
        record: &Placed<'_>,
        moves_all: bool,
        now: Seconds,
    ) -> Moved {
        let tiers = &self.tiers;
        let hash = self.hash(record.key);
        let mut shard = self.change(self.shard_of(hash));
        let Some((slot, present)) = shard.index().find(hash) else {
            return Moved::Done;
        };
        let there = present.state() == State::Ssd && {
            let at = tiers.log.table.place_of(present);
            (at.segment, at.page, at.generation) == (place.segment, place.page, place.generation)
        };
        if !there || !moves_all && present.freq() == 0 || !tiers.ssd_is_live(present, now) {
            return Moved::Done;
        }
        // Of several versions in the page, and of rivals for the entry, only the one that the entry means may
        // move.
        let meant = shard.find_among(tiers, page, hash, record.key);
        if meant.is_none_or(|meant| !std::ptr::eq(meant.key, record.key)) {
            return Moved::Done;
        }
        let mut header = record.header;
        if header.is_gone(now, tiers.epoch()) {
            shard.reclaim(tiers, slot, present, &header);
            return Moved::Done;
        }
        if present.freq() > 0 {
            // It has been read; where it goes, its frequency may not tell for long.
            header.item_flags |= FETCHED;
        }
        let Some(value) = page.value_of(record) else { return Moved::GoesOn };
        if !tiers.log.fits_buffer(&header) {
            // Readmission asks for no pages beyond a buffer.
            return match tiers.log.move_large(&header, record.key, &value, hash, present) {
                Ok(()) => Moved::Done,
                Err(_) => Moved::NoSegment,
            };
        }
        match tiers.log.append(Stream::Readmitted, &header, record.key, &value) {
            Ok(new) => {
                let freq = if moves_all { present.freq() } else { present.freq() - 1 };
                let there = tiers.log.table.entry(hash, freq, new);
                shard.place(tiers, now, hash, Some((slot, present)), there);
                if moves_all && freq > 0 {
                    tiers.log.table.mark_hot(new);
                }
                Moved::Written(header.bytes())
            }
            Err(Refused::Full) => Moved::NoRoom,
            Err(Refused::UsedUp | Refused::Off) => Moved::NoSegment,
        }
    }
}
