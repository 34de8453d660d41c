//! Starts everything in the right order, waits for a signal, stops everything.

use std::process::ExitCode;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use larder_device::Bytes;
use larder_device::{
    Device, IoKind, IoQueue, QueueOptions, SLOT_BYTES, Wake, choose, open_queue, probe_uring,
};
use larder_store::Store;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;

use crate::config::{Config, Io};
use crate::listener::Listener;
use crate::service::Service;
use crate::shadows::Feeder;
use crate::shared::Shared;
use crate::startup::kept_memory::Earlier;
use crate::startup::notice::{self, Notice};
use crate::startup::{cluster, descriptors, greeting, http as http_socket, listen, memory, ssd, tls, users};
use crate::supervision::Supervision;
use crate::wear::Wear;
use crate::worker::{Inbox, Worker};
use crate::{budget, checks, http, log, process};

/// Reads and writes that one worker may have under way.
const QUEUE_DEPTH: u32 = 256;

/// The time that the workers may take to end after the daemon is told to stop: their drain, and a little. A worker
/// that takes longer waits for a device that does not respond.
const STOP: Duration = Duration::from_secs(4);

/// Runs a daemon until it is told to stop.
///
/// # Errors
/// A text for the operator, with a remedy.
pub fn run(mut config: Config) -> Result<ExitCode, String> {
    process::give_back_large_buffers();
    // Before any thread starts. The caller waits, so that a failure further down is its exit code.
    let background = match config.daemon {
        true => Some(
            process::Background::enter().map_err(|error| format!("cannot go to the background: {error}"))?,
        ),
        false => None,
    };
    log::start();
    let mut service = Service::of_this_process();
    let mut earlier = Earlier::take(&config, &mut service)?;
    check_memory(&config, &mut earlier)?;
    let bound = listen::bind(&config, &mut service)?;
    for name in service.leave_rest() {
        tracing::warn!(name, "the service manager passed a socket that no option names; it is closed");
    }
    let mut ssd = ssd::open(&config)?;
    // Before root is given up: only root may raise a hard limit.
    descriptors::raise(&mut config);
    if let Some(user) = config.user.as_ref().filter(|_| process::is_root()) {
        process::become_user(user).map_err(|error| format!("cannot become user \"{user}\": {error}"))?;
    }
    if config.lock_memory {
        process::lock_memory().map_err(|error| format!("cannot lock memory: {error}; raise ulimit -l"))?;
    }
    let (kind, io) = io_kind(&config, ssd.files.is_empty())?;
    // As the user that reads it again on SIGHUP.
    let (users, tls) = (users::open(&config)?, tls::open(&config)?);
    let cluster = cluster::open(&config)?;
    let (http, http_name) = serve_http(&config)?;
    let memory::Opened { store, clock, saving, said } =
        memory::open_store(&config, &mut ssd, earlier, &service)?;
    // From here on a signal ends the daemon in order, although the signal is read later.
    let signals =
        Signals::new([SIGINT, SIGTERM, SIGUSR1, SIGHUP]).map_err(|error| format!("signals: {error}"))?;
    let listeners = bound.listen(&config, &service)?;
    // Last of all that can fail: a daemon whose files can be read serves.
    let notices = announce(&config, &listeners)?;
    let mut shared = Shared::new(store, clock, config, io);
    (shared.auth, shared.tls, shared.cluster) = (users, tls, cluster);
    let shared = Arc::new(shared);
    if let Some(port) = listeners.iter().find_map(|listener| listener.port) {
        shared.tcp_port.store(u32::from(port), Relaxed);
    }
    let status = said.clone();
    greeting::greet(&shared, (&listeners, http_name), &ssd, said);
    if let Some(http) = &http {
        http.serve(shared.clone());
    }
    cluster::follow(&shared)?;
    if let Some(background) = background {
        log::flush();
        background.serving().map_err(|error| format!("cannot leave the terminal: {error}"))?;
    }
    let supervision = Supervision::begin(&shared, service, status.as_deref())?;
    checks::log_findings(&shared);
    let listeners = Arc::new(listeners);
    let sizes = memory::store_config(&shared.config, ssd.spans.clone(), 0);
    let files = ssd.devices();
    let wear = Wear::start(&shared, files.clone())?;
    let feeder = Feeder::start(&shared, &sizes)?;
    let devices = files.into_iter().map(|file| file as Arc<dyn Device>).collect();
    let result = serve(&shared, listeners.clone(), devices, kind, signals);
    wear.end();
    feeder.end();
    supervision.end();
    // A worker that has not ended still has the listeners.
    listeners.iter().for_each(Listener::remove_file);
    drop(notices);
    let stragglers = result?;
    if stragglers > 0 {
        tracing::error!(workers = stragglers, "the SSD does not answer; ending without its last operations");
    }
    match saving {
        Some(_) if stragglers > 0 => Err("the memory is not saved: a worker still uses it".into()),
        Some(saving) => save(&shared, &saving),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Begins to serve HTTP, if it is to be served: before the store is open, so that a probe can tell a daemon that
/// starts from one that is gone. Returns its address too.
fn serve_http(config: &Config) -> Result<(Option<http::Server>, Option<String>), String> {
    let Some(listener) = http_socket::listen(config)? else { return Ok((None, None)) };
    let Some(options) = config.http.clone() else { return Ok((None, None)) };
    let name = listener.name.clone();
    let server = http::Server::start(listener, http::State::new(options));
    Ok((Some(server.map_err(|error| format!("--http: {error}"))?), Some(name)))
}

/// Checks sizes and the options of the memory file, before a file is made that the memory could not index.
fn check_memory(config: &Config, earlier: &mut Earlier) -> Result<(), String> {
    if let Some(spans) = ssd::foreseen(config) {
        Store::check_sizes(&memory::store_config(config, spans.clone(), 0))
            .map_err(|error| memory::refused(config, &spans, &error))?;
    }
    memory::check_options(config, earlier)
}

/// Writes the files by which other programs find the daemon.
fn announce(config: &Config, listeners: &[Listener]) -> Result<Vec<Notice>, String> {
    let mut notices = Vec::new();
    if let Some(path) = &config.pidfile {
        let put = Notice::put(path, format!("{}\n", std::process::id()), notice::is_pid);
        notices.push(put.map_err(|error| format!("-P: {error}"))?);
    }
    if let Some(path) = &config.port_file {
        let put = Notice::put(path, listen::announcement(listeners), notice::is_port);
        // The file stays: the operator asked for it, and it tells which port was in use.
        put.map_err(|error| format!("MEMCACHED_PORT_FILENAME: {error}"))?.leave();
    }
    Ok(notices)
}

/// Saves the memory. The workers have ended, so it holds all that was acknowledged.
fn save(shared: &Shared, saving: &memory::Saving) -> Result<ExitCode, String> {
    let bytes = saving.save(&shared.clock)?;
    if let Some(path) = &shared.config.state_file {
        tracing::info!("--state-file {}: {} saved", path.display(), Bytes(bytes));
    }
    Ok(ExitCode::SUCCESS)
}

/// Serves until a signal or a command ends it. Returns how many workers have not ended.
fn serve(
    shared: &Arc<Shared>,
    listeners: Arc<Vec<Listener>>,
    devices: Vec<Arc<dyn Device>>,
    kind: IoKind,
    mut signals: Signals,
) -> Result<usize, String> {
    let stopper = shared.clone();
    let watch_signals = signals.handle();
    let watcher = thread::Builder::new().name("larder-signals".into()).spawn(move || {
        for signal in &mut signals {
            if signal != SIGHUP {
                stopper.stop();
                break;
            }
            users::reload(stopper.auth.as_ref());
            tls::reload(stopper.tls.as_ref());
            cluster::reload(stopper.cluster.as_ref());
        }
    });
    let result = work(shared, listeners, devices, kind);
    watch_signals.close();
    if let Ok(watcher) = watcher {
        let _ = watcher.join();
    }
    result
}

/// Runs the workers, each on a thread of its own, until all have stopped or have had their time to. Returns
/// how many have not.
fn work(
    shared: &Arc<Shared>,
    listeners: Arc<Vec<Listener>>,
    devices: Vec<Arc<dyn Device>>,
    kind: IoKind,
) -> Result<usize, String> {
    let inboxes: Result<Vec<_>, _> = (0..shared.config.threads).map(|_| Inbox::new()).collect();
    let inboxes = Arc::new(inboxes.map_err(|error| format!("cannot make an event descriptor: {error}"))?);
    let wakers: Result<Vec<_>, _> = inboxes.iter().map(Inbox::waker).collect();
    shared.set_wakers(wakers.map_err(|error| error.to_string())?);
    let (ended, ends) = mpsc::channel();
    for number in 0..shared.config.threads {
        let (shared, inboxes, listeners) = (shared.clone(), inboxes.clone(), listeners.clone());
        let (devices, ended) = (devices.clone(), ended.clone());
        let run = move || {
            let end = End { shared: &shared, ended: Some(ended) };
            let open = || -> Result<Worker, String> {
                let queue = match devices.is_empty() {
                    true => None,
                    false => Some(open_io(&shared, &devices, kind)?),
                };
                Worker::new(number, shared.clone(), inboxes, listeners, queue).map_err(|e| e.to_string())
            };
            let run =
                |worker: Worker| worker.run().map_err(|error| format!("worker {number} failed: {error}"));
            end.report(open().and_then(run));
        };
        let thread = thread::Builder::new().name(format!("larder-{number}")).spawn(run);
        thread.map_err(|error| format!("cannot start a thread: {error}"))?;
    }
    drop(ended);
    shared.wait_for_stop();
    let until = Instant::now() + STOP;
    let (mut result, mut left) = (Ok(()), shared.config.threads);
    while left > 0 {
        match ends.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(end) => (result, left) = (result.and(end), left - 1),
            Err(_) => break,
        }
    }
    result.map(|()| left)
}

/// Opens a worker's queue to the devices, out of the memory that connections share with it.
fn open_io(shared: &Shared, devices: &[Arc<dyn Device>], kind: IoKind) -> Result<Box<dyn IoQueue>, String> {
    let slab_slots =
        budget::slab_bytes(shared.config.conn_memory_bytes, shared.config.threads) / SLOT_BYTES as u64;
    let options = QueueOptions {
        depth: QUEUE_DEPTH,
        slab_slots: slab_slots as u32,
        wake: Wake::Edge,
        ..QueueOptions::default()
    };
    shared.budget.exchange(0, slab_slots * SLOT_BYTES as u64);
    Ok(open_queue(kind, devices, options).map_err(|error| format!("--io: {error}"))?.queue)
}

/// Reports a worker's end. When one ends, all do: a daemon with fewer would serve only some of its clients.
struct End<'a> {
    shared: &'a Shared,
    ended: Option<mpsc::Sender<Result<(), String>>>,
}

