//! Takes memory back from peers that hold it without progress while others wait for it.

use std::time::{Duration, Instant};

use super::connection::{Connection, HELD_BYTES_MIN};
use super::{Close, Worker};
use crate::session::Wait;

/// A wait for memory that lasts this long without progress is a jam: the largest holders among the peers that others
/// wait for are closed. A value on its way in that does not move for this long gives way to others.
const STILL: Duration = Duration::from_millis(250);
/// After so long, memory is held by requests that all need more of it to be executed. By then every worker has closed
/// those of its peers that others wait for.
const STILL_ALL: Duration = Duration::from_secs(1);
/// A peer that moves next to nothing for this long is closed if others wait for memory. A reader of 20 kB a second
/// that leaves the rest to its system moves every three seconds at the least: its system announces room by 64 kB.
const STILL_WITHOUT_JAM: Duration = Duration::from_secs(4);

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

    /// Returns for how long a connection of this worker has waited for memory while next to none was given back
    /// anywhere and no heavy request was served. Then memory is held by requests that need more of it to be
    /// executed, or by peers that take next to nothing. `progress` is counted over all workers, and `limit` is that
    /// of the budget, both in bytes.
    fn jammed_for(&mut self, now: Instant, progress: u64, limit: u64) -> Duration {
        let moves = progress.wrapping_sub(self.progress) >= limit / 64;
        let since = self.progress_at.filter(|_| self.presses && !moves);
        if since.is_none() {
            (self.progress, self.progress_at) = (progress, Some(now));
        }
        since.map_or(Duration::ZERO, |since| now.duration_since(since))
    }
}

/// Returns whether a connection goes if memory is short: its peer has stood `still_for` so long, while others wait
/// for it or, in a long jam, also if it only waits for memory itself.
fn is_to_go(awaits_peer: bool, still_for: Duration, jammed_for: Duration) -> bool {
    let least = if awaits_peer { STILL } else { STILL_ALL };
    jammed_for >= least || awaits_peer && still_for >= STILL_WITHOUT_JAM
}

impl Worker {
    /// Tells the budget whether a connection of this worker waits for memory.
    pub(super) fn press(&mut self) {
        let presses = self.waits_for_memory();
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
        let could_go = |connection: &Connection| {
            connection.held_bytes >= HELD_BYTES_MIN || connection.session.is_receiving()
        };
        let looked_at = self.connections.all().filter(|(_, one)| could_go(one) && one.awaits_peer());
        budget.note_progress(looked_at.map(|(_, connection)| connection.look(now)).sum());
        let (limit, is_pressed) = (budget.limit() as usize, budget.is_pressed());
        let jammed_for = self.reclaim.jammed_for(now, budget.progress(), budget.limit());
        // In a jam, an eighth would be too little: shared among all that wait, it would let none of them continue.
        let enough = if jammed_for >= STILL { limit / 2 } else { limit / 8 };
        let mut holders: Vec<(usize, u64, bool)> = Vec::new();
        for (token, connection) in self.connections.all() {
            let (awaits_peer, is_receiving) = (connection.awaits_peer(), connection.session.is_receiving());
            let (mut bytes, is_unread) = (connection.held_bytes, connection.has_output());
            let still_for = if awaits_peer { connection.still_for(now) } else { Duration::ZERO };
            let gives_way = is_crowded && is_receiving && still_for >= STILL;
            if gives_way {
                // The memory of its value is the store's and has been promised to it.
                bytes = enough;
            }
            let reads = connection.session.wait() == Wait::Read;
            let is_stuck = is_pressed && !reads && is_to_go(awaits_peer, still_for, jammed_for);
            if gives_way || is_stuck && bytes >= HELD_BYTES_MIN {
                holders.push((bytes, token, is_unread));
            }
        }
        holders.sort_unstable_by(|one, two| two.cmp(one));
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
            self.end(token, Close::Error);
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
            presses(look) && reclaim.jammed_for(now, u64::from(look) * bytes, LIMIT) >= STILL
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
    fn peers_that_do_not_act_go_before_those_that_wait() {
        let (none, long) = (Duration::ZERO, STILL_WITHOUT_JAM);
        assert!(!is_to_go(true, long / 2, none) && !is_to_go(false, long * 2, none), "without a jam");
        assert!(is_to_go(true, long, none), "a peer that takes nothing for long");
        assert!(is_to_go(true, none, STILL) && !is_to_go(false, long, STILL), "in a jam");
        assert!(is_to_go(false, none, STILL_ALL), "when nothing else has ended it");
    }

    #[test]
    fn one_short_wait_after_another_is_no_jam() {
        assert!(!is_seen(0, |look| look % 5 == 0));
        assert!(!is_seen(0, |look| look % 5 != 0));
    }
}
