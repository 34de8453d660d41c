//! A socket that listens: opened by startup, accepted from by the worker.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use crate::config::{ListenTls, Protocol};

/// A socket that listens.
pub struct Listener {
    /// The socket, non-blocking.
    pub socket: OwnedFd,
    /// Its address or path.
    pub name: String,
    /// Its TCP port, if it has one.
    pub port: Option<u16>,
    /// Whether its connections speak TLS.
    pub tls: ListenTls,
    /// The protocol of its connections.
    pub protocol: Protocol,
    /// Whether other hosts may reach it.
    pub is_exposed: bool,
    /// The file of a Unix socket: its device and inode.
    pub(crate) file: Option<(PathBuf, u64, u64)>,
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.remove_file();
    }
}

impl Listener {
    /// Removes the file of a Unix socket, if it is still this one's.
    pub fn remove_file(&self) {
        let Some((path, device, inode)) = &self.file else { return };
        if fs::symlink_metadata(path).is_ok_and(|now| (now.dev(), now.ino()) == (*device, *inode)) {
            let _ = fs::remove_file(path);
        }
    }
}
