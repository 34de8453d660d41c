//! The rates of several runs as bars beside each other; those that may not be quoted are grey.

use super::text::{count, escape, latency};
use crate::result::Run;
use std::fmt::Write as _;

/// The figure; empty for less than two runs.
pub fn section(runs: &[&Run]) -> String {
    if runs.len() < 2 {
        return String::new();
    }
    let highest = runs.iter().map(|run| run.rate()).fold(1.0, f64::max);
    let mut html = String::from("<figure><div class=\"bars\">");
    for run in runs {
        let (class, verdict) = if run.is_certified() { ("c0", "") } else { ("off", ", not certified") };
        let _ = write!(
            html,
            "<p>{}</p><div class=\"{class}\"><i style=\"width:{:.1}%\"></i>\
             <span>{}/s, p99 {}{verdict}</span></div>",
            escape(&run.label),
            run.rate() / highest * 100.0,
            count(run.rate()),
            latency(run.response().quantile_ns(0.99) as f64)
        );
    }
    html.push_str(
        "</div><p class=\"key\">Bars: answered requests a second. Grey: not certified. All figures are under \
         Runs.</p></figure>",
    );
    html
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{Check, Verb, Verdict};

    #[test]
    fn a_run_that_failed_is_grey() {
        let verb = Verb { count: 1000, ..Verb::default() };
        let good = Run { label: "good".to_string(), seconds: 1.0, verbs: vec![verb], ..Run::default() };
        let failed = Check { verdict: Verdict::Fail, ..Check::default() };
        let bad = Run { label: "<bad>".to_string(), checks: vec![failed], ..good.clone() };
        let html = section(&[&good, &bad]);
        assert_eq!(html.matches("class=\"off\"").count(), 1, "{html}");
        assert!(html.contains("&lt;bad&gt;") && html.contains("not certified"), "{html}");
        assert_eq!(section(&[&good]), "");
    }
}
