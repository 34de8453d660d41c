//! A device in memory, for tests and simulations. Never survives the process.

use std::io;
use std::sync::{PoisonError, RwLock};

use super::{Device, PAGE_BYTES, check_range, readable};

const CHUNK_BYTES: usize = 1 << 20;

/// Bytes in memory behind the [`Device`] interface, zero at first. Memory is taken as it is first written.
///
/// An operation is atomic within each MiB of the range, as on a disk it would be within a sector.
pub struct MemoryDevice {
    chunks: Vec<RwLock<Vec<u8>>>,
    len: u64,
    alignment: usize,
}

impl MemoryDevice {
    /// A device of `len` bytes that asks for the alignment of common drives, 512 bytes, and enforces it.
    ///
    /// # Panics
    /// When `len` is 0 or no multiple of [`PAGE_BYTES`].
    pub fn new(len: u64) -> Self {
        Self::with_alignment(len, 512)
    }

    /// As [`new`](Self::new), with another alignment in bytes.
    ///
    /// # Panics
    /// When `len` is 0 or no multiple of [`PAGE_BYTES`], or `alignment` is not a power of two up to it.
    pub fn with_alignment(len: u64, alignment: usize) -> Self {
        assert!(
            len > 0 && len.is_multiple_of(PAGE_BYTES as u64),
            "{len} bytes are not a whole number of pages"
        );
        assert!(alignment.is_power_of_two() && alignment <= PAGE_BYTES, "no such alignment: {alignment}");
        let chunks = (0..len.div_ceil(CHUNK_BYTES as u64)).map(|_| RwLock::default()).collect();
        MemoryDevice { chunks, len, alignment }
    }

    fn check_alignment(&self, offset: u64, buf: &[u8]) -> io::Result<()> {
        let alignment = self.alignment;
        if offset.is_multiple_of(alignment as u64)
            && buf.len().is_multiple_of(alignment)
            && (buf.as_ptr() as usize).is_multiple_of(alignment)
        {
            return Ok(());
        }
        Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{} bytes at offset {offset}: not aligned to {alignment}", buf.len()),
        ))
    }
}

/// Calls `each` for every chunk that `len` bytes at `offset` touch: its number, the range inside it, and the
/// range of the caller's bytes.
fn pieces(
    offset: u64,
    len: usize,
    mut each: impl FnMut(usize, std::ops::Range<usize>, std::ops::Range<usize>),
) {
    let mut done = 0;
    while done < len {
        let at = offset as usize + done;
        let (chunk, within) = (at / CHUNK_BYTES, at % CHUNK_BYTES);
        let n = (CHUNK_BYTES - within).min(len - done);
        each(chunk, within..within + n, done..done + n);
        done += n;
    }
}

impl Device for MemoryDevice {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.check_alignment(offset, buf)?;
        let len = readable(self.len, offset, buf.len());
        pieces(offset, len, |chunk, within, ours| {
            let bytes = self.chunks[chunk].read().unwrap_or_else(PoisonError::into_inner);
            match bytes.get(within) {
                Some(bytes) => buf[ours].copy_from_slice(bytes),
                None => buf[ours].fill(0),
            }
        });
        Ok(len)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        self.check_alignment(offset, buf)?;
        check_range(self.len, offset, buf.len() as u64)?;
        pieces(offset, buf.len(), |chunk, within, ours| {
            let mut bytes = self.chunks[chunk].write().unwrap_or_else(PoisonError::into_inner);
            if bytes.is_empty() {
                *bytes = vec![0; CHUNK_BYTES];
            }
            bytes[within].copy_from_slice(&buf[ours]);
        });
        Ok(buf.len())
    }

    /// Discarded bytes read as zero afterwards.
    fn discard(&self, offset: u64, len: u64) -> io::Result<()> {
        check_range(self.len, offset, len)?;
        pieces(offset, len as usize, |chunk, within, _| {
            let mut bytes = self.chunks[chunk].write().unwrap_or_else(PoisonError::into_inner);
            if within.len() == CHUNK_BYTES {
                *bytes = Vec::new();
            } else if let Some(bytes) = bytes.get_mut(within) {
                bytes.fill(0);
            }
        });
        Ok(())
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn alignment(&self) -> usize {
        self.alignment
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IoBuf;

    #[test]
    fn bytes_come_back_across_chunks() {
        let device = MemoryDevice::new(3 << 20);
        let mut buf = IoBuf::zeroed(8192);
        for (i, byte) in buf.iter_mut().enumerate() {
            *byte = (i * 7) as u8;
        }
        let offset = (1 << 20) - 4096;
        assert_eq!(device.write_at(&buf, offset).expect("a write"), 8192);
        let mut back = IoBuf::zeroed(8192);
        assert_eq!(device.read_at(&mut back, offset).expect("a read"), 8192);
        assert_eq!(buf[..], back[..]);
        device.discard(1 << 20, 4096).expect("a discard");
        device.read_at(&mut back, offset).expect("a read");
        assert_eq!(buf[..4096], back[..4096]);
        assert!(back[4096..].iter().all(|&b| b == 0));
    }

    #[test]
    fn the_end_is_the_end() {
        let device = MemoryDevice::new(8192);
        let mut buf = IoBuf::zeroed(8192);
        assert_eq!(device.read_at(&mut buf, 4096).expect("a read"), 4096);
        assert_eq!(device.read_at(&mut buf, 8192).expect("a read"), 0);
        assert!(device.write_at(&buf, 4096).is_err());
        assert!(device.discard(4096, 8192).is_err());
        assert!(device.write_at(&buf[1..513], 0).is_err());
    }
}
