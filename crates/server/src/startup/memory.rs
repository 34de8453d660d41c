//! The store's memory: its size, its file, its recovery from an earlier process, and its saving at the end.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use larder_device::Bytes;
use larder_store::{
    Cold, Config as StoreConfig, MadeFor, MemoryFile, OpenError, SEGMENT_BYTES, Span, Start, Store,
};

use super::kept_memory::{Earlier, KeptMemory};
use super::owned_file::OwnedFile;
use super::ssd::{self, SsdTier};
use super::state::{self, LoadedState, StateFile};
use crate::clock::Clock;
use crate::config::{Config, show_size};
use crate::service::Service;

/// An opened store, with its clock and the saving of its memory.
pub struct Opened {
    /// The store.
    pub store: Store,
    /// The clock that its items' times are on.
    pub clock: Clock,
    /// Saves its memory when the daemon has stopped.
    pub saving: Option<Saving>,
    /// A line for the operator about the earlier daemon's items, if the options keep them.
    pub said: Option<String>,
}

/// A memory to be saved when the daemon stops.
pub struct Saving {
    state: StateFile,
    memory: Arc<File>,
}

impl Saving {
    /// Saves the memory, which must not change any more. Returns its bytes.
    ///
    /// # Errors
    /// A text for the operator.
    pub fn save(&self, clock: &Clock) -> Result<u64, String> {
        self.state.save(&self.memory, clock)
    }
}

/// The place of the store's memory and its clock. By default it is the process's own and begins empty.
#[derive(Default)]
struct MemoryPlace {
    file: Option<MemoryFile>,
    clock: Clock,
    saving: Option<Saving>,
    /// The memory file, if there is one.
    owned: Option<OwnedFile>,
    /// The memory that is to be given to the service manager, which has not got it yet.
    to_keep: Option<KeptMemory>,
    /// The reason why there is no state to begin with.
    stateless: Option<String>,
}

impl MemoryPlace {
    /// Returns memory in a file, on a clock that continues while no daemon runs.
    fn in_file(
        path: &Path,
        config: &Config,
        clock_name: String,
        ssd: &SsdTier,
    ) -> Result<MemoryPlace, String> {
        let owned =
            OwnedFile::open(path).map_err(|error| format!("--memory-file {}: {error}", path.display()))?;
        check_room(path, &owned.file, config.memory_limit_bytes)?;
        let file = owned.file.try_clone().map_err(|error| error.to_string())?;
        let memory = MemoryFile {
            file: Arc::new(file),
            clock: clock_name,
            paths: ssd::names(config),
            ssd: ssd.identity(),
            allocate: true,
        };
        Ok(MemoryPlace { file: Some(memory), owned: Some(owned), ..MemoryPlace::default() })
    }

    /// Returns memory that the service manager keeps: an earlier daemon's, or a new one.
    fn in_service(
        earlier: Earlier,
        config: &Config,
        clock_name: String,
        ssd: &SsdTier,
    ) -> Result<MemoryPlace, String> {
        let no_memory = |error| format!("--memory-file systemd: no memory: {error}");
        let (memory, stateless) = match earlier.into_memory() {
            Ok(memory) => (memory, None),
            Err(why) => (KeptMemory::new().map_err(no_memory)?, Some(why)),
        };
        let file = memory.file.try_clone().map_err(|error| no_memory(error.to_string()))?;
        let file = MemoryFile {
            file: Arc::new(file),
            clock: clock_name,
            paths: ssd::names(config),
            ssd: ssd.identity(),
            allocate: false,
        };
        let to_keep = stateless.is_some().then_some(memory);
        Ok(MemoryPlace { file: Some(file), to_keep, stateless, ..MemoryPlace::default() })
    }

