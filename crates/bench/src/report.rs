//! A [`Document`] for people and for other programs: one offline HTML page, Markdown, CSV, and HdrHistogram's
//! interval log. Nothing is measured here; a figure that is drawn has its data under it.

pub mod csv;
pub mod hlog;
pub mod markdown;
pub mod merge;

mod answer;
mod bars;
mod checks;
mod counters;
mod curves;
mod page;
mod percentiles;
mod plot;
mod reduced;
mod runs;
mod tables;
pub(crate) mod text;
mod timeline;
mod verdict;

pub use csv::csv;
pub use hlog::hlog;
pub use markdown::markdown;
pub use merge::merge;
pub use page::html;

use crate::result::Document;
use std::io;
use std::path::Path;

/// The page is never larger than this, in bytes; figures of single runs are left out to keep it.
pub const PAGE_BYTES_MAX: usize = 600_000;

/// Writes the bundle into a folder, which is made if it does not exist: `report.html`, `report.md`,
/// `result.json`, `timeseries.csv`, `latency.hlog`. Each file is whole or is not there. An error names the
/// file.
pub fn write_bundle(folder: &Path, document: &Document) -> io::Result<()> {
    std::fs::create_dir_all(folder).map_err(|e| name(folder, e))?;
    let json = document.to_json().map_err(io::Error::other)?;
    let files = [
        ("result.json", json),
        ("report.html", html(document).into_bytes()),
        ("report.md", markdown(document).into_bytes()),
        ("timeseries.csv", csv(document).into_bytes()),
        ("latency.hlog", hlog(document).into_bytes()),
    ];
    files.iter().try_for_each(|(file, bytes)| write_whole(&folder.join(file), bytes))
}

/// Writes a file under another name first, so that a full disk leaves no half of it.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    let written = std::fs::write(&partial, bytes).and_then(|()| std::fs::rename(&partial, path));
    written.map_err(|e| {
        // The rest of it is useless; an error of its removal would only hide the first one.
        let _ = std::fs::remove_file(&partial);
        name(path, e)
    })
}

fn name(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
