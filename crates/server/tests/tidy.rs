//! The house rules that a machine can check, over every source file and page of the workspace.

#[path = "tidy/modules.rs"]
mod modules;

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The only files that may hold `unsafe`, each block with its proof. Paths count from the workspace's root.
const UNSAFE_FILES: &[&str] = &[
    "crates/client/src/l1/mapping.rs",
    "crates/client/src/l1/sys.rs",
    "crates/client/tests/l1_fork.rs",
    "crates/device/src/buffer.rs",
    "crates/device/src/sys.rs",
    "crates/device/src/uring.rs",
    "crates/device/tests/open.rs",
    "crates/server/src/process.rs",
    "crates/store/src/arena.rs",
    "crates/store/src/prefetch.rs",
    "crates/store/src/ram/pool.rs",
    "crates/store/src/ram/pool/reservation.rs",
];

/// Where the server may name both `larder_protocol` and `larder_store`.
const MEETING_PLACE: &str = "crates/server/src/session";

/// What rustfmt keeps code within (`rustfmt.toml`); it leaves long strings and macros alone.
const CODE_COLUMNS_MAX: usize = 110;
/// Prose may be a little wider than code.
const COMMENT_COLUMNS_MAX: usize = 120;
const LINES_MAX: usize = 700;

// Put together, so that this file does not break its own rules.
const UNFINISHED: &[&str] = &[
    concat!("todo", "!"),
    concat!("unimplemented", "!"),
    concat!("dbg", "!"),
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
];

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the workspace is two folders up")
}

/// Every file below `folder` that ends in `.extension`, but for build output and hidden folders.
fn files(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("a folder can be listed").path()).collect();
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_symlink() || name.starts_with('.') {
            continue;
        }
        if path.is_dir() {
            let is_output = name == "target" || name == "node_modules" || path.join("CACHEDIR.TAG").exists();
            if !is_output {
                files(&path, extension, found);
            }
        } else if path.extension().is_some_and(|ext| ext == extension) {
            found.push(path);
        }
    }
}

/// Runs `rule` over every file with the extension: it gets the path from the root and the text, and returns
/// line numbers, 0 for the whole file, with what is wrong there.
fn check(extension: &str, rule: impl Fn(&str, &str) -> Vec<(usize, String)>) {
    let root = root();
    let mut found = Vec::new();
    files(&root, extension, &mut found);
    assert!(!found.is_empty(), "there are no .{extension} files below {}", root.display());
    let mut report = String::new();
    for path in found {
        let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let name = path.strip_prefix(&root).unwrap_or(&path).display().to_string();
        for (line, message) in rule(&name, &text) {
            let _ = match line {
                0 => writeln!(report, "{name}: {message}"),
                line => writeln!(report, "{name}:{line}: {message}"),
            };
        }
    }
    assert!(report.is_empty(), "house rules are broken:\n{report}");
}

fn each_line(text: &str, rule: impl Fn(&str) -> Option<String>) -> Vec<(usize, String)> {
    text.lines().enumerate().filter_map(|(at, line)| rule(line).map(|message| (at + 1, message))).collect()
}

fn opening(text: &str) -> Vec<(usize, String)> {
    if text.starts_with("//! ") {
        return Vec::new();
    }
    vec![(1, "the first line must be `//! ` and say what lives in this file".to_string())]
}

fn length(text: &str) -> Vec<(usize, String)> {
    let lines = text.lines().count();
    if lines <= LINES_MAX {
        return Vec::new();
    }
    vec![(0, format!("has {lines} lines, more than {LINES_MAX}: is it one noun?"))]
}

fn width(line: &str) -> Option<String> {
    let comment = line.trim_start().starts_with("//");
    // What is said on the wire is best read in one piece.
    if line.contains("b\"") || line.contains("\\r\\n") {
        return None;
    }
    let max = if comment { COMMENT_COLUMNS_MAX } else { CODE_COLUMNS_MAX };
    let columns = line.chars().count();
    (columns > max)
        .then(|| format!("has {columns} columns, more than {max}; a \\ at its end continues a string"))
}

fn ascii(line: &str) -> Option<String> {
    let odd = line.chars().find(|c| !c.is_ascii())?;
    Some(format!("holds `{odd}`; in .rs files write ASCII, or \\u{{{:x}}} in a string", odd as u32))
}

fn unfinished(line: &str) -> Option<String> {
    let word = UNFINISHED.iter().find(|word| line.contains(**word))?;
    Some(format!("holds {word}; finish it, or open an issue and leave the code whole"))
}

/// The line without its comment and without what stands between double quotes. Raw strings and strings over
/// several lines are not understood: a keyword in one would be reported although it is text.
fn code(line: &str) -> String {
    let mut kept = String::new();
    let mut in_string = false;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' if in_string => drop(chars.next()),
            '\'' if !in_string && chars.peek() == Some(&'"') => drop(chars.next()),
            '"' => in_string = !in_string,
            '/' if !in_string && chars.peek() == Some(&'/') => break,
            _ if in_string => {}
            c => kept.push(c),
        }
    }
    kept
}

