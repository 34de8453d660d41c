//! memcached's extstore, after its documentation and the help of its options: items that leave RAM are appended to
//! pages. The oldest page is evicted if none is free. Before that, while less than a quarter of the pages is free
//! (`ext_compact_under`), the oldest page with few enough live bytes is compacted: `ext_max_frag` (0.8) of a page
//! with no page free, less with more. What is compacted has a page of its own. `ext_drop_unread` is off.

use super::log::Log;
use super::{Held, Item, Tier};

const COMPACT_UNDER: f64 = 0.25;
const FRAG_MAX: f64 = 0.8;
const WRITTEN: usize = 0;
const COMPACTED: usize = 1;

/// The pages.
pub struct Pages {
    log: Log,
    page_bytes: u64,
}

impl Pages {
    /// Empty pages of `page_bytes`.
    pub fn new(bytes: u64, page_bytes: u64) -> Pages {
        Pages { log: Log::new(bytes, page_bytes, 2), page_bytes }
    }

    fn make_room(&mut self, out: &mut Vec<Item>) {
        if self.log.is_out_of_pages()
            && let Some(page) = self.log.oldest(u64::MAX)
        {
            out.extend(self.log.empty(page));
        }
        // One page at a time, as the one thread does; writes go on meanwhile.
        let free = self.log.free_share();
        let live_bytes_below = (self.page_bytes as f64 * (1.0 - free) * FRAG_MAX) as u64;
        if free < COMPACT_UNDER
            && let Some(page) = self.log.oldest(live_bytes_below)
        {
            for item in self.log.empty(page) {
                if !self.log.append(COMPACTED, item) {
                    out.push(item);
                }
            }
        }
    }
}

impl Tier for Pages {
    fn find(&self, key: u64) -> Option<Item> {
        self.log.find(key)
    }

    fn hit(&mut self, key: u64) {
        self.log.hit(key);
    }

    fn insert(&mut self, item: Item, out: &mut Vec<Item>) {
        if self.log.needs_page(WRITTEN, item.bytes) {
            self.make_room(out);
        }
        if !self.log.append(WRITTEN, item) {
            out.push(item);
        }
    }

    fn remove(&mut self, key: u64) -> Option<Item> {
        self.log.remove(key)
    }

    fn evict(&mut self) -> Option<Item> {
        let page = self.log.oldest(u64::MAX)?;
        self.log.empty(page).pop()
    }

    fn held(&self) -> Held {
        self.log.held()
    }

    fn written_bytes(&self) -> u64 {
        self.log.written_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(key: u64) -> Item {
        Item { key, bytes: 5, ..Item::default() }
    }

    #[test]
    fn the_oldest_page_goes_if_none_is_free() {
        let mut pages = Pages::new(40, 10);
        let mut out = Vec::new();
        (1..=8).for_each(|key| pages.insert(item(key), &mut out));
        assert_eq!(out, []);
        pages.insert(item(9), &mut out);
        assert_eq!(out, [item(1), item(2)]);
    }

    #[test]
    fn a_page_with_few_live_bytes_is_compacted() {
        let mut pages = Pages::new(50, 10);
        let mut out = Vec::new();
        (1..=8).for_each(|key| pages.insert(item(key), &mut out));
        pages.remove(3);
        // A fifth of the pages is free: the limit is 0.8 * 0.8 of a page, above the half that is live in the second.
        pages.insert(item(9), &mut out);
        assert_eq!((pages.find(4), out.as_slice()), (Some(item(4)), &[][..]));
        assert_eq!(pages.written_bytes(), 50, "item 4 twice");
    }
}
