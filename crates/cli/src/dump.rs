//! `larder dump`: the items of a server to a file.

use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};

use clap::Args;

use crate::connect::One;
use crate::copy::How;
use crate::counts::Counts;
use crate::dump_file::DumpWriter;
use crate::exit::{Outcome, Verdict};
use crate::items::{Found, read};
use crate::pace::Pace;
use crate::screen::{Progress, stop_on_signals};
use crate::server_clock::TimedServer;
use crate::spool::{KeySpool, Keys};
use crate::transfer;

/// Writes all items of a server to a file, with values, flags and expiry
///
/// The file gets its name once it is whole, and replaces an earlier dump of that name, but no other file. Items are
/// read without counting as accessed.
#[derive(Debug, Args)]
pub struct DumpArguments {
    /// The file to write
    file: PathBuf,
    #[command(flatten)]
    how: How,
    #[command(flatten)]
    one: One,
}

/// Runs the verb.
///
/// # Errors
/// The server cannot be asked, the file cannot be written, or Ctrl-C ended it. Then there is no new file.
pub fn run(arguments: &DumpArguments) -> Outcome<Verdict> {
    let DumpArguments { file, how, one } = arguments;
    let client = one.client()?;
    let stop = stop_on_signals();
    let mut progress = Progress::new(how.quiet);
    let writer = Mutex::new(DumpWriter::create(file)?);
    let spool = KeySpool::collect(&client, &stop, &mut progress)?;
    let server = TimedServer::watch(&client);
    let (counts, pace) = (Counts::new(), Pace::new(how.rate));
    let work = |keys: Keys| {
        pace.wait(|| stop.load(Relaxed));
        let found = read(&server, &keys.iter().collect::<Vec<_>>())?;
        let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
        for found in found {
            match found {
                Found::Item(item, _) => {
                    writer.add(&item)?;
                    pace.moved(item.bytes());
                    counts.moved(item.bytes());
                }
                Found::Gone => counts.gone(1),
                Found::Stale => counts.stale(),
                Found::Refused(reason) => counts.refused(reason),
            }
        }
        Ok(())
    };
    let look = || progress.show(|| counts.tally().progress("dumped", Some(spool.len())));
    transfer::run(usize::from(how.connections), spool.batches()?, work, &stop, look)?;
    writer.into_inner().unwrap_or_else(PoisonError::into_inner).finish()?;
    progress.end();
    let tally = counts.tally();
    tally.print("dumped", how.json)?;
    Ok(tally.verdict())
}
