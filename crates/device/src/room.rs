//! The room that files take: free bytes of a file system, blocks for a whole file before it is used, and files
//! without a name.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rustix::fs::{FallocateFlags, MemfdFlags};
use rustix::io::Errno;

/// Bytes of zeros written at once.
const STEP_BYTES: u64 = 1 << 20;

/// Returns the bytes that the file system of a file has left for this user; `None` if it has no limit, as a tmpfs
/// without a size.
///
/// # Errors
/// The error that the system reports.
pub fn free_bytes(file: &File) -> io::Result<Option<u64>> {
    let room = rustix::fs::fstatvfs(file)?;
    Ok((room.f_blocks > 0).then(|| room.f_bavail.saturating_mul(room.f_frsize)))
}

/// Gives the first `bytes` of a file their blocks, so that no later access finds the file system full. If the file
/// system cannot do that, zeros are written instead from `zeros_from` on, and nothing is done for `None`: zeros
/// would overwrite the content.
///
/// # Errors
/// The error that the system reports, such as [`io::ErrorKind::StorageFull`]. The file may have some of its blocks
/// then.
pub fn allocate(file: &File, bytes: u64, zeros_from: Option<u64>) -> io::Result<()> {
    match fallocate(file, bytes) {
        Ok(()) => return Ok(()),
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
        Err(error) => return Err(error.into()),
    }
    match zeros_from {
        Some(from) => write_zeros(file, from, bytes),
        None => Ok(()),
    }
}

fn write_zeros(file: &File, from: u64, end: u64) -> io::Result<()> {
    let zeros = vec![0; STEP_BYTES as usize];
    for at in (from..end).step_by(STEP_BYTES as usize) {
        file.write_all_at(&zeros[..STEP_BYTES.min(end - at) as usize], at)?;
    }
    Ok(())
}

/// Asks for the blocks of the first `bytes` of a file, until no signal interrupts it.
pub(crate) fn fallocate(file: &File, bytes: u64) -> Result<(), Errno> {
    loop {
        match rustix::fs::fallocate(file, FallocateFlags::empty(), 0, bytes) {
            Err(Errno::INTR) => {}
            done => return done,
        }
    }
}

/// Returns an empty file in memory that has no name and ends with its last descriptor. `label` shows in `/proc`.
///
/// # Errors
/// The error that the system reports.
pub fn anonymous_file(label: &str) -> io::Result<File> {
    Ok(File::from(rustix::fs::memfd_create(label, MemfdFlags::CLOEXEC)?))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn a_file_system_without_a_limit_is_not_full() {
        let file = anonymous_file("room").expect("memory");
        assert_eq!(free_bytes(&file).expect("the kernel's own file system"), None);
    }

    #[test]
    fn a_file_has_all_its_blocks_once_they_are_allocated() {
        for bytes in [1, 4096, 10 << 20] {
            let file = anonymous_file("room").expect("memory");
            allocate(&file, bytes, Some(0)).expect("room");
            let metadata = file.metadata().expect("an open file");
            assert!(metadata.len() == bytes && metadata.blocks() * 512 >= bytes, "{bytes}: {metadata:?}");
        }
    }

    #[test]
    fn zeros_leave_what_is_in_front_of_them() {
        for bytes in [3, 4, 4096, (1 << 20) + 3, (2 << 20) + 3] {
            let file = anonymous_file("room").expect("memory");
            file.write_all_at(b"xyz", 0).expect("room");
            write_zeros(&file, 3, bytes).expect("room");
            let mut content = vec![1; bytes as usize];
            file.read_exact_at(&mut content, 0).expect("as long as it was made");
            assert!(content.starts_with(b"xyz") && content[3..].iter().all(|&byte| byte == 0), "{bytes}");
            assert_eq!(file.metadata().expect("an open file").len(), bytes);
        }
    }
}
