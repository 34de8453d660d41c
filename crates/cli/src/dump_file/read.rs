//! Reads a dump block by block, and believes nothing that its checksums do not cover.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use super::{
    BLOCK_BYTES, BLOCK_CRC, CREATED, END_BYTES, EXPIRES, FLAGS, HEAD_BYTES, HEAD_CRC, ID, ITEM_BYTES, ITEMS,
    MAGIC, PAYLOAD_BYTES, PAYLOAD_BYTES_MAX, PAYLOAD_CRC, VALUE_BYTES, crc, get, get_u32, get_u64,
};
use crate::exit::{Failure, Outcome};
use crate::items::CacheItem;

/// An iterator over the blocks of a dump: it ends after the last one, or after an error.
#[derive(Debug)]
pub struct DumpReader {
    path: PathBuf,
    file: BufReader<File>,
    id: [u8; 8],
    created_unix_ms: u64,
    /// Where the next block begins.
    offset: u64,
    number: u32,
    items: u64,
    bytes: u64,
    is_over: bool,
}

impl DumpReader {
    /// Opens a dump.
    ///
    /// # Errors
    /// The file cannot be read, or is no dump.
    pub fn open(path: &Path) -> Outcome<DumpReader> {
        let file = File::open(path).map_err(|error| failed(path, &error))?;
        let mut reader = DumpReader {
            path: path.to_path_buf(),
            file: BufReader::with_capacity(1 << 18, file),
            id: [0; 8],
            created_unix_ms: 0,
            offset: 0,
            number: 0,
            items: 0,
            bytes: 0,
            is_over: false,
        };
        let head = reader.read_up_to(HEAD_BYTES)?;
        if get(&head, 0) != MAGIC {
            return Err(Failure::Failed(format!("{}: is no dump of larder", path.display())));
        }
        if head.len() < HEAD_BYTES
            || get_u32(&head, HEAD_CRC) != crc(&[head.get(..HEAD_CRC).unwrap_or_default()])
        {
            return Err(reader.damaged("its head is damaged"));
        }
        reader.id = get(&head, ID);
        reader.created_unix_ms = get_u64(&head, CREATED);
        reader.offset = HEAD_BYTES as u64;
        Ok(reader)
    }

    /// Returns when the dump was begun, in Unix milliseconds.
    pub fn created_unix_ms(&self) -> u64 {
        self.created_unix_ms
    }

    /// Reads the whole dump, and returns the number of its items and the bytes of their keys and values.
    ///
    /// # Errors
    /// It is damaged.
    pub fn check(mut self, mut look: impl FnMut(u64) -> Outcome<()>) -> Outcome<(u64, u64)> {
        while let Some(items) = self.next() {
            items?;
            look(self.items)?;
        }
        Ok((self.items, self.bytes))
    }

    fn next_block(&mut self) -> Outcome<Option<Vec<CacheItem>>> {
        let head = self.read_up_to(BLOCK_BYTES)?;
        if head.len() < BLOCK_BYTES {
            return Err(self.damaged("it ends too early"));
        }
        let sum = crc(&[&self.id, head.get(..BLOCK_CRC).unwrap_or_default()]);
        let payload_bytes = get_u32(&head, PAYLOAD_BYTES) as usize;
        if get_u32(&head, BLOCK_CRC) != sum || payload_bytes > PAYLOAD_BYTES_MAX {
            return Err(self.damaged("the head of a block is damaged"));
        }
        if get_u32(&head, 0) != self.number {
            return Err(self.damaged("a block is missing or stands twice"));
        }
        let payload = self.read_up_to(payload_bytes)?;
        if payload.len() < payload_bytes {
            return Err(self.damaged("it ends too early"));
        }
        if get_u32(&head, PAYLOAD_CRC) != crc(&[&payload]) {
            return Err(self.damaged("a block is damaged"));
        }
        let count = get_u32(&head, ITEMS);
        if count == 0 {
            return self.end(&payload).map(|()| None);
        }
        let items = items(&payload).filter(|items| items.len() == count as usize);
        let items = items.ok_or_else(|| self.damaged("a block does not hold the items that it should"))?;
        self.items += u64::from(count);
        self.bytes += items.iter().map(CacheItem::bytes).sum::<u64>();
        self.offset += (BLOCK_BYTES + payload_bytes) as u64;
        self.number += 1;
        Ok(Some(items))
    }

    fn end(&mut self, payload: &[u8]) -> Outcome<()> {
        if payload.len() != END_BYTES
            || (get_u64(payload, 0), get_u64(payload, 8)) != (self.items, self.bytes)
        {
            return Err(self.damaged("it does not hold the items that it should"));
        }
        match self.read_up_to(1)?.is_empty() {
            true => Ok(()),
            false => Err(self.damaged("something follows its end")),
        }
    }

    /// Reads so many bytes, or fewer at the end of the file.
    fn read_up_to(&mut self, bytes: usize) -> Outcome<Vec<u8>> {
        let mut taken = Vec::with_capacity(bytes.min(1 << 20));
        let read = (&mut self.file).take(bytes as u64).read_to_end(&mut taken);
        read.map_err(|error| failed(&self.path, &error))?;
        Ok(taken)
    }

    fn damaged(&self, how: &str) -> Failure {
        Failure::Failed(format!(
            "{}: {how}, at byte {}; nothing behind it can be used",
            self.path.display(),
            self.offset
        ))
    }
}

impl Iterator for DumpReader {
    type Item = Outcome<Vec<CacheItem>>;

    fn next(&mut self) -> Option<Outcome<Vec<CacheItem>>> {
        if self.is_over {
            return None;
        }
        let block = self.next_block().transpose();
        self.is_over = !matches!(block, Some(Ok(_)));
        block
    }
}

/// Takes a payload apart. Returns none if it does not end with an item.
fn items(payload: &[u8]) -> Option<Vec<CacheItem>> {
    let (mut items, mut rest) = (Vec::new(), payload);
    while !rest.is_empty() {
        let head = rest.get(..ITEM_BYTES)?;
        let key_bytes = usize::from(*head.first()?);
        let value_bytes = get_u32(head, VALUE_BYTES) as usize;
        let (key, after) = rest.get(ITEM_BYTES..)?.split_at_checked(key_bytes)?;
        let (value, after) = after.split_at_checked(value_bytes)?;
        let expires_unix_ms = Some(get_u64(head, EXPIRES)).filter(|expires| *expires > 0);
        items.push(CacheItem {
            key: key.to_vec(),
            value: value.to_vec(),
            flags: get_u32(head, FLAGS),
            expires_unix_ms,
        });
        rest = after;
    }
    Some(items)
}

fn failed(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Failed(format!("{}: cannot be read: {error}", path.display()))
}
