//! The store's memory: how large, in which file, what of an earlier process it goes on with, where it goes at
//! the end.

use std::fs::{self, File, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use larder_store::{Cold, Config as StoreConfig, MemoryFile, OpenError, Span, Start, Store};

use crate::clock::Clock;
use crate::config::Config;
use crate::ssd::Ssd;
use crate::state::{Found, StateFile};

/// How long to wait for a memory file in use: a process just killed may have it until the kernel is done.
const LINGER_STEPS: u32 = 150;
const LINGER_STEP: Duration = Duration::from_millis(20);

/// An opened store, and what belongs to its memory.
pub struct Opened {
    /// The store.
    pub store: Store,
    /// The clock that its items' times are on.
    pub clock: Clock,
    /// Where its memory goes when the daemon has stopped.
    pub saving: Option<Saving>,
    /// Whether it began with an earlier daemon's items, for the operator; nothing where it never does.
    pub said: Option<String>,
}

/// A memory that is to be saved when the daemon stops.
pub struct Saving {
    state: StateFile,
    memory: Arc<File>,
}

impl Saving {
    /// Saves it; nobody may change it any more. Answers its bytes.
    ///
    /// # Errors
    /// A text for the operator.
    pub fn save(&self, clock: &Clock) -> Result<u64, String> {
        self.state.save(&self.memory, clock)
    }
}

/// Where the store's memory is, and what comes with it; by default it is the process's own and begins empty.
#[derive(Default)]
struct Memory {
    file: Option<MemoryFile>,
    clock: Clock,
    saving: Option<Saving>,
    /// Why there is no state to begin with.
    stateless: Option<String>,
}

impl Memory {
    /// In a file, on a clock that goes on when the daemon does not.
    fn in_file(path: &Path, bytes: u64, clock_name: String, ssd: &Ssd) -> Result<Memory, String> {
        let file = Arc::new(open_file(path)?);
        check_room(path, &file, bytes)?;
        let file = MemoryFile { file, clock: clock_name, ssd: ssd.identity() };
        Ok(Memory { file: Some(file), ..Memory::default() })
    }

    /// Of the process, filled from a state file, and saved there at the end.
    fn of_state(path: &Path, ssd: &Ssd) -> Result<Memory, String> {
        let memory =
            rustix::fs::memfd_create("larder", rustix::fs::MemfdFlags::CLOEXEC).map_err(|error| {
                format!("--state-file {}: no memory to load it into: {error}", path.display())
            })?;
        let memory = Arc::new(File::from(memory));
        let state = StateFile::new(path);
        let (clock, stateless) = match state.take(&memory)? {
            Found::Nothing => (Clock::new(), Some("there is no state".to_string())),
            Found::State(clock) => (clock, None),
            Found::Useless(why) => (Clock::new(), Some(format!("it {why}"))),
        };
        let name = format!("unix {}", clock.unix_base());
        let file = MemoryFile { file: memory.clone(), clock: name, ssd: ssd.identity() };
        Ok(Memory { file: Some(file), clock, saving: Some(Saving { state, memory }), stateless })
    }
}

/// Opens the store, with what the memory file or the state file holds if that is of use.
///
/// # Errors
/// A text for the operator that says what to do.
pub fn open_store(config: &Config, ssd: &mut Ssd) -> Result<Opened, String> {
    let began = Instant::now();
    let seed = random()?;
    let Memory { file: memory_file, clock, saving, stateless } =
        match (&config.memory_file, &config.state_file) {
            (Some(path), _) => Memory::in_file(path, config.memory_limit_bytes, clock_name(seed), ssd)?,
            (None, Some(path)) => Memory::of_state(path, ssd)?,
            (None, None) => Memory::default(),
        };
    let store_config =
        StoreConfig { memory_file, first_cas: first_cas()?, ..store_config(config, ssd.spans.clone(), seed) };
    let store = Store::open(&store_config).map_err(|error| match (&error, &config.memory_file) {
        (OpenError::NotMemory, Some(path)) => format!("--memory-file {}: {error}", path.display()),
        _ => refused(&error),
    })?;
    let is_cold = matches!(store.start(), Start::Cold(_));
    // A state that was copied elsewhere before it was taken must not be taken again, so the SSD is another
    // from now on.
    if is_cold || saving.is_some() {
        // In this order: whoever finds the memory ready finds an SSD with nothing older on it.
        ssd.renew()?;
        store.make_ready(&store_config, &ssd.identity());
    }
    let how = match stateless {
        Some(why) => format!("starting cold: {why}"),
        None => describe(store.start(), began.elapsed()),
    };
    let said = match (&config.memory_file, &config.state_file) {
        (Some(path), _) => Some(format!("--memory-file {}: {how}", path.display())),
        (None, Some(path)) => Some(format!("--state-file {}: {how}", path.display())),
        (None, None) => None,
    };
    Ok(Opened { store, clock, saving, said })
}

/// Returns 64 random bits.
fn random() -> Result<u64, String> {
    let mut bytes = [0; 8];
    let got = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    match got {
        Ok(8) => Ok(u64::from_ne_bytes(bytes)),
        _ => Err("the system gives no random numbers".into()),
    }
}

/// Returns where cas uniques begin: a random number of its own, since clients see it and must learn nothing of
/// the hash's seed from it.
fn first_cas() -> Result<u64, String> {
    Ok(1 << 20 | random()? >> 34)
}

/// What the store is to be, but for its memory file and its first cas unique.
pub fn store_config(config: &Config, ssd: Vec<Span>, seed: u64) -> StoreConfig {
    StoreConfig {
        memory_bytes: config.memory_limit_bytes,
        ssd,
        item_bytes: config.item_size_bytes.clamp(16, u64::from(u32::MAX)) as u32,
        index_bytes: config.index_memory_bytes,
        ssd_write_limit: config.ssd_write_limit,
        ssd_admission: config.ssd_admission,
        ssd_live_percent: config.ssd_live_percent,
        evict: config.evictions,
        memory_file: None,
        seed,
        first_cas: 0,
    }
}

/// The text for an operator whose store cannot be opened.
pub fn refused(error: &OpenError) -> String {
    format!("{error} (-m, --ssd, --item-size, --index-memory)")
}

/// How the store began, for the operator.
fn describe(start: Start, took: Duration) -> String {
    match start {
        Start::Cold(why @ (Cold::New | Cold::NoFile)) => format!("starting cold: it {why}"),
        Start::Cold(why) => format!("starting cold: it {why}; what it held is gone"),
        Start::Warm { items, shards_reset } => {
            let lost = match shards_reset {
                0 => String::new(),
                reset => format!("; {reset} shards had to be emptied"),
            };
            format!("{items} items are back, in {} ms{lost}", took.as_millis())
        }
    }
}

/// Names the clock that the daemon's seconds are counted on (see [`crate::clock`]): the time since the
/// machine started, as this time namespace shows it. What cannot be named is unlike anything else.
fn clock_name(random: u64) -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id");
    let namespace = fs::read_link("/proc/self/ns/time").unwrap_or_default();
    match boot {
        Ok(boot) => format!("{} {}", boot.trim(), namespace.display()),
        Err(_) => format!("unknown {random:x}"),
    }
}

