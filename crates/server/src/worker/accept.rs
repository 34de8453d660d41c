//! Accepts connections: hands them to the workers in turn, and refuses those over the limit.
//!
//! A connection over the limit is refused with an error line. With `no_maxconns_fast` it waits in the kernel's
//! queue for another to end, but not forever: after a while all that wait are refused.

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, SocketAddrAny, SocketFlags, accept_with, acceptfrom_with};

use super::{Accepted, Worker};
use crate::session::TOO_MANY_CONNECTIONS;

/// Connections taken from one listener before other events get their turn.
const ACCEPTED_MAX: usize = 64;
/// The time that connections wait for room with `no_maxconns_fast`.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// The least time between two reports of failures to accept.
const REPORT_EVERY: Duration = Duration::from_secs(10);
/// Reads of the input of a client, in pieces, before its connection is closed. If it were closed with bytes unread,
/// the client would lose the last words to it too.
const DRAINED_PIECES: usize = 8;
const PIECE_BYTES: usize = 4096;

/// The state that the first worker accepts connections by.
pub(super) struct Acceptor {
    /// A descriptor held in reserve, to refuse a connection with when no other is left.
    spare: Option<OwnedFd>,
    /// Since when connections wait because there are too many.
    full_since: Option<Instant>,
    reported_at: Option<Instant>,
    /// Since when no connections are taken.
    stopped_at: Option<Instant>,
}

/// The kinds of failure to accept, by their remedy.
#[derive(Debug, PartialEq, Eq)]
enum Failure {
    /// There is no connection to take.
    Nothing,
    /// This connection broke before it was taken; the next one may be whole.
    Broken,
    /// No descriptor is left.
    Descriptors,
    /// The system refuses, and would refuse the next attempt too.
    Other,
}

impl Failure {
    fn of(error: Errno) -> Failure {
        match error {
            Errno::AGAIN => Failure::Nothing,
            Errno::MFILE | Errno::NFILE => Failure::Descriptors,
            // accept(2): errors of the new connection's network come as its own.
            Errno::INTR
            | Errno::CONNABORTED
            | Errno::NETDOWN
            | Errno::PROTO
            | Errno::NOPROTOOPT
            | Errno::HOSTDOWN
            | Errno::NONET
            | Errno::HOSTUNREACH
            | Errno::OPNOTSUPP
            | Errno::NETUNREACH => Failure::Broken,
            _ => Failure::Other,
        }
    }
}

impl Acceptor {
    pub(super) fn new() -> Acceptor {
        Acceptor { spare: spare(), full_since: None, reported_at: None, stopped_at: None }
    }

    /// Returns whether the connections that wait for room have waited long enough.
    fn has_waited(&self, now: Instant) -> bool {
        self.full_since.is_some_and(|since| now.duration_since(since) >= WAIT_MAX)
    }
}

fn spare() -> Option<OwnedFd> {
    eventfd(0, EventfdFlags::CLOEXEC).ok()
}

