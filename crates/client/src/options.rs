//! What a client can be told when it is made.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::breaker::{Thresholds, Word};
use crate::clock::{Clock, HostClock};
use crate::login::Login;
use crate::routing::Placement;
use crate::tls::Tls;

/// What becomes of the keys of a server that is down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnDown {
    /// Requests for them fail at once, until the server is back. No key is ever on two servers.
    #[default]
    Fail,
    /// They go to the other servers, and back later. Values stored meanwhile, or before, may then be stale. The one
    /// request that probes whether the server is back may fail.
    Eject,
}

/// Returns the word that holds the breaker's state of the server with a name.
pub type WordOf = Arc<dyn Fn(&str) -> Arc<dyn Word> + Send + Sync>;

/// The settings of a client. Start from [`Options::default`].
#[derive(Clone)]
pub struct Options {
    /// How keys are placed on several servers. As pymemcache does by default.
    pub placement: Placement,
    /// The bytes around the part of a key that placement looks at, such as `{` and `}`. None by default.
    pub hash_tag: Option<(u8, u8)>,
    /// The user and password that each new connection authenticates with, on servers that ask for it. None by default.
    /// They cross the network as they are, unless there is [`tls`](Self::tls).
    pub login: Option<Login>,
    /// How connections are encrypted. By default they are not. A server that does not speak TLS, or has another
    /// certificate, is an error.
    pub tls: Option<Tls>,
    /// How long a connection may take to make, with its handshake for TLS, and how long to wait for one while all are
    /// in use. 250 ms by default.
    pub connect_timeout: Duration,
    /// The longest silence of a server while a request is sent or its reply awaited. 1 s by default.
    pub timeout: Duration,
    /// The longest that one attempt of a call may take, however large and slowly moving. 30 s by default.
    pub call_timeout: Duration,
    /// The most connections to one server at a time, which is the most threads that wait for it. 64 by default.
    pub connections_max: usize,
    /// A connection that was idle for so long is closed. 60 s by default.
    pub idle_max: Duration,
    /// The largest value that is sent or accepted. 64 MiB by default.
    pub value_bytes_max: usize,
    /// The most bytes that a server may send in reply to one call. 1 GiB by default.
    pub batch_bytes_max: usize,
    /// Retries for each 100 requests, and ten more at first. Repeated are reads, and whatever has not reached a server.
    /// 10 by default; 0 for none.
    pub retry_percent: u32,
    /// When a server is taken for down, and for how long.
    pub breaker: Thresholds,
    /// What becomes of the keys of a server that is down.
    pub on_down: OnDown,
    /// Where the state of the breakers is; in this client alone by default. [`breakers_in`](crate::breakers_in) puts
    /// it where all processes of the host share it.
    pub breaker_word: Option<WordOf>,
    /// The clock that the breakers see.
    pub clock: Arc<dyn Clock>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            placement: Placement::default(),
            hash_tag: None,
            login: None,
            tls: None,
            connect_timeout: Duration::from_millis(250),
            timeout: Duration::from_secs(1),
            call_timeout: Duration::from_secs(30),
            connections_max: 64,
            idle_max: Duration::from_secs(60),
            value_bytes_max: 64 << 20,
            batch_bytes_max: 1 << 30,
            retry_percent: 10,
            breaker: Thresholds::default(),
            on_down: OnDown::default(),
            breaker_word: None,
            clock: Arc::new(HostClock),
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Options")
            .field("placement", &self.placement)
            .field("hash_tag", &self.hash_tag)
            .field("login", &self.login)
            .field("tls", &self.tls)
            .field("connect_timeout", &self.connect_timeout)
            .field("timeout", &self.timeout)
            .field("connections_max", &self.connections_max)
            .field("on_down", &self.on_down)
            .finish_non_exhaustive()
    }
}
