//! `larder copy`: the items of one server to another.

use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use clap::Args;
use serde::Serialize;

use crate::connect::Reach;
use crate::counts::{Counts, Tally};
use crate::exit::{Failure, Outcome, Verdict, print, print_json};
use crate::items::{Found, read, store};
use crate::pace::Pace;
use crate::screen::{Progress, stop_on_signals};
use crate::server_clock::TimedServer;
use crate::spool::{KeySpool, Keys, SpooledKey};
use crate::transfer;
use crate::units;
use crate::verify::{Comparison, Ends, Sample, compare};

/// Copies all items from one server to another, with values, flags and expiry
///
/// Both may be Larder or memcached. Items of the source are read without counting as accessed, and nothing is changed
/// there. A copy that was ended, by Ctrl-C or by a server, leaves items that are whole; the same command completes it,
/// and with --add it reads only what is missing.
#[derive(Debug, Args)]
pub struct CopyArguments {
    /// Copy from this server: HOST[:PORT] or the path of a unix socket; tls: in front speaks TLS
    #[arg(long, value_name = "ADDRESS")]
    from: String,
    /// Copy to this server
    #[arg(long, value_name = "ADDRESS")]
    to: String,
    /// Keep the items that the destination already has
    #[arg(long)]
    add: bool,
    /// Compare the items of both servers afterwards: all, or one key in N
    #[arg(long, value_name = "all|N")]
    verify: Option<Sample>,
    #[command(flatten)]
    how: How,
    /// Log in to --from with the first line of this file, USER:PASSWORD
    #[arg(long, value_name = "FILE")]
    from_login: Option<PathBuf>,
    /// Log in to --to with the first line of this file, USER:PASSWORD
    #[arg(long, value_name = "FILE")]
    to_login: Option<PathBuf>,
    #[command(flatten)]
    reach: Reach,
}

/// How fast items move, and what is shown of it.
#[derive(Debug, Args)]
pub struct How {
    /// Move at most this many bytes a second
    #[arg(long, value_name = "SIZE/s", value_parser = units::bytes)]
    pub rate: Option<u64>,
    /// Use so many connections to each server
    #[arg(long, value_name = "N", default_value = "4", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub connections: u16,
    /// Show no progress
    #[arg(long, short)]
    pub quiet: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

/// The result, as `--json` prints it.
#[derive(Debug, Serialize)]
struct CopyResult {
    listed: u64,
    #[serde(flatten)]
    tally: Tally,
    #[serde(skip_serializing_if = "Option::is_none")]
    compared: Option<Comparison>,
}

/// What the threads of a copy share.
struct Copy<'a> {
    ends: Ends<'a>,
    pace: Pace,
    counts: Counts,
    stop: &'a AtomicBool,
}

/// Runs the verb.
///
/// # Errors
/// A server cannot be reached, or Ctrl-C ended it.
pub fn run(arguments: &CopyArguments) -> Outcome<Verdict> {
    let CopyArguments { from, to, add, how, reach, .. } = arguments;
    let from = reach.client(from, arguments.from_login.as_deref())?;
    let to = reach.client(to, arguments.to_login.as_deref())?;
    if from.servers().eq(to.servers()) {
        return Err(Failure::Usage("--from and --to are the same server".to_string()));
    }
    let stop = stop_on_signals();
    let mut progress = Progress::new(how.quiet);
    let (spool, from, to) = thread::scope(|scope| {
        let watched = [&from, &to].map(|client| scope.spawn(|| TimedServer::watch(client)));
        let spool = KeySpool::collect(&from, &stop, &mut progress)?;
        let [from, to] = watched.map(|watched| watched.join().unwrap_or_else(|panic| resume_unwind(panic)));
        Outcome::Ok((spool, from, to))
    })?;
    let ends = Ends { from: &from, to: &to, kept: *add };
    let copy = Copy { ends, pace: Pace::new(how.rate), counts: Counts::new(), stop: &stop };
    let look = || progress.show(|| copy.counts.tally().progress("copied", Some(spool.len())));
    let threads = usize::from(how.connections);
    let mut end = transfer::run(threads, spool.batches()?, |keys| copy.copy_batch(&keys), &stop, look);
    let tally = copy.counts.tally();
    let mut compared = None;
    if let (Ok(()), Some(sample)) = (&end, arguments.verify) {
        match compare(ends, (&spool, sample), threads, &stop, &mut progress) {
            Ok(comparison) => compared = Some(comparison),
            Err(failure) => end = Err(failure),
        }
    }
    progress.end();
    let result = CopyResult { listed: spool.len(), tally, compared };
    result.print(how.json)?;
    end.map_err(|failure| with_advice(failure, &result))?;
    Ok(result.verdict())
}

/// Says how to go on after a failure.
fn with_advice(failure: Failure, result: &CopyResult) -> Failure {
    let left = result.listed.saturating_sub(result.tally.done());
    match failure {
        Failure::Failed(problem) if left > 0 => Failure::Failed(format!(
            "{problem}\n{left} keys are left; run the same command with --add to copy them"
        )),
        failure => failure,
    }
}

impl Copy<'_> {
    fn copy_batch(&self, keys: &Keys) -> Outcome<()> {
        self.pace.wait(|| self.stop.load(Relaxed));
        let missing = if self.ends.kept { self.missing(keys)? } else { keys.iter().collect() };
        let mut items = Vec::with_capacity(missing.len());
        for found in read(self.ends.from, &missing)? {
            match found {
                Found::Item(item, _) => items.push(item),
                Found::Gone => self.counts.gone(1),
                Found::Stale => self.counts.stale(),
                Found::Refused(reason) => self.counts.refused(reason),
            }
        }
        self.pace.moved(items.iter().map(|item| item.bytes()).sum());
        store(self.ends.to, &items, self.ends.kept, &self.counts)
    }

    /// Returns the keys that the destination has no item for, and counts the others.
    fn missing<'k>(&self, keys: &'k Keys) -> Outcome<Vec<&'k SpooledKey>> {
        let mut missing = Vec::new();
        for (key, is_there) in keys.iter().zip(self.ends.to.client.exist_many(keys)) {
            match is_there {
                Ok(true) => self.counts.kept(),
                // A key that cannot be asked for is refused when it is read.
                Ok(false) | Err(larder_client::Error::Key(_)) => missing.push(key),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(missing)
    }
}

impl CopyResult {
    fn verdict(&self) -> Verdict {
        let compared = self.compared.as_ref().map_or(Verdict::Fine, Comparison::verdict);
        if compared == Verdict::Findings { compared } else { self.tally.verdict() }
    }

    fn print(&self, json: bool) -> Outcome<()> {
        if json {
            return print_json(self);
        }
        let compared = self.compared.as_ref().map(Comparison::lines).unwrap_or_default();
        print(&(self.tally.lines("copied") + &compared))
    }
}
