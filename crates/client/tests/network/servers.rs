//! Real servers as processes of their own: Larder as this build has it, and memcached where it is installed.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use larder_client::{Address, Client, Options, Server};
use rustix::process::{Pid, Signal, kill_process};

/// Nothing here takes this long.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server that runs; killed when dropped.
pub struct Daemon {
    child: Child,
    program: PathBuf,
    args: Vec<String>,
    folder: PathBuf,
    pub name: &'static str,
    pub address: Address,
}

/// Returns the programs there are, by name. Larder is where cargo puts it, next to the folder of this test.
fn programs() -> Vec<(&'static str, PathBuf)> {
    let test = std::env::current_exe().expect("this program has a path");
    let built = test.parent().and_then(Path::parent).map(|folder| folder.join("larder"));
    let larder = std::env::var_os("LARDER").map(PathBuf::from).or(built).filter(|path| path.exists());
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let memcached =
        std::env::split_paths(&folders).map(|folder| folder.join("memcached")).find(|path| path.exists());
    let mut found = Vec::new();
    for (name, path, how) in [
        ("larder", larder, "build it with cargo build -p larder"),
        ("memcached", memcached, "install Debian's package memcached"),
    ] {
        match path {
            Some(path) => found.push((name, path)),
            None => eprintln!("SKIPPED {name}: it is not there; {how}"),
        }
    }
    found
}

/// Starts one server of each program, on a port of the kernel's choice.
pub fn each(args: &[&str]) -> Vec<Daemon> {
    programs().iter().map(|(name, path)| Daemon::start(name, path, args, false)).collect()
}

/// Starts `count` servers of the same program, for each program.
pub fn fleets(count: usize, args: &[&str]) -> Vec<Vec<Daemon>> {
    let fleet = |(name, path): &(&'static str, PathBuf)| {
        (0..count).map(|_| Daemon::start(name, path, args, false)).collect()
    };
    programs().iter().map(fleet).collect()
}

/// Starts one server of each program on a unix socket.
pub fn each_on_unix_socket() -> Vec<Daemon> {
    programs().iter().map(|(name, path)| Daemon::start(name, path, &[], true)).collect()
}

impl Daemon {
    fn start(name: &'static str, program: &Path, args: &[&str], unix: bool) -> Daemon {
        let args = args.iter().map(|arg| arg.to_string()).collect();
        Daemon::start_at(name, program.to_path_buf(), args, unix, None)
    }

    /// Starts on a port of the kernel's choice, or on this one.
    fn start_at(
        name: &'static str,
        program: PathBuf,
        args: Vec<String>,
        unix: bool,
        port: Option<u16>,
    ) -> Daemon {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let folder = format!("larder-client-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
        let folder = std::env::temp_dir().join(folder);
        std::fs::create_dir(&folder).expect("the temporary directory can be written");
        let (socket, port_file) = (folder.join("socket"), folder.join("port"));
        let mut command = Command::new(&program);
        command.env_clear().env("MEMCACHED_PORT_FILENAME", &port_file).stdin(Stdio::null());
        command.args(["-m", "256", "-t", "2", "-u", "root", "-U", "0"]).args(&args);
        if name == "larder" {
            command.args(["--ssd", "none"]);
        }
        match unix {
            true => command.arg("-s").arg(&socket),
            false => {
                let port = port.map_or("-1".to_string(), |port| port.to_string());
                command.args(["-p", &port, "-l", "127.0.0.1"])
            }
        };
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        let address = Address::Unix(socket.clone());
        let mut daemon = Daemon { child, program, args, folder, name, address };
        let began = Instant::now();
        while !(unix && socket.exists() || !unix && port_file.exists()) {
            assert!(began.elapsed() < PATIENCE, "{name} does not start");
            assert!(daemon.child.try_wait().expect("a child").is_none(), "{name} has ended");
            std::thread::sleep(Duration::from_millis(5));
        }
        if !unix {
            let text = std::fs::read_to_string(&port_file).expect("the port file can be read");
            let port = text.split_whitespace().last().and_then(|port| port.parse().ok()).expect("a port");
            daemon.address = Address::Tcp { host: "127.0.0.1".into(), port };
        }
        daemon
    }

    pub fn server(&self) -> Server {
        Server::new(self.address.clone())
    }

    pub fn client(&self, options: Options) -> Client {
        Client::new([self.server()], options).expect("there is a server")
    }

    /// Starts the same program again on the same port, after it was killed. It has no items.
    pub fn restart(&mut self) {
        let Address::Tcp { port, .. } = self.address else { panic!("on TCP only") };
        *self = Daemon::start_at(self.name, self.program.clone(), self.args.clone(), false, Some(port));
    }

    /// Sends a signal to the server's process.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it runs");
    }

    pub fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("a child");
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // Also ends one that is stopped.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A client of several servers.
pub fn client_of(daemons: &[Daemon], options: Options) -> Client {
    Client::new(daemons.iter().map(Daemon::server), options).expect("there are servers")
}
