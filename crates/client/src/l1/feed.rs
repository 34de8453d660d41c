//! Feeds: by the words of a feed all processes of the host know whether changes on a server are being announced. An
//! entry that was fetched under a feed is fresh for as long as the feed lasts.
//!
//! ```text
//!  word 0 | live_until_ms 40 | 0 14 | epoch 10     the feed there is; 0 for none
//!       1 | the same, of the feed before
//!       2 | the server's number of the subscription
//!       3 | turn 32 | process 32                   the process that listens
//!       4 | begun_ms                               when the feed began
//!       5 | seen_ms                                when the process that listens was last seen
//! ```
//! One process listens for all. It stores words 1, 2 and 0 in such an order that a reader which finds word 0 unchanged
//! has read words that belong together. A feed that ends is never continued: the next one has another epoch.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use super::L1;
use super::layout::{FEEDS, LINE};

/// The number of a server and the epoch of its feed; 0 for none.
pub(crate) type FeedId = u16;

const EPOCH_BITS: u32 = 10;
const EPOCH_MASK: u64 = (1 << EPOCH_BITS) - 1;
const TIME_SHIFT: u32 = 24;
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

    /// Returns the feed and the server's number of it, if it lasts.
    pub(crate) fn current(&self, now_ms: u64) -> Option<(FeedId, u64)> {
        let word = self.words[0].load(Acquire);
        let number = self.words[2].load(Acquire);
        let is_live = epoch(word) > 0 && now_ms < live_until_ms(word);
        let is_same = epoch(self.words[0].load(Acquire)) == epoch(word);
        (is_live && is_same).then(|| (self.id(word), number))
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

    /// Begins a feed under the server's number. It lasts when it is first [extended](Self::extend).
    pub(crate) fn begin(&self, number: u64, now_ms: u64) -> FeedId {
        self.words[4].store(now_ms, Release);
        loop {
            let before = self.words[0].load(Acquire);
            let new = epoch(before) % EPOCH_MASK + 1;
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

    fn change(&self, feed: FeedId, change: impl Fn(u64) -> u64) -> bool {
        let changed = |word: u64| {
            (self.id(word) == feed).then(|| change(live_until_ms(word)) << TIME_SHIFT | epoch(word))
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
        let id = feed.begin(77, 100);
        assert_eq!((feed.current(100), end(&l1, id, 100)), (None, 0), "the server has not been heard yet");
        assert!(feed.extend(id, 1_100));
        assert_eq!((feed.current(1_099), feed.current(1_100)), (Some((id, 77)), None));
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
        let first = feed.begin(1, 0);
        assert!(feed.extend(first, 1_000));
        let second = feed.begin(2, 1_500);
        assert!(!feed.extend(first, 9_000), "a listener that was stopped cannot continue it");
        assert!(feed.extend(second, 2_500));
        assert_eq!((end(&l1, first, 1_600), end(&l1, second, 1_600)), (1_000, 2_500));
        feed.begin(3, 2_600);
        assert_eq!((end(&l1, first, 2_600), end(&l1, second, 2_600)), (0, 2_500));
    }

    #[test]
    fn epochs_come_again_after_a_thousand_feeds_and_none_is_zero() {
        let l1 = l1();
        let feed = l1.feed(0).expect("there are 64");
        let all: Vec<_> = (0..1_024).map(|number| feed.begin(number, 0)).collect();
        assert!(all.iter().all(|id| *id != 0));
        assert_eq!(all[0], all[1_023]);
        assert!(all[1..1_023].iter().all(|id| *id != all[0]));
        assert_eq!((feed.wait_ms(0), feed.wait_ms(400), feed.wait_ms(1_000)), (1_000, 600, 0));
    }

    #[test]
    fn a_time_that_no_feed_has_is_not_believed() {
        let l1 = l1();
        let feed = l1.feed(0).expect("there are 64");
        let id = feed.begin(1, 0);
        assert!(feed.extend(id, 1 << 39));
        assert_eq!(end(&l1, id, 1_000), 0);
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
