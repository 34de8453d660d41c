//! What pairs of runs say: how much each figure changed, with its interval, and the exit status for CI.

use super::summary::wrap;
use super::{Exit, Failure, output};
use crate::report::text::{plain, three};
use crate::result::Run;
use crate::stats::paired::{Change, PAIRS_MIN, Verdict, change};
use crate::stats::{Measure, Series};
use std::io::Write;
use std::str::FromStr;

/// The rules that a comparison has to keep.
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub struct Args {
    /// End with status 3 when a figure changed by more than this: `p99>+5%`, `rate<-3%`. The change must
    /// also be clear: its 95 % interval does not hold 0
    #[arg(long, value_name = "RULE", help_heading = "Comparison")]
    fail_if: Vec<Rule>,
    /// Compare runs that were not certified, which otherwise ends with status 5
    #[arg(long, help_heading = "Comparison")]
    allow_uncertified: bool,
}

/// A change that must not be.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Rule {
    measure: Measure,
    is_above: bool,
    share: f64,
}

impl FromStr for Rule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let usage = || "such as p99>+5%, mean>+10% or rate<-3%".to_string();
        let at = text.find(['<', '>']).ok_or_else(usage)?;
        let share = text[at + 1..].trim().strip_suffix('%').ok_or_else(usage)?;
        let share: f64 = share.trim().parse().map_err(|_| usage())?;
        if !share.is_finite() {
            return Err(usage());
        }
        let measure = measure(text[..at].trim()).ok_or_else(usage)?;
        Ok(Self { measure, is_above: text[at..].starts_with('>'), share: share / 100.0 })
    }
}

impl Rule {
    fn is_broken_by(&self, change: &Change) -> bool {
        let beyond = match self.is_above {
            true => change.change.estimate > self.share,
            false => change.change.estimate < self.share,
        };
        beyond && change.verdict != Verdict::Unclear
    }
}

fn measure(name: &str) -> Option<Measure> {
    match name {
        "rate" => Some(Measure::Rate),
        "mean" => Some(Measure::Mean),
        name => {
            let percent: f64 = name.strip_prefix('p')?.parse().ok()?;
            (percent > 0.0 && percent <= 100.0).then_some(Measure::Quantile(percent / 100.0))
        }
    }
}

fn name(measure: Measure) -> String {
    match measure {
        Measure::Rate => "rate".to_string(),
        Measure::Mean => "mean".to_string(),
        Measure::Quantile(quantile) => crate::report::text::quantile(quantile),
    }
}

/// Runs of one label, before and after.
pub type Pairs<'a> = (String, Vec<(&'a Run, &'a Run)>);

