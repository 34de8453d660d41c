//! The service manager that started this process, systemd as a rule: it is told how the daemon is, and keeps
//! descriptors while no daemon runs. What they are is not known here.
//!
//! The protocol is that of `sd_notify(3)` and `sd_listen_fds(3)`: lines in a datagram to the socket of
//! `NOTIFY_SOCKET`, with a descriptor beside them; and descriptors from number 3 on at the next start, as
//! `LISTEN_FDS` and `LISTEN_FDNAMES` say.

use std::collections::VecDeque;
use std::env;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};

use crate::process;

/// Descriptors whose names begin with this were given to the service manager by an earlier daemon.
pub const OWN_PREFIX: &str = "larder-";
/// The longest that a message may wait for the service manager.
const SEND_MAX: Duration = Duration::from_secs(5);
/// The most descriptors that are taken from the service manager.
const PASSED_MAX: usize = 1024;

/// A descriptor that the service manager passed to this process.
#[derive(Debug)]
pub struct Passed {
    /// Its name: the one that it was kept by, or that of its unit.
    pub name: String,
    /// The descriptor.
    pub descriptor: OwnedFd,
}

/// The service manager. By default there is none, and nothing is told to anyone.
#[derive(Debug, Default)]
pub struct Service {
    address: Option<SocketAddr>,
    watchdog: Option<Duration>,
    passed: VecDeque<Passed>,
}

impl Service {
    /// Returns that of this process, and takes the descriptors that it passed. To be called once.
    pub fn of_this_process() -> Service {
        let read = |name: &str| env::var(name).ok();
        let is_mine = |name| read(name).and_then(|pid| pid.parse().ok()) == Some(std::process::id());
        let is_watched = read("WATCHDOG_PID").is_none() || is_mine("WATCHDOG_PID");
        let names = read("LISTEN_FDNAMES").unwrap_or_default();
        let count = match is_mine("LISTEN_PID") {
            true => read("LISTEN_FDS").and_then(|count| count.parse().ok()).unwrap_or(0),
            false => 0,
        };
        let passed = process::take_passed(PASSED_MAX.min(count)).into_iter();
        Service {
            address: read("NOTIFY_SOCKET").as_deref().and_then(address),
            watchdog: read("WATCHDOG_USEC").filter(|_| is_watched).and_then(|time| interval(&time)),
            passed: named(passed, &names).collect(),
        }
    }

    /// Returns whether there is one.
    pub fn is_there(&self) -> bool {
        self.address.is_some()
    }

    /// Returns the time within which it wants to hear that the daemon is alive, each time again.
    pub fn watchdog(&self) -> Option<Duration> {
        self.watchdog.filter(|_| self.is_there())
    }

    /// Tells it lines of `NAME=VALUE`, such as `READY=1`.
    ///
    /// # Errors
    /// The error that the system reports.
    pub fn tell(&self, lines: &str) -> io::Result<()> {
        self.send(lines, None)
    }

    /// Gives it a descriptor to keep, and to pass to the next process of this service. The name has no colon and at
    /// most 255 bytes of printable ASCII. Whether it is kept is not known: a unit without `FileDescriptorStoreMax`
    /// keeps none.
    ///
    /// # Errors
    /// The error that the system reports.
    pub fn keep(&self, name: &str, descriptor: BorrowedFd<'_>) -> io::Result<()> {
        self.send(&format!("FDSTORE=1\nFDPOLL=0\nFDNAME={name}"), Some(descriptor))
    }

    /// Lets it close the descriptors that it keeps by a name.
    ///
    /// # Errors
    /// The error that the system reports.
    pub fn forget(&self, name: &str) -> io::Result<()> {
        self.send(&format!("FDSTOREREMOVE=1\nFDNAME={name}"), None)
    }

    /// Takes the first passed descriptor that is wanted.
    pub fn take(&mut self, is_wanted: impl Fn(&Passed) -> bool) -> Option<OwnedFd> {
        let at = self.passed.iter().position(is_wanted)?;
        self.passed.remove(at).map(|passed| passed.descriptor)
    }

    /// Closes what was passed and not taken: of an earlier daemon's for good. Returns the names of the others.
    pub fn leave_rest(&mut self) -> Vec<String> {
        let (own, others): (Vec<_>, Vec<_>) =
            self.passed.drain(..).map(|passed| passed.name).partition(|name| name.starts_with(OWN_PREFIX));
        for name in own {
            // A service manager that does not hear this keeps a descriptor more.
            let _ = self.forget(&name);
        }
        others
    }

