//! Figures as people read them: short, with their unit, in ASCII.

/// A count with thousands, millions or billions as a letter: `950`, `10 K`, `1.5 M`.
pub fn count(count: u64) -> String {
    let scaled = |factor: f64, letter: &str| {
        let value = count as f64 / factor;
        let digits = usize::from(value < 100.0 && (value - value.round()).abs() > 0.04);
        format!("{value:.digits$} {letter}")
    };
    match count {
        0..10_000 => count.to_string(),
        10_000..1_000_000 => scaled(1e3, "K"),
        1_000_000..1_000_000_000 => scaled(1e6, "M"),
        _ => scaled(1e9, "G"),
    }
}

/// A number of threads with its noun.
pub fn threads(threads: u32) -> String {
    if threads == 1 { "1 thread".to_string() } else { format!("{threads} threads") }
}

/// A rate with three significant digits: `59.9 K/s`.
pub fn rate(rate: f64) -> String {
    let (value, letter) = match rate {
        rate if rate >= 999.5e6 => (rate / 1e9, " G"),
        rate if rate >= 999.5e3 => (rate / 1e6, " M"),
        rate if rate >= 9_999.5 => (rate / 1e3, " K"),
        rate => (rate, " "),
    };
    let digits = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
    if rate >= 9_999.5 { format!("{value:.digits$}{letter}/s") } else { format!("{value:.0}/s") }
}

/// A time with three significant digits: `812 ns`, `61.2 us`, `3.10 ms`, `1.20 s`.
pub fn time(ns: f64) -> String {
    let (value, unit) = match ns {
        ns if ns >= 999.5e6 => (ns / 1e9, "s"),
        ns if ns >= 999.5e3 => (ns / 1e6, "ms"),
        ns if ns >= 999.5 => (ns / 1e3, "us"),
        ns => return format!("{ns:.0} ns"),
    };
    let digits = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    format!("{value:.digits$} {unit}")
}

/// Bytes by 1024: `214 MiB`.
pub fn bytes(bytes: f64) -> String {
    let (value, unit) = match bytes {
        bytes if bytes >= 1024.0 * 1024.0 * 1024.0 => (bytes / (1u64 << 30) as f64, "GiB"),
        bytes if bytes >= 1024.0 * 1024.0 => (bytes / (1u64 << 20) as f64, "MiB"),
        bytes if bytes >= 1024.0 => (bytes / 1024.0, "KiB"),
        bytes => return format!("{bytes:.0} B"),
    };
    let digits = usize::from(value < 99.95);
    format!("{value:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        assert_eq!([count(950), count(10_000), count(1_500_000)], ["950", "10 K", "1.5 M"]);
        assert_eq!([rate(12.4), rate(59_940.0), rate(2_210_000.0)], ["12/s", "59.9 K/s", "2.21 M/s"]);
        assert_eq!(
            [time(812.0), time(61_230.0), time(3.1e6), time(1.2e9)],
            ["812 ns", "61.2 us", "3.10 ms", "1.20 s"]
        );
        assert_eq!([bytes(100.0), bytes(2048.0), bytes(214.0 * 1048576.0)], ["100 B", "2.0 KiB", "214 MiB"]);
    }
}
