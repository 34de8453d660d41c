//! Users of a daemon: read at the start and again on SIGHUP; where it listens without any; logins that fail beside
//! others that work.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::process::{Daemon, Folder, Peer, command};

fn login(user: &str, password: &str) -> String {
    format!("set any 0 0 {}\r\n{user} {password}\r\n", user.len() + password.len() + 1)
}

/// Sends, and returns the first line of the answer.
fn ask(peer: &mut Peer, asked: &str) -> String {
    peer.ask(asked, "\r\n")
}

fn line(peer: &mut Peer) -> String {
    String::from_utf8_lossy(&peer.until("\r\n")).into_owned()
}

fn write(path: &str, text: &str, mode: u32) {
    fs::write(path, text).expect("the folder can be written");
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
}

/// Asks until the answer is `wanted`: a signal takes a moment.
fn until_answered(daemon: &Daemon, asked: &str, wanted: &str) {
    let began = Instant::now();
    loop {
        let said = ask(&mut daemon.connect(), asked);
        if said == wanted {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(20), "still {said:?}");
    }
}

const FAILURE: &str = "CLIENT_ERROR authentication failure\r\n";

#[test]
fn sighup_reads_the_users_again_and_a_broken_file_changes_nothing() {
    let folder = Folder::new();
    let path = folder.path("users");
    write(&path, "old:one\n", 0o644);
    let mut daemon = Daemon::start_in(folder, &["-p", "-1", "-l", "127.0.0.1", "-v", "-Y", &path]);
    let mut early = daemon.connect();
    assert_eq!(ask(&mut early, &login("old", "one")), "STORED\r\n");
    assert_eq!(ask(&mut early, "set a 0 0 1\r\nx\r\n"), "STORED\r\n");
    write(&path, "broken\n", 0o600);
    daemon.signal(Signal::HUP);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(ask(&mut daemon.connect(), &login("old", "one")), "STORED\r\n");
    fs::remove_file(&path).expect("it is there");
    daemon.signal(Signal::HUP);
    std::thread::sleep(Duration::from_millis(300));
    write(&path, "new:two\n#gone:three\n", 0o660);
    daemon.signal(Signal::HUP);
    until_answered(&daemon, &login("new", "two"), "STORED\r\n");
    assert_eq!(ask(&mut daemon.connect(), &login("old", "one")), FAILURE);
    assert_eq!(ask(&mut early, "get a\r\n"), "VALUE a 0 1\r\n");
    daemon.signal(Signal::TERM);
    let (status, output) = daemon.wait();
    assert!(status.success(), "{status}");
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(log.contains("users: every user of this host can read the secrets in it: chmod 600"), "{log}");
    assert!(log.contains("users other than its owner can change it"), "{log}");
    assert!(log.contains("the users stay as they were"), "{log}");
    assert!(log.contains("users: line 2: # begins no comment here"), "{log}");
    assert!(log.contains("the users are read again\" users=2"), "{log}");
    for secret in ["one", "two", "three", "broken"] {
        assert!(!log.contains(secret), "{secret} is in the log: {log}");
    }
}

