//! A daemon that ends, however it ends, and the next one with its memory file: what was acknowledged is back,
//! or missing, and never something else.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;

use super::process::{Daemon, Folder, command};

/// A memory file that goes with its value; in memory where the system has such a place.
struct MemoryFile(PathBuf);

impl MemoryFile {
    fn new(folder: &Folder) -> MemoryFile {
        let name = folder.0.file_name().expect("a folder has a name").to_string_lossy().into_owned();
        let shared = Path::new("/dev/shm");
        MemoryFile(if shared.is_dir() { shared.join(name) } else { folder.0.join("memory") })
    }

    fn arg(&self) -> String {
        self.0.display().to_string()
    }
}

impl Drop for MemoryFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// The same folder and options, another process.
fn again(daemon: &mut Daemon, args: &[&str]) {
    let folder = std::mem::replace(&mut daemon.folder, Folder::new());
    *daemon = Daemon::start_in(folder, args);
}

/// Ends the daemon; answers what it had to say.
fn end(daemon: &mut Daemon, signal: Signal) -> String {
    daemon.signal(signal);
    let (status, output) = daemon.wait();
    assert!(status.success() || matches!(signal, Signal::KILL | Signal::ABORT), "{signal:?}: {status}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn every_item_is_back_after_a_stop() {
    let folder = Folder::new();
    let memory = MemoryFile::new(&folder);
    let (memory, ssd) = (memory.arg(), format!("{}:256m", folder.path("ssd")));
    let args = ["-p", "-1", "-l", "127.0.0.1", "-m", "16", "--item-size", "1k", "--ssd", &ssd];
    let args = [&args[..], &["--memory-file", &memory]].concat();
    let mut daemon = Daemon::start_in(folder, &args);
    assert_eq!(daemon.stat("stats larder", "restart_warm"), 0);
    let value = |number: usize| format!("{number}-").repeat(300 + number % 100);
    let mut talk = Talk::new(daemon.port);
    for number in 0..12_000 {
        let value = value(number);
        let set = format!("set key-{number} 0 0 {}\r\n{value}\r\n", value.len());
        assert_eq!(talk.line(&set), "STORED");
    }
    let large = "L".repeat(200_000);
    for signal in [Signal::TERM, Signal::USR1, Signal::KILL, Signal::ABORT] {
        assert_eq!(talk.line(&format!("set large 5 3600 200000\r\n{large}\r\n")), "STORED");
        assert_eq!(talk.line("set counter 0 0 2\r\n41\r\n"), "STORED");
        let cas = talk.line("mg counter c\r\n");
        let found: Vec<usize> = (0..12_000).filter(|number| talk.has(*number, &value(*number))).collect();
        assert!(found.len() > 8_000, "{} found", found.len());
        assert!(daemon.stat("stats larder", "ssd_items") > 1_000, "the SSD is in use");
        end(&mut daemon, signal);
        again(&mut daemon, &args);
        assert_eq!(daemon.stat("stats larder", "restart_warm"), 1, "{signal:?}");
        assert_eq!(daemon.stat("stats larder", "shards_reset"), 0, "{signal:?}: nothing was under way");
        assert!(daemon.stat("stats larder", "restart_items") > 8_000);
        talk = Talk::new(daemon.port);
        for number in found {
            assert!(talk.has(number, &value(number)), "{signal:?}: {number} is missing");
        }
        assert_eq!(talk.line("mg counter c\r\n"), cas, "{signal:?}: with its cas unique");
        assert_eq!(talk.line("incr counter 1\r\n"), "42");
        assert!(talk.get("large").is_some_and(|found| found == large.as_bytes()), "{signal:?}");
        let ttl = talk.line("mg large t\r\n");
        let ttl: u32 = ttl.trim_start_matches("HD t").parse().expect("seconds");
        assert!((3_000..=3_600).contains(&ttl), "{signal:?}: {ttl} seconds left");
    }
    let said = end(&mut daemon, Signal::TERM);
    assert!(said.contains("items are back, in "), "{said}");
}

/// A connection for many requests, one after the other.
struct Talk {
    stream: TcpStream,
    answers: BufReader<TcpStream>,
}

impl Talk {
    fn new(port: u16) -> Talk {
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("the daemon listens");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
        stream.set_nodelay(true).expect("a socket option");
        let answers = BufReader::new(stream.try_clone().expect("a second handle"));
        Talk { stream, answers }
    }

    fn line(&mut self, request: &str) -> String {
        self.stream.write_all(request.as_bytes()).expect("the daemon takes it");
        match answer(&mut self.answers, &Operation::Delete) {
            Some(Answer::Line(line)) => line,
            _ => panic!("no answer"),
        }
    }

    fn get(&mut self, key: &str) -> Option<Vec<u8>> {
        self.stream.write_all(format!("get {key}\r\n").as_bytes()).expect("the daemon takes it");
        match answer(&mut self.answers, &Operation::Get).expect("an answer") {
            Answer::Value(value) => Some(value),
            Answer::Line(_) => None,
        }
    }

    /// Whether the item is there; then it must be this.
    fn has(&mut self, number: usize, value: &str) -> bool {
        let found = self.get(&format!("key-{number}"));
        assert!(found.as_ref().is_none_or(|found| found == value.as_bytes()), "key-{number} has changed");
        found.is_some()
    }
}

#[test]
fn a_state_is_saved_at_a_stop_and_good_for_one_start() {
    let folder = Folder::new();
    let (state, ssd) = (folder.path("state"), format!("{}:80m", folder.path("ssd")));
    let args = ["-p", "-1", "-l", "127.0.0.1", "-m", "12", "--item-size", "1k", "--ssd", &ssd];
    let args = [&args[..], &["--state-file", &state]].concat();
    let mut daemon = Daemon::start_in(folder, &args);
    assert_eq!(daemon.stat("stats larder", "restart_warm"), 0);
    let value = |number: usize| format!("{number}-").repeat(300);
    let mut talk = Talk::new(daemon.port);
    for number in 0..9_000 {
        let value = value(number);
        assert_eq!(talk.line(&format!("set key-{number} 0 0 {}\r\n{value}\r\n", value.len())), "STORED");
    }
    for signal in [Signal::TERM, Signal::USR1] {
        assert_eq!(talk.line("set counter 0 0 2\r\n41\r\n"), "STORED");
        assert_eq!(talk.line("set brief 0 1 1\r\nx\r\n"), "STORED");
        assert_eq!(talk.line("set long 0 3600 1\r\nx\r\n"), "STORED");
        let cas = talk.line("mg counter c\r\n");
        let found: Vec<usize> = (0..9_000).filter(|number| talk.has(*number, &value(*number))).collect();
        assert!(found.len() > 8_000 && daemon.stat("stats larder", "ssd_items") > 1_000, "{}", found.len());
        let said = end(&mut daemon, signal);
        assert!(said.contains("MiB saved"), "{said}");
        let kept = fs::read(&state).expect("it is there while nobody runs");
        std::thread::sleep(Duration::from_millis(1_100));
        again(&mut daemon, &args);
        assert!(!Path::new(&state).exists(), "nobody else may begin with it");
        assert_eq!(daemon.stat("stats larder", "restart_warm"), 1, "{signal:?}");
        assert_eq!(daemon.stat("stats larder", "shards_reset"), 0, "{signal:?}");
        talk = Talk::new(daemon.port);
        for number in found {
            assert!(talk.has(number, &value(number)), "{signal:?}: {number} is missing");
        }
        assert_eq!(talk.line("mg counter c\r\n"), cas, "{signal:?}: with its cas unique");
        assert_eq!(talk.line("mg brief\r\n"), "EN", "time went on meanwhile");
        let ttl = talk.line("mg long t\r\n");
        let ttl: u32 = ttl.trim_start_matches("HD t").parse().expect("seconds");
        assert!((3_000..3_600).contains(&ttl), "{signal:?}: {ttl} seconds left");
        // A state that is older than what the SSD holds, as a restored backup would be.
        assert_eq!(talk.line("delete key-1\r\n"), "DELETED");
        if signal == Signal::USR1 {
            end(&mut daemon, Signal::KILL);
            assert!(!Path::new(&state).exists(), "killed, it has saved nothing");
            fs::write(&state, kept).expect("room");
            again(&mut daemon, &args);
            assert_eq!(daemon.stat("stats larder", "restart_warm"), 0, "the SSD was used without it since");
            assert_eq!(Talk::new(daemon.port).line("mg key-1\r\n"), "EN");
        } else {
            let value = value(1);
            assert_eq!(talk.line(&format!("set key-1 0 0 {}\r\n{value}\r\n", value.len())), "STORED");
        }
    }
    let said = end(&mut daemon, Signal::TERM);
    assert!(said.contains("starting cold: it was made for another SSD"), "{said}");
}

/// What a daemon says that does not start with these options.
fn refused(args: &[impl AsRef<str>]) -> String {
    let folder = Folder::new();
    let args: Vec<&str> = args.iter().map(AsRef::as_ref).collect();
    let output = command(&args, &folder.0.join("port")).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    said
}

#[test]
fn a_state_that_was_saved_with_other_options_waits_for_these() {
    let folder = Folder::new();
    let (state, ssd) = (folder.path("state"), format!("{}:80m", folder.path("ssd")));
    let base = ["-p", "-1", "-l", "127.0.0.1", "--item-size", "1k", "--ssd", &ssd, "--state-file", &state];
    let usual = [&base[..], &["-m", "12"]].concat();
    let mut daemon = Daemon::start_in(folder, &usual);
    daemon.connect().ask("set k 0 0 2\r\nhi\r\n", "STORED\r\n");
    end(&mut daemon, Signal::TERM);
    let saved = fs::read(&state).expect("a state");
    let said = refused(&[&base[..], &["-m", "13"]].concat());
    assert!(said.contains("it was made with -m 12 MiB (here: 13 MiB)"), "{said}");
    assert!(fs::read(&state).expect("a state") == saved);
    again(&mut daemon, &usual);
    assert_eq!(daemon.connect().ask("get k\r\n", "END\r\n"), "VALUE k 0 2\r\nhi\r\nEND\r\n");
}

#[test]
fn a_place_where_no_state_can_be_saved_is_refused_at_the_start() {
    let folder = Folder::new();
    let state = folder.path("none/state");
    let args = ["-p", "-1", "-l", "127.0.0.1", "--state-file", &state];
    let said = refused(&args);
    assert!(said.contains("none") && said.contains("create it first"), "{said}");
    // Where not even root makes a file.
    let said = refused(&[&args[..4], &["--state-file", "/proc/larder.state"]].concat());
    assert!(said.contains("no state can be saved there"), "{said}");
}

#[test]
fn memory_that_is_of_no_use_is_said_to_be_and_why() {
    let folder = Folder::new();
    let memory = MemoryFile::new(&folder);
    let (arg, ssd) = (memory.arg(), format!("{}:80m", folder.path("ssd")));
    let other = format!("{}:80m", folder.path("other"));
    let base = ["-p", "-1", "-l", "127.0.0.1", "--item-size", "1k"];
    let with = |more: &[&'static str], ssd: &str| -> Vec<String> {
        let own = ["--memory-file", &arg, "--ssd", ssd];
        base.iter().chain(more).chain(&own).map(|arg| arg.to_string()).collect()
    };
    let mut folder = Some(folder);
    // Starts with these options, stores something, and ends; answers what the daemon said at start.
    let mut run = |args: &[String]| {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let mut daemon = Daemon::start_in(folder.take().expect("handed on"), &args);
        daemon.connect().ask("set k 0 0 2\r\nhi\r\n", "STORED\r\n");
        let said = end(&mut daemon, Signal::TERM);
        folder = Some(std::mem::replace(&mut daemon.folder, Folder::new()));
        said
    };
    let usual = with(&["-m", "16"], &ssd);
    assert!(run(&usual).contains("starting cold: it is new"));
    assert!(run(&usual).contains("1 items are back"));
    for (changed, said) in [
        (with(&["-m", "20"], &ssd), "-m 16 MiB (here: 20 MiB)"),
        (with(&["-m", "16", "--item-size", "2k"], &ssd), "--item-size 1 KiB (here: 2 KiB)"),
        (with(&["-m", "16", "--index-memory", "2"], &ssd), "--index-memory not given (here: 2 MiB)"),
        (with(&["-m", "16", "-M"], &ssd), "no -M (here: with)"),
        (with(&["-m", "16"], &ssd.replace(":80m", ":800m")), "an --ssd tier of 64 MiB (here: 784 MiB)"),
        (with(&["-m", "16"], &other), "another --ssd path"),
    ] {
        let refusal = refused(&changed);
        assert!(refusal.contains(&format!("it was made with {said}; it is left as it is")), "{refusal}");
    }
    assert!(run(&usual).contains("1 items are back"), "a refused start changes nothing");
    let without: Vec<String> =
        base.iter().chain(&["-m", "16", "--ssd", &ssd]).map(|s| s.to_string()).collect();
    run(&without);
    let behind = run(&usual);
    assert!(behind.contains("the SSD was used without it since"), "{behind}");
    let patch = |at: u64, bytes: &[u8]| {
        let file = File::options().write(true).open(&memory.0).expect("the memory file");
        file.write_all_at(bytes, at).expect("it can be written");
    };
    assert!(run(&usual).contains("1 items are back"));
    patch(4_088, &[0; 8]);
    let half = run(&usual);
    assert!(half.contains("starting cold: it was not completely made"), "{half}");
    // As a daemon leaves it that ends just after it gave the file its length.
    let bytes = fs::metadata(&memory.0).expect("the memory file").len();
    File::create(&memory.0).and_then(|file| file.set_len(bytes)).expect("it can be written");
    let half = run(&usual);
    assert!(half.contains("starting cold: it was not completely made"), "{half}");
    assert!(run(&usual).contains("1 items are back"));
}

#[test]
fn a_file_that_is_not_a_memory_file_is_refused_and_left_as_it_is() {
    let folder = Folder::new();
    let letter = "Dear reader,\n".repeat(1_000);
    fs::write(folder.0.join("letter"), &letter).expect("a file");
    let args = ["-p", "-1", "-l", "127.0.0.1", "--memory-file", &folder.path("letter")];
    let output = command(&args, &folder.0.join("port")).output().expect("it runs");
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("left as it is: remove it, or name another"), "{said}");
    assert_eq!(fs::read_to_string(folder.0.join("letter")).expect("still there"), letter);
}

