//! Files that hold the daemon's memory. They are opened so that no other user can have planted them, and checked
//! before anything in them is changed.

use std::fs::{self, File, Metadata, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};

/// The time to wait for a file in use: the kernel may not have finished ending a killed process.
const LINGER_STEPS: u32 = 150;
const LINGER_STEP: Duration = Duration::from_millis(20);
/// The most symbolic links that are followed, from one to the next.
const LINKS_MAX: u32 = 8;

/// An open file of this daemon's user, locked for this process.
pub struct OwnedFile {
    /// Open for reading and writing.
    pub file: File,
    /// Its path, with links resolved.
    pub path: PathBuf,
    /// Whether it did not exist before.
    pub created: bool,
}

impl OwnedFile {
    /// Opens the file for this process alone; a missing one is made, with mode 0600.
    ///
    /// # Errors
    /// The problem with the path and its remedy. Nothing is changed then.
    pub fn open(path: &Path) -> Result<OwnedFile, String> {
        let path = resolve(path)?;
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
        let open = |more| rustix::fs::open(&path, flags | more, Mode::RUSR | Mode::WUSR);
        let (file, created) = match fs::symlink_metadata(&path) {
            // Checked before it is opened, since opening some devices has an effect.
            Ok(metadata) => {
                check(&metadata)?;
                (open(OFlags::empty()), false)
            }
            Err(_) => (open(OFlags::CREATE | OFlags::EXCL), true),
        };
        let file = File::from(file.map_err(|error| cannot_open(&error.into()))?);
        check(&file.metadata().map_err(|error| error.to_string())?)?;
        lock(&file)?;
        Ok(OwnedFile { file, path, created })
    }

    /// Makes the file readable by its owner alone. For a file that is known to be Larder's.
    ///
    /// # Errors
    /// The error that the system reports.
    pub fn make_private(&self) -> io::Result<()> {
        self.file.set_permissions(fs::Permissions::from_mode(0o600))
    }
}

fn cannot_open(error: &io::Error) -> String {
    format!("{error}; give a path in a directory you can write, best on tmpfs")
}

/// Checks that the file may be this daemon's: a regular one of its user, with one name, that no other user writes.
///
/// # Errors
/// The reason why not, and the remedy.
pub fn check(metadata: &Metadata) -> Result<(), String> {
    let own = rustix::process::geteuid().as_raw();
    if !metadata.is_file() {
        return Err("it is not a regular file; give another path".into());
    }
    if metadata.uid() != own {
        let uid = metadata.uid();
        return Err(format!(
            "it belongs to another user (uid {uid}, and the daemon runs as {own}); remove it, give another \
             path, or run the daemon as that user"
        ));
    }
    if metadata.mode() & 0o022 != 0 {
        let mode = metadata.mode() & 0o777;
        return Err(format!("other users may write to it (mode {mode:o}); chmod it to 600, or remove it"));
    }
    if metadata.nlink() > 1 {
        return Err("it has a second name (a hard link); give another path".into());
    }
    Ok(())
}

/// Locks a file for this process.
///
/// # Errors
/// Another process uses it, or the system's error.
pub(super) fn lock(file: &File) -> Result<(), String> {
    for _ in 0..LINGER_STEPS {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) => sleep(LINGER_STEP),
            Err(TryLockError::Error(error)) => return Err(error.to_string()),
        }
    }
    Err("another process uses it; give each its own".into())
}

/// Returns the path without symbolic links. A link is followed where only root or the daemon's user can have
/// made it.
///
/// # Errors
/// The directory does not exist, or other users may replace its files.
pub fn resolve(path: &Path) -> Result<PathBuf, String> {
    let mut path = path.to_path_buf();
    for _ in 0..LINKS_MAX {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        let name = path.file_name().ok_or("it names a directory; give the path of a file")?;
        let directory = fs::canonicalize(parent)
            .map_err(|error| format!("the directory {}: {error}; create it first", parent.display()))?;
        let others_plant = others_may_plant(&directory)?;
        let full = directory.join(name);
        match fs::symlink_metadata(&full) {
            Ok(metadata) if !metadata.is_symlink() => return Ok(full),
            Err(_) => return Ok(full),
            Ok(_) if others_plant => {
                return Err(format!(
                    "it is a symbolic link in {}, where another user may have made it; give the path it \
                     leads to",
                    directory.display()
                ));
            }
            Ok(_) => {
                let target = fs::read_link(&full).map_err(|error| error.to_string())?;
                path = directory.join(target);
            }
        }
    }
    Err("it is a symbolic link to a link to a link, and so on; give the path it leads to".into())
}

