//! The text formats of metrics: Prometheus' own, and OpenMetrics.
//!
//! ```text
//!   # HELP larder_gets_total Gets by outcome.        of each family, once
//!   # TYPE larder_gets_total counter
//!   larder_gets_total{outcome="ram"} 12              its samples
//! ```
//! OpenMetrics names a family of counters without `_total`, and ends with `# EOF`.

use std::fmt::{Display, Write};

use crate::histogram::{Times, bound_us};

/// A text format of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Prometheus' text format 0.0.4.
    Prometheus,
    /// OpenMetrics 1.0.0.
    OpenMetrics,
}

impl Format {
    /// Returns the format that an `Accept` field prefers: Prometheus' unless it names OpenMetrics and does not
    /// prefer plain text.
    pub fn of_accept(accept: &str) -> Format {
        let weight = |name: &str| {
            let entries = accept.split(',').map(|entry| entry.split(';').map(str::trim));
            let weights = entries.filter_map(|mut parts| {
                parts.next().filter(|media| media.eq_ignore_ascii_case(name))?;
                let weight = parts.find_map(|part| part.strip_prefix("q="));
                weight.map_or(Some(1.0), |weight| weight.parse::<f64>().ok())
            });
            weights.fold(0.0, f64::max)
        };
        let (open, plain) = (weight("application/openmetrics-text"), weight("text/plain"));
        if open > 0.0 && open >= plain { Format::OpenMetrics } else { Format::Prometheus }
    }

    /// Returns its `Content-Type`.
    pub fn content_type(self) -> &'static str {
        match self {
            Format::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// The type of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A count that begins at 0 and never falls; its name ends in `_total`.
    Counter,
    /// A value that rises and falls.
    Gauge,
    /// Times by their length; its samples are those of [`Exposition::times`].
    Histogram,
    /// A count under a name of the exporter's that no counter may have in OpenMetrics.
    Untyped,
}

/// Labels with their values.
pub(super) type Labels<'a> = &'a [(&'a str, &'a str)];

/// The text so far.
pub(super) struct Exposition {
    format: Format,
    text: String,
}

impl Exposition {
    pub(super) fn new(format: Format) -> Exposition {
        Exposition { format, text: String::with_capacity(64 << 10) }
    }

    /// Begins a family. Its samples follow, and no others before they are complete.
    pub(super) fn family(&mut self, name: &str, kind: Kind, help: &str) {
        let (family, kind) = match (kind, self.format) {
            (Kind::Counter, Format::OpenMetrics) => (name.trim_end_matches("_total"), "counter"),
            (Kind::Counter, Format::Prometheus) => (name, "counter"),
            (Kind::Gauge, _) => (name, "gauge"),
            (Kind::Histogram, _) => (name, "histogram"),
            (Kind::Untyped, Format::OpenMetrics) => (name, "unknown"),
            (Kind::Untyped, Format::Prometheus) => (name, "untyped"),
        };
        let _ = write!(self.text, "# HELP {family} {help}\n# TYPE {family} {kind}\n");
    }

