//! The thread that serves HTTP: one poll over its socket and a bounded number of connections.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, SocketFlags, accept_with, recv, send, shutdown};

use super::State;
use super::connection::Connection;
use crate::listener::Listener;
use crate::shared::Shared;

/// The most connections. One more ends another: the one that has to progress first, best an idle one.
const CONNECTIONS_MAX: usize = 64;
/// Connections accepted before the others get their turn.
const ACCEPTED_MAX: usize = 16;
/// The pause after a connection could not be accepted, since the next attempt would fail too.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
const RECEIVE_BYTES: usize = 8 << 10;
/// Reads of what a peer still sends, before its connection is closed: with bytes unread, it would lose its answer.
const DRAINED_PIECES: usize = 8;

/// The running interface. It ends when dropped.
pub struct Server {
    state: Arc<State>,
    waker: OwnedFd,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Begins to serve. Until [`serve`](Self::serve), the daemon is not ready.
    ///
    /// # Errors
    /// The system has no thread or descriptor for it.
    pub fn start(listener: Listener, state: State) -> io::Result<Server> {
        let waker = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        let state = Arc::new(state);
        let mut poller = Poller {
            listener,
            stop: waker.try_clone()?,
            state: state.clone(),
            connections: Vec::new(),
            accepts_at: None,
        };
        let run = move || {
            if let Err(error) = poller.run() {
                tracing::error!(%error, "HTTP is not served any more");
            }
        };
        let thread = thread::Builder::new().name("larder-http".into()).spawn(run)?;
        Ok(Server { state, waker, thread: Some(thread) })
    }

    /// Gives it the state of the daemon, which is ready from now on.
    pub fn serve(&self, shared: Arc<Shared>) {
        self.state.serve(shared);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = rustix::io::write(&self.waker, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The thread's own state.
struct Poller {
    listener: Listener,
    /// Readable once the thread has to end.
    stop: OwnedFd,
    state: Arc<State>,
    connections: Vec<(OwnedFd, Connection)>,
    /// No connection is accepted before.
    accepts_at: Option<Instant>,
}

/// What a connection has to be after a round.
#[derive(PartialEq)]
enum Fate {
    Stays,
    Ends,
}

impl Poller {
    fn run(&mut self) -> io::Result<()> {
        let mut buffer = [0; RECEIVE_BYTES];
        loop {
            let ready = self.wait()?;
            let now = Instant::now();
            self.state.note(now);
            let [stops, accepts, ..] = ready[..] else { return Ok(()) };
            if !stops.is_empty() {
                return Ok(());
            }
            let mut ready = ready[2..].iter();
            let state = &self.state;
            self.connections.retain_mut(|(socket, connection)| {
                let ready = ready.next().copied().unwrap_or(PollFlags::empty());
                let fate = progress(state, socket, connection, (ready, now), &mut buffer);
                if fate == Fate::Ends {
                    close(socket, &mut buffer);
                }
                fate == Fate::Stays
            });
            if !accepts.is_empty() {
                self.accept(now);
            }
        }
    }

    /// Waits for events. Returns those of the stop, of the listener and of each connection.
    fn wait(&mut self) -> io::Result<Vec<PollFlags>> {
        let now = Instant::now();
        self.accepts_at = self.accepts_at.filter(|at| *at > now);
        let accepts = if self.accepts_at.is_some() { PollFlags::empty() } else { PollFlags::IN };
        let mut polled = vec![
            PollFd::from_borrowed_fd(self.stop.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.listener.socket.as_fd(), accepts),
        ];
        polled.extend(self.connections.iter().map(|(socket, connection)| {
            let input = if connection.room() > 0 { PollFlags::IN } else { PollFlags::empty() };
            let output = if connection.output().is_empty() { PollFlags::empty() } else { PollFlags::OUT };
            PollFd::from_borrowed_fd(socket.as_fd(), input | output)
        }));
        let deadlines = self.connections.iter().map(|(_, connection)| connection.deadline());
        let until = deadlines.chain(self.accepts_at).fold(self.state.note_due(now), Instant::min);
        let left = until.saturating_duration_since(now);
        let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
        match poll(&mut polled, Some(&timeout)) {
            Ok(_) => Ok(polled.iter().map(PollFd::revents).collect()),
            Err(Errno::INTR) => Ok(vec![PollFlags::empty(); polled.len()]),
            Err(error) => Err(error.into()),
        }
    }

    fn accept(&mut self, now: Instant) {
        for _ in 0..ACCEPTED_MAX {
            match accept_with(&self.listener.socket, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                Ok(socket) => {
                    if self.connections.len() >= CONNECTIONS_MAX {
                        self.end_one();
                    }
                    self.connections.push((socket, Connection::new(now)));
                }
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(_) => {
                    self.accepts_at = Some(now + ACCEPT_PAUSE);
                    return;
                }
            }
        }
    }

    /// Ends a connection to make room for another: the one whose peer has left it waiting for longest. One that is
    /// being answered comes last.
    fn end_one(&mut self) {
        let order = |(_, connection): &(OwnedFd, Connection)| {
            (!connection.output().is_empty(), connection.waits_since())
        };
        let first = (0..self.connections.len()).min_by_key(|at| order(&self.connections[*at]));
        if let Some(at) = first {
            drop(self.connections.swap_remove(at));
        }
    }
}

/// Receives and sends as far as possible now.
fn progress(
    state: &State,
    socket: &OwnedFd,
    connection: &mut Connection,
    (ready, now): (PollFlags, Instant),
    buffer: &mut [u8],
) -> Fate {
    if ready.contains(PollFlags::IN) && connection.room() > 0 {
        let room = connection.room().min(buffer.len());
        match recv(socket, &mut buffer[..room], RecvFlags::DONTWAIT) {
            Ok((0, _)) => return Fate::Ends,
            Ok((_, bytes)) => connection.receive(state, &buffer[..bytes], now),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => return Fate::Ends,
        }
    } else if ready.intersects(PollFlags::HUP | PollFlags::ERR) {
        return Fate::Ends;
    }
    if now >= connection.deadline() && !connection.expire(now) {
        return Fate::Ends;
    }
    while !connection.output().is_empty() {
        match send(socket, connection.output(), SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
            Ok(bytes) => connection.note_sent(state, bytes, now),
            Err(Errno::AGAIN) => break,
            Err(Errno::INTR) => {}
            Err(_) => return Fate::Ends,
        }
    }
    if connection.is_over() { Fate::Ends } else { Fate::Stays }
}

/// Tells the peer that no more is sent, and takes a little of what it still sends.
fn close(socket: &OwnedFd, buffer: &mut [u8]) {
    let _ = shutdown(socket, Shutdown::Write);
    for _ in 0..DRAINED_PIECES {
        if !matches!(recv(socket, &mut *buffer, RecvFlags::DONTWAIT), Ok((_, 1..))) {
            break;
        }
    }
}
