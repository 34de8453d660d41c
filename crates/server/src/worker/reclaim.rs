//! Takes memory back from peers that hold it without progress while others wait for it.

use std::time::{Duration, Instant};

use super::Worker;
use crate::session::Wait;

/// A peer that moves fewer bytes than [`MOVED_BYTES_MIN`] in this time is considered to stand still.
const STILL: Duration = Duration::from_millis(250);
const MOVED_BYTES_MIN: u64 = 4 << 10;
/// Connections that hold less are not worth closing.
const HELD_BYTES_MIN: usize = 2 << 10;

/// The state of a worker's reclaiming.
#[derive(Default)]
pub(super) struct ReclaimState {
    /// Whether the budget was told that a connection of this worker waits for memory.
    presses: bool,
    looked_at: Option<Instant>,
    /// The progress seen last, and the time when it changed last.
    progress: u64,
    progress_at: Option<Instant>,
}

impl ReclaimState {
    /// Notes whether a connection of this worker waits for memory. Returns whether that is a change.
    fn note_press(&mut self, presses: bool) -> bool {
        if !presses {
            // A jam is one wait without a break; short waits one after another are none.
            self.progress_at = None;
        }
        std::mem::replace(&mut self.presses, presses) != presses
    }

    /// Returns whether there is a jam: a connection of this worker waits for memory, while next to none is given
    /// back anywhere and no heavy request is served. Then memory is held by requests that need more of it to be
    /// executed, or by peers that take next to nothing. `progress` is counted over all workers, and `limit` is that
    /// of the budget, both in bytes.
    fn is_jammed(&mut self, now: Instant, progress: u64, limit: u64) -> bool {
        let moves = progress.wrapping_sub(self.progress) >= limit / 64;
        let since = self.progress_at.filter(|_| self.presses && !moves);
        if since.is_none() {
            (self.progress, self.progress_at) = (progress, Some(now));
        }
        since.is_some_and(|since| now.duration_since(since) >= STILL)
    }
}

/// Leaves only peers with replies to take among the `holders`, given as bytes, token and whether there are any, if
/// these hold `enough`: when they have gone, requests that only wait for memory can be executed.
fn spare_waiting(holders: &mut Vec<(usize, u64, bool)>, enough: usize) {
    let unread = |(_, _, is_unread): &(usize, u64, bool)| *is_unread;
    if holders.iter().filter(|holder| unread(holder)).map(|(bytes, ..)| bytes).sum::<usize>() >= enough {
        holders.retain(unread);
    }
}

impl Worker {
    /// Tells the budget whether a connection of this worker waits for memory.
    pub(super) fn press(&mut self) {
        let presses = self.connections.parked() > 0 || self.read_is_blocked;
        if self.reclaim.note_press(presses) {
            self.shared.budget.press(presses);
        }
    }

    /// Closes the largest of this worker's connections that do not move, if memory is short anywhere: enough
    /// of them to free an eighth of the budget, or half of it in a jam.
    pub(super) fn reclaim(&mut self) {
        let (now, budget) = (self.instant, &self.shared.budget);
        let is_early = self.reclaim.looked_at.is_some_and(|last| now.duration_since(last) < STILL / 5);
        let is_crowded = self.shared.is_crowded();
        if !budget.is_pressed() && !is_crowded || is_early {
            return;
        }
        self.reclaim.looked_at = Some(now);
        let (limit, is_pressed) = (budget.limit() as usize, budget.is_pressed());
        let is_jammed = self.reclaim.is_jammed(now, budget.progress(), budget.limit());
        // In a jam, an eighth would be too little: shared among all that wait, it would let none of them continue.
        let enough = if is_jammed { limit / 2 } else { limit / 8 };
        let mut holders: Vec<(usize, u64, bool)> = Vec::new();
        for (token, connection) in self.connections.all() {
            let since = now.duration_since(connection.moved_since);
            let is_still = since >= STILL && connection.moved_bytes < MOVED_BYTES_MIN;
            if since >= STILL {
                (connection.moved_since, connection.moved_bytes) = (now, 0);
            }
            let waits = connection.awaits_peer() || is_jammed && connection.session.wait() != Wait::Read;
            let is_to_go = is_pressed && waits && (is_still || is_jammed);
            if is_still && is_crowded && connection.session.is_receiving() && connection.awaits_peer() {
                // The memory of its value is the store's and has been promised to it.
                holders.push((enough, token, false));
            } else if is_to_go && connection.held_bytes >= HELD_BYTES_MIN {
                holders.push((connection.held_bytes, token, !connection.session.out.is_empty()));
            }
        }
        holders.sort_unstable_by(|one, two| two.cmp(one));
        if is_jammed {
            spare_waiting(&mut holders, limit / 8);
        }
        let mut freed = 0;
        for (bytes, token, is_unread) in holders {
            if freed >= enough {
                break;
            }
            freed += bytes;
            let counters = self.counters();
            if is_unread { &counters.unread_kicks } else { &counters.unsent_kicks }.up();
            if self.shared.logs(1) {
                tracing::warn!(
                    bytes,
                    "closed a connection that held memory and stood still; see --conn-memory"
                );
            }
            self.end(token);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: u64 = 64 << 20;

    /// Returns whether a jam is seen when the worker looks every 50 ms, and presses when `presses` says so. Each
    /// time, `bytes` of progress are made.
    fn is_seen(bytes: u64, presses: impl Fn(u32) -> bool) -> bool {
        let (mut reclaim, began) = (ReclaimState::default(), Instant::now());
        (0..100).any(|look: u32| {
            reclaim.note_press(presses(look));
            let now = began + STILL / 5 * look;
            presses(look) && reclaim.is_jammed(now, u64::from(look) * bytes, LIMIT)
        })
    }

    #[test]
    fn a_wait_without_progress_is_a_jam() {
        assert!(is_seen(0, |_| true));
        assert!(is_seen(LIMIT / 1024, |_| true));
    }

    #[test]
    fn a_wait_with_progress_is_no_jam() {
        assert!(!is_seen(LIMIT / 64, |_| true));
    }

    #[test]
    fn in_a_jam_peers_that_do_not_read_go_before_those_that_wait() {
        let waiting = (64 << 10, 1, false);
        let unread = (256 << 10, 2, true);
        let mut holders = vec![unread, unread, waiting, waiting];
        spare_waiting(&mut holders, 512 << 10);
        assert_eq!(holders, [unread, unread]);
        let mut holders = vec![unread, waiting, waiting];
        spare_waiting(&mut holders, 512 << 10);
        assert_eq!(holders, [unread, waiting, waiting]);
    }

    #[test]
    fn one_short_wait_after_another_is_no_jam() {
        assert!(!is_seen(0, |look| look % 5 == 0));
        assert!(!is_seen(0, |look| look % 5 != 0));
    }
}
