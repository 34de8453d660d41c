//! Lines that list keys: `lru_crawler metadump`, `mgdump`, `stats cachedump`. The server walks the items, and
//! begins and ends the list (`OK` first; `END` after metadump and cachedump, `EN` after mgdump).

use super::{number, push_marked_key};
use crate::reply::ItemInfo;

/// Appends `key` with everything but letters, digits and `-._~` as `%xx`.
pub fn uri_encode(out: &mut Vec<u8>, key: &[u8]) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for byte in key {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(byte) {
            out.push(*byte);
        } else {
            let digit = |nibble: u8| HEX.get(usize::from(nibble)).copied().unwrap_or(b'0');
            out.extend_from_slice(&[b'%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
}

/// Appends what `metadump` and `me` both tell of an item, from ` exp=` on; without an expiry that is -1. `expiry` and
/// `accessed` are in the unit of the line.
pub(super) fn push_facts(
    out: &mut Vec<u8>,
    item: &ItemInfo,
    expiry: Option<u64>,
    accessed: u64,
    class: u32,
    size: u64,
) {
    out.extend_from_slice(b" exp=");
    match expiry {
        Some(seconds) => number::push(out, seconds),
        None => out.extend_from_slice(b"-1"),
    }
    out.extend_from_slice(b" la=");
    number::push(out, accessed);
    out.extend_from_slice(b" cas=");
    number::push(out, item.cas);
    out.extend_from_slice(if item.hit_before { b" fetch=yes cls=" } else { b" fetch=no cls=" });
    number::push(out, class);
    out.extend_from_slice(b" size=");
    number::push(out, size);
}

/// One item of `metadump`. `exp_unix` is None for an item that never expires; `la_unix` is the last access;
/// both in Unix seconds. These lines end in a bare LF, as memcached's do.
pub fn metadump_line(
    out: &mut Vec<u8>,
    key: &[u8],
    item: &ItemInfo,
    exp_unix: Option<u64>,
    la_unix: u64,
    class: u32,
    size: u64,
) {
    out.extend_from_slice(b"key=");
    uri_encode(out, key);
    push_facts(out, item, exp_unix, la_unix, class, size);
    out.push(b'\n');
}

/// One item of `mgdump`: the request that would read it.
pub fn mgdump_line(out: &mut Vec<u8>, key: &[u8], key_is_binary: bool) {
    out.extend_from_slice(b"mg ");
    push_marked_key(out, key, key_is_binary);
    out.extend_from_slice(b"\r\n");
}

/// One item of `stats cachedump`. `exp_unix` is 0 for an item that never expires.
pub fn cachedump_line(out: &mut Vec<u8>, key: &[u8], value_len: u32, exp_unix: u64) {
    out.extend_from_slice(b"ITEM ");
    out.extend_from_slice(key);
    out.extend_from_slice(b" [");
    number::push(out, value_len);
    out.extend_from_slice(b" b; ");
    number::push(out, exp_unix);
    out.extend_from_slice(b" s]\r\n");
}
