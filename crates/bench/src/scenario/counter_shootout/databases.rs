//! MariaDB and PostgreSQL, each created in a private folder, as the user that its packages bring.

use crate::counter::store::Kind;
use crate::scenario::child::Child;
use crate::scenario::folder::Folder;
use crate::scenario::server::free_port;
use crate::scenario::{Halt, Host, Stage, host};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);
/// Bytes of a path below which a database may have its files.
const PATH_BYTES_MAX: usize = 150;
/// A folder that a database's own user can reach, where the chosen one is closed to it or its path is none for it.
const OPEN_FOLDER: &str = "/var/tmp";
/// Where Debian keeps the programs of PostgreSQL, a folder for each version.
const POSTGRES: &str = "/usr/lib/postgresql";

/// Databases that answer. Their servers end before their folders go.
#[derive(Debug, Default)]
pub struct Databases {
    mariadb: Option<Running>,
    postgres: Option<Running>,
}

#[derive(Debug)]
struct Running {
    port: u16,
    _child: Child,
    _folder: Folder,
}

/// The inputs of a start, shared with another thread.
struct Place<'a> {
    host: &'a Host,
    stop: &'a AtomicBool,
    parent: &'a Path,
}

impl Databases {
    /// Starts those that are installed; the others are noted.
    ///
    /// # Errors
    /// It was asked to stop.
    pub fn start(stage: &mut Stage<'_>) -> Result<Self, Halt> {
        stage.tell("making databases");
        let place = Place { host: stage.host, stop: stage.stop, parent: stage.folder() };
        let (mariadb, postgres) = thread::scope(|scope| {
            let mariadb = scope.spawn(|| mariadb(&place));
            let postgres = postgres(&place);
            (mariadb.join().expect("a start does not panic"), postgres)
        });
        stage.go_on()?;
        let mut kept = |name: &str, started: Result<Running, String>| {
            started.map_err(|why| stage.part.note(format!("{name} skipped: {why}"))).ok()
        };
        Ok(Self { mariadb: kept("mariadb", mariadb), postgres: kept("postgres", postgres) })
    }

    /// The stores that they are, and where.
    pub fn addresses(&self) -> Vec<(Kind, String)> {
        let mut all = Vec::new();
        if let Some(Running { port, .. }) = &self.mariadb {
            let address = format!("mysql://root@127.0.0.1:{port}/");
            let kinds = [Kind::MariadbMemory, Kind::MariadbOrm, Kind::MariadbInnodb];
            all.extend(kinds.map(|kind| (kind, address.clone())));
        }
        if let Some(Running { port, .. }) = &self.postgres {
            let address = format!("postgres://postgres@127.0.0.1:{port}/postgres");
            all.extend([Kind::PostgresUnlogged, Kind::Postgres].map(|kind| (kind, address.clone())));
        }
        all
    }
}

impl Place<'_> {
    /// Returns its folder, and the user to run it: databases refuse to run as root.
    fn home(&self, user: &str) -> Result<(Folder, Option<(u32, u32)>), String> {
        let owner = match self.host.is_root {
            true => Some(host::user(user).ok_or_else(|| format!("there is no user {user}"))?),
            false => None,
        };
        let is_open = owner.is_none() || is_open(self.parent);
        let parent = if is_open && is_plain(self.parent) { self.parent } else { Path::new(OPEN_FOLDER) };
        Ok((Folder::of(parent, owner).map_err(|e| e.to_string())?, owner))
    }

    /// Runs a program to its end.
    fn prepare(&self, words: &[String], folder: &Folder, owner: Option<(u32, u32)>) -> Result<(), String> {
        let log = folder.path().join("prepare.log");
        let child = Child::start(self.host, &[], words, &log, owner)?;
        child.finish(PATIENCE, self.stop).map(drop)
    }

    fn serve(
        &self,
        words: &[String],
        folder: Folder,
        owner: Option<(u32, u32)>,
        port: u16,
        is_ready: impl Fn() -> bool,
    ) -> Result<Running, String> {
        let log = folder.path().join("server.log");
        let mut child = Child::start(self.host, &self.host.server_cpus, words, &log, owner)?;
        child.wait_until(PATIENCE, self.stop, is_ready)?;
        Ok(Running { port, _child: child, _folder: folder })
    }
}

fn port() -> Result<u16, String> {
    free_port(Ipv4Addr::LOCALHOST).map_err(|e| format!("no free port: {e}"))
}

fn answers(port: u16) -> bool {
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()
}

/// Whether any user may pass through all folders that lead to this one.
fn is_open(folder: &Path) -> bool {
    const PASS_OTHERS: u32 = 0o001;
    folder.ancestors().all(|one| one.metadata().is_ok_and(|found| found.mode() & PASS_OTHERS != 0))
}

