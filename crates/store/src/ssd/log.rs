//! The SSD's segments and write buffers: which are free, filling, on their way to the device, or next to be
//! reused. How records are packed into them is `stream`'s business.
//!
//! ```text
//!             append                  seal                 next_write            complete_write
//!   free buffer ------> filling (stream) ------> queued ------------> in_flight ------------------> free buffer
//! ```
//! A segment goes free -> open (in one stream) -> sealed, and back to free when it is spent (all expired or
//! flushed) or reclaimed (`readmission`). A segment with pages that are not on the device yet is never reused.

mod large;
mod probe;
pub(crate) mod readmission;
mod recover;
pub(crate) mod stream;
mod victim;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::*};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use larder_device::IoBuf;

use super::health::{Access, Health, Phase};
use super::openings::Openings;
use super::page::{self, Page, PageId};
use super::sealed::Sealed;
use super::segment_table::Table;
use super::write::{Demotion, Large, Work, WriteJob, WriteSource};
use super::write_buffer::{WriteBuffer, WriteBufferState};
use super::{PAGE_BYTES, SEGMENT_BYTES, SEGMENT_PAGES};
use crate::arena::Region;
use crate::index::entry::{SsdPlace, pages_of_class};
use crate::policy::readmission::Readmission;
use crate::policy::write_budget::WriteBudget;

use readmission::Reclaim;
use stream::{Open, STREAMS};

/// Why a record was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// No write buffer or no segment is free just now; a completed write will change that.
    Full,
    /// No segment is free, and none with live items may be filled anew.
    UsedUp,
    /// The tier is off.
    Off,
}

/// Where one segment lies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SegmentLocation {
    pub device: u32,
    pub offset: u64,
}

/// Writes in flight while no reads wait.
const WRITES_MAX: usize = 4;
/// Bytes in flight while reads wait, or one write: as much as a device takes in one go, whatever the
/// size of the buffers. So much again for each part of [`WRITES_MAX`] of the buffers that wait: a device that
/// does not keep up with the sets must work more at once before connections that store have to wait.
const BESIDE_READS_BYTES: usize = 256 << 10;

/// What a log is opened with besides its memory.
pub(crate) struct Rules {
    /// Random: it tells this store's pages from any other's.
    pub store: u64,
    pub write_buffer_bytes: usize,
    pub demotion_bytes_max: usize,
    pub reuses: bool,
    pub live_percent_max: u32,
    pub budget: WriteBudget,
}

pub(crate) struct Log {
    pub(crate) table: Table,
    /// A line for each write buffer.
    lines: Region<WriteBufferState>,
    locations: Vec<SegmentLocation>,
    store: u64,
    write_buffer_bytes: usize,
    /// Bytes of large records that may be on their way at once, so that a slow device does not keep all of
    /// RAM; one may always.
    demotion_bytes_max: usize,
    /// Whether a segment with live items may be filled anew when none is free.
    reuses: bool,
    /// The most live records that are all kept, in percent of the SSD.
    live_percent_max: u32,
    pub(crate) budget: WriteBudget,
    state: Mutex<State>,
    pub(crate) health: Health,
    pub(crate) bytes_admitted: AtomicU64,
    pub(crate) bytes_written: AtomicU64,
    pub(crate) device_writes: AtomicU64,
    /// Bytes of records that were written again to be kept.
    pub(crate) bytes_moved: AtomicU64,
    /// Segments whose live records were all moved.
    pub(crate) segments_cleaned: AtomicU64,
    /// Live items whose segment was reused.
    pub(crate) evictions: AtomicU64,
    /// Segments that were opened at least once.
    used: AtomicU32,
    sweeps: AtomicU32,
    most_openings: AtomicU32,
    sweep_wanted: AtomicBool,
    /// Where the search for segments that have expired goes on.
    next_spent: AtomicU32,
    /// The time and the flush epoch as last noted.
    seen_now: AtomicU32,
    seen_epoch: AtomicU32,
}

