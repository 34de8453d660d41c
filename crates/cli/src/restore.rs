//! `larder restore`: the items of a dump to a server.

use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;

use clap::Args;

use crate::connect::One;
use crate::copy::How;
use crate::counts::Counts;
use crate::dump_file::DumpReader;
use crate::exit::{Failure, Outcome, Verdict, print};
use crate::items::{CacheItem, store};
use crate::pace::Pace;
use crate::screen::{Progress, stop_on_signals};
use crate::server_clock::{TimedServer, now_unix_ms};
use crate::transfer;
use crate::units::{show_bytes, show_seconds, show_whole};

/// Stores the items of a dump on a server
///
/// The whole file is checked first: nothing is stored from one that is damaged. Items that have expired since are left
/// out. A restore that was ended is completed by the same command with --add.
#[derive(Debug, Args)]
pub struct RestoreArguments {
    /// The file to read
    file: PathBuf,
    /// Keep the items that the server already has
    #[arg(long)]
    add: bool,
    /// Only check the file
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    how: How,
    #[command(flatten)]
    one: One,
}

/// Runs the verb.
///
/// # Errors
/// The file is damaged, the server cannot be asked, or Ctrl-C ended it.
pub fn run(arguments: &RestoreArguments) -> Outcome<Verdict> {
    let RestoreArguments { file, add, check, how, one } = arguments;
    let client = one.client()?;
    let stop = stop_on_signals();
    let mut progress = Progress::new(how.quiet);
    let reader = DumpReader::open(file)?;
    let age_s = now_unix_ms().saturating_sub(reader.created_unix_ms()) / 1000;
    let (items, bytes) = reader.check(|items| {
        progress.show(|| vec![format!("checked {} items", show_whole(items))]);
        if stop.load(Relaxed) { Err(Failure::Interrupted) } else { Ok(()) }
    })?;
    if *check {
        progress.end();
        let (items, bytes, age) = (show_whole(items), show_bytes(bytes), show_seconds(age_s));
        print(&format!("the dump is whole: {items} items, {bytes}, made {age} ago\n"))?;
        return Ok(Verdict::Fine);
    }
    let server = TimedServer::watch(&client);
    let (counts, pace) = (Counts::new(), Pace::new(how.rate));
    let work = |items: Vec<CacheItem>| {
        pace.wait(|| stop.load(Relaxed));
        pace.moved(items.iter().map(CacheItem::bytes).sum());
        store(&server, &items, *add, &counts)
    };
    let look = || progress.show(|| counts.tally().progress("restored", Some(items)));
    let end = transfer::run(usize::from(how.connections), DumpReader::open(file)?, work, &stop, look);
    progress.end();
    let tally = counts.tally();
    tally.print("restored", how.json)?;
    end?;
    Ok(tally.verdict())
}
