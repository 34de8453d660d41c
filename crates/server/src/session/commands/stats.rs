//! `stats` and its sub-commands: memcached's names where tools read them, Larder's own under `stats larder`.

mod classes;
mod connections;
mod general;
mod larder;
mod mrc;
mod prefixes;
mod what_if;

use std::sync::atomic::Ordering::Relaxed;

use larder_protocol::{ItemInfo, Outcome, Reply, cachedump_line, text};
use larder_store::{Ages, Expiry, Stats};

use super::keys::LineForm;
use crate::session::{Ctx, Served, Session};
use crate::shared::Shared;

pub(in crate::session) use connections::ConnectionListing;

impl Session {
    pub(super) fn stats(&mut self, ctx: &mut Ctx<'_>, arguments: &[u8], reply: &Reply<'_>) -> Served {
        // The binary wire does not have this one.
        if !is_binary(reply) && arguments.split(|byte| *byte == b' ').next() == Some(b"conns") {
            return self.list_connections(ctx, reply);
        }
        let is_dump = arguments.starts_with(b"cachedump");
        self.add_cost(if is_dump { CACHEDUMP_COST_BYTES } else { STATS_COST_BYTES });
        let mut words = arguments.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
        let out = self.out.tail();
        match words.next() {
            None => show(out, reply, general::lines(ctx.shared, ctx.shared.store_stats())),
            Some(b"larder") => show(out, reply, larder::lines(ctx.shared)),
            Some(b"what_if") => show(out, reply, what_if::lines(ctx.shared, words)),
            Some(b"mrc") => show(out, reply, mrc::lines(ctx.shared)),
            Some(b"prefixes") if ctx.shared.config.dumping => show(out, reply, prefixes::lines(ctx.shared)),
            Some(b"prefixes") if is_binary(reply) => reply.stats_unknown(out),
            Some(b"prefixes") => reply.line(out, text::STATS_PREFIXES_NOT_ALLOWED),
            Some(b"settings") => show(out, reply, settings(ctx.shared)),
            Some(b"items") => {
                let (store, ages) = (ctx.shared.store_stats(), ctx.shared.store.ages(ctx.now));
                show(out, reply, classes::items(ctx.shared, &store, &ages));
            }
            Some(b"slabs") => show(out, reply, classes::slabs(ctx.shared, &ctx.shared.store_stats())),
            Some(b"sizes_enable") => turn_sizes(ctx, out, reply, true),
            Some(b"sizes_disable") => turn_sizes(ctx, out, reply, false),
            Some(b"sizes") if ctx.shared.counts_sizes.load(Relaxed) => {
                return self.list_keys(ctx, b"all", LineForm::Sizes, reply);
            }
            Some(b"sizes") => show(out, reply, vec![("sizes_status".into(), "disabled".into())]),
            Some(b"extstore") => show(out, reply, vec![]),
            Some(b"reset") => {
                ctx.shared.reset_counters();
                reply.outcome(out, b"", Outcome::Reset, &ItemInfo::default());
            }
            Some(b"detail") => detail(ctx, out, reply, words.next()),
            Some(b"cachedump") if is_binary(reply) => reply.stats_unknown(out),
            Some(b"cachedump") => cachedump(ctx, out, reply, words.next(), words.next()),
            Some(_) => reply.stats_unknown(out),
        }
        Served::Done
    }
}

/// Returns the lines of `stats`, `stats items`, `stats slabs` and `stats settings`, as names and values. `store` has
/// the store's figures since its opening: they are taken once for all of them, since that looks at every shard.
pub fn statistics(shared: &Shared, store: &Stats, ages: &Ages) -> [Lines; 4] {
    let store = shared.since_reset(store.clone());
    let (items, slabs) = (classes::items(shared, &store, ages), classes::slabs(shared, &store));
    [general::lines(shared, store), items, slabs, settings(shared)]
}

/// Returns the lines of `stats` and of `stats larder`, as names and values.
pub fn all_figures(shared: &Shared) -> [Lines; 2] {
    [general::lines(shared, shared.store_stats()), larder::lines(shared)]
}

/// Returns the lines of `stats mrc`, as names and values.
pub fn mrc_figures(shared: &Shared) -> Lines {
    mrc::lines(shared)
}

/// Returns the lines of `stats prefixes`, as names and values.
pub fn prefix_figures(shared: &Shared) -> Lines {
    prefixes::lines(shared)
}

