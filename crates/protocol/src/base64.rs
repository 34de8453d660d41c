//! Base64 as meta keys use it: the standard alphabet, padded. A foreign character is an error, where
//! memcached skips it: two spellings of one key are of no help.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// What a character stands for; 64 and above: nothing.
const VALUES: [u8; 256] = {
    let mut values = [0xff; 256];
    let mut at = 0;
    while at < 64 {
        #[expect(clippy::indexing_slicing, reason = "evaluated at compile time; both indices are in range")]
        {
            values[ALPHABET[at] as usize] = at as u8;
        }
        at += 1;
    }
    values
};

fn value(character: u8) -> Option<u32> {
    VALUES.get(usize::from(character)).copied().filter(|value| *value < 64).map(u32::from)
}

/// Decodes `encoded` into the front of `out`; how many bytes that made. None when `encoded` is empty, is not
/// padded base64, or does not fit.
pub(crate) fn decode(encoded: &[u8], out: &mut [u8]) -> Option<usize> {
    let (groups, odd) = encoded.as_chunks::<4>();
    if !odd.is_empty() || groups.is_empty() {
        return None;
    }
    let last = groups.len() - 1;
    let mut len = 0;
    for (at, group) in groups.iter().enumerate() {
        let padding = match group {
            [_, _, b'=', b'='] if at == last => 2,
            [_, _, _, b'='] if at == last => 1,
            _ => 0,
        };
        let mut bits = 0u32;
        for character in group.get(..4 - padding)? {
            bits = bits << 6 | value(*character)?;
        }
        bits <<= 6 * padding;
        let [_, bytes @ ..] = bits.to_be_bytes();
        let made = bytes.get(..3 - padding)?;
        out.get_mut(len..len + made.len())?.copy_from_slice(made);
        len += made.len();
    }
    Some(len)
}

/// Appends the encoding of `bytes`.
pub(crate) fn encode(out: &mut Vec<u8>, bytes: &[u8]) {
    for group in bytes.chunks(3) {
        let mut padded = [0u8; 4];
        for (to, from) in padded.iter_mut().skip(1).zip(group) {
            *to = *from;
        }
        let bits = u32::from_be_bytes(padded);
        for position in 0..4u32 {
            let used = position as usize <= group.len();
            let index = (bits >> (18 - 6 * position) & 63) as usize;
            out.push(if used { ALPHABET.get(index).copied().unwrap_or(b'=') } else { b'=' });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(encoded: &[u8]) -> Option<Vec<u8>> {
        let mut out = [0u8; 186];
        decode(encoded, &mut out).map(|len| out[..len].to_vec())
    }

    #[test]
    fn known_pairs() {
        for (plain, coded) in [
            (&b"a"[..], &b"YQ=="[..]),
            (b"ab", b"YWI="),
            (b"abc", b"YWJj"),
            (b"\x00\xff\x10\x80", b"AP8QgA=="),
        ] {
            assert_eq!(decoded(coded).as_deref(), Some(plain));
            let mut out = Vec::new();
            encode(&mut out, plain);
            assert_eq!(out, coded);
        }
    }

    #[test]
    fn what_is_not_base64_is_refused() {
        for bad in [&b""[..], b"YWJ", b"====", b"YW==YWJj", b"Y===", b"YW\x01j", b"YWJj=", b"YW=j"] {
            assert_eq!(decoded(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn every_length_comes_back() {
        for len in 1..=186usize {
            let plain: Vec<u8> = (0..len).map(|at| (at * 37 + len) as u8).collect();
            let mut coded = Vec::new();
            encode(&mut coded, &plain);
            assert_eq!(decoded(&coded).as_deref(), Some(&plain[..]));
        }
        assert_eq!(decode(b"YWJj", &mut [0; 2]), None);
    }
}
