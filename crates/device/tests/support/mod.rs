//! What the device tests share: scratch directories, small files, pseudo-random numbers. Never a test.

#![allow(dead_code, reason = "each test binary uses its part")]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use larder_device::{FileDevice, FileOptions};

pub const MIB: u64 = 1 << 20;

/// A directory that goes when the value does.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new() -> Self {
        Self::under(&std::env::temp_dir())
    }

    /// On tmpfs, which has no direct I/O; `None` (said aloud) where there is none.
    pub fn in_memory() -> Option<Self> {
        let shm = Path::new("/dev/shm");
        if shm.is_dir() {
            return Some(Self::under(shm));
        }
        eprintln!("SKIPPED on tmpfs: there is no /dev/shm");
        None
    }

    fn under(parent: &Path) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("larder-device-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = parent.join(name);
        std::fs::create_dir(&path).expect("a scratch directory");
        Scratch(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn dir(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Options with segments of 1 MiB, so that 5 MiB is the least.
pub fn small(path: impl Into<PathBuf>, size_bytes: Option<u64>) -> FileOptions {
    FileOptions { size_bytes, segment_bytes: MIB, ..FileOptions::new(path) }
}

pub fn open_small(path: impl Into<PathBuf>, size_bytes: u64) -> FileDevice {
    FileDevice::open(&small(path, Some(size_bytes))).expect("a device")
}

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub fn fill(&mut self, buf: &mut [u8]) {
        for chunk in buf.chunks_mut(8) {
            let bytes = self.next().to_le_bytes();
            chunk.copy_from_slice(&bytes[..chunk.len()]);
        }
    }
}
