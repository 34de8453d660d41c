//! The one mapped block of memory that holds a store's RAM side, carved into regions that never overlap.
//!
//! Offsets, never pointers, are kept inside the arena, so the same bytes can be mapped again at another
//! address by a later process (`header` tells what it finds). A [`Region`] is an owned slice of the mapping:
//! its holder is the only user. Memory that changes owners while the store runs (RAM segments) is handed
//! out as a [`SharedRegion`], whose users prove their claim.

use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munlock, munmap};

/// Types whose every bit pattern is a value, so that zeroed or foreign memory can be looked at as them: they have
/// no niche and no pointer.
pub(crate) trait Plain: zerocopy::FromBytes + Send {}

impl<T: zerocopy::FromBytes + Send> Plain for T {}

struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
    /// How unused pages are given back to the system.
    discard: Advice,
    /// Whether pages that were given back must be had again before they are used.
    must_populate: bool,
}

// SAFETY: the mapping is plain memory, valid until dropped; access is governed by Region and SharedRegion.
unsafe impl Send for Mapping {}
// SAFETY: as above; Mapping itself offers no access.
unsafe impl Sync for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: start and bytes are those of a mapping made in Arena::new; every Region holds the Arc that
        // keeps it, so no slice of it is alive. A failure can only leak address space.
        unsafe {
            let _ = munmap(self.start.as_ptr().cast(), self.bytes);
        }
    }
}

/// What memory is taken from the system and given back by.
const PAGE_BYTES: usize = 4096;

/// A mapping that is being carved, front to back.
pub(crate) struct Arena {
    mapping: Arc<Mapping>,
    carved: usize,
}

impl Arena {
    /// Maps `bytes` of zeroed memory, or, with `file` (already at least that long), the file's own bytes.
    pub(crate) fn new(bytes: usize, file: Option<&File>) -> io::Result<Arena> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a null hint lets the kernel choose free addresses, so nothing existing is replaced. A file
        // mapping is shared with any other process that maps the file; the store's lock on it keeps others out.
        let start = unsafe {
            match file {
                None => mmap_anonymous(
                    std::ptr::null_mut(),
                    bytes,
                    protection,
                    MapFlags::PRIVATE | MapFlags::NORESERVE,
                ),
                Some(file) => mmap(std::ptr::null_mut(), bytes, protection, MapFlags::SHARED, file, 0),
            }
        }?;
        let start =
            NonNull::new(start.cast::<u8>()).ok_or_else(|| io::Error::other("mapping at address zero"))?;
        // SAFETY: exactly the range just mapped; the advice changes speed, not contents. Ignored where
        // unsupported.
        unsafe {
            let _ = madvise(start.as_ptr().cast(), bytes, Advice::LinuxHugepage);
        }
        let discard = if file.is_some() { Advice::LinuxRemove } else { Advice::LinuxDontNeed };
        Ok(Arena { mapping: Arc::new(Mapping { start, bytes, discard, must_populate: false }), carved: 0 })
    }

    /// The same, of a file with limited room: where there is none left for a page, using it ends the process.
    ///
    /// # Panics
    /// When something is carved from it already.
    pub(crate) fn with_limited_room(mut self) -> Arena {
        Arc::get_mut(&mut self.mapping).expect("nothing is carved yet").must_populate = true;
        self
    }

    /// Takes the next `bytes`, aligned, out of the uncarved rest.
    fn take(&mut self, bytes: usize, align: usize) -> NonNull<u8> {
        let from = self.carved.next_multiple_of(align);
        let to = from + bytes;
        assert!(
            to <= self.mapping.bytes,
            "the layout asks for {to} bytes of an arena of {}",
            self.mapping.bytes
        );
        self.carved = to;
        // SAFETY: from <= to <= bytes of the mapping, checked above.
        unsafe { self.mapping.start.add(from) }
    }

    /// An owned region of `len` values, which begins on a cache line.
    pub(crate) fn carve<T: Plain>(&mut self, len: usize) -> Region<T> {
        let start = self.take(len * size_of::<T>(), align_of::<T>().max(64)).cast();
        Region { start, len, _mapping: self.mapping.clone(), owns: PhantomData }
    }

    /// A region for each of `owners` (a power of two), of at most `most` values each, which lie in turn: the first
    /// value of each, then the second. So what lies behind the last one in use is one stretch, and takes no memory.
    /// Each owner uses `len` values at first.
    pub(crate) fn carve_strided<T: Plain>(
        &mut self,
        len: usize,
        most: usize,
        owners: usize,
    ) -> (Vec<Strided<T>>, Stretch) {
        assert!(owners.is_power_of_two() && len <= most);
        let row_bytes = owners * size_of::<T>();
        let memory = self.carve_shared(most * row_bytes);
        let first: NonNull<T> = memory.start.cast();
        let shift = owners.trailing_zeros();
        let used = (0..owners).map(|_| AtomicUsize::new(len)).collect();
        let rows = Arc::new(Rows { granted: AtomicUsize::new(len), used });
        let parts = (0..owners).map(|owner| {
            // SAFETY: inside the stretch just carved, if there are values at all.
            let first = if most == 0 { first } else { unsafe { first.add(owner) } };
            let (rows, _mapping) = (rows.clone(), self.mapping.clone());
            Strided { first, shift, len, most, owner, rows, _mapping, owns: PhantomData }
        });
        (parts.collect(), Stretch { memory, row_bytes, rows: rows.clone() })
    }

    /// An owned region of `bytes` that begins on a page, as direct I/O asks.
    pub(crate) fn carve_pages(&mut self, bytes: usize) -> Region<u8> {
        let start = self.take(bytes, PAGE_BYTES);
        Region { start, len: bytes, _mapping: self.mapping.clone(), owns: PhantomData }
    }

    /// A page-aligned region of bytes whose parts change owners.
    pub(crate) fn carve_shared(&mut self, bytes: usize) -> SharedRegion {
        SharedRegion { start: self.take(bytes, PAGE_BYTES), bytes, mapping: self.mapping.clone() }
    }
}

