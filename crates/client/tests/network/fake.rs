//! Servers on loopback that do what a test says, one thread for each connection.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use larder_client::{Address, Client, Options, Server};

/// A listener that hands each connection to a closure, with its number. It ends with its value.
pub struct Fake {
    pub address: Address,
    port: u16,
    /// How many connections there were.
    pub connections: Arc<AtomicUsize>,
    is_over: Arc<AtomicBool>,
}

impl Fake {
    pub fn start(serve: impl Fn(usize, TcpStream) + Send + Sync + 'static) -> Fake {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let (connections, is_over) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (count, over, serve) = (connections.clone(), is_over.clone(), Arc::new(serve));
        std::thread::spawn(move || {
            for peer in listener.incoming().flatten() {
                if over.load(SeqCst) {
                    return;
                }
                let number = count.fetch_add(1, SeqCst);
                let serve = serve.clone();
                std::thread::spawn(move || serve(number, peer));
            }
        });
        Fake { address: Address::Tcp { host: "127.0.0.1".into(), port }, port, connections, is_over }
    }

    /// A server that answers whatever comes, once for each read, with these bytes.
    pub fn saying(bytes: &'static [u8]) -> Fake {
        Fake::start(move |_, mut peer| {
            while read_some(&mut peer) > 0 {
                if peer.write_all(bytes).is_err() {
                    return;
                }
            }
        })
    }

    pub fn server(&self) -> Server {
        Server::new(self.address.clone())
    }

    pub fn client(&self, options: Options) -> Client {
        Client::new([self.server()], options).expect("there is a server")
    }

    pub fn connections(&self) -> usize {
        self.connections.load(SeqCst)
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.is_over.store(true, SeqCst);
        // Wakes the listener, which then sees that it is over.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

/// A port that is taken and at which nothing listens: connections to it are refused. It stays so while this lives.
pub struct Closed {
    socket: socket2::Socket,
}

impl Closed {
    pub fn new() -> Closed {
        use socket2::{Domain, Socket, Type};
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        let any = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
        socket.bind(&any.into()).expect("a port");
        Closed { socket }
    }

    pub fn server(&self) -> Server {
        let address = self.socket.local_addr().expect("an address").as_socket().expect("of the internet");
        Server::new(Address::Tcp { host: "127.0.0.1".into(), port: address.port() })
    }
}

/// Reads once; returns how much came.
pub fn read_some(peer: &mut TcpStream) -> usize {
    peer.read(&mut [0; 1 << 16]).unwrap_or(0)
}

/// Reads up to the end of a line, and returns it.
pub fn read_line(peer: &mut TcpStream) -> Option<String> {
    let mut line = Vec::new();
    let mut byte = [0];
    while peer.read(&mut byte).ok()? == 1 {
        line.push(byte[0]);
        if line.ends_with(b"\r\n") {
            line.truncate(line.len() - 2);
            return String::from_utf8(line).ok();
        }
    }
    None
}

/// Returns the opaque flag of a request line, with a blank before it; empty if there is none.
pub fn opaque(line: &str) -> String {
    line.split(' ').find(|word| word.starts_with('O')).map(|word| format!(" {word}")).unwrap_or_default()
}

/// Keeps a connection open without a word, until the peer closes it or half a minute is over.
pub fn hang(mut peer: TcpStream) {
    let _ = peer.set_read_timeout(Some(Duration::from_secs(30)));
    while read_some(&mut peer) > 0 {}
    let _ = peer.shutdown(Shutdown::Both);
}

/// Time limits that a test can wait for.
pub fn hasty() -> Options {
    Options { timeout: Duration::from_millis(500), retry_percent: 0, ..Options::default() }
}

/// Time limits that a busy machine does not reach.
pub fn patient() -> Options {
    let patience = Duration::from_secs(20);
    Options { connect_timeout: patience, timeout: patience, ..Options::default() }
}
