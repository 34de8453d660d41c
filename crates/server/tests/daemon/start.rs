//! What a daemon says at its start is true, and what it advises works.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;

use rustix::process::Signal;

use super::process::{Daemon, Folder, command};

/// Starts, stops, and returns standard output and standard error.
fn said(folder: Folder, args: &[&str]) -> (String, String, Folder) {
    let mut command = command(&[&["-p", "-1"], args].concat(), &folder.0.join("port"));
    let mut daemon = Daemon::of(folder, {
        command.arg0("larder");
        command
    });
    daemon.signal(Signal::TERM);
    let (status, output) = daemon.wait();
    assert!(status.success(), "{status}");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let folder = std::mem::replace(&mut daemon.folder, Folder::new());
    (text(&output.stdout), text(&output.stderr), folder)
}

fn refusal(args: &[&str]) -> String {
    let folder = Folder::new();
    let output = command(&[&["-p", "-1", "-l", "127.0.0.1"], args].concat(), &folder.0.join("port"))
        .output()
        .expect("it runs");
    assert!(!output.status.success());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn it_says_how_many_items_there_is_room_for_in_eighty_columns() {
    let (text, warnings, _) = said(Folder::new(), &["-m", "64", "--ssd", "none"]);
    // Of 512 bytes with the key, 118,475 were found again of 200,000.
    assert!(text.contains("  room    for about 118,000 items of 512 bytes\n"), "{text}");
    assert!(text.contains("  memory  64 MiB: items 62.4"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert_eq!(warnings, "", "there is nothing to warn of");
}

#[test]
fn the_memory_that_a_refusal_asks_for_is_enough() {
    let folder = Folder::new();
    let ssd = format!("{}:2g", folder.path("ssd"));
    let text = refusal(&["-M", "-m", "30", "--ssd", &ssd]);
    let enough = text.split("Give -m ").nth(1).and_then(|rest| rest.split(',').next()).expect("a number");
    let less = (enough.parse::<u64>().expect("a number") - 1).to_string();
    let args = ["-M", "-l", "127.0.0.1", "--io", "threads", "--ssd", &ssd, "-m"];
    let (_, warnings, folder) = said(folder, &[&args[..], &[enough]].concat());
    assert!(!warnings.contains("are left for items"), "{warnings}");
    let (_, warnings, _) = said(folder, &[&args[..], &[&less]].concat());
    assert!(
        warnings.contains("are left for items") && warnings.contains(&format!("-m {enough}")),
        "{warnings}"
    );
}

#[test]
fn it_says_how_large_the_index_may_become_and_what_it_was_told_of_it() {
    let index_of = |args: &[&str]| {
        let (text, _, _) = said(Folder::new(), args);
        let line = text.lines().find_map(|line| line.strip_prefix("  index   ")).map(str::to_string);
        line.unwrap_or_else(|| panic!("{text}"))
    };
    assert_eq!(index_of(&["-m", "64", "--ssd", "none"]), "grows with the items, to 8.4 MiB at most");
    let hinted = index_of(&["-m", "64", "--ssd", "none", "--index-memory", "4"]);
    assert_eq!(hinted, "grows with the items, to 8.4 MiB at most (--index-memory 4 MiB)");
    assert_eq!(index_of(&["-m", "64", "--ssd", "none", "-M"]), "keeps its size");
}

#[test]
fn it_warns_if_the_index_cannot_have_an_entry_for_each_item_that_there_is_room_for() {
    let folder = Folder::new();
    let ssd = format!("{}:1g", folder.path("ssd"));
    let args = ["-m", "16", "--ssd", &ssd];
    let (text, warnings, folder) = said(folder, &args);
    assert!(warnings.contains("the index has entries for about 1,490,000 items at most"), "{warnings}");
    assert!(text.contains("  room    for about 1,490,000 items of 512 bytes\n"), "{text}");
    let (text, warnings, _) = said(folder, &[&args[..], &["--item-size", "1k"]].concat());
    assert!(!warnings.contains("the index"), "{warnings}");
    assert!(text.contains("  room    for about 1,0"), "{text}");
}

#[test]
fn it_warns_of_what_an_operator_may_not_expect() {
    let folder = Folder::new();
    let ssd = format!("{}:80m", folder.path("ssd"));
    let args = ["-m", "64", "--ssd", &ssd, "-l"];
    let (_, first, folder) = said(folder, &[&args[..], &["127.0.0.1"]].concat());
    assert!(!first.contains("the SSD tier starts empty"), "{first}");
    let (_, second, _) = said(folder, &[&args[..], &["0.0.0.0", "--insecure-listen"]].concat());
    assert!(second.contains("the SSD tier starts empty"), "{second}");
    assert!(second.contains("level=warn msg=\"listening on 0.0.0.0:"), "{second}");
    if larder_server::startup::host::memory_bytes().is_some_and(|bytes| bytes < 100 << 30) {
        let (_, text, _) = said(Folder::new(), &["-m", "100g", "-l", "127.0.0.1", "--ssd", "none"]);
        assert!(text.contains("-m 100 GiB and --conn-memory 64 MiB are more than the"), "{text}");
    }
}

#[test]
fn a_link_to_the_ssd_that_another_user_may_have_made_is_refused() {
    let folder = Folder::new();
    let link = folder.path("link");
    fs::write(folder.0.join("empty"), "").expect("a file");
    std::os::unix::fs::symlink("empty", &link).expect("a link");
    fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o1777)).expect("a mode");
    let text = refusal(&["--ssd", &format!("{link}:80m")]);
    assert!(text.contains("--ssd") && text.contains("another user may have made it"), "{text}");
    fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o777)).expect("a mode");
    let text = refusal(&["--ssd", &format!("{}:80m", folder.path("empty"))]);
    assert!(text.contains("every user may replace files"), "{text}");
    assert_eq!(fs::metadata(folder.0.join("empty")).expect("a file").len(), 0);
}

#[test]
fn a_size_beyond_any_is_refused_and_no_path() {
    let folder = Folder::new();
    let path = folder.path("ssd");
    for (size, reason) in [
        ("99999999999t", "larger than any size"),
        ("8000000t", "an SSD tier of 8000000.0 TiB is more than"),
        ("500t", "an SSD tier of 500.0 TiB is more than"),
    ] {
        let text = refusal(&["-m", "64", "--ssd", &format!("{path}:{size}")]);
        assert!(text.contains(reason), "{text}");
    }
    let found = fs::read_dir(&folder.0).expect("a folder").count();
    assert_eq!(found, 0, "a file was made");
}