/// An owned slice of the arena.
pub(crate) struct Region<T: Plain> {
    start: NonNull<T>,
    len: usize,
    _mapping: Arc<Mapping>,
    owns: PhantomData<T>,
}

// SAFETY: a Region is the only way to its bytes (carve never hands out a byte twice), like a Box<[T]>; T:
// Send.
unsafe impl<T: Plain> Send for Region<T> {}
// SAFETY: as for Box<[T]>: sharing it shares only &T.
unsafe impl<T: Plain + Sync> Sync for Region<T> {}

impl<T: Plain> Deref for Region<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // SAFETY: start..start+len lies in the mapping, is aligned (carve), initialised (mapped memory, T:
        // Plain) and owned by self alone.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T: Plain> DerefMut for Region<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in deref; &mut self makes it exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl AsRef<[u8]> for Region<u8> {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

/// Owned values of the arena between those of other owners: see [`Arena::carve_strided`].
pub(crate) struct Strided<T: Plain> {
    first: NonNull<T>,
    /// Values lie `1 << shift` apart.
    shift: u32,
    /// Values in use, and how many there may be.
    len: usize,
    most: usize,
    /// Which owner, of those that share the rows.
    owner: usize,
    rows: Arc<Rows>,
    _mapping: Arc<Mapping>,
    owns: PhantomData<T>,
}

/// How many rows of strided values are used: a value of each owner.
struct Rows {
    granted: AtomicUsize,
    /// By owner.
    used: Box<[AtomicUsize]>,
}

// SAFETY: a Strided is the only way to its values (those of another owner have another remainder), like a
// Box<[T]>; T: Send. The Stretch lends none of its bytes, and discards those of values that are not in use.
unsafe impl<T: Plain> Send for Strided<T> {}
// SAFETY: as for Box<[T]>: sharing it shares only &T.
unsafe impl<T: Plain + Sync> Sync for Strided<T> {}

impl<T: Plain> Strided<T> {
    /// Returns how many values may come to be in use.
    pub(crate) fn most(&self) -> usize {
        self.most
    }

    /// Uses `len` values from now on. Returns false, and changes nothing, if they are not [granted](Stretch::grant).
    pub(crate) fn resize(&mut self, len: usize) -> bool {
        assert!(len <= self.most);
        let used = &self.rows.used[self.owner];
        // First what is used, then whether it may be: Stretch::take_back does it the other way round.
        used.store(len, SeqCst);
        let is_granted = len <= self.rows.granted.load(SeqCst);
        if is_granted {
            self.len = len;
        } else {
            used.store(self.len, SeqCst);
        }
        is_granted
    }

    /// Returns the address of the first value, for prefetching, and the bytes between two values.
    pub(crate) fn address(&self) -> (usize, usize) {
        (self.first.addr().get(), size_of::<T>() << self.shift)
    }

    #[inline]
    pub(crate) fn get(&self, at: usize) -> &T {
        assert!(at < self.len, "value {at} is not or no longer in use");
        // SAFETY: below len, so inside the stretch that was carved and not discarded; aligned, since that begins on
        // a page and a page is a multiple of the alignment; initialised (mapped memory, T: Plain); and owned by self
        // alone.
        unsafe { self.first.add(at << self.shift).as_ref() }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, at: usize) -> &mut T {
        assert!(at < self.len, "value {at} is not or no longer in use");
        // SAFETY: as in get; &mut self makes it exclusive.
        unsafe { self.first.add(at << self.shift).as_mut() }
    }
}

