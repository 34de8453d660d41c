//! The state file: all of a store's memory, saved when a daemon stops and taken over by the next one, even
//! when the machine was started anew in between.
//!
//! ```text
//! byte  0       8         12      16          24       32      40      48     4096
//!       +-------+---------+-------+-----------+--------+-------+-------+------+------------
//!       | magic | version | crc   | unix base | second | bytes | sum   | zero | the memory,
//!       | 8     | 4       | 32c 4 | 8         | 8      | 8     | 8     |      | with holes
//!       +-------+---------+-------+-----------+--------+-------+-------+------+------------
//! ```
//! All integers little endian. `crc` is over the page with its own field zero, `sum` is the CRC-64/NVME of
//! the `bytes` of memory. The items' times are on a clock that had its second 0 at Unix time `unix base` and
//! came to `second`: the next daemon's goes on from there.
//!
//! Magic, version and checksum lie where they are in every version. A page whose checksum is wrong is no state
//! of Larder's, and is left as it is.
//!
//! A state is good for one start. Once the next daemon has changed anything, the file would bring back what
//! was deleted since; so it is gone from the disk before the first connection is served, whatever came of it.
//! A start that is refused leaves it.
//!
//! A state is saved under its name with `.new` behind it, which begins with a page of no memory.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use crc_fast::{CrcAlgorithm, Digest, checksum};
use larder_store::Seconds;

use crate::clock::Clock;
use crate::owned_file;

/// Where in the file the memory begins.
pub const MEMORY_OFFSET: u64 = PAGE_BYTES as u64;
const PAGE_BYTES: usize = 4096;
const MAGIC: [u8; 8] = *b"LARDERST";
const VERSION: u32 = 1;
const AT_CRC: usize = 12;
const AT_BASE: usize = 16;
const AT_SECOND: usize = 24;
const AT_BYTES: usize = 32;
const AT_SUM: usize = 40;
/// How much is copied at a time.
const CHUNK_BYTES: usize = 1 << 20;

/// What a state file was found to be.
pub enum Found {
    /// There is none.
    Nothing,
    /// It is in the memory now, and its items' times are on this clock.
    State(Clock),
    /// It is one, and of no use. The text completes "it ...".
    Useless(String),
}

/// Where a daemon's state goes between two of its runs.
pub struct StateFile {
    /// As the operator gave it.
    shown: String,
    /// Without symbolic links.
    path: PathBuf,
    /// The state that was loaded, until it is spent.
    loaded: Option<File>,
}

impl StateFile {
    /// The state file at `path`, which need not be there.
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

