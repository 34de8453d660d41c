//! Decimal numbers, in and out. Bounded: a number is at most 20 digits and never wraps.

/// An unsigned decimal number: digits only.
#[inline]
pub(crate) fn digits(token: &[u8]) -> Option<u64> {
    // 19 digits cannot overflow a u64, so the common case needs no check a digit.
    if token.len() <= 19 {
        if token.is_empty() {
            return None;
        }
        let mut value = 0u64;
        for byte in token {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                return None;
            }
            value = value * 10 + u64::from(digit);
        }
        return Some(value);
    }
    let mut value = 0u64;
    for byte in token {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(value)
}

/// An unsigned number as memcached's C library reads it: a plus sign is allowed.
#[inline]
pub(crate) fn unsigned(token: &[u8]) -> Option<u64> {
    match token {
        [b'+', rest @ ..] => digits(rest),
        _ => digits(token),
    }
}

/// An unsigned number of 32 bits.
#[inline]
pub(crate) fn unsigned_32(token: &[u8]) -> Option<u32> {
    unsigned(token).and_then(|value| u32::try_from(value).ok())
}

/// A signed number of 32 bits.
#[inline]
pub(crate) fn signed_32(token: &[u8]) -> Option<i32> {
    match token {
        [b'-', rest @ ..] => {
            let magnitude = i64::try_from(digits(rest)?).ok()?;
            i32::try_from(-magnitude).ok()
        }
        _ => unsigned(token).and_then(|value| i32::try_from(value).ok()),
    }
}

/// A signed number of 64 bits.
pub(crate) fn signed_64(token: &[u8]) -> Option<i64> {
    match token {
        [b'-', rest @ ..] => 0i64.checked_sub_unsigned(digits(rest)?),
        _ => unsigned(token).and_then(|value| i64::try_from(value).ok()),
    }
}

/// Appends a number in decimal.
#[inline]
pub(crate) fn push<N: itoa::Integer>(out: &mut Vec<u8>, value: N) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsigned_numbers_stop_at_64_bits() {
        assert_eq!(digits(b"0"), Some(0));
        assert_eq!(digits(b"9999999999999999999"), Some(9_999_999_999_999_999_999));
        assert_eq!(digits(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(digits(b"18446744073709551616"), None);
        assert_eq!(digits(b"000000000000000000000000000007"), Some(7));
        for bad in [&b""[..], b"-1", b"+1", b"1 ", b"1x", b"x", b"0x10", b"1.5"] {
            assert_eq!(digits(bad), None, "{bad:?}");
        }
        assert_eq!(unsigned(b"+12"), Some(12));
        assert_eq!(unsigned(b"+"), None);
        assert_eq!(unsigned_32(b"4294967295"), Some(u32::MAX));
        assert_eq!(unsigned_32(b"4294967296"), None);
    }

    #[test]
    fn signed_numbers_reach_both_ends() {
        assert_eq!(signed_32(b"-2147483648"), Some(i32::MIN));
        assert_eq!(signed_32(b"-2147483649"), None);
        assert_eq!(signed_32(b"2147483647"), Some(i32::MAX));
        assert_eq!(signed_32(b"2147483648"), None);
        assert_eq!(signed_32(b"-"), None);
        assert_eq!(signed_32(b"--1"), None);
        assert_eq!(signed_32(b"+5"), Some(5));
        assert_eq!(signed_64(b"-9223372036854775808"), Some(i64::MIN));
        assert_eq!(signed_64(b"-9223372036854775809"), None);
    }
}
