//! Feeds: by the words of a feed all processes of the host know whether changes on a server are being announced. An
//! entry that was fetched under a feed is fresh for as long as the feed lasts.
//!
//! ```text
//!  word 0 | live_until_ms 40 | keep 14 | epoch 10  the feed there is; 0 for none. Its entries are fresh for `keep`
//!       1 | the same, of the feed before
//!       2 | the server's number of the subscription
//!       3 | turn 32 | process 32                   the process that listens
//!       4 | begun_ms                               when the feed began
//!       5 | seen_ms                                when the process that listens was last seen
//!       6 | beat_us 54 | epoch 10                  all changes before this time are in shared memory
//!       7 | until_ms 40 | within_us 24             until when beats are wanted, and how close
//! ```
//! One process listens for all. It stores words 1, 2 and 0 in such an order that a reader which finds word 0 unchanged
//! has read words that belong together. A feed that ends is never continued: the next one has another epoch.
//!
//! A **beat** is the time at which the server was asked a question that it has answered, on the connection on which it
//! announces. It sends the announcements of earlier changes before that answer. So once the listener has read the
//! answer and heeded all that came before it, every entry of the feed is as current as at the time of the beat. A beat
//! names its feed, because a listener that was stopped may write one after another process has begun the next feed.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use super::L1;
use super::layout::{FEEDS, LINE};
use crate::simulation::{Fault, is_broken};

/// The number of a server and the epoch of its feed; 0 for none.
pub(crate) type FeedId = u16;

const EPOCH_BITS: u32 = 10;
const EPOCH_MASK: u64 = (1 << EPOCH_BITS) - 1;
const TIME_SHIFT: u32 = 24;
/// The time for which a feed's entries are fresh is counted in so many milliseconds.
const KEEP_UNIT_MS: u64 = 64;
const KEEP_MASK: u64 = (1 << (TIME_SHIFT - EPOCH_BITS)) - 1;
/// What does not change while a feed lasts: `keep` and `epoch`.
const FEED_MASK: u64 = (1 << TIME_SHIFT) - 1;
/// How close beats are wanted, in microseconds: the low bits of the word.
const WITHIN_MASK: u64 = (1 << TIME_SHIFT) - 1;
/// A reader asks for beats for so long, and once more in the second half of that.
const WANTED_MS: u64 = 200;
/// A feed is never announced to last longer than this beyond now; a later time is damage.
const LIVE_MS_MAX: u64 = 60_000;
/// Epochs are repeated after 1,023 of them. One begins in this time at most, so an entry that is kept for less than
/// 1,023 times as long never meets its own epoch again.
pub(crate) const EPOCH_MS_MIN: u64 = 1_000;
/// A process that listens and was not seen for so long is stopped: another may take its turn.
const UNSEEN_MS_MAX: u64 = 2_000;

/// The words of one server's feed.
#[derive(Clone, Copy)]
pub(crate) struct Feed<'a> {
    l1: &'a L1,
    words: &'a [AtomicU64],
    server: u16,
}

/// The right to listen, of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn(u64);

fn epoch(word: u64) -> u64 {
    word & EPOCH_MASK
}

fn live_until_ms(word: u64) -> u64 {
    word >> TIME_SHIFT
}

fn keep_ms(word: u64) -> u64 {
    (word >> EPOCH_BITS & KEEP_MASK) * KEEP_UNIT_MS
}

/// Returns until when an entry may be used without asking, so far as its feed tells: the end of the feed, which moves
/// on while it lasts; 0 if that is not known any more. `words` are those of all feeds.
#[inline]
pub(super) fn end_ms(words: &[AtomicU64], feed: FeedId, now_ms: u64) -> u64 {
    let line = usize::from(feed >> EPOCH_BITS) * LINE;
    let is_its = |word: &u64| epoch(*word) == u64::from(feed) & EPOCH_MASK;
    let both = words.get(line..line + 2).unwrap_or_default().iter();
    let end_ms = both.map(|word| word.load(Acquire)).find(is_its).map_or(0, live_until_ms);
    if end_ms > now_ms + LIVE_MS_MAX { 0 } else { end_ms }
}

