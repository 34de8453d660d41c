//! A private folder for the files of servers, which goes when it is dropped.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, chown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Others may pass through (a database runs as a user of its own), and list nothing.
const MODE: u32 = 0o711;
static NEXT: AtomicU32 = AtomicU32::new(0);

/// A private folder.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// A new one in `parent`.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn new(parent: &Path) -> io::Result<Self> {
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = parent.join(format!("larder-bench-{}-{number}", std::process::id()));
            match DirBuilder::new().mode(MODE).create(&path) {
                // A process of this number was killed once, or runs in another container.
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                made => return made.map(|()| Self(path)),
            }
        }
    }

    /// The same, for a user and a group.
    ///
    /// # Errors
    /// It cannot be made, or not be given away.
    pub fn of(parent: &Path, owner: Option<(u32, u32)>) -> io::Result<Self> {
        let folder = Self::new(parent)?;
        if let Some((user, group)) = owner {
            chown(&folder.0, Some(user), Some(group))?;
        }
        Ok(folder)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_with_what_is_in_it() {
        let folder = Folder::new(&std::env::temp_dir()).expect("there is a temporary folder");
        let path = folder.path().to_path_buf();
        fs::write(path.join("x"), "y").expect("it is ours");
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn what_a_killed_process_left_behind_is_in_nobodys_way() {
        let parent = Folder::new(&std::env::temp_dir()).expect("there is a temporary folder");
        let next = NEXT.load(Ordering::Relaxed);
        let left = (next..next + 100).map(|number| format!("larder-bench-{}-{number}", std::process::id()));
        left.for_each(|name| fs::create_dir(parent.path().join(name)).expect("it is ours"));
        let folder = Folder::new(parent.path()).expect("another name");
        assert!(fs::read_dir(folder.path()).expect("it is there").next().is_none());
    }
}