/// Returns whether other users may make files in a directory.
///
/// # Errors
/// Other users may also replace or remove files that are not theirs, there or in a directory above.
fn others_may_plant(directory: &Path) -> Result<bool, String> {
    const STICKY: u32 = 0o1000;
    let own = rustix::process::geteuid().as_raw();
    let mut others_plant = false;
    for (nth, directory) in directory.ancestors().enumerate() {
        let shown = directory.display();
        let metadata = fs::metadata(directory).map_err(|error| format!("the directory {shown}: {error}"))?;
        let all_write = metadata.mode() & 0o002 != 0;
        if all_write && metadata.mode() & STICKY == 0 {
            return Err(format!(
                "every user may replace files in the directory {shown}; take the right to write from others \
                 (chmod o-w), set the sticky bit (chmod +t), or give another path"
            ));
        }
        others_plant |= nth == 0 && (all_write || ![0, own].contains(&metadata.uid()));
    }
    Ok(others_plant)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str, mode: u32) -> Folder {
            let name = format!("larder-owned-{}-{name}", std::process::id());
            let path = fs::canonicalize(std::env::temp_dir()).expect("a directory").join(name);
            fs::create_dir(&path).expect("the temporary directory can be written");
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("a mode");
            Folder(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn refusal(path: &Path) -> String {
        OwnedFile::open(path).map(|_| ()).expect_err("a refusal")
    }

    #[test]
    fn a_new_file_is_private_and_has_one_user() {
        let folder = Folder::new("new", 0o755);
        let path = folder.0.join("memory");
        let first = OwnedFile::open(&path).expect("a new file");
        assert!(first.created && first.path == path);
        assert_eq!(fs::metadata(&path).expect("a file").mode() & 0o777, 0o600);
        drop(first);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("a mode");
        let again = OwnedFile::open(&path).expect("its own file");
        assert!(!again.created);
        again.make_private().expect("a mode");
        assert_eq!(fs::metadata(&path).expect("a file").mode() & 0o777, 0o600);
    }

    #[test]
    fn a_directory_in_which_others_replace_files_is_refused() {
        let folder = Folder::new("open", 0o777);
        let said = refusal(&folder.0.join("memory"));
        assert!(said.contains("chmod o-w") && said.contains("chmod +t"), "{said}");
        fs::create_dir(folder.0.join("inner")).expect("a directory");
        assert!(refusal(&folder.0.join("inner/memory")).contains("every user may replace"));
        fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o1777)).expect("a mode");
        OwnedFile::open(&folder.0.join("memory")).expect("the sticky bit is set");
        assert!(refusal(&folder.0.join("none/memory")).contains("create it first"));
    }

    #[test]
    fn a_link_is_followed_only_where_no_other_user_makes_one() {
        let folder = Folder::new("links", 0o755);
        let (target, link) = (folder.0.join("target"), folder.0.join("link"));
        symlink("target", &link).expect("a link");
        assert_eq!(OwnedFile::open(&link).expect("an own link").path, target);
        fs::remove_file(&target).expect("it was made");
        fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o1777)).expect("a mode");
        assert!(refusal(&link).contains("symbolic link"), "{}", refusal(&link));
        assert!(!target.exists(), "the link was followed");
        symlink("round", folder.0.join("round")).expect("a link");
        fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o755)).expect("a mode");
        assert!(refusal(&folder.0.join("round")).contains("symbolic link"));
    }

    #[test]
    fn what_is_not_a_private_regular_file_is_refused() {
        let folder = Folder::new("kinds", 0o755);
        assert!(refusal(&folder.0).contains("not a regular file"));
        assert!(refusal(Path::new("/dev/null")).contains("not a regular file"));
        let path = folder.0.join("file");
        fs::write(&path, "").expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o622)).expect("a mode");
        assert!(refusal(&path).contains("chmod it to 600"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("a mode");
        fs::hard_link(&path, folder.0.join("second")).expect("a link");
        assert!(refusal(&path).contains("hard link"));
        fs::remove_file(folder.0.join("second")).expect("a link");
        if std::os::unix::fs::chown(&path, Some(65_534), None).is_ok() {
            assert!(refusal(&path).contains("uid 65534"), "{}", refusal(&path));
        }
    }
}
