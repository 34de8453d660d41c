//! The bound on the memory held for peers: one number, shared by all workers, that every byte passes through.
//!
//! ```text
//!   0               1/4  5/8  3/4  7/8  limit
//!   +----------------+----+----+----+----+
//!   | long receives  |    .    .    .    .
//!   | replies             |    .    .    .
//!   | long lines, 1/4     |    .    .    .
//!   | replies to light peers   |    .    .
//!   | reads                         |    .
//!   | reads for light peers              |
//! ```
//! The last claims finish work that has begun: a request that was received needs room for its reply, a reply for
//! its read. So each [`Claim`] may fill the budget only up to its own limit, and the claims that follow from it
//! always find room. A light peer, one that was served less than its share, finds room where others do not. The one
//! long line that always finds room lies beyond the limit, so that it takes nobody's.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use larder_store::{LOG_RECORD_BYTES_MAX, SSD_VALUE_BYTES_MAX};

/// A turn, or a read, of no more bytes than this is light.
pub(crate) const LIGHT_BYTES: u64 = 64 << 10;

/// The purpose that memory is claimed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// To receive as much as a peer sends at a time.
    Input,
    /// To execute requests and hold their replies.
    Output {
        /// For a peer that was served less than its share.
        light: bool,
    },
    /// To read from the SSD, or to receive the rest of a request whose length is known.
    Finish {
        /// For a peer that was served less than its share.
        light: bool,
    },
}

/// Counts the memory held for peers, in bytes: their unfinished requests, the reads made for them, and the replies
/// that they have not taken.
pub struct Budget {
    limit: u64,
    used: AtomicU64,
    /// Long lines whose memory is taken.
    lines: AtomicU64,
    /// Workers with a connection that waits for memory.
    pressing: AtomicUsize,
    /// Bytes of progress made while there were any.
    progress: AtomicU64,
}

impl Budget {
    /// Returns a budget of `limit` bytes of which nothing is used.
    pub fn new(limit: u64) -> Budget {
        Budget {
            limit,
            used: AtomicU64::new(0),
            lines: AtomicU64::new(0),
            pressing: AtomicUsize::new(0),
            progress: AtomicU64::new(0),
        }
    }

    /// Returns the bound, in bytes.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Returns the bytes in use.
    pub fn used(&self) -> u64 {
        self.used.load(Relaxed)
    }

    fn ceiling(&self, claim: Claim) -> u64 {
        match claim {
            Claim::Input => self.limit / 8 * 2,
            Claim::Output { light: false } => self.limit / 8 * 5,
            Claim::Output { light: true } => self.limit / 8 * 6,
            Claim::Finish { light: false } => self.limit / 8 * 7,
            Claim::Finish { light: true } => self.limit,
        }
    }

    /// Returns the bytes that a claim finds in use, of so many: the one long line that always finds room leaves
    /// theirs to others.
    fn counted(&self, used: u64) -> u64 {
        let lone = if self.lines.load(Relaxed) > 0 { LINE_BYTES_MAX as u64 } else { 0 };
        used.saturating_sub(lone)
    }

    /// Returns whether `bytes` could be taken now. Takes nothing.
    #[inline]
    pub fn has_room(&self, bytes: u64, claim: Claim) -> bool {
        self.counted(self.used()) + bytes <= self.ceiling(claim)
    }

    /// Takes `bytes` if there is room. A read that is large relative to the whole budget finds room as soon as at
    /// most a quarter is in use, so that it cannot wait forever. The bound is exceeded by one such read at most.
    #[must_use]
    pub fn take(&self, bytes: u64, claim: Claim) -> bool {
        let ceiling = self.ceiling(claim);
        let fits = |used: u64| {
            let counted = self.counted(used);
            let alone = matches!(claim, Claim::Finish { .. }) && counted <= self.limit / 4;
            (counted + bytes <= ceiling || alone).then_some(used + bytes)
        };
        self.used.fetch_update(Relaxed, Relaxed, fits).is_ok()
    }

