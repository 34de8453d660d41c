//! `larder-bench null-server`: what `calibrate` measures against, as a process of its own; or a server of
//! known capacity.

use super::{Exit, Failure};
use crate::engine::cpu;
use crate::null_server::NullServer;
use crate::wire::Protocol;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The text after the options in the help.
const AFTER_HELP: &str = "\
The first line it says is its port; it ends when its standard input does. With
--service-time it is a server of known capacity: each thread answers one request
in that time, however fast the host is.";

/// Serve a fixed reply to whatever is asked, at once or at a fixed pace
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// Port on 127.0.0.1; 0 lets the system pick one
    #[arg(short, long, default_value_t = 0)]
    port: u16,
    /// text, meta, binary or resp2
    #[arg(short = 'P', long, default_value = "text")]
    protocol: Protocol,
    /// How large every value is
    #[arg(long, value_name = "BYTES", default_value_t = 100)]
    value_bytes: u32,
    /// How long each thread takes for a request, such as 20us; it spins, and is
    /// a whole CPU
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = crate::workload::parse::duration)]
    service_time: Duration,
    /// Threads
    #[arg(long, default_value = "1")]
    threads: NonZeroUsize,
    /// CPUs for the threads, in turn
    #[arg(long, value_delimiter = ',')]
    cpus: Vec<usize>,
}

/// Serves.
///
/// # Errors
/// There is no port, or the CPUs are not ours.
pub fn run(args: Args) -> Result<Exit, Failure> {
    let listener = TcpListener::bind(("127.0.0.1", args.port))
        .map_err(|error| Failure::error(format!("port {}: {error}", args.port)))?;
    let port = listener.local_addr().map_err(Failure::error)?.port();
    let stop = Arc::new(AtomicBool::new(false));
    let Args { protocol, value_bytes, service_time, .. } = args;
    let server = NullServer { protocol, value_bytes, service_time };
    for index in 0..args.threads.get() {
        let (listener, stop) = (listener.try_clone().map_err(Failure::error)?, Arc::clone(&stop));
        let pinned = (!args.cpus.is_empty()).then(|| args.cpus[index % args.cpus.len()]);
        std::thread::spawn(move || {
            if let Some(cpu) = pinned
                && let Err(error) = cpu::pin(cpu)
            {
                eprintln!("larder-bench: null server: {error}");
            }
            if let Err(error) = server.serve(&listener, &stop) {
                eprintln!("larder-bench: null server: {error}");
            }
        });
    }
    println!("{port}");
    std::io::stdout().flush().map_err(Failure::error)?;
    let mut end = [0; 64];
    while std::io::stdin().read(&mut end).is_ok_and(|read| read > 0) {}
    stop.store(true, Ordering::Relaxed);
    Ok(Exit::Ok)
}
