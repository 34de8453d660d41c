//! Makes the man pages and the shells' completions of `larder` and `larder-bench` out of the tables that their
//! command lines are read by. No option is described here.
//!
//! ```text
//!   daemon      the table of options  --\
//!   larder_cli  its verbs             ---+--> commands --> pages, completions --> files
//!   larder_bench                      --/
//! ```

#![forbid(unsafe_code)]

mod commands;
mod completions;
mod pages;
mod settings;

use std::collections::BTreeMap;
use std::path::PathBuf;

/// Returns the text of each file by its path below the folder that holds them all.
pub fn files() -> BTreeMap<PathBuf, String> {
    let mut files = BTreeMap::new();
    for command in [commands::larder(), commands::larder_bench()] {
        pages::of(&command, &mut files);
        completions::of(&command, &mut files);
    }
    files.insert(PathBuf::from("man/larder.toml.5"), settings::page());
    files
}