/// The memory of strided values: a row has one value of each owner.
pub(crate) struct Stretch {
    memory: SharedRegion,
    row_bytes: usize,
    rows: Arc<Rows>,
}

impl Stretch {
    /// Lets the owners use `rows` rows, which are no fewer than before. Returns false, and changes nothing, if the
    /// system has no memory for them.
    pub(crate) fn grant(&mut self, rows: usize) -> bool {
        let before = self.rows.granted.load(SeqCst);
        assert!(rows >= before && rows * self.row_bytes <= self.memory.bytes());
        // Whole pages, of which the first may be in use.
        let from = before * self.row_bytes / PAGE_BYTES * PAGE_BYTES;
        let has_memory = self.memory.populate(from, rows * self.row_bytes - from);
        if has_memory {
            self.rows.granted.store(rows, SeqCst);
        }
        has_memory
    }

    /// Lets the owners use all rows, whose memory is there as far as an earlier process used it.
    pub(crate) fn grant_what_was_used(&mut self) {
        self.rows.granted.store(self.memory.bytes() / self.row_bytes, SeqCst);
    }

    /// Grants no more than `rows` rows, and gives the memory of the others back to the system. Returns false, and
    /// changes nothing, if an owner uses more.
    pub(crate) fn take_back(&mut self, rows: usize) -> bool {
        let before = self.rows.granted.swap(rows, SeqCst);
        if self.rows.used.iter().any(|used| used.load(SeqCst) > rows) {
            self.rows.granted.store(before, SeqCst);
            return false;
        }
        let from = (rows * self.row_bytes).next_multiple_of(PAGE_BYTES);
        let to = (before * self.row_bytes).next_multiple_of(PAGE_BYTES).min(self.memory.bytes());
        if from < to {
            // SAFETY: no owner accesses a value from `rows` on. Before it does, it states that it uses it and then
            // looks whether it is granted (Strided::resize): if that was before the look at `used` above, it was
            // seen there, and if not, the owner sees what is granted now. None is granted meanwhile (&mut self).
            unsafe { self.memory.discard(from, to - from) };
        }
        true
    }
}

/// Bytes of the arena whose parts change owners; every access states the part's owner.
pub(crate) struct SharedRegion {
    start: NonNull<u8>,
    bytes: usize,
    mapping: Arc<Mapping>,
}

// SAFETY: plain memory; all access is through unsafe methods whose callers prove exclusivity.
unsafe impl Send for SharedRegion {}
// SAFETY: as above.
unsafe impl Sync for SharedRegion {}

impl SharedRegion {
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the address of its beginning, for prefetching.
    pub(crate) fn address(&self) -> usize {
        self.start.addr().get()
    }

    /// Gives the memory of whole pages back to the system; they read as zeros or as before.
    ///
    /// # Safety
    /// Nothing else reads or writes `at..at+len` during the call.
    pub(crate) unsafe fn discard(&self, at: usize, len: usize) {
        assert!(at.checked_add(len).is_some_and(|end| end <= self.bytes));
        // SAFETY: inside the region (asserted), which is mapped, and not accessed during the call (caller). The
        // system refuses to discard locked memory, which is unlocked then; where it still refuses, the pages
        // stay as they are.
        unsafe {
            let pages = self.start.as_ptr().add(at).cast();
            if madvise(pages, len, self.mapping.discard).is_err() && munlock(pages, len).is_ok() {
                let _ = madvise(pages, len, self.mapping.discard);
            }
        }
    }

    /// Lets the system make large pages of `at..at+len`, or has small ones there. Where it knows no advice for parts,
    /// or has too many parts already, all of the region has small ones.
    pub(crate) fn allow_large_pages(&self, at: usize, len: usize, allowed: bool) {
        assert!(at.checked_add(len).is_some_and(|end| end <= self.bytes));
        let advice = if allowed { Advice::LinuxHugepage } else { Advice::LinuxNoHugepage };
        // SAFETY: inside the region (asserted), which is mapped; the advice changes no byte.
        unsafe {
            if madvise(self.start.as_ptr().add(at).cast(), len, advice).is_err() {
                let _ = madvise(self.start.as_ptr().cast(), self.bytes, Advice::LinuxNoHugepage);
            }
        }
    }

