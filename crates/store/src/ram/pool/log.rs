//! Records of log segments that lie over the end of one segment and go on at the front of the next.
//!
//! The header and the key of a record lie in the segment in which it begins. The rest may go on through any
//! number of segments, each linked to the next. Segments of one queue are emptied oldest first, so a record is
//! moved or dropped before any segment in which it goes on becomes free.

use std::sync::atomic::Ordering::*;

use super::{Owner, Pool, SegmentId};
use crate::crash::step;

impl Pool {
    /// Returns how many bytes at the front of a log segment belong to a record of an earlier one.
    pub(crate) fn first(&self, id: SegmentId) -> usize {
        self.meta(id).first.load(Relaxed) as usize
    }

    /// Links an owned log segment to the one in which its last record goes on, for `rest` bytes.
    pub(crate) fn link_log(&self, owner: &mut Owner, id: SegmentId, next: SegmentId, rest: usize) {
        self.check_log(owner, id);
        self.check_log(owner, next);
        step();
        self.meta(next).first.store(rest as u32, Relaxed);
        step();
        self.meta(id).chain.store(next.0 + 1, Relaxed);
    }

    /// Returns the segment in which the last record of a log segment goes on.
    pub(crate) fn log_next(&self, id: SegmentId) -> Option<SegmentId> {
        self.meta(id).chain.load(Relaxed).checked_sub(1).map(SegmentId)
    }

    /// Returns the segments in which `len` bytes of the log from a place on lie.
    pub(crate) fn log_segments(
        &self,
        (id, at): (SegmentId, usize),
        len: usize,
    ) -> impl Iterator<Item = SegmentId> {
        let segments = (at + len).div_ceil(self.segment_bytes);
        std::iter::successors(Some(id), |id| self.log_next(*id)).take(segments)
    }

    /// Returns `len` bytes of the log from a place on, one slice a segment; fewer if the log ends before.
    pub(crate) fn log_parts<'a>(
        &'a self,
        owner: &'a Owner,
        (id, at): (SegmentId, usize),
        len: usize,
    ) -> LogParts<'a> {
        LogParts { pool: self, owner, id: Some(id), at, left: len }
    }

    /// Writes bytes to the log from a place on, over the ends of segments where they lie.
    pub(crate) fn write_log(
        &self,
        owner: &mut Owner,
        (mut id, mut at): (SegmentId, usize),
        mut bytes: &[u8],
    ) {
        while !bytes.is_empty() {
            if at >= self.segment_bytes {
                id = self.log_next(id).expect("the log goes on where a record does");
                at -= self.segment_bytes;
                continue;
            }
            let len = bytes.len().min(self.segment_bytes - at);
            self.bytes_mut(owner, id)[at..at + len].copy_from_slice(&bytes[..len]);
            (bytes, at) = (&bytes[len..], at + len);
        }
    }

    /// Copies `len` bytes of the log to another place of it, in segments that the source has no part in.
    pub(crate) fn copy_log(
        &self,
        owner: &mut Owner,
        (mut from, mut from_at): (SegmentId, usize),
        (mut to, mut to_at): (SegmentId, usize),
        mut len: usize,
    ) {
        while len > 0 {
            if from_at == self.segment_bytes {
                (from, from_at) = (self.log_next(from).expect("the record goes on"), 0);
            }
            if to_at == self.segment_bytes {
                (to, to_at) = (self.log_next(to).expect("there is room for all of it"), 0);
            }
            let run = len.min(self.segment_bytes - from_at).min(self.segment_bytes - to_at);
            self.copy(owner, (from, from_at), (to, to_at), run);
            (from_at, to_at, len) = (from_at + run, to_at + run, len - run);
        }
    }
}

/// The bytes of a record in the log, one slice a segment.
#[derive(Clone)]
pub(crate) struct LogParts<'a> {
    pool: &'a Pool,
    owner: &'a Owner,
    id: Option<SegmentId>,
    at: usize,
    left: usize,
}

impl LogParts<'_> {
    /// Returns how many bytes are left.
    pub(crate) fn len(&self) -> usize {
        self.left
    }
}

impl<'a> Iterator for LogParts<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let segment_bytes = self.pool.segment_bytes;
        while self.left > 0 && self.at >= segment_bytes {
            self.id = self.pool.log_next(self.id?);
            self.at -= segment_bytes;
        }
        let id = self.id.filter(|_| self.left > 0)?;
        let len = self.left.min(segment_bytes - self.at);
        let part = &self.pool.bytes(self.owner, id)[self.at..self.at + len];
        (self.at, self.left) = (self.at + len, self.left - len);
        Some(part)
    }
}
