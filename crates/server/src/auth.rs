//! Users and their rights: the table of users, read from a file, and the requests that each of them may send.
//!
//! ```text
//!   file --> table (digests of the credentials) --> rights (of one user, kept by its connections)
//!                     throttle (when a login is answered)
//! ```
//!
//! Until the file is read, the table is empty, and every login fails.

mod rights;
mod table;
mod throttle;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

pub use rights::{Rights, Role};

use table::{LINE_BYTES_MAX, Table, USERS_MAX};
use throttle::Throttle;

use crate::small_file;

/// The most bytes of the file: every user on the longest line, in a section of its own.
const BYTES_MAX: u64 = 2 * (USERS_MAX * (LINE_BYTES_MAX + 2)) as u64;

/// The warning of a line that looks like a comment.
const COMMENTED: &str = "# begins no comment here, as in memcached: it is a part of the user's name, and \
                         that user is let in; delete the line if nobody may log in by it";

/// The users of a daemon, and how many logins failed of late.
pub struct Auth {
    path: PathBuf,
    table: Mutex<Arc<Table>>,
    throttle: Mutex<Throttle>,
}

/// The outcome of reading the file.
#[derive(Debug)]
pub struct Loaded {
    /// The number of users.
    pub users: usize,
    /// Reasons to change the file or its permissions, each with the remedy.
    pub warnings: Vec<String>,
}

impl Auth {
    /// Returns an empty table, with which every login fails.
    pub fn new(path: &Path) -> Auth {
        Auth { path: path.to_path_buf(), table: Mutex::default(), throttle: Mutex::default() }
    }

    /// Reads the file, and lets in the users it names from now on. Connections that are authenticated stay so, as in
    /// memcached.
    ///
    /// # Errors
    /// The problem with the file and its remedy. The users are the same as before then.
    pub fn load(&self) -> Result<Loaded, String> {
        let shown = self.path.display();
        let file =
            small_file::read(&self.path, BYTES_MAX).map_err(|problem| format!("{shown}: {problem}"))?;
        let table = Table::parse(&file.bytes).map_err(|problem| format!("{shown}: {problem}"))?;
        let (users, commented) = (table.users(), table.commented_line());
        *self.table.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(table);
        let commented = commented.map(|line| format!("line {line}: {COMMENTED}"));
        let warnings = small_file::exposure(file.mode).map(String::from).into_iter().chain(commented);
        Ok(Loaded { users, warnings: warnings.map(|warning| format!("{shown}: {warning}")).collect() })
    }

    /// Returns the rights of the user with these credentials. The time it takes depends on their length and the number
    /// of users alone.
    pub fn check(&self, user: &[u8], password: &[u8]) -> Option<Arc<Rights>> {
        let table = self.table.lock().unwrap_or_else(PoisonError::into_inner).clone();
        table.check(user, password)
    }

    /// Counts a login, and returns how long its answer has to wait. `failures` are those of its connection in a row,
    /// this one included; 0 for a login that succeeds.
    pub fn delay(&self, failures: u32, now: Instant) -> Duration {
        self.throttle.lock().unwrap_or_else(PoisonError::into_inner).delay(failures, now)
    }
}