    /// The name under which a state is written.
    fn unfinished(&self) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(".new");
        PathBuf::from(name)
    }

    /// Tries now whether a state can be saved at the end.
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
    pub fn load(&mut self, memory: &File) -> Result<Found, String> {
        let fail = self.fail();
        match fs::symlink_metadata(&self.path) {
            Ok(metadata) => {
                owned_file::check(&metadata).map_err(|error| format!("{}: {error}", self.shown))?
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
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
            Ok(clock) => Found::State(clock),
            Err(why) => Found::Useless(why),
        };
        self.loaded = Some(file);
        Ok(found)
    }

    /// Sees to it that the state which was loaded is never loaded again.
    ///
    /// # Errors
    /// A text for the operator: the file cannot be written or removed.
    pub fn spend(&mut self) -> Result<(), String> {
        let Some(file) = self.loaded.take() else { return Ok(()) };
        let fail = self.fail();
        // First made useless, then removed: a name that comes back after a power cut leads to nothing.
        file.write_all_at(&[0; PAGE_BYTES], 0).and_then(|()| file.sync_data()).map_err(&fail)?;
        fs::remove_file(&self.path).map_err(fail)
    }

    /// Saves `memory`, whose items' times are on `clock`; returns its bytes. The file is there only when all
    /// of it is on the disk.
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

/// Reads the first page of a state: `None` when it is not one of Larder's.
fn read_page(file: &File) -> io::Result<Option<[u8; PAGE_BYTES]>> {
    let mut page = [0; PAGE_BYTES];
    match file.read_exact_at(&mut page, 0) {
        Ok(()) => Ok((page[..8] == MAGIC && page_crc(&page) == page[AT_CRC..AT_BASE]).then_some(page)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether a file at the path is a state, whole or not, and may be replaced.
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

fn word(page: &[u8; PAGE_BYTES], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&page[at..at + 8]);
    u64::from_le_bytes(bytes)
}

fn page_crc(page: &[u8; PAGE_BYTES]) -> [u8; 4] {
    let mut page = *page;
    page[AT_CRC..AT_BASE].fill(0);
    (checksum(CrcAlgorithm::Crc32Iscsi, &page) as u32).to_le_bytes()
}

/// Copies the memory of a state file into `memory`; answers its clock, or why it is of no use.
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

/// The first page of a state.
fn encode(unix_base: i64, second: u32, bytes: u64, sum: u64) -> [u8; PAGE_BYTES] {
    let mut page = [0; PAGE_BYTES];
    page[..8].copy_from_slice(&MAGIC);
    page[8..AT_CRC].copy_from_slice(&VERSION.to_le_bytes());
    page[AT_BASE..AT_SECOND].copy_from_slice(&unix_base.to_le_bytes());
    page[AT_SECOND..AT_BYTES].copy_from_slice(&u64::from(second).to_le_bytes());
    page[AT_BYTES..AT_SUM].copy_from_slice(&bytes.to_le_bytes());
    page[AT_SUM..AT_SUM + 8].copy_from_slice(&sum.to_le_bytes());
    let crc = page_crc(&page);
    page[AT_CRC..AT_BASE].copy_from_slice(&crc);
    page
}

fn each_chunk(bytes: u64, mut copy: impl FnMut(u64, &mut [u8]) -> io::Result<()>) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK_BYTES];
    for at in (0..bytes).step_by(CHUNK_BYTES) {
        let len = (bytes - at).min(CHUNK_BYTES as u64) as usize;
        copy(at, &mut chunk[..len])?;
    }
    Ok(())
}

/// Memory that was never used stays a hole.
fn write_unless_zero(file: &File, chunk: &[u8], at: u64) -> io::Result<()> {
    match chunk.iter().all(|&byte| byte == 0) {
        true => Ok(()),
        false => file.write_all_at(chunk, at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("larder-state-{}-{name}", std::process::id()));
            fs::create_dir(&path).expect("the temporary directory can be written");
            Folder(path)
        }

        fn file(&self, name: &str) -> File {
            let mut options = File::options();
            options
                .read(true)
                .write(true)
                .create(true)
                .truncate(true)
                .open(self.0.join(name))
                .expect("a file")
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    const BASE: i64 = 1_700_000_000;

    fn is_useless(found: &Result<Found, String>) -> bool {
        matches!(found, Ok(Found::Useless(_)))
    }

    /// Loads the state and spends it.
    fn take(state: &mut StateFile, memory: &File) -> Result<Found, String> {
        let found = state.load(memory)?;
        state.spend().map(|()| found)
    }

    fn is_gone(state: &mut StateFile, folder: &Folder) -> bool {
        matches!(take(state, &folder.file("next")), Ok(Found::Nothing))
    }

    /// A memory of three and a half chunks with a hole in it, and its state.
    fn saved(folder: &Folder) -> (StateFile, Vec<u8>) {
        let memory = folder.file("memory");
        let mut bytes = vec![0; CHUNK_BYTES * 7 / 2];
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = if at / CHUNK_BYTES == 1 { 0 } else { (at / 16 * 7) as u8 };
        }
        memory.write_all_at(&bytes, 0).expect("room");
        let state = StateFile::new(&folder.0.join("state")).expect("a folder");
        assert_eq!(state.save(&memory, &Clock::going_on(BASE, Seconds(5))), Ok(bytes.len() as u64));
        assert!(!folder.0.join("state.new").exists());
        (state, bytes)
    }

    #[test]
    fn what_was_saved_is_taken_once() {
        let folder = Folder::new("once");
        let (mut state, bytes) = saved(&folder);
        for _ in 0..2 {
            let next = folder.file("next");
            let Ok(Found::State(clock)) = state.load(&next) else { panic!("it is whole") };
            assert_eq!(clock.unix_base(), BASE);
            let mut got = vec![1; bytes.len()];
            next.read_exact_at(&mut got, 0).expect("as long");
            assert!(got == bytes && next.metadata().is_ok_and(|data| data.len() == bytes.len() as u64));
            // A start that is refused now leaves the state, until one spends it.
        }
        state.spend().expect("it can be removed");
        assert!(is_gone(&mut state, &folder));
    }

    #[test]
    fn no_damage_goes_unseen_and_none_is_taken_twice() {
        let folder = Folder::new("damage");
        for at in [PAGE_BYTES, PAGE_BYTES + CHUNK_BYTES + 5, PAGE_BYTES + 3 * CHUNK_BYTES] {
            let (mut state, _) = saved(&folder);
            flip(&folder, at);
            assert!(is_useless(&take(&mut state, &folder.file("next"))), "byte {at}");
            assert!(is_gone(&mut state, &folder), "byte {at}");
        }
        let (mut state, bytes) = saved(&folder);
        let file = File::options().write(true).open(folder.0.join("state")).expect("there");
        file.set_len(bytes.len() as u64).expect("shorter");
        assert!(is_useless(&take(&mut state, &folder.file("next"))));
        let (mut state, _) = saved(&folder);
        let mut page = encode(0, 0, 0, 0);
        page[8] = 7;
        let crc = page_crc(&page);
        page[AT_CRC..AT_BASE].copy_from_slice(&crc);
        fs::write(folder.0.join("state"), page).expect("room");
        let Ok(Found::Useless(why)) = take(&mut state, &folder.file("next")) else { panic!("not ours") };
        assert!(why.contains("another version (7;"), "{why}");
    }

    fn flip(folder: &Folder, at: usize) {
        let file = File::options().read(true).write(true).open(folder.0.join("state")).expect("there");
        let mut byte = [0];
        file.read_exact_at(&mut byte, at as u64).expect("so long");
        file.write_all_at(&[byte[0] ^ 4], at as u64).expect("room");
    }

    #[test]
    fn a_page_that_is_not_whole_is_refused_and_left_as_it_is() {
        let folder = Folder::new("page");
        for at in [2, 9, 13, 20, 30, 36, 100, 4_095] {
            let (mut state, _) = saved(&folder);
            flip(&folder, at);
            let before = fs::read(folder.0.join("state")).expect("there");
            assert!(take(&mut state, &folder.file("next")).is_err(), "byte {at}");
            assert!(fs::read(folder.0.join("state")).expect("there") == before, "byte {at}");
            fs::remove_file(folder.0.join("state")).expect("there");
        }
    }

    #[test]
    fn a_file_of_somebody_else_is_refused_and_left_as_it_is() {
        let folder = Folder::new("foreign");
        let path = folder.0.join("letter");
        for text in ["", "dear reader", &"x".repeat(9000), "LARDERST is how a state begins"] {
            fs::write(&path, text).expect("room");
            let mut state = StateFile::new(&path).expect("a folder");
            assert!(state.load(&folder.file("next")).is_err());
            let memory = folder.file("memory");
            memory.set_len(5000).expect("room");
            assert!(state.save(&memory, &Clock::new()).is_err(), "one that came meanwhile");
            assert_eq!(fs::read_to_string(&path).expect("still there"), *text);
            assert!(!folder.0.join("letter.new").exists());
        }
        fs::write(folder.0.join("other.new"), "somebody's").expect("room");
        let state = StateFile::new(&folder.0.join("other")).expect("a folder");
        let said = state.try_place().expect_err("it is in the way");
        assert!(said.contains("other.new is in the way"), "{said}");
        assert_eq!(fs::read(folder.0.join("other.new")).expect("still there"), b"somebody's");
    }

    #[test]
    fn a_link_in_the_way_of_a_state_is_not_followed() {
        let folder = Folder::new("link");
        fs::write(folder.0.join("letter"), "dear reader").expect("room");
        std::os::unix::fs::symlink("letter", folder.0.join("state.new")).expect("a link");
        let state = StateFile::new(&folder.0.join("state")).expect("a folder");
        assert!(state.try_place().is_err());
        assert_eq!(fs::read(folder.0.join("letter")).expect("still there"), b"dear reader");
    }

    #[test]
    fn an_unfinished_state_is_replaced() {
        let folder = Folder::new("unfinished");
        let state = StateFile::new(&folder.0.join("state")).expect("a folder");
        drop(begin(&folder.0.join("state.new")).expect("room"));
        state.try_place().expect("it is an own one");
        assert!(!folder.0.join("state.new").exists());
        saved(&folder);
    }

    #[test]
    fn a_place_that_cannot_be_written_is_said_and_leaves_nothing() {
        let folder = Folder::new("nowhere");
        let said = StateFile::new(&folder.0.join("missing/state")).map(|_| ()).expect_err("no such folder");
        assert!(said.contains("missing/state") && said.contains("create it first"), "{said}");
        let state = StateFile::new(&folder.0.join("later/state"));
        assert!(state.is_err());
        fs::create_dir(folder.0.join("later")).expect("a folder");
        let state = StateFile::new(&folder.0.join("later/state")).expect("a folder");
        fs::remove_dir(folder.0.join("later")).expect("it is empty");
        let said = state.try_place().expect_err("there is no such folder");
        assert!(said.contains("no state can be saved there"), "{said}");
        let said = state.save(&folder.file("memory"), &Clock::new()).expect_err("there is no such folder");
        assert!(said.contains("later/state") && said.contains("cold"), "{said}");
    }
}