/// A tmpfs that goes with its value.
struct Mount(PathBuf);

impl Mount {
    /// `None`, said aloud, where nothing can be mounted.
    fn new(path: PathBuf, size: &str) -> Option<Mount> {
        fs::create_dir(&path).expect("a folder");
        let how = ["-t", "tmpfs", "-o", size, "tmpfs"];
        let done = std::process::Command::new("mount").args(how).arg(&path).output();
        if done.is_ok_and(|output| output.status.success()) {
            return Some(Mount(path));
        }
        println!("SKIPPED: no file system can be mounted here");
        None
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(&self.0).output();
    }
}

#[test]
fn a_file_system_that_fills_later_ends_nothing() {
    let folder = Folder::new();
    let Some(mount) = Mount::new(folder.0.join("mount"), "size=24m") else { return };
    let said = refused(&["-p", "-1", "-l", "127.0.0.1", "-m", "32", "-e", &folder.path("mount/memory")]);
    assert!(said.contains("has room for 24 MiB"), "{said}");
    let args = ["-p", "-1", "-l", "127.0.0.1", "-m", "16", "-e", &folder.path("mount/memory")];
    let mut daemon = Daemon::start_in(folder, &args);
    let filler = vec![1; 1 << 20];
    let mut file = File::create(mount.0.join("filler")).expect("a file");
    let mut peer = daemon.connect();
    assert_eq!(peer.ask("cache_memlimit 10\r\n", "\r\n"), "OK\r\n");
    daemon.wait_for_larder("ram_segments_withheld", |withheld| withheld > 80);
    while file.write_all(&filler).is_ok() {}
    assert_ne!(peer.ask("cache_memlimit 16\r\n", "\r\n"), "OK\r\n", "the room was taken meanwhile");
    for number in 0..3_000 {
        let value = "v".repeat(10_000);
        peer.send(format!("set k{number} 0 0 10000 noreply\r\n{value}\r\n"));
    }
    peer.works();
    daemon.stop();
    // Before the folder it lies in.
    drop((file, mount));
}

