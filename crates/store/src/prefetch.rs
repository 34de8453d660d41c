//! A hint to the processor. Nothing is read here.

/// Begins to fetch the cache line at `address`, which need not be valid.
#[inline]
pub(crate) fn prefetch(address: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is a hint: it reads nothing that the program can see and never faults, whatever the
    // address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::without_provenance::<i8>(address));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
