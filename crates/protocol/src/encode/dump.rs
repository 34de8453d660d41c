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

/// Returns whether a key can stand in a line as it is, as every key of the text protocol can. The binary protocol
/// stores others, too, which could end the line and begin another.
fn is_word(key: &[u8]) -> bool {
    !key.iter().any(|byte| matches!(byte, b' ' | b'\r' | b'\n'))
}

/// One item of `mgdump`: the request that would read it.
pub fn mgdump_line(out: &mut Vec<u8>, key: &[u8], key_is_binary: bool) {
    out.extend_from_slice(b"mg ");
    push_marked_key(out, key, key_is_binary || !is_word(key));
    out.extend_from_slice(b"\r\n");
}

/// One item of `stats cachedump`, whose key is encoded as metadump's if a line could not hold it. `exp_unix` is 0
/// for an item that never expires.
pub fn cachedump_line(out: &mut Vec<u8>, key: &[u8], value_len: u32, exp_unix: u64) {
    out.extend_from_slice(b"ITEM ");
    if is_word(key) {
        out.extend_from_slice(key);
    } else {
        uri_encode(out, key);
    }
    out.extend_from_slice(b" [");
    number::push(out, value_len);
    out.extend_from_slice(b" b; ");
    number::push(out, exp_unix);
    out.extend_from_slice(b" s]\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_ends_its_line() {
        for key in [&b"a\r\nflush_all"[..], b"a b", b"\nEND"] {
            let (mut mgdump, mut cachedump) = (Vec::new(), Vec::new());
            mgdump_line(&mut mgdump, key, false);
            cachedump_line(&mut cachedump, key, 1, 0);
            assert!(mgdump.starts_with(b"mg ") && mgdump.ends_with(b" b\r\n"), "{}", mgdump.escape_ascii());
            for line in [mgdump, cachedump] {
                let (text, end) = line.split_at(line.len() - 2);
                assert!(end == b"\r\n" && !text.iter().any(u8::is_ascii_control), "{}", text.escape_ascii());
            }
        }
        let mut line = Vec::new();
        mgdump_line(&mut line, "k\u{e9}\ty".as_bytes(), false);
        assert_eq!(line, "mg k\u{e9}\ty\r\n".as_bytes());
    }
}