    fn send(&self, lines: &str, descriptor: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let Some(address) = &self.address else { return Ok(()) };
        let socket = UnixDatagram::unbound()?;
        socket.set_write_timeout(Some(SEND_MAX))?;
        socket.connect_addr(address)?;
        let mut room = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut beside = SendAncillaryBuffer::new(&mut room);
        let descriptors: Vec<_> = descriptor.into_iter().collect();
        if !descriptors.is_empty() {
            beside.push(SendAncillaryMessage::ScmRights(&descriptors));
        }
        let text = [IoSlice::new(lines.as_bytes())];
        rustix::net::sendmsg(socket.as_fd(), &text, &mut beside, SendFlags::NOSIGNAL)?;
        Ok(())
    }
}

/// Returns the address in `NOTIFY_SOCKET`: a path, or a name of the kernel's behind an `@`.
fn address(text: &str) -> Option<SocketAddr> {
    match text.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name).ok(),
        None if text.starts_with('/') => SocketAddr::from_pathname(text).ok(),
        None => None,
    }
}

fn interval(microseconds: &str) -> Option<Duration> {
    microseconds.parse().ok().filter(|time| *time > 0).map(Duration::from_micros)
}

/// Gives descriptors their names, which are separated by colons. Those beyond the names have none.
fn named(passed: impl Iterator<Item = Option<OwnedFd>>, names: &str) -> impl Iterator<Item = Passed> {
    let names = names.split(':').map(str::to_string).chain(std::iter::repeat(String::new()));
    passed.zip(names).filter_map(|(descriptor, name)| Some(Passed { name, descriptor: descriptor? }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek, Write};
    use std::mem::MaybeUninit;

    use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};

    fn heard(socket: &UnixDatagram) -> (String, Option<OwnedFd>) {
        let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut beside = RecvAncillaryBuffer::new(&mut room);
        let mut text = [0; 512];
        let mut into = [io::IoSliceMut::new(&mut text)];
        let got =
            rustix::net::recvmsg(socket, &mut into, &mut beside, RecvFlags::empty()).expect("a message");
        let descriptor = beside.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut rights) => rights.next(),
            _ => None,
        });
        (String::from_utf8_lossy(&text[..got.bytes]).into_owned(), descriptor)
    }

    #[test]
    fn lines_and_descriptors_arrive_at_the_service_manager() {
        let name = format!("larder-service-{}", std::process::id());
        let address = address(&format!("@{name}")).expect("an address");
        let manager = UnixDatagram::bind_addr(&address).expect("a free name");
        let service = Service { address: Some(address), ..Service::default() };
        service.tell("READY=1").expect("it listens");
        assert_eq!(heard(&manager).0, "READY=1");
        let mut file = larder_device::anonymous_file("kept").expect("memory");
        file.write_all(b"items").expect("room");
        service.keep("larder-memory", file.as_fd()).expect("it listens");
        drop(file);
        let (text, kept) = heard(&manager);
        assert_eq!(text, "FDSTORE=1\nFDPOLL=0\nFDNAME=larder-memory");
        let mut kept = std::fs::File::from(kept.expect("a descriptor"));
        let mut content = String::new();
        kept.rewind().and_then(|()| kept.read_to_string(&mut content)).expect("the same file");
        assert_eq!(content, "items");
        service.forget("larder-memory").expect("it listens");
        assert_eq!(heard(&manager).0, "FDSTOREREMOVE=1\nFDNAME=larder-memory");
        drop(manager);
        assert!(service.tell("READY=1").is_err(), "nobody listens");
    }

    #[test]
    fn without_a_service_manager_nothing_is_told() {
        let service = Service::default();
        assert!(!service.is_there());
        service.tell("READY=1").expect("there is no one to tell");
        assert_eq!(service.watchdog(), None);
    }

    #[test]
    fn descriptors_have_names_and_own_ones_are_given_up() {
        let descriptor = || Some(OwnedFd::from(larder_device::anonymous_file("one").expect("memory")));
        let passed = [descriptor(), None, descriptor(), descriptor()].into_iter();
        let passed: VecDeque<_> = named(passed, "larder-a:b:c").collect();
        let names: Vec<_> = passed.iter().map(|passed| passed.name.as_str()).collect();
        assert_eq!(names, ["larder-a", "c", ""]);
        let mut service = Service { passed, ..Service::default() };
        assert!(service.take(|passed| passed.name == "c").is_some());
        assert!(service.take(|passed| passed.name == "c").is_none());
        assert_eq!(service.leave_rest(), [""]);
        assert!(service.leave_rest().is_empty());
    }

    #[test]
    fn an_address_is_a_path_or_an_abstract_name() {
        assert!(address("/run/systemd/notify").is_some());
        assert!(address("@name").is_some());
        assert!(address("vsock:2:1").is_none() && address("").is_none());
        assert_eq!(interval("30000000"), Some(Duration::from_secs(30)));
        assert!(interval("0").is_none() && interval("soon").is_none());
    }
}
