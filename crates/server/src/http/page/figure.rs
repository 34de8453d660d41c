//! Figures as text, with their units, and as HTML.

/// What stands in the place of a figure that there is none of: not a number, for the functions below.
pub(super) const NONE: &str = "\u{2013}";

/// Returns text as it may stand in HTML, also within the quotes of an attribute.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // Controls have no place in a page.
            c if c.is_control() => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Returns an element that shows a figure and carries its value, if it is a number.
pub(super) fn data(value: f64, shown: &str) -> String {
    if !value.is_finite() {
        return escape(shown);
    }
    format!("<data value=\"{}\">{}</data>", plain(value), escape(shown))
}

/// Returns an element that shows a count, all of its digits.
pub(super) fn count(count: u64) -> String {
    format!("<data value=\"{count}\">{}</data>", grouped(count))
}

/// Returns the shortest form of a value, with three digits behind the point at most.
fn plain(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// Returns a count with commas between its thousands.
pub(super) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Returns a number of anything: `0`, `4.2`, `42`, `4.21 k`, `42.1 M`.
pub(super) fn short(number: f64) -> String {
    scaled(number, 1000.0, &["", "k", "M", "G", "T", "P"])
}

/// Returns a rate by the second.
pub(super) fn per_second(rate: f64) -> String {
    if rate.is_nan() { NONE.to_string() } else { format!("{}/s", short(rate)) }
}

/// Returns a number of bytes in binary units.
pub(super) fn bytes(bytes: f64) -> String {
    scaled(bytes, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB", "PiB"])
}

/// Returns a rate of bytes by the second.
pub(super) fn bytes_per_second(rate: f64) -> String {
    if rate.is_nan() { NONE.to_string() } else { format!("{}/s", bytes(rate)) }
}

/// Returns a number of bytes in decimal units, as the data sheets of SSDs have them.
pub(super) fn decimal_bytes(bytes: f64) -> String {
    scaled(bytes, 1000.0, &["B", "kB", "MB", "GB", "TB", "PB"])
}

/// Returns a time given in microseconds.
pub(super) fn micros(us: f64) -> String {
    scaled(us, 1000.0, &["\u{b5}s", "ms", "s"])
}

/// Returns a share of 1 as a percentage.
pub(super) fn percent(share: f64) -> String {
    match share {
        share if share.is_nan() => NONE.to_string(),
        // What is not quite all must not look like it.
        share if share < 1.0 && share > 0.9995 => "> 99.9\u{a0}%".to_string(),
        share => format!("{:.1}\u{a0}%", 100.0 * share),
    }
}

/// Returns a span of seconds in its two largest units.
pub(super) fn span(seconds: u64) -> String {
    let [days, hours, minutes] = [seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60];
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}\u{a0}s"),
        (0, 0, minutes) => format!("{minutes}\u{a0}min"),
        (0, hours, minutes) => format!("{hours}\u{a0}h {minutes}\u{a0}min"),
        (days, hours, _) => format!("{}\u{a0}d {hours}\u{a0}h", grouped(days)),
    }
}

/// Returns a number in the largest unit that leaves 1 or more, with three significant digits at most.
fn scaled(number: f64, base: f64, units: &[&str]) -> String {
    if number.is_nan() {
        return NONE.to_string();
    }
    let mut scaled = number;
    let mut unit = 0;
    // 999.6 would be shown as 1000.
    while scaled >= base.min(999.5) && unit + 1 < units.len() {
        scaled /= base;
        unit += 1;
    }
    let digits = match scaled {
        small if small < 9.995 => 2,
        medium if medium < 99.95 => 1,
        _ => 0,
    };
    let text = format!("{scaled:.digits$}");
    let text = if digits > 0 { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    match units.get(unit) {
        Some(unit) if !unit.is_empty() => format!("{text}\u{a0}{unit}"),
        _ => text.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_leaves_its_place_in_the_page() {
        let hostile = "\"><script>alert('&')</script>\0\n";
        let harmless = "&quot;&gt;&lt;script&gt;alert(&#39;&amp;&#39;)&lt;/script&gt;\u{fffd}\u{fffd}";
        assert_eq!(escape(hostile), harmless);
        assert_eq!(data(0.5, "<"), "<data value=\"0.5\">&lt;</data>");
        assert_eq!(data(f64::NAN, "<"), "&lt;");
    }

    #[test]
    fn figures_have_three_digits_and_a_unit() {
        let numbers = [0.0, 0.4, 7.0, 42.25, 999.4, 999.6, 12_345.0, 1.0e6, 98.7e9].map(short);
        let wanted = ["0", "0.4", "7", "42.2", "999", "1 k", "12.3 k", "1 M", "98.7 G"];
        assert_eq!(numbers.map(|text| text.replace('\u{a0}', " ")), wanted);
        let sizes = [0.0, 1023.0, 1024.0, 1536.0 * 1024.0, 5e15].map(bytes);
        let wanted = ["0 B", "1 KiB", "1 KiB", "1.5 MiB", "4.44 PiB"];
        assert_eq!(sizes.map(|text| text.replace('\u{a0}', " ")), wanted);
        assert_eq!([per_second, bytes_per_second, micros, percent].map(|show| show(f64::NAN)), [NONE; 4]);
        let times = [1.0, 512.0, 2048.0, 4_194_304.0].map(micros);
        assert_eq!(
            times.map(|text| text.replace('\u{a0}', " ")),
            ["1 \u{b5}s", "512 \u{b5}s", "2.05 ms", "4.19 s"]
        );
    }

    #[test]
    fn nearly_all_is_not_shown_as_all() {
        let shares = [0.0, 0.5, 0.9994, 0.999_99, 1.0].map(percent);
        let wanted = ["0.0 %", "50.0 %", "99.9 %", "> 99.9 %", "100.0 %"];
        assert_eq!(shares.map(|text| text.replace('\u{a0}', " ")), wanted);
    }

    #[test]
    fn counts_and_spans_read_well() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(count(1234), "<data value=\"1234\">1,234</data>");
        let spans = [7, 60, 3_725, 90_000, 400_000_000].map(span);
        let wanted = ["7 s", "1 min", "1 h 2 min", "1 d 1 h", "4,629 d 15 h"];
        assert_eq!(spans.map(|text| text.replace('\u{a0}', " ")), wanted);
    }
}
