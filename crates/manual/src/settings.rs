//! The man page of the configuration file, `larder.toml(5)`.

use clap_mangen::roff::{Roff, bold, italic, roman};
use larder_server::config::{self, Effect, Fallback, Kind, OPTIONS, Opt};

use crate::commands::GROUPS;
use crate::completions::tidied;

/// Returns the page.
pub fn page() -> String {
    let mut page = Roff::new();
    let source = format!("larder {}", config::VERSION);
    page.control("TH", ["larder.toml", "5", "", &source, "Larder"]);
    page.control("SH", ["NAME"]);
    page.text([roman("larder.toml - the configuration file of larder")]);
    page.control("SH", ["SYNOPSIS"]);
    page.text([bold("larder --config "), italic("FILE")]);
    page.control("SH", ["DESCRIPTION"]);
    page.text([roman(config::SOURCES)]);
    page.control("PP", []);
    page.text([
        roman("The file is TOML. Its keys are the long names of options. "),
        bold("larder --print-config=example"),
        roman(" prints one with every key, and "),
        bold("larder --config "),
        italic("FILE"),
        bold(" --print-config"),
        roman(" shows what a file comes to, without a start."),
    ]);
    for group in GROUPS {
        page.control("SH", [group.title().to_uppercase().as_str()]);
        let rows = OPTIONS.iter().filter(|opt| opt.group == group && opt.effect == Effect::Honoured);
        for opt in rows.filter(|opt| opt.in_file()) {
            key(&mut page, opt);
        }
    }
    page.control("SH", ["SEE ALSO"]);
    page.text([bold("larder"), roman("(1)")]);
    tidied(&page.to_roff())
}

fn key(page: &mut Roff, opt: &Opt) {
    page.control("TP", []);
    page.text([bold(opt.long), roman(" = "), italic(form(opt))]);
    page.text([roman(opt.described())]);
}

/// Returns how a value is written in TOML.
fn form(opt: &Opt) -> String {
    let example = match opt.default {
        Fallback::Is(text) => text,
        Fallback::Computed { example, .. } | Fallback::Unset { example } => example,
    };
    match opt.kind {
        Kind::Flag => "true or false".to_string(),
        Kind::Count | Kind::Number { .. } | Kind::Decimal | Kind::Millis(_) => example.to_string(),
        Kind::List(_) => format!("[\"{example}\"]"),
        _ => format!("\"{example}\""),
    }
}
