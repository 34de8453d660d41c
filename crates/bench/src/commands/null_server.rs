//! `larder-bench null-server`: what `calibrate` measures against, as a process of its own.

use super::{Exit, Failure};
use crate::engine::cpu;
use crate::null_server::NullServer;
use crate::wire::Protocol;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Answers every request at once, until its standard input ends. The port is the first line it says.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// text, meta, binary or resp2
    #[arg(long)]
    protocol: Protocol,
    /// How large every value is
    #[arg(long)]
    value_bytes: u32,
    /// Threads
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// CPUs for the threads, in turn
    #[arg(long, value_delimiter = ',')]
    cpus: Vec<usize>,
}

/// Serves.
///
/// # Errors
/// There is no port, or the CPUs are not ours.
pub fn run(args: Args) -> Result<Exit, Failure> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(Failure::error)?;
    let port = listener.local_addr().map_err(Failure::error)?.port();
    let stop = Arc::new(AtomicBool::new(false));
    let server = NullServer { protocol: args.protocol, value_bytes: args.value_bytes };
    for index in 0..args.threads {
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