#[test]
fn a_file_system_without_room_for_the_memory_is_refused() {
    let folder = Folder::new();
    let memory = MemoryFile::new(&folder);
    let system = rustix::fs::statvfs(memory.0.parent().expect("a folder")).expect("a file system");
    if system.f_bavail.saturating_mul(system.f_frsize) > 119 << 30 {
        return;
    }
    let args = ["-p", "-1", "-l", "127.0.0.1", "-m", "120g", "--memory-file", &memory.arg()];
    let output = command(&args, &folder.0.join("port")).output().expect("it runs");
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains(", and -m asks for 120 GiB"), "{said}");
}

/// What a key may hold: one thing, or several after operations that nobody heard the end of.
type May = Vec<Option<Vec<u8>>>;

#[derive(Clone)]
enum Operation {
    Set(Vec<u8>),
    Delete,
    Incr,
    Get,
}

impl Operation {
    fn effect(&self, before: &Option<Vec<u8>>) -> Option<Vec<u8>> {
        match self {
            Operation::Set(value) => Some(value.clone()),
            Operation::Delete => None,
            Operation::Get => before.clone(),
            Operation::Incr => before.as_ref().map(|value| incremented(value)),
        }
    }
}

fn incremented(value: &[u8]) -> Vec<u8> {
    let number = std::str::from_utf8(value).ok().and_then(|text| text.trim().parse::<u64>().ok());
    number.map_or(value.to_vec(), |number| (number + 1).to_string().into_bytes())
}

