//! The open connections, for `stats conns`: each worker lists its own when it is asked.
//!
//! ```text
//!   stats conns --> ask, wake all workers --> each puts its list --> the asker takes them all
//! ```
//! A list stays until the next one; it takes less than a tenth of what its connections themselves take.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// A socket, as `stats conns` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketFacts {
    /// Its descriptor.
    pub descriptor: i32,
    /// The client's address; None on a Unix socket.
    pub peer: Option<SocketAddr>,
    /// The address at which it was accepted, or at which it listens, as [`shown_address`] has it.
    pub listen_address: Arc<str>,
    /// memcached's word for what it does.
    pub state: &'static str,
    /// Seconds since the last command.
    pub idle_s: u64,
}

/// What a socket that listens does, in memcached's word.
pub const LISTENING: &str = "conn_listening";

/// Returns memcached's form of an address.
pub fn shown_address(address: SocketAddr) -> String {
    match address {
        SocketAddr::V4(address) => format!("tcp:{address}"),
        SocketAddr::V6(address) => format!("tcp6:[{}]:{}", address.ip(), address.port()),
    }
}

/// The sockets of one worker, and the request that they were listed for.
#[derive(Default)]
struct List {
    number: u64,
    sockets: Arc<Vec<SocketFacts>>,
}

/// The lists of all workers.
pub struct Roster {
    /// The number of the last request.
    asked: AtomicU64,
    lists: Vec<Mutex<List>>,
}

impl Roster {
    /// Returns the empty lists of so many workers.
    pub fn new(workers: usize) -> Roster {
        Roster { asked: AtomicU64::new(0), lists: (0..workers).map(|_| Mutex::default()).collect() }
    }

    /// Asks all workers for their lists. Returns the number of the request. The caller wakes them.
    pub fn ask(&self) -> u64 {
        self.asked.fetch_add(1, Relaxed) + 1
    }

    /// Returns the number of the last request, 0 for none.
    #[inline]
    pub fn asked(&self) -> u64 {
        self.asked.load(Relaxed)
    }

    /// Puts the list of a worker, made for a request.
    pub fn put(&self, worker: usize, number: u64, sockets: Vec<SocketFacts>) {
        if let Some(list) = self.lists.get(worker) {
            *list.lock().unwrap_or_else(PoisonError::into_inner) =
                List { number, sockets: Arc::new(sockets) };
        }
    }

    /// Returns the lists that were made for a request or a later one, and whether they are those of all workers.
    pub fn lists(&self, number: u64) -> (Vec<Arc<Vec<SocketFacts>>>, bool) {
        let lists = self.lists.iter().filter_map(|list| {
            let list = list.lock().unwrap_or_else(PoisonError::into_inner);
            (list.number >= number).then(|| list.sockets.clone())
        });
        let lists: Vec<_> = lists.collect();
        let is_whole = lists.len() == self.lists.len();
        (lists, is_whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_whole_once_every_worker_has_put_a_new_one() {
        let roster = Roster::new(2);
        let first = roster.ask();
        assert_eq!((roster.asked(), roster.lists(first).1), (first, false));
        roster.put(1, first, Vec::new());
        assert_eq!((roster.lists(first).0.len(), roster.lists(first).1), (1, false));
        roster.put(0, first, Vec::new());
        assert!(roster.lists(first).1);
        let second = roster.ask();
        assert!(roster.lists(second).0.is_empty(), "the lists of before are old");
        assert!(roster.lists(first).1);
    }

    #[test]
    fn addresses_have_memcacheds_form() {
        let shown = |address: &str| shown_address(address.parse().expect("an address"));
        assert_eq!(shown("127.0.0.1:11211"), "tcp:127.0.0.1:11211");
        assert_eq!(shown("[::1]:11211"), "tcp6:[::1]:11211");
    }
}