    /// Adds a sample of the family that was begun last.
    pub(super) fn sample(&mut self, name: &str, labels: Labels<'_>, value: impl Display) {
        self.text.push_str(name);
        if !labels.is_empty() {
            self.text.push('{');
            for (at, (label, value)) in labels.iter().enumerate() {
                let separator = if at > 0 { "," } else { "" };
                let _ = write!(self.text, "{separator}{label}=\"{}\"", Escaped(value));
            }
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {value}");
    }

    /// Adds the samples of one histogram: the times that do not exceed each bound, in seconds, their number and sum.
    pub(super) fn times(&mut self, name: &str, labels: Labels<'_>, times: &Times) {
        let buckets = format!("{name}_bucket");
        let mut below = 0;
        for (bucket, number) in times.buckets.iter().enumerate() {
            below += number;
            let bound = bound_us(bucket).map(|us| (us as f64 / 1e6).to_string());
            let bound = bound.as_deref().unwrap_or("+Inf");
            self.sample(&buckets, &[labels, &[("le", bound)]].concat(), below);
        }
        self.sample(&format!("{name}_sum"), labels, times.sum_ns as f64 / 1e9);
        self.sample(&format!("{name}_count"), labels, below);
    }

    /// Adds a family of one sample.
    pub(super) fn single(&mut self, name: &str, kind: Kind, help: &str, value: impl Display) {
        self.family(name, kind, help);
        self.sample(name, &[], value);
    }

    /// Adds a family whose samples differ in one label.
    pub(super) fn labelled<V: Display>(
        &mut self,
        (name, kind, help): (&str, Kind, &str),
        label: &str,
        samples: impl IntoIterator<Item = (&'static str, V)>,
    ) {
        self.family(name, kind, help);
        for (value, number) in samples {
            self.sample(name, &[(label, value)], number);
        }
    }

    /// Returns the whole text.
    pub(super) fn end(mut self) -> String {
        if self.format == Format::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }
}

/// The value of a label, with what would end it escaped.
struct Escaped<'a>(&'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for c in self.0.chars() {
            match c {
                '"' | '\\' => write!(f, "\\{c}")?,
                '\n' => f.write_str("\\n")?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_the_one_that_is_preferred() {
        let prometheus =
            "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        assert_eq!(Format::of_accept(prometheus), Format::OpenMetrics);
        assert_eq!(Format::of_accept("Application/OpenMetrics-Text"), Format::OpenMetrics);
        for other in [
            "",
            "*/*",
            "text/plain",
            "application/openmetrics-text;q=0",
            "text/plain,application/openmetrics-text;q=0.9",
        ] {
            assert_eq!(Format::of_accept(other), Format::Prometheus, "{other}");
        }
    }

    fn text_in(format: Format) -> String {
        let mut text = Exposition::new(format);
        text.single("a_total", Kind::Counter, "Counts.", 3_u64);
        text.family("b", Kind::Untyped, "Something.");
        text.sample("b", &[("x", "quote \" slash \\ end \n"), ("y", "")], 0.5);
        text.end()
    }

    #[test]
    fn a_histogram_counts_what_does_not_exceed_each_bound() {
        let mut times = Times::default();
        (times.buckets[0], times.buckets[2], times.sum_ns) = (2, 1, 5_000);
        *times.buckets.last_mut().expect("buckets") = 4;
        let mut text = Exposition::new(Format::Prometheus);
        text.times("a", &[("x", "y")], &times);
        let text = text.end();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), times.buckets.len() + 2);
        assert_eq!(lines[0], "a_bucket{x=\"y\",le=\"0.000001\"} 2");
        assert_eq!(lines[2], "a_bucket{x=\"y\",le=\"0.000004\"} 3");
        assert_eq!(lines[22], "a_bucket{x=\"y\",le=\"4.194304\"} 3");
        assert_eq!(
            lines[23..],
            ["a_bucket{x=\"y\",le=\"+Inf\"} 7", "a_sum{x=\"y\"} 0.000005", "a_count{x=\"y\"} 7"]
        );
    }

    #[test]
    fn both_formats_have_the_same_samples() {
        let (first, second) = ("a_total 3\n", "b{x=\"quote \\\" slash \\\\ end \\n\",y=\"\"} 0.5\n");
        let heads = |name: &str, kind: &str| {
            let counter = format!("# HELP {name} Counts.\n# TYPE {name} counter\n{first}");
            format!("{counter}# HELP b Something.\n# TYPE b {kind}\n{second}")
        };
        assert_eq!(text_in(Format::Prometheus), heads("a_total", "untyped"));
        assert_eq!(text_in(Format::OpenMetrics), heads("a", "unknown") + "# EOF\n");
    }
}
