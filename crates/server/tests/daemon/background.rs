//! A daemon in the background (`-d`): what its caller learns, and the files by which it is found.

use std::fs;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use super::process::{Daemon, Folder, Peer, command};

/// The pid in a file, killed when dropped.
struct Background(Pid);

impl Background {
    fn of(pidfile: &str) -> Background {
        let text = fs::read_to_string(pidfile).expect("a pid file");
        let pid = text.trim().parse().expect("a number");
        Background(Pid::from_raw(pid).expect("a pid"))
    }

    fn stop(&self) {
        kill_process(self.0, Signal::TERM).expect("it runs");
        let began = Instant::now();
        while test_kill_process(self.0).is_ok() {
            assert!(began.elapsed() < Duration::from_secs(20), "it does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::KILL);
    }
}

#[test]
fn the_caller_waits_until_the_daemon_serves() {
    let folder = Folder::new();
    let (pidfile, port_file) = (folder.path("pid"), folder.0.join("port"));
    let args =
        ["-d", "-p", "-1", "-l", "127.0.0.1", "-m", "64", "-e", &folder.path("memory"), "-P", &pidfile];
    // Its output ends when the daemon has let go of it.
    let output = command(&args, &port_file).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let daemon = Background::of(&pidfile);
    let announced = fs::read_to_string(&port_file).expect("a port");
    let port: u16 = announced.trim().rsplit_once(' ').expect("a port").1.parse().expect("a number");
    Peer::new(TcpStream::connect(("127.0.0.1", port)).expect("it listens already")).works();
    daemon.stop();
    assert!(!fs::exists(&pidfile).expect("a folder"), "the pid file is left behind");
}

#[test]
fn the_caller_learns_that_the_daemon_failed_and_why() {
    let other = Daemon::start(&[]);
    let (port, folder) = (other.port.to_string(), Folder::new());
    fs::write(folder.0.join("letter"), "dear reader").expect("room");
    let letter = folder.path("letter");
    for (args, reason) in [
        (vec!["-d", "-p", &port, "-l", "127.0.0.1"], "another process listens there"),
        (vec!["-d", "-p", "-1", "-l", "127.0.0.1", "-e", &letter], "not a store's memory"),
        (vec!["-d", "-p", "-1", "-l", "127.0.0.1", "-P", &letter], "holds something else"),
    ] {
        let output = command(&args, &folder.0.join("port")).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{args:?}: {said}");
        assert!(said.contains(reason), "{args:?}: {said}");
        assert_eq!(fs::read(&letter).expect("there"), b"dear reader");
    }
}

#[test]
fn a_file_in_the_way_of_the_port_file_is_left_as_it_is() {
    let folder = Folder::new();
    let path = folder.0.join("port");
    fs::write(&path, "dear reader\n").expect("room");
    let output = command(&["-p", "-1", "-l", "127.0.0.1"], &path).output().expect("it runs");
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("MEMCACHED_PORT_FILENAME") && said.contains("left as it is"), "{said}");
    assert_eq!(fs::read(&path).expect("there"), b"dear reader\n");
}
