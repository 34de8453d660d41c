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
//! A state is good for one start. Once the next daemon has changed anything, the file would bring back what
//! was deleted since; so it is gone from the disk before the first connection is served, whatever came of it.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crc_fast::{CrcAlgorithm, Digest, checksum};
use larder_store::Seconds;

use crate::clock::Clock;

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
    path: PathBuf,
}

impl StateFile {
    /// The state file at `path`, which need not be there.
    pub fn new(path: &Path) -> StateFile {
        StateFile { path: path.to_path_buf() }
    }

    /// Copies a saved state into `memory`, an empty file, and sees to it that nobody ever does so again.
    ///
    /// # Errors
    /// A text for the operator: the file cannot be read or removed, or is not a state file.
    pub fn take(&self, memory: &File) -> Result<Found, String> {
        let shown = self.path.display();
        let fail = |error: io::Error| format!("--state-file {shown}: {error}");
        let file = match File::options().read(true).write(true).open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
            Err(error) => return Err(fail(error)),
        };
        let mut page = [0; PAGE_BYTES];
        if file.read_exact_at(&mut page, 0).is_err() || page[..8] != MAGIC {
            return Err(format!("--state-file {shown}: this is not a state file; give another path"));
        }
        let found = match read(&file, &page, memory) {
            Ok(clock) => Found::State(clock),
            Err(why) => Found::Useless(why),
        };
        // First made useless, then removed: a name that comes back after a power cut leads to nothing.
        file.write_all_at(&[0; PAGE_BYTES], 0).and_then(|()| file.sync_data()).map_err(fail)?;
        fs::remove_file(&self.path).map_err(fail)?;
        Ok(found)
    }

    /// Saves `memory`, whose items' times are on `clock`; answers its bytes. The file is there only when all
    /// of it is on the disk.
    ///
    /// # Errors
    /// A text for the operator; nothing is left behind then.
    pub fn save(&self, memory: &File, clock: &Clock) -> Result<u64, String> {
        let mut name = self.path.clone().into_os_string();
        name.push(".new");
        let unfinished = PathBuf::from(name);
        let saved = write(&unfinished, memory, clock).and_then(|bytes| {
            fs::rename(&unfinished, &self.path)?;
            Ok(bytes)
        });
        saved.map_err(|error| {
            let _ = fs::remove_file(&unfinished);
            format!("--state-file {}: {error}; the next start is cold", self.path.display())
        })
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
    if page_crc(page) != page[AT_CRC..AT_BASE] {
        return Err("has a damaged header".into());
    }
    let bytes = word(page, AT_BYTES);
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

fn write(path: &Path, memory: &File, clock: &Clock) -> io::Result<u64> {
    let file = File::options().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    let bytes = memory.metadata()?.len();
    file.set_len(PAGE_BYTES as u64 + bytes)?;
    let mut sum = Digest::new(CrcAlgorithm::Crc64Nvme);
    each_chunk(bytes, |at, chunk| {
        memory.read_exact_at(chunk, at)?;
        sum.update(chunk);
        write_unless_zero(&file, chunk, PAGE_BYTES as u64 + at)
    })?;
    let mut page = [0; PAGE_BYTES];
    page[..8].copy_from_slice(&MAGIC);
    page[8..AT_CRC].copy_from_slice(&VERSION.to_le_bytes());
    page[AT_BASE..AT_SECOND].copy_from_slice(&clock.unix_base().to_le_bytes());
    page[AT_SECOND..AT_BYTES].copy_from_slice(&u64::from(clock.now().0).to_le_bytes());
    page[AT_BYTES..AT_SUM].copy_from_slice(&bytes.to_le_bytes());
    page[AT_SUM..AT_SUM + 8].copy_from_slice(&sum.finalize().to_le_bytes());
    let crc = page_crc(&page);
    page[AT_CRC..AT_BASE].copy_from_slice(&crc);
    file.write_all_at(&page, 0)?;
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

    fn is_gone(state: &StateFile, folder: &Folder) -> bool {
        matches!(state.take(&folder.file("next")), Ok(Found::Nothing))
    }

    /// A memory of three and a half chunks with a hole in it, and its state.
    fn saved(folder: &Folder) -> (StateFile, Vec<u8>) {
        let memory = folder.file("memory");
        let mut bytes = vec![0; CHUNK_BYTES * 7 / 2];
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = if at / CHUNK_BYTES == 1 { 0 } else { (at / 16 * 7) as u8 };
        }
        memory.write_all_at(&bytes, 0).expect("room");
        let state = StateFile::new(&folder.0.join("state"));
        assert_eq!(state.save(&memory, &Clock::going_on(BASE, Seconds(5))), Ok(bytes.len() as u64));
        assert!(!folder.0.join("state.new").exists());
        (state, bytes)
    }

    #[test]
    fn what_was_saved_is_taken_once() {
        let folder = Folder::new("once");
        let (state, bytes) = saved(&folder);
        let next = folder.file("next");
        let Ok(Found::State(clock)) = state.take(&next) else { panic!("it is whole") };
        assert_eq!(clock.unix_base(), BASE);
        let mut got = vec![1; bytes.len()];
        next.read_exact_at(&mut got, 0).expect("as long");
        assert!(got == bytes && next.metadata().is_ok_and(|data| data.len() == bytes.len() as u64));
        assert!(is_gone(&state, &folder));
    }

    #[test]
    fn no_damage_goes_unseen_and_none_is_taken_twice() {
        let folder = Folder::new("damage");
        for at in
            [9, 13, 20, 30, 36, 100, PAGE_BYTES, PAGE_BYTES + CHUNK_BYTES + 5, PAGE_BYTES + 3 * CHUNK_BYTES]
        {
            let (state, _) = saved(&folder);
            let file = File::options().read(true).write(true).open(folder.0.join("state")).expect("there");
            let mut byte = [0];
            file.read_exact_at(&mut byte, at as u64).expect("so long");
            file.write_all_at(&[byte[0] ^ 4], at as u64).expect("room");
            assert!(is_useless(&state.take(&folder.file("next"))), "byte {at}");
            assert!(is_gone(&state, &folder), "byte {at}");
        }
        let (state, bytes) = saved(&folder);
        let file = File::options().write(true).open(folder.0.join("state")).expect("there");
        file.set_len(bytes.len() as u64).expect("shorter");
        assert!(is_useless(&state.take(&folder.file("next"))));
    }

    #[test]
    fn a_file_of_somebody_else_is_refused_and_left_as_it_is() {
        let folder = Folder::new("foreign");
        let path = folder.0.join("letter");
        for text in ["", "dear reader", &"x".repeat(9000)] {
            fs::write(&path, text).expect("room");
            assert!(StateFile::new(&path).take(&folder.file("next")).is_err());
            assert_eq!(fs::read_to_string(&path).expect("still there"), *text);
        }
    }

    #[test]
    fn a_place_that_cannot_be_written_is_said_and_leaves_nothing() {
        let folder = Folder::new("nowhere");
        let state = StateFile::new(&folder.0.join("missing/state"));
        let said = state.save(&folder.file("memory"), &Clock::new()).expect_err("there is no such folder");
        assert!(said.contains("missing/state") && said.contains("cold"), "{said}");
    }
}
