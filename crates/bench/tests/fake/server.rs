//! A small cache on a thread of the test, which can be told to stall, to lie and to die.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
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
}

struct Shared {
    fault: Fault,
    items: Mutex<HashMap<Vec<u8>, Vec<u8>>>,
    /// The values before those in `items`.
    older: Mutex<HashMap<Vec<u8>, Vec<u8>>>,
    first: OnceLock<Instant>,
    requests: AtomicU64,
    /// The current hundredth of a second, and its requests.
    hundredth: Mutex<(u64, u64)>,
}

impl Shared {
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
}

/// Starts a server that speaks the text protocol; says its port. It ends with the test's process.
pub fn start(fault: Fault) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("it is bound").port();
    let shared = Arc::new(Shared {
        fault,
        items: Mutex::default(),
        older: Mutex::default(),
        first: OnceLock::new(),
        requests: AtomicU64::new(0),
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
    let (mut input, mut piece) = (Vec::new(), vec![0; 64 << 10]);
    while let Ok(read) = stream.read(&mut piece) {
        if read == 0 {
            return;
        }
        input.extend_from_slice(&piece[..read]);
        if let Fault::Slow(delay) = shared.fault {
            std::thread::sleep(delay);
        }
        let mut output = Vec::new();
        while let Some((line, data, taken)) = request(&input) {
            let answered = answer(&line, &data, shared, &mut output);
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
    if line.starts_with("set ") {
        let bytes: usize = line.split(' ').nth(4)?.parse().ok()?;
        data = input.get(taken..taken + bytes)?.to_vec();
        input.get(taken + bytes..taken + bytes + 2)?;
        taken += bytes + 2;
    }
    Some((line, data, taken))
}

fn answer(line: &str, data: &[u8], shared: &Shared, output: &mut Vec<u8>) -> bool {
    let words: Vec<&str> = line.split(' ').collect();
    if matches!(words[0], "version" | "stats") {
        let stats = b"STAT evictions 0\r\nEND\r\n";
        output.extend_from_slice(if words[0] == "stats" { &stats[..] } else { b"VERSION 0\r\n" });
        return true;
    }
    let number = shared.requests.fetch_add(1, Ordering::Relaxed);
    if let Fault::Stall { from, length } = shared.fault
        && words[0] == "get"
    {
        let passed = shared.first.get_or_init(Instant::now).elapsed();
        if passed >= from && passed < from + length {
            std::thread::sleep(from + length - passed);
        }
    }
    if shared.is_refused() {
        output.extend_from_slice(b"SERVER_ERROR busy\r\n");
        return true;
    }
    match (words[0], shared.fault) {
        (_, Fault::Dies(after)) if number >= after => return false,
        ("set", Fault::Forgets(every)) if number.is_multiple_of(every) => {
            output.extend_from_slice(b"STORED\r\n");
        }
        ("set", Fault::Removes(every)) if number.is_multiple_of(every) => {
            shared.items.lock().expect("no panic holds it").remove(words[1].as_bytes());
            output.extend_from_slice(b"STORED\r\n");
        }
        ("delete", _) => {
            let found = shared.items.lock().expect("no panic holds it").remove(words[1].as_bytes());
            output.extend_from_slice(if found.is_some() { b"DELETED\r\n" } else { b"NOT_FOUND\r\n" });
        }
        ("set", Fault::Stale(_)) => {
            let mut items = shared.items.lock().expect("no panic holds it");
            if let Some(older) = items.insert(words[1].into(), data.to_vec()) {
                shared.older.lock().expect("no panic holds it").insert(words[1].into(), older);
            }
            output.extend_from_slice(b"STORED\r\n");
        }
        ("set", _) => {
            shared.items.lock().expect("no panic holds it").insert(words[1].into(), data.to_vec());
            output.extend_from_slice(b"STORED\r\n");
        }
        ("get", Fault::Babbles) if number > 100 => output.extend_from_slice(b"HELLO THERE\r\n"),
        ("get", fault) => {
            let items = shared.items.lock().expect("no panic holds it");
            for key in &words[1..] {
                let wanted = match fault {
                    Fault::Swapped => items.keys().find(|other| *other != key.as_bytes()),
                    _ => None,
                };
                let Some(value) = items.get(wanted.map_or(key.as_bytes(), Vec::as_slice)) else { continue };
                let mut value = value.clone();
                match fault {
                    Fault::Truncated => drop(value.pop()),
                    Fault::Stale(every) if number.is_multiple_of(every) => {
                        let older = shared.older.lock().expect("no panic holds it");
                        value = older.get(key.as_bytes()).cloned().unwrap_or(value);
                    }
                    Fault::Flipped => *value.last_mut().expect("values are not empty") ^= 4,
                    _ => {}
                }
                output.extend_from_slice(format!("VALUE {key} 0 {}\r\n", value.len()).as_bytes());
                output.extend_from_slice(&value);
                output.extend_from_slice(b"\r\n");
            }
            output.extend_from_slice(b"END\r\n");
        }
        _ => output.extend_from_slice(b"ERROR\r\n"),
    }
    true
}