impl Args {
    /// Prints what changed in the pairs of each label, and returns the exit status.
    ///
    /// # Errors
    /// A run recorded no requests, or nothing can be printed.
    pub fn conclude(&self, pairs: &[Pairs<'_>]) -> Result<Exit, Failure> {
        let mut out = String::new();
        let mut broken = Vec::new();
        for (label, runs) in pairs {
            if pairs.len() > 1 || !label.is_empty() {
                out.push_str(&format!("{}\n", plain(label)));
            }
            broken.extend(self.compare(label, runs, &mut out)?);
        }
        let mut stdout = std::io::stdout();
        stdout.write_all(out.as_bytes()).map_err(|e| Failure::error(format!("not written: {e}")))?;
        if !broken.is_empty() {
            eprintln!("larder-bench: failed: {}", broken.join(", "));
            return Ok(Exit::Missed);
        }
        let runs = pairs.iter().flat_map(|(_, runs)| runs).flat_map(|(a, b)| [a, b]);
        let doubtful: Vec<&str> =
            runs.filter(|run| !run.is_certified()).map(|run| run.label.as_str()).collect();
        if doubtful.is_empty() || self.allow_uncertified {
            return Ok(Exit::Ok);
        }
        let first = plain(doubtful[0]);
        eprintln!(
            "larder-bench: {} runs were not certified, such as `{first}`; --allow-uncertified compares them",
            doubtful.len()
        );
        Ok(Exit::NotCertified)
    }

    /// Appends a line for each figure of one label, and returns the broken rules.
    fn compare(&self, label: &str, runs: &[(&Run, &Run)], out: &mut String) -> Result<Vec<String>, Failure> {
        let width = output::width();
        let series: Vec<_> = runs.iter().map(|(a, b)| (Series::of_run(a), Series::of_run(b))).collect();
        let mut measures = vec![Measure::Rate];
        measures.extend([0.5, 0.9, 0.99, 0.999].map(Measure::Quantile));
        measures.extend(self.fail_if.iter().map(|rule| rule.measure));
        let mut broken = Vec::new();
        let mut seen: Vec<Measure> = Vec::new();
        for measure in measures {
            if seen.contains(&measure) {
                continue;
            }
            seen.push(measure);
            let Some(found) = change(&series, measure, 1) else {
                return Err(Failure::error(format!("{}: a run recorded no requests", plain(label))));
            };
            out.push_str(&line(&found, width));
            let rules =
                self.fail_if.iter().filter(|rule| rule.measure == measure && rule.is_broken_by(&found));
            broken.extend(rules.map(|_| format!("{} {}", plain(label), name(measure)).trim().to_string()));
        }
        if runs.len() < PAIRS_MIN {
            let few = "one pair or two: how runs differ from each other is not in the intervals";
            out.push_str(&(wrap(few, width, "  ") + "\n"));
        }
        Ok(broken)
    }
}

/// `p99    212 -> 187 us  [-14.9% -11.8% -8.6%] better`, in two lines where there is no room for one.
fn line(found: &Change, width: usize) -> String {
    let most = found.before.max(found.after);
    let (unit, factor) = match found.measure {
        Measure::Rate if most >= 1e6 => ("M/s", 1e6),
        Measure::Rate if most >= 1e4 => ("K/s", 1e3),
        Measure::Rate => ("/s", 1.0),
        _ if most >= 1e9 => ("s", 1e9),
        _ if most >= 1e6 => ("ms", 1e6),
        _ => ("us", 1e3),
    };
    let figures = format!("{} -> {} {unit}", three(found.before / factor), three(found.after / factor));
    let percent = |share: f64| format!("{:+.1}%", share * 100.0);
    let change = &found.change;
    let interval =
        format!("[{} {} {}]", percent(change.least), percent(change.estimate), percent(change.most));
    let name = name(found.measure);
    let whole = format!("{name:<6} {figures:<20} {interval} {}\n", found.verdict.word());
    if whole.len() <= width {
        return whole;
    }
    format!("{name:<6} {figures}\n       {interval} {}\n", found.verdict.word())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::latency::Latency;
    use crate::result::{Estimate, Interval, Verb};

    fn run(ns: u64) -> Run {
        let mut response = Latency::new();
        response.record_n(ns, 100);
        let interval = Interval { count: 100, response: response.clone(), ..Interval::default() };
        Run {
            seconds: 3.0,
            verbs: vec![Verb { count: 300, response, ..Verb::default() }],
            intervals: vec![interval; 3],
            ..Run::default()
        }
    }

    #[test]
    fn a_rule_is_broken_only_by_a_clear_change() {
        let rule: Rule = "p99>+5%".parse().expect("it is a rule");
        assert_eq!(rule, Rule { measure: Measure::Quantile(0.99), is_above: true, share: 0.05 });
        let of = |least, estimate, most, verdict| Change {
            measure: Measure::Quantile(0.99),
            before: 1.0,
            after: 1.0,
            change: Estimate { least, estimate, most },
            pairs: 3,
            verdict,
        };
        assert!(rule.is_broken_by(&of(0.02, 0.08, 0.1, Verdict::Worse)));
        assert!(!rule.is_broken_by(&of(-0.02, 0.08, 0.1, Verdict::Unclear)));
        assert!(!rule.is_broken_by(&of(0.01, 0.03, 0.1, Verdict::Worse)));
        for wrong in ["p99", "p99>5", "q>5%", "p0>5%", "p99>x%", "p101>1%"] {
            assert!(wrong.parse::<Rule>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_line_fits_forty_columns_in_two() {
        let (a, b) = (run(212_000), run(187_000));
        let pairs = [(Series::of_run(&a), Series::of_run(&b))];
        let found = change(&pairs, Measure::Quantile(0.99), 1).expect("there are samples");
        let wide = line(&found, 80);
        assert!(wide.starts_with("p99    212 -> 187 us") && wide.ends_with("better\n"), "{wide}");
        assert!(line(&found, 40).lines().all(|line| line.len() <= 40), "{}", line(&found, 40));
    }
}
