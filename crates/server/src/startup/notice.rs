//! Small files by which other programs find a daemon: its process id, its ports. A file with other content is
//! neither replaced nor removed.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The most bytes of such a file.
const BYTES_MAX: u64 = 64 << 10;

/// A file that was written, and its content. It is removed with this value if its content is still the same.
pub struct Notice {
    path: PathBuf,
    text: String,
    stays: bool,
}

impl Notice {
    /// Writes a file of these lines in one step. An existing file is replaced if it is empty or each of its lines
    /// `is_own`.
    ///
    /// # Errors
    /// The problem and its remedy; nothing is changed then.
    pub fn put(path: &Path, text: String, is_own: fn(&str) -> bool) -> Result<Notice, String> {
        let shown = path.display();
        match may_be_replaced(path, is_own) {
            Ok(true) => {}
            Ok(false) => {
                return Err(format!(
                    "{shown} holds something else, and is left as it is; remove it or give another path"
                ));
            }
            Err(error) => return Err(format!("cannot read {shown}: {error}")),
        }
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{}.new", std::process::id()));
        let partial = PathBuf::from(name);
        // Never through a link, and never over an existing file.
        let made = File::options().write(true).create_new(true).mode(0o644).open(&partial);
        let put = made.and_then(|mut file| {
            let put = file.write_all(text.as_bytes()).and_then(|()| fs::rename(&partial, path));
            put.inspect_err(|_| drop(fs::remove_file(&partial)))
        });
        put.map_err(|error| format!("cannot write {shown}: {error}"))?;
        Ok(Notice { path: path.to_path_buf(), text, stays: false })
    }

    /// Leaves the file where it is.
    pub fn leave(mut self) {
        self.stays = true;
    }
}

impl Drop for Notice {
    fn drop(&mut self) {
        if !self.stays && fs::read_to_string(&self.path).is_ok_and(|text| text == self.text) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn may_be_replaced(path: &Path, is_own: fn(&str) -> bool) -> io::Result<bool> {
    let metadata = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        metadata => metadata?,
    };
    if !metadata.is_file() || metadata.len() > BYTES_MAX {
        return Ok(false);
    }
    let content = fs::read(path)?;
    Ok(std::str::from_utf8(&content).is_ok_and(|text| text.lines().all(is_own)))
}

/// Returns whether a line is that of a file with a process id.
pub fn is_pid(line: &str) -> bool {
    line.trim().parse::<u32>().is_ok()
}

/// Returns whether a line is that of a file with ports.
pub fn is_port(line: &str) -> bool {
    ["TCP INET: ", "TCP INET6: ", "UDP INET: ", "UDP INET6: ", "UNIX: "]
        .iter()
        .any(|kind| line.starts_with(kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_own_file_is_replaced_and_removed() {
        let folder = std::env::temp_dir().join(format!("larder-notice-{}", std::process::id()));
        fs::create_dir(&folder).expect("the temporary directory can be written");
        let path = folder.join("pid");
        let put = || Notice::put(&path, "77\n".to_string(), is_pid);
        for own in [None, Some(""), Some("123\n"), Some("123")] {
            if let Some(own) = own {
                fs::write(&path, own).expect("room");
            }
            let notice = put().expect("an own file");
            assert_eq!(fs::read(&path).expect("there"), b"77\n");
            drop(notice);
            assert!(!path.exists());
        }
        for theirs in ["dear diary", "12 monkeys\n", "\n", "1\nx"] {
            fs::write(&path, theirs).expect("room");
            let said = put().map(drop).expect_err("somebody's");
            assert!(said.contains("left as it is"), "{said}");
            assert_eq!(fs::read(&path).expect("there"), theirs.as_bytes());
        }
        fs::write(&path, "").expect("room");
        put().expect("an empty file").leave();
        assert_eq!(fs::read(&path).expect("there"), b"77\n");
        let notice = put().expect("an own file");
        fs::write(&path, "78\n").expect("room");
        drop(notice);
        assert_eq!(fs::read(&path).expect("there"), b"78\n", "another daemon's by now");
        fs::write(folder.join("target"), "").expect("room");
        let link = folder.join("link");
        std::os::unix::fs::symlink("target", &link).expect("a link");
        assert!(Notice::put(&link, "77\n".to_string(), is_pid).is_err());
        assert!(is_port("TCP INET: 11211") && is_port("UNIX: /run/x") && !is_port("11211"));
        let _ = fs::remove_dir_all(&folder);
    }
}
