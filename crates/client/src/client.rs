//! The client of one or many servers.

mod admin;
mod call;
mod counters;
mod gate;
mod item;
mod limits;
mod lines;
mod listing;
mod quiet;
mod reads;
mod watch;
mod writes;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::address::{Address, Server};
use crate::breaker::{Breaker, Word};
use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::options::Options;
use crate::pool::{Connection, Greeting, Pool, PoolLimits, Secured};
use crate::routing::{Node, Placement, Router, ketama_name};

pub use counters::{Count, Counter};
pub use item::{Announce, Fetch, Fetched, Item, Lease};
pub use listing::{KeyList, ListedKey};
pub use quiet::Quiet;
pub use watch::{Watch, WatchLine};
pub(crate) use writes::RELATIVE_MAX_S;
pub use writes::{Cas, NewItem, Put};

/// A client of one or many memcached servers. Clones share connections; threads may share one client, and a child
/// process may go on with its parent's.
#[derive(Clone, Debug)]
pub struct Client {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    servers: Vec<Upstream>,
    router: Router,
    budget: Budget,
    options: Options,
}

#[derive(Debug)]
struct Upstream {
    name: Arc<str>,
    pool: Pool,
    breaker: Breaker<Arc<dyn Word>>,
    /// Until then the server is not asked to decide limits, because it did not know the command.
    refuses_limits_until_ms: AtomicU64,
}

impl Client {
    /// Makes a client of `servers`, which must be in the same order in all clients that share them. Connects to none.
    ///
    /// # Errors
    /// When there is no server, or the certificate of one could not have its name.
    pub fn new(servers: impl IntoIterator<Item = Server>, options: Options) -> Result<Self> {
        let servers: Vec<Server> = servers.into_iter().collect();
        if servers.is_empty() {
            return Err(Error::NoServers);
        }
        let nodes: Vec<Node> = servers.iter().map(|server| node(server, options.placement)).collect();
        let inner = Inner {
            router: Router::new(options.placement, &nodes, options.hash_tag),
            budget: Budget::new(options.retry_percent),
            servers: servers
                .into_iter()
                .map(|server| Upstream::new(server, &options))
                .collect::<Result<_>>()?,
            options,
        };
        Ok(Client { inner: Arc::new(inner) })
    }

    /// Returns the number, in the order that they were given, of the server that a key belongs to while all are up.
    pub fn server_of(&self, key: &[u8]) -> usize {
        self.inner.router.pick(key, |_| true).unwrap_or_default()
    }

    /// Returns the names of the servers, in order: their addresses, but for those that were given a name.
    pub fn servers(&self) -> impl Iterator<Item = &str> {
        self.inner.servers.iter().map(|server| &*server.name)
    }

    /// Returns whether requests to the server with this number would be sent now; false while it is taken for down.
    pub fn is_up(&self, server: usize) -> bool {
        let now_ms = self.inner.options.clock.now_ms();
        self.inner.servers.get(server).is_some_and(|server| server.breaker.is_live(now_ms))
    }

    /// Makes a connection to the server with this number for the caller's own use, apart from the pool.
    ///
    /// # Errors
    /// When none can be made.
    pub(crate) fn connect_apart(&self, server: usize) -> Result<Connection> {
        self.inner.servers.get(server).ok_or(Error::NoServers)?.pool.connect()
    }

    /// Closes this process's connections that are not in use. The next requests make new ones.
    pub fn close_idle(&self) {
        self.inner.servers.iter().for_each(|server| server.pool.close_idle());
    }

    /// Returns the settings that the client was made with.
    pub fn options(&self) -> &Options {
        &self.inner.options
    }
}

impl Upstream {
    fn new(server: Server, options: &Options) -> Result<Self> {
        let name: Arc<str> = server.label().into();
        let limits = PoolLimits {
            connections_max: options.connections_max.max(1),
            connect_timeout: options.connect_timeout,
            timeout: options.timeout,
            idle_max: options.idle_max,
        };
        let word: Arc<dyn Word> = match &options.breaker_word {
            Some(word_of) => word_of(&name),
            None => Arc::new(AtomicU64::new(0)),
        };
        let breaker = Breaker::new(word, options.breaker);
        let secured = options.tls.clone().map(|tls| match tls.name_at(&server.address) {
            Ok(name) => Ok(Secured { tls, name }),
            Err(bad) => Err(Error::Tls { server: name.clone(), reason: bad.to_string() }),
        });
        let greeting = Greeting { secured: secured.transpose()?, login: options.login.clone() };
        let pool = Pool::new(name.clone(), server.address, limits, greeting);
        Ok(Upstream { pool, breaker, name, refuses_limits_until_ms: AtomicU64::new(0) })
    }
}

/// Returns what placement hashes for a server.
fn node(server: &Server, placement: Placement) -> Node {
    let name = match (&server.name, &server.address, placement) {
        (Some(name), ..) => name.clone(),
        (None, address, Placement::Rendezvous) => address.to_string(),
        (None, Address::Tcp { host, port }, _) => ketama_name(host, *port),
        // To libmemcached a unix socket has the port 0, to twemproxy an empty one.
        (None, Address::Unix(path), Placement::Twemproxy(_)) => format!("{}:", path.display()),
        (None, Address::Unix(path), _) => format!("{}:0", path.display()),
    };
    Node { name, weight: server.weight }
}
