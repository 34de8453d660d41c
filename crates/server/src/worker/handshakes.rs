//! The queue of connections whose handshakes can continue, and the memory that all handshakes of a worker hold.
//!
//! ```text
//!   a peer's first bytes --> wait for memory, in order --> begun: its turns come first --> done, or closed in time
//! ```
//! Without a limit of their own, handshakes that are begun and not ended would fill the budget, and no request would
//! find room.

use std::collections::VecDeque;

use crate::tls::{HANDSHAKE_BYTES, RECORD_BYTES_MAX};

/// The bytes that a handshake counts for at least, once it has begun: its own and those of a record.
const USUAL_BYTES: usize = HANDSHAKE_BYTES + RECORD_BYTES_MAX;

/// The handshakes of a worker.
pub(super) struct Handshakes {
    /// Connections that can continue.
    ready: VecDeque<u64>,
    /// Connections that cannot begin before there is memory.
    waiting: VecDeque<u64>,
    /// Bytes that all handshakes count for that have begun.
    bytes: usize,
    /// The limit to these.
    bytes_max: usize,
}

impl Handshakes {
    /// Returns the state of a worker without connections, whose handshakes may hold `bytes_max`. A single one may
    /// hold more.
    pub(super) fn new(bytes_max: usize) -> Handshakes {
        Handshakes { ready: VecDeque::new(), waiting: VecDeque::new(), bytes: 0, bytes_max }
    }

    /// Queues a connection that can continue.
    pub(super) fn push(&mut self, token: u64) {
        self.ready.push_back(token);
    }

    /// Returns how many can have a turn now.
    pub(super) fn ready(&self) -> usize {
        self.ready.len() + if self.has_room() { self.waiting.len() } else { 0 }
    }

    /// Returns whether some wait for memory.
    pub(super) fn are_short(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Returns the next one to have a turn, if `has_begun` or there is memory for it.
    pub(super) fn pop(&mut self, mut has_begun: impl FnMut(u64) -> bool) -> Option<u64> {
        if self.has_room()
            && let Some(token) = self.waiting.pop_front()
        {
            return Some(token);
        }
        while let Some(token) = self.ready.pop_front() {
            if has_begun(token) || self.has_room() {
                return Some(token);
            }
            self.waiting.push_back(token);
        }
        None
    }

    /// Returns whether another handshake may begin.
    fn has_room(&self) -> bool {
        self.bytes == 0 || self.bytes + USUAL_BYTES <= self.bytes_max
    }

    /// Counts one that counted for `counted`, and holds `bytes` now; `None` if it has not begun, or has ended. Returns
    /// what it counts for from now on.
    pub(super) fn count(&mut self, counted: usize, bytes: Option<usize>) -> usize {
        let counts = bytes.map_or(0, |bytes| bytes.max(USUAL_BYTES));
        self.bytes = self.bytes + counts - counted;
        counts
    }

    /// Returns whether a handshake that holds `bytes` is too much: it is larger than usual while memory is short.
    pub(super) fn is_too_much(&self, bytes: usize) -> bool {
        bytes > USUAL_BYTES && self.bytes > self.bytes_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_begin_as_there_is_room_for_and_all_that_have_begun_continue() {
        let mut handshakes = Handshakes::new(3 * USUAL_BYTES);
        (0..5).for_each(|token| handshakes.push(token));
        for token in 0..3 {
            assert_eq!((handshakes.pop(|_| false), handshakes.are_short()), (Some(token), false));
            assert_eq!(handshakes.count(0, Some(HANDSHAKE_BYTES)), USUAL_BYTES);
        }
        assert_eq!(handshakes.pop(|_| false), None, "the fourth waits");
        handshakes.push(1);
        assert_eq!((handshakes.ready(), handshakes.pop(|token| token == 1)), (1, Some(1)));
        handshakes.count(USUAL_BYTES, None);
        assert_eq!((handshakes.ready(), handshakes.pop(|_| false)), (2, Some(3)), "in order");
    }

    #[test]
    fn one_handshake_always_finds_room_and_a_large_one_only_while_there_is_some() {
        let mut handshakes = Handshakes::new(1);
        handshakes.push(7);
        assert_eq!(handshakes.pop(|_| false), Some(7));
        handshakes.count(0, Some(1));
        assert!(!handshakes.is_too_much(USUAL_BYTES) && handshakes.is_too_much(USUAL_BYTES + 1));
        assert!(!Handshakes::new(1).is_too_much(USUAL_BYTES + 1));
    }
}