fn unsafe_code(name: &str, text: &str) -> Vec<(usize, String)> {
    if UNSAFE_FILES.contains(&name) {
        return Vec::new();
    }
    each_line(text, |line| {
        let code = code(line);
        let mut words = code.split(|c: char| !c.is_alphanumeric() && c != '_');
        let message = "unsafe belongs in the files that tests/tidy.rs names; call one of them instead";
        words.any(|word| word == "unsafe").then(|| message.to_string())
    })
}

/// The targets of `[text](target)` links in one line of Markdown, without those inside backquotes.
fn links(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for (at, piece) in line.split('`').enumerate() {
        if at % 2 == 0 {
            let targets = piece.split("](").skip(1).filter_map(|rest| rest.split(')').next());
            found.extend(targets.filter_map(|target| target.split_whitespace().next()));
        }
    }
    found
}

fn dead_links(folder: &Path, text: &str) -> Vec<(usize, String)> {
    let mut fenced = false;
    let mut dead = Vec::new();
    for (at, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        for target in links(line) {
            let path = target.split('#').next().unwrap_or_default();
            let elsewhere = target.contains("://") || target.starts_with("mailto:") || path.is_empty();
            if !elsewhere && !folder.join(path).exists() {
                dead.push((at + 1, format!("links to {target}, which does not exist")));
            }
        }
    }
    dead
}

/// Returns the name from the root and the text of every source file below `folder`.
fn sources(folder: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    files(folder, "rs", &mut found);
    let name = |path: &Path| path.strip_prefix(folder).unwrap_or(path).display().to_string();
    let read = |path: &Path| fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    found.iter().map(|path| (name(path), read(path))).collect()
}

#[test]
fn no_two_modules_of_a_crate_name_each_other() {
    let crates = root().join("crates");
    for entry in fs::read_dir(&crates).expect("the crates can be listed") {
        let entry = entry.expect("a folder can be listed");
        let krate = entry.file_name().display().to_string();
        let sources = sources(&entry.path().join("src"));
        let files = sources.iter().map(|(name, text)| (name.as_str(), text.as_str()));
        let cycles = modules::Crate::new(files).cycles();
        assert!(cycles.is_empty(), "modules of {krate} that name each other: {cycles:?}");
    }
}

/// Whether a file of the server names both crates away from the session.
fn meets_elsewhere(name: &str, text: &str) -> bool {
    let words = modules::words(text);
    let names = |krate: &str| words.iter().any(|word| word == krate);
    let in_session = name == format!("{MEETING_PLACE}.rs") || name.starts_with(&format!("{MEETING_PLACE}/"));
    !in_session && names("larder_protocol") && names("larder_store")
}

#[test]
fn protocol_and_store_meet_in_the_session() {
    let root = root();
    let named = sources(&root.join("crates/server/src"));
    let named = named.into_iter().map(|(name, text)| (format!("crates/server/src/{name}"), text));
    let found: Vec<_> =
        named.filter(|(name, text)| meets_elsewhere(name, text)).map(|(name, _)| name).collect();
    assert!(found.is_empty(), "files that name larder_protocol and larder_store: {found:?}");
}

/// Returns what `scripts/commit-subjects` reports about a subject; empty when there is nothing to report.
fn subject_faults(subject: &str) -> String {
    let mut script = Command::new(root().join("scripts/commit-subjects"));
    let script = script.arg("-").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut script = script.expect("the script can be run");
    let mut stdin = script.stdin.take().expect("the input is piped");
    stdin.write_all(format!("0123abc {subject}\n").as_bytes()).expect("the script reads its input");
    drop(stdin);
    let output = script.wait_with_output().expect("the script ends");
    let report = String::from_utf8(output.stdout).expect("the report is text");
    assert_eq!(output.status.success(), report.is_empty(), "{subject}: {report}");
    report
}

#[test]
fn commit_subjects_are_checked() {
    let longest = format!("Add {}", "x".repeat(68));
    for good in
        ["Add a flag", "Feed the queue: it starves", "Bring `-m` back", "Use 1.5 bytes an item", &longest]
    {
        assert_eq!(subject_faults(good), "", "{good}");
    }
    for bad in [
        &format!("{longest}x"),
        "add a flag",
        "Add a flag.",
        "feat: add a flag",
        "Store: add a flag",
        "Fix(store)!: add a flag",
        "Added a flag",
        "Adding a flag",
    ] {
        assert!(subject_faults(bad).contains(bad), "{bad} is not refused");
    }
}

#[test]
fn commit_subjects_without_history_are_skipped_aloud() {
    let mut script = Command::new(root().join("scripts/commit-subjects"));
    let output = script.env("GIT_DIR", "/nonexistent").output().expect("the script can be run");
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && report.contains("SKIPPED"), "{report}");
}

#[test]
fn every_source_file_says_first_what_lives_there() {
    check("rs", |_, text| opening(text));
}

#[test]
fn source_files_are_one_noun_long() {
    check("rs", |_, text| length(text));
}

#[test]
fn lines_fit_the_column() {
    check("rs", |_, text| each_line(text, width));
}

