//! Where the servers of databases are started: folders, users, ports.

use crate::scenario::child::Child;
use crate::scenario::folder::Folder;
use crate::scenario::server::free_port;
use crate::scenario::{Host, host};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);
/// Bytes of a path below which a database may have its files.
const PATH_BYTES_MAX: usize = 150;
/// A folder that a database's own user can reach, where the chosen one is closed to it or its path is none for it.
const OPEN_FOLDER: &str = "/var/tmp";

/// A server that answers, and its port of loopback.
#[derive(Debug)]
pub struct Running {
    /// Where it listens.
    pub port: u16,
    _child: Child,
    _folder: Folder,
}

/// The inputs of a start, shared with other threads.
pub struct Place<'a> {
    /// This machine.
    pub host: &'a Host,
    /// Ends it early.
    pub stop: &'a AtomicBool,
    /// The folder for the servers' files, if their users can reach it.
    pub parent: &'a Path,
}

impl Place<'_> {
    /// Returns its folder, and the user to run it: databases refuse to run as root.
    ///
    /// # Errors
    /// There is no such user, or the folder cannot be made.
    pub fn home(&self, user: Option<&str>) -> Result<(Folder, Option<(u32, u32)>), String> {
        let owner = match user {
            Some(user) if self.host.is_root => {
                Some(host::user(user).ok_or_else(|| format!("there is no user {user}"))?)
            }
            _ => None,
        };
        let is_open = owner.is_none() || is_open(self.parent);
        let parent = if is_open && is_plain(self.parent) { self.parent } else { Path::new(OPEN_FOLDER) };
        Ok((Folder::of(parent, owner).map_err(|e| e.to_string())?, owner))
    }

    /// Runs a program to its end.
    ///
    /// # Errors
    /// It cannot be started, ended badly or took too long; in words.
    pub fn prepare(
        &self,
        words: &[String],
        folder: &Folder,
        owner: Option<(u32, u32)>,
    ) -> Result<(), String> {
        let log = folder.path().join("prepare.log");
        let child = Child::start(self.host, &[], words, &log, owner)?;
        child.finish(PATIENCE, self.stop).map(drop)
    }

    /// Starts a server, and waits until it is ready.
    ///
    /// # Errors
    /// It cannot be started, or is not ready in time; in words.
    pub fn serve(
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

/// A free port of loopback.
///
/// # Errors
/// There is none.
pub fn port() -> Result<u16, String> {
    free_port(Ipv4Addr::LOCALHOST).map_err(|e| format!("no free port: {e}"))
}

/// Whether a server accepts connections at a port of loopback.
pub fn answers(port: u16) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt;

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