    /// Takes `LINE_BYTES_MAX` for a line that has become long, if there is room: its length is known only when it
    /// ends, and pieces of many lines would fill the budget so that none could end. One line always finds room; the
    /// bound is exceeded by it at most.
    #[must_use]
    pub fn take_line(&self) -> bool {
        let most = (self.limit / 4 / LINE_BYTES_MAX as u64).max(1);
        let Ok(before) =
            self.lines.fetch_update(Relaxed, Relaxed, |lines| (lines < most).then_some(lines + 1))
        else {
            return false;
        };
        let fits = |used: u64| {
            let after = used + LINE_BYTES_MAX as u64;
            (before == 0 || after <= self.ceiling(Claim::Output { light: false })).then_some(after)
        };
        let taken = self.used.fetch_update(Relaxed, Relaxed, fits).is_ok();
        if !taken {
            self.end_line();
        }
        taken
    }

    /// Notes that a line has ended for which memory was taken. Its bytes are given back apart from that.
    pub fn end_line(&self) {
        self.lines.fetch_sub(1, Relaxed);
    }

    /// Gives `bytes` back.
    pub fn give(&self, bytes: u64) {
        self.exchange(bytes, 0);
    }

    /// Exchanges `before` bytes that were taken for `after` bytes that are held now. The caller ensures that
    /// `after` is at most `before`, or that there was room for the difference.
    #[inline]
    pub fn exchange(&self, before: u64, after: u64) {
        if before != after {
            self.used.fetch_add(after.wrapping_sub(before), Relaxed);
        }
    }

    /// Notes for [`progress`](Self::progress) that a peer holds `bytes` less than before, or was served as many
    /// after it waited.
    #[inline]
    pub fn note_progress(&self, bytes: u64) {
        if bytes > 0 && self.is_pressed() {
            self.progress.fetch_add(bytes, Relaxed);
        }
    }

    /// Returns the bytes that peers gave back, or that heavy peers were served, while a connection waited for
    /// memory. As long as this grows, waiting connections only have to wait their turn. Memory taken for one drive
    /// and not needed does not count.
    pub fn progress(&self) -> u64 {
        self.progress.load(Relaxed)
    }

    /// Notes that one more worker, or one less, has a connection that waits for memory.
    pub fn press(&self, more: bool) {
        if more {
            self.pressing.fetch_add(1, Relaxed);
        } else {
            self.pressing.fetch_sub(1, Relaxed);
        }
    }

    /// Returns whether a connection of any worker waits for memory.
    pub fn is_pressed(&self) -> bool {
        self.pressing.load(Relaxed) > 0
    }
}

/// The bytes of the longest line, as the session knows it.
pub(crate) const LINE_BYTES_MAX: usize = 1 << 20;
/// Bytes that one receive takes at most.
pub(crate) const RECEIVE_BYTES: usize = 64 << 10;
/// A session with more output than this executes nothing further until some of it is sent.
pub(crate) const OUTPUT_BYTES: usize = 256 << 10;
/// Bytes that one drive leaves behind besides input and values: heads of replies, places in queues.
const SLACK_BYTES: usize = 16 << 10;

/// Returns the most bytes that one drive adds to the memory of a connection: input, the rest of a request of known
/// length, and replies. The last reply holds a value of up to `value_bytes`, the most that is copied.
pub(crate) fn drive_bytes_max(receive_bytes: usize, output_bytes: usize, value_bytes: usize) -> usize {
    receive_bytes + output_bytes + 2 * value_bytes + SLACK_BYTES
}

/// Returns the memory that a daemon takes besides `-m` and `--conn-memory`, in bytes: a fixed part that follows
/// from the number of threads and connections, and from whether they speak TLS, whatever peers do.
pub fn fixed_bytes(threads: usize, connections: u32, speaks_tls: bool) -> u64 {
    let (tls_thread, tls_connection) =
        if speaks_tls { (TLS_THREAD_BYTES, TLS_CONNECTION_BYTES) } else { (0, 0) };
    let drives = drive_bytes_max(RECEIVE_BYTES, OUTPUT_BYTES, LOG_RECORD_BYTES_MAX) * 2;
    PROCESS_BYTES
        + (drives + THREAD_BYTES + tls_thread) as u64 * threads as u64
        + (CONNECTION_BYTES + tls_connection) * u64::from(connections)
        + LONE_READ_BYTES
        + LINE_BYTES_MAX as u64
}

