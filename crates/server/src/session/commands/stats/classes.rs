//! `stats items` and `stats slabs`: the two tiers as memcached's slab classes 1 (RAM) and 2 (SSD), for tools that
//! draw them.

use larder_store::{Ages, Stats};

use super::Lines;
use crate::shared::Shared;

/// The class of items in RAM, and of those on the SSD.
const RAM: u32 = 1;
const SSD: u32 = 2;

/// Returns the lines of `stats items`. New items in RAM are memcached's hot ones, items in RAM that were read its
/// warm ones, and items on the SSD its cold ones. All hits in RAM count as hits of warm items.
pub(super) fn items(shared: &Shared, store: &Stats, ages: &Ages) -> Lines {
    let totals = shared.totals();
    let Ages { ram_small_s, ram_main_s, ssd_s } = *ages;
    let mut lines = Lines::new();
    for (class, number) in [(RAM, store.ram_items), (SSD, store.ssd_items)] {
        if number == 0 {
            continue;
        }
        let of = |ram: u64, ssd: u64| if class == RAM { ram } else { ssd };
        for (name, value) in [
            ("number", number),
            ("number_hot", of(store.ram_items_small, 0)),
            ("number_warm", of(store.ram_items_main, 0)),
            ("number_cold", of(0, store.ssd_items)),
            ("age_hot", of(ram_small_s.into(), 0)),
            ("age_warm", of(ram_main_s.into(), 0)),
            ("age", of(ram_small_s.max(ram_main_s).into(), ssd_s.into())),
            ("mem_requested", of(store.ram_item_bytes, 0)),
            ("evicted", of(store.evictions, 0)),
            ("evicted_nonzero", 0),
            ("evicted_time", 0),
            ("outofmemory", of(totals.store_no_memory, 0)),
            ("tailrepairs", 0),
            ("reclaimed", of(store.reclaimed, 0)),
            ("expired_unfetched", of(store.expired_unread, 0)),
            ("evicted_unfetched", of(store.evicted_unread, 0)),
            ("evicted_active", 0),
            ("crawler_reclaimed", 0),
            ("crawler_items_checked", 0),
            ("lrutail_reflocked", 0),
            ("moves_to_cold", 0),
            ("moves_to_warm", 0),
            ("moves_within_lru", 0),
            ("direct_reclaims", 0),
            ("hits_to_hot", 0),
            ("hits_to_warm", of(totals.get_hits_ram, 0)),
            ("hits_to_cold", of(0, totals.get_hits_ssd)),
            ("hits_to_temp", 0),
        ] {
            lines.push((format!("items:{class}:{name}").into(), value.to_string()));
        }
    }
    lines
}

/// Returns the lines of `stats slabs`. A page of the RAM class is a segment.
pub(super) fn slabs(shared: &Shared, store: &Stats) -> Lines {
    let totals = shared.totals();
    let mut lines = Lines::new();
    let pages = store.ram_segments - store.ram_segments_free - store.ram_segments_withheld;
    for (name, value) in [
        ("chunk_size", store.ram_segment_bytes),
        ("chunks_per_page", 1),
        ("total_pages", pages),
        ("total_chunks", pages),
        ("used_chunks", store.ram_items),
        ("free_chunks", store.ram_segments_free),
        ("free_chunks_end", 0),
        ("get_hits", totals.get_hits),
        ("cmd_set", totals.cmd_set),
        ("delete_hits", totals.delete_hits),
        ("incr_hits", totals.incr_hits),
        ("decr_hits", totals.decr_hits),
        ("cas_hits", totals.cas_hits),
        ("cas_badval", totals.cas_badval),
        ("touch_hits", totals.touch_hits),
    ] {
        lines.push((format!("{RAM}:{name}").into(), value.to_string()));
    }
    lines.push(("active_slabs".into(), "1".into()));
    lines.push(("total_malloced".into(), (pages * store.ram_segment_bytes).to_string()));
    lines
}