impl End<'_> {
    fn report(mut self, result: Result<(), String>) {
        self.send(result);
    }

    fn send(&mut self, result: Result<(), String>) {
        if let Some(ended) = self.ended.take() {
            self.shared.stop();
            let _ = ended.send(result);
        }
    }
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.send(Err("a worker panicked".into()));
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

#[cfg(test)]
mod tests {
    use super::*;
    use larder_store::{SEGMENT_BYTES, Span};
    use std::io::{self, Write};
    use std::net::TcpStream;
    use std::sync::Mutex;

    /// A device of which no write ever returns.
    struct Hung(Mutex<mpsc::Sender<()>>);

    impl Device for Hung {
        fn read_at(&self, _: &mut [u8], _: u64) -> io::Result<usize> {
            Ok(0)
        }

        fn write_at(&self, _: &[u8], _: u64) -> io::Result<usize> {
            let _ = self.0.lock().expect("no panic").send(());
            loop {
                thread::park();
            }
        }

        fn discard(&self, _: u64, _: u64) -> io::Result<()> {
            Ok(())
        }

        fn len(&self) -> u64 {
            8 * SEGMENT_BYTES
        }

        fn alignment(&self) -> usize {
            4096
        }
    }

    #[test]
    fn a_device_that_never_answers_does_not_keep_the_daemon_from_ending() {
        let args = ["memcached", "-t", "2", "-m", "16", "-p", "-1", "-l", "127.0.0.1"];
        let config = Config::from_args(args).expect("valid options");
        let span = Span { device: 0, offset: 0, bytes: 8 * SEGMENT_BYTES };
        let store = Store::open(&memory::store_config(&config, vec![span], 1)).expect("it fits");
        let listeners = Arc::new(listen::open(&config).expect("a port is free"));
        let port = listeners[0].port.expect("it is TCP");
        let shared = Arc::new(Shared::new(store, crate::clock::Clock::new(), config, "threads"));
        let (written, is_written) = mpsc::channel();
        let devices: Vec<Arc<dyn Device>> = vec![Arc::new(Hung(Mutex::new(written)))];
        let working = shared.clone();
        let daemon = thread::spawn(move || work(&working, listeners, devices, IoKind::Threads));
        let mut peer = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
        let sets = thread::spawn(move || {
            let value = "v".repeat(8_000);
            // Until the daemon ends.
            for number in 0..100_000 {
                let set = format!("set k{number} 0 0 8000 noreply\r\n{value}\r\n");
                if peer.write_all(set.as_bytes()).is_err() {
                    break;
                }
            }
        });
        is_written.recv_timeout(Duration::from_secs(30)).expect("a write is under way");
        let began = Instant::now();
        shared.stop();
        let left = daemon.join().expect("no panic").expect("no worker fails");
        assert!(left > 0, "the device hangs");
        assert!(began.elapsed() < STOP + Duration::from_secs(4), "{:?}", began.elapsed());
        sets.join().expect("no panic");
    }
}
