//! The replies of a connection in the order of its requests, some of them not known yet. It sends nothing itself.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;

use larder_device::IoBuf;
use larder_store::LargeValue;

/// Replies in the order of their requests. A reply that waits for the SSD keeps its place, and the replies behind
/// it wait too.
#[derive(Default)]
pub struct Output {
    queue: VecDeque<Chunk>,
    /// Bytes behind the queue; encoders append here.
    tail: Vec<u8>,
    /// Bytes of the front chunk (or of the tail, when nothing is queued) that are sent already.
    sent: usize,
    /// Bytes in queued chunks, large values not counted: their memory is the store's.
    queued_bytes: usize,
    /// Bytes of queued large values, which the store cannot use otherwise until they are sent.
    large_bytes: usize,
    /// Bytes of queued read buffers.
    read_bytes: usize,
}

enum Chunk {
    Bytes(Vec<u8>),
    Large(LargeValue),
    /// A read buffer, and the part of it to send.
    Read(IoBuf, Range<usize>),
    Waiting(u64),
}

/// Larger values are sent from the store's memory; smaller ones are copied, which costs less than sending them on
/// their own.
pub(crate) const COPY_BYTES_MAX: usize = 64 << 10;
/// Places for chunks that an idle connection may keep.
const IDLE_CHUNKS: usize = 16;
/// Small chunks are gathered up to this size for one send.
const GATHER_BYTES: usize = 64 << 10;

impl Output {
    /// Returns the buffer that encoders append to.
    pub fn tail(&mut self) -> &mut Vec<u8> {
        &mut self.tail
    }

    /// Lends an empty buffer with capacity for the tail, if the tail has none.
    pub fn lend(&mut self, buffer: &mut Vec<u8>) {
        if self.tail.capacity() == 0 {
            std::mem::swap(&mut self.tail, buffer);
        }
    }

    /// Takes a lent buffer back, unless most of it is still to be sent. A connection with no output keeps no
    /// buffer.
    pub fn give_back(&mut self, buffer: &mut Vec<u8>) {
        let rest = if self.tail.is_empty() {
            Vec::new()
        } else if self.tail.len() < self.tail.capacity() / 8 * 7 {
            self.tail.to_vec()
        } else {
            return;
        };
        let tail = std::mem::replace(&mut self.tail, rest);
        if buffer.capacity() == 0 {
            *buffer = tail;
            buffer.clear();
        }
    }

    /// Appends a large value without copying it, unless it is small enough.
    pub fn push_large(&mut self, value: &LargeValue) {
        if value.len() <= COPY_BYTES_MAX {
            value.parts().for_each(|part| self.tail.extend_from_slice(part));
            return;
        }
        self.close_tail();
        self.large_bytes += value.len();
        self.queue.push_back(Chunk::Large(value.clone()));
    }

    /// Appends a part of a read buffer without copying it. The buffer is held until the part is sent.
    pub fn push_read(&mut self, buffer: IoBuf, part: Range<usize>) {
        self.close_tail();
        self.read_bytes += buffer.len();
        self.queue.push_back(Chunk::Read(buffer, part));
    }

    /// Keeps the next place for a reply that will be [resolved](Self::resolve) by its ticket.
    pub fn push_waiting(&mut self, ticket: u64) {
        self.close_tail();
        self.queue.push_back(Chunk::Waiting(ticket));
    }

    fn close_tail(&mut self) {
        if !self.tail.is_empty() {
            let sent = if self.queue.is_empty() { std::mem::take(&mut self.sent) } else { 0 };
            // The rest of a large buffer is copied out of it, so that the queue holds no more than it counts.
            let bytes = if self.tail.len() < self.tail.capacity() / 2 {
                let bytes = self.tail[sent..].to_vec();
                self.tail.clear();
                bytes
            } else {
                let mut bytes = std::mem::take(&mut self.tail);
                bytes.drain(..sent);
                bytes.shrink_to_fit();
                bytes
            };
            self.queued_bytes += bytes.len();
            self.queue.push_back(Chunk::Bytes(bytes));
        }
    }

    /// Gives up the place of a reply if nothing else is queued. Returns whether it did; then the reply goes to the
    /// tail.
    pub fn take_only_waiting(&mut self, ticket: u64) -> bool {
        let is_alone = self.tail.is_empty()
            && self.queue.len() == 1
            && matches!(self.queue.front(), Some(Chunk::Waiting(waits)) if *waits == ticket);
        if is_alone {
            self.queue.clear();
        }
        is_alone
    }

    /// Puts a reply in the place that was kept for it.
    pub fn resolve(&mut self, ticket: u64, mut reply: Output) {
        let waits = |chunk: &Chunk| matches!(chunk, Chunk::Waiting(waits) if *waits == ticket);
        let Some(at) = self.queue.iter().position(waits) else { return };
        if reply.queue.is_empty() {
            self.queued_bytes += reply.tail.len();
            self.queue[at] = Chunk::Bytes(reply.tail);
            return;
        }
        reply.close_tail();
        self.queued_bytes += reply.queued_bytes;
        self.large_bytes += reply.large_bytes;
        self.read_bytes += reply.read_bytes;
        let behind = self.queue.split_off(at + 1);
        self.queue.pop_back();
        self.queue.extend(reply.queue);
        self.queue.extend(behind);
    }

