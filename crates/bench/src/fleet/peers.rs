//! The agents as their coordinator sees them: messages to and from them, and losses.

use super::Fleet;
use super::message::{FromAgent, ToAgent};
use super::offset::{EXCHANGES, Exchange, Offset, monotonic_ns};
use crate::result::SCHEMA;
use crate::transport::Host;
use crate::transport::VERSION;
use crate::transport::frame::{self, Frames};
use crate::transport::remote::{Line, Program, Remote, Said};
use std::process::{ChildStdin, ChildStdout};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// An agent has to say hello within this.
const HELLO: Duration = Duration::from_secs(30);
/// The same when the program has to be copied before.
const COPY: Duration = Duration::from_secs(600);
/// Agents are asked whether they are there so often.
const HEARTBEAT_NS: i64 = 2_000_000_000;
/// An agent that is silent for so long is lost.
const SILENCE_NS: i64 = 15_000_000_000;
/// How often a stop is looked for.
const LOOK: Duration = Duration::from_millis(20);
/// Hosts that are this near are asked one after the other, so that they do not disturb each other.
const NEAR_NS: i64 = 5_000_000;
/// How long an agent may take to end by itself.
const FAREWELL: Duration = Duration::from_secs(2);

/// A message of an agent, or its loss.
enum News {
    Copying { host: usize },
    Up { host: usize, to: ChildStdin, cores: u32 },
    Message { host: usize, message: Box<FromAgent>, at_ns: i64 },
    Lost { host: usize, message: String },
}

/// Why something did not come to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// A host is lost.
    Lost {
        /// Which one.
        host: usize,
        /// Why, in one line.
        message: String,
    },
    /// A stop was asked for.
    Stopped,
}

/// One agent.
struct Peer {
    name: String,
    remote: Remote,
    to: Option<ChildStdin>,
    cores: u32,
    heard_ns: i64,
    is_lost: bool,
}

/// All agents.
pub(super) struct Peers<'a> {
    peers: Vec<Peer>,
    news: Receiver<News>,
    stop: &'a AtomicBool,
    beat_ns: i64,
    pings: u64,
}

impl<'a> Peers<'a> {
    /// Starts an agent on every host, and waits for the hello of each.
    pub fn bring_up(fleet: &Fleet, stop: &'a AtomicBool) -> Result<Self, String> {
        let (tell, news) = channel();
        let mut all = Self { peers: Vec::new(), news, stop, beat_ns: monotonic_ns(), pings: 0 };
        for (at, host) in fleet.hosts.iter().enumerate() {
            let (remote, line) = Remote::start(&fleet.transport, host)
                .map_err(|message| format!("host {}: {message}", host.name))?;
            let listener = Listener { host: at, tell: tell.clone(), said: remote.said() };
            let (program, host) = (fleet.program.clone(), host.clone());
            all.peers.push(Peer {
                name: host.name.clone(),
                remote,
                to: None,
                cores: 0,
                heard_ns: monotonic_ns(),
                is_lost: false,
            });
            thread::spawn(move || listener.listen(line, &program, &host));
        }
        all.wait_for_hello().map_err(|trouble| all.in_words(&trouble))?;
        Ok(all)
    }

    fn wait_for_hello(&mut self) -> Result<(), Trouble> {
        let mut until = vec![Instant::now() + HELLO; self.peers.len()];
        while let Some(waiting) = self.peers.iter().position(|peer| peer.to.is_none()) {
            match self.news.recv_timeout(LOOK) {
                Ok(News::Up { host, to, cores }) => {
                    let peer = &mut self.peers[host];
                    (peer.to, peer.cores, peer.heard_ns) = (Some(to), cores, monotonic_ns());
                }
                Ok(News::Copying { host }) => until[host] = Instant::now() + COPY,
                Ok(News::Lost { host, message }) => return Err(Trouble::Lost { host, message }),
                Ok(News::Message { .. }) | Err(_) => {}
            }
            if self.stop.load(Ordering::Relaxed) {
                return Err(Trouble::Stopped);
            }
            if Instant::now() > until[waiting] {
                let message = "no agent has said hello there yet; is there a shell behind --ssh?".to_string();
                return Err(Trouble::Lost { host: waiting, message });
            }
        }
        Ok(())
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.peers.len()
    }

    /// A host's name.
    pub fn name(&self, host: usize) -> &str {
        &self.peers[host].name
    }

    /// A host's CPUs.
    pub fn cores(&self, host: usize) -> u32 {
        self.peers[host].cores
    }

    /// Whether a host is lost.
    pub fn is_lost(&self, host: usize) -> bool {
        self.peers[host].is_lost
    }

    /// A trouble in one line.
    pub fn in_words(&self, trouble: &Trouble) -> String {
        match trouble {
            Trouble::Lost { host, message } => format!("host {}: {message}", self.name(*host)),
            Trouble::Stopped => "stopped before the run began; nothing was measured".to_string(),
        }
    }

    /// Sends one host a message. Its later messages, or their absence, show whether it arrived.
    pub fn tell(&mut self, host: usize, message: &ToAgent) {
        if let Some(to) = &mut self.peers[host].to {
            let _ = frame::write(to, message);
        }
    }

    /// Tells all hosts something.
    pub fn tell_all(&mut self, message: &ToAgent) {
        (0..self.peers.len()).for_each(|host| self.tell(host, message));
    }

