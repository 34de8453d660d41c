//! The file of a dump: items in blocks, each of which has a checksum, and an end that tells a cut file.
//!
//! ```text
//!   file    head | block | block | ... | end
//!
//!   head    0                  16        24               32       36       40
//!           | "larder dump ..1" | id      | created, Unix ms | 0      | crc    |
//!
//!   block   0        4        8               12            16       20       24
//!           | number | items  | payload bytes | payload crc | 0      | crc    | payload ...
//!
//!   item    0           1   4       8                    16            20
//!           | key bytes | 0 | flags | expires, Unix ms   | value bytes | key | value
//!
//!   end     a block without items; its payload is the number of all items and the bytes of their keys and values
//! ```
//! Integers are little endian. Each crc is a CRC32C: of the head, it is of the bytes before it; of a block, of the
//! file's id and the bytes before it in the block, so that no block of another dump is taken for one of this. Blocks
//! are numbered from 0. Nothing follows the end. An item that never expires has 0 for its expiry.

mod read;
mod write;

pub use read::DumpReader;
pub use write::DumpWriter;

use crc_fast::{CrcAlgorithm, Digest};

const MAGIC: [u8; 16] = *b"larder dump\0\0\0\0\x01";

const ID: usize = 16;
const CREATED: usize = 24;
const HEAD_ZERO: usize = 32;
const HEAD_CRC: usize = 36;
const HEAD_BYTES: usize = 40;

const ITEMS: usize = 4;
const PAYLOAD_BYTES: usize = 8;
const PAYLOAD_CRC: usize = 12;
const BLOCK_ZERO: usize = 16;
const BLOCK_CRC: usize = 20;
const BLOCK_BYTES: usize = 24;

const ITEM_ZERO: usize = 1;
const FLAGS: usize = 4;
const EXPIRES: usize = 8;
const VALUE_BYTES: usize = 16;
const ITEM_BYTES: usize = 20;

// The fields of each head follow each other without a gap.
const _: () = assert!(ID == MAGIC.len() && CREATED == ID + 8 && HEAD_ZERO == CREATED + 8);
const _: () = assert!(HEAD_CRC == HEAD_ZERO + 4 && HEAD_BYTES == HEAD_CRC + 4);
const _: () = assert!(PAYLOAD_BYTES == ITEMS + 4 && PAYLOAD_CRC == PAYLOAD_BYTES + 4);
const _: () =
    assert!(BLOCK_ZERO == PAYLOAD_CRC + 4 && BLOCK_CRC == BLOCK_ZERO + 4 && BLOCK_BYTES == BLOCK_CRC + 4);
const _: () = assert!(FLAGS == ITEM_ZERO + 3 && EXPIRES == FLAGS + 4);
const _: () = assert!(VALUE_BYTES == EXPIRES + 8 && ITEM_BYTES == VALUE_BYTES + 4);

/// The payload of the end.
const END_BYTES: usize = 16;
/// A block is closed when its payload has so many bytes.
const BLOCK_FULL_BYTES: usize = 1 << 20;
/// The largest payload: a block that is nearly full, and the largest item.
const PAYLOAD_BYTES_MAX: usize = BLOCK_FULL_BYTES + ITEM_BYTES + 255 + crate::connect::VALUE_BYTES_MAX;

/// Returns the CRC32C of some parts.
fn crc(parts: &[&[u8]]) -> u32 {
    let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
    parts.iter().for_each(|part| digest.update(part));
    // The algorithm has 32 bits.
    digest.finalize() as u32
}

fn put<const N: usize>(bytes: &mut [u8], at: usize, field: [u8; N]) {
    if let Some(place) = bytes.get_mut(at..at + N) {
        place.copy_from_slice(&field);
    }
}

fn get<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let field = bytes.get(at..at + N).and_then(|field| field.try_into().ok());
    field.unwrap_or([0; N])
}

fn get_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(get(bytes, at))
}

fn get_u64(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(get(bytes, at))
}

#[cfg(test)]
mod tests;
