//! Reads the file of users within bounds, and judges its permissions.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use super::table::{LINE_BYTES_MAX, USERS_MAX};

/// The most bytes of the file: every user on the longest line, in a section of its own.
const BYTES_MAX: u64 = 2 * (USERS_MAX * (LINE_BYTES_MAX + 2)) as u64;

/// Returns the file's content, and a warning if others than its owner may read or change it.
///
/// # Errors
/// The problem, with its remedy.
pub(super) fn read(path: &Path) -> Result<(Vec<u8>, Option<&'static str>), String> {
    let readable = |error: io::Error| format!("cannot be read: {error}; give a file that this user can read");
    // A pipe without a writer would stop the daemon here.
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let file = File::options().read(true).custom_flags(nonblocking).open(path).map_err(readable)?;
    let metadata = file.metadata().map_err(readable)?;
    if !metadata.is_file() {
        return Err("is no regular file".into());
    }
    let mut bytes = Vec::new();
    file.take(BYTES_MAX + 1).read_to_end(&mut bytes).map_err(readable)?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(format!("is larger than any file of {USERS_MAX} users"));
    }
    Ok((bytes, warning(metadata.mode())))
}

fn warning(mode: u32) -> Option<&'static str> {
    if mode & 0o022 != 0 {
        Some("users other than its owner can change it, and so let themselves in: chmod 600")
    } else if mode & 0o004 != 0 {
        Some("every user of this host can read the passwords: chmod 600")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_are_judged() {
        assert_eq!([0o600, 0o400, 0o440, 0o640].map(warning), [None; 4]);
        assert!(
            [0o644, 0o444].map(warning).iter().all(|w| w.is_some_and(|w| w.contains("read the passwords")))
        );
        assert!(
            [0o660, 0o666, 0o622].map(warning).iter().all(|w| w.is_some_and(|w| w.contains("change it")))
        );
    }

    #[test]
    fn only_a_regular_file_of_some_size_is_read() {
        assert!(read(Path::new("/nonexistent/users")).is_err_and(|why| why.contains("cannot be read")));
        assert!(read(Path::new("/dev/zero")).is_err_and(|why| why.contains("no regular file")));
        assert!(read(Path::new("/")).is_err());
    }
}
