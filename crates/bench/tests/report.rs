//! The report of a whole document: what is on the page, how large it is, and that nothing gets out of its
//! place.

#[path = "support/sample.rs"]
mod sample;

use larder_bench::report::{self, PAGE_BYTES_MAX};
use larder_bench::result::{Check, Document, Table};
use std::path::Path;

#[test]
fn a_bundle_has_every_file_and_reads_back() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report");
    let document = sample::document(9, 30);
    report::write_bundle(&folder, &document).expect("the folder can be written");
    let json = std::fs::read(folder.join("result.json")).expect("it was written");
    let back: Document = serde_json::from_slice(&json).expect("it was written by us");
    assert_eq!(back.runs.len(), 18);
    // Not the page: a JSON number may come back off by its last bit.
    let page = std::fs::read_to_string(folder.join("report.md")).expect("it was written");
    assert!(report::markdown(&back) == page, "the document changed on its way");
    let names = ["report.md", "timeseries.csv", "latency.hlog"];
    assert!(names.iter().all(|name| folder.join(name).metadata().is_ok_and(|file| file.len() > 1000)));
    assert_eq!(
        std::fs::read_dir(&folder).expect("it is a folder").count(),
        5,
        "no half-written file is left"
    );
}

#[test]
fn a_stored_result_keeps_its_keys() {
    let stored = r#"{"name":"little","verdict":"pass","says":"X*R 8.00"}"#;
    let check: Check = serde_json::from_str(stored).expect("results of earlier builds are read");
    assert_eq!(check.message, "X*R 8.00");
    assert_eq!(serde_json::to_string(&check).expect("it has a form in JSON"), stored);
}

#[test]
fn sixty_runs_of_thirty_seconds_stay_below_the_bound() {
    let page = report::html(&sample::document(30, 30));
    assert!(page.len() <= PAGE_BYTES_MAX, "{} bytes", page.len());
    assert!(page.contains("of 60 runs are drawn over time"));
    assert!(page.len() > 100_000, "{} bytes: something is missing", page.len());
}

#[test]
fn the_page_needs_nothing_else() {
    let page = report::html(&sample::document(5, 10));
    let without = page.replace("http://www.w3.org/", "");
    for outside in ["http://", "https://", "src=", "@import", "url("] {
        assert!(!without.contains(outside), "it refers to {outside}");
    }
    let sections = [
        "class=\"verdict\"",
        "<h2>Latency against throughput",
        "<h2>Counters",
        "<h2>Latency by percentile",
        "<h2>Over time",
        "<h2>Checks",
        "<h2>Runs",
        "<h2>Tables",
        "<h2>Environment",
        "<h2>Repeat it",
    ];
    let places: Vec<usize> =
        sections.iter().map(|name| page.find(name).unwrap_or_else(|| panic!("{name} is missing"))).collect();
    assert!(places.is_sorted(), "{places:?}");
    // Whatever has a figure has its data.
    assert!(page.matches("class=\"data\"").count() >= page.matches("<figure").count());
}

#[test]
fn names_of_servers_and_users_stay_text() {
    let mut document = sample::document(3, 5);
    let hostile = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'`\x1b]0;x\x07";
    document.title = hostile.to_string();
    document.command = vec![hostile.to_string()];
    document.notes = vec![hostile.to_string()];
    document.environment.facts = vec![(hostile.to_string(), hostile.to_string())];
    document.tables = vec![Table {
        title: hostile.to_string(),
        columns: vec![hostile.to_string()],
        rows: vec![vec![hostile.to_string()]],
    }];
    for run in &mut document.runs {
        run.label = hostile.to_string();
        run.server = hostile.to_string();
        run.cut_short = Some(hostile.to_string());
        run.checks.iter_mut().for_each(|check| check.message = hostile.to_string());
        if let Some(watch) = &mut run.watch {
            watch.stats_end.insert(hostile.to_string(), hostile.to_string());
            watch.device_name = Some(hostile.to_string());
        }
    }
    for curve in &mut document.curves {
        curve.label = hostile.to_string();
    }
    for counter in &mut document.counters {
        counter.store = hostile.to_string();
        counter.statement = hostile.to_string();
    }
    let page = report::html(&document);
    assert_eq!(page.matches("<script").count(), 2, "ours only");
    assert!(!page.contains("<img") && !page.contains('\x1b') && !page.contains('\x07'));
    for text in [report::csv(&document), report::hlog(&document), report::markdown(&document)] {
        assert!(!text.contains('\x1b') && !text.contains('\x07'));
    }
    assert!(!report::markdown(&document).contains("\n<script"));
}

#[test]
fn an_empty_document_is_a_page_too() {
    let page = report::html(&Document::default());
    assert!(page.contains("Nothing was measured") && page.ends_with("</html>\n"));
    assert!(report::markdown(&Document::default()).contains("Nothing was measured"));
}