/// A client with keys of its own, which knows what each may hold.
struct Client {
    name: usize,
    may: Vec<May>,
    seed: u64,
    version: u64,
    acknowledged: u64,
}

const KEYS: usize = 10_000;
/// The first keys are counters.
const COUNTERS: usize = 200;

impl Client {
    fn new(name: usize) -> Client {
        let seed = 0x9E37_79B9 * (name as u64 + 1) + u64::from(std::process::id());
        Client { name, may: vec![vec![None]; KEYS], seed, version: 0, acknowledged: 0 }
    }

    fn below(&mut self, bound: usize) -> usize {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.seed >> 33) as usize) % bound
    }

    fn operation(&mut self, key: usize) -> Operation {
        self.version += 1;
        let (version, name) = (self.version, self.name);
        match (key < COUNTERS, self.below(10)) {
            (_, 0) => Operation::Delete,
            (true, 1) => Operation::Set(b"0".to_vec()),
            (true, 2..8) => Operation::Incr,
            (false, 1..6) => {
                let mut value = format!("{name}:{key}:{version}:").into_bytes();
                let len = if self.below(200) == 0 { 200_000 } else { self.below(6_000) };
                value.extend((0..len).map(|at| b'a' + ((at as u64 ^ version) % 26) as u8));
                Operation::Set(value)
            }
            _ => Operation::Get,
        }
    }

    /// Asks until the daemon is gone.
    fn work(&mut self, port: u16) {
        let Ok(stream) = TcpStream::connect(("127.0.0.1", port)) else { return };
        let _ = stream.set_read_timeout(Some(Duration::from_secs(20)));
        let mut answers = BufReader::new(stream.try_clone().expect("a second handle"));
        let mut stream = stream;
        loop {
            let mut request = Vec::new();
            let mut asked = Vec::new();
            for _ in 0..1 + self.below(16) {
                let key = self.below(KEYS);
                let operation = self.operation(key);
                let name = format!("{}-{key}", self.name);
                match &operation {
                    Operation::Set(value) => {
                        request.extend(format!("set {name} 0 0 {}\r\n", value.len()).bytes());
                        request.extend(value);
                        request.extend(b"\r\n");
                    }
                    Operation::Delete => request.extend(format!("delete {name}\r\n").bytes()),
                    Operation::Incr => request.extend(format!("incr {name} 1\r\n").bytes()),
                    Operation::Get => request.extend(format!("get {name}\r\n").bytes()),
                }
                asked.push((key, operation));
            }
            let sent = stream.write_all(&request).is_ok();
            let mut asked = asked.into_iter();
            for (key, operation) in asked.by_ref() {
                let answer = if sent { answer(&mut answers, &operation) } else { None };
                let Some(answer) = answer else {
                    self.unanswered(key, &operation);
                    break;
                };
                self.answered(key, &operation, answer);
            }
            let mut ended = !sent;
            for (key, operation) in asked {
                self.unanswered(key, &operation);
                ended = true;
            }
            if ended || answers.buffer().is_empty() && is_closed(&stream) {
                return;
            }
        }
    }

    fn unanswered(&mut self, key: usize, operation: &Operation) {
        let after: May = self.may[key].iter().map(|before| operation.effect(before)).collect();
        self.may[key].extend(after);
    }

    fn answered(&mut self, key: usize, operation: &Operation, answer: Answer) {
        self.acknowledged += 1;
        match (operation, answer) {
            (Operation::Set(value), Answer::Line(line)) => {
                assert_eq!(line, "STORED", "set");
                self.may[key] = vec![Some(value.clone())];
            }
            (Operation::Delete, _) => self.may[key] = vec![None],
            (Operation::Incr, Answer::Line(line)) if line == "NOT_FOUND" => {}
            (Operation::Incr, Answer::Line(line)) => {
                let possible =
                    self.may[key].iter().flatten().any(|before| incremented(before) == line.as_bytes());
                assert!(possible, "{}-{key} counted to {line} from {:?}", self.name, self.may[key]);
                self.may[key] = vec![Some(line.into_bytes())];
            }
            (_, Answer::Value(value)) => self.saw(key, value),
            (_, Answer::Line(_)) => {}
        }
    }

    /// The key holds this: it must be something that it may hold, and is what it holds.
    fn saw(&mut self, key: usize, value: Vec<u8>) {
        if !self.may[key].iter().flatten().any(|may| *may == value) {
            let start = |value: &[u8]| String::from_utf8_lossy(&value[..value.len().min(40)]).into_owned();
            let may: Vec<_> = self.may[key].iter().map(|may| may.as_deref().map(start)).collect();
            panic!("{}-{key} holds {:?}, and may hold {may:?}", self.name, start(&value));
        }
        self.may[key] = vec![Some(value)];
    }

    /// Reads every key; answers how many of those that were there still are, and how many were.
    fn verify(&mut self, port: u16) -> (usize, usize) {
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("the daemon listens");
        let _ = stream.set_read_timeout(Some(Duration::from_secs(20)));
        let mut answers = BufReader::new(stream.try_clone().expect("a second handle"));
        let mut stream = stream;
        let (mut found, mut known) = (0, 0);
        for first in (0..KEYS).step_by(50) {
            let request: String =
                (first..first + 50).map(|key| format!("get {}-{key}\r\n", self.name)).collect();
            stream.write_all(request.as_bytes()).expect("the daemon takes it");
            for key in first..first + 50 {
                known += usize::from(self.may[key].iter().all(Option::is_some));
                if let Answer::Value(value) =
                    answer(&mut answers, &Operation::Get).expect("the daemon answers")
                {
                    found += usize::from(self.may[key].iter().all(Option::is_some));
                    self.saw(key, value);
                }
            }
        }
        (found, known)
    }
}

