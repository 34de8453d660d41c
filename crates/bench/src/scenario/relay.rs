//! A relay in front of a server that holds every byte back for a fixed time each way: a network of that length
//! between the two, without a limit of its bandwidth.
//!
//! ```text
//!   client --> reader -- (bytes, when they are due) --> writer --> server
//!   client <-- writer <-- (bytes, when they are due) -- reader <-- server
//! ```

use crate::net::Address;
use rustix::net::shutdown;
use rustix::thread::set_current_timer_slack;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How much is read at a time, and how many such pieces wait in each direction.
const PIECE_BYTES: usize = 64 << 10;
const PIECES_MAX: usize = 256;
/// Connections at a time; more are refused.
const CONNECTIONS_MAX: usize = 64;
/// A sleep may end later by about so much, so the rest is waited for by reading the clock.
const SPIN: Duration = Duration::from_micros(60);

/// The two ends of a connection.
struct Pair {
    client: TcpStream,
    server: TcpStream,
}

impl Pair {
    fn close(&self) {
        // An end that is closed already is no error.
        let _ = self.client.shutdown(Shutdown::Both);
        let _ = self.server.shutdown(Shutdown::Both);
    }
}

#[derive(Debug, Default)]
struct Shared {
    one_way_ns: AtomicU64,
    pairs: Mutex<Vec<Weak<Pair>>>,
}

/// A relay. It ends, with its connections, when it is dropped.
#[derive(Debug)]
pub struct Relay {
    /// Where it listens.
    pub address: SocketAddr,
    shared: Arc<Shared>,
    listener: Arc<TcpListener>,
    accepting: Option<JoinHandle<()>>,
}

impl Relay {
    /// Starts one without a delay, on a free port of `at`, in front of a server that listens on TCP.
    ///
    /// # Errors
    /// There is no free port, the server is on a Unix socket, or its name is not known.
    pub fn start(at: Ipv4Addr, server: &Address) -> io::Result<Self> {
        let no_tcp = || io::Error::other(format!("{server} is not reached over TCP"));
        let server = server.resolve()?.into_iter().next().ok_or_else(no_tcp)?;
        let listener = Arc::new(TcpListener::bind((at, 0))?);
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let (listens, accepts) = (Arc::clone(&listener), Arc::clone(&shared));
        let accepting = thread::Builder::new().spawn(move || accept(&listens, server, &accepts))?;
        Ok(Self { address, shared, listener, accepting: Some(accepting) })
    }

    /// Sets how long each byte is held back from now on, in each direction.
    pub fn hold(&self, one_way: Duration) {
        self.shared.one_way_ns.store(one_way.as_nanos() as u64, Ordering::Relaxed);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // Ends the call that accepts, even if the address is gone by now.
        let _ = shutdown(&self.listener, rustix::net::Shutdown::Both);
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
        let mut pairs = self.shared.pairs.lock().unwrap_or_else(PoisonError::into_inner);
        pairs.drain(..).filter_map(|pair| pair.upgrade()).for_each(|pair| pair.close());
    }
}

fn accept(listener: &TcpListener, server: SocketAddr, shared: &Arc<Shared>) {
    while let Ok((client, _)) = listener.accept() {
        let mut pairs = shared.pairs.lock().unwrap_or_else(PoisonError::into_inner);
        pairs.retain(|pair| pair.strong_count() > 0);
        // A client whose server is gone sees its connection closed.
        if pairs.len() < CONNECTIONS_MAX
            && let Ok(pair) = connect(client, server, shared)
        {
            pairs.push(pair);
        }
    }
}

fn connect(client: TcpStream, server: SocketAddr, shared: &Arc<Shared>) -> io::Result<Weak<Pair>> {
    let server = TcpStream::connect(server)?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let pair = Arc::new(Pair { client, server });
    for is_request in [true, false] {
        let (sender, receiver) = sync_channel(PIECES_MAX);
        let (reads, writes, shared) = (Arc::clone(&pair), Arc::clone(&pair), Arc::clone(shared));
        thread::Builder::new().spawn(move || read(&reads, is_request, &shared.one_way_ns, &sender))?;
        thread::Builder::new().spawn(move || write(&writes, is_request, &receiver))?;
    }
    Ok(Arc::downgrade(&pair))
}

