//! The clock of a server: the Unix second that its `stats` show, and when that second begins by this host's clock.
//!
//! A server tells the seconds that an item has left, and takes a Unix time to expire it at. Both are exact, but only on
//! the server's own clock, which may be hours off. A clock that is nearly right counts as this host's, so that the Unix
//! second of an expiry stays as it is, however often the item is copied.
//!
//! ```text
//!   this host   --------|---------|---------|---------|----->  milliseconds
//!   a server    ------------|---------|---------|--------->    seconds
//!                       <--> lag: how long after this host the server begins the same second
//! ```

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use larder_client::Client;

use crate::exit::Outcome;
use crate::figures::stats;

/// How long to watch a server for the moment at which a second begins.
const WATCH_MAX: Duration = Duration::from_millis(1_200);
/// The time between two looks meanwhile, which is how well the moment is known.
const WATCH_EVERY: Duration = Duration::from_millis(5);
/// A clock that is off by less counts as this host's, in milliseconds. memcached's shows whole seconds that began up to
/// a second early or late, and waits for its timer up to another one, on a host whose time is right.
const RIGHT_MS: i64 = 2_000;
/// The age up to which a look counts as of now, in milliseconds.
const AGE_MAX_MS: u64 = 20;

/// A server, and its clock if it shows one.
#[derive(Debug)]
pub struct TimedServer<'a> {
    /// The way to it.
    pub client: &'a Client,
    /// None if it shows no time, as a proxy or a server that keeps `stats` from this user.
    clock: Option<Mutex<ServerClock>>,
}

/// A server's clock: the second that it showed last, and how far it lags behind this host's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ServerClock {
    /// The server's second at the last look.
    shown_s: u64,
    /// When that look ended, in Unix milliseconds by this host's clock.
    looked_unix_ms: u64,
    /// The bounds of the lag, in milliseconds.
    lag_ms: (i64, i64),
}

