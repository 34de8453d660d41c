//! A daemon as a process of its own, in a folder of its own, and connections to it.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Nothing here takes this long.
const PATIENCE: Duration = Duration::from_secs(30);

/// A folder that goes with its value.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Folder {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("larder-daemon-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).expect("the temporary directory can be written");
        Folder(path)
    }

    pub fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The command that starts a daemon under memcached's name: with its defaults, so without an SSD.
pub fn command(args: &[&str], port_file: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
    command.arg0("memcached").args(args).env_clear().env("MEMCACHED_PORT_FILENAME", port_file);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A daemon that runs; killed when dropped.
pub struct Daemon {
    child: Option<Child>,
    pub folder: Folder,
    /// What it announced: `TCP INET: 1234` or `UNIX: path`.
    pub announced: String,
    pub port: u16,
}

impl Daemon {
    /// On a port of the kernel's choice.
    pub fn start(args: &[&str]) -> Daemon {
        Daemon::start_in(Folder::new(), &[&["-p", "-1", "-l", "127.0.0.1"], args].concat())
    }

    pub fn start_in(folder: Folder, args: &[&str]) -> Daemon {
        let command = command(args, &folder.0.join("port"));
        Daemon::of(folder, command)
    }

    /// Of a command that announces its port in the folder.
    pub fn of(folder: Folder, mut command: Command) -> Daemon {
        let port_file = folder.0.join("port");
        let _ = fs::remove_file(&port_file);
        let mut child = command.spawn().expect("the binary starts");
        // What the command holds for the child is the child's alone.
        let args = format!("{:?}", command.get_args().collect::<Vec<_>>());
        drop(command);
        let began = Instant::now();
        let announced = loop {
            if let Ok(text) = fs::read_to_string(&port_file) {
                break text;
            }
            if let Some(status) = child.try_wait().expect("a child") {
                let output = child.wait_with_output().expect("its output");
                panic!("{args} ended: {status} {}", String::from_utf8_lossy(&output.stderr));
            }
            assert!(began.elapsed() < PATIENCE, "the daemon announces nothing");
            std::thread::sleep(Duration::from_millis(5));
        };
        let port = announced.lines().next().and_then(|line| line.rsplit_once(' '));
        let port = port.and_then(|(_, port)| port.parse().ok()).unwrap_or(0);
        Daemon { child: Some(child), folder, announced, port }
    }

    pub fn connect(&self) -> Peer {
        Peer::new(TcpStream::connect(("127.0.0.1", self.port)).expect("the daemon listens"))
    }

    fn pid(&self) -> Pid {
        Pid::from_child(self.child.as_ref().expect("it runs"))
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("it runs");
    }

    /// Waits for its end; answers how it ended and what it wrote.
    pub fn wait(&mut self) -> (ExitStatus, Output) {
        let mut child = self.child.take().expect("it runs");
        let began = Instant::now();
        while child.try_wait().expect("a child").is_none() {
            assert!(began.elapsed() < PATIENCE, "the daemon does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
        let output = child.wait_with_output().expect("its output");
        (output.status, output)
    }

    /// Ends it as an operator would, and it must end well.
    pub fn stop(&mut self) -> Duration {
        self.signal(Signal::TERM);
        let began = Instant::now();
        let (status, output) = self.wait();
        assert!(status.success(), "{status} {}", String::from_utf8_lossy(&output.stderr));
        began.elapsed()
    }

    /// A number that `stats` or one of its kind shows.
    pub fn stat(&self, command: &str, name: &str) -> u64 {
        let answer = self.connect().ask(&format!("{command}\r\n"), "END\r\n");
        let line = answer.lines().find_map(|line| line.strip_prefix(&format!("STAT {name} ")));
        line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {name} in {answer}"))
    }

    /// Waits until a statistic of both tiers is as it should be.
    pub fn wait_for_larder(&self, name: &str, is_right: impl Fn(u64) -> bool) {
        let began = Instant::now();
        while !is_right(self.stat("stats larder", name)) {
            let found = self.stat("stats larder", name);
            assert!(began.elapsed() < PATIENCE / 3, "{name} is {found}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until a statistic is what it should come to.
    pub fn wait_for(&self, name: &str, wanted: u64) {
        let began = Instant::now();
        loop {
            let found = self.stat("stats", name);
            if found == wanted {
                return;
            }
            assert!(began.elapsed() < PATIENCE / 3, "{name} is {found}, not {wanted}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A connection, over TCP or whatever else reads and writes.
pub struct Peer {
    pub stream: TcpStream,
    got: Vec<u8>,
}

impl Peer {
    pub fn new(stream: TcpStream) -> Peer {
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.set_write_timeout(Some(PATIENCE)).expect("a timeout");
        stream.set_nodelay(true).expect("a socket option");
        Peer { stream, got: Vec::new() }
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).expect("the daemon takes it");
    }

    /// Sends nothing more, but still receives.
    pub fn finish(&mut self) {
        self.stream.shutdown(Shutdown::Write).expect("it is open");
    }

    /// Receives what comes next.
    fn receive(&mut self) {
        let mut piece = [0; 1 << 16];
        let n = self.stream.read(&mut piece).expect("an answer in time");
        assert!(n > 0, "closed after {} bytes", self.got.len());
        self.got.extend_from_slice(&piece[..n]);
    }

    /// Receives exactly `len` bytes.
    pub fn take(&mut self, len: usize) -> Vec<u8> {
        while self.got.len() < len {
            self.receive();
        }
        self.got.drain(..len).collect()
    }

    /// Receives up to and with `end`.
    pub fn until(&mut self, end: &str) -> Vec<u8> {
        let mut searched = 0;
        loop {
            let found = self.got[searched..].windows(end.len()).position(|bytes| bytes == end.as_bytes());
            if let Some(at) = found {
                return self.take(searched + at + end.len());
            }
            searched = (self.got.len() + 1).saturating_sub(end.len());
            self.receive();
        }
    }

    pub fn ask(&mut self, request: &str, end: &str) -> String {
        self.send(request);
        String::from_utf8_lossy(&self.until(end)).into_owned()
    }

    /// Receives until the daemon closes.
    pub fn rest(&mut self) -> Vec<u8> {
        let mut rest = std::mem::take(&mut self.got);
        self.stream.read_to_end(&mut rest).expect("the daemon closes in time");
        rest
    }

    /// Stores and reads back.
    pub fn works(&mut self) {
        let answer = self.ask("set works 0 0 2\r\nhi\r\nget works\r\n", "END\r\n");
        assert_eq!(answer, "STORED\r\nVALUE works 0 2\r\nhi\r\nEND\r\n");
    }
}