/// Returns whether an entry that is fresh until `fresh_until_ms` was its server's less than `within_us` before now: by
/// the last beat of its feed, or because it was asked for since. Asks for beats that are close enough.
#[inline]
pub(super) fn is_exact(
    words: &[AtomicU64],
    feed: FeedId,
    fresh_until_ms: u64,
    now_us: u64,
    within_us: u64,
) -> bool {
    let line = usize::from(feed >> EPOCH_BITS) * LINE;
    let Some(words) = words.get(line..line + LINE) else { return false };
    want(&words[7], now_us / 1000, within_us);
    let since_us = now_us.saturating_sub(within_us);
    let is_its = |word: u64| epoch(word) == u64::from(feed) & EPOCH_MASK || is_broken(Fault::BeatOfAnyFeed);
    // Another process may have come later than `now_us`; much later is damage.
    let is_since = |us: u64| us > since_us && us < now_us + LIVE_MS_MAX * 1000;
    let beat = words[6].load(Acquire);
    if is_its(beat) && is_since(beat >> EPOCH_BITS) {
        return true;
    }
    let word = words[0].load(Acquire);
    is_its(word) && is_since(fresh_until_ms.saturating_sub(keep_ms(word)) * 1000)
}

/// Asks for beats, unless they are asked for already.
#[inline]
fn want(wanted: &AtomicU64, now_ms: u64, within_us: u64) {
    let word = wanted.load(Relaxed);
    let is_soon_over = (word >> TIME_SHIFT).wrapping_sub(now_ms + WANTED_MS / 2) > WANTED_MS;
    if is_soon_over || word & WITHIN_MASK > within_us {
        wanted.store((now_ms + WANTED_MS) << TIME_SHIFT | within_us.min(WITHIN_MASK), Relaxed);
    }
}

impl L1 {
    /// Returns the feed of the server with a number; `None` for servers beyond the first 64.
    pub(crate) fn feed(&self, server: usize) -> Option<Feed<'_>> {
        let words = self.inner.feeds().get(server * LINE..(server + 1) * LINE)?;
        Some(Feed { l1: self, words, server: u16::try_from(server).ok()? })
    }
}

impl Feed<'_> {
    fn id(&self, word: u64) -> FeedId {
        self.server << EPOCH_BITS | epoch(word) as u16
    }

    /// Returns the feed, the server's number of it, and the longest that its entries may be fresh, in milliseconds, if
    /// it lasts.
    pub(crate) fn current(&self, now_ms: u64) -> Option<(FeedId, u64, u64)> {
        let word = self.words[0].load(Acquire);
        let number = self.words[2].load(Acquire);
        let is_live = epoch(word) > 0 && now_ms < live_until_ms(word);
        let is_same = epoch(self.words[0].load(Acquire)) == epoch(word);
        (is_live && is_same).then(|| (self.id(word), number, keep_ms(word)))
    }

    /// Returns whether the server has ever announced changes to this host.
    pub(crate) fn has_begun(&self) -> bool {
        epoch(self.words[0].load(Acquire)) > 0
    }

    /// Takes the turn to listen, if no other process has it, or that process was killed or is stopped.
    pub(crate) fn take_turn(&self, now_ms: u64) -> Option<Turn> {
        let me = self.l1.inner.process_id()?;
        let owner = self.words[3].load(Acquire);
        let process = owner as u32;
        let is_seen = now_ms < self.words[5].load(Acquire).saturating_add(UNSEEN_MS_MAX);
        if process != 0 && is_seen && (process == me || self.l1.inner.is_alive(process)) {
            return None;
        }
        let turn = Turn((owner >> 32).wrapping_add(1) << 32 | u64::from(me));
        self.words[3].compare_exchange(owner, turn.0, AcqRel, Acquire).ok()?;
        self.words[5].store(now_ms, Release);
        Some(turn)
    }

    /// Notes that the process that has the turn lives. Returns whether it still has it.
    pub(crate) fn keep_turn(&self, turn: Turn, now_ms: u64) -> bool {
        let is_mine = self.words[3].load(Acquire) == turn.0;
        if is_mine {
            self.words[5].store(now_ms, Release);
        }
        is_mine
    }

    /// Gives the turn back.
    pub(crate) fn give_turn(&self, turn: Turn) {
        let _ = self.words[3].compare_exchange(turn.0, turn.0 >> 32 << 32, AcqRel, Relaxed);
    }

    /// Returns how long to wait before the next feed may begin, in milliseconds.
    pub(crate) fn wait_ms(&self, now_ms: u64) -> u64 {
        let begun_ms = self.words[4].load(Acquire);
        if begun_ms > now_ms { 0 } else { (begun_ms + EPOCH_MS_MIN).saturating_sub(now_ms) }
    }

    /// Begins a feed under the server's number, whose entries are fresh for `keep_ms` (17 minutes at most, in steps of
    /// 64 ms). It lasts when it is first [extended](Self::extend).
    pub(crate) fn begin(&self, number: u64, keep_ms: u64, now_ms: u64) -> FeedId {
        self.words[4].store(now_ms, Release);
        loop {
            let before = self.words[0].load(Acquire);
            let keep = (keep_ms / KEEP_UNIT_MS).min(KEEP_MASK);
            let new = keep << EPOCH_BITS | (epoch(before) % EPOCH_MASK + 1);
            self.words[1].store(before, Release);
            if self.words[0].compare_exchange(before, new, AcqRel, Acquire).is_ok() {
                self.words[2].store(number, Release);
                return self.id(new);
            }
        }
    }

    /// Lets the feed last until a time, if it lasts for less. Returns whether it is still the one there is.
    pub(crate) fn extend(&self, feed: FeedId, until_ms: u64) -> bool {
        self.change(feed, |live_ms| live_ms.max(until_ms))
    }

    /// Ends the feed now.
    pub(crate) fn end(&self, feed: FeedId, now_ms: u64) {
        self.change(feed, |live_ms| live_ms.min(now_ms));
    }

    /// Notes that all changes before a time are in shared memory, as far as this feed announces them.
    pub(crate) fn beat(&self, feed: FeedId, asked_us: u64) {
        self.words[6].store(asked_us << EPOCH_BITS | u64::from(feed) & EPOCH_MASK, Release);
    }

    /// Returns how close beats are wanted now, in microseconds; `None` if none are. The second word tells whether any
    /// were ever wanted.
    pub(crate) fn wanted_within_us(&self, now_ms: u64) -> (Option<u64>, bool) {
        let word = self.words[7].load(Relaxed);
        let is_wanted = (now_ms..=now_ms + 2 * WANTED_MS).contains(&(word >> TIME_SHIFT));
        (is_wanted.then_some(word & WITHIN_MASK), word > 0)
    }

    fn change(&self, feed: FeedId, change: impl Fn(u64) -> u64) -> bool {
        let changed = |word: u64| {
            (self.id(word) == feed).then(|| change(live_until_ms(word)) << TIME_SHIFT | word & FEED_MASK)
        };
        self.words[0].fetch_update(AcqRel, Acquire, changed).is_ok()
    }
}

