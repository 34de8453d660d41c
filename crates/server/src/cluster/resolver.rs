//! Asks DNS servers: over UDP, and over TCP what does not fit. Every wait has a bound, and keeps nothing.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::path::Path;
use std::time::{Duration, Instant};

use super::message::{self, Answer, Kind, Problem};
use crate::small_file;

/// Where the host lists its DNS servers.
const RESOLV_CONF: &str = "/etc/resolv.conf";
const RESOLV_CONF_BYTES_MAX: u64 = 64 << 10;
/// The most DNS servers and search domains that are tried, as in the C library.
const SERVERS_MAX: usize = 3;
const SEARCH_MAX: usize = 6;
/// The time that a server has for an answer, before the next one is asked.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often every server is asked.
const ROUNDS: usize = 2;
/// The most datagrams that are read while the answer is waited for.
const DATAGRAMS_MAX: usize = 64;
/// The most bytes of an answer over UDP; larger ones come over TCP.
const DATAGRAM_BYTES_MAX: usize = 4_096;

/// The DNS servers to ask.
#[derive(Debug, PartialEq, Eq)]
pub struct Resolver {
    servers: Vec<SocketAddr>,
    /// Behind names without a dot at the end.
    search: Vec<String>,
}

impl Resolver {
    /// Returns a resolver that asks one server.
    pub fn at(server: SocketAddr) -> Resolver {
        Resolver { servers: vec![server], search: Vec::new() }
    }

    /// Returns a resolver that asks the servers of `/etc/resolv.conf`.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn of_host() -> Result<Resolver, String> {
        let file = small_file::read(Path::new(RESOLV_CONF), RESOLV_CONF_BYTES_MAX);
        let file = file.map_err(|problem| format!("{RESOLV_CONF}: {problem}"))?;
        Ok(Resolver::parse(&String::from_utf8_lossy(&file.bytes)))
    }

    fn parse(text: &str) -> Resolver {
        let mut resolver = Resolver { servers: Vec::new(), search: Vec::new() };
        for line in text.lines() {
            let mut words = line.split_ascii_whitespace();
            match words.next() {
                Some("nameserver") => {
                    let address = words.next().and_then(|word| word.parse::<IpAddr>().ok());
                    resolver.servers.extend(address.map(|address| SocketAddr::new(address, 53)));
                }
                // The last line holds.
                Some("search" | "domain") => resolver.search = words.map(str::to_string).collect(),
                _ => {}
            }
        }
        if resolver.servers.is_empty() {
            resolver.servers.push(SocketAddr::from(([127, 0, 0, 1], 53)));
        }
        resolver.servers.truncate(SERVERS_MAX);
        resolver.search.truncate(SEARCH_MAX);
        resolver
    }

    /// Returns the first answer with records of the kind: for the name, then behind it each search domain.
    ///
    /// # Errors
    /// No server answers by the deadline, or there are no such records.
    pub fn search(&self, name: &str, kind: Kind, deadline: Instant) -> Result<Answer, String> {
        let domains = self.search.iter().filter(|_| !name.ends_with('.'));
        let longer = domains.map(|domain| format!("{name}.{}", domain.trim_matches('.')));
        for name in std::iter::once(name.to_string()).chain(longer) {
            if let Some(answer) = self.ask(&name, kind, deadline)?.filter(|answer| answer.ttl_s.is_some()) {
                return Ok(answer);
            }
        }
        Err(format!("there are no {kind:?} records of {name}").replace("Srv", "SRV"))
    }

    /// Returns the answer for a name; `None`: there is no such name.
    ///
    /// # Errors
    /// No server answers by the deadline; the problem of the last one.
    pub fn ask(&self, name: &str, kind: Kind, deadline: Instant) -> Result<Option<Answer>, String> {
        let mut last = "there was no time to ask".to_string();
        for server in std::iter::repeat_n(&self.servers, ROUNDS).flatten() {
            let until = deadline.min(Instant::now() + PATIENCE);
            if left(until).is_err() {
                break;
            }
            match ask_one(*server, name, kind, until) {
                Ok(answer) => return Ok(Some(answer)),
                Err(Problem::NoName) => return Ok(None),
                Err(Problem::Foreign) => last = format!("{server} answers other queries than were sent"),
                Err(Problem::Bad(why)) => last = format!("{server}: {why}"),
            }
        }
        Err(last)
    }
}

