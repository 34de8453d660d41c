//! The time that a new connection has to log in, or to shake hands: it holds a place of `-c` that a client may need.

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use super::{Close, Worker};

/// The time that a peer may take to log in. A client logs in at once, so this is the time for several attempts over a
/// bad network, or for a person who types; handshakes of TLS have as long before that.
const LOGIN_TIME: Duration = Duration::from_secs(10);
/// The same, and that for a handshake, while clients are turned away: a message around the world and back, and another.
pub(super) const TIME_SHORT: Duration = Duration::from_secs(1);
/// The time for which a client that was turned away stands for those that come after it.
const SHORTAGE_TIME: Duration = Duration::from_secs(2);

/// Whether clients are turned away because all places of `-c` are taken.
#[derive(Default)]
pub(super) struct Shortage {
    refusals: u64,
    refused_at: Option<Instant>,
}

impl Shortage {
    /// Notes how many clients were turned away so far. Returns whether one was within [`SHORTAGE_TIME`].
    fn note(&mut self, refusals: u64, now: Instant) -> bool {
        if refusals > self.refusals {
            (self.refusals, self.refused_at) = (refusals, Some(now));
        }
        self.refused_at.is_some_and(|at| now.duration_since(at) < SHORTAGE_TIME)
    }
}

impl Worker {
    /// Returns whether places are short: clients are turned away, or wait to be accepted.
    pub(super) fn places_are_short(&mut self) -> bool {
        // The first worker accepts, and counts.
        let refusals = self.shared.counters[0].rejected_connections.get();
        self.shortage.note(refusals, self.instant) || !self.shared.accepting.load(Relaxed)
    }

    /// Answers the logins whose time has come, and closes the connections that take too long to log in.
    pub(super) fn keep_up_logins(&mut self, places_are_short: bool) {
        self.connections.logins().into_iter().for_each(|token| self.wake(token));
        let limit = if places_are_short { TIME_SHORT } else { LOGIN_TIME };
        for token in self.connections.late_logins(self.instant, limit) {
            self.counters().login_kicks.up();
            if self.shared.logs(1) {
                tracing::info!("closed a connection: its peer took too long to log in");
            }
            self.end(token, Close::Error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_short_while_clients_are_turned_away_and_a_little_longer() {
        let (mut shortage, began) = (Shortage::default(), Instant::now());
        let at = |ms| began + Duration::from_millis(ms);
        assert!(!shortage.note(0, at(0)));
        assert!(shortage.note(3, at(100)) && shortage.note(3, at(2000)));
        assert!(shortage.note(4, at(2050)) && shortage.note(4, at(4000)));
        assert!(!shortage.note(4, at(4050)));
    }
}
