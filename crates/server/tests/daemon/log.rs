//! The log as those see it who read it, or who do not: a standard error that is closed or full ends nothing.

use std::io::{PipeReader, PipeWriter, Write, pipe};
use std::process::Stdio;
use std::time::Duration;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use super::process::{Daemon, Folder, command};

/// Options that make the daemon log at its start.
const TALKATIVE: [&str; 9] = ["-p", "-1", "-l", "127.0.0.1", "-U", "11211", "-v", "--conn-memory", "1m"];

fn start(stderr: impl Into<Stdio>) -> Daemon {
    let folder = Folder::new();
    let mut command = command(&TALKATIVE, &folder.0.join("port"));
    command.stderr(stderr);
    Daemon::of(folder, command)
}

/// The writing end of a pipe that takes nothing more, and the end to read it from.
fn full_pipe() -> (PipeReader, PipeWriter) {
    let (reader, mut writer) = pipe().expect("a pipe");
    let flags = fcntl_getfl(&writer).expect("flags");
    fcntl_setfl(&writer, flags | OFlags::NONBLOCK).expect("flags");
    for piece in [4096, 1] {
        while writer.write(&vec![b'.'; piece]).is_ok() {}
    }
    fcntl_setfl(&writer, flags).expect("flags");
    (reader, writer)
}

/// Makes the daemon log what clients do, as often as it can.
fn provoke(daemon: &Daemon) {
    assert_eq!(daemon.connect().ask("verbosity 2\r\n", "\r\n"), "OK\r\n");
    let value = "v".repeat(8_000);
    daemon.connect().ask(&format!("set k 0 0 8000\r\n{value}\r\n"), "STORED\r\n");
    let mut peers = Vec::new();
    for _ in 0..30 {
        let mut peer = daemon.connect();
        peer.stream.set_write_timeout(Some(Duration::from_millis(50))).expect("a timeout");
        // More answers than the daemon keeps for a client that takes none.
        let _ = peer.stream.write_all("get k\r\n".repeat(5_000).as_bytes());
        peers.push(peer);
    }
}

#[test]
fn a_closed_standard_error_ends_nothing() {
    let (reader, writer) = pipe().expect("a pipe");
    drop(reader);
    let mut daemon = start(writer);
    provoke(&daemon);
    daemon.connect().works();
    daemon.stop();
}

#[test]
fn a_full_standard_error_stops_nothing() {
    let (reader, writer) = full_pipe();
    let mut daemon = start(writer);
    provoke(&daemon);
    daemon.connect().works();
    let took = daemon.stop();
    assert!(took < Duration::from_secs(6), "{took:?}");
    drop(reader);
}

#[test]
fn a_start_that_fails_ends_with_its_code_where_it_cannot_say_why() {
    for closed in [false, true] {
        let (reader, writer) = full_pipe();
        let reader = (!closed).then_some(reader);
        let folder = Folder::new();
        let mut command = command(&["--nonsense"], &folder.0.join("port"));
        command.stderr(writer);
        let status = command.status().expect("it runs");
        assert_eq!(status.code(), Some(64), "closed: {closed}");
        drop(reader);
    }
}

#[test]
fn a_log_line_has_a_time_a_level_and_pairs() {
    let mut daemon = start(Stdio::piped());
    provoke(&daemon);
    daemon.connect().works();
    daemon.signal(rustix::process::Signal::TERM);
    let (_, output) = daemon.wait();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let line =
        said.lines().find(|line| line.contains("UDP is not served")).unwrap_or_else(|| panic!("{said}"));
    assert!(line.starts_with("time=20") && line.contains("Z level=warn msg=\"UDP is not served"), "{line}");
}
