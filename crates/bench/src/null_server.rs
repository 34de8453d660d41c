//! A server that does nothing: it answers every request at once with a fixed reply and stores nothing.
//! Against it a generator shows its highest rate.
//!
//! It can also take a fixed time for each request, by the clock and not by work: then it is a server whose
//! capacity is known, whatever the host does, and a search for it can be held against the truth.

mod answer;

use crate::wire::Protocol;
use rustix::event::{Timespec, epoll};
use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const LISTENER: u64 = u64::MAX;
const INPUT_BYTES: usize = 64 << 10;
/// How long a thread sleeps at most before it looks whether to end.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
const NO_NAP: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// A server that does nothing.
#[derive(Clone, Copy, Debug)]
pub struct NullServer {
    /// Its protocol.
    pub protocol: Protocol,
    /// The size of every value in its replies.
    pub value_bytes: u32,
    /// How long each thread takes for a request; zero is at once.
    pub service_time: Duration,
}

impl NullServer {
    /// Serves the connections that this thread happens to accept, until `stop` is set. Several threads may
    /// share a listener.
    ///
    /// # Errors
    /// The system refuses.
    pub fn serve(&self, listener: &TcpListener, stop: &Arc<AtomicBool>) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, listener, epoll::EventData::new_u64(LISTENER), epoll::EventFlags::IN)?;
        let replies = answer::Replies::new(self.protocol, self.value_bytes);
        // With a service time the loop must not sleep: it would wake late.
        let nap = if self.service_time.is_zero() { LOOK } else { NO_NAP };
        let mut pace = Pace { service_time: self.service_time, free_at: Instant::now() };
        let mut connections = HashMap::new();
        let mut next = 0;
        let mut events = Vec::with_capacity(256);
        while !stop.load(Ordering::Relaxed) {
            events.clear();
            match epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut events), Some(&nap)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            if events.is_empty() {
                pace.free_at = Instant::now();
            }
            for event in events.drain(..) {
                let data = event.data.u64();
                if data == LISTENER {
                    // Another thread may have been faster.
                    let Ok((stream, _)) = listener.accept() else { continue };
                    stream.set_nonblocking(true)?;
                    stream.set_nodelay(true)?;
                    epoll::add(
                        &epoll,
                        stream.as_fd(),
                        epoll::EventData::new_u64(next),
                        epoll::EventFlags::IN,
                    )?;
                    connections.insert(next, Connection::new(stream));
                    next += 1;
                } else if let Some(connection) = connections.get_mut(&data)
                    && !connection.answer(&replies, &mut pace)
                {
                    connections.remove(&data);
                }
            }
        }
        Ok(())
    }
}

/// When a thread is done with its requests. The time that a request takes follows that of the one before,
/// however late the system woke the thread: time that the host takes away is caught up with.
struct Pace {
    service_time: Duration,
    free_at: Instant,
}

impl Pace {
    fn serve_one(&mut self) {
        if self.service_time.is_zero() {
            return;
        }
        self.free_at += self.service_time;
        while Instant::now() < self.free_at {
            std::hint::spin_loop();
        }
    }
}

struct Connection {
    stream: TcpStream,
    input: Vec<u8>,
    filled: usize,
    output: Vec<u8>,
}

impl Connection {
    fn new(stream: TcpStream) -> Self {
        Self { stream, input: vec![0; INPUT_BYTES], filled: 0, output: Vec::with_capacity(INPUT_BYTES) }
    }

    /// Answers the requests that have arrived; returns false once the client is gone.
    fn answer(&mut self, replies: &answer::Replies, pace: &mut Pace) -> bool {
        if self.filled == self.input.len() {
            self.input.resize(self.input.len() * 2, 0);
        }
        match self.stream.read(&mut self.input[self.filled..]) {
            Ok(0) => return false,
            Ok(read) => self.filled += read,
            Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
        }
        let mut at = 0;
        loop {
            match replies.answer(&self.input[at..self.filled], &mut self.output) {
                Some(0) => break,
                Some(consumed) => {
                    at += consumed;
                    pace.serve_one();
                }
                None => return false,
            }
        }
        self.input.copy_within(at..self.filled, 0);
        self.filled -= at;
        self.send()
    }

    /// Sends the answers; waits for a peer that does not read, since it is the only one that matters then.
    fn send(&mut self) -> bool {
        let mut sent = 0;
        while sent < self.output.len() {
            match self.stream.write(&self.output[sent..]) {
                Ok(0) => return false,
                Ok(written) => sent += written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let mut fds = [rustix::event::PollFd::new(&self.stream, rustix::event::PollFlags::OUT)];
                    let _ = rustix::event::poll(&mut fds, Some(&LOOK));
                }
                Err(_) => return false,
            }
        }
        self.output.clear();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_time_is_kept_and_what_the_host_took_is_caught_up_with() {
        let service_time = Duration::from_millis(2);
        let began = Instant::now();
        let mut pace = Pace { service_time, free_at: began };
        (0..5).for_each(|_| pace.serve_one());
        assert!(began.elapsed() >= Duration::from_millis(10));
        std::thread::sleep(Duration::from_millis(20));
        (0..10).for_each(|_| pace.serve_one());
        // Ten take 20 ms, and these were over before the first was looked at.
        assert_eq!(pace.free_at, began + Duration::from_millis(30));
        assert!(began.elapsed() >= Duration::from_millis(30));
    }
}
