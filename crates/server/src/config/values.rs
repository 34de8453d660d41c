//! Texts to values: sizes, rates, numbers, switches. Errors show the text and name the expected form.

/// One kibibyte, in bytes.
pub const KIB: u64 = 1 << 10;
/// One mebibyte, in bytes.
pub const MIB: u64 = 1 << 20;
/// One gibibyte, in bytes.
pub const GIB: u64 = 1 << 30;
/// One tebibyte, in bytes.
pub const TIB: u64 = 1 << 40;

/// Reads a size: digits and a suffix `k`, `m`, `g`, `t` or `p` (powers of 1024, either case, `64m`, `64MB`, `64
/// MiB`), or `b` for bytes. A number without a suffix counts units of `unit_bytes`.
///
/// # Errors
/// The text is not of that form, or the size does not fit in 64 bits.
pub fn size(text: &str, unit_bytes: u64) -> Result<u64, String> {
    let text = text.trim();
    let wrong = || format!("\"{text}\" is not a size; give a number with a suffix k, m, g or t, such as 64m");
    let (digits, scale) = digits_and_scale(text, unit_bytes).ok_or_else(wrong)?;
    let too_large = || format!("\"{text}\" is larger than any size this machine can address");
    digits.parse::<u64>().ok().and_then(|n| n.checked_mul(scale)).ok_or_else(too_large)
}

/// Returns whether a text has the form of a size, however large.
pub fn is_size(text: &str) -> bool {
    digits_and_scale(text.trim(), 1).is_some()
}

/// Returns the digits of a size, and the bytes of its unit.
fn digits_and_scale(text: &str, unit_bytes: u64) -> Option<(&str, u64)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, suffix) = text.split_at(end);
    let scale = match suffix.trim().to_ascii_lowercase().as_str() {
        "" => unit_bytes,
        "b" => 1,
        "k" | "kb" | "kib" => KIB,
        "m" | "mb" | "mib" => MIB,
        "g" | "gb" | "gib" => GIB,
        "t" | "tb" | "tib" => TIB,
        "p" | "pb" | "pib" => TIB * KIB,
        _ => return None,
    };
    (!digits.is_empty()).then_some((digits, scale))
}

/// Reads a rate in bytes a second: a size, with or without `/s` behind it.
///
/// # Errors
/// As [`size`].
pub fn rate(text: &str) -> Result<u64, String> {
    size(text.trim().trim_end_matches("/s"), 1)
}

/// Reads the bytes that a device may take over its life: a size whose suffixes are powers of 1000, as in data sheets.
///
/// # Errors
/// As [`size`].
pub fn endurance(text: &str) -> Result<u64, String> {
    let wrong = || format!("\"{text}\" is not a number of bytes; give that of the data sheet, such as 600T");
    let (digits, scale) = digits_and_scale(text.trim(), 1).ok_or_else(wrong)?;
    let scale = 1000u64.pow(scale.trailing_zeros() / 10);
    digits.parse::<u64>().ok().and_then(|n| n.checked_mul(scale)).ok_or_else(wrong)
}

/// Writes a size so that [`size`] reads the same number back: in the largest unit that divides it.
pub fn show_size(bytes: u64) -> String {
    for (unit, name) in [(TIB, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")] {
        if bytes >= unit && bytes.is_multiple_of(unit) {
            return format!("{} {name}", bytes / unit);
        }
    }
    format!("{bytes} B")
}

/// Reads a whole number between `min` and `max`, both allowed.
///
/// # Errors
/// The text is not a number, or the number is outside.
pub fn number(text: &str, min: i64, max: i64) -> Result<i64, String> {
    let n = text.trim().parse::<i64>().map_err(|_| format!("\"{}\" is not a number", text.trim()))?;
    if n < min {
        Err(format!("must be {min} or more"))
    } else if n > max {
        Err(format!("must be {max} or less"))
    } else {
        Ok(n)
    }
}

/// Reads a switch: `yes`, `true`, `on`, `1`, or `no`, `false`, `off`, `0`.
///
/// # Errors
/// Any other text.
pub fn switch(text: &str) -> Result<bool, String> {
    match text.trim().to_ascii_lowercase().as_str() {
        "yes" | "true" | "on" | "1" => Ok(true),
        "no" | "false" | "off" | "0" => Ok(false),
        other => Err(format!("\"{other}\" is neither yes nor no")),
    }
}

/// Reads an octal file mode such as `700` or `0777`.
///
/// # Errors
/// The text is not octal, or has bits outside 0777.
pub fn octal(text: &str) -> Result<u32, String> {
    match u32::from_str_radix(text.trim(), 8) {
        Ok(mode) if mode <= 0o777 => Ok(mode),
        _ => Err(format!("\"{}\" is not an octal access mask such as 700", text.trim())),
    }
}

/// Reads a decimal fraction such as `1.25`.
///
/// # Errors
/// The text is not a finite decimal number.
pub fn decimal(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(x) if x.is_finite() => Ok(x),
        _ => Err(format!("\"{}\" is not a number", text.trim())),
    }
}