const _: () = assert!(FEEDS <= 1 << (FeedId::BITS - EPOCH_BITS));

#[cfg(test)]
mod tests {
    use super::*;
    use crate::l1::L1Options;

    fn l1() -> L1 {
        L1Options::new().bytes(1 << 20).anonymous().expect("there is memory")
    }

    fn end(l1: &L1, feed: FeedId, now_ms: u64) -> u64 {
        end_ms(l1.inner.feeds(), feed, now_ms)
    }

    #[test]
    fn a_feed_lasts_while_it_is_extended() {
        let l1 = l1();
        let feed = l1.feed(3).expect("there are 64");
        assert_eq!(feed.current(100), None);
        let id = feed.begin(77, 600_000, 100);
        assert_eq!((feed.current(100), end(&l1, id, 100)), (None, 0), "the server has not been heard yet");
        assert!(feed.extend(id, 1_100));
        assert_eq!((feed.current(1_099), feed.current(1_100)), (Some((id, 77, 600_000)), None));
        assert!(feed.extend(id, 900), "an answer that comes late shortens nothing");
        assert_eq!(end(&l1, id, 500), 1_100);
        feed.end(id, 500);
        assert_eq!((feed.current(500), end(&l1, id, 600)), (None, 500));
        assert!(l1.feed(63).is_some() && l1.feed(64).is_none());
    }

    #[test]
    fn the_end_of_the_feed_before_is_known_and_no_earlier_one() {
        let l1 = l1();
        let feed = l1.feed(0).expect("there are 64");
        let first = feed.begin(1, 0, 0);
        assert!(feed.extend(first, 1_000));
        let second = feed.begin(2, 0, 1_500);
        assert!(!feed.extend(first, 9_000), "a listener that was stopped cannot continue it");
        assert!(feed.extend(second, 2_500));
        assert_eq!((end(&l1, first, 1_600), end(&l1, second, 1_600)), (1_000, 2_500));
        feed.begin(3, 0, 2_600);
        assert_eq!((end(&l1, first, 2_600), end(&l1, second, 2_600)), (0, 2_500));
    }

