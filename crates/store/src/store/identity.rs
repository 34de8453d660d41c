//! Whether what a memory file holds is of use: whether it was made for the same options, SSD and clock.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use larder_device::Extents;

use super::layout::{Layout, Sizes};
use crate::header::*;

/// What must be the same for an arena to be of use.
pub(crate) struct Identity<'a> {
    pub clock: &'a str,
    pub paths: &'a [u8],
    pub ssd: &'a [u8],
    pub evict: bool,
    pub sizes: &'a Sizes,
    pub layout: &'a Layout,
}

/// What a memory file holds.
pub(crate) enum Content {
    /// A whole arena, of this seed.
    Arena(u64),
    /// Content without use, which belongs to no other program.
    Useless(Cold),
    /// An arena that would be of use with the options it was made for.
    OtherOptions(MadeFor),
    /// Something that is not an arena.
    Foreign,
}

impl Identity<'_> {
    fn encode(&self, seed: u64) -> [u8; HEADER_PAGE_BYTES] {
        let mut page = [0; HEADER_PAGE_BYTES];
        page[..8].copy_from_slice(&MAGIC);
        page[AT_FORMAT..AT_CRC].copy_from_slice(&FORMAT.to_le_bytes());
        put(&mut page, AT_CLOCK, digest(self.clock.as_bytes()));
        put(&mut page, AT_PATHS, digest(self.paths));
        put(&mut page, AT_SEED, seed);
        put(&mut page, AT_EVICT, u64::from(self.evict));
        for (number, word) in self.layout.words().into_iter().enumerate() {
            put(&mut page, AT_LAYOUT + 8 * number, word);
        }
        let Sizes { memory_bytes, ssd_segments, item_bytes, index_bytes, index_grows: _, shadow_bytes: _ } =
            *self.sizes;
        let (is_given, index_bytes) = (u64::from(index_bytes.is_some()), index_bytes.unwrap_or(0));
        let sizes = [memory_bytes, ssd_segments.into(), item_bytes.into(), is_given, index_bytes];
        for (number, word) in sizes.into_iter().enumerate() {
            put(&mut page, AT_SIZES + 8 * number, word);
        }
        let crc = crc(&page);
        page[AT_CRC..AT_CLOCK].copy_from_slice(&crc.to_le_bytes());
        put(&mut page, AT_SSD, digest(self.ssd));
        page
    }

    /// Looks at what a file holds; changes nothing.
    pub(crate) fn examine(&self, file: &File) -> io::Result<Content> {
        let bytes = file.metadata()?.len();
        if bytes == 0 {
            return Ok(Content::Useless(Cold::New));
        }
        if Extents::of(file, 0..u64::MAX >> 1)? == Extents::Empty {
            // As it is between getting its length and getting its header.
            return Ok(Content::Useless(Cold::Unfinished));
        }
        let mut page = [0; HEADER_PAGE_BYTES];
        if bytes < HEADER_PAGE_BYTES as u64 {
            return Ok(Content::Foreign);
        }
        file.read_exact_at(&mut page, 0)?;
        if !is_ours(&page) {
            return Ok(Content::Foreign);
        }
        let found = format_of(&page);
        if found != FORMAT {
            return Ok(Content::Useless(Cold::OtherVersion { found }));
        }
        if word(&page, AT_STATE) != READY {
            return Ok(Content::Useless(Cold::Unfinished));
        }
        let seed = word(&page, AT_SEED);
        let wanted = self.encode(seed);
        let differs = |at: usize, end: usize| page[at..end] != wanted[at..end];
        if differs(AT_CLOCK, AT_PATHS) {
            return Ok(Content::Useless(Cold::OtherClock));
        }
        let is_other_ssd = differs(AT_SSD, AT_FLUSH);
        // Other sizes may come to the same layout, and a moved SSD may be the same one.
        let is_other_layout = differs(AT_LAYOUT, AT_SIZES);
        let is_other_length = bytes != self.layout.arena_bytes + self.layout.reserve_bytes;
        let for_others = differs(AT_EVICT, AT_LAYOUT)
            || (is_other_layout || is_other_length) && differs(AT_SIZES, AT_SIZES_END)
            || is_other_ssd && differs(AT_PATHS, AT_SEED);
        Ok(match () {
            () if for_others => Content::OtherOptions(MadeFor::decode(&page)),
            () if is_other_layout => Content::Useless(Cold::OtherLayout),
            () if is_other_ssd => Content::Useless(Cold::OtherSsd),
            () if is_other_length => Content::Useless(Cold::Cut),
            () => Content::Arena(seed),
        })
    }

    /// Empties a file and gives it the header of an arena that is not made yet.
    pub(crate) fn begin(&self, file: &File, seed: u64) -> io::Result<()> {
        file.set_len(0)?;
        file.write_all_at(&self.encode(seed), 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_what_is_drawn() {
        let sizes = Sizes {
            memory_bytes: 4 << 20,
            ssd_segments: 0,
            item_bytes: 512,
            index_bytes: None,
            index_grows: true,
            shadow_bytes: Some(0),
        };
        let layout = Layout::new(&sizes).expect("fits");
        let identity =
            Identity { clock: "c", paths: b"p", ssd: b"s", evict: true, sizes: &sizes, layout: &layout };
        let page = identity.encode(7);
        assert_eq!(&page[..12], b"LARDERMM\x09\0\0\0");
        assert_eq!(page[12..16], crc(&page).to_le_bytes());
        assert_eq!((word(&page, 16), word(&page, 24)), (digest(b"c"), digest(b"p")));
        assert_eq!((word(&page, 32), word(&page, 40), word(&page, 48)), (7, 1, layout.shards.into()));
        assert_eq!((word(&page, 144), word(&page, 160), word(&page, 168)), (4 << 20, 512, 0));
        assert!(page[184..4072].iter().all(|&byte| byte == 0), "the cas unique is given later");
        assert_eq!((word(&page, 4072), word(&page, 4080), word(&page, 4088)), (digest(b"s"), 0, 0));
    }
}