    /// Takes the memory of whole pages from the system again, where it may not be there when they are used.
    /// Returns whether it is there; what the pages hold stays.
    pub(crate) fn populate(&self, at: usize, len: usize) -> bool {
        assert!(at.checked_add(len).is_some_and(|end| end <= self.bytes));
        if !self.mapping.must_populate {
            return true;
        }
        // SAFETY: inside the region (asserted), which is mapped; the advice faults pages in as a write would and
        // changes no byte. It reports an error where a write would end the process.
        let populated =
            unsafe { madvise(self.start.as_ptr().add(at).cast(), len, Advice::LinuxPopulateWrite) };
        populated.is_ok()
    }

    /// # Safety
    /// `at..at+len` is not written while the slice lives.
    pub(crate) unsafe fn slice(&self, at: usize, len: usize) -> &[u8] {
        assert!(at.checked_add(len).is_some_and(|end| end <= self.bytes));
        // SAFETY: inside the region (asserted), initialised (mapped), unchanged meanwhile (caller).
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().add(at), len) }
    }

    /// # Safety
    /// `at..at+len` is not read or written elsewhere while the slice lives.
    #[expect(clippy::mut_from_ref, reason = "exclusivity is the caller's proof, not the borrow's")]
    pub(crate) unsafe fn slice_mut(&self, at: usize, len: usize) -> &mut [u8] {
        assert!(at.checked_add(len).is_some_and(|end| end <= self.bytes));
        // SAFETY: inside the region (asserted), initialised (mapped), exclusive (caller).
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().add(at), len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_do_not_overlap_and_outlive_the_arena() {
        let mut arena = Arena::new(1 << 20, None).expect("1 MiB");
        let mut a = arena.carve::<u64>(100);
        let mut b = arena.carve::<u8>(1);
        let c = arena.carve::<u64>(10);
        let pages = arena.carve_pages(8192);
        assert!((pages.as_ptr() as usize).is_multiple_of(4096) && pages.len() == 8192);
        drop(arena);
        a.fill(u64::MAX);
        b[0] = 7;
        assert!(a.len() == 100 && a.iter().all(|&word| word == u64::MAX));
        assert!(c.iter().all(|&word| word == 0) && (c.as_ptr() as usize).is_multiple_of(64));
    }

    #[test]
    fn parts_that_lie_in_turn_do_not_overlap() {
        let mut arena = Arena::new(1 << 20, None).expect("1 MiB");
        let (mut parts, stretch) = arena.carve_strided::<u64>(100, 100, 4);
        assert_eq!((parts.len(), stretch.memory.bytes()), (4, 3200));
        for (owner, part) in parts.iter_mut().enumerate() {
            (0..100).for_each(|at| *part.get_mut(at) = (owner * 1000 + at) as u64);
        }
        for (owner, part) in parts.iter().enumerate() {
            assert!((0..100).all(|at| *part.get(at) == (owner * 1000 + at) as u64));
        }
    }

    #[test]
    fn what_owners_do_not_use_is_given_back_and_nothing_else() {
        let mut arena = Arena::new(1 << 20, None).expect("1 MiB");
        let (mut parts, mut stretch) = arena.carve_strided::<u64>(10, 10_000, 2);
        let [one, two] = &mut parts[..] else { panic!("two") };
        assert!(!one.resize(11), "it is not granted");
        assert!(stretch.grant(10_000) && one.resize(9_000) && two.resize(1_000));
        (0..9_000).for_each(|at| *one.get_mut(at) = u64::MAX);
        (0..1_000).for_each(|at| *two.get_mut(at) = u64::MAX);
        assert!(!stretch.take_back(8_999) && stretch.take_back(9_000));
        assert!((0..9_000).all(|at| *one.get(at) == u64::MAX));
        assert!(one.resize(700) && !stretch.take_back(999) && stretch.take_back(1_000));
        assert!(!one.resize(1_001) && (0..700).all(|at| *one.get(at) == u64::MAX));
        assert!((0..1_000).all(|at| *two.get(at) == u64::MAX));
        assert!(stretch.grant(10_000) && one.resize(9_000));
        // What shares a page with the last row in use stays as it was.
        assert!((1_100..9_000).all(|at| *one.get(at) == 0), "the memory was given back");
    }

    #[test]
    #[should_panic(expected = "no longer in use")]
    fn a_value_that_was_given_up_is_out_of_reach() {
        let mut arena = Arena::new(1 << 20, None).expect("1 MiB");
        let (mut parts, _) = arena.carve_strided::<u64>(10, 10, 1);
        assert!(parts[0].resize(5));
        parts[0].get(5);
    }

    #[test]
    #[should_panic(expected = "the layout asks for")]
    fn carving_more_than_there_is_stops() {
        Arena::new(4096, None).expect("a page").carve::<u8>(5000);
    }
}