/// Names and values in the order of the reply.
pub type Lines = Vec<(std::borrow::Cow<'static, str>, String)>;

fn is_binary(reply: &Reply<'_>) -> bool {
    matches!(reply, Reply::Binary { .. })
}

/// Executes `stats sizes_enable` and `stats sizes_disable`, whose reply has no end, as in memcached.
fn turn_sizes(ctx: &Ctx<'_>, out: &mut Vec<u8>, reply: &Reply<'_>, on: bool) {
    ctx.shared.counts_sizes.store(on, Relaxed);
    reply.stat(out, "sizes_status", if on { b"enabled" } else { b"disabled" });
}

/// Executes `stats detail on|off|dump`. The binary wire has a name for a dump, and no words for a mistake.
fn detail(ctx: &Ctx<'_>, out: &mut Vec<u8>, reply: &Reply<'_>, word: Option<&[u8]>) {
    let prefixes = &ctx.shared.prefixes;
    match word {
        _ if !ctx.shared.config.dumping && !is_binary(reply) => {
            reply.line(out, text::STATS_DETAIL_NOT_ALLOWED)
        }
        Some(b"on" | b"off") => {
            prefixes.turn(word == Some(b"on"));
            match is_binary(reply) {
                true => reply.stats_end(out),
                false => reply.line(out, "OK"),
            }
        }
        Some(b"dump") if ctx.shared.config.dumping => match is_binary(reply) {
            true => {
                reply.stat(out, "detailed", &prefixes.dump());
                reply.stats_end(out);
            }
            false => out.extend_from_slice(&prefixes.dump()),
        },
        _ if is_binary(reply) => reply.stats_unknown(out),
        _ => reply.line(out, text::STATS_DETAIL_USAGE),
    }
}

/// Lists the newest items of a class. Class 1 is RAM; the SSD's keys are on the SSD and are not listed.
fn cachedump(
    ctx: &Ctx<'_>,
    out: &mut Vec<u8>,
    reply: &Reply<'_>,
    class: Option<&[u8]>,
    limit: Option<&[u8]>,
) {
    let number = |word: &[u8]| std::str::from_utf8(word).ok()?.parse::<u32>().ok();
    let (Some(class), Some(limit)) = (class.map(number), limit.and_then(number)) else {
        return reply.line(out, text::STATS_CACHEDUMP_USAGE);
    };
    if !ctx.shared.config.dumping {
        return reply.line(out, text::STATS_CACHEDUMP_NOT_ALLOWED);
    }
    if class.is_none_or(|class| class >= 64) {
        return reply.line(out, text::STATS_CACHEDUMP_CLASS);
    }
    if class == Some(1) {
        let limit = if limit == 0 { usize::MAX } else { limit as usize };
        let unix = |expiry| match expiry {
            Expiry::Never => 0,
            Expiry::At(at) => ctx.shared.clock.unix(at),
        };
        for item in ctx.shared.store.list_ram(limit.min(CACHEDUMP_ITEMS_MAX), ctx.now) {
            cachedump_line(out, &item.key, item.value_len as u32, unix(item.expiry));
        }
    }
    reply.stats_end(out);
}

/// The cost of statistics, which look at every shard, in bytes of a value that costs as much to send.
const STATS_COST_BYTES: usize = 128 << 10;
/// The same for a dump, which looks at many records.
const CACHEDUMP_COST_BYTES: usize = 1 << 20;
/// The most items that one dump lists, which bounds its time: a few milliseconds. (memcached bounds it by 2 MiB.)
const CACHEDUMP_ITEMS_MAX: usize = 5_000;

fn show(out: &mut Vec<u8>, reply: &Reply<'_>, lines: Lines) {
    for (name, value) in lines {
        reply.stat(out, &name, value.as_bytes());
    }
    reply.stats_end(out);
}

/// Returns the lines of `stats settings`, as names and values.
pub fn settings(shared: &Shared) -> Lines {
    let mut lines: Lines =
        shared.config.settings().into_iter().map(|(name, value)| (name.into(), value)).collect();
    for (name, value) in &mut lines {
        match name.as_ref() {
            "detail_enabled" => *value = if shared.prefixes.is_on() { "yes" } else { "no" }.to_string(),
            "maxbytes" => *value = shared.store.memory_limit_bytes().to_string(),
            "verbosity" => *value = shared.verbosity.load(Relaxed).to_string(),
            "tcpport" if shared.tcp_port.load(Relaxed) != 0 => {
                *value = shared.tcp_port.load(Relaxed).to_string()
            }
            _ => {}
        }
    }
    lines
}
