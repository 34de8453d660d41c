//! A small cache on a thread of the test, which can be told to stall, to lie and to die.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

/// What is wrong with a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "every test file has faults of its own")]
pub enum Fault {
    /// Nothing.
    None,
    /// It waits so long before it answers the requests of one read.
    Slow(Duration),
    /// It answers nothing for so long, from then on after the first request.
    Stall { from: Duration, length: Duration },
    /// It gives out the value of another key.
    Swapped,
    /// It gives out values without their last byte.
    Truncated,
    /// It gives out values with a bit turned over.
    Flipped,
    /// It returns other client flags than were stored, once in so many gets.
    Flags(u64),
    /// It closes every connection after so many requests.
    Dies(u64),
    /// It gives out the value before the last one, once in so many gets.
    Stale(u64),
    /// It acknowledges one set in so many and does not store it.
    Forgets(u64),
    /// It acknowledges one set in so many and removes the key.
    Removes(u64),
    /// It answers what nobody asked.
    Babbles,
    /// It serves so many requests in each hundredth of a second, and refuses the others.
    Busy(u64),
    /// It stores every cas, whatever number it names.
    AlwaysStores,
    /// It stores no cas, and says that another client was first.
    NeverStores,
    /// It stores every cas, and says that another client was first if one was.
    StoresRefused,
    /// It acknowledges one append or prepend in so many and does not store it.
    ForgetsAdditions(u64),
    /// It stores one append or prepend in so many twice.
    DoublesAdditions(u64),
    /// It appends what it should prepend.
    AddsBehind,
    /// It drops one set without a reply in so many.
    DropsQuiet(u64),
    /// It takes so many connections, and answers nothing on those that come later.
    Mute(u64),
}

/// A stored value with its flags, the one before it, and its unique number.
#[derive(Clone, Default)]
struct Item {
    flags: u32,
    value: Vec<u8>,
    older: Option<Vec<u8>>,
    unique: u64,
}

struct Shared {
    fault: Fault,
    items: Mutex<HashMap<Vec<u8>, Item>>,
    first: OnceLock<Instant>,
    requests: AtomicU64,
    connections: AtomicU64,
    uniques: AtomicU64,
    /// The current hundredth of a second, and its requests.
    hundredth: Mutex<(u64, u64)>,
}

type Items<'a> = MutexGuard<'a, HashMap<Vec<u8>, Item>>;

impl Shared {
    fn items(&self) -> Items<'_> {
        self.items.lock().expect("no panic holds it")
    }

    fn is_refused(&self) -> bool {
        let Fault::Busy(most) = self.fault else { return false };
        let now = self.first.get_or_init(Instant::now).elapsed().as_millis() as u64 / 10;
        let mut hundredth = self.hundredth.lock().expect("no panic holds it");
        if hundredth.0 != now {
            *hundredth = (now, 0);
        }
        hundredth.1 += 1;
        hundredth.1 > most
    }

    fn stall(&self) {
        let Fault::Stall { from, length } = self.fault else { return };
        let passed = self.first.get_or_init(Instant::now).elapsed();
        if passed >= from && passed < from + length {
            std::thread::sleep(from + length - passed);
        }
    }

    fn put(&self, items: &mut Items<'_>, words: &[&str], value: Vec<u8>) {
        let unique = 1 + self.uniques.fetch_add(1, Ordering::Relaxed);
        let older = items.remove(words[1].as_bytes()).map(|item| item.value);
        let flags = words[2].parse().expect("flags are a number");
        items.insert(words[1].into(), Item { flags, value, older, unique });
    }
}

/// Starts a server that speaks the text protocol; says its port. It ends with the test's process.
pub fn start(fault: Fault) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("it is bound").port();
    let shared = Arc::new(Shared {
        fault,
        items: Mutex::default(),
        first: OnceLock::new(),
        requests: AtomicU64::new(0),
        connections: AtomicU64::new(0),
        uniques: AtomicU64::new(0),
        hundredth: Mutex::default(),
    });
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || serve(stream, &shared));
        }
    });
    port
}

fn serve(mut stream: TcpStream, shared: &Shared) {
    let _ = stream.set_nodelay(true);
    let number = shared.connections.fetch_add(1, Ordering::Relaxed);
    let is_mute = matches!(shared.fault, Fault::Mute(most) if number >= most);
    let (mut input, mut piece) = (Vec::new(), vec![0; 64 << 10]);
    while let Ok(read) = stream.read(&mut piece) {
        if read == 0 {
            return;
        }
        if is_mute {
            continue;
        }
        input.extend_from_slice(&piece[..read]);
        if let Fault::Slow(delay) = shared.fault {
            std::thread::sleep(delay);
        }
        let mut output = Vec::new();
        while let Some((line, data, taken)) = request(&input) {
            let answered = answer(&line, data, shared, &mut output);
            input.drain(..taken);
            if !answered {
                let _ = stream.write_all(&output);
                return;
            }
        }
        if stream.write_all(&output).is_err() {
            return;
        }
    }
}

fn request(input: &[u8]) -> Option<(String, Vec<u8>, usize)> {
    let end = input.windows(2).position(|pair| pair == b"\r\n")?;
    let line = String::from_utf8_lossy(&input[..end]).into_owned();
    let mut taken = end + 2;
    let mut data = Vec::new();
    let verb = line.split(' ').next().unwrap_or_default();
    if matches!(verb, "set" | "cas" | "append" | "prepend") {
        let bytes: usize = line.split(' ').nth(4)?.parse().ok()?;
        data = input.get(taken..taken + bytes)?.to_vec();
        input.get(taken + bytes..taken + bytes + 2)?;
        taken += bytes + 2;
    }
    Some((line, data, taken))
}