    /// Returns the next message; none after a while without one. A stop is a trouble unless it is known
    /// already.
    pub fn hear(&mut self, is_stop_known: bool) -> Result<Option<(usize, FromAgent, i64)>, Trouble> {
        if !is_stop_known && self.stop.load(Ordering::Relaxed) {
            return Err(Trouble::Stopped);
        }
        let now_ns = monotonic_ns();
        if now_ns - self.beat_ns > HEARTBEAT_NS {
            self.beat_ns = now_ns;
            self.tell_all(&ToAgent::Ping { number: 0 });
            let silent = |peer: &Peer| !peer.is_lost && now_ns - peer.heard_ns > SILENCE_NS;
            if let Some(host) = self.peers.iter().position(silent) {
                self.peers[host].is_lost = true;
                let message = format!("nothing was heard from it for {} s", SILENCE_NS / 1_000_000_000);
                return Err(Trouble::Lost { host, message });
            }
        }
        match self.news.recv_timeout(LOOK) {
            Ok(News::Message { host, message, at_ns }) => {
                self.peers[host].heard_ns = at_ns;
                let is_heartbeat = matches!(*message, FromAgent::Pong { number: 0, .. });
                Ok((!is_heartbeat).then_some((host, *message, at_ns)))
            }
            Ok(News::Lost { host, message }) => {
                self.peers[host].is_lost = true;
                Err(Trouble::Lost { host, message })
            }
            Ok(News::Copying { .. } | News::Up { .. }) | Err(RecvTimeoutError::Timeout) => Ok(None),
            // Every listener reports its loss before it ends, so none is left.
            Err(RecvTimeoutError::Disconnected) => {
                thread::sleep(LOOK);
                Ok(None)
            }
        }
    }

    /// How far the clocks of some hosts are off.
    pub fn offsets(&mut self, hosts: &[usize], is_stop_known: bool) -> Result<Vec<Offset>, Trouble> {
        let mut exchanges = vec![Vec::with_capacity(EXCHANGES); self.peers.len()];
        self.exchange(hosts, &mut exchanges, is_stop_known)?;
        let farthest_ns = exchanges.iter().flatten().map(|e| e.received_ns - e.sent_ns).max().unwrap_or(0);
        let group = if farthest_ns <= NEAR_NS { 1 } else { hosts.len() };
        for some in hosts.chunks(group.max(1)) {
            for _ in 1..EXCHANGES {
                self.exchange(some, &mut exchanges, is_stop_known)?;
            }
        }
        Ok(hosts.iter().filter_map(|host| Offset::estimate(&exchanges[*host])).collect())
    }

    /// One ping to each of some hosts at once.
    fn exchange(
        &mut self,
        hosts: &[usize],
        exchanges: &mut [Vec<Exchange>],
        is_stop_known: bool,
    ) -> Result<(), Trouble> {
        self.pings += 1;
        let expected = self.pings;
        let mut sent = vec![None; self.peers.len()];
        for host in hosts {
            sent[*host] = Some(monotonic_ns());
            self.tell(*host, &ToAgent::Ping { number: expected });
        }
        let mut left = hosts.len();
        while left > 0 {
            let Some((host, message, received_ns)) = self.hear(is_stop_known)? else { continue };
            match message {
                FromAgent::Pong { number, at_ns } if number == expected => {
                    if let Some(sent_ns) = sent[host].take() {
                        exchanges[host].push(Exchange { sent_ns, remote_ns: at_ns, received_ns });
                        left -= 1;
                    }
                }
                FromAgent::Failed { message } => return Err(Trouble::Lost { host, message }),
                _ => {}
            }
        }
        Ok(())
    }
}

impl Drop for Peers<'_> {
    /// An agent ends when its input does; one that does not is killed.
    fn drop(&mut self) {
        let until = Instant::now() + FAREWELL;
        let was_up: Vec<bool> = self.peers.iter_mut().map(|peer| peer.to.take().is_some()).collect();
        for (peer, was_up) in self.peers.iter_mut().zip(was_up) {
            // One that is not up yet may still be on its way there, and need not arrive.
            let patience =
                if was_up { until.saturating_duration_since(Instant::now()) } else { Duration::ZERO };
            peer.remote.end(patience);
        }
    }
}

/// Listens to one host.
struct Listener {
    host: usize,
    tell: Sender<News>,
    said: Said,
}

impl Listener {
    fn listen(&self, line: Line, program: &Program, host: &Host) {
        let message = self.hear_out(line, program, host).err().unwrap_or_default();
        let why = match (message.is_empty(), self.said.last_line()) {
            (false, _) => message,
            (true, Some(line)) => line,
            (true, None) => "its agent ended without a word".to_string(),
        };
        let _ = self.tell.send(News::Lost { host: self.host, message: why });
    }

    /// Everything until the end; an error with nothing to say leaves it to the standard error.
    fn hear_out(&self, mut line: Line, program: &Program, place: &Host) -> Result<(), String> {
        let host = self.host;
        line.bring_up(program, &place.place, || drop(self.tell.send(News::Copying { host })))?;
        let Line { to, mut from } = line;
        let cores = hello(&mut from)?;
        let _ = self.tell.send(News::Up { host, to, cores });
        while let Some(message) = from.message().map_err(|error| error.to_string())? {
            let at_ns = monotonic_ns();
            let _ = self.tell.send(News::Message { host, message: Box::new(message), at_ns });
        }
        Ok(())
    }
}

/// Waits for an agent's hello, and returns the number of its CPUs.
fn hello(from: &mut Frames<ChildStdout>) -> Result<u32, String> {
    match from.message() {
        Ok(Some(FromAgent::Hello { version, schema, cores })) if version == VERSION && schema == SCHEMA => {
            Ok(cores)
        }
        Ok(Some(FromAgent::Hello { version, schema, .. })) => Err(format!(
            "runs larder-bench {version} (form {schema}) and this is {VERSION} (form {SCHEMA}): \
             leave --remote out to have this one copied there"
        )),
        Ok(Some(_)) | Err(_) => Err("what runs there is no larder-bench of this version".to_string()),
        Ok(None) => Err(String::new()),
    }
}