/// Reads the one byte that separates a key's prefix from its rest.
///
/// # Errors
/// The text is not exactly one ASCII character.
pub fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        [byte] if byte.is_ascii() => Ok(*byte),
        _ => Err(format!("\"{text}\" is not one character; give the prefix delimiter, such as :")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_take_suffixes_of_either_case() {
        assert_eq!(size("64", MIB), Ok(64 * MIB));
        assert_eq!(size("64", 1), Ok(64));
        for text in ["64m", "64M", "64MB", "64 MiB", " 64mib "] {
            assert_eq!(size(text, 1), Ok(64 * MIB), "{text}");
        }
        assert_eq!(size("9G", 1), Ok(9 * GIB));
        assert_eq!(size("2t", 1), Ok(2 * TIB));
        assert_eq!(size("1p", 1), Ok(1024 * TIB));
        assert_eq!(size("5b", MIB), Ok(5));
    }

    #[test]
    fn what_is_no_size_is_told_so() {
        for text in ["", "m", "-1", "1.5g", "12x", "0x10", "1 2", "=64"] {
            let error = size(text, 1).unwrap_err();
            assert!(error.contains("is not a size"), "{text}: {error}");
        }
        assert!(size("99999999999999999999", 1).unwrap_err().contains("larger"));
        assert!(size("20000000t", 1).unwrap_err().contains("larger"));
    }

    #[test]
    fn a_size_that_is_shown_reads_back_the_same() {
        for bytes in [0, 1, 1000, KIB, 1025, 64 * MIB, 3 * GIB / 2, 7 * TIB, u64::MAX] {
            assert_eq!(size(&show_size(bytes), MIB), Ok(bytes));
        }
        assert_eq!(show_size(64 * MIB), "64 MiB");
        assert_eq!(show_size(1000), "1000 B");
    }

    #[test]
    fn rates_may_say_a_second() {
        assert_eq!(rate("100m/s"), Ok(100 * MIB));
        assert_eq!(rate("100 MiB/s"), Ok(100 * MIB));
        assert_eq!(rate("5000"), Ok(5000));
        assert!(rate("fast").is_err());
    }

    #[test]
    fn numbers_keep_their_bounds() {
        assert_eq!(number("-1", -1, 65535), Ok(-1));
        assert_eq!(number("0", 1, 5), Err("must be 1 or more".to_string()));
        assert_eq!(number("6", 1, 5), Err("must be 5 or less".to_string()));
        assert_eq!(number("4x", 1, 5), Err("\"4x\" is not a number".to_string()));
    }

    #[test]
    fn switches_masks_and_delimiters() {
        assert_eq!(switch("Yes"), Ok(true));
        assert_eq!(switch("0"), Ok(false));
        assert!(switch("maybe").is_err());
        assert_eq!(octal("0777"), Ok(0o777));
        assert!(octal("888").is_err());
        assert!(octal("7777").is_err());
        assert_eq!(delimiter(":"), Ok(b':'));
        assert!(delimiter("").is_err());
        assert!(delimiter("::").is_err());
        assert!(decimal("inf").is_err());
    }
}