#[test]
fn source_is_ascii() {
    check("rs", |_, text| each_line(text, ascii));
}

#[test]
fn nothing_is_left_unfinished() {
    check("rs", |_, text| each_line(text, unfinished));
}

#[test]
fn unsafe_lives_in_few_named_files() {
    check("rs", unsafe_code);
}

/// The sources of the daemon, and of what others load into their processes, may not use the macros that panic when
/// standard output or error is gone.
fn printing(name: &str, line: &str) -> Option<String> {
    let is_daemon = ["device", "protocol", "rate", "store", "server", "python"]
        .iter()
        .any(|krate| name.starts_with(&format!("crates/{krate}/src/")));
    let code = code(line);
    let mut words = code.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '!');
    let prints = words.any(|word| ["print!", "println!", "eprint!", "eprintln!"].contains(&word));
    (is_daemon && prints).then(|| "prints; report an event with tracing's macros instead".to_string())
}

#[test]
fn nothing_prints_past_the_log() {
    check("rs", |name, text| each_line(text, |line| printing(name, line)));
}

#[test]
fn links_between_pages_lead_somewhere() {
    let root = root();
    check("md", |name, text| {
        let page = root.join(name);
        dead_links(page.parent().unwrap_or(&root), text)
    });
}

/// Returns what `docs/SUMMARY.md`, the contents of the site, does not name of the page: pages in `docs`, and those at
/// the root.
fn left_out(contents: &str, name: &str) -> Option<String> {
    let link = match name.strip_prefix("docs/") {
        Some("SUMMARY.md") => return None,
        Some(page) => format!("]({page})"),
        None if name.contains('/') => return None,
        None => format!("](../{name})"),
    };
    (!contents.contains(&link)).then(|| "is not in docs/SUMMARY.md, the contents of the site".to_string())
}

#[test]
fn the_contents_name_every_page() {
    let contents = fs::read_to_string(root().join("docs/SUMMARY.md")).expect("the contents are there");
    check("md", |name, _| left_out(&contents, name).map(|fault| (0, fault)).into_iter().collect());
}

#[test]
fn each_rule_can_fail() {
    assert_eq!(opening("use std;\n").len(), 1);
    assert_eq!(opening("//! A thing.\n").len(), 0);
    assert_eq!(length(&"x\n".repeat(LINES_MAX + 1)).len(), 1);
    assert_eq!(length(&"x\n".repeat(LINES_MAX)).len(), 0);
    assert!(width(&"x".repeat(CODE_COLUMNS_MAX + 1)).is_some());
    assert!(width(&"x".repeat(CODE_COLUMNS_MAX)).is_none());
    assert!(width(&format!("//! {}", "x".repeat(COMMENT_COLUMNS_MAX - 3))).is_some());
    assert!(width(&format!("//! {}", "x".repeat(COMMENT_COLUMNS_MAX - 4))).is_none());
    assert!(ascii("caf\u{e9}").is_some());
    assert!(UNFINISHED.iter().all(|word| unfinished(&format!("  {word}(1)")).is_some()));
    assert!(unfinished("let method = 1;").is_none());

    assert!(printing("crates/server/src/x.rs", "eprintln!(\"x\");").is_some());
    assert!(printing("crates/server/src/x.rs", "// eprintln!").is_none());
    assert!(printing("crates/bench/src/x.rs", "println!()").is_none());

    let dangerous = concat!("    un", "safe { f() }");
    assert_eq!(unsafe_code("crates/server/src/lib.rs", dangerous).len(), 1);
    assert_eq!(unsafe_code(UNSAFE_FILES[0], dangerous).len(), 0);
    for harmless in
        ["#![forbid(unsafe_code)]", "// unsafe", "f(\"a \\\" unsafe\")", "'\"'; // unsafe", "unsafely()"]
    {
        assert_eq!(unsafe_code("x.rs", harmless), vec![], "{harmless}");
    }
    assert_eq!(unsafe_code("x.rs", &format!("let q = '\"'; {dangerous}")).len(), 1);

    let both = "use larder_protocol::Reply; fn f(s: larder_store::Store) {}";
    assert!(meets_elsewhere("crates/server/src/sessions.rs", both));
    assert!(!meets_elsewhere("crates/server/src/session.rs", both));
    assert!(!meets_elsewhere("crates/server/src/session/output.rs", both));
    assert!(!meets_elsewhere("crates/server/src/clock.rs", "use larder_protocol::Reply; // larder_store"));

    let page = "[a](no-such-page.md#part) [b](Cargo.toml) [c](https://e.org/x) [d](#here) `[e](f)`";
    let page = format!("{page}\n```\n[g](h)\n```\n");
    assert_eq!(dead_links(&root(), &page).len(), 1);

    assert!(left_out("- [A](a.md)", "docs/a.md").is_none());
    assert!(left_out("- [A](a.md)", "docs/b.md").is_some());
    assert!(left_out("- [A](a.md)", "A.md").is_some());
    assert!(left_out("- [A](../A.md)", "A.md").is_none());
    assert!(left_out("", "tests/interop/README.md").is_none());
}
