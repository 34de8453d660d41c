//! Page-aligned memory for reads and writes, from the heap or a slab. Never the I/O itself.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

use super::PAGE_BYTES;

/// An owned buffer, aligned to [`PAGE_BYTES`] and a multiple of it long. Always initialised memory: a fresh
/// one from the heap is zero, one from a slab holds whatever it held last.
///
/// Dropping it frees the memory or gives the slot back to its slab. The memory does not move when the value
/// does.
pub struct IoBuf {
    ptr: NonNull<u8>,
    len: usize,
    home: Home,
}

enum Home {
    Heap,
    Slab(Arc<Region>, u32),
}

// SAFETY: an IoBuf is the only owner of its memory, like Box<[u8]>; nothing in it is tied to a thread.
unsafe impl Send for IoBuf {}
// SAFETY: through a shared reference the memory can only be read.
unsafe impl Sync for IoBuf {}

impl IoBuf {
    /// A zeroed buffer from the heap.
    ///
    /// # Panics
    /// When `len` is 0 or no multiple of [`PAGE_BYTES`]. Out of memory aborts.
    pub fn zeroed(len: usize) -> Self {
        IoBuf { ptr: allocate(len), len, home: Home::Heap }
    }

    /// Whether this buffer is a slot of `slab`.
    pub fn is_from(&self, slab: &BufferSlab) -> bool {
        matches!(&self.home, Home::Slab(region, _) if Arc::ptr_eq(region, &slab.region))
    }
}

impl Drop for IoBuf {
    fn drop(&mut self) {
        match &self.home {
            // SAFETY: `zeroed` got this pointer from `allocate` with this length, and only one IoBuf holds
            // it.
            Home::Heap => unsafe { dealloc(self.ptr.as_ptr(), layout(self.len)) },
            Home::Slab(region, slot) => region.give_back(*slot),
        }
    }
}

impl Deref for IoBuf {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `ptr` is valid for `len` initialised bytes for as long as self lives, and self owns them.
        unsafe { std::slice::from_raw_parts(self.ptr.as_ptr(), self.len) }
    }
}