/// Whether the programs that make databases get along with a folder's path: one with a blank is several words to their
/// scripts, and a long one is cut off.
fn is_plain(folder: &Path) -> bool {
    let path = folder.as_os_str().as_encoded_bytes();
    path.len() <= PATH_BYTES_MAX
        && path.iter().all(|byte| byte.is_ascii_alphanumeric() || b"/._-".contains(byte))
}

/// A command whose temporary files are in its own folder: that of this process may be closed to the database's user.
fn words(program: &Path, home: &Path, arguments: &[String]) -> Vec<String> {
    let command = ["env".to_string(), format!("TMPDIR={}", home.display()), program.display().to_string()];
    command.into_iter().chain(arguments.iter().cloned()).collect()
}

fn mariadb(place: &Place<'_>) -> Result<Running, String> {
    let missing = |name: &str| format!("there is no {name}");
    let daemon = host::program("mariadbd", &[]).ok_or_else(|| missing("mariadbd"))?;
    let install = host::program("mariadb-install-db", &[]).ok_or_else(|| missing("mariadb-install-db"))?;
    let (folder, owner) = place.home("mysql")?;
    let home = folder.path().display().to_string();
    let data = format!("--datadir={home}/data");
    let made = ["--no-defaults", &data, "--auth-root-authentication-method=normal", "--skip-test-db"];
    place.prepare(&words(&install, folder.path(), &made.map(str::to_string)), &folder, owner)?;
    let port = port()?;
    let served = [
        "--no-defaults".to_string(),
        data,
        // In its own folder: a longer path than 107 bytes is no socket.
        "--socket=s".to_string(),
        format!("--port={port}"),
        "--bind-address=127.0.0.1".to_string(),
        format!("--pid-file={home}/pid"),
        "--innodb-buffer-pool-size=32M".to_string(),
    ];
    let words = words(&daemon, folder.path(), &served);
    place.serve(&words, folder, owner, port, || answers(port))
}

fn postgres(place: &Place<'_>) -> Result<Running, String> {
    let mut versions: Vec<PathBuf> = std::fs::read_dir(POSTGRES)
        .map(|entries| entries.flatten().map(|entry| entry.path().join("bin")).collect())
        .unwrap_or_default();
    versions.sort();
    // Debian's own come first: what else is in PATH may be a wrapper.
    let find = |name: &str| {
        let own = versions.iter().rev().map(|place| place.join(name)).find(|file| file.is_file());
        own.or_else(|| host::program(name, &[])).ok_or_else(|| format!("there is no {name} of PostgreSQL"))
    };
    let (init, daemon) = (find("initdb")?, find("postgres")?);
    let (folder, owner) = place.home("postgres")?;
    let home = folder.path().display().to_string();
    let data = format!("{home}/data");
    let made = ["-D", &data, "-A", "trust", "-U", "postgres", "--no-sync"];
    place.prepare(&words(&init, folder.path(), &made.map(str::to_string)), &folder, owner)?;
    let port = port()?;
    let served = [
        "-D".to_string(),
        data.clone(),
        "-p".to_string(),
        port.to_string(),
        "-c".to_string(),
        "listen_addresses=127.0.0.1".to_string(),
        "-c".to_string(),
        "unix_socket_directories=".to_string(),
    ];
    // It listens before it accepts clients.
    let state = PathBuf::from(data).join("postmaster.pid");
    let is_ready = || std::fs::read_to_string(&state).is_ok_and(|text| text.contains("ready"));
    let words = words(&daemon, folder.path(), &served);
    place.serve(&words, folder, owner, port, is_ready)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_mariadb_starts_wherever_its_files_are_to_be() {
        if host::program("mariadbd", &[]).is_none() {
            return eprintln!("SKIPPED: there is no mariadbd");
        }
        let (host, stop) = (Host::look(), AtomicBool::new(false));
        let outer = Folder::new(&std::env::temp_dir()).expect("there is a temporary folder");
        let long = format!("{}/{}", "x".repeat(200), "y".repeat(100));
        for name in [long.as_str(), "with a blank"] {
            let parent = outer.path().join(name);
            std::fs::create_dir_all(&parent).expect("it is ours");
            let place = Place { host: &host, stop: &stop, parent: &parent };
            let started = mariadb(&place).map(|running| answers(running.port));
            assert_eq!(started, Ok(true), "{name}");
        }
    }

    #[test]
    fn a_folder_below_a_closed_one_is_closed() {
        let outer = Folder::new(&std::env::temp_dir()).expect("there is a temporary folder");
        let inner = Folder::new(outer.path()).expect("it is ours");
        let open = is_open(inner.path());
        set_permissions(outer.path(), Permissions::from_mode(0o700)).expect("it is ours");
        assert!(!is_open(inner.path()));
        assert_eq!(open, is_open(&std::env::temp_dir()));
    }
}