/// Returns the memory of one worker's read buffers that are registered with the kernel, in bytes. It is part of the
/// budget of `limit_bytes`, an eighth for all workers together.
pub fn slab_bytes(limit_bytes: u64, threads: usize) -> u64 {
    let share = limit_bytes / 8 / threads.max(1) as u64;
    share.clamp(SLAB_BYTES_MIN, SLAB_BYTES_MAX)
}

/// The most memory of the HTTP interface: each of its connections holds a request, or an answer with all metrics.
pub const HTTP_BYTES: u64 = 8 << 20;
/// The program, its libraries, and the memory that the allocator keeps for later.
const PROCESS_BYTES: u64 = 16 << 20;
/// A thread's stack and I/O queue.
const THREAD_BYTES: usize = 256 << 10;
/// A connection that holds nothing.
const CONNECTION_BYTES: u64 = 1536;
/// A thread's buffers for records.
const TLS_THREAD_BYTES: usize = 256 << 10;
/// The TLS of a connection that holds nothing: its keys, and a client's certificate of usual size.
const TLS_CONNECTION_BYTES: u64 = 4 << 10;
/// The one read by which the budget may be exceeded: of the largest item on the SSD, with its pages' headers.
const LONE_READ_BYTES: u64 = SSD_VALUE_BYTES_MAX as u64 / 4 * 5;
const SLAB_BYTES_MIN: u64 = 64 << 10;
const SLAB_BYTES_MAX: u64 = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: Claim = Claim::Output { light: false };
    const FINISH: Claim = Claim::Finish { light: false };

    #[test]
    fn what_finishes_finds_room_when_what_begins_does_not() {
        let budget = Budget::new(800);
        let claims = [
            (200, Claim::Input),
            (300, OUTPUT),
            (100, Claim::Output { light: true }),
            (100, FINISH),
            (100, Claim::Finish { light: true }),
        ];
        for (bytes, claim) in claims {
            assert!(budget.take(bytes, claim) && !budget.take(1, claim), "{claim:?}");
        }
        budget.give(700);
        assert!(budget.has_room(100, Claim::Input) && !budget.has_room(101, Claim::Input));
        budget.exchange(100, 0);
        assert_eq!((budget.used(), budget.progress()), (0, 0));
    }

    #[test]
    fn one_long_line_leaves_others_their_room() {
        let budget = Budget::new(1 << 20);
        assert!(budget.take_line() && !budget.take_line());
        assert!(budget.take(64 << 10, Claim::Input) && budget.take(64 << 10, OUTPUT));
        budget.end_line();
        assert!(!budget.has_room(1, Claim::Input), "until its bytes are given back, too");
        budget.give(LINE_BYTES_MAX as u64);
        assert!(budget.has_room(1, Claim::Input));
    }

    #[test]
    fn lines_take_a_quarter_and_one_always_finds_room() {
        let budget = Budget::new(16 << 20);
        for held in [0, 6 << 20] {
            assert!(budget.take(held, OUTPUT));
            let lines = (0..).take_while(|_| budget.take_line()).count();
            assert_eq!(lines, 4, "a quarter, also where replies fill half");
            (0..lines).for_each(|_| budget.end_line());
            budget.give(budget.used());
        }
        let small = Budget::new(1 << 20);
        assert!(small.take(700 << 10, OUTPUT) || small.take(600 << 10, OUTPUT));
        assert!(small.take_line() && !small.take_line());
        small.end_line();
        small.give(LINE_BYTES_MAX as u64);
        assert!(small.take_line());
    }

    #[test]
    fn a_read_larger_than_the_budget_goes_alone() {
        let budget = Budget::new(1000);
        assert!(budget.take(251, OUTPUT));
        assert!(!budget.take(5000, FINISH));
        budget.give(1);
        assert!(budget.take(5000, FINISH) && !budget.take(1, FINISH));
    }
}