/// Answers a request; returns false when the connection is to end.
fn answer(line: &str, data: Vec<u8>, shared: &Shared, output: &mut Vec<u8>) -> bool {
    let words: Vec<&str> = line.split(' ').collect();
    if matches!(words[0], "version" | "stats") {
        let stats = b"STAT evictions 0\r\nEND\r\n";
        output.extend_from_slice(if words[0] == "stats" { &stats[..] } else { b"VERSION 0\r\n" });
        return true;
    }
    let number = shared.requests.fetch_add(1, Ordering::Relaxed);
    if matches!(shared.fault, Fault::Dies(after) if number >= after) {
        return false;
    }
    if words[0] == "get" {
        shared.stall();
    }
    if shared.is_refused() {
        output.extend_from_slice(b"SERVER_ERROR busy\r\n");
        return true;
    }
    // A gat is a get with an expiry, which no test waits for.
    let words = if words[0] == "gat" { [&["get"][..], &words[2..]].concat() } else { words };
    let said: &[u8] = match words[0] {
        "get" if shared.fault == Fault::Babbles && number > 100 => b"HELLO THERE\r\n",
        "get" | "gets" => return get(&words, number, shared, output),
        "set" => set(&words, data, number, shared),
        "cas" => cas(&words, data, shared),
        "incr" if shared.items().contains_key(words[1].as_bytes()) => b"1\r\n",
        "incr" => b"NOT_FOUND\r\n",
        "append" | "prepend" => add(&words, &data, number, shared),
        "delete" if shared.items().remove(words[1].as_bytes()).is_some() => b"DELETED\r\n",
        "delete" => b"NOT_FOUND\r\n",
        _ => b"ERROR\r\n",
    };
    if words.last() != Some(&"noreply") {
        output.extend_from_slice(said);
    }
    true
}

fn set(words: &[&str], data: Vec<u8>, number: u64, shared: &Shared) -> &'static [u8] {
    let mut items = shared.items();
    match shared.fault {
        Fault::Forgets(every) if number.is_multiple_of(every) => {}
        Fault::DropsQuiet(every) if words.len() > 5 && number.is_multiple_of(every) => {}
        Fault::Removes(every) if number.is_multiple_of(every) => drop(items.remove(words[1].as_bytes())),
        _ => shared.put(&mut items, words, data),
    }
    b"STORED\r\n"
}

fn cas(words: &[&str], data: Vec<u8>, shared: &Shared) -> &'static [u8] {
    let mut items = shared.items();
    let Some(item) = items.get(words[1].as_bytes()) else { return b"NOT_FOUND\r\n" };
    let is_same = item.unique.to_string() == words[5];
    let stores = match shared.fault {
        Fault::AlwaysStores | Fault::StoresRefused => true,
        Fault::NeverStores => false,
        _ => is_same,
    };
    if stores {
        shared.put(&mut items, words, data);
    }
    let is_told = if shared.fault == Fault::StoresRefused { is_same } else { stores };
    if is_told { b"STORED\r\n" } else { b"EXISTS\r\n" }
}

fn add(words: &[&str], data: &[u8], number: u64, shared: &Shared) -> &'static [u8] {
    let mut items = shared.items();
    let Some(item) = items.get(words[1].as_bytes()) else { return b"NOT_STORED\r\n" };
    let times = match shared.fault {
        Fault::ForgetsAdditions(every) if number.is_multiple_of(every) => 0,
        Fault::DoublesAdditions(every) if number.is_multiple_of(every) => 2,
        _ => 1,
    };
    let is_front = words[0] == "prepend" && shared.fault != Fault::AddsBehind;
    let (old, new) = (item.value.clone(), data.repeat(times));
    let value = if is_front { [new, old].concat() } else { [old, new].concat() };
    shared.put(&mut items, words, value);
    b"STORED\r\n"
}

fn get(words: &[&str], number: u64, shared: &Shared, output: &mut Vec<u8>) -> bool {
    let items = shared.items();
    for key in &words[1..] {
        let wanted = match shared.fault {
            Fault::Swapped => items.keys().find(|other| *other != key.as_bytes()),
            _ => None,
        };
        let Some(item) = items.get(wanted.map_or(key.as_bytes(), Vec::as_slice)) else { continue };
        let mut value = item.value.clone();
        match shared.fault {
            Fault::Truncated => drop(value.pop()),
            Fault::Stale(every) if number.is_multiple_of(every) => {
                value = item.older.clone().unwrap_or(value);
            }
            Fault::Flipped => *value.last_mut().expect("values are not empty") ^= 4,
            _ => {}
        }
        let unique = if words[0] == "gets" { format!(" {}", item.unique) } else { String::new() };
        let flags = match shared.fault {
            Fault::Flags(every) if number.is_multiple_of(every) => 0,
            _ => item.flags,
        };
        output.extend_from_slice(format!("VALUE {key} {flags} {}{unique}\r\n", value.len()).as_bytes());
        output.extend_from_slice(&value);
        output.extend_from_slice(b"\r\n");
    }
    output.extend_from_slice(b"END\r\n");
    true
}
