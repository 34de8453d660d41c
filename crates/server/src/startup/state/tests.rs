//! States that are saved and taken, and files that are left alone.

use super::page::{AT_CRC, page_crc};
use super::*;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("larder-state-{}-{name}", std::process::id()));
        fs::create_dir(&path).expect("the temporary directory can be written");
        Folder(path)
    }

    fn file(&self, name: &str) -> File {
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(true).open(self.0.join(name)).expect("a file")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const BASE: i64 = 1_700_000_000;

fn is_useless(found: &Result<LoadedState, String>) -> bool {
    matches!(found, Ok(LoadedState::Useless(_)))
}

/// Loads the state and spends it.
fn take(state: &mut StateFile, memory: &File) -> Result<LoadedState, String> {
    let found = state.load(memory)?;
    state.spend().map(|()| found)
}

fn is_gone(state: &mut StateFile, folder: &Folder) -> bool {
    matches!(take(state, &folder.file("next")), Ok(LoadedState::Nothing))
}

/// Returns a memory of three and a half chunks with a hole in it, and its state.
fn saved(folder: &Folder) -> (StateFile, Vec<u8>) {
    let memory = folder.file("memory");
    let mut bytes = vec![0; CHUNK_BYTES * 7 / 2];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = if at / CHUNK_BYTES == 1 { 0 } else { (at / 16 * 7) as u8 };
    }
    memory.write_all_at(&bytes, 0).expect("room");
    let state = StateFile::new(&folder.0.join("state")).expect("a folder");
    assert_eq!(state.save(&memory, &Clock::going_on(BASE, Seconds(5))), Ok(bytes.len() as u64));
    assert!(!folder.0.join("state.new").exists());
    (state, bytes)
}

#[test]
fn what_was_saved_is_taken_once() {
    let folder = Folder::new("once");
    let (mut state, bytes) = saved(&folder);
    for _ in 0..2 {
        let next = folder.file("next");
        let Ok(LoadedState::State(clock)) = state.load(&next) else { panic!("it is whole") };
        assert_eq!(clock.unix_base(), BASE);
        let mut got = vec![1; bytes.len()];
        next.read_exact_at(&mut got, 0).expect("as long");
        assert!(got == bytes && next.metadata().is_ok_and(|data| data.len() == bytes.len() as u64));
        // A start that is refused now leaves the state, until one spends it.
    }
    state.spend().expect("it can be removed");
    assert!(is_gone(&mut state, &folder));
}

#[test]
fn no_damage_goes_unseen_and_none_is_taken_twice() {
    let folder = Folder::new("damage");
    for at in [PAGE_BYTES, PAGE_BYTES + CHUNK_BYTES + 5, PAGE_BYTES + 3 * CHUNK_BYTES] {
        let (mut state, _) = saved(&folder);
        flip(&folder, at);
        assert!(is_useless(&take(&mut state, &folder.file("next"))), "byte {at}");
        assert!(is_gone(&mut state, &folder), "byte {at}");
    }
    let (mut state, bytes) = saved(&folder);
    let file = File::options().write(true).open(folder.0.join("state")).expect("there");
    file.set_len(bytes.len() as u64).expect("shorter");
    assert!(is_useless(&take(&mut state, &folder.file("next"))));
    let (mut state, _) = saved(&folder);
    let mut page = encode(0, 0, 0, 0);
    page[8] = 7;
    let crc = page_crc(&page);
    page[AT_CRC..AT_BASE].copy_from_slice(&crc);
    fs::write(folder.0.join("state"), page).expect("room");
    let Ok(LoadedState::Useless(why)) = take(&mut state, &folder.file("next")) else { panic!("not ours") };
    assert!(why.contains("another version (7;"), "{why}");
}

fn flip(folder: &Folder, at: usize) {
    let file = File::options().read(true).write(true).open(folder.0.join("state")).expect("there");
    let mut byte = [0];
    file.read_exact_at(&mut byte, at as u64).expect("so long");
    file.write_all_at(&[byte[0] ^ 4], at as u64).expect("room");
}

#[test]
fn a_page_that_is_not_whole_is_refused_and_left_as_it_is() {
    let folder = Folder::new("page");
    for at in [2, 9, 13, 20, 30, 36, 100, 4_095] {
        let (mut state, _) = saved(&folder);
        flip(&folder, at);
        let before = fs::read(folder.0.join("state")).expect("there");
        assert!(take(&mut state, &folder.file("next")).is_err(), "byte {at}");
        assert!(fs::read(folder.0.join("state")).expect("there") == before, "byte {at}");
        fs::remove_file(folder.0.join("state")).expect("there");
    }
}

#[test]
fn a_file_of_somebody_else_is_refused_and_left_as_it_is() {
    let folder = Folder::new("foreign");
    let path = folder.0.join("letter");
    for text in ["", "dear reader", &"x".repeat(9000), "LARDERST is how a state begins"] {
        fs::write(&path, text).expect("room");
        let mut state = StateFile::new(&path).expect("a folder");
        assert!(state.load(&folder.file("next")).is_err());
        let memory = folder.file("memory");
        memory.set_len(5000).expect("room");
        assert!(state.save(&memory, &Clock::new()).is_err(), "one that came meanwhile");
        assert_eq!(fs::read_to_string(&path).expect("still there"), *text);
        assert!(!folder.0.join("letter.new").exists());
    }
    fs::write(folder.0.join("other.new"), "somebody's").expect("room");
    let state = StateFile::new(&folder.0.join("other")).expect("a folder");
    let said = state.try_place().expect_err("it is in the way");
    assert!(said.contains("other.new is in the way"), "{said}");
    assert_eq!(fs::read(folder.0.join("other.new")).expect("still there"), b"somebody's");
}

#[test]
fn a_link_in_the_way_of_a_state_is_not_followed() {
    let folder = Folder::new("link");
    fs::write(folder.0.join("letter"), "dear reader").expect("room");
    std::os::unix::fs::symlink("letter", folder.0.join("state.new")).expect("a link");
    let state = StateFile::new(&folder.0.join("state")).expect("a folder");
    assert!(state.try_place().is_err());
    assert_eq!(fs::read(folder.0.join("letter")).expect("still there"), b"dear reader");
}

#[test]
fn an_unfinished_state_is_replaced() {
    let folder = Folder::new("unfinished");
    let state = StateFile::new(&folder.0.join("state")).expect("a folder");
    drop(begin(&folder.0.join("state.new")).expect("room"));
    state.try_place().expect("it is an own one");
    assert!(!folder.0.join("state.new").exists());
    saved(&folder);
}

#[test]
fn a_place_that_cannot_be_written_is_said_and_leaves_nothing() {
    let folder = Folder::new("nowhere");
    let said = StateFile::new(&folder.0.join("missing/state")).map(|_| ()).expect_err("no such folder");
    assert!(said.contains("missing/state") && said.contains("create it first"), "{said}");
    let state = StateFile::new(&folder.0.join("later/state"));
    assert!(state.is_err());
    fs::create_dir(folder.0.join("later")).expect("a folder");
    let state = StateFile::new(&folder.0.join("later/state")).expect("a folder");
    fs::remove_dir(folder.0.join("later")).expect("it is empty");
    let said = state.try_place().expect_err("there is no such folder");
    assert!(said.contains("no state can be saved there"), "{said}");
    let said = state.save(&folder.file("memory"), &Clock::new()).expect_err("there is no such folder");
    assert!(said.contains("later/state") && said.contains("cold"), "{said}");
}
