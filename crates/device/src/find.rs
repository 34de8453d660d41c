//! From a path to an open file, created when missing. Never looks at what it holds.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use super::{FileOptions, OpenError};

/// A file on its way to being a device.
pub(super) struct Found {
    pub(super) file: File,
    /// Whether it did not exist before.
    pub(super) created: bool,
    /// Whether it is a block device.
    pub(super) block: bool,
}

/// Opens or creates the file; `None` when it came or went in between.
pub(super) fn find(options: &FileOptions) -> Result<Option<Found>, OpenError> {
    let path = &options.path;
    let open = |create: bool| {
        let mut how = OpenOptions::new();
        how.read(true).write(true).create_new(create).mode(0o600);
        how.open(path)
    };
    // The kind is asked for first, since merely opening a pipe or a tape has effects.
    let error = match std::fs::metadata(path) {
        Ok(meta) => {
            let kind = meta.file_type();
            let block = kind.is_block_device();
            if let Some(error) = unfit(path, kind) {
                return Err(error);
            }
            match open(false) {
                Ok(file) => {
                    return Ok(Some(Found { file, created: false, block }));
                }
                Err(error) => error,
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if options.create_parents
                && let Some(parent) = path.parent()
            {
                let made = DirBuilder::new().recursive(true).mode(0o700).create(parent);
                made.map_err(|error| refusal(path, parent, error))?;
            }
            match open(true) {
                Ok(file) => {
                    return Ok(Some(Found { file, created: true, block: false }));
                }
                Err(error) => error,
            }
        }
        Err(error) => error,
    };
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match error.kind() {
        io::ErrorKind::AlreadyExists => Ok(None),
        io::ErrorKind::NotFound if parent.is_dir() => Ok(None),
        _ => Err(refusal(path, parent, error)),
    }
}

fn unfit(path: &Path, kind: std::fs::FileType) -> Option<OpenError> {
    let name = match () {
        () if kind.is_dir() => return Some(OpenError::Directory { path: path.into() }),
        () if kind.is_char_device() => "character device",
        () if kind.is_fifo() => "pipe",
        () if kind.is_socket() => "socket",
        () => return None,
    };
    Some(OpenError::NotStorage { path: path.into(), kind: name })
}

/// What a failure to open or create means for the operator.
fn refusal(path: &Path, parent: &Path, error: io::Error) -> OpenError {
    let path = path.to_path_buf();
    match error.raw_os_error() {
        Some(libc::ENOENT) => OpenError::MissingParent { path, parent: parent.into() },
        Some(libc::EACCES | libc::EPERM) => OpenError::Permission { path },
        Some(libc::EROFS) => OpenError::ReadOnly { path },
        Some(libc::EISDIR) => OpenError::Directory { path },
        _ => OpenError::Io { path, doing: "opening", source: error },
    }
}

/// Whether the path still leads to the open file, now that the lock is held.
pub(super) fn is_still(path: &Path, file: &File) -> bool {
    match (std::fs::metadata(path), file.metadata()) {
        (Ok(named), Ok(open)) => (named.dev(), named.ino()) == (open.dev(), open.ino()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_name_the_remedy() {
        let of = |errno| {
            let error = io::Error::from_raw_os_error(errno);
            refusal(Path::new("/x/larder.ssd"), Path::new("/x"), error).to_string()
        };
        assert!(of(libc::ENOENT).contains("/x does not exist; create it"), "{}", of(libc::ENOENT));
        assert!(of(libc::EACCES).starts_with("permission denied: /x/larder.ssd"));
        assert!(of(libc::EROFS).contains("read-only"));
        assert!(of(libc::EISDIR).contains("is a directory"));
        assert!(of(libc::EIO).contains("opening"));
    }
}