    /// Returns the bytes of memory held, here and in the store.
    pub fn bytes(&self) -> usize {
        self.queued_bytes + self.large_bytes + self.read_bytes + self.tail.len()
    }

    /// Returns about how much memory is allocated, in bytes.
    pub fn capacity(&self) -> usize {
        let chunks = self.queue.capacity() * size_of::<Chunk>();
        self.queued_bytes + self.read_bytes + self.tail.capacity() + chunks
    }

    /// Returns whether everything has been sent.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.tail.is_empty()
    }

    /// Sends as much as can be sent now. `send` takes some bytes and whether more follow at once, and returns how
    /// many bytes it took. `WouldBlock` ends the attempt.
    pub fn flush(&mut self, mut send: impl FnMut(&[u8], bool) -> io::Result<usize>) -> io::Result<u64> {
        let mut total = 0;
        let mut gathered = Vec::new();
        loop {
            self.gather(&mut gathered);
            // Before a reply that waits nothing may be held back: it can be long in coming.
            let more = match self.queue.get(1) {
                Some(next) => !matches!(next, Chunk::Waiting(_)),
                None => !self.queue.is_empty() && !self.tail.is_empty(),
            };
            let (bytes, len) = match self.queue.front() {
                None if self.tail.is_empty() => return Ok(total),
                None => (&self.tail[self.sent..], self.tail.len()),
                Some(Chunk::Waiting(_)) => return Ok(total),
                Some(Chunk::Bytes(bytes)) if bytes.is_empty() => {
                    self.pop();
                    continue;
                }
                Some(Chunk::Bytes(bytes)) => (&bytes[self.sent..], bytes.len()),
                Some(Chunk::Large(value)) => (value.part_at(self.sent), value.len()),
                Some(Chunk::Read(buffer, part)) => (&buffer[part.clone()][self.sent..], part.len()),
            };
            match send(bytes, more) {
                Ok(sent) => {
                    total += sent as u64;
                    self.sent += sent;
                    if self.sent >= len {
                        self.pop();
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(total),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn pop(&mut self) {
        self.sent = 0;
        match self.queue.pop_front() {
            Some(Chunk::Bytes(bytes)) => self.queued_bytes -= bytes.len(),
            Some(Chunk::Large(value)) => self.large_bytes -= value.len(),
            Some(Chunk::Read(buffer, _)) => self.read_bytes -= buffer.len(),
            Some(Chunk::Waiting(_)) => {}
            None => self.tail.clear(),
        }
        if self.queue.is_empty() && self.queue.capacity() > IDLE_CHUNKS {
            self.queue = VecDeque::new();
        }
    }

    /// Joins small ready chunks at the front, so that a multi-get leaves in one piece.
    fn gather(&mut self, gathered: &mut Vec<u8>) {
        if self.sent > 0 || self.queue.len() < 2 {
            return;
        }
        let small = |chunk: &Chunk| matches!(chunk, Chunk::Bytes(bytes) if bytes.len() < GATHER_BYTES / 2);
        if !self.queue.iter().take(2).all(small) {
            return;
        }
        let joined = |sum: &mut usize, chunk: &Chunk| match chunk {
            Chunk::Bytes(bytes) if *sum < GATHER_BYTES && small(chunk) => {
                *sum += bytes.len();
                Some(*sum)
            }
            _ => None,
        };
        gathered.reserve_exact(self.queue.iter().scan(0, joined).last().unwrap_or(0));
        while gathered.len() < GATHER_BYTES && self.queue.front().is_some_and(small) {
            if let Some(Chunk::Bytes(bytes)) = self.queue.pop_front() {
                gathered.extend_from_slice(&bytes);
            }
        }
        self.queue.push_front(Chunk::Bytes(std::mem::take(gathered)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(output: &mut Output, step: usize) -> Vec<u8> {
        let mut sent = Vec::new();
        let result = output.flush(|bytes, _| {
            let len = bytes.len().min(step);
            sent.extend_from_slice(&bytes[..len]);
            Ok(len)
        });
        assert_eq!(result.expect("never fails"), sent.len() as u64);
        sent
    }

    fn said(bytes: &[u8]) -> Output {
        let mut output = Output::default();
        output.tail().extend_from_slice(bytes);
        output
    }

    #[test]
    fn what_follows_a_waiting_reply_waits_behind_it() {
        for step in [1, 3, 1000] {
            let mut output = Output::default();
            output.tail().extend_from_slice(b"first ");
            output.push_waiting(7);
            output.push_waiting(8);
            output.tail().extend_from_slice(b"last");
            assert_eq!(sent(&mut output, step), b"first ");
            output.resolve(8, said(b"third "));
            assert_eq!(sent(&mut output, step), b"");
            output.resolve(7, said(b"second "));
            assert_eq!(sent(&mut output, step), b"second third last");
            assert!(output.is_empty() && output.bytes() == 0);
        }
    }

    #[test]
    fn a_partly_sent_tail_goes_on_where_it_stopped_when_more_is_queued() {
        let mut output = Output::default();
        output.tail().extend_from_slice(b"abcdef");
        let mut first = true;
        let took = output.flush(|_, _| match std::mem::take(&mut first) {
            true => Ok(2),
            false => Err(io::ErrorKind::WouldBlock.into()),
        });
        assert_eq!(took.expect("would block"), 2);
        output.push_waiting(1);
        output.resolve(1, said(b"!"));
        assert_eq!(sent(&mut output, 100), b"cdef!");
    }
}
