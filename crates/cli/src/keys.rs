//! `larder keys`: the keys of a server, one on each line.

use std::io::{BufWriter, Write, stdout};
use std::sync::atomic::Ordering::Relaxed;

use clap::Args;
use larder_client::ListedKey;
use serde::Serialize;

use crate::connect::One;
use crate::exit::{Failure, Outcome, Verdict, output_failed};
use crate::screen::stop_on_signals;
use crate::server_clock::now_unix_ms;
use crate::spool::list;
use crate::units::{show_bytes, show_key, show_seconds};

/// Lists the keys of a server
///
/// Bytes of keys that are not visible ASCII are shown as % and two digits. Keys that are stored or deleted meanwhile
/// may be absent, and one that moves between RAM and SSD may be listed twice.
#[derive(Debug, Args)]
pub struct KeysArguments {
    /// Only keys that begin with this
    prefix: Option<String>,
    /// End after so many keys
    #[arg(long, short = 'n', value_name = "N")]
    limit: Option<u64>,
    /// Show bytes, seconds left, seconds since the last access, and tier of each item, too
    #[arg(long, short)]
    long: bool,
    /// Print each key as an object of JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    one: One,
}

/// A key as `--json` prints it.
#[derive(Debug, Serialize)]
struct Line {
    key: String,
    bytes: u64,
    expires_in_s: Option<u64>,
    accessed_ago_s: u64,
    was_read: bool,
    class: u32,
}

/// Runs the verb.
///
/// # Errors
/// The server does not list its keys, or Ctrl-C ended it.
pub fn run(arguments: &KeysArguments) -> Outcome<Verdict> {
    let client = arguments.one.client()?;
    let stop = stop_on_signals();
    let prefix = arguments.prefix.as_deref().unwrap_or_default().as_bytes();
    let now_unix_s = now_unix_ms() / 1000;
    let mut out = BufWriter::new(stdout().lock());
    let mut shown = 0;
    for listed in list(&client, &stop)? {
        let listed = listed?;
        if stop.load(Relaxed) {
            return Err(Failure::Interrupted);
        }
        if !listed.key.starts_with(prefix) {
            continue;
        }
        if arguments.limit.is_some_and(|limit| shown >= limit) {
            break;
        }
        shown += 1;
        let line = line(listed, now_unix_s);
        let text = match arguments {
            KeysArguments { json: true, .. } => serde_json::to_string(&line).map_err(Failure::of)?,
            KeysArguments { long: true, .. } => line.long(),
            _ => line.key,
        };
        writeln!(out, "{text}").map_err(output_failed)?;
    }
    out.flush().map_err(output_failed)?;
    Ok(Verdict::Fine)
}

fn line(listed: ListedKey, now_unix_s: u64) -> Line {
    Line {
        key: show_key(&listed.key),
        bytes: listed.bytes,
        expires_in_s: listed.expires_unix_s.map(|expires| expires.saturating_sub(now_unix_s)),
        accessed_ago_s: now_unix_s.saturating_sub(listed.accessed_unix_s),
        was_read: listed.was_read,
        class: listed.class,
    }
}

impl Line {
    /// The key is last, so that the columns stay in place whatever its length.
    fn long(&self) -> String {
        let left = self.expires_in_s.map_or("never".to_string(), show_seconds);
        let (bytes, ago) = (show_bytes(self.bytes), show_seconds(self.accessed_ago_s));
        format!("{bytes:>8} {left:>8} {ago:>8} {:>2} {}", self.class, self.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_has_its_key_last() {
        let listed = ListedKey {
            key: b"shop:a b".to_vec(),
            expires_unix_s: Some(1_000_090),
            accessed_unix_s: 999_000,
            was_read: true,
            cas: 1,
            class: 2,
            bytes: 1234,
        };
        let never = ListedKey { expires_unix_s: None, ..listed.clone() };
        assert_eq!(line(listed, 1_000_000).long(), " 1.23 KB   1m 30s  16m 40s  2 shop:a%20b");
        assert_eq!(line(never, 999_000).long(), " 1.23 KB    never       0s  2 shop:a%20b");
    }
}
