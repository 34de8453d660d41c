//! The mapped file: a slice of atomic words.
//!
//! Every access to the shared bytes is an atomic one to a whole word, so another process that changes them at any
//! moment is no data race. Readers validate every word that they use.

use std::fs::File;
use std::io;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};

/// Bytes of one word.
pub(super) const WORD: usize = 8;

/// The words of a mapped file.
pub(super) struct Mapping {
    start: NonNull<AtomicU64>,
    words: usize,
}

// SAFETY: the mapping is valid until dropped, whichever thread does that, and is accessed as atomic words only.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `bytes` of the file, shared with all who map it. The file must have all of them allocated: where one
    /// is missing, an access ends the process.
    ///
    /// # Errors
    /// The error that the system reports.
    pub(super) fn new(file: &File, bytes: usize) -> io::Result<Mapping> {
        // SAFETY: a null hint lets the kernel choose free addresses, so no existing memory is replaced.
        let start = unsafe {
            mmap(std::ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, file, 0)
        }?;
        // SAFETY: exactly the range just mapped; the advice changes speed, not contents, and may be refused.
        unsafe {
            let _ = madvise(start, bytes, Advice::LinuxHugepage);
        }
        let start =
            NonNull::new(start.cast()).ok_or_else(|| io::Error::other("a mapping at address zero"))?;
        Ok(Mapping { start, words: bytes / WORD })
    }
}

impl Deref for Mapping {
    type Target = [AtomicU64];

    #[inline]
    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: start..start+words is mapped for reading and writing until self is dropped, and aligned to a
        // page. Any bytes are a valid AtomicU64, whose contents others may change at any time.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.words) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range mapped in new; every borrow of it has ended with self. A failure leaks addresses only.
        unsafe {
            let _ = munmap(self.start.as_ptr().cast(), self.words * WORD);
        }
    }
}

/// Returns the half of a word that holds its low 32 bits, for the kernel: a futex has 32 bits. The program itself
/// accesses the whole word only.
#[inline]
pub(super) fn futex(word: &AtomicU64) -> &AtomicU32 {
    const { assert!(cfg!(target_endian = "little"), "the low half is the first one") };
    // SAFETY: the first four bytes of a live, aligned AtomicU64, for as long as that is borrowed; atomics may be
    // changed through shared references.
    unsafe { &*std::ptr::from_ref(word).cast::<AtomicU32>() }
}

/// Copies of at least so many bytes are made by one instruction, which takes a fifth of the time.
pub(super) const STRING_BYTES_MIN: usize = 256;

/// Copies the front of `words` to `bytes`, if they are many and the processor has an instruction for it. Returns
/// whether it did. The order of the bytes is unspecified, but all are copied before a fence that
/// follows.
#[inline]
pub(super) fn copy_out_at_once(words: &[AtomicU64], bytes: &mut [u8]) -> bool {
    if !cfg!(target_arch = "x86_64") || cfg!(miri) || bytes.len() < STRING_BYTES_MIN {
        return false;
    }
    assert!(bytes.len() <= words.len() * WORD);
    // SAFETY: both ranges are valid for so many bytes (asserted), and do not overlap: one is borrowed for change.
    unsafe { copy_bytes(words.as_ptr().cast(), bytes.as_mut_ptr(), bytes.len()) };
    true
}

/// Copies `bytes` to the front of `words`, as [`copy_out_at_once`].
#[inline]
pub(super) fn copy_in_at_once(words: &[AtomicU64], bytes: &[u8]) -> bool {
    if !cfg!(target_arch = "x86_64") || cfg!(miri) || bytes.len() < STRING_BYTES_MIN {
        return false;
    }
    assert!(bytes.len() <= words.len() * WORD);
    // SAFETY: both ranges are valid for so many bytes (asserted), those of the words for change: they are atomics.
    // They do not overlap, since shared memory is never borrowed as plain bytes.
    unsafe { copy_bytes(bytes.as_ptr(), words.as_ptr().cast::<u8>().cast_mut(), bytes.len()) };
    true
}

/// # Safety
/// `from` is valid for reading `len` bytes, `to` for writing them, and they do not overlap. Others may change the
/// shared one of the two meanwhile.
#[cfg(target_arch = "x86_64")]
#[inline]
unsafe fn copy_bytes(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: the instruction loads and stores each byte of the two ranges (caller) once, as relaxed atomic accesses
    // to bytes would, which no compiler sees as plain ones: so a change by others meanwhile is no data race. The
    // direction flag is clear, as it is on entry to all asm blocks.
    unsafe {
        std::arch::asm!(
            "rep movsb",
            inout("rcx") len => _,
            inout("rsi") from => _,
            inout("rdi") to => _,
            options(nostack, preserves_flags),
        );
    }
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn copy_bytes(_: *const u8, _: *mut u8, _: usize) {}