impl<'a> TimedServer<'a> {
    /// Watches a server's clock until a second begins. A server that cannot be asked counts as one without a clock:
    /// what else it is asked reports that.
    pub fn watch(client: &'a Client) -> TimedServer<'a> {
        let clock = look(client).ok().flatten().map(|first| {
            let (mut clock, until) = (ServerClock::of(first), Instant::now() + WATCH_MAX);
            while clock.shown_s == first.0 && Instant::now() < until {
                thread::sleep(WATCH_EVERY);
                let Ok(Some(seen)) = look(client) else { break };
                clock.see(seen);
            }
            Mutex::new(clock)
        });
        TimedServer { client, clock }
    }

    /// Returns the server's second, as of now; `None` if it shows none.
    ///
    /// # Errors
    /// The server cannot be asked.
    pub fn now_s(&self) -> Outcome<Option<u64>> {
        let Some(clock) = &self.clock else { return Ok(None) };
        let seen = look(self.client)?;
        let mut clock = locked(clock);
        if let Some(seen) = seen {
            clock.see(seen);
        }
        Ok(Some(clock.shown_s))
    }

    /// Returns the server's second, as of some milliseconds ago at most; `None` if it shows none.
    ///
    /// # Errors
    /// The server cannot be asked.
    pub fn recent_s(&self) -> Outcome<Option<u64>> {
        let Some(clock) = &self.clock else { return Ok(None) };
        let ServerClock { shown_s, looked_unix_ms, .. } = *locked(clock);
        let is_recent = now_unix_ms().abs_diff(looked_unix_ms) <= AGE_MAX_MS;
        if is_recent { Ok(Some(shown_s)) } else { self.now_s() }
    }

    /// Returns when the server comes to a second, in Unix milliseconds by this host's clock. A server without a clock
    /// has this host's.
    pub fn host_ms(&self, server_s: u64) -> u64 {
        server_s.saturating_mul(1_000).saturating_add_signed(self.lag_ms())
    }

    /// Returns the second that the server comes to nearest to a time of this host's clock in Unix milliseconds.
    pub fn server_s(&self, host_unix_ms: u64) -> u64 {
        host_unix_ms.saturating_sub_signed(self.lag_ms()).saturating_add(500) / 1_000
    }

    fn lag_ms(&self) -> i64 {
        self.clock.as_ref().map_or(0, |clock| locked(clock).lag_ms())
    }

    /// Returns whether the server shows its time.
    pub fn has_clock(&self) -> bool {
        self.clock.is_some()
    }

    /// Makes a server whose clock lags so much.
    #[cfg(test)]
    pub fn lagging(client: &'a Client, lag_ms: Option<i64>) -> TimedServer<'a> {
        let clock = |lag_ms| ServerClock { shown_s: 0, looked_unix_ms: 0, lag_ms: (lag_ms, lag_ms) };
        TimedServer { client, clock: lag_ms.map(|lag_ms| Mutex::new(clock(lag_ms))) }
    }
}

/// Returns this host's time in Unix milliseconds.
pub fn now_unix_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// The second that a server showed, and when it was asked and had answered, in Unix milliseconds.
type Look = (u64, u64, u64);

/// Asks a server for its time; `None` if it shows none.
fn look(client: &Client) -> larder_client::Result<Option<Look>> {
    let asked_unix_ms = now_unix_ms();
    let lines = match stats(client, "") {
        Err(larder_client::Error::Refused { .. }) => return Ok(None),
        lines => lines?,
    };
    let answered_unix_ms = now_unix_ms();
    let time = lines.iter().find(|(name, _)| name == "time").and_then(|(_, time)| time.parse().ok());
    Ok(time.map(|shown_s| (shown_s, asked_unix_ms, answered_unix_ms)))
}

fn locked(clock: &Mutex<ServerClock>) -> MutexGuard<'_, ServerClock> {
    clock.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ServerClock {
    fn of(seen: Look) -> ServerClock {
        let (shown_s, _, looked_unix_ms) = seen;
        ServerClock { shown_s, looked_unix_ms, lag_ms: bounds(seen) }
    }

    /// Narrows the bounds by a look. One that contradicts them moves them: memcached's clock waits for its timer, so it
    /// lags ever more, until it skips a second.
    fn see(&mut self, seen: Look) {
        let (least, most) = bounds(seen);
        let (low, high) = self.lag_ms;
        self.lag_ms = if least > high {
            (least, least)
        } else if most < low {
            (most, most)
        } else {
            (low.max(least), high.min(most))
        };
        // Looks of several threads may come in another order; the clock of a server does not run back.
        if seen.0 >= self.shown_s {
            (self.shown_s, self.looked_unix_ms) = (seen.0, seen.2.max(self.looked_unix_ms));
        }
    }

    fn lag_ms(&self) -> i64 {
        let lag_ms = i64::midpoint(self.lag_ms.0, self.lag_ms.1);
        if lag_ms.abs() < RIGHT_MS { 0 } else { lag_ms }
    }
}

/// Returns what one look tells of the lag: the second had begun when it was answered, and had not ended when it was
/// asked for.
fn bounds((shown_s, asked_unix_ms, answered_unix_ms): Look) -> (i64, i64) {
    let behind = |unix_ms: u64, shown_s: u64| {
        let [unix_ms, shown_ms] =
            [unix_ms, shown_s.saturating_mul(1_000)].map(|ms| i64::try_from(ms).unwrap_or(i64::MAX));
        unix_ms.saturating_sub(shown_ms)
    };
    (behind(asked_unix_ms, shown_s.saturating_add(1)), behind(answered_unix_ms, shown_s))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_MS: u64 = 1_800_000_000_000;

    /// Looks at a clock that lags, each some milliseconds after the one before, and each of which takes two.
    fn looks(lag_ms: i64, every_ms: u64, count: u64) -> Vec<Look> {
        let look = |number: u64| {
            let asked = NOW_MS + number * every_ms;
            ((asked + 1).saturating_add_signed(-lag_ms) / 1_000, asked, asked + 2)
        };
        (0..count).map(look).collect()
    }

    fn seen(looks: &[Look]) -> ServerClock {
        let mut clock = ServerClock::of(looks[0]);
        looks.iter().for_each(|look| clock.see(*look));
        clock
    }

    #[test]
    fn the_lag_of_a_clock_is_known_once_a_second_has_begun() {
        for lag_ms in [2_100, 2_999, -2_100, -60_700, 3_600_000, -3_600_000, 3_600_500] {
            let clock = seen(&looks(lag_ms, 5, 250));
            assert!((clock.lag_ms() - lag_ms).abs() <= 4, "{lag_ms}: {clock:?}");
        }
    }

    #[test]
    fn a_clock_that_is_nearly_right_counts_as_right() {
        for lag_ms in [0, 1, 499, 500, 999, 1_000, 1_900, -1, -700, -1_900] {
            assert_eq!(seen(&looks(lag_ms, 5, 250)).lag_ms(), 0, "{lag_ms}");
        }
    }

    #[test]
    fn a_clock_that_moves_is_followed() {
        let mut clock = seen(&looks(5_300, 5, 250));
        for lag_ms in [5_310, 5_400, 5_900, 5_000, -60_000, 60_000] {
            looks(lag_ms, 5, 250).into_iter().for_each(|look| clock.see(look));
            assert!((clock.lag_ms() - lag_ms).abs() <= 8, "{lag_ms}: {clock:?}");
        }
    }

    #[test]
    fn a_second_there_and_back_is_the_same_second() {
        let client =
            Client::new(["127.0.0.1:1".parse().expect("an address")], larder_client::Options::default());
        let client = client.expect("a client");
        for lag_ms in [0, 1, 400, -400, 2_999, 3_600_123, -3_600_123] {
            let server = TimedServer::lagging(&client, Some(lag_ms));
            assert_eq!(server.server_s(server.host_ms(1_800_000_007)), 1_800_000_007, "{lag_ms}");
        }
        assert_eq!(TimedServer::lagging(&client, None).host_ms(7), 7_000);
    }
}
