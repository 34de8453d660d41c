//! Bytes a peer has sent that are not executed yet. Consuming moves nothing until half of them are consumed,
//! so that a long pipeline which waits at each request is not moved at each request.

/// Received and not yet consumed.
#[derive(Default)]
pub(super) struct Input {
    bytes: Vec<u8>,
    /// The number of `bytes` that are consumed.
    consumed: usize,
    /// The length that the request at the front is known to have; its memory is allocated already. 0 when
    /// nothing is known.
    whole: usize,
}

/// Fewer consumed bytes than this are not worth moving the rest for.
const MOVE_BYTES_MIN: usize = 4 << 10;

impl Input {
    /// Returns whether no bytes are left.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.len() == self.consumed
    }

    /// Returns the bytes left.
    pub(super) fn rest(&self) -> &[u8] {
        &self.bytes[self.consumed..]
    }

    /// Returns the memory allocated, in bytes.
    pub(super) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Returns the bytes still to come of a request whose memory is allocated; 0 for none.
    pub(super) fn missing(&self) -> usize {
        self.whole.saturating_sub(self.rest().len())
    }

    /// Appends received bytes.
    pub(super) fn push(&mut self, fresh: &[u8]) {
        if self.bytes.len() + fresh.len() > self.bytes.capacity() {
            self.compact();
        }
        // No more than needed: this memory counts against the bound of all connections.
        self.bytes.reserve_exact(fresh.len());
        self.bytes.extend_from_slice(fresh);
    }

    /// Allocates the memory of a request of `whole` bytes that begins at the front and is not all there yet.
    pub(super) fn expect(&mut self, whole: usize) {
        if whole > self.whole {
            self.compact();
            self.bytes.reserve_exact(whole.saturating_sub(self.bytes.len()));
            self.whole = whole;
        }
    }

    /// Consumes from the front. An idle connection holds no buffer.
    pub(super) fn consume(&mut self, bytes: usize) {
        self.consumed += bytes;
        if bytes > 0 {
            self.whole = 0;
        }
        if self.is_empty() {
            *self = Input::default();
        } else if self.consumed >= MOVE_BYTES_MIN.max(self.bytes.len() / 2) {
            self.compact();
            // A little of a large buffer is copied out of it.
            if self.bytes.len() < self.bytes.capacity() / 2 {
                self.bytes.shrink_to_fit();
            }
        }
    }

    fn compact(&mut self) {
        self.bytes.drain(..self.consumed);
        self.consumed = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consuming_a_long_pipeline_bit_by_bit_moves_it_a_few_times_only() {
        let mut input = Input::default();
        let sent: Vec<u8> = (0..64 << 10).map(|i| (i % 251) as u8).collect();
        input.push(&sent);
        let mut address = input.rest().as_ptr();
        let mut moves = 0;
        for at in (0..sent.len()).step_by(32) {
            assert_eq!(input.rest()[..32], sent[at..at + 32]);
            input.consume(32);
            moves += u32::from(input.rest().as_ptr() != address.wrapping_add(32));
            address = input.rest().as_ptr();
        }
        assert!(moves <= 6, "{moves} moves");
        assert!(input.is_empty() && input.capacity() == 0, "nothing left holds nothing");
    }

    #[test]
    fn a_request_of_known_length_has_its_memory_once() {
        let mut input = Input::default();
        input.push(b"xxset k 0 0 1000\r\n");
        input.consume(2);
        input.expect(1018);
        let held = input.capacity();
        assert_eq!(input.missing(), 1018 - 16);
        input.push(&[b'v'; 1002]);
        assert_eq!((input.missing(), input.capacity(), input.rest().len()), (0, held, 1018));
        input.consume(1018);
        assert!(input.is_empty() && input.missing() == 0);
    }
}
