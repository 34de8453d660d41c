//! How a cache is opened.

use std::path::PathBuf;
use std::time::Duration;

/// How a cache is opened, or made where there is none.
///
/// ```no_run
/// let l1 = larder_client::L1Options::new().bytes(256 << 20).open("shop")?;
/// # Ok::<(), larder_client::L1Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct L1Options {
    pub(super) bytes: u64,
    pub(super) items: Option<u64>,
    pub(super) directory: Option<PathBuf>,
    pub(super) lock_patience: Duration,
}

impl Default for L1Options {
    fn default() -> Self {
        L1Options::new()
    }
}

impl L1Options {
    /// A cache of 64 MiB in the default directory.
    #[must_use]
    pub fn new() -> L1Options {
        L1Options { bytes: 64 << 20, items: None, directory: None, lock_patience: Duration::from_secs(1) }
    }

    /// The size of a new file in bytes, 512 KiB to 64 GiB; 64 MiB by default. It is capped at half of the free space
    /// of the file system. An existing file keeps its size.
    #[must_use]
    pub fn bytes(mut self, bytes: u64) -> L1Options {
        self.bytes = bytes;
        self
    }

    /// About how many entries there will be, to size the index of a file that is made: 16 bytes each. By default one
    /// for every 256 bytes of the file. The index takes a quarter of the file at most.
    #[must_use]
    pub fn items(mut self, items: u64) -> L1Options {
        self.items = Some(items);
        self
    }

    /// The directory of the file, which is made with mode 0700 where it does not exist. It must belong to this user,
    /// with no write permission for others, and should be on a tmpfs. By default `/dev/shm/larder-UID`, or `larder` in
    /// `XDG_RUNTIME_DIR` where the first cannot be made.
    #[must_use]
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> L1Options {
        self.directory = Some(directory.into());
        self
    }

    /// The time after which a lock is taken from a process that holds it and does not go on, such as one that was
    /// stopped; then a part of the cache is emptied. 1 s by default. A process that was killed holds no lock.
    #[must_use]
    pub fn lock_patience(mut self, patience: Duration) -> L1Options {
        self.lock_patience = patience;
        self
    }
}
