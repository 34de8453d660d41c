//! What the tests of the shared cache share: folders that go, values that tell what they are, child processes.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use larder_client::{Entry, Hit, L1, L1Options, now_ms};

#[path = "../../src/l1/tests/values.rs"]
mod values;

pub use values::{name, value};

/// A folder of this test's own, in memory where the system has such a place; removed at the end.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Folder {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let shared = Path::new("/dev/shm");
        let parent = if shared.is_dir() { shared.to_path_buf() } else { std::env::temp_dir() };
        let name = format!("larder-test-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
        let path = parent.join(name);
        std::fs::create_dir(&path).expect("the folder can be made");
        Folder(path)
    }

    /// A folder for the caches in it, which does not exist yet.
    pub fn caches(&self) -> PathBuf {
        self.0.join("caches")
    }

    pub fn options(&self, bytes: u64) -> L1Options {
        L1Options::new().bytes(bytes).directory(self.caches())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// An entry that stays fresh during a test, with its version as cas and its length as flags.
pub fn entry(value: &[u8], version: u64) -> Entry<'_> {
    let later = now_ms() + 1_000_000;
    let flags = value.len() as u32;
    Entry { value, flags, cas: version, fresh_until_ms: later, stale_until_ms: later, ..Entry::default() }
}

/// Returns what the cache has under a key; checks that it is a version of that key as it was stored.
pub fn read(l1: &L1, key: u64, buffer: &mut Vec<u8>) -> Option<Hit> {
    let hit = l1.get(&name(key), buffer)?;
    assert_eq!(hit.flags as usize, buffer.len(), "key {key}");
    assert!(*buffer == value(key, hit.cas, buffer.len()), "key {key} has a value that nobody stored");
    Some(hit)
}

/// Numbers that follow from a seed.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mixed = (self.0 ^ self.0 >> 31).wrapping_mul(0x7FB5_D329_728E_A185);
        ((u128::from(mixed ^ mixed >> 27) * u128::from(bound)) >> 64) as u64
    }
}

/// How long children wait for a lock.
pub const PATIENCE: Duration = Duration::from_secs(20);

const ROLE: &str = "LARDER_L1_ROLE";

/// Runs the test named `child` of this program in a process of its own, in a role.
pub fn spawn(role: &str, folder: &Folder) -> Child {
    run(Command::new(program()), role, folder)
}

/// Returns whether this user may make PID namespaces.
pub fn has_namespaces() -> bool {
    Command::new("unshare").args(["--pid", "--fork", "true"]).status().is_ok_and(|status| status.success())
}

/// As [`spawn`], in a PID namespace of its own, so that its threads have the same ids as those of others like it.
pub fn spawn_in_namespace(role: &str, folder: &Folder) -> Child {
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--kill-child"]).arg(program());
    run(command, role, folder)
}

fn program() -> PathBuf {
    std::env::current_exe().expect("a program")
}

fn run(mut command: Command, role: &str, folder: &Folder) -> Child {
    command.args(["--exact", "child", "--nocapture", "--test-threads", "1"]).stdout(Stdio::null());
    command.env(ROLE, format!("{role} {}", folder.caches().display()));
    command.spawn().expect("the program can be run again")
}

/// In a child: its role, and the options of its cache.
pub fn role() -> Option<(String, L1Options)> {
    let role = std::env::var(ROLE).ok()?;
    let (role, folder) = role.split_once(' ')?;
    // A holder may wait long for a processor while tests run; a lock that was lost would take this long.
    Some((role.to_string(), L1Options::new().directory(folder).lock_patience(PATIENCE)))
}
