//! Starts everything in the right order, waits for a signal, stops everything.

use std::fs;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use larder_store::Store;
use larder_store::device::{Device, IoKind, QueueOptions, SLOT_BYTES, Wake, choose, open_queue, probe_uring};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;

use crate::config::{Config, Io, Personality};
use crate::shared::Shared;
use crate::worker::{Inbox, Worker};
use crate::{budget, descriptors, listen, log, memory, process, ssd};

/// Reads and writes that one worker may have under way.
const QUEUE_DEPTH: u32 = 256;

/// Runs a daemon until it is told to stop.
///
/// # Errors
/// A text for the operator that says what to do.
pub fn run(mut config: Config) -> Result<ExitCode, String> {
    process::give_back_large_buffers();
    let listeners = listen::open(&config)?;
    // Before root is given up: only root may raise a hard limit.
    descriptors::raise(&mut config);
    // Before a file is made that the memory could not index.
    if let Some(spans) = ssd::foreseen(&config) {
        Store::check_sizes(&memory::store_config(&config, spans, 0))
            .map_err(|error| memory::refused(&error))?;
    }
    memory::check_options(&config)?;
    let mut ssd = ssd::open(&config)?;
    if config.daemon {
        process::daemonize().map_err(|error| format!("cannot go to the background: {error}"))?;
    }
    log::start();
    if let Some(user) = config.user.as_ref().filter(|_| process::is_root()) {
        process::become_user(user).map_err(|error| format!("cannot become user \"{user}\": {error}"))?;
    }
    if config.lock_memory {
        process::lock_memory().map_err(|error| format!("cannot lock memory: {error}; raise ulimit -l"))?;
    }
    let (kind, io) = io_kind(&config, ssd.files.is_empty())?;
    let memory::Opened { store, clock, saving, said } = memory::open_store(&config, &mut ssd)?;
    // Last of all that can fail: whoever reads the file finds a daemon that serves.
    if let Some(path) = &config.port_file {
        listen::announce(path, &listeners)
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    }
    if let Some(path) = &config.pidfile {
        let text = format!("{}\n", std::process::id());
        fs::write(path, text)
            .map_err(|error| format!("cannot write the pid to {}: {error}", path.display()))?;
    }
    let shared = Arc::new(Shared::new(store, clock, config, io));
    if let Some(port) = listeners.iter().find_map(|listener| listener.port) {
        shared.tcp_port.store(u32::from(port), Relaxed);
    }
    greet(&shared, &listeners, &ssd, said);
    let mut signals =
        Signals::new([SIGINT, SIGTERM, SIGUSR1, SIGHUP]).map_err(|error| format!("signals: {error}"))?;
    let stopper = shared.clone();
    let watch_signals = signals.handle();
    let watcher = thread::Builder::new().name("larder-signals".into()).spawn(move || {
        for signal in &mut signals {
            // Nothing is reloaded yet: SIGHUP is only kept from ending the daemon.
            if signal != SIGHUP {
                stopper.stop();
                break;
            }
        }
    });
    let result = work(&shared, listeners, ssd.devices(), kind);
    watch_signals.close();
    if let Ok(watcher) = watcher {
        let _ = watcher.join();
    }
    let config = &shared.config;
    if let Some(path) = &config.pidfile {
        let _ = fs::remove_file(path);
    }
    if let Some(unix) = &config.unix_socket {
        let _ = fs::remove_file(&unix.path);
    }
    result?;
    if let Some(saving) = saving {
        // The workers are gone: what the memory holds now is what was acknowledged.
        let bytes = saving.save(&shared.clock)?;
        if let Some(path) = &config.state_file {
            tracing::info!("--state-file {}: {} MiB saved", path.display(), mib(bytes));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs the workers, each on a thread of its own, until all have stopped.
fn work(
    shared: &Arc<Shared>,
    listeners: Vec<listen::Listener>,
    devices: Vec<Arc<dyn Device>>,
    kind: IoKind,
) -> Result<(), String> {
    let listeners = Arc::new(listeners);
    let inboxes: Result<Vec<_>, _> = (0..shared.config.threads).map(|_| Inbox::new()).collect();
    let inboxes = Arc::new(inboxes.map_err(|error| format!("cannot make an event descriptor: {error}"))?);
    for inbox in inboxes.iter() {
        shared.add_waker(inbox.waker().map_err(|error| error.to_string())?);
    }
    let mut threads = Vec::new();
    for number in 0..shared.config.threads {
        let (shared, inboxes, listeners) = (shared.clone(), inboxes.clone(), listeners.clone());
        let devices = devices.clone();
        let run = move || -> Result<(), String> {
            let stop_all = StopAll(&shared);
            let slab_slots = budget::slab_bytes(&shared.config) / SLOT_BYTES as u64;
            let options = QueueOptions {
                depth: QUEUE_DEPTH,
                slab_slots: slab_slots as u32,
                wake: Wake::Edge,
                ..QueueOptions::default()
            };
            let queue = match devices.is_empty() {
                true => None,
                false => {
                    shared.budget.exchange(0, slab_slots * SLOT_BYTES as u64);
                    Some(open_queue(kind, &devices, options).map_err(|error| format!("--io: {error}"))?.queue)
                }
            };
            let worker =
                Worker::new(number, shared.clone(), inboxes, listeners, queue).map_err(|e| e.to_string())?;
            let result = worker.run().map_err(|error| format!("worker {number} failed: {error}"));
            drop(stop_all);
            result
        };
        let thread = thread::Builder::new().name(format!("larder-{number}")).spawn(run);
        threads.push(thread.map_err(|error| format!("cannot start a thread: {error}"))?);
    }
    let mut result = Ok(());
    for thread in threads {
        let ended = thread.join().unwrap_or_else(|_| Err("a worker panicked".into()));
        result = result.and(ended);
    }
    result
}

/// When one worker ends, all do: a daemon with fewer would serve only some of its clients.
struct StopAll<'a>(&'a Shared);

impl Drop for StopAll<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

fn io_kind(config: &Config, no_ssd: bool) -> Result<(IoKind, &'static str), String> {
    if no_ssd {
        return Ok((IoKind::Threads, "none"));
    }
    let wish = match config.io {
        Io::Auto => IoKind::Auto,
        Io::Uring => IoKind::Uring,
        Io::Threads => IoKind::Threads,
    };
    let (kind, fallback) =
        choose(wish, probe_uring()).map_err(|why| format!("--io uring: {why}; or choose --io threads"))?;
    if let Some(why) = fallback {
        tracing::warn!("the SSD is read and written by threads: {why}");
    }
    Ok((kind, if kind == IoKind::Uring { "uring" } else { "threads" }))
}

fn mib(bytes: u64) -> u64 {
    bytes >> 20
}

/// Says what the daemon holds and a line to try; under memcached's name it is as quiet as memcached.
fn greet(shared: &Shared, listeners: &[listen::Listener], ssd: &ssd::Ssd, said: Option<String>) {
    let config = &shared.config;
    for warning in config.warnings.iter().chain(&ssd.warnings) {
        tracing::warn!("{warning}");
    }
    if let Some(said) = said {
        tracing::info!("{said}");
    }
    if shared.logs(1) && !config.ignored.is_empty() {
        tracing::info!("accepted without effect: {}", config.ignored.join(" "));
    }
    if config.personality == Personality::Memcached && !shared.logs(1) {
        return;
    }
    let stats = shared.store.stats();
    let names: Vec<&str> = listeners.iter().map(|listener| listener.name.as_str()).collect();
    let mut text = format!("larder {} listens on {}\n", env!("CARGO_PKG_VERSION"), names.join(", "));
    text += &format!(
        "  memory  {} MiB: items {}, index {}, write buffers {}, tables {}\n",
        mib(config.memory_limit_bytes),
        mib(stats.ram_tier_bytes),
        mib(stats.index_bytes),
        mib(stats.buffer_bytes),
        mib(stats.table_bytes)
    );
    match ssd.described.is_empty() {
        true => text += "  SSD     none\n",
        false => text += &format!("  SSD     {} by {}\n", ssd.described.join(", "), shared.io),
    }
    text += &format!(
        "  holds   {} items of {} bytes and more\n",
        stats.index_capacity * 95 / 100,
        config.item_size_bytes
    );
    match listeners.first() {
        Some(listen::Listener { port: Some(port), .. }) => {
            text += "  try     printf 'set k 0 0 5\\r\\nhello\\r\\nget k\\r\\nquit\\r\\n' |\n";
            text += &format!("          bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}; cat >&3; cat <&3'\n");
        }
        Some(listener) => {
            text += &format!("  try     printf 'version\\r\\nquit\\r\\n' | nc -U {}\n", listener.name);
        }
        None => {}
    }
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}