/// The file gets its blocks as they are first written to; a daemon that finds none left dies there and then.
fn check_room(path: &Path, file: &File, wanted_bytes: u64) -> Result<(), String> {
    let (Ok(system), Ok(file)) = (rustix::fs::fstatvfs(file), file.metadata()) else {
        return Ok(());
    };
    let room_bytes = system.f_bavail.saturating_mul(system.f_frsize).saturating_add(file.blocks() * 512);
    if room_bytes >= wanted_bytes {
        return Ok(());
    }
    Err(format!(
        "--memory-file {}: its file system has room for {} MiB, and -m asks for {} MiB; give it more room or \
         less memory",
        path.display(),
        room_bytes >> 20,
        wanted_bytes >> 20
    ))
}

/// Opens the file that the memory is to live in, for this process alone.
fn open_file(path: &Path) -> Result<File, String> {
    let shown = path.display();
    let file = File::options().read(true).write(true).create(true).truncate(false).open(path);
    let file = file.map_err(|error| {
        format!("--memory-file {shown}: {error}; give a path in a directory you can write, best on tmpfs")
    })?;
    for _ in 0..LINGER_STEPS {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => sleep(LINGER_STEP),
            Err(TryLockError::Error(error)) => return Err(format!("--memory-file {shown}: {error}")),
        }
    }
    Err(format!("--memory-file {shown}: another process uses it; give each its own"))
}
