//! A process that ends, and the next one with the memory file that it left.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use larder_store::*;

use super::{Rig, config};

pub const CLOCK: &str = "one boot";
pub const SSD: &[u8] = b"one SSD";
pub const PATHS: &[u8] = b"one path";

pub fn memory_file() -> MemoryFile {
    let file = rustix::fs::memfd_create(c"larder-restart", rustix::fs::MemfdFlags::CLOEXEC);
    MemoryFile {
        file: Arc::new(File::from(file.expect("memory"))),
        clock: CLOCK.into(),
        paths: PATHS.to_vec(),
        ssd: SSD.to_vec(),
        allocate: false,
    }
}

pub fn with_file(memory_mib: u64, ssd_segments: u64, memory: &MemoryFile) -> Config {
    Config { memory_file: Some(memory.clone()), ..config(memory_mib << 20, ssd_segments) }
}

/// A rig on a new memory file.
pub fn begin(memory_mib: u64, ssd_segments: u64) -> (Rig, Config) {
    begin_with(&config(memory_mib << 20, ssd_segments))
}

/// The same, with other options.
pub fn begin_with(config: &Config) -> (Rig, Config) {
    let config = Config { memory_file: Some(memory_file()), ..config.clone() };
    let rig = Rig::with(&config);
    assert_eq!(rig.store.start(), Start::Cold(Cold::New));
    rig.store.make_ready(&config, SSD);
    (rig, config)
}

/// A memory file with what another one holds now.
pub fn copy(left: &MemoryFile) -> MemoryFile {
    let memory = memory_file();
    let mut copy = vec![0; left.file.metadata().expect("a file").len() as usize];
    left.file.read_exact_at(&mut copy, 0).expect("it is that long");
    memory.file.write_all_at(&copy, 0).expect("memory");
    memory
}

/// The next process, with what is left in a memory file and the same device.
pub fn open_left(rig: Rig, left: MemoryFile, config: &Config) -> (Rig, Config) {
    let config = Config { memory_file: Some(left), seed: config.seed + 1, ..config.clone() };
    let store = Store::open(&config).expect("it opens");
    store.check().unwrap_or_else(|what| panic!("after an end: {what}"));
    (rig.with_store(store), config)
}

/// The process ends as it is and another one begins, with the same device.
pub fn again(rig: Rig, config: &Config) -> Rig {
    // What is dropped of the first one from here on is not in what it left.
    let left = copy(config.memory_file.as_ref().expect("a file"));
    open_left(rig, left, config).0
}