struct State {
    streams: [Option<Open>; STREAMS],
    free_write_buffers: Vec<WriteBuffer>,
    queue: VecDeque<Work>,
    in_flight: Vec<Work>,
    /// Segments ready to be filled.
    free: VecDeque<u32>,
    sealed: Sealed,
    openings: Openings,
    /// The segment that is reused next, once it was selected. It is not sealed.
    reclaim: Option<Reclaim>,
    /// How much of it is written again.
    readmission: Readmission,
    large: Vec<Large>,
    /// The segment and the page of a probe under way.
    probe: Option<(u32, Arc<IoBuf>)>,
    next_id: u64,
}

/// What one read of the SSD takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageRead {
    pub device: u32,
    pub offset: u64,
    pub bytes: usize,
    pub id: PageId,
}

impl Log {
    /// A log of which nothing is filled.
    pub(crate) fn new(
        table: Table,
        locations: Vec<SegmentLocation>,
        write_buffers: Vec<Region<u8>>,
        lines: Region<WriteBufferState>,
        rules: Rules,
    ) -> Log {
        let Rules { store, write_buffer_bytes, demotion_bytes_max, reuses, live_percent_max, budget } = rules;
        assert_eq!(table.count() as usize, locations.len());
        assert!(
            write_buffers.iter().all(|write_buffer| write_buffer.len() == write_buffer_bytes)
                && write_buffers.len() == lines.len()
        );
        let numbered = write_buffers.into_iter().zip(0..);
        let free_write_buffers = numbered.map(|(memory, number)| WriteBuffer { number, memory }).collect();
        Log {
            state: Mutex::new(State {
                streams: [const { None }; STREAMS],
                free_write_buffers,
                queue: VecDeque::new(),
                in_flight: Vec::new(),
                free: (0..table.count()).collect(),
                sealed: Sealed::new(table.count()),
                openings: Openings::new(table.count()),
                reclaim: None,
                readmission: Readmission::new(table.count()),
                large: Vec::new(),
                probe: None,
                next_id: 0,
            }),
            health: Health::new(!locations.is_empty()),
            bytes_admitted: AtomicU64::new(0),
            bytes_written: AtomicU64::new(0),
            device_writes: AtomicU64::new(0),
            bytes_moved: AtomicU64::new(0),
            segments_cleaned: AtomicU64::new(0),
            evictions: AtomicU64::new(0),
            used: AtomicU32::new(0),
            sweeps: AtomicU32::new(0),
            most_openings: AtomicU32::new(0),
            sweep_wanted: AtomicBool::new(false),
            next_spent: AtomicU32::new(0),
            seen_now: AtomicU32::new(0),
            seen_epoch: AtomicU32::new(0),
            table,
            lines,
            locations,
            store,
            write_buffer_bytes,
            demotion_bytes_max,
            reuses,
            live_percent_max,
            budget,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_off(&self) -> bool {
        self.health.is_off()
    }

    pub(crate) fn segments(&self) -> u32 {
        self.locations.len() as u32
    }

    /// Whether the next segment to open would cost live items: more than half as many as the mean segment has.
    /// Fewer are the price of keeping new items, as where everything is overwritten again and again.
    pub(crate) fn is_full(&self) -> bool {
        let state = self.lock();
        let mean = self.table.items() / u64::from(self.segments().max(1));
        let reclaimed = state.reclaim.as_ref().map(|reclaim| reclaim.segment);
        let next = reclaimed.or_else(|| state.sealed.oldest_first().next());
        let live = next.map_or(0, |segment| self.table.live(segment));
        state.free.len() <= self.reserved_segments() && 2 * u64::from(live) > mean
    }

    /// Counts the outcome of a device operation; failures in a row that last turn the tier off.
    pub(crate) fn count_outcome(&self, access: Access, ok: bool) {
        self.health.count_outcome(access, ok);
    }

    fn ssd_copy(&self, segment: u32) -> SegmentLocation {
        self.locations[segment as usize]
    }

    fn page_id(&self, segment: u32, generation: u32, page: u32) -> PageId {
        PageId { store: self.store, segment, generation, page }
    }

    /// The read that fetches the record at `place`, unless it is gone.
    pub(crate) fn read_of(&self, place: SsdPlace) -> Option<PageRead> {
        let generation = self.table.current_generation(place)?;
        let ssd_copy = self.locations[place.segment as usize];
        let page = u32::from(place.page);
        let pages = pages_of_class(place.class).min(SEGMENT_PAGES - page);
        Some(PageRead {
            device: ssd_copy.device,
            offset: ssd_copy.offset + u64::from(page) * PAGE_BYTES as u64,
            bytes: pages as usize * PAGE_BYTES,
            id: self.page_id(place.segment, generation, page),
        })
    }

    /// Looks into the page at `place` if it is still in memory.
    pub(crate) fn with_buffered<R>(&self, place: SsdPlace, look: impl FnOnce(Page<'_>) -> R) -> Option<R> {
        if !self.table.has_pending(place) {
            return None;
        }
        let state = self.lock();
        let generation = self.table.current_generation(place)?;
        let page = u32::from(place.page);
        let id = self.page_id(place.segment, generation, page);
        for open in state
            .streams
            .iter()
            .flatten()
            .filter(|open| open.segment == place.segment && open.generation == generation)
        {
            let Some(filling) = &open.write_buffer else { continue };
            let Some(at) = page.checked_sub(filling.first_page).map(|pages| pages as usize * PAGE_BYTES)
            else {
                continue;
            };
            let (fill, memory) = (&filling.fill, &filling.write_buffer.memory);
            if at == fill.page_at && fill.open.bytes > 0 {
                return Some(look(page::open(id, &memory[at..], fill.open)));
            }
            if at < fill.page_at {
                let (sealed, behind) = memory[at..].split_at(fill.page_at - at);
                let pages = sealed.len() / PAGE_BYTES;
                if fill.open.bytes == 0 || pages_of_class(place.class) as usize <= pages {
                    return page::verify(id, sealed).map(look);
                }
                // A record goes on in the open page: that one is sealed for this look.
                let mut copy = [sealed, &behind[..PAGE_BYTES]].concat();
                page::seal(id.behind(pages), &mut copy[sealed.len()..], fill.open);
                return page::verify(id, &copy).map(look);
            }
        }
        let work = state.queue.iter().chain(&state.in_flight).find(|work| {
            work.segment == place.segment
                && work.generation == generation
                && matches!(work.source, WriteSource::WriteBuffer(_))
                && page >= work.first_page
                && ((page - work.first_page) as usize) < work.bytes / PAGE_BYTES
        })?;
        let at = (page - work.first_page) as usize * PAGE_BYTES;
        page::verify(id, &work.data()[at..]).map(look)
    }

    /// The next write to perform, if one may start now.
    pub(crate) fn next_write(&self, reads_wait: bool) -> Option<WriteJob> {
        let mut state = self.lock();
        if self.is_off()
            && let Some(probe) = self.next_probe(&mut state)
        {
            return Some(probe);
        }
        let under_way: usize = state.in_flight.iter().map(|work| work.bytes).sum();
        let next = state.queue.front()?;
        let beside_reads = BESIDE_READS_BYTES * (1 + state.queue.len() * WRITES_MAX / self.lines.len());
        let fits = under_way == 0 || under_way + next.bytes <= beside_reads;
        if state.in_flight.len() >= WRITES_MAX || reads_wait && !fits {
            return None;
        }
        let work = state.queue.pop_front()?;
        state.in_flight.push(work.clone());
        let ssd_copy = self.locations[work.segment as usize];
        Some(WriteJob {
            device: ssd_copy.device as usize,
            offset: ssd_copy.offset + u64::from(work.first_page) * PAGE_BYTES as u64,
            work,
        })
    }

    /// Takes a job back that could not be started; it is the next one again.
    pub(crate) fn put_back(&self, job: WriteJob) {
        let mut state = self.lock();
        let is_job = |work: &Work| work.id == job.work.id && work.first_page == job.work.first_page;
        state.in_flight.retain(|work| !is_job(work));
        if Log::is_probe(&job.work) {
            // Another one is written instead.
            state.probe = None;
            self.health.probing().phase = Phase::Write;
            return;
        }
        state.queue.push_front(job.work);
    }

    /// Takes a performed write back; returns a large record whose demotion that completes.
    pub(crate) fn complete_write(&self, job: WriteJob, ok: bool) -> Option<Demotion> {
        let is_probe = Log::is_probe(&job.work);
        if is_probe {
            self.health.probed(ok);
        } else {
            self.count_outcome(Access::Write, ok);
        }
        if ok {
            self.device_writes.fetch_add(1, Relaxed);
            self.bytes_written.fetch_add(job.work.bytes as u64, Relaxed);
        }
        let mut state = self.lock();
        let in_flight = state
            .in_flight
            .iter()
            .position(|work| work.id == job.work.id && work.first_page == job.work.first_page);
        drop(state.in_flight.swap_remove(in_flight.expect("a job is completed once")));
        if is_probe {
            return None;
        }
        self.table.remove_pending(job.work.segment);
        match job.work.source {
            WriteSource::WriteBuffer(write_buffer) => {
                if let Ok(write_buffer) = Arc::try_unwrap(write_buffer) {
                    self.lines[write_buffer.number as usize].clear();
                    state.free_write_buffers.push(write_buffer);
                } else {
                    unreachable!("a write buffer is shared after its write");
                }
                None
            }
            WriteSource::Large(..) | WriteSource::Copy(..) => {
                let at = state.large.iter().position(|large| large.id == job.work.id)?;
                let large = &mut state.large[at];
                large.parts_left -= 1;
                large.failed |= !ok;
                if large.parts_left > 0 {
                    return None;
                }
                let Large { failed, mut demotion, .. } = state.large.swap_remove(at);
                if failed {
                    demotion.to = None;
                }
                Some(demotion)
            }
        }
    }

    /// Returns how many segments were opened before the oldest one that is being filled or written.
    pub(crate) fn openings_before_open(&self) -> u32 {
        let open: Vec<u32> = self.lock().streams.iter().flatten().map(|open| open.segment).collect();
        let pending = (0..self.segments()).filter(|segment| self.table.pending(*segment) > 0);
        let ages = open.into_iter().chain(pending).map(|segment| self.table.age_of(segment));
        let openings = self.table.openings();
        ages.max().map_or(openings, |age| openings.wrapping_sub(age).wrapping_sub(1))
    }

    /// Writes under way and waiting to start.
    pub(crate) fn writes_pending(&self) -> usize {
        let state = self.lock();
        state.queue.len() + state.in_flight.len()
    }

    /// Segments that were opened at least once.
    pub(crate) fn segments_used(&self) -> u32 {
        self.used.load(Relaxed)
    }

    /// Counts a segment that an earlier process opened, or did not, as its `generation` tells.
    fn count_used(&self, generation: u32) {
        self.used.fetch_add(u32::from(generation != 0), Relaxed);
    }

    /// Sweeps of the index that have begun; see [`Openings`].
    pub(crate) fn sweeps(&self) -> u32 {
        self.sweeps.load(Relaxed)
    }

    /// Begins another sweep of the index; the one before has visited every bucket.
    pub(crate) fn begin_sweep(&self) {
        self.sweeps.fetch_add(1, SeqCst);
        self.most_openings.store(0, Relaxed);
        self.sweep_wanted.store(false, Relaxed);
    }

    /// How often the segment that was opened most was opened during this sweep.
    pub(crate) fn most_openings(&self) -> u32 {
        self.most_openings.load(Relaxed)
    }

    /// Whether no segment can be opened before the sweep has ended.
    pub(crate) fn is_sweep_wanted(&self) -> bool {
        self.sweep_wanted.load(Relaxed)
    }

    /// Asks for the end of the sweep if one of `segments` could be opened but for that.
    fn want_sweep_if_resting(&self, mut segments: impl Iterator<Item = u32>) {
        if segments.any(|segment| self.table.pending(segment) == 0) {
            self.sweep_wanted.store(true, Relaxed);
        }
    }

    /// Counts that a segment is opened, in `generation`.
    fn count_opening(&self, state: &mut State, segment: u32, generation: u32) {
        let openings = state.openings.count(segment, self.sweeps());
        self.most_openings.fetch_max(openings.into(), Relaxed);
        self.used.fetch_add(u32::from(generation == 1), Relaxed);
    }
}

const _: () = assert!(SEGMENT_BYTES.is_multiple_of(PAGE_BYTES as u64));