impl DerefMut for IoBuf {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`; the exclusive borrow of the only owner makes the bytes exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.ptr.as_ptr(), self.len) }
    }
}

impl AsRef<[u8]> for IoBuf {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for IoBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let home = if matches!(self.home, Home::Heap) { "heap" } else { "slab" };
        write!(f, "IoBuf({} bytes, {home})", self.len)
    }
}

/// Bytes of a slab's buffer: what nearly every item takes to read, one that lies over a page's end included.
pub const SLOT_BYTES: usize = 2 * PAGE_BYTES;

/// A fixed number of small buffers in one block of memory, which a queue can register with the kernel once
/// instead of having it pin each buffer for each read.
///
/// The block lives until the slab and every buffer taken from it are gone.
pub struct BufferSlab {
    region: Arc<Region>,
}

struct Region {
    ptr: NonNull<u8>,
    len: usize,
    free: Mutex<Vec<u32>>,
}

// SAFETY: the block is handed out slot by slot, each slot to one IoBuf at a time (the free list holds each
// number at most once), and the list is behind a lock.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl BufferSlab {
    /// A slab of `slots` buffers of [`SLOT_BYTES`] each.
    ///
    /// # Panics
    /// When `slots` is 0. Out of memory aborts.
    pub fn new(slots: u32) -> Self {
        assert!(slots > 0, "a slab needs a slot");
        let len = slots as usize * SLOT_BYTES;
        // The lowest slots are handed out first, so a lightly used slab stays in a few cache sets and pages.
        let free = Mutex::new((0..slots).rev().collect());
        BufferSlab { region: Arc::new(Region { ptr: allocate(len), len, free }) }
    }

    /// A buffer of `len` bytes, or `None` when all are out.
    ///
    /// # Panics
    /// When `len` is 0, no multiple of [`PAGE_BYTES`], or more than [`SLOT_BYTES`].
    pub fn take(&self, len: usize) -> Option<IoBuf> {
        assert!(layout(len).size() <= SLOT_BYTES, "a slot has {SLOT_BYTES} bytes, not {len}");
        let slot = self.region.lock().pop()?;
        // SAFETY: every number on the free list is below the slot count, so the offset stays inside the
        // block.
        let ptr = unsafe { self.region.ptr.add(slot as usize * SLOT_BYTES) };
        Some(IoBuf { ptr, len, home: Home::Slab(Arc::clone(&self.region), slot) })
    }

    /// A buffer of `len` bytes: a slot if one fits and is free, else from the heap.
    ///
    /// # Panics
    /// As [`IoBuf::zeroed`].
    pub fn take_or_allocate(&self, len: usize) -> IoBuf {
        let slot = if len <= SLOT_BYTES { self.take(len) } else { None };
        slot.unwrap_or_else(|| IoBuf::zeroed(len))
    }

    /// Buffers not handed out at this moment.
    pub fn free_slots(&self) -> usize {
        self.region.lock().len()
    }

    /// The whole block, for registering it: address and length in bytes.
    pub(super) fn block(&self) -> (*mut u8, usize) {
        (self.region.ptr.as_ptr(), self.region.len)
    }
}

impl Region {
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<u32>> {
        // Nothing panics while the list is held, so a poisoned one is still whole.
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn give_back(&self, slot: u32) {
        self.lock().push(slot);
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: allocated in `BufferSlab::new` with this length; the last reference is gone, so no IoBuf of
        // this block is left.
        unsafe { dealloc(self.ptr.as_ptr(), layout(self.len)) }
    }
}

fn layout(len: usize) -> Layout {
    assert!(len > 0 && len.is_multiple_of(PAGE_BYTES), "{len} bytes are not a whole number of pages");
    Layout::from_size_align(len, PAGE_BYTES).expect("no buffer approaches isize::MAX bytes")
}

fn allocate(len: usize) -> NonNull<u8> {
    let layout = layout(len);
    // SAFETY: `layout` has checked that the size is not zero.
    let ptr = unsafe { alloc_zeroed(layout) };
    NonNull::new(ptr).unwrap_or_else(|| handle_alloc_error(layout))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_and_zero() {
        for pages in 1..5 {
            let buf = IoBuf::zeroed(pages * PAGE_BYTES);
            assert_eq!(buf.as_ptr() as usize % PAGE_BYTES, 0);
            assert_eq!(buf.len(), pages * PAGE_BYTES);
            assert!(buf.iter().all(|&b| b == 0));
        }
    }

    #[test]
    fn slots_are_distinct_and_come_back() {
        let slab = BufferSlab::new(3);
        let mut held = Vec::from([1, 2, 1].map(|pages| slab.take(pages * PAGE_BYTES).expect("a free slot")));
        for (i, buf) in held.iter_mut().enumerate() {
            buf.fill(i as u8 + 1);
        }
        for (i, buf) in held.iter().enumerate() {
            assert!(buf.iter().all(|&b| b == i as u8 + 1), "slot {i} was shared");
        }
        assert!(slab.take(PAGE_BYTES).is_none());
        assert!(!slab.take_or_allocate(PAGE_BYTES).is_from(&slab));
        held.pop();
        assert_eq!(slab.free_slots(), 1);
        assert!(slab.take_or_allocate(PAGE_BYTES).is_from(&slab));
        assert!(!slab.take_or_allocate(SLOT_BYTES + PAGE_BYTES).is_from(&slab));
    }

    #[test]
    fn a_buffer_outlives_its_slab() {
        let slab = BufferSlab::new(1);
        let mut buf = slab.take(PAGE_BYTES).expect("a free slot");
        drop(slab);
        buf.fill(7);
        assert!(buf.iter().all(|&b| b == 7));
    }

    #[test]
    #[should_panic(expected = "whole number of pages")]
    fn a_length_that_is_no_multiple_of_a_page_is_refused() {
        let _ = IoBuf::zeroed(100);
    }
}