    #[test]
    fn epochs_come_again_after_a_thousand_feeds_and_none_is_zero() {
        let l1 = l1();
        let feed = l1.feed(0).expect("there are 64");
        let all: Vec<_> = (0..1_024).map(|number| feed.begin(number, 0, 0)).collect();
        assert!(all.iter().all(|id| *id != 0));
        assert_eq!(all[0], all[1_023]);
        assert!(all[1..1_023].iter().all(|id| *id != all[0]));
        assert_eq!((feed.wait_ms(0), feed.wait_ms(400), feed.wait_ms(1_000)), (1_000, 600, 0));
    }

    #[test]
    fn a_time_that_no_feed_has_is_not_believed() {
        let l1 = l1();
        let feed = l1.feed(0).expect("there are 64");
        let id = feed.begin(1, 0, 0);
        assert!(feed.extend(id, 1 << 39));
        assert_eq!(end(&l1, id, 1_000), 0);
    }

    #[test]
    fn an_entry_is_exact_by_a_beat_of_its_own_feed_or_because_it_was_asked_for_since() {
        const WITHIN_US: u64 = 2_000;
        let l1 = l1();
        let feed = l1.feed(5).expect("there are 64");
        let first = feed.begin(1, 600_000, 0);
        assert!(feed.extend(first, 1_000));
        let exact = |feed, asked_ms: u64, now_us| {
            is_exact(l1.inner.feeds(), feed, asked_ms + 600_000 / 64 * 64, now_us, WITHIN_US)
        };
        assert!(exact(first, 100, 101_999) && !exact(first, 100, 102_000), "it was asked for");
        feed.beat(first, 200_500);
        assert!(exact(first, 100, 202_499) && !exact(first, 100, 202_500), "by the beat");
        assert!(exact(first, 100, 200_400), "a beat may be later than the time that the reader has");
        let second = feed.begin(2, 0, 300);
        assert!(!exact(second, 100, 202_000), "the beat is of the feed before");
        assert!(exact(first, 100, 202_000), "which was that current");
        feed.beat(second, 300_000);
        assert!(
            exact(second, 100, 301_000) && !exact(first, 300, 301_000),
            "what is kept is of the second now"
        );
        feed.beat(second, 1 << 50);
        assert!(!exact(second, 100, 301_000), "damage");
    }

    #[test]
    fn beats_are_wanted_while_there_are_readers_as_close_as_the_strictest_wants() {
        let l1 = l1();
        let feed = l1.feed(5).expect("there are 64");
        let id = feed.begin(1, 0, 0);
        let read = |now_ms: u64, within_us| is_exact(l1.inner.feeds(), id, 0, now_ms * 1000, within_us);
        assert_eq!(feed.wanted_within_us(1_000), (None, false));
        assert!(!read(1_000, 100_000));
        assert_eq!(feed.wanted_within_us(1_000), (Some(100_000), true));
        read(1_010, 2_000);
        read(1_020, 100_000);
        assert_eq!(feed.wanted_within_us(1_210), (Some(2_000), true));
        assert_eq!(feed.wanted_within_us(1_211), (None, true));
        read(1_150, 100_000);
        assert_eq!(feed.wanted_within_us(1_211), (Some(100_000), true), "the strict one reads no more");
        read(5_000, u64::MAX);
        assert_eq!(feed.wanted_within_us(5_000), (Some(WITHIN_MASK), true));
    }

    #[test]
    fn one_listens_until_it_gives_its_turn_back_or_is_not_seen_any_more() {
        let l1 = l1();
        let feed = l1.feed(0).expect("there are 64");
        let turn = feed.take_turn(1_000).expect("there is no other");
        assert_eq!(feed.take_turn(1_000), None);
        assert!(feed.keep_turn(turn, 2_000));
        assert_eq!(feed.take_turn(3_999), None);
        let other = feed.take_turn(4_000).expect("the first is stopped");
        assert!(!feed.keep_turn(turn, 4_000) && feed.keep_turn(other, 4_000));
        feed.give_turn(turn);
        assert_eq!(feed.take_turn(4_000), None, "a lost turn is not given back");
        feed.give_turn(other);
        assert!(feed.take_turn(4_000).is_some());
    }
}
