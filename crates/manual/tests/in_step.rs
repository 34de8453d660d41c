//! The files in `deploy` are those that the tables of options make, and have what readers and shells need.

#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};

use larder_server::config::{Effect, OPTIONS};

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy")
}

const REMEDY: &str = "run: cargo run --package larder-manual";

#[test]
fn the_files_are_in_step_with_the_tables() {
    for (path, text) in larder_manual::files() {
        let there = fs::read_to_string(deploy().join(&path)).unwrap_or_default();
        assert!(there == text, "deploy/{} is not what the options say; {REMEDY}", path.display());
    }
}

#[test]
fn no_file_is_left_of_a_command_that_is_gone() {
    let files = larder_manual::files();
    for folder in ["man", "completions/bash", "completions/zsh", "completions/fish"] {
        for entry in fs::read_dir(deploy().join(folder)).expect(REMEDY) {
            let path = Path::new(folder).join(entry.expect("a folder can be listed").file_name());
            assert!(files.contains_key(&path), "nothing makes deploy/{}; remove it", path.display());
        }
    }
}

#[test]
fn every_option_is_in_the_page_and_in_every_shell() {
    let files = larder_manual::files();
    let text = |path: &str| files.get(Path::new(path)).unwrap_or_else(|| panic!("there is no {path}"));
    let page = text("man/larder.1").replace("\\-", "-");
    let settings = text("man/larder.toml.5").replace("\\-", "-");
    for opt in OPTIONS.iter().filter(|opt| opt.effect == Effect::Honoured) {
        assert!(page.contains(&format!("--{}", opt.long)), "larder.1 lacks --{}", opt.long);
        assert_eq!(
            settings.contains(&format!("\\fB{}\\fR = ", opt.long)),
            opt.in_file(),
            "--{} in larder.toml.5",
            opt.long
        );
        let fish = format!("-l {} ", opt.long);
        for (path, word) in [
            ("completions/bash/larder", format!("--{}", opt.long)),
            ("completions/zsh/_larder", format!("--{}", opt.long)),
            ("completions/fish/larder.fish", fish),
        ] {
            assert!(text(path).contains(&word), "{path} lacks {word}");
        }
    }
    for (verb, _) in larder_cli::verbs() {
        assert!(files.contains_key(Path::new(&format!("man/larder-{verb}.1"))), "{verb} has no page");
    }
}
