//! The bytes of a batch of requests: lines in one buffer, large values borrowed from the caller.

use std::io::IoSlice;
use std::ops::Range;

/// From this size a value is sent from where it lies. A smaller one is copied, which costs less than a part of its own.
const BORROW_BYTES_MIN: usize = 8 << 10;

/// From this size on, lines are a part of their own. With one more request, which takes up to 8 KiB and a line, they
/// still fit a TLS record of 16 KiB.
const PART_BYTES_MIN: usize = 7 << 10;

#[derive(Debug)]
enum Part<'a> {
    /// A range of the outbox's own lines.
    Lines(Range<usize>),
    Value(&'a [u8]),
}

/// Encoded requests on their way to one server, in order.
#[derive(Debug, Default)]
pub struct Outbox<'a> {
    lines: Vec<u8>,
    parts: Vec<Part<'a>>,
    /// Where the lines begin that are in no part yet.
    open: usize,
    /// The first part that is not sent whole, and how many bytes of it are sent.
    sent: (usize, usize),
}

impl<'a> Outbox<'a> {
    /// Returns the buffer that request lines are appended to.
    pub(super) fn lines(&mut self) -> &mut Vec<u8> {
        &mut self.lines
    }

    /// Appends a value.
    pub(super) fn value(&mut self, value: &'a [u8]) {
        if value.len() < BORROW_BYTES_MIN {
            self.lines.extend_from_slice(value);
            return;
        }
        self.close_lines();
        self.parts.push(Part::Value(value));
    }

    /// Puts the lines since the last value into a part of their own. To be called before bytes are taken.
    pub fn close_lines(&mut self) {
        if self.open < self.lines.len() {
            self.parts.push(Part::Lines(self.open..self.lines.len()));
            self.open = self.lines.len();
        }
    }

    /// Ends a request. No request begins in the part in which an earlier one ends that fills others: over TLS each part
    /// has records of its own, and some servers (memcached 1.6.18) leave requests unread that lie in one record behind
    /// the end of a value which began before it.
    pub fn end_request(&mut self) {
        let follows_value = matches!(self.parts.last(), Some(Part::Value(_)));
        if follows_value || self.lines.len() - self.open >= PART_BYTES_MIN {
            self.close_lines();
        }
    }

    fn bytes(&self, part: &Part<'a>) -> &[u8] {
        match part {
            Part::Lines(range) => self.lines.get(range.clone()).unwrap_or_default(),
            Part::Value(value) => value,
        }
    }

    /// Fills `slices` with the bytes that come next, and returns how many of them it used: 0 when all is sent.
    pub fn next<'s>(&'s self, slices: &mut [IoSlice<'s>]) -> usize {
        let (first, skip) = self.sent;
        let parts = self.parts.get(first..).unwrap_or_default();
        let mut used = 0;
        for (slice, part) in slices.iter_mut().zip(parts) {
            let skip = if used == 0 { skip } else { 0 };
            *slice = IoSlice::new(self.bytes(part).get(skip..).unwrap_or_default());
            used += 1;
        }
        used
    }

    /// Marks the next `bytes` bytes as sent.
    pub fn advance(&mut self, bytes: usize) {
        let (mut first, mut skip) = self.sent;
        let mut left = bytes;
        while let Some(part) = self.parts.get(first) {
            let rest = self.bytes(part).len() - skip;
            if left < rest {
                skip += left;
                break;
            }
            left -= rest;
            (first, skip) = (first + 1, 0);
        }
        self.sent = (first, skip);
    }

    /// Returns whether nothing is left to send.
    pub fn is_sent(&self) -> bool {
        self.sent.0 == self.parts.len() && self.open == self.lines.len()
    }

    /// Returns whether a byte was taken.
    pub fn is_begun(&self) -> bool {
        self.sent != (0, 0)
    }

    /// Returns all bytes, sent or not, in one piece. For tests and diagnosis.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut all: Vec<u8> = self.parts.iter().flat_map(|part| self.bytes(part)).copied().collect();
        all.extend_from_slice(self.lines.get(self.open..).unwrap_or_default());
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_ends_with_a_request_and_those_of_lines_fit_a_tls_record() {
        let (small, large) = (vec![1u8; BORROW_BYTES_MIN - 1], vec![2u8; BORROW_BYTES_MIN]);
        let mut out = Outbox::default();
        let mut ends = Vec::new();
        for value in [&small, &small, &large, &small, &small, &small] {
            out.lines().extend_from_slice(&[b'm'; 300]);
            out.value(value);
            out.lines().extend_from_slice(b"\r\n");
            out.end_request();
            ends.push(out.to_vec().len());
        }
        out.close_lines();
        let mut at = 0;
        for part in &out.parts {
            let begins_inside = !ends.contains(&at) && at != 0;
            at += out.bytes(part).len();
            match part {
                Part::Lines(lines) => assert!(lines.len() <= 16 << 10),
                Part::Value(_) => continue,
            }
            let ended = ends.iter().filter(|end| (at - out.bytes(part).len()..=at).contains(*end)).count();
            assert!(!begins_inside || ended == 1, "a request lies behind the end of another's value");
        }
    }

    #[test]
    fn bytes_leave_in_order_whatever_steps_the_socket_takes() {
        let (small, large) = (vec![1u8; 100], vec![2u8; BORROW_BYTES_MIN]);
        for step in [1, 7, 100, 8191, 8192, 1 << 20] {
            let mut out = Outbox::default();
            for _ in 0..3 {
                out.lines().extend_from_slice(b"ms k\r\n");
                out.value(&small);
                out.value(&large);
                out.lines().extend_from_slice(b"\r\n");
            }
            let all = out.to_vec();
            out.close_lines();
            assert_eq!(out.to_vec(), all);
            let mut sent = Vec::new();
            while !out.is_sent() {
                let mut slices = [IoSlice::new(&[]); 4];
                let used = out.next(&mut slices);
                let bytes: Vec<u8> = slices[..used].iter().flat_map(|slice| slice.iter()).copied().collect();
                let taken = bytes.len().min(step);
                sent.extend_from_slice(&bytes[..taken]);
                out.advance(taken);
            }
            assert_eq!(sent, all, "step {step}");
        }
    }
}
