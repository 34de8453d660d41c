//! `lru_crawler metadump` and `mgdump` list the keys of both tiers, and `stats sizes` counts their items by size, a
//! step at a time. One listing runs at a time, as in memcached, so what it holds for its work is bounded.

use std::collections::BTreeMap;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use larder_protocol::{ItemInfo, Reply, metadump_line, mgdump_line, text};
use larder_store::{Dump, Expiry, Listed, ListedItem, RECORD_HEADER_BYTES, Tier};

use super::shown_cas;
use crate::session::watch::class_of;
use crate::session::{Ctx, Served, Session};

/// The form of the lines to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineForm {
    /// What is known of each item.
    Metadata,
    /// The command that gets each item.
    Gets,
    /// Numbers of items by size.
    Sizes,
}

/// Numbers of items by their sizes, rounded up to multiples of [`SIZE_STEP_BYTES`]. As many different sizes as fill the
/// store take some MiB.
type Sizes = BTreeMap<u64, u64>;

/// The steps of memcached's histogram.
const SIZE_STEP_BYTES: u64 = 32;
/// About the memory of one size of the histogram.
const SIZE_BYTES: usize = 32;

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
    sizes: Sizes,
    _running: Running,
}

impl KeyListing {
    /// Returns the bytes that it holds.
    pub(in crate::session) fn memory_bytes(&self) -> usize {
        self.dump.memory_bytes() + self.sizes.len() * SIZE_BYTES
    }
}

/// The right to list; it is given back when the listing ends, or its connection.
struct Running(Arc<AtomicBool>);

impl Running {
    fn begin(is_listing: &Arc<AtomicBool>) -> Option<Running> {
        (!is_listing.swap(true, Relaxed)).then(|| Running(is_listing.clone()))
    }
}

impl Drop for Running {
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
        form: LineForm,
        reply: &Reply<'_>,
    ) -> Served {
        let mut listing = match self.listing.take() {
            Some(listing) => listing,
            None => match begin(ctx, which, form) {
                Ok(listing) => {
                    ctx.counters.key_listings.up();
                    if form != LineForm::Sizes {
                        reply.line(self.out.tail(), "OK");
                    }
                    Box::new(listing)
                }
                Err(refusal) => {
                    match reply {
                        Reply::Binary { .. } => reply.stats_unknown(self.out.tail()),
                        _ => reply.line(self.out.tail(), refusal),
                    }
                    return Served::Done;
                }
            },
        };
        let loaded = self.loaded.take();
        let loaded = loaded.as_ref().map(|read| read.loaded());
        match ctx.shared.store.list_next(&mut listing.dump, ctx.now, loaded) {
            Listed::Items(items) => {
                let wanted = items.iter().filter(|item| listing.classes.have(item.tier));
                for item in wanted {
                    match form {
                        LineForm::Metadata => push_facts(ctx, self.out.tail(), item),
                        LineForm::Gets => mgdump_line(self.out.tail(), &item.key, item.key_is_binary),
                        LineForm::Sizes => {
                            let size = size_of_item(item).next_multiple_of(SIZE_STEP_BYTES);
                            *listing.sizes.entry(size).or_default() += 1;
                        }
                    }
                }
                self.listing = Some(listing);
                self.try_again()
            }
            Listed::Read(plan) => {
                self.listing = Some(listing);
                self.wait_for_read(ctx, plan)
            }
            Listed::End => {
                let out = self.out.tail();
                match form {
                    LineForm::Metadata => reply.line(out, "END"),
                    LineForm::Gets => reply.line(out, "EN"),
                    LineForm::Sizes => {
                        for (size, items) in listing.sizes {
                            reply.stat_number(out, &size.to_string(), items);
                        }
                        reply.stats_end(out);
                    }
                }
                Served::Done
            }
        }
    }
}

fn begin(ctx: &Ctx<'_>, which: &[u8], form: LineForm) -> Result<KeyListing, &'static str> {
    let config = &ctx.shared.config;
    match form {
        LineForm::Metadata if !config.dumping => return Err(text::METADUMP_NOT_ALLOWED),
        LineForm::Gets if !config.dumping => return Err(text::MGDUMP_NOT_ALLOWED),
        LineForm::Metadata | LineForm::Gets if !config.lru_crawler => return Err(text::CRAWLER_DISABLED),
        LineForm::Metadata | LineForm::Gets | LineForm::Sizes => {}
    }
    let classes = Classes::parse(which).ok_or(text::CRAWLER_BAD_CLASS)?;
    let running = Running::begin(&ctx.shared.is_listing).ok_or(text::CRAWLER_BUSY)?;
    Ok(KeyListing { dump: ctx.shared.store.begin_listing(), classes, sizes: Sizes::new(), _running: running })
}

fn size_of_item(item: &ListedItem) -> u64 {
    (item.key.len() + item.value_len + RECORD_HEADER_BYTES) as u64
}

fn push_facts(ctx: &Ctx<'_>, out: &mut Vec<u8>, item: &ListedItem) {
    let clock = &ctx.shared.clock;
    let expiry = match item.expiry {
        Expiry::Never => None,
        Expiry::At(at) => Some(clock.unix(at)),
    };
    let info = ItemInfo { cas: shown_cas(ctx, item.cas), hit_before: item.fetched, ..ItemInfo::default() };
    let class = class_of(item.tier);
    let accessed = clock.unix(item.accessed);
    metadump_line(out, &item.key, &info, expiry, accessed, class, size_of_item(item));
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
