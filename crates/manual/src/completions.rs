//! Completions for bash, zsh and fish, under the names by which these shells find them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Command;
use clap_complete::aot::{Generator, Shell};

/// Adds the completions of a command.
pub fn of(command: &Command, files: &mut BTreeMap<PathBuf, String>) {
    let name = command.get_name().to_string();
    for (shell, folder) in [(Shell::Bash, "bash"), (Shell::Zsh, "zsh"), (Shell::Fish, "fish")] {
        let mut command = command.clone();
        command.set_bin_name(&name);
        command.build();
        let mut text = Vec::new();
        shell.generate(&command, &mut text);
        // bash-completion loads the file that has the command's own name.
        let file = if shell == Shell::Bash { name.clone() } else { shell.file_name(&name) };
        let path = PathBuf::from("completions").join(folder).join(file);
        files.insert(path, tidied(&String::from_utf8_lossy(&text)));
    }
}

/// Returns a text without blanks at the ends of lines, and with one line end behind the last.
pub fn tidied(text: &str) -> String {
    let lines: Vec<_> = text.lines().map(str::trim_end).collect();
    format!("{}\n", lines.join("\n").trim_end())
}