enum Answer {
    Line(String),
    Value(Vec<u8>),
}

/// One answer; `None` when the daemon is gone.
fn answer(answers: &mut BufReader<TcpStream>, operation: &Operation) -> Option<Answer> {
    let mut line = String::new();
    let read = answers.read_line(&mut line).ok()?;
    if read == 0 || !line.ends_with("\r\n") {
        return None;
    }
    if let (Operation::Get, Some(head)) = (operation, line.strip_prefix("VALUE ")) {
        let len: usize = head.trim().rsplit(' ').next()?.parse().ok()?;
        let mut value = vec![0; len + 7];
        answers.read_exact(&mut value).ok()?;
        assert_eq!(&value[len..], b"\r\nEND\r\n");
        value.truncate(len);
        return Some(Answer::Value(value));
    }
    Some(Answer::Line(line.trim_end().to_string()))
}

fn is_closed(stream: &TcpStream) -> bool {
    let _ = stream.set_nonblocking(true);
    let closed =
        matches!(stream.peek(&mut [0]), Ok(0)) || stream.take_error().is_ok_and(|error| error.is_some());
    let _ = stream.set_nonblocking(false);
    closed
}

/// Kills a loaded daemon again and again; its long form is `scripts/torture restart`.
#[test]
fn a_daemon_killed_under_load_comes_back_with_what_it_acknowledged() {
    let folder = Folder::new();
    let ssd = format!("{}:512m", folder.path("ssd"));
    kill_under_load(folder, &ssd);
}

