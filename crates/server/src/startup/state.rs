//! The state file: all of a store's memory, saved when a daemon stops and taken over by the next one, even after
//! the machine was restarted. Its first page identifies it: a file whose checksum is wrong is no state of Larder's,
//! and is left as it is. The memory follows, with holes.
//!
//! A state is used for one start only. Once the next daemon has changed anything, the file would bring deleted
//! items back; so it is removed before the first connection is served, whatever came of it. A start that is refused
//! leaves it.
//!
//! A state is saved under its name with `.new` behind it, and begins with a page that announces no memory.

mod page;
#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crc_fast::{CrcAlgorithm, Digest};
use larder_store::Seconds;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use super::owned_file;
use crate::clock::Clock;

use page::{AT_BASE, AT_BYTES, AT_SECOND, AT_SUM, PAGE_BYTES, VERSION, encode, read_page, word};

/// The offset of the memory in the file.
pub const MEMORY_OFFSET: u64 = PAGE_BYTES as u64;
/// Bytes that are copied at a time.
const CHUNK_BYTES: usize = 1 << 20;

/// The result of looking for a state.
pub enum LoadedState {
    /// There is none.
    Nothing,
    /// Its memory has been loaded, and the times of its items are on this clock.
    State(Clock),
    /// A state file that cannot be used, and why. The text completes "it ...".
    Useless(String),
}

/// The file that holds a daemon's state between two of its runs.
pub struct StateFile {
    /// As the operator gave it.
    shown: String,
    /// Without symbolic links.
    path: PathBuf,
    /// The state that was loaded, until it is spent.
    loaded: Option<File>,
}

impl StateFile {
    /// Returns the state file at `path`, which need not be there.
    ///
    /// # Errors
    /// A text for the operator: its directory is missing, or not to be trusted.
    pub fn new(path: &Path) -> Result<StateFile, String> {
        let shown = format!("--state-file {}", path.display());
        let path = owned_file::resolve(path).map_err(|error| format!("{shown}: {error}"))?;
        Ok(StateFile { shown, path, loaded: None })
    }

    fn fail(&self) -> impl Fn(io::Error) -> String + use<> {
        let shown = self.shown.clone();
        move |error| format!("{shown}: {error}")
    }

    /// Returns the name under which a state is written.
    fn unfinished(&self) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(".new");
        PathBuf::from(name)
    }

    /// Checks now whether a state can be saved at the end.
    ///
    /// # Errors
    /// A text for the operator: the directory cannot be written to, or a file in the way is not Larder's.
    pub fn try_place(&self) -> Result<(), String> {
        let unfinished = self.unfinished();
        let cannot = |error| format!("{}: no state can be saved there: {error}", self.shown);
        drop(begin(&unfinished).map_err(cannot)?);
        fs::remove_file(&unfinished).map_err(cannot)
    }

    /// Copies a saved state into `memory`, an empty file. The state stays until it is [spent](Self::spend).
    ///
    /// # Errors
    /// A text for the operator: the file cannot be read, or is not a state file.
    pub fn load(&mut self, memory: &File) -> Result<LoadedState, String> {
        let fail = self.fail();
        match fs::symlink_metadata(&self.path) {
            Ok(metadata) => {
                owned_file::check(&metadata).map_err(|error| format!("{}: {error}", self.shown))?
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(LoadedState::Nothing),
            Err(error) => return Err(fail(error)),
        }
        let file = open(&self.path).map_err(&fail)?;
        let page = read_page(&file).map_err(&fail)?.ok_or_else(|| {
            format!(
                "{}: this is not a state file, or a damaged one; remove it or give another path",
                self.shown
            )
        })?;
        let found = match read(&file, &page, memory) {
            Ok(clock) => LoadedState::State(clock),
            Err(why) => LoadedState::Useless(why),
        };
        self.loaded = Some(file);
        Ok(found)
    }

    /// Makes sure that the state which was loaded is never loaded again.
    ///
    /// # Errors
    /// A text for the operator: the file cannot be written or removed.
    pub fn spend(&mut self) -> Result<(), String> {
        let Some(file) = self.loaded.take() else { return Ok(()) };
        let fail = self.fail();
        // Overwritten before it is removed: a name that reappears after a power cut leads to no state.
        file.write_all_at(&[0; PAGE_BYTES], 0).and_then(|()| file.sync_data()).map_err(&fail)?;
        fs::remove_file(&self.path).map_err(fail)
    }

    /// Saves `memory`, whose items' times are on `clock`. Returns its bytes. The file appears only when all of it
    /// is on the disk.
    ///
    /// # Errors
    /// A text for the operator; nothing is left behind then.
    pub fn save(&self, memory: &File, clock: &Clock) -> Result<u64, String> {
        let fail = |error| format!("{}: {error}; the next start is cold", self.shown);
        let unfinished = self.unfinished();
        let file = begin(&unfinished).map_err(fail)?;
        let written = write(&file, memory, clock);
        let saved = written.and_then(|bytes| put_in_place(&unfinished, &self.path).map(|()| bytes));
        saved.map_err(|error| {
            let _ = fs::remove_file(&unfinished);
            fail(error)
        })
    }
}