fn failed(error: &io::Error) -> Problem {
    Problem::Bad(match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "no answer in time".into(),
        _ => error.to_string(),
    })
}

/// The time until then.
fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

fn ask_one(server: SocketAddr, name: &str, kind: Kind, until: Instant) -> Result<Answer, Problem> {
    let mut number = [0; 2];
    let _ = rustix::rand::getrandom(&mut number, rustix::rand::GetRandomFlags::empty());
    let id = u16::from_ne_bytes(number);
    let query = message::query(id, name, kind).map_err(Problem::Bad)?;
    let answer = over_udp(server, &query, until, |bytes| message::answer(bytes, id, name, kind))?;
    if !answer.is_cut {
        return Ok(answer);
    }
    // It has a time of its own: the other was for a small answer.
    let bytes = over_tcp(server, &query, Instant::now() + PATIENCE).map_err(|error| failed(&error))?;
    match message::answer(&bytes, id, name, kind) {
        Ok(answer) if answer.is_cut => Err(Problem::Bad("the answer is cut over TCP, too".into())),
        other => other,
    }
}

fn over_udp(
    server: SocketAddr,
    query: &[u8],
    until: Instant,
    read: impl Fn(&[u8]) -> Result<Answer, Problem>,
) -> Result<Answer, Problem> {
    let any =
        if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { IpAddr::from(Ipv6Addr::UNSPECIFIED) };
    let receive = |bytes: &mut [u8], socket: &UdpSocket| {
        socket.set_read_timeout(Some(left(until)?))?;
        socket.recv(bytes)
    };
    // Connected: the kernel drops datagrams of others.
    let socket = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect(server)?;
        socket.send(query)?;
        Ok(socket)
    });
    let socket = socket.map_err(|error| failed(&error))?;
    let mut bytes = [0; DATAGRAM_BYTES_MAX];
    for _ in 0..DATAGRAMS_MAX {
        let count = receive(&mut bytes, &socket).map_err(|error| failed(&error))?;
        match read(&bytes[..count]) {
            Err(Problem::Foreign) => {}
            other => return other,
        }
    }
    Err(Problem::Foreign)
}

fn over_tcp(server: SocketAddr, query: &[u8], until: Instant) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect_timeout(&server, left(until)?)?;
    stream.set_write_timeout(Some(left(until)?))?;
    let mut framed = u16::try_from(query.len()).unwrap_or(0).to_be_bytes().to_vec();
    framed.extend_from_slice(query);
    stream.write_all(&framed)?;
    let mut length = [0; 2];
    fill(&mut stream, &mut length, until)?;
    let mut bytes = vec![0; usize::from(u16::from_be_bytes(length))];
    fill(&mut stream, &mut bytes, until)?;
    Ok(bytes)
}

/// Reads until the buffer is full, however slowly the bytes come, but not past the time.
fn fill(stream: &mut TcpStream, mut bytes: &mut [u8], until: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.set_read_timeout(Some(left(until)?))?;
        match stream.read(bytes)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => bytes = &mut bytes[count..],
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hosts_servers_and_domains_are_read_with_a_bound() {
        let text = "# by hand\nsearch old.example\nnameserver 10.0.0.1\nnameserver nonsense\nnameserver ::1\n\
                    search ns.svc.cluster.local svc.cluster.local\noptions ndots:5\n";
        let resolver = Resolver::parse(text);
        assert_eq!(resolver.servers, ["10.0.0.1:53", "[::1]:53"].map(|s| s.parse().unwrap()));
        assert_eq!(resolver.search, ["ns.svc.cluster.local", "svc.cluster.local"]);
        let many = Resolver::parse(&format!("{}search{}", "nameserver ::1\n".repeat(9), " a".repeat(9)));
        assert_eq!((many.servers.len(), many.search.len()), (SERVERS_MAX, SEARCH_MAX));
        assert_eq!(Resolver::parse("").servers, ["127.0.0.1:53".parse().unwrap()]);
    }
}
