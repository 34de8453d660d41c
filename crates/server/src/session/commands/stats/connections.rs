//! `stats conns`: every socket with its addresses, what it does, and for how long it has been silent.

use std::time::{Duration, Instant};

use larder_protocol::Reply;

use crate::roster::{LISTENING, SocketFacts, shown_address};
use crate::session::{Ctx, Served, Session, Wait};

/// The time that workers have for their lists. Those that are later are left out.
const LISTS_WAIT: Duration = Duration::from_secs(1);

/// A listing of connections under way.
pub(in crate::session) struct ConnectionListing {
    /// The number of the request to the workers; None if there are none to ask.
    number: Option<u64>,
    since: Instant,
    /// All sockets, by their descriptors, once the lists are there.
    sockets: Option<Vec<SocketFacts>>,
}

impl ConnectionListing {
    fn begin(ctx: &Ctx<'_>) -> ConnectionListing {
        ConnectionListing { number: ctx.shared.ask_for_sockets(), since: ctx.instant, sockets: None }
    }

    /// Returns the bytes that it holds.
    pub(in crate::session) fn memory_bytes(&self) -> usize {
        self.sockets.as_ref().map_or(0, |sockets| sockets.capacity() * size_of::<SocketFacts>())
    }

    /// Returns the sockets, unless workers are still asked.
    fn sockets(&mut self, ctx: &Ctx<'_>) -> Option<&[SocketFacts]> {
        if self.sockets.is_none() {
            let (lists, is_whole) = match self.number {
                Some(number) => ctx.shared.roster.lists(number),
                None => (Vec::new(), true),
            };
            if !is_whole && ctx.instant.duration_since(self.since) < LISTS_WAIT {
                return None;
            }
            let mut sockets: Vec<SocketFacts> = lists.iter().flat_map(|list| list.iter().cloned()).collect();
            sockets.sort_unstable_by_key(|socket| socket.descriptor);
            self.sockets = Some(sockets);
        }
        self.sockets.as_deref()
    }
}

impl Session {
    /// Lists all sockets. The request waits at the front of the input until the workers have listed theirs, and while
    /// the peer takes what has been listed.
    pub(super) fn list_connections(&mut self, ctx: &mut Ctx<'_>, reply: &Reply<'_>) -> Served {
        let mut listing = match self.connection_listing.take() {
            Some(listing) => listing,
            None => {
                self.add_cost(super::STATS_COST_BYTES);
                Box::new(ConnectionListing::begin(ctx))
            }
        };
        self.wait = match listing.sockets(ctx) {
            None => Wait::Room,
            Some(sockets) => self.push_sockets(ctx, reply, sockets),
        };
        if self.wait != Wait::None {
            self.connection_listing = Some(listing);
            return Served::Waits;
        }
        reply.stats_end(self.out.tail());
        Served::Done
    }

    /// Encodes the sockets that have not been listed, as far as there is room in the output. Returns the reason to
    /// wait, if there is one.
    fn push_sockets(&mut self, ctx: &Ctx<'_>, reply: &Reply<'_>, sockets: &[SocketFacts]) -> Wait {
        for socket in sockets.iter().skip(self.progress) {
            if self.is_full(ctx) {
                return Wait::Drain;
            }
            let is_own = socket.descriptor == ctx.connection && socket.state != LISTENING;
            push_socket(self.out.tail(), reply, socket, is_own);
            self.progress += 1;
        }
        Wait::None
    }
}

/// Encodes one socket. The connection that asks executes a command, whatever it did when it was listed.
fn push_socket(out: &mut Vec<u8>, reply: &Reply<'_>, socket: &SocketFacts, is_own: bool) {
    let descriptor = socket.descriptor;
    let mut line =
        |name: &str, value: &str| reply.stat(out, &format!("{descriptor}:{name}"), value.as_bytes());
    if socket.state == LISTENING {
        line("addr", &socket.listen_address);
    } else {
        match socket.peer {
            Some(peer) => line("addr", &shown_address(peer)),
            None => line("addr", &socket.listen_address),
        }
        line("listen_addr", &socket.listen_address);
    }
    line("state", if is_own { "conn_parse_cmd" } else { socket.state });
    let idle_s = if is_own { 0 } else { socket.idle_s };
    line("secs_since_last_cmd", &idle_s.to_string());
}
