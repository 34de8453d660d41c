//! Sizes, numbers and times as people write and read them.

use std::time::Duration;

const UNITS: [(char, u32); 4] = [('k', 10), ('m', 20), ('g', 30), ('t', 40)];

/// Parses a number of bytes with a suffix k, m, g or t, as the daemon's options have them; `/s` may follow.
///
/// # Errors
/// It is no such number, or is 0 or too large.
pub fn bytes(text: &str) -> Result<u64, String> {
    let number = text.strip_suffix("/s").unwrap_or(text).to_ascii_lowercase();
    let unit = UNITS.iter().find(|(suffix, _)| number.ends_with(*suffix));
    let digits = unit.and_then(|(suffix, _)| number.strip_suffix(*suffix)).unwrap_or(&number);
    let count: Option<u64> =
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten();
    let bytes = count.and_then(|count| count.checked_mul(1 << unit.map_or(0, |(_, bits)| *bits)));
    bytes.filter(|bytes| *bytes > 0).ok_or_else(|| "write a number of bytes, such as 50m".to_string())
}

/// Parses a time such as `1s`, `500ms` or `2min`.
///
/// # Errors
/// It is no time, or less than 10 ms or more than a day.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || "write a time from 10ms to 1day, such as 1s".to_string();
    let time = humantime::parse_duration(text).map_err(|_| wrong())?;
    let bounds = Duration::from_millis(10)..=Duration::from_secs(86_400);
    if bounds.contains(&time) { Ok(time) } else { Err(wrong()) }
}

/// Returns a number of bytes in four or five characters and a unit: `0 B`, `999 B`, `1.00 KB`, `61.4 MB`.
pub fn show_bytes(bytes: u64) -> String {
    let scaled = scaled(bytes as f64);
    if bytes < 1000 { format!("{bytes} B") } else { format!("{} {}B", scaled.0, scaled.1.to_uppercase()) }
}

/// Returns a count in at most five characters: `0`, `9999`, `12.3k`, `1.23m`.
pub fn show_count(count: u64) -> String {
    if count < 10_000 {
        return count.to_string();
    }
    let (number, unit) = scaled(count as f64);
    format!("{number}{unit}")
}

/// Returns three digits of a number, and its unit of a thousand.
fn scaled(number: f64) -> (String, &'static str) {
    let mut left = number;
    for unit in ["", "k", "m", "g", "t"] {
        let digits = if left < 9.995 { 2 } else { usize::from(left < 99.95) };
        if left < 999.5 {
            return (format!("{left:.digits$}"), unit);
        }
        left /= 1000.0;
    }
    (format!("{left:.0}"), "p")
}

/// Returns all digits of a count, in groups of three.
pub fn show_whole(count: u64) -> String {
    let digits = count.to_string();
    let mut shown = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// Returns a number of seconds in its two largest units: `0s`, `59s`, `1h 1m`, `2d 3h`.
pub fn show_seconds(seconds: u64) -> String {
    let units = [("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)];
    let first = units.iter().position(|(_, unit)| seconds >= *unit).unwrap_or(3);
    let mut left = seconds;
    let mut parts = Vec::new();
    for (name, unit) in units.iter().skip(first).take(2) {
        if left / unit > 0 || parts.is_empty() {
            parts.push(format!("{}{name}", left / unit));
        }
        left %= unit;
    }
    parts.join(" ")
}

/// Returns a key as a line can show it: bytes that are no visible ASCII, and `%`, as `%` and two digits.
pub fn show_key(key: &[u8]) -> String {
    let mut shown = String::with_capacity(key.len());
    for byte in key {
        match byte {
            b'!'..=b'~' if *byte != b'%' => shown.push(char::from(*byte)),
            byte => shown.push_str(&format!("%{byte:02X}")),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_their_units() {
        for (text, expected) in
            [("1", 1), ("50m", 50 << 20), ("50M/s", 50 << 20), ("2t", 2 << 40), ("7k", 7 << 10)]
        {
            assert_eq!(bytes(text), Ok(expected), "{text}");
        }
        for bad in ["", "0", "m", "-1", "+1", "1x", "1mm", "1.5m", "99999999t"] {
            assert!(bytes(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn times_have_bounds() {
        assert_eq!(duration("1s"), Ok(Duration::from_secs(1)));
        for bad in ["", "1", "0s", "9ms", "2days"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn numbers_are_shown_in_few_characters() {
        let shown: Vec<_> = [0, 999, 1000, 61_400_000, 999_600, 1 << 40].map(show_bytes).into();
        assert_eq!(shown, ["0 B", "999 B", "1.00 KB", "61.4 MB", "1.00 MB", "1.10 TB"]);
        let shown: Vec<_> = [0, 9_999, 10_000, 123_456, 9_999_999].map(show_count).into();
        assert_eq!(shown, ["0", "9999", "10.0k", "123k", "10.0m"]);
        assert_eq!([0, 999, 1000, 1_234_567].map(show_whole), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([0, 59, 60, 3_660, 90_000].map(show_seconds), ["0s", "59s", "1m", "1h 1m", "1d 1h"]);
    }

    #[test]
    fn a_key_is_shown_on_one_line() {
        assert_eq!(show_key(b"a:1 %\n\xff"), "a:1%20%25%0A%FF");
    }
}
