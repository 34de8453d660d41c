//! The sealed segments of the log, oldest first. Any of them can be removed in constant time.

use std::collections::VecDeque;

/// Sealed segments in the order they were sealed in.
///
/// A segment that is removed leaves its line in the queue behind. A line counts while `generations` holds the
/// generation that the line was queued with.
pub(super) struct Sealed {
    queue: VecDeque<(u32, u32)>,
    /// By segment: the generation it is sealed in, 0 while it is not sealed.
    generations: Vec<u32>,
    count: usize,
}

/// Dead lines that the queue may hold besides one for each sealed segment.
const DEAD_LINES_MIN: usize = 64;

impl Sealed {
    /// Returns a queue for `segments` segments, none of which is sealed.
    pub(super) fn new(segments: u32) -> Self {
        Sealed { queue: VecDeque::new(), generations: vec![0; segments as usize], count: 0 }
    }

    /// Returns the number of sealed segments.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Returns the number of lines, dead ones included.
    pub(super) fn lines(&self) -> usize {
        self.queue.len()
    }

    /// Returns the segment of line `at`, counted from the oldest, unless that line is dead.
    pub(super) fn get(&self, at: usize) -> Option<u32> {
        self.queue.get(at).filter(|line| self.counts(line)).map(|line| line.0)
    }

    fn counts(&self, &(segment, generation): &(u32, u32)) -> bool {
        self.generations[segment as usize] == generation
    }

    /// Returns the sealed segments, oldest first.
    pub(super) fn oldest_first(&self) -> impl Iterator<Item = u32> + '_ {
        self.queue.iter().filter(|line| self.counts(line)).map(|line| line.0)
    }

    /// Adds a segment that was sealed in `generation`, which is not 0, as the newest.
    pub(super) fn push(&mut self, segment: u32, generation: u32) {
        if self.queue.len() > 2 * self.count + DEAD_LINES_MIN {
            let generations = &self.generations;
            self.queue.retain(|&(segment, generation)| generations[segment as usize] == generation);
        }
        self.queue.push_back((segment, generation));
        self.generations[segment as usize] = generation;
        self.count += 1;
    }

    /// Removes a segment; returns the generation it was sealed in, or `None` when it is not sealed.
    pub(super) fn remove(&mut self, segment: u32) -> Option<u32> {
        let generation = std::mem::take(&mut self.generations[segment as usize]);
        if generation == 0 {
            return None;
        }
        self.count -= 1;
        while self.queue.front().is_some_and(|line| !self.counts(line)) {
            self.queue.pop_front();
        }
        Some(generation)
    }

    /// Removes all segments.
    pub(super) fn clear(&mut self) {
        self.queue.clear();
        self.generations.fill(0);
        self.count = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_leave_from_anywhere_and_come_back_as_the_newest() {
        let mut sealed = Sealed::new(5);
        (0..5).for_each(|segment| sealed.push(segment, 1));
        assert_eq!((sealed.remove(2), sealed.remove(2)), (Some(1), None));
        assert_eq!(sealed.oldest_first().collect::<Vec<_>>(), [0, 1, 3, 4]);
        sealed.push(2, 2);
        assert_eq!(sealed.remove(0), Some(1));
        assert_eq!((sealed.oldest_first().collect::<Vec<_>>(), sealed.len()), (vec![1, 3, 4, 2], 4));
    }

    #[test]
    fn dead_lines_do_not_pile_up_behind_an_old_segment() {
        let mut sealed = Sealed::new(2);
        sealed.push(0, 1);
        for generation in 1..10_000 {
            sealed.push(1, generation);
            sealed.remove(1);
        }
        assert!(sealed.lines() <= DEAD_LINES_MIN + 4, "{} lines", sealed.lines());
        assert_eq!(sealed.oldest_first().collect::<Vec<_>>(), [0]);
    }
}