/// Refuses a client because there are too many, and closes its connection.
fn refuse(socket: OwnedFd) {
    let line = format!("{}\r\n", TOO_MANY_CONNECTIONS);
    let _ = rustix::net::send(&socket, line.as_bytes(), SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
    part(socket.as_fd());
}

/// Ends the output, and reads what has come, before a connection is closed.
pub(super) fn part(socket: BorrowedFd<'_>) {
    let _ = rustix::net::shutdown(socket, Shutdown::Write);
    let mut piece = [0; PIECE_BYTES];
    for _ in 0..DRAINED_PIECES {
        match rustix::net::recv(socket, &mut piece, RecvFlags::DONTWAIT) {
            Ok((1.., _)) => {}
            _ => return,
        }
    }
}

impl Worker {
    fn is_full(&self) -> bool {
        self.shared.connections.load(Relaxed) >= self.shared.config.conn_limit
    }

    /// Returns whether connections over the limit are to wait now.
    fn lets_wait(&self) -> bool {
        !self.shared.config.conn_limit_fast && !self.acceptor.has_waited(self.instant)
    }

    /// Takes connections from a listener and hands them out in turn.
    pub(super) fn accept(&mut self, listener: usize) {
        for _ in 0..ACCEPTED_MAX {
            let is_full = self.is_full();
            if is_full && self.lets_wait() {
                self.acceptor.full_since.get_or_insert(self.instant);
                return self.stop_accepting();
            }
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            match acceptfrom_with(&self.listeners[listener].socket, flags) {
                Ok((socket, _)) if is_full => {
                    self.counters().rejected_connections.up();
                    refuse(socket);
                }
                Ok((socket, peer)) => self.hand_out(socket, listener, peer),
                Err(error) => match Failure::of(error) {
                    Failure::Broken => {}
                    Failure::Nothing => {
                        // All that waited have been refused: later ones may wait as long.
                        self.acceptor.full_since = None;
                        return;
                    }
                    Failure::Descriptors if self.refuse_with_spare(listener) => {}
                    Failure::Descriptors | Failure::Other => return self.pause(error),
                },
            }
        }
    }

    fn hand_out(&mut self, socket: OwnedFd, listener: usize, peer: Option<SocketAddrAny>) {
        self.acceptor.full_since = None;
        self.shared.connections.fetch_add(1, Relaxed);
        self.counters().total_connections.up();
        if self.listeners[listener].port.is_some() {
            let _ = rustix::net::sockopt::set_tcp_nodelay(&socket, true);
            let _ = rustix::net::sockopt::set_socket_keepalive(&socket, true);
        }
        self.next_inbox = (self.next_inbox + 1) % self.inboxes.len();
        let peer = peer.and_then(|peer| SocketAddr::try_from(peer).ok());
        let accepted = Accepted { socket, listener, peer };
        if self.next_inbox == self.number {
            self.adopt(accepted);
        } else {
            self.inboxes[self.next_inbox].put(accepted);
        }
    }

    /// Refuses a connection for which there is no descriptor, with the one in reserve. Returns false if that does
    /// not help.
    fn refuse_with_spare(&mut self, listener: usize) -> bool {
        let Some(spare_descriptor) = self.acceptor.spare.take() else {
            self.acceptor.spare = spare();
            return false;
        };
        drop(spare_descriptor);
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let refused = accept_with(self.listeners[listener].socket.as_fd(), flags).map(refuse);
        self.acceptor.spare = spare();
        if refused.is_ok() {
            self.counters().rejected_connections.up();
            self.report_accept(Errno::MFILE);
        }
        refused.is_ok()
    }

    /// Takes no connections until the next tick: the listeners stay readable, and the loop would spin.
    fn pause(&mut self, error: Errno) {
        self.report_accept(error);
        self.stop_accepting();
    }

    fn stop_accepting(&mut self) {
        if self.accept_on(false).is_ok() {
            self.counters().listen_disabled_num.up();
            self.shared.accepting.store(false, Relaxed);
            self.acceptor.stopped_at = Some(self.instant);
        }
    }

    fn report_accept(&mut self, error: Errno) {
        let is_due = |at: Instant| self.instant.duration_since(at) >= REPORT_EVERY;
        if !self.acceptor.reported_at.is_none_or(is_due) {
            return;
        }
        self.acceptor.reported_at = Some(self.instant);
        match Failure::of(error) {
            Failure::Descriptors => {
                tracing::warn!("no descriptor is left for another connection; raise ulimit -n, or lower -c");
            }
            _ => {
                tracing::warn!(%error, "accepting connections fails; the next try is within a second");
            }
        }
    }

    /// Accepts connections again if accepting was stopped and there is room, or if connections have waited long
    /// enough to be refused.
    pub(super) fn accept_again(&mut self) {
        let stays = self.is_full() && self.lets_wait() || self.shared.stopping.load(Relaxed);
        if self.accepting || stays || self.accept_on(true).is_err() {
            return;
        }
        self.shared.accepting.store(true, Relaxed);
        if let Some(since) = self.acceptor.stopped_at.take() {
            let stopped = self.instant.duration_since(since);
            self.counters().time_in_listen_disabled_us.add(stopped.as_micros() as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_that_lasts_is_told_from_one_connections_own() {
        for error in [Errno::NOBUFS, Errno::NOMEM, Errno::PERM, Errno::INVAL, Errno::BADF, Errno::IO] {
            assert_eq!(Failure::of(error), Failure::Other, "{error}");
        }
        for error in [Errno::INTR, Errno::CONNABORTED, Errno::HOSTUNREACH, Errno::PROTO] {
            assert_eq!(Failure::of(error), Failure::Broken, "{error}");
        }
        assert_eq!(Failure::of(Errno::MFILE), Failure::Descriptors);
        assert_eq!(Failure::of(Errno::NFILE), Failure::Descriptors);
        assert_eq!(Failure::of(Errno::WOULDBLOCK), Failure::Nothing);
    }
}
