//! The list of a server's keys, in a temporary file without a name: a server lists for one client at a time, and
//! memcached waits for a client that reads slowly, so the list is taken before the first item is.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use larder_client::{Client, KeyList, ListedKey};

use crate::exit::{Failure, Outcome};
use crate::screen::Progress;
use crate::units::show_whole;

/// The most keys of a batch.
const BATCH_KEYS: usize = 256;
/// The bytes of items, as they were listed, at which a batch ends.
const BATCH_BYTES: u64 = 2 << 20;
/// How long to wait for a server that lists for another client.
const BUSY_MAX: Duration = Duration::from_secs(60);
const BUSY_PAUSE: Duration = Duration::from_millis(200);

/// The keys of a server.
#[derive(Debug)]
pub struct KeySpool {
    file: File,
    keys: u64,
}

/// Some of the keys.
pub type Keys = Vec<SpooledKey>;

/// A key, and its item as it was listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpooledKey {
    /// The key.
    pub key: Vec<u8>,
    /// The size.
    bytes: u32,
    /// The cas unique; 0 from a server that keeps none.
    pub cas: u64,
    /// When it expires, in Unix seconds; 0 never.
    pub expires_unix_s: u64,
}

impl AsRef<[u8]> for SpooledKey {
    fn as_ref(&self) -> &[u8] {
        &self.key
    }
}

impl SpooledKey {
    fn of(listed: ListedKey) -> SpooledKey {
        let bytes = u32::try_from(listed.bytes).unwrap_or(u32::MAX);
        let (cas, expires_unix_s) = (listed.cas, listed.expires_unix_s.unwrap_or(0));
        SpooledKey { key: listed.key, bytes, cas, expires_unix_s }
    }

    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        // No server has keys of more bytes.
        out.write_all(&[u8::try_from(self.key.len()).unwrap_or(u8::MAX)])?;
        out.write_all(&self.bytes.to_le_bytes())?;
        out.write_all(&self.cas.to_le_bytes())?;
        out.write_all(&self.expires_unix_s.to_le_bytes())?;
        out.write_all(self.key.get(..usize::from(u8::MAX)).unwrap_or(&self.key))
    }

    fn read(from: &mut impl Read) -> io::Result<SpooledKey> {
        fn field<const N: usize>(from: &mut impl Read) -> io::Result<[u8; N]> {
            let mut field = [0; N];
            from.read_exact(&mut field).map(|()| field)
        }
        let [len] = field(from)?;
        let bytes = u32::from_le_bytes(field(from)?);
        let (cas, expires_unix_s) = (u64::from_le_bytes(field(from)?), u64::from_le_bytes(field(from)?));
        let mut key = vec![0; usize::from(len)];
        from.read_exact(&mut key)?;
        Ok(SpooledKey { key, bytes, cas, expires_unix_s })
    }
}

impl KeySpool {
    /// Lists the keys of a server.
    ///
    /// # Errors
    /// The server does not list them, the temporary file cannot be written, or `stop` was set.
    pub fn collect(client: &Client, stop: &AtomicBool, progress: &mut Progress) -> Outcome<KeySpool> {
        let file = tempfile::tempfile().map_err(spool_failed)?;
        let mut out = BufWriter::new(file);
        let mut keys = 0;
        for listed in list(client, stop)? {
            SpooledKey::of(listed?).write(&mut out).map_err(spool_failed)?;
            keys += 1;
            if stop.load(Relaxed) {
                return Err(Failure::Interrupted);
            }
            progress.show(|| vec![format!("listed {} keys", show_whole(keys))]);
        }
        let file = out.into_inner().map_err(|error| spool_failed(error.into_error()))?;
        Ok(KeySpool { file, keys })
    }

    /// Returns the number of keys.
    pub fn len(&self) -> u64 {
        self.keys
    }

    /// Returns all keys in batches, from the first one.
    ///
    /// # Errors
    /// The temporary file cannot be read.
    pub fn batches(&self) -> Outcome<Batches> {
        let mut file = self.file.try_clone().map_err(spool_failed)?;
        file.seek(SeekFrom::Start(0)).map_err(spool_failed)?;
        Ok(Batches { file: BufReader::new(file), left: self.keys })
    }
}

/// Begins to list the keys of a server; waits while it lists for another client.
///
/// # Errors
/// The server does not list them, or `stop` was set.
pub fn list(client: &Client, stop: &AtomicBool) -> Outcome<std::iter::Peekable<KeyList>> {
    let until = Instant::now() + BUSY_MAX;
    loop {
        let mut list = client.list_keys(0)?.peekable();
        match list.peek() {
            Some(Err(error)) if KeyList::is_busy(error) && Instant::now() < until => {}
            _ => return Ok(list),
        }
        if stop.load(Relaxed) {
            return Err(Failure::Interrupted);
        }
        std::thread::sleep(BUSY_PAUSE);
    }
}

/// The keys of a spool in batches, each of which brings some MiB or one larger item.
#[derive(Debug)]
pub struct Batches {
    file: BufReader<File>,
    left: u64,
}

impl Iterator for Batches {
    type Item = Outcome<Keys>;

    fn next(&mut self) -> Option<Outcome<Keys>> {
        let (mut keys, mut bytes) = (Keys::new(), 0);
        while self.left > 0 && keys.len() < BATCH_KEYS && bytes < BATCH_BYTES {
            match SpooledKey::read(&mut self.file) {
                Ok(key) => {
                    self.left -= 1;
                    bytes += u64::from(key.bytes);
                    keys.push(key);
                }
                Err(error) => {
                    self.left = 0;
                    return Some(Err(spool_failed(error)));
                }
            }
        }
        (!keys.is_empty()).then_some(Ok(keys))
    }
}

fn spool_failed(error: io::Error) -> Failure {
    let folder = std::env::temp_dir();
    let advice = "set TMPDIR to a folder with room for the list of keys";
    Failure::Failed(format!("{}: the list of keys cannot be kept: {error}; {advice}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spool(items: &[(&[u8], u32)]) -> KeySpool {
        let mut file = tempfile::tempfile().expect("a file");
        for (key, bytes) in items {
            let spooled = SpooledKey { key: key.to_vec(), bytes: *bytes, cas: u64::MAX, expires_unix_s: 7 };
            spooled.write(&mut file).expect("it is written");
        }
        KeySpool { file, keys: items.len() as u64 }
    }

    #[test]
    fn a_batch_ends_at_its_keys_or_its_bytes() {
        let sizes = |items: &[(&[u8], u32)]| -> Vec<usize> {
            spool(items).batches().expect("a file").map(|batch| batch.expect("keys").len()).collect()
        };
        assert_eq!(sizes(&[]), Vec::<usize>::new());
        assert_eq!(sizes(&[(&b"k"[..], 10); 600]), [256, 256, 88]);
        assert_eq!(sizes(&[(&b"k"[..], 1 << 20); 5]), [2, 2, 1]);
        assert_eq!(sizes(&[(&b"k"[..], u32::MAX); 3]), [1, 1, 1]);
    }

    #[test]
    fn all_keys_can_be_read_twice() {
        let keys = [(&b"a"[..], 1), (&[0xff; 250][..], 2), (b" ", 3)];
        let spool = spool(&keys);
        for _ in 0..2 {
            let read = spool.batches().expect("a file").flat_map(|batch| batch.expect("keys"));
            let read: Vec<_> = read.map(|key| (key.key, key.bytes, key.cas, key.expires_unix_s)).collect();
            assert_eq!(read, keys.map(|(key, bytes)| (key.to_vec(), bytes, u64::MAX, 7)));
        }
    }
}