#[test]
fn a_daemon_without_ssd_killed_under_load_comes_back_with_what_it_acknowledged() {
    kill_under_load(Folder::new(), "none");
}

fn kill_under_load(folder: Folder, ssd: &str) {
    let kills: usize = std::env::var("LARDER_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(5);
    let memory = MemoryFile::new(&folder);
    let memory = memory.arg();
    let args = ["-p", "-1", "-l", "127.0.0.1", "-m", "48", "-t", "2", "--item-size", "2k", "--ssd", ssd];
    let args = [&args[..], &["--memory-file", &memory]].concat();
    let mut daemon = Daemon::start_in(folder, &args);
    let mut clients: Vec<Client> = (0..3).map(Client::new).collect();
    let (mut found, mut known, mut reset, mut interrupted, mut flushes) = (0, 0, 0, 0, 0);
    for kill in 0..kills {
        let port = daemon.port;
        let signal = [Signal::KILL, Signal::KILL, Signal::ABORT, Signal::KILL, Signal::TERM][kill % 5];
        std::thread::scope(|scope| {
            for client in &mut clients {
                scope.spawn(move || client.work(port));
            }
            let pause = if kill == 0 { 1_500 } else { 150 + kill as u64 * 37 % 500 };
            std::thread::sleep(Duration::from_millis(pause));
            end(&mut daemon, signal);
        });
        again(&mut daemon, &args);
        assert_eq!(daemon.stat("stats larder", "restart_warm"), 1, "after kill {kill}, {signal:?}");
        reset += daemon.stat("stats larder", "shards_reset");
        interrupted += daemon.stat("stats larder", "shards_repaired");
        for client in &mut clients {
            let (still, was) = client.verify(daemon.port);
            (found, known) = (found + still, known + was);
        }
        if kill % 7 == 3 {
            assert_eq!(daemon.connect().ask("flush_all\r\n", "\r\n"), "OK\r\n");
            clients.iter_mut().for_each(|client| client.may.fill(vec![None]));
            flushes += 1;
        }
    }
    let acknowledged: u64 = clients.iter().map(|client| client.acknowledged).sum();
    println!(
        "{kills} kills with --ssd {ssd}, {acknowledged} operations acknowledged, \
         {found} of {known} items back, {interrupted} shards were being changed, {reset} reset, \
         {flushes} flushes, no wrong answer"
    );
    assert_eq!(reset, 0, "a shard that was being changed is repaired");
    // What does not fit into RAM is evicted before any kill.
    let least = if ssd == "none" { 3 } else { 6 };
    assert!(acknowledged > 2_000 * kills as u64 && found * 10 > known * least, "{found} of {known} back");
    daemon.stop();
}
