//! Large pages of memory from which a part was given back to the system. The system would fill them up with zeros
//! again some seconds later (khugepaged, with its default `max_ptes_none`), and the cache would take more memory
//! than it was given. So they are made of small pages for as long as they have a hole.

use crate::arena::SharedRegion;

/// What the system makes large pages of, on x86-64 and on most arm64.
const LARGE_PAGE_BYTES: usize = 2 << 20;

/// How many segments are out of use in each large page that the segments lie in.
pub(super) struct Holes {
    counts: Vec<u32>,
    /// From the beginning of the first large page to the first segment, in bytes.
    offset: usize,
}

impl Holes {
    /// No holes in this memory.
    pub(super) fn new(memory: &SharedRegion) -> Holes {
        let offset = memory.address() % LARGE_PAGE_BYTES;
        Holes { counts: vec![0; (offset + memory.bytes()).div_ceil(LARGE_PAGE_BYTES)], offset }
    }

    /// Returns the numbers of the large pages that the bytes `at..at+len` lie in.
    fn pages(&self, at: usize, len: usize) -> std::ops::RangeInclusive<usize> {
        let from = self.offset + at;
        from / LARGE_PAGE_BYTES..=(from + len - 1) / LARGE_PAGE_BYTES
    }

    /// Returns the part of the memory that a large page covers, as its beginning and its length in bytes.
    fn part(&self, page: usize, memory: &SharedRegion) -> (usize, usize) {
        let from = (page * LARGE_PAGE_BYTES).saturating_sub(self.offset);
        let to = ((page + 1) * LARGE_PAGE_BYTES - self.offset).min(memory.bytes());
        (from, to - from)
    }

    /// Returns whether a hole at `at` is in a large page that has one already.
    pub(super) fn is_beside_one(&self, at: usize) -> bool {
        self.counts[(self.offset + at) / LARGE_PAGE_BYTES] > 0
    }

    /// Notes that `at..at+len` is about to be given back, and makes its large pages small ones.
    pub(super) fn open(&mut self, at: usize, len: usize, memory: &SharedRegion) {
        for page in self.pages(at, len) {
            self.counts[page] += 1;
            if self.counts[page] == 1 {
                let (from, bytes) = self.part(page, memory);
                memory.allow_large_pages(from, bytes, false);
            }
        }
    }

    /// Notes that `at..at+len` is in use again: its large pages may be large again unless they have another hole.
    pub(super) fn close(&mut self, at: usize, len: usize, memory: &SharedRegion) {
        for page in self.pages(at, len) {
            self.counts[page] -= 1;
            if self.counts[page] == 0 {
                let (from, bytes) = self.part(page, memory);
                memory.allow_large_pages(from, bytes, true);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::Arena;

    #[test]
    fn a_large_page_has_a_hole_until_all_of_its_segments_are_in_use() {
        const SEGMENT: usize = 64 << 10;
        let memory = Arena::new(8 << 20, None).expect("8 MiB").carve_shared(7 << 20);
        let mut holes = Holes::new(&memory);
        let first = LARGE_PAGE_BYTES - holes.offset;
        holes.open(first, SEGMENT, &memory);
        holes.open(first + SEGMENT, SEGMENT, &memory);
        assert!(holes.is_beside_one(first + 5 * SEGMENT) && !holes.is_beside_one(first + LARGE_PAGE_BYTES));
        assert!(!holes.is_beside_one(0) || holes.offset == 0);
        holes.close(first, SEGMENT, &memory);
        assert!(holes.is_beside_one(first));
        holes.close(first + SEGMENT, SEGMENT, &memory);
        assert!(!holes.is_beside_one(first));
    }

    #[test]
    fn a_segment_of_many_large_pages_is_a_hole_in_each() {
        let memory = Arena::new(32 << 20, None).expect("32 MiB").carve_shared(32 << 20);
        let mut holes = Holes::new(&memory);
        holes.open(16 << 20, 16 << 20, &memory);
        let with_holes = |holes: &Holes| holes.counts.iter().filter(|count| **count > 0).count();
        assert!(with_holes(&holes) == 8 + usize::from(holes.offset > 0));
        let parts: Vec<_> = (0..holes.counts.len()).map(|page| holes.part(page, &memory)).collect();
        assert!(
            parts.windows(2).all(|pair| pair[0].0 + pair[0].1 == pair[1].0),
            "they are one after the other"
        );
        assert_eq!(parts.iter().map(|part| part.1).sum::<usize>(), 32 << 20);
        holes.close(16 << 20, 16 << 20, &memory);
        assert_eq!(with_holes(&holes), 0);
    }
}
