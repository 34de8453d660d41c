//! The file of a cache: found, checked, or made whole before it gets its name.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use rustix::fs::{AtFlags, FallocateFlags, FlockOperation, MemfdFlags, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::error::L1Error;
use super::header;
use super::layout::{BYTES_MAX, BYTES_MIN, Layout};
use super::mapping::Mapping;

const PAGE: u64 = 4096;
const NAME_BYTES_MAX: usize = 64;
/// How long another process may have the directory locked: making a file of 64 GiB takes seconds.
const BUSY_STEPS: u32 = 1000;
const BUSY_STEP: Duration = Duration::from_millis(20);

/// A mapped file that is a cache.
pub(super) struct CacheFile {
    pub(super) file: File,
    pub(super) mapping: Mapping,
    pub(super) layout: Layout,
    pub(super) seed: u64,
    /// Device and inode.
    pub(super) id: (u64, u64),
    /// `None` if it has no name.
    pub(super) path: Option<PathBuf>,
}

/// The size of a new file.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    /// At most so many bytes.
    pub(super) bytes: u64,
    /// The number of entries for which the index is made; `None` for one of 256 bytes each.
    pub(super) items: Option<u64>,
}

impl Wanted {
    /// Returns the size rounded to pages.
    fn check(self) -> Result<u64, L1Error> {
        let bytes = self.bytes / PAGE * PAGE;
        let is_inside = (BYTES_MIN..=BYTES_MAX).contains(&bytes);
        is_inside.then_some(bytes).ok_or(L1Error::Size { bytes: self.bytes, min: BYTES_MIN, max: BYTES_MAX })
    }

    fn layout(self, bytes: u64) -> Layout {
        Layout::new(bytes, self.items.unwrap_or(bytes / 256))
    }
}

/// Returns the directories that are tried where none is given, best first.
pub(super) fn default_directories() -> Vec<PathBuf> {
    let user = rustix::process::geteuid().as_raw();
    let shared = Path::new("/dev/shm");
    let own = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    let shared = shared.is_dir().then(|| shared.join(format!("larder-{user}")));
    shared.into_iter().chain(own.map(|own| own.join("larder"))).collect()
}

/// A directory that only this user changes, locked against other processes that open a cache in it.
pub(super) struct Directory {
    path: PathBuf,
    file: OwnedFd,
}

impl Directory {
    /// Opens a directory, and makes it with mode 0700 where it does not exist; its parent must.
    ///
    /// # Errors
    /// It cannot be opened, other users could change its contents, or another process keeps it locked.
    pub(super) fn open(path: &Path) -> Result<Directory, L1Error> {
        match rustix::fs::mkdir(path, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(io_error(path, error)),
        }
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
        let refuse = |reason| L1Error::Directory { path: path.to_path_buf(), reason };
        let file = match rustix::fs::open(path, flags, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::LOOP | Errno::NOTDIR) => return Err(refuse("it is a link or no directory")),
            Err(error) => return Err(io_error(path, error)),
        };
        let stat = rustix::fs::fstat(&file).map_err(|error| io_error(path, error))?;
        if stat.st_uid != rustix::process::geteuid().as_raw() {
            return Err(refuse("it belongs to another user"));
        }
        if stat.st_mode & 0o022 != 0 {
            return Err(refuse("other users may write to it"));
        }
        lock(&file, path)?;
        Ok(Directory { path: path.to_path_buf(), file })
    }

    /// Returns device and inode of the file with this name.
    pub(super) fn id_of(&self, name: &str) -> Option<(u64, u64)> {
        let stat = rustix::fs::statat(&self.file, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some((stat.st_dev, stat.st_ino))
    }

    /// Opens the cache with this name. Returns `None` if there is none that this version can use.
    ///
    /// # Errors
    /// The file is not this user's alone, or the system reports an error.
    pub(super) fn find(&self, name: &str) -> Result<Option<CacheFile>, L1Error> {
        let path = self.path.join(name);
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = match rustix::fs::openat(&self.file, name, flags, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP) => return Err(L1Error::File { path, reason: "it is a symbolic link" }),
            Err(error) => return Err(io_error(&path, error)),
        };
        let stat = rustix::fs::fstat(&file).map_err(|error| io_error(&path, error))?;
        if let Some(reason) = refusal(&stat) {
            return Err(L1Error::File { path, reason });
        }
        let bytes = stat.st_size.unsigned_abs();
        let is_whole = stat.st_blocks.unsigned_abs() * 512 >= bytes;
        if !is_whole || !(BYTES_MIN..=BYTES_MAX).contains(&bytes) || !bytes.is_multiple_of(PAGE) {
            return Ok(None);
        }
        let file = File::from(file);
        let mapping =
            Mapping::new(&file, bytes as usize).map_err(|error| L1Error::Io { path: path.clone(), error })?;
        Ok(header::read(&mapping, bytes).map(|(layout, seed)| CacheFile {
            file,
            mapping,
            layout,
            seed,
            id: (stat.st_dev, stat.st_ino),
            path: Some(path),
        }))
    }

    /// Makes a cache, under a name for the time being.
    ///
    /// # Errors
    /// The size is out of bounds, there is no room for it, or the system reports an error.
    pub(super) fn make(&self, name: &str, wanted: Wanted) -> Result<CacheFile, L1Error> {
        let bytes = wanted.check()?;
        let path = self.path.join(name);
        let free = self.free_bytes(&path)?;
        let capped = bytes.min(free / 2 / PAGE * PAGE);
        if capped < BYTES_MIN {
            return Err(L1Error::Full { path, bytes: BYTES_MIN * 2, free });
        }
        let new = temporary(name);
        let _ = rustix::fs::unlinkat(&self.file, &new, AtFlags::empty());
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.file, &new, flags, Mode::RUSR | Mode::WUSR);
        let file = File::from(file.map_err(|error| io_error(&path, error))?);
        let made = fill(file, wanted.layout(capped), Some(path), free);
        if made.is_err() {
            let _ = rustix::fs::unlinkat(&self.file, &new, AtFlags::empty());
        }
        made
    }

    /// Renames the new file to its final name. Processes that have mapped an earlier file of this name keep that.
    ///
    /// # Errors
    /// The error that the system reports.
    pub(super) fn publish(&self, name: &str) -> Result<(), L1Error> {
        rustix::fs::renameat(&self.file, temporary(name), &self.file, name)
            .map_err(|error| io_error(&self.path.join(name), error))
    }

    /// Removes the cache with this name; processes that have mapped it keep it. Returns whether there was one.
    ///
    /// # Errors
    /// The error that the system reports.
    pub(super) fn remove(&self, name: &str) -> Result<bool, L1Error> {
        match rustix::fs::unlinkat(&self.file, name, AtFlags::empty()) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(io_error(&self.path.join(name), error)),
        }
    }

    fn free_bytes(&self, path: &Path) -> Result<u64, L1Error> {
        let stat = rustix::fs::fstatvfs(&self.file).map_err(|error| io_error(path, error))?;
        // A tmpfs without a limit has no blocks.
        Ok(if stat.f_blocks == 0 { u64::MAX } else { stat.f_bavail.saturating_mul(stat.f_frsize) })
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // A child that was forked meanwhile has the same lock: closing it here would not end it.
        let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
    }
}

