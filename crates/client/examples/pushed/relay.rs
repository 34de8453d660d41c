//! Distance to a server: a relay that hands on every byte a while later, each way.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

/// Starts a relay to a server, and returns the port that it listens at. It runs as long as the process.
pub fn start(server: String, delay: Duration) -> std::io::Result<u16> {
    let listener = TcpListener::bind("0.0.0.0:0")?;
    let port = listener.local_addr()?.port();
    spawn(move || {
        for client in listener.incoming().flatten() {
            // Where the server is gone, the client's connection ends.
            let Ok(server) = TcpStream::connect(&server) else { continue };
            let ends = [&client, &server].map(|end| end.set_nodelay(true).and_then(|()| end.try_clone()));
            if let [Ok(client_too), Ok(server_too)] = ends {
                pipe(client, server_too, delay);
                pipe(server, client_too, delay);
            }
        }
    });
    Ok(port)
}

/// Hands on what one end sends, by two threads: one that reads, and one that waits and writes.
fn pipe(mut from: TcpStream, to: TcpStream, delay: Duration) {
    let (sender, receiver) = channel();
    spawn(move || hand_on(to, &receiver));
    spawn(move || {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(bytes @ 1..) = from.read(&mut buffer) {
            if sender.send((Instant::now() + delay, buffer[..bytes].to_vec())).is_err() {
                break;
            }
        }
    });
}

fn hand_on(mut to: TcpStream, parts: &Receiver<(Instant, Vec<u8>)>) {
    let mut due = VecDeque::new();
    while let Ok(part) = parts.recv() {
        due.push_back(part);
        due.extend(parts.try_iter());
        while let Some((at, bytes)) = due.pop_front() {
            sleep(at.saturating_duration_since(Instant::now()));
            if to.write_all(&bytes).is_err() {
                return;
            }
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}
