//! Reads a small file that an operator named, whatever stands in its place by then.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// A file's content, and what is known of it.
pub struct SmallFile {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// The permissions.
    pub mode: u32,
    /// When it was changed, in Unix seconds.
    pub changed_s: u64,
}

/// Returns the content of a regular file of at most `bytes_max` bytes.
///
/// # Errors
/// The problem, with its remedy.
pub fn read(path: &Path, bytes_max: u64) -> Result<SmallFile, String> {
    let readable = |error: io::Error| format!("cannot be read: {error}; give a file that this user can read");
    // A pipe without a writer would stop the daemon here.
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let file = File::options().read(true).custom_flags(nonblocking).open(path).map_err(readable)?;
    let metadata = file.metadata().map_err(readable)?;
    if !metadata.is_file() {
        return Err("is no regular file".into());
    }
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes).map_err(readable)?;
    if bytes.len() as u64 > bytes_max {
        return Err(format!("is larger than {bytes_max} bytes"));
    }
    let changed_s = u64::try_from(metadata.mtime()).unwrap_or(0);
    Ok(SmallFile { bytes, mode: metadata.mode(), changed_s })
}

/// Returns a warning if others than the owner may read or change a file of secrets with these permissions.
pub fn exposure(mode: u32) -> Option<&'static str> {
    if mode & 0o022 != 0 {
        Some("users other than its owner can change it, and so let themselves in: chmod 600")
    } else if mode & 0o004 != 0 {
        Some("every user of this host can read the secrets in it: chmod 600")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_are_judged() {
        assert_eq!([0o600, 0o400, 0o440, 0o640].map(exposure), [None; 4]);
        assert!([0o644, 0o444].map(exposure).iter().all(|w| w.is_some_and(|w| w.contains("can read"))));
        assert!(
            [0o660, 0o666, 0o622].map(exposure).iter().all(|w| w.is_some_and(|w| w.contains("change it")))
        );
    }

    #[test]
    fn only_a_regular_file_of_some_size_is_read() {
        let why = |path: &str, max| read(Path::new(path), max).err().unwrap_or_default();
        assert!(why("/nonexistent/users", 9).contains("cannot be read"));
        assert!(why("/dev/zero", 9).contains("no regular file") && why("/", 9).contains("no regular file"));
        let path = std::env::temp_dir().join(format!("larder-small-{}", std::process::id()));
        std::fs::write(&path, "0123456789").expect("room");
        assert_eq!(read(&path, 10).map(|file| file.bytes).ok().as_deref(), Some(&b"0123456789"[..]));
        assert!(why(path.to_str().expect("text"), 9).contains("larger than 9 bytes"));
        std::fs::remove_file(&path).expect("it is there");
    }
}
