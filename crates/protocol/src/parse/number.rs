//! Decimal numbers of the text wires. Values are bounded: a number that exceeds 64 bits is refused.

/// An unsigned decimal number: digits only.
#[inline]
pub(super) fn digits(token: &[u8]) -> Option<u64> {
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

/// An unsigned number of 64 bits as memcached reads it with `strtoull`: blanks and a sign may precede the
/// digits, and the number ends at a blank. A negative number wraps; one that still looks negative as a signed
/// number is refused.
#[inline]
pub(super) fn unsigned(token: &[u8]) -> Option<u64> {
    // A digit in front is the common case and rules out blanks and signs.
    if let Some(value) = digits(token) {
        return Some(value);
    }
    let (negative, magnitude) = sign_and_magnitude(token)?;
    match negative {
        true => Some(magnitude.wrapping_neg()).filter(|value| *value <= i64::MAX as u64),
        false => Some(magnitude),
    }
}

/// The low 32 bits of an unsigned number, as memcached keeps them of client flags.
#[inline]
pub(super) fn low_unsigned_32(token: &[u8]) -> Option<u32> {
    unsigned(token).map(|value| value as u32)
}

/// A signed number of 64 bits as memcached reads it with `strtol`: blanks and a sign may precede the digits,
/// and the number ends at a blank.
#[inline]
pub(super) fn signed_64(token: &[u8]) -> Option<i64> {
    let (negative, magnitude) = match digits(token) {
        Some(magnitude) => (false, magnitude),
        None => sign_and_magnitude(token)?,
    };
    match negative {
        true => 0i64.checked_sub_unsigned(magnitude),
        false => i64::try_from(magnitude).ok(),
    }
}

/// The low 32 bits of a signed number, as memcached keeps them of an exptime: 4294967295 is -1.
#[inline]
pub(super) fn low_signed_32(token: &[u8]) -> Option<i32> {
    signed_64(token).map(|value| value as i32)
}

/// The sign of a number and its digits' value, without the blanks around them.
fn sign_and_magnitude(token: &[u8]) -> Option<(bool, u64)> {
    let is_blank = |byte: &u8| matches!(byte, b'\t' | 0x0b | 0x0c | b'\r' | b' ');
    let start = token.iter().position(|byte| !is_blank(byte))?;
    let number = token.get(start..)?;
    let number = number.split(is_blank).next().unwrap_or_default();
    match number {
        [b'-', rest @ ..] => digits(rest).map(|magnitude| (true, magnitude)),
        [b'+', rest @ ..] => digits(rest).map(|magnitude| (false, magnitude)),
        rest => digits(rest).map(|magnitude| (false, magnitude)),
    }
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
    }

    #[test]
    fn unsigned_numbers_are_read_as_strtoull_reads_them() {
        assert_eq!(unsigned(b"\t7"), Some(7));
        assert_eq!(unsigned(b"7\t8"), Some(7));
        assert_eq!(unsigned(b"-0"), Some(0));
        assert_eq!(unsigned(b"-1"), None);
        assert_eq!(unsigned(b"-9223372036854775808"), None);
        assert_eq!(unsigned(b"-9223372036854775809"), Some(i64::MAX as u64));
        assert_eq!(unsigned(b"-18446744073709551615"), Some(1));
        assert_eq!(unsigned(b"-18446744073709551616"), None);
        for bad in [&b""[..], b"\t", b"-", b"--1", b"+-1", b"\t7x", b"7x\t", b"- 1"] {
            assert_eq!((unsigned(bad), signed_64(bad)), (None, None), "{bad:?}");
        }
    }

    #[test]
    fn of_32_bit_fields_the_low_bits_are_kept() {
        assert_eq!(low_unsigned_32(b"4294967295"), Some(u32::MAX));
        assert_eq!(low_unsigned_32(b"4294967296"), Some(0));
        assert_eq!(low_unsigned_32(b"18446744073709551615"), Some(u32::MAX));
        assert_eq!(low_unsigned_32(b"18446744073709551616"), None);
        assert_eq!(low_signed_32(b"2147483647"), Some(i32::MAX));
        assert_eq!(low_signed_32(b"2147483648"), Some(i32::MIN));
        assert_eq!(low_signed_32(b"4294967295"), Some(-1));
        assert_eq!(low_signed_32(b"4294967396"), Some(100));
        assert_eq!(low_signed_32(b"-4294967196"), Some(100));
        assert_eq!(low_signed_32(b"9223372036854775807"), Some(-1));
        assert_eq!(low_signed_32(b"9223372036854775808"), None);
        assert_eq!(low_signed_32(b"-2147483649"), Some(i32::MAX));
        assert_eq!(low_signed_32(b"-9223372036854775808"), Some(0));
        assert_eq!(low_signed_32(b"-9223372036854775809"), None);
    }

    #[test]
    fn signed_numbers_reach_both_ends() {
        assert_eq!(signed_64(b"-9223372036854775808"), Some(i64::MIN));
        assert_eq!(signed_64(b"-9223372036854775809"), None);
        assert_eq!(signed_64(b"9223372036854775807"), Some(i64::MAX));
        assert_eq!(signed_64(b"+5"), Some(5));
        assert_eq!(signed_64(b"\t-5"), Some(-5));
    }
}
