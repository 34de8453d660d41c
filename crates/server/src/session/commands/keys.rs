//! `lru_crawler metadump` and `mgdump`: lists the keys of both tiers, a step at a time. One listing runs at a time, as
//! in memcached, so what it holds for its work is bounded.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use larder_protocol::{ItemInfo, Reply, metadump_line, mgdump_line, text};
use larder_store::{Dump, Expiry, Listed, ListedItem, RECORD_HEADER_BYTES, Tier};

use super::shown_cas;
use crate::session::{Ctx, Served, Session};

/// The lines to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lines {
    /// What is known of each item.
    Metadata,
    /// The command that gets each item.
    Gets,
}

/// The keys to list.
#[derive(Clone, Copy)]
struct Classes {
    ram: bool,
    ssd: bool,
}

impl Classes {
    /// Reads `all`, `hash`, or numbers from 1 to 63 between commas.
    fn parse(which: &[u8]) -> Option<Classes> {
        if which == b"all" || which == b"hash" {
            return Some(Classes { ram: true, ssd: true });
        }
        let mut classes = Classes { ram: false, ssd: false };
        for number in which.split(|byte| *byte == b',') {
            match std::str::from_utf8(number).ok()?.parse::<u32>().ok()? {
                1 => classes.ram = true,
                2 => classes.ssd = true,
                3..64 => {}
                _ => return None,
            }
        }
        Some(classes)
    }

    fn have(self, tier: Tier) -> bool {
        if tier == Tier::Ram { self.ram } else { self.ssd }
    }
}

/// A listing under way.
pub(in crate::session) struct KeyListing {
    dump: Dump,
    classes: Classes,
    _turn: Turn,
}

impl KeyListing {
    /// Returns the bytes that it holds.
    pub(in crate::session) fn memory_bytes(&self) -> usize {
        self.dump.memory_bytes()
    }
}

/// The right to list; it is given back when the listing ends, or its connection.
struct Turn(Arc<AtomicBool>);

impl Turn {
    fn take(is_listing: &Arc<AtomicBool>) -> Option<Turn> {
        (!is_listing.swap(true, Relaxed)).then(|| Turn(is_listing.clone()))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.store(false, Relaxed);
    }
}

impl Session {
    /// Lists keys: the next step of a listing, or its first one.
    pub(super) fn list_keys(
        &mut self,
        ctx: &mut Ctx<'_>,
        which: &[u8],
        lines: Lines,
        reply: &Reply<'_>,
    ) -> Served {
        let mut listing = match self.listing.take() {
            Some(listing) => listing,
            None => match begin(ctx, which, lines) {
                Ok(listing) => {
                    ctx.counters.key_listings.up();
                    reply.line(self.out.tail(), "OK");
                    Box::new(listing)
                }
                Err(refusal) => {
                    reply.line(self.out.tail(), refusal);
                    return Served::Done;
                }
            },
        };
        let loaded = self.loaded.take();
        let loaded = loaded.as_ref().map(|read| read.loaded());
        match ctx.shared.store.list_next(&mut listing.dump, ctx.now, loaded) {
            Listed::Items(items) => {
                let wanted = items.iter().filter(|item| listing.classes.have(item.tier));
                wanted.for_each(|item| push_line(ctx, self.out.tail(), item, lines));
                self.listing = Some(listing);
                self.try_again()
            }
            Listed::Read(plan) => {
                self.listing = Some(listing);
                self.wait_for_read(ctx, plan)
            }
            Listed::End => {
                reply.line(self.out.tail(), if lines == Lines::Metadata { "END" } else { "EN" });
                Served::Done
            }
        }
    }
}

fn begin(ctx: &Ctx<'_>, which: &[u8], lines: Lines) -> Result<KeyListing, &'static str> {
    let config = &ctx.shared.config;
    match lines {
        Lines::Metadata if !config.dumping => return Err(text::METADUMP_NOT_ALLOWED),
        Lines::Gets if !config.dumping => return Err(text::MGDUMP_NOT_ALLOWED),
        _ if !config.lru_crawler => return Err(text::CRAWLER_DISABLED),
        _ => {}
    }
    let classes = Classes::parse(which).ok_or(text::CRAWLER_BAD_CLASS)?;
    let turn = Turn::take(&ctx.shared.is_listing).ok_or(text::CRAWLER_BUSY)?;
    Ok(KeyListing { dump: ctx.shared.store.begin_listing(), classes, _turn: turn })
}

fn push_line(ctx: &Ctx<'_>, out: &mut Vec<u8>, item: &ListedItem, lines: Lines) {
    if lines == Lines::Gets {
        return mgdump_line(out, &item.key, item.key_is_binary);
    }
    let clock = &ctx.shared.clock;
    let expiry = match item.expiry {
        Expiry::Never => None,
        Expiry::At(at) => Some(clock.unix(at)),
    };
    let info = ItemInfo { cas: shown_cas(ctx, item.cas), hit_before: item.fetched, ..ItemInfo::default() };
    let class = if item.tier == Tier::Ram { 1 } else { 2 };
    let size = (item.key.len() + item.value_len + RECORD_HEADER_BYTES) as u64;
    metadump_line(out, &item.key, &info, expiry, clock.unix(item.accessed), class, size);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_read_as_memcached_reads_them() {
        let parsed = |which: &str| Classes::parse(which.as_bytes()).map(|classes| (classes.ram, classes.ssd));
        assert_eq!(parsed("all"), Some((true, true)));
        assert_eq!(parsed("hash"), Some((true, true)));
        assert_eq!(parsed("1"), Some((true, false)));
        assert_eq!(parsed("2,63"), Some((false, true)));
        assert_eq!(parsed("63"), Some((false, false)));
        for bad in ["", "0", "64", "foo", "1,", "1;2", "-1"] {
            assert_eq!(parsed(bad), None, "{bad}");
        }
    }
}
