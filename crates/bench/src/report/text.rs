//! Figures and names as text: units, escaping, dates. Text from a server or a user is never trusted.

use std::fmt::Write as _;

/// Text for HTML, within an element or a quoted attribute; control characters become a replacement mark.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if c.is_control() && c != '\n' && c != '\t' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// Text for a terminal or a line of a file: without control characters.
pub fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// Three significant digits.
pub fn three(value: f64) -> String {
    match value.abs() {
        v if !v.is_finite() => "?".to_string(),
        v if v >= 99.95 => format!("{value:.0}"),
        v if v >= 9.995 => shorten(format!("{value:.1}")),
        v if v >= 0.0995 || v == 0.0 => shorten(format!("{value:.2}")),
        _ => shorten(format!("{value:.4}")),
    }
}

fn shorten(text: String) -> String {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
}

/// Nanoseconds with the unit that fits, `us` written in ASCII.
pub fn latency_ascii(ns: f64) -> String {
    match ns {
        ns if ns >= 999.5e6 => format!("{} s", three(ns / 1e9)),
        ns if ns >= 999.5e3 => format!("{} ms", three(ns / 1e6)),
        ns if ns >= 999.5 => format!("{} us", three(ns / 1e3)),
        ns => format!("{} ns", three(ns)),
    }
}

/// Nanoseconds with the unit that fits.
pub fn latency(ns: f64) -> String {
    latency_ascii(ns).replace(" us", " \u{b5}s")
}

/// A count or a rate: 950, 61.2 K, 1.25 M.
pub fn count(value: f64) -> String {
    match value.abs() {
        v if v >= 999.5e6 => format!("{} G", three(value / 1e9)),
        v if v >= 999.5e3 => format!("{} M", three(value / 1e6)),
        v if v >= 9995.0 => format!("{} K", three(value / 1e3)),
        v if v >= 999.5 => format!("{value:.0}"),
        _ => three(value),
    }
}

/// Bytes in binary units.
pub fn bytes(value: f64) -> String {
    match value.abs() {
        v if v >= 1073741824.0 => format!("{} GiB", three(value / 1073741824.0)),
        v if v >= 1048576.0 => format!("{} MiB", three(value / 1048576.0)),
        v if v >= 1024.0 => format!("{} KiB", three(value / 1024.0)),
        _ => format!("{} B", three(value)),
    }
}

/// A share of 0 to 1 in percent.
pub fn percent(share: f64) -> String {
    match share * 100.0 {
        p if p > 99.9 && p < 100.0 => format!("{p:.2} %"),
        p => format!("{} %", shorten(format!("{p:.1}"))),
    }
}

/// The name of a quantile: p99.9; `mean` for 0.
pub fn quantile(quantile: f64) -> String {
    if quantile <= 0.0 {
        "mean".to_string()
    } else {
        format!("p{}", shorten(format!("{:.4}", quantile * 100.0)))
    }
}

/// A moment of the Unix clock as `2026-11-20 19:30:05 UTC`.
pub fn moment(unix_ms: u64) -> String {
    let seconds = unix_ms / 1000;
    let (days, second) = ((seconds / 86_400) as i64, seconds % 86_400);
    // Days since 1 March of the year 0, so that the leap day is the last of its year.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

/// A command line that a shell reads back as the same words.
pub fn shell(words: &[String]) -> String {
    let mut line = String::new();
    for word in words {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
        let space = if line.is_empty() { "" } else { " " };
        let _ = match !word.is_empty() && word.chars().all(is_plain) {
            true => write!(line, "{space}{word}"),
            false => write!(line, "{space}'{}'", word.replace('\'', r"'\''")),
        };
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_carry_the_unit_that_fits() {
        assert_eq!(
            [950.0, 212_000.0, 1e6, 12.5e9].map(latency_ascii),
            ["950 ns", "212 us", "1 ms", "12.5 s"]
        );
        assert_eq!([950.0, 61_234.0, 1_250_000.0, 4711.0].map(count), ["950", "61.2 K", "1.25 M", "4711"]);
        assert_eq!([0.5, 0.998, 0.99954, 1.0].map(percent), ["50 %", "99.8 %", "99.95 %", "100 %"]);
        assert_eq!([0.5, 0.999, 0.0].map(quantile), ["p50", "p99.9", "mean"]);
        assert_eq!(bytes(1536.0), "1.5 KiB");
    }

    #[test]
    fn moments_and_command_lines() {
        assert_eq!(moment(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(moment(1_709_208_000_000), "2024-02-29 12:00:00 UTC");
        assert_eq!(shell(&["a".into(), "p99<1ms".into(), "it's".into()]), r"a 'p99<1ms' 'it'\''s'");
    }

    #[test]
    fn nothing_of_a_server_gets_out_of_its_element() {
        assert_eq!(escape("<b a='\"'>&\x1b[31m"), "&lt;b a=&#39;&quot;&#39;&gt;&amp;\u{fffd}[31m");
        assert_eq!(plain("a\x1b[2Jb"), "a?[2Jb");
    }
}