type Piece = (Instant, Vec<u8>);

fn read(pair: &Pair, is_request: bool, one_way_ns: &AtomicU64, sender: &SyncSender<Piece>) {
    let mut from = if is_request { &pair.client } else { &pair.server };
    let mut buffer = vec![0; PIECE_BYTES];
    while let Ok(bytes @ 1..) = from.read(&mut buffer) {
        let due = Instant::now() + Duration::from_nanos(one_way_ns.load(Ordering::Relaxed));
        if sender.send((due, buffer[..bytes].to_vec())).is_err() {
            return;
        }
    }
}

fn write(pair: &Pair, is_request: bool, receiver: &Receiver<Piece>) {
    let mut to = if is_request { &pair.server } else { &pair.client };
    // Without it the kernel may end every sleep 50 us late; where it is refused, the measured distance tells.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    for (due, bytes) in receiver {
        wait_until(due);
        if to.write_all(&bytes).is_err() {
            pair.close();
            return;
        }
    }
    // One direction may end before the other.
    let _ = to.shutdown(Shutdown::Write);
}

fn wait_until(due: Instant) {
    let left = due.saturating_duration_since(Instant::now());
    if left > SPIN {
        thread::sleep(left - SPIN);
    }
    while Instant::now() < due {
        std::hint::spin_loop();
    }
}

impl std::fmt::Debug for Pair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pair").field("client", &self.client).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that sends back what it gets, until its client ends.
    fn echo() -> Address {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback has a free port");
        let port = listener.local_addr().expect("it is bound").port();
        thread::spawn(move || {
            for stream in listener.incoming().take(2).flatten() {
                thread::spawn(move || {
                    let (mut from, mut to) = (&stream, &stream);
                    let _ = io::copy(&mut from, &mut to);
                    let _ = stream.shutdown(Shutdown::Write);
                });
            }
        });
        Address::Tcp { host: "127.0.0.1".to_string(), port }
    }

    fn exchange(stream: &mut TcpStream, sent: &[u8]) -> Duration {
        let start = Instant::now();
        let mut got = vec![0; sent.len()];
        let mut to = stream.try_clone().expect("a socket can be shared");
        thread::scope(|scope| {
            scope.spawn(move || to.write_all(sent).expect("the relay takes it"));
            stream.read_exact(&mut got).expect("the relay sends it back");
        });
        assert!(got == sent, "{} bytes are not those that were sent", sent.len());
        start.elapsed()
    }

    #[test]
    fn bytes_come_unchanged_and_not_before_they_are_due() {
        let relay = Relay::start(Ipv4Addr::LOCALHOST, &echo()).expect("there is a free port");
        let mut stream = TcpStream::connect(relay.address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a socket takes a timeout");
        let delay = Duration::from_millis(20);
        relay.hold(delay);
        for bytes in [1, PIECE_BYTES, 10 * PIECE_BYTES, 32 << 20] {
            let sent: Vec<u8> = (0..bytes).map(|at| (at * 7 + at / 251) as u8).collect();
            assert!(exchange(&mut stream, &sent) >= 2 * delay, "{bytes} bytes came too soon");
        }
        stream.shutdown(Shutdown::Write).expect("the connection is open");
        assert_eq!(stream.read(&mut [0; 8]).expect("the end is passed on"), 0);
    }

    #[test]
    fn its_connections_end_with_it() {
        let relay = Relay::start(Ipv4Addr::LOCALHOST, &echo()).expect("there is a free port");
        let mut stream = TcpStream::connect(relay.address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a socket takes a timeout");
        exchange(&mut stream, b"hello");
        drop(relay);
        assert!(matches!(stream.read(&mut [0; 8]), Ok(0) | Err(_)));
        let unix = Address::Unix("/nowhere".into());
        assert!(Relay::start(Ipv4Addr::LOCALHOST, &unix).is_err_and(|e| e.to_string().contains("TCP")));
    }
}
