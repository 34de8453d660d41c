//! Whether a file holds data, by its extents: nothing is read, and a gap in the middle counts as well as the ends.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileTypeExt;

use rustix::fs::{Advice, SeekFrom};
use rustix::io::Errno;

/// What a range of a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extents {
    /// No data: the range is a hole, is allocated but was never written, or lies past the file's end.
    Empty,
    /// Data at this offset and perhaps further on. A file system that does not tell holes from data reports
    /// all of a file as data.
    Data(u64),
    /// A disk, of which only reading all its bytes would tell.
    Disk,
}

impl Extents {
    /// Looks at a range.
    ///
    /// # Errors
    /// What the system reports; a file system without holes is none.
    pub fn of(file: &File, range: Range<u64>) -> io::Result<Extents> {
        let metadata = file.metadata()?;
        if metadata.file_type().is_block_device() {
            return Ok(Extents::Disk);
        }
        if range.is_empty() || metadata.len() <= range.start {
            return Ok(Extents::Empty);
        }
        // Pages of an allocated range that was never written count as data once they have been read and are
        // still in the page cache. A failure leaves them there, and errs on the side of a refusal.
        let _ = rustix::fs::fadvise(file, 0, None, Advice::DontNeed);
        match rustix::fs::seek(file, SeekFrom::Data(range.start)) {
            Ok(at) if at < range.end => Ok(Extents::Data(at)),
            Ok(_) | Err(Errno::NXIO) => Ok(Extents::Empty),
            Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(Extents::Data(range.start)),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create};
    use std::os::unix::fs::FileExt;

    #[test]
    fn holes_and_blocks_never_written_are_empty_and_zeros_that_were_written_are_not() {
        let file = File::from(memfd_create("extents", MemfdFlags::CLOEXEC).expect("memory"));
        let of = |range| Extents::of(&file, range).expect("it can be asked");
        assert_eq!(of(0..1 << 40), Extents::Empty, "a file of no length");
        file.set_len(1 << 20).expect("a length");
        fallocate(&file, FallocateFlags::empty(), 0, 1 << 20).expect("blocks");
        assert_eq!(of(0..1 << 20), Extents::Empty);
        file.write_all_at(&[0; 4096], 512 << 10).expect("a page");
        assert_eq!(of(0..1 << 20), Extents::Data(512 << 10));
        assert_eq!(of(0..512 << 10), Extents::Empty);
        assert_eq!(of((512 << 10) + 4096..1 << 20), Extents::Empty);
    }
}
