//! Writes a dump under a temporary name, and gives it its own name when it is whole.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};

use super::{
    BLOCK_BYTES, BLOCK_CRC, BLOCK_FULL_BYTES, CREATED, END_BYTES, EXPIRES, FLAGS, HEAD_BYTES, HEAD_CRC, ID,
    ITEM_BYTES, ITEMS, MAGIC, PAYLOAD_BYTES, PAYLOAD_CRC, VALUE_BYTES, crc, put,
};
use crate::exit::{Failure, Outcome};
use crate::items::CacheItem;
use crate::server_clock::now_unix_ms;

/// A dump that is being written. Dropping it removes the temporary file.
#[derive(Debug)]
pub struct DumpWriter {
    path: PathBuf,
    file: NamedTempFile,
    id: [u8; 8],
    /// The number of the open block.
    number: u32,
    /// The items of the open block, and their bytes.
    block_items: u32,
    payload: Vec<u8>,
    items: u64,
    bytes: u64,
}

impl DumpWriter {
    /// Begins a dump that will be at `path`, in place of an earlier dump.
    ///
    /// # Errors
    /// There is a file that is no dump, or the folder cannot be written to.
    pub fn create(path: &Path) -> Outcome<DumpWriter> {
        refuse_others(path)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let file = Builder::new().prefix(&format!(".{name}.")).suffix(".partial").tempfile_in(folder(path));
        let file = file.map_err(|error| failed(path, &error))?;
        let now_unix_ms = now_unix_ms();
        let id = random_id(now_unix_ms);
        let mut writer = DumpWriter {
            path: path.to_path_buf(),
            file,
            id,
            number: 0,
            block_items: 0,
            payload: Vec::new(),
            items: 0,
            bytes: 0,
        };
        let mut head = [0; HEAD_BYTES];
        put(&mut head, 0, MAGIC);
        put(&mut head, ID, id);
        put(&mut head, CREATED, now_unix_ms.to_le_bytes());
        let sum = crc(&[head.get(..HEAD_CRC).unwrap_or_default()]);
        put(&mut head, HEAD_CRC, sum.to_le_bytes());
        writer.write(&head)?;
        Ok(writer)
    }

    /// Appends an item.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add(&mut self, item: &CacheItem) -> Outcome<()> {
        let mut head = [0; ITEM_BYTES];
        // Keys and values of servers are shorter.
        let too_long = || Failure::Failed(format!("an item of {} bytes fits no dump", item.bytes()));
        put(&mut head, 0, [u8::try_from(item.key.len()).map_err(|_| too_long())?]);
        put(&mut head, FLAGS, item.flags.to_le_bytes());
        put(&mut head, EXPIRES, item.expires_unix_ms.unwrap_or(0).to_le_bytes());
        put(&mut head, VALUE_BYTES, u32::try_from(item.value.len()).map_err(|_| too_long())?.to_le_bytes());
        for part in [&head[..], &item.key, &item.value] {
            self.payload.extend_from_slice(part);
        }
        self.block_items += 1;
        self.items += 1;
        self.bytes += item.bytes();
        if self.payload.len() >= BLOCK_FULL_BYTES { self.close_block() } else { Ok(()) }
    }

    /// Ends the dump: writes what is left, makes it durable, and gives it its name.
    ///
    /// # Errors
    /// The file cannot be written or renamed.
    pub fn finish(mut self) -> Outcome<()> {
        if self.block_items > 0 {
            self.close_block()?;
        }
        let mut end = [0; END_BYTES];
        put(&mut end, 0, self.items.to_le_bytes());
        put(&mut end, 8, self.bytes.to_le_bytes());
        self.payload.extend_from_slice(&end);
        self.close_block()?;
        let path = &self.path;
        self.file.as_file().sync_all().map_err(|error| failed(path, &error))?;
        self.file.persist(path).map_err(|error| failed(path, &error.error))?;
        let folder = File::open(folder(path)).and_then(|folder| folder.sync_all());
        folder.map_err(|error| failed(path, &error))
    }

    fn close_block(&mut self) -> Outcome<()> {
        let payload = std::mem::take(&mut self.payload);
        let mut head = [0; BLOCK_BYTES];
        put(&mut head, 0, self.number.to_le_bytes());
        put(&mut head, ITEMS, self.block_items.to_le_bytes());
        let bytes = u32::try_from(payload.len()).map_err(Failure::of)?;
        put(&mut head, PAYLOAD_BYTES, bytes.to_le_bytes());
        put(&mut head, PAYLOAD_CRC, crc(&[&payload]).to_le_bytes());
        let sum = crc(&[&self.id, head.get(..BLOCK_CRC).unwrap_or_default()]);
        put(&mut head, BLOCK_CRC, sum.to_le_bytes());
        self.write(&head)?;
        self.write(&payload)?;
        self.number += 1;
        self.block_items = 0;
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Outcome<()> {
        self.file.write_all(bytes).map_err(|error| failed(&self.path, &error))
    }
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn failed(path: &Path, error: &io::Error) -> Failure {
    Failure::Failed(format!("{}: the dump cannot be written: {error}", path.display()))
}

/// Refuses to replace a file that is no dump.
fn refuse_others(path: &Path) -> Outcome<()> {
    let mut magic = Vec::new();
    let about = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        about => about.map_err(|error| failed(path, &error))?,
    };
    if about.is_file() {
        let read = File::open(path).and_then(|file| file.take(MAGIC.len() as u64).read_to_end(&mut magic));
        read.map_err(|error| failed(path, &error))?;
    }
    if magic == MAGIC {
        return Ok(());
    }
    let message =
        format!("{}: there is something else than a dump; remove it, or name another file", path.display());
    Err(Failure::Failed(message))
}

/// Returns what tells this dump from others.
fn random_id(now_unix_ms: u64) -> [u8; 8] {
    use std::hash::{BuildHasher, RandomState};
    // A random state is seeded by the system.
    RandomState::new().hash_one((now_unix_ms, std::process::id())).to_le_bytes()
}