    /// Returns memory of the process, filled from a state file and saved there at the end.
    fn of_state(path: &Path, config: &Config, ssd: &SsdTier) -> Result<MemoryPlace, String> {
        let memory = larder_device::anonymous_file("larder").map_err(|error| {
            format!("--state-file {}: no memory to load it into: {error}", path.display())
        })?;
        let memory = Arc::new(memory);
        let mut state = StateFile::new(path)?;
        state.try_place()?;
        let (clock, stateless) = match state.load(&memory)? {
            LoadedState::Nothing => (Clock::new(), Some("there is no state".to_string())),
            LoadedState::State(clock) => (clock, None),
            LoadedState::Useless(why) => (Clock::new(), Some(format!("it {why}"))),
        };
        let name = format!("unix {}", clock.unix_base());
        let file = MemoryFile {
            file: memory.clone(),
            clock: name,
            paths: ssd::names(config),
            ssd: ssd.identity(),
            allocate: false,
        };
        let saving = Some(Saving { state, memory });
        Ok(MemoryPlace { file: Some(file), clock, saving, stateless, ..MemoryPlace::default() })
    }
}

/// Opens the store, with the items of the memory file, of an earlier daemon of this service, or of the state file if
/// these can be used.
///
/// # Errors
/// A text for the operator, with a remedy.
pub fn open_store(
    config: &Config,
    ssd: &mut SsdTier,
    earlier: Earlier,
    service: &Service,
) -> Result<Opened, String> {
    let began = Instant::now();
    let seed = random()?;
    let place = match (&config.memory_file, &config.state_file) {
        (Some(_), _) if config.keeps_memory_in_service() => {
            MemoryPlace::in_service(earlier, config, clock_name(seed), ssd)?
        }
        (Some(path), _) => MemoryPlace::in_file(path, config, clock_name(seed), ssd)?,
        (None, Some(path)) => MemoryPlace::of_state(path, config, ssd)?,
        (None, None) => MemoryPlace::default(),
    };
    let (store, store_config, place) = open_in(place, config, ssd, seed)?;
    let MemoryPlace { clock, mut saving, owned, to_keep, stateless, .. } = place;
    if let Some(owned) = &owned {
        let private = owned.make_private();
        private.map_err(|error| format!("--memory-file {}: {error}", owned.path.display()))?;
    }
    let is_cold = matches!(store.start(), Start::Cold(_));
    // A copy of the state that was made before must not be used again, so the SSD gets a new identity.
    if is_cold || saving.is_some() {
        // In this order: once a memory is marked as ready, its SSD holds nothing older.
        ssd.renew()?;
        store.make_ready(&store_config, &ssd.identity());
    }
    if let Some(memory) = &to_keep {
        memory.keep(service).map_err(|error| format!("--memory-file systemd: {error}"))?;
    }
    if let Some(saving) = &mut saving {
        saving.state.spend()?;
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

/// Opens the store in a place. A memory of the service manager that was made with other options gives way to a new one:
/// it has no path that an operator could remove, and a service that does not start serves nobody.
fn open_in(
    mut place: MemoryPlace,
    config: &Config,
    ssd: &SsdTier,
    seed: u64,
) -> Result<(Store, StoreConfig, MemoryPlace), String> {
    loop {
        let store_config = StoreConfig {
            memory_file: place.file.take(),
            first_cas: first_cas()?,
            ..store_config(config, ssd.spans.clone(), seed)
        };
        let error = match Store::open(&store_config) {
            Ok(store) => return Ok((store, store_config, place)),
            Err(error) => error,
        };
        let is_earlier = config.keeps_memory_in_service() && place.to_keep.is_none();
        if is_earlier && matches!(error, OpenError::NotMemory | OpenError::OtherOptions(_)) {
            let mut earlier = Earlier::default();
            earlier.give_up(match &error {
                OpenError::OtherOptions(made) => made_with(&changes(made, config, Some(&ssd.spans), true)),
                _ => format!("what systemd has is of no use: {error}"),
            });
            place = MemoryPlace::in_service(earlier, config, clock_name(seed), ssd)?;
            continue;
        }
        if let Some(owned) = place.owned.as_ref().filter(|owned| owned.created) {
            // Locked since it was made, so no other process relies on it.
            let _ = fs::remove_file(&owned.path);
        }
        return Err(refused_file(config, &ssd.spans, &error));
    }
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

/// Returns the first cas unique: a random number of its own, since clients see it and must learn nothing of the
/// hash's seed from it.
fn first_cas() -> Result<u64, String> {
    Ok(1 << 20 | random()? >> 34)
}

/// Returns the store's configuration, except for its memory file and its first cas unique.
pub fn store_config(config: &Config, ssd: Vec<Span>, seed: u64) -> StoreConfig {
    StoreConfig {
        memory_bytes: config.memory_limit_bytes,
        ssd,
        item_bytes: config.item_size_bytes.clamp(16, u64::from(u32::MAX)) as u32,
        index_bytes: config.index_memory_bytes,
        ssd_write_limit: config.ssd_write_limit,
        ssd_admission: config.ssd_admission,
        ssd_live_percent: config.ssd_live_percent,
        shadow_bytes: config.shadow_memory_bytes,
        evict: config.evictions,
        memory_file: None,
        seed,
        first_cas: 0,
    }
}

/// Returns the text for an operator whose store cannot be opened on these spans.
pub fn refused(config: &Config, spans: &[Span], error: &OpenError) -> String {
    let remedy = match error {
        OpenError::MemoryTooSmall { .. } => match enough(config, spans) {
            Some(bytes) => format!(". Give -m {}, a smaller SSD, or a larger --item-size", bytes >> 20),
            None => ". Give a smaller SSD, or a larger --item-size".to_string(),
        },
        OpenError::TooLarge { .. } => " (-m, --ssd)".to_string(),
        _ => String::new(),
    };
    format!("{error}{remedy}")
}

/// Returns the least memory limit with which the largest item fits into the RAM tier.
pub fn enough(config: &Config, spans: &[Span]) -> Option<u64> {
    let ram_bytes = config.item_size_max_bytes * RAM_PER_LARGEST_ITEM;
    Store::memory_for(&store_config(config, spans.to_vec(), 0), ram_bytes)
}

/// An item may take at most this part of the RAM tier.
pub const RAM_PER_LARGEST_ITEM: u64 = 2;

/// Returns the text for an operator whose store cannot be opened with a file.
fn refused_file(config: &Config, spans: &[Span], error: &OpenError) -> String {
    let Some(file) = shown_file(config) else { return refused(config, spans, error) };
    match error {
        OpenError::NotMemory => format!("{file}: {error}"),
        OpenError::NoRoom { .. } => format!("{file}: {error}; give its file system more room, or -m less"),
        OpenError::OtherOptions(made) => {
            let changes = changes(made, config, Some(spans), true);
            format!("{file}: {}", other_options(&changes))
        }
        _ => refused(config, spans, error),
    }
}

/// Returns the option that names the memory's file, and the file.
fn shown_file(config: &Config) -> Option<String> {
    match (&config.memory_file, &config.state_file) {
        (Some(path), _) => Some(format!("--memory-file {}", path.display())),
        (None, Some(path)) => Some(format!("--state-file {}", path.display())),
        (None, None) => None,
    }
}

/// Describes the options that a memory was made with, given those that changed.
fn made_with(changes: &[String]) -> String {
    match changes.is_empty() {
        true => "it was made with other options".to_string(),
        false => format!("it was made with {}", changes.join(", and ")),
    }
}

fn other_options(changes: &[String]) -> String {
    let made_with = made_with(changes);
    format!(
        "{made_with}; it is left as it is. Give the options it was made with to have its \
         items again, or remove it to start empty"
    )
}

/// Refuses to start if the memory file or the state could be used with other options. Called before the SSD is
/// opened, since another size would empty it. A memory of the service manager is given up instead.
///
/// # Errors
/// A text for the operator that names the options that changed.
pub fn check_options(config: &Config, earlier: &mut Earlier) -> Result<(), String> {
    if config.keeps_memory_in_service() {
        let made = earlier.file().and_then(|file| MadeFor::read(file, 0).ok()).flatten();
        if let Some(made) = made.filter(|made| made.is_on_clock(&clock_name(0))) {
            let changes = changes(&made, config, ssd::foreseen(config).as_deref(), false);
            if !changes.is_empty() {
                earlier.give_up(made_with(&changes));
            }
        }
        return Ok(());
    }
    let (path, offset) = match (&config.memory_file, &config.state_file) {
        (Some(path), _) => (path, 0),
        (None, Some(path)) => (path, state::MEMORY_OFFSET),
        (None, None) => return Ok(()),
    };
    // Any other problem with the file is reported when it is opened to be used.
    let is_file = fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    let Some(file) = is_file.then(|| File::open(path).ok()).flatten() else { return Ok(()) };
    let Ok(Some(made)) = MadeFor::read(&file, offset) else { return Ok(()) };
    if config.memory_file.is_some() && !made.is_on_clock(&clock_name(0)) {
        return Ok(());
    }
    let changes = changes(&made, config, ssd::foreseen(config).as_deref(), false);
    match shown_file(config) {
        Some(shown) if !changes.is_empty() => Err(format!("{shown}: {}", other_options(&changes))),
        _ => Ok(()),
    }
}

/// Describes each option that has another value now than when the memory was made.
fn changes(made: &MadeFor, config: &Config, spans: Option<&[Span]>, and_paths: bool) -> Vec<String> {
    let own = store_config(config, Vec::new(), 0);
    let mut changes = Vec::new();
    let mut compare = |option: &str, was: Option<u64>, is: Option<u64>| {
        let show = |size: Option<u64>| size.map_or("not given".to_string(), show_size);
        if was != is {
            changes.push(format!("{option} {} (here: {})", show(was), show(is)));
        }
    };
    compare("-m", Some(made.memory_bytes), Some(own.memory_bytes));
    compare("--item-size", Some(made.item_bytes.into()), Some(own.item_bytes.into()));
    compare("--index-memory", made.index_bytes, own.index_bytes);
    if let Some(spans) = spans {
        let segments: u64 = spans.iter().map(|span| span.bytes / SEGMENT_BYTES).sum();
        let was = u64::from(made.ssd_segments) * SEGMENT_BYTES;
        compare("an --ssd tier of", Some(was), Some(segments * SEGMENT_BYTES));
    }
    if made.evict != own.evict {
        changes.push(if own.evict { "-M (here: without)" } else { "no -M (here: with)" }.to_string());
    }
    if and_paths && !made.had_paths(&ssd::names(config)) {
        changes.push("another --ssd path".to_string());
    }
    changes
}

/// Describes to the operator how the store began.
fn describe(start: Start, took: Duration) -> String {
    match start {
        Start::Cold(why @ (Cold::New | Cold::NoFile)) => format!("starting cold: it {why}"),
        Start::Cold(why) => format!("starting cold: it {why}; its items are lost"),
        Start::Warm { items, shards_repaired, shards_reset } => {
            let mut text = format!("{items} items are back, in {} ms", took.as_millis());
            if shards_repaired > 0 {
                let _ =
                    write!(text, "; shards that were being changed, and were repaired: {shards_repaired}");
            }
            if shards_reset > 0 {
                let _ = write!(text, "; damaged shards that had to be emptied: {shards_reset}");
            }
            text
        }
    }
}

/// Names the clock that the daemon's seconds are counted on (see [`crate::clock`]): the time since the machine
/// started, as this time namespace shows it. A clock that cannot be named gets a name unlike any other.
fn clock_name(random: u64) -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id");
    let namespace = fs::read_link("/proc/self/ns/time").unwrap_or_default();
    match boot {
        Ok(boot) => format!("{} {}", boot.trim(), namespace.display()),
        Err(_) => format!("unknown {random:x}"),
    }
}

/// Refuses a new file that its file system has too little room for. A file with content needs no more than the room
/// it gave back.
fn check_room(path: &Path, file: &File, wanted_bytes: u64) -> Result<(), String> {
    let (Ok(Some(room_bytes)), Ok(metadata)) = (larder_device::free_bytes(file), file.metadata()) else {
        return Ok(());
    };
    if metadata.blocks() > 0 || room_bytes >= wanted_bytes {
        return Ok(());
    }
    Err(format!(
        "--memory-file {}: its file system has room for {}, and -m asks for {}; give it more room or less \
         memory",
        path.display(),
        Bytes(room_bytes),
        Bytes(wanted_bytes)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_without_a_limit_has_room_for_a_memory_file() {
        let file = larder_device::anonymous_file("memory").expect("memory");
        assert_eq!(check_room(Path::new("memory"), &file, 1 << 50), Ok(()));
    }
}