/// Opens a file that is there, and is not a link.
fn open(path: &Path) -> io::Result<File> {
    let no_follow = rustix::fs::OFlags::NOFOLLOW.bits() as i32;
    File::options().read(true).write(true).custom_flags(no_follow).open(path)
}

/// Returns whether a file at the path is a state, whole or not, and may be replaced.
fn is_state(path: &Path) -> io::Result<bool> {
    Ok(fs::symlink_metadata(path)?.is_file() && read_page(&open(path)?)?.is_some())
}

/// Makes the file that a state is written to. One that an earlier daemon did not finish is replaced.
fn begin(path: &Path) -> io::Result<File> {
    let make = || File::options().read(true).write(true).create_new(true).mode(0o600).open(path);
    let file = match make() {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            if !is_state(path)? {
                let text = format!("{} is in the way and not Larder's; remove it", path.display());
                return Err(io::Error::other(text));
            }
            fs::remove_file(path)?;
            make()?
        }
        made => made?,
    };
    let begun = file.write_all_at(&encode(0, 0, 0, 0), 0);
    begun.inspect_err(|_| drop(fs::remove_file(path)))?;
    Ok(file)
}

/// Gives a written state its name, which is free or a state's.
fn put_in_place(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS) if fs::symlink_metadata(to).is_err() => fs::rename(from, to),
        Err(Errno::EXIST | Errno::INVAL | Errno::NOSYS) if is_state(to)? => fs::rename(from, to),
        renamed => Ok(renamed?),
    }
}

/// Copies the memory of a state file into `memory`. Returns its clock, or why it cannot be used.
fn read(file: &File, page: &[u8; PAGE_BYTES], memory: &File) -> Result<Clock, String> {
    let version = u32::from_le_bytes([page[8], page[9], page[10], page[11]]);
    if version != VERSION {
        return Err(format!("is of another version ({version}; this one's is {VERSION})"));
    }
    let bytes = word(page, AT_BYTES);
    if bytes == 0 {
        return Err("was not completely saved".into());
    }
    let failed = |error: io::Error| format!("cannot be read: {error}");
    if file.metadata().map_err(failed)?.len() != PAGE_BYTES as u64 + bytes {
        return Err("is not as long as it was".into());
    }
    memory.set_len(bytes).map_err(failed)?;
    let mut sum = Digest::new(CrcAlgorithm::Crc64Nvme);
    each_chunk(bytes, |at, chunk| {
        file.read_exact_at(chunk, PAGE_BYTES as u64 + at)?;
        sum.update(chunk);
        write_unless_zero(memory, chunk, at)
    })
    .map_err(failed)?;
    if sum.finalize() != word(page, AT_SUM) {
        let _ = memory.set_len(0);
        return Err("is damaged".into());
    }
    Ok(Clock::going_on(word(page, AT_BASE) as i64, Seconds(word(page, AT_SECOND) as u32)))
}

/// Writes a state, its page last.
fn write(file: &File, memory: &File, clock: &Clock) -> io::Result<u64> {
    let bytes = memory.metadata()?.len();
    file.set_len(PAGE_BYTES as u64 + bytes)?;
    let mut sum = Digest::new(CrcAlgorithm::Crc64Nvme);
    each_chunk(bytes, |at, chunk| {
        memory.read_exact_at(chunk, at)?;
        sum.update(chunk);
        write_unless_zero(file, chunk, PAGE_BYTES as u64 + at)
    })?;
    file.write_all_at(&encode(clock.unix_base(), clock.now().0, bytes, sum.finalize()), 0)?;
    file.sync_all()?;
    Ok(bytes)
}

fn each_chunk(bytes: u64, mut copy: impl FnMut(u64, &mut [u8]) -> io::Result<()>) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK_BYTES];
    for at in (0..bytes).step_by(CHUNK_BYTES) {
        let len = (bytes - at).min(CHUNK_BYTES as u64) as usize;
        copy(at, &mut chunk[..len])?;
    }
    Ok(())
}

/// Writes a chunk, unless it is all zero: memory that was never used stays a hole.
fn write_unless_zero(file: &File, chunk: &[u8], at: u64) -> io::Result<()> {
    match chunk.iter().all(|&byte| byte == 0) {
        true => Ok(()),
        false => file.write_all_at(chunk, at),
    }
}
