//! MariaDB and PostgreSQL, each created in a private folder, as the user that its packages bring, and what speaks
//! MongoDB's wire.

use super::mongodb::{self, mongodb};
use super::place::{Place, Running, answers, port};
use crate::counter::entry::Entry;
use crate::counter::store::Kind;
use crate::scenario::{Halt, Stage, host};
use std::path::{Path, PathBuf};
use std::thread;

/// Where Debian keeps the programs of PostgreSQL, a folder for each version.
const POSTGRES: &str = "/usr/lib/postgresql";

/// Databases that answer. Their servers end before their folders go.
#[derive(Debug, Default)]
pub struct Databases {
    mariadb: Option<Running>,
    postgres: Option<Running>,
    mongodb: Option<Running>,
}

impl Databases {
    /// Starts those that are installed; the others are noted.
    ///
    /// # Errors
    /// It was asked to stop.
    pub fn start(stage: &mut Stage<'_>) -> Result<Self, Halt> {
        stage.tell("making databases");
        let place = Place { host: stage.host, stop: stage.stop, parent: stage.folder() };
        let wants_mongodb = stage.options.mongodb.is_none();
        let (mariadb, mongodb, postgres) = thread::scope(|scope| {
            let mariadb = scope.spawn(|| mariadb(&place));
            let mongodb = scope.spawn(|| wants_mongodb.then(|| mongodb(&place)));
            let postgres = postgres(&place);
            let joined = "a start does not panic";
            (mariadb.join().expect(joined), mongodb.join().expect(joined), postgres)
        });
        stage.go_on()?;
        let mut kept = |name: &str, started: Result<Running, String>| {
            started.map_err(|why| stage.part.note(format!("{name} skipped: {why}"))).ok()
        };
        Ok(Self {
            mariadb: kept("mariadb", mariadb),
            postgres: kept("postgres", postgres),
            mongodb: mongodb.and_then(|started| kept(mongodb::LABEL, started)),
        })
    }

    /// The stores that they are, and where.
    pub fn addresses(&self) -> Vec<Entry> {
        let mut all = Vec::new();
        let mut add = |label: &str, kind: Kind, address: String| {
            all.push(Entry { label: label.to_string(), kind, address });
        };
        if let Some(Running { port, .. }) = &self.mariadb {
            for kind in [Kind::MariadbMemory, Kind::MariadbOrm, Kind::MariadbInnodb] {
                add(kind.name(), kind, format!("mysql://root@127.0.0.1:{port}/"));
            }
        }
        if let Some(Running { port, .. }) = &self.postgres {
            for kind in [Kind::PostgresUnlogged, Kind::Postgres] {
                add(kind.name(), kind, format!("postgres://postgres@127.0.0.1:{port}/postgres"));
            }
        }
        if let Some(Running { port, .. }) = &self.mongodb {
            add(mongodb::LABEL, Kind::Mongodb, format!("mongodb://127.0.0.1:{port}/"));
        }
        all
    }
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
    let (folder, owner) = place.home(Some("mysql"))?;
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
    let (folder, owner) = place.home(Some("postgres"))?;
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
    use crate::scenario::Host;
    use crate::scenario::folder::Folder;
    use std::sync::atomic::AtomicBool;

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
}
