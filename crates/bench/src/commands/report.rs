//! `larder-bench report`: results as a page, as Markdown, as a bundle of files.

use super::{Exit, Failure};
use crate::report;
use crate::result::{Document, SCHEMA, memtier};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// What to read, and what to make of it.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("made").required(true).multiple(true))]
pub struct Args {
    /// Results, as --json wrote them, or memtier_benchmark's --json-out-file; several become one page
    #[arg(required = true, value_name = "RESULT.json")]
    results: Vec<PathBuf>,
    /// Write report.html, report.md, result.json, timeseries.csv and latency.hlog into this folder
    #[arg(short, long, value_name = "DIR", group = "made")]
    output: Option<PathBuf>,
    /// Write the page to this file; - is the standard output
    #[arg(long, value_name = "FILE", group = "made")]
    html: Option<PathBuf>,
    /// Write Markdown to this file; - is the standard output
    #[arg(long, value_name = "FILE", group = "made")]
    markdown: Option<PathBuf>,
    /// The title of the page, instead of the results' own
    #[arg(long)]
    title: Option<String>,
}

/// Writes the forms that were asked for.
///
/// # Errors
/// A result cannot be read or is none, a file cannot be written.
pub fn run(args: Args) -> Result<Exit, Failure> {
    let documents = args.results.iter().map(|path| {
        let name = path.file_stem().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        Ok((name, read(path)?))
    });
    let mut document = report::merge(documents.collect::<Result<_, Failure>>()?);
    if let Some(title) = args.title {
        document.title = title;
    }
    if document.command.is_empty() {
        document.command = std::env::args().collect();
    }
    if let Some(folder) = &args.output {
        report::write_bundle(folder, &document).map_err(|e| Failure::error(format!("not written: {e}")))?;
    }
    if let Some(path) = &args.html {
        write(path, &report::html(&document))?;
    }
    if let Some(path) = &args.markdown {
        write(path, &report::markdown(&document))?;
    }
    Ok(Exit::Ok)
}

/// Reads a result, of this program or of memtier_benchmark.
///
/// # Errors
/// The file cannot be read, is no result, or is of a later version.
pub fn read(path: &Path) -> Result<Document, Failure> {
    let shown = path.display();
    let bytes = std::fs::read(path).map_err(|e| Failure::error(format!("{shown} cannot be read: {e}")))?;
    let name = path.file_stem().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    if let Some(read) = memtier::read(&name, &bytes) {
        return read.map_err(|why| Failure::error(format!("{shown}: {why}")));
    }
    let document: Document = serde_json::from_slice(&bytes).map_err(|e| {
        Failure::error(format!("{shown} is no result of larder-bench ({e}); --json FILE writes one"))
    })?;
    if document.schema > SCHEMA {
        let message =
            format!("{shown} has form {}, this program knows {SCHEMA}: use a newer one", document.schema);
        return Err(Failure::error(message));
    }
    Ok(document)
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let written = match path == Path::new("-") {
        true => std::io::stdout().write_all(text.as_bytes()),
        false => report::write_whole(path, text.as_bytes()),
    };
    written.map_err(|e| Failure::error(format!("not written: {e}")))
}