/// Makes a cache without a name, for this process and those it forks.
///
/// # Errors
/// The size is out of bounds, or the system reports an error.
pub(super) fn anonymous(wanted: Wanted) -> Result<CacheFile, L1Error> {
    let bytes = wanted.check()?;
    let shown = Path::new("(anonymous)");
    let file =
        rustix::fs::memfd_create("larder-l1", MemfdFlags::CLOEXEC).map_err(|error| io_error(shown, error))?;
    fill(File::from(file), wanted.layout(bytes), None, 0)
}

/// Checks the name of a cache.
///
/// # Errors
/// It is none.
pub(super) fn check_name(name: &str) -> Result<(), L1Error> {
    let is_ok = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    let is_name =
        (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_ok) && !name.starts_with('.');
    if is_name { Ok(()) } else { Err(L1Error::Name(name.to_string())) }
}

fn temporary(name: &str) -> String {
    format!(".{name}.new")
}

/// Returns why a file must not be used.
fn refusal(stat: &Stat) -> Option<&'static str> {
    if rustix::fs::FileType::from_raw_mode(stat.st_mode) != rustix::fs::FileType::RegularFile {
        Some("it is not a regular file")
    } else if stat.st_uid != rustix::process::geteuid().as_raw() {
        Some("it belongs to another user")
    } else if stat.st_mode & 0o077 != 0 {
        Some("other users may read or write it")
    } else if stat.st_nlink > 1 {
        Some("it has a second name")
    } else {
        None
    }
}

/// Takes all the room that the file will ever need, so that no access to it can fail later, and writes its header.
fn fill(file: File, layout: Layout, path: Option<PathBuf>, free: u64) -> Result<CacheFile, L1Error> {
    let shown = path.clone().unwrap_or_else(|| PathBuf::from("(anonymous)"));
    match rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, layout.bytes) {
        Ok(()) => {}
        Err(Errno::NOSPC | Errno::NOMEM) => {
            return Err(L1Error::Full { path: shown, bytes: layout.bytes, free });
        }
        Err(error) => return Err(io_error(&shown, error)),
    }
    let mapping = Mapping::new(&file, layout.bytes as usize);
    let mapping = mapping.map_err(|error| L1Error::Io { path: shown.clone(), error })?;
    let stat = rustix::fs::fstat(&file).map_err(|error| io_error(&shown, error))?;
    let seed = random(&shown)?;
    header::write(&mapping, &layout, seed);
    Ok(CacheFile { file, mapping, layout, seed, id: (stat.st_dev, stat.st_ino), path })
}

fn random(path: &Path) -> Result<u64, L1Error> {
    let mut seed = [0; 8];
    let read = rustix::rand::getrandom(&mut seed, rustix::rand::GetRandomFlags::empty());
    read.map_err(|error| io_error(path, error))?;
    Ok(u64::from_ne_bytes(seed))
}

fn lock(directory: &OwnedFd, path: &Path) -> Result<(), L1Error> {
    for _ in 0..BUSY_STEPS {
        match rustix::fs::flock(directory.as_fd(), FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            Err(Errno::WOULDBLOCK | Errno::INTR) => sleep(BUSY_STEP),
            Err(error) => return Err(io_error(path, error)),
        }
    }
    Err(L1Error::Busy(path.to_path_buf()))
}

fn io_error(path: &Path, error: Errno) -> L1Error {
    L1Error::Io { path: path.to_path_buf(), error: io::Error::from(error) }
}