/// Starts under Larder's name, and returns what it says when it ends at once.
fn refusal(args: &[&str]) -> String {
    let folder = Folder::new();
    let mut command = command(&[&["-p", "-1", "--ssd", "none"], args].concat(), &folder.0.join("port"));
    let output = command.arg0("larder").output().expect("it runs");
    assert!(!output.status.success());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn it_does_not_start_with_users_it_cannot_read() {
    let folder = Folder::new();
    let path = folder.path("users");
    assert!(refusal(&["-Y", &path]).contains("cannot be read"));
    write(&path, "a:b\nsecret\n", 0o600);
    let said = refusal(&["-Y", &path]);
    assert!(said.contains("users: line 2: it is neither") && !said.contains("secret"), "{said}");
    assert!(refusal(&["-Y", &folder.path(".")]).contains("no regular file"));
}

#[test]
fn it_listens_to_other_hosts_only_with_users_or_when_told_to() {
    for at in ["0.0.0.0", "*", "[::]:0", "127.0.0.1,0.0.0.0:0"] {
        let said = refusal(&["-l", at]);
        assert!(said.contains("without authentication or TLS would let every host"), "{said}");
        assert!(said.contains("-Y FILE") && said.contains("--insecure-listen"), "{said}");
    }
    let starts = |args: &[&str], name: &str| {
        let folder = Folder::new();
        write(&folder.path("users"), "a:b\n", 0o600);
        let users = folder.path("users");
        let args: Vec<&str> =
            args.iter().map(|arg| if *arg == "USERS" { users.as_str() } else { *arg }).collect();
        let mut command =
            command(&[&["-p", "-1", "--ssd", "none"], &args[..]].concat(), &folder.0.join("port"));
        command.arg0(name);
        let mut daemon = Daemon::of(folder, command);
        daemon.signal(Signal::TERM);
        String::from_utf8_lossy(&daemon.wait().1.stderr).into_owned()
    };
    let warning = "without authentication or TLS: any host that reaches the port reads";
    assert!(starts(&["-l", "0.0.0.0", "--insecure-listen"], "larder").contains(warning));
    assert!(starts(&["-l", "0.0.0.0"], "memcached").contains(warning));
    assert!(!starts(&["-l", "0.0.0.0", "-Y", "USERS"], "larder").contains(warning));
    assert!(!starts(&["-l", "127.0.0.1,127.1.2.3:0"], "larder").contains(warning));
}

/// Logins that fail, on several connections at once, beside a peer that is in.
#[test]
fn failed_logins_wait_and_nobody_else_does() {
    let folder = Folder::new();
    let path = folder.path("users");
    write(&path, "a:b\n", 0o600);
    let daemon = Daemon::start_in(folder, &["-p", "-1", "-l", "127.0.0.1", "-t", "1", "-Y", &path]);
    let mut peer = daemon.connect();
    assert_eq!(ask(&mut peer, &login("a", "b")), "STORED\r\n");
    for guessers in [1, 4, 16, 64] {
        let began = Instant::now();
        let mut waiting: Vec<_> = (0..guessers).map(|_| daemon.connect()).collect();
        waiting.iter_mut().for_each(|guesser| guesser.send(login("a", "c")));
        let mut served = 0;
        while began.elapsed() < Duration::from_millis(150) {
            assert_eq!(ask(&mut peer, "mn\r\n"), "MN\r\n");
            served += 1;
        }
        assert!(served >= 10, "{served} requests were served while {guessers} logins waited");
        for guesser in &mut waiting {
            assert_eq!(line(guesser), FAILURE);
        }
        let waited = began.elapsed();
        assert!(waited >= Duration::from_millis(250), "{guessers} were told after {waited:?}");
    }
}

#[test]
fn a_daemon_that_is_told_to_stop_does_not_wait_for_failed_logins() {
    let folder = Folder::new();
    let path = folder.path("users");
    write(&path, "a:b\n", 0o600);
    let mut daemon = Daemon::start_in(folder, &["-p", "-1", "-l", "127.0.0.1", "-Y", &path]);
    let mut peer = daemon.connect();
    for _ in 0..4 {
        peer.send(login("a", "c"));
    }
    assert_eq!(line(&mut peer), FAILURE);
    let took = daemon.stop();
    assert!(took < Duration::from_secs(2), "{took:?}");
}

/// Waits for the end of a connection. Returns the time since `began`.
fn ended(peer: &mut Peer, began: Instant) -> Duration {
    // One that is closed with bytes unread is reset.
    if let Err(error) = peer.stream.read_to_end(&mut Vec::new()) {
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    }
    began.elapsed()
}

#[test]
fn a_peer_that_does_not_log_in_is_closed_and_counted() {
    let folder = Folder::new();
    let path = folder.path("users");
    write(&path, "a:b\n", 0o600);
    let daemon = Daemon::start_in(folder, &["-p", "-1", "-l", "127.0.0.1", "-Y", &path]);
    let began = Instant::now();
    let mut inside = daemon.connect();
    assert_eq!(ask(&mut inside, &login("a", "b")), "STORED\r\n");
    let mut outside: Vec<_> =
        ["", "set any 0 0 3\r\na", "version\r\n", &login("a", "c"), &login("a", "c").repeat(99)]
            .iter()
            .map(|sent| {
                let mut peer = daemon.connect();
                peer.send(sent);
                peer
            })
            .collect();
    for peer in &mut outside {
        let took = ended(peer, began);
        assert!((9..20).contains(&took.as_secs()), "{took:?}");
    }
    let stats = inside.ask("stats larder\r\n", "END\r\n");
    assert!(stats.contains("STAT conn_kicks_login 5\r\n"), "{stats}");
}

#[test]
fn peers_that_do_not_log_in_leave_their_places_to_clients_that_are_turned_away() {
    let folder = Folder::new();
    let path = folder.path("users");
    write(&path, "a:b\n", 0o600);
    let daemon = Daemon::start_in(folder, &["-p", "-1", "-l", "127.0.0.1", "-Y", &path, "-c", "4"]);
    let mut inside = daemon.connect();
    assert_eq!(ask(&mut inside, &login("a", "b")), "STORED\r\n");
    let mut outside: Vec<_> = (0..3).map(|_| daemon.connect()).collect();
    let began = Instant::now();
    let is_let_in = || {
        let (mut client, mut said) = (daemon.connect().stream, [0; 8]);
        let sent = client.write_all(login("a", "b").as_bytes());
        sent.and_then(|()| client.read_exact(&mut said)).is_ok() && said == *b"STORED\r\n"
    };
    while !is_let_in() {
        assert!(began.elapsed() < Duration::from_secs(8), "still turned away");
        std::thread::sleep(Duration::from_millis(50));
    }
    for peer in &mut outside {
        let took = ended(peer, began);
        assert!(took < Duration::from_secs(8), "{took:?}");
    }
    assert_eq!(ask(&mut inside, "mn\r\n"), "MN\r\n", "this one stays");
}
