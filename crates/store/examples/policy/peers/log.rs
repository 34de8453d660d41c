//! An SSD that is written page by page: extstore's pages and CacheLib's regions.

use super::lists::ByKey;
use super::{Held, Item};

/// A page: which keys were written there, and when it was opened and last read.
#[derive(Default)]
struct Page {
    keys: Vec<u64>,
    used_bytes: u64,
    live_bytes: u64,
    opened: u64,
    read: u64,
}

/// Pages, of which one per stream is open.
pub struct Log {
    pages: Vec<Page>,
    page_bytes: u64,
    index: ByKey<(Item, u32)>,
    free: Vec<u32>,
    open: Vec<Option<u32>>,
    clock: u64,
    held: Held,
    written_bytes: u64,
}

impl Log {
    /// An empty log with so many streams.
    pub fn new(bytes: u64, page_bytes: u64, streams: usize) -> Log {
        let count = (bytes / page_bytes) as u32;
        Log {
            pages: (0..count).map(|_| Page::default()).collect(),
            page_bytes,
            index: ByKey::default(),
            free: (0..count).rev().collect(),
            open: vec![None; streams],
            clock: 0,
            held: Held::default(),
            written_bytes: 0,
        }
    }

    /// Returns what all pages hold.
    pub fn held(&self) -> Held {
        self.held
    }

    /// Returns the bytes that were written so far.
    pub fn written_bytes(&self) -> u64 {
        self.written_bytes
    }

    /// Returns the free pages as a share of all.
    pub fn free_share(&self) -> f64 {
        self.free.len() as f64 / self.pages.len().max(1) as f64
    }

    /// Returns whether no page is free.
    pub fn is_out_of_pages(&self) -> bool {
        self.free.is_empty()
    }

    /// Returns the item of a key.
    pub fn find(&self, key: u64) -> Option<Item> {
        self.index.get(&key).map(|(item, _)| *item)
    }

    /// Notes that an item was read, and so its page.
    pub fn hit(&mut self, key: u64) {
        self.clock += 1;
        if let Some((_, page)) = self.index.get(&key) {
            self.pages[*page as usize].read = self.clock;
        }
    }

    /// Removes an item; its bytes stay used.
    pub fn remove(&mut self, key: u64) -> Option<Item> {
        let (item, page) = self.index.remove(&key)?;
        self.pages[page as usize].live_bytes -= u64::from(item.bytes);
        self.held.take(&item);
        Some(item)
    }

    /// Returns whether an item of `bytes` needs a page to be opened.
    pub fn needs_page(&self, stream: usize, bytes: u32) -> bool {
        let used = self.open[stream].map(|page| self.pages[page as usize].used_bytes);
        used.is_none_or(|used| used + u64::from(bytes) > self.page_bytes)
    }

    /// Appends an item, whose key is not here. Returns false if there is no page for it.
    pub fn append(&mut self, stream: usize, item: Item) -> bool {
        if u64::from(item.bytes) > self.page_bytes {
            return false;
        }
        if self.needs_page(stream, item.bytes) {
            let Some(page) = self.free.pop() else { return false };
            self.clock += 1;
            self.pages[page as usize] = Page { opened: self.clock, read: self.clock, ..Page::default() };
            self.open[stream] = Some(page);
        }
        let Some(number) = self.open[stream] else { return false };
        let page = &mut self.pages[number as usize];
        page.keys.push(item.key);
        page.used_bytes += u64::from(item.bytes);
        page.live_bytes += u64::from(item.bytes);
        self.written_bytes += u64::from(item.bytes);
        self.held.add(&item);
        self.index.insert(item.key, (item, number));
        true
    }

    fn sealed(&self) -> impl Iterator<Item = (u32, &Page)> {
        let is_sealed =
            |(number, page): &(u32, &Page)| page.opened > 0 && !self.open.contains(&Some(*number));
        (0..).zip(&self.pages).filter(is_sealed)
    }

    /// Returns the full page that was opened first, among those with fewer live bytes than `live_bytes_below`.
    pub fn oldest(&self, live_bytes_below: u64) -> Option<u32> {
        let pages = self.sealed().filter(|(_, page)| page.live_bytes < live_bytes_below);
        pages.min_by_key(|(_, page)| page.opened).map(|(number, _)| number)
    }

    /// Returns the full page that was read longest ago.
    pub fn least_read(&self) -> Option<u32> {
        self.sealed().min_by_key(|(_, page)| page.read).map(|(number, _)| number)
    }

    /// Frees a page, and returns the items that were live there.
    pub fn empty(&mut self, number: u32) -> Vec<Item> {
        let page = std::mem::take(&mut self.pages[number as usize]);
        let mut live = Vec::new();
        for key in page.keys {
            if let Some((item, at)) = self.index.get(&key).copied()
                && at == number
            {
                self.index.remove(&key);
                self.held.take(&item);
                live.push(item);
            }
        }
        self.free.push(number);
        live
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_filled_and_emptied_whole() {
        let mut log = Log::new(30, 10, 1);
        let item = |key| Item { key, bytes: 4, ..Item::default() };
        assert!((1..=6).all(|key| log.append(0, item(key))) && !log.append(0, item(7)));
        assert!(log.is_out_of_pages());
        log.remove(2);
        assert_eq!(log.oldest(u64::MAX).map(|page| log.empty(page)), Some(vec![item(1)]));
        assert_eq!((log.find(1), log.find(3), log.held().items), (None, Some(item(3)), 4));
        assert!(log.append(0, item(7)) && log.written_bytes() == 28);
        log.hit(3);
        assert_eq!(log.least_read().map(|page| log.empty(page)), Some(vec![item(5), item(6)]));
    }
}
