//! The file of a shared cache: its owner, its contents, and a lack of room for it.

#[path = "fuzz/cache.rs"]
mod cache;
#[path = "../../../fuzz/harness.rs"]
mod harness;
#[path = "l1/rig.rs"]
mod rig;

use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::Barrier;
use std::time::Duration;

use harness::for_a_while;
use larder_client::{L1, L1Error, L1Options, Stored};
use rig::{Folder, entry, name, read, value};

const BYTES: u64 = 1 << 20;

fn error(options: &L1Options, name: &str) -> String {
    options.open(name).map(|_| ()).expect_err("it must not be used").to_string()
}

fn has(l1: &L1, key: u64) -> bool {
    read(l1, key, &mut Vec::new()).is_some()
}

fn set(l1: &L1, key: u64) {
    assert_eq!(l1.set(&name(key), &entry(&value(key, 1, 100), 1)), Stored::Yes);
}

#[test]
fn the_file_is_its_users_alone_and_has_all_its_room() {
    let folder = Folder::new();
    let l1 = folder.options(BYTES).open("name").expect("a cache");
    let path = l1.path().expect("it has a file");
    assert_eq!(path, folder.caches().join("name"));
    let (file, directory) =
        (fs::metadata(path).expect("a file"), fs::metadata(folder.caches()).expect("a folder"));
    assert_eq!((file.mode() & 0o777, directory.mode() & 0o777), (0o600, 0o700));
    assert_eq!((file.len(), l1.bytes()), (BYTES, BYTES));
    assert!(file.blocks() * 512 >= BYTES, "{} blocks", file.blocks());
    assert_eq!(fs::read_dir(folder.caches()).expect("a folder").count(), 1, "nothing else is left");
}

#[test]
fn values_of_other_servers_have_a_file_of_their_own() {
    let folder = Folder::new();
    let options = folder.options(BYTES);
    let open = |servers: &[&str]| options.open_for("name", servers).expect("a cache");
    let (one, same, two) = (open(&["a:1", "b:1"]), open(&["a:1", "b:1"]), open(&["b:1", "a:1"]));
    set(&one, 7);
    assert!(has(&same, 7) && !has(&two, 7));
    assert_eq!(one.path(), Some(&*folder.caches().join("name")));
    let path = two.path().expect("it has a file").to_string_lossy().into_owned();
    assert!(
        path.len() == one.path().expect("a file").as_os_str().len() + 9 && path.contains("name-"),
        "{path}"
    );
    assert_eq!(open(&["b:1", "a:1"]).path(), two.path());
    assert!(has(&options.open("name").expect("a cache"), 7), "without servers it is the one of that name");
}

#[test]
fn a_name_is_a_name_and_no_path() {
    let folder = Folder::new();
    for bad in ["", ".", "..", ".hidden", "a/b", "/tmp/x", "a b", "\u{e4}", &"x".repeat(65)] {
        assert!(matches!(folder.options(BYTES).open(bad), Err(L1Error::Name(_))), "{bad:?}");
    }
    folder.options(BYTES).open(&format!("A-z_0.{}", "9".repeat(58))).expect("a cache");
}

#[test]
fn sizes_out_of_bounds_are_refused() {
    let folder = Folder::new();
    for bytes in [0, 1, (512 << 10) - 1, (64 << 30) + 4096, u64::MAX] {
        assert!(matches!(folder.options(bytes).open("name"), Err(L1Error::Size { .. })), "{bytes}");
        assert!(matches!(L1Options::new().bytes(bytes).anonymous(), Err(L1Error::Size { .. })), "{bytes}");
    }
    assert!(!folder.caches().join("name").exists());
}

#[test]
fn a_directory_that_others_can_change_is_refused() {
    let folder = Folder::new();
    let options = folder.options(BYTES);
    fs::create_dir(folder.caches()).expect("a folder");
    for mode in [0o777, 0o770, 0o1777, 0o702] {
        fs::set_permissions(folder.caches(), fs::Permissions::from_mode(mode)).expect("a mode");
        assert!(error(&options, "name").contains("other users may write to it"), "{mode:o}");
    }
    fs::remove_dir(folder.caches()).expect("it is empty");
    symlink("/tmp", folder.caches()).expect("a link");
    assert!(error(&options, "name").contains("a link or no directory"), "{}", error(&options, "name"));
    fs::remove_file(folder.caches()).expect("a link");
    fs::write(folder.caches(), "").expect("a file");
    assert!(error(&options, "name").contains("a link or no directory"));
    fs::remove_file(folder.caches()).expect("a file");
    fs::create_dir(folder.caches()).expect("a folder");
    if std::os::unix::fs::chown(folder.caches(), Some(65_534), None).is_ok() {
        assert!(error(&options, "name").contains("another user"), "{}", error(&options, "name"));
    }
    let orphan = folder.0.join("none/caches");
    assert!(error(&L1Options::new().directory(&orphan), "name").contains("none/caches"));
}

#[test]
fn a_file_that_is_not_this_users_own_is_refused_and_left() {
    let folder = Folder::new();
    let options = folder.options(BYTES);
    drop(options.open("name").expect("a cache"));
    let path = folder.caches().join("name");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("a mode");
    assert!(error(&options, "name").contains("other users may read"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("a mode");
    fs::hard_link(&path, folder.0.join("second")).expect("a link");
    assert!(error(&options, "name").contains("second name"));
    fs::remove_file(folder.0.join("second")).expect("a link");
    symlink(&path, folder.caches().join("link")).expect("a link");
    assert!(error(&options, "link").contains("symbolic link"));
    fs::create_dir(folder.caches().join("folder")).expect("a folder");
    assert!(options.open("folder").is_err());
    if std::os::unix::fs::chown(&path, Some(65_534), None).is_ok() {
        assert!(error(&options, "name").contains("another user"));
        std::os::unix::fs::chown(&path, Some(0), None).expect("root may");
    }
    options.open("name").expect("it is as it was");
}

/// A way to damage the file of a cache.
type Damage = (&'static str, fn(&Path));

fn damages() -> Vec<Damage> {
    fn write(path: &Path, at: u64, bytes: &[u8]) {
        let file = fs::OpenOptions::new().write(true).open(path).expect("a file");
        file.write_all_at(bytes, at).expect("it can be written");
    }
    fn cut(path: &Path, bytes: u64) {
        fs::OpenOptions::new().write(true).open(path).expect("a file").set_len(bytes).expect("a length");
    }
    vec![
        ("another magic", |path| write(path, 0, b"memcache")),
        ("another format", |path| write(path, 8, &[9])),
        ("another size", |path| write(path, 17, &[99])),
        ("another number of items", |path| write(path, 24, &[99])),
        ("another seed", |path| write(path, 32, &[1, 2, 3, 4, 5, 6, 7, 8])),
        ("another checksum", |path| write(path, 40, &[1, 2, 3, 4, 5, 6, 7, 8])),
        ("an empty file", |path| cut(path, 0)),
        ("a page", |path| cut(path, 4096)),
        ("all but a byte", |path| cut(path, BYTES - 1)),
        ("half of it", |path| cut(path, BYTES / 2)),
        ("more than there was", |path| cut(path, BYTES * 2)),
        ("another's file", |path| fs::write(path, vec![b'x'; BYTES as usize]).expect("a file")),
    ]
}

#[test]
fn a_file_that_cannot_be_used_gives_its_name_to_a_new_one() {
    for (damage, make) in damages() {
        let folder = Folder::new();
        let options = folder.options(BYTES);
        let first = options.open("name").expect("a cache");
        set(&first, 1);
        drop(first);
        make(&folder.caches().join("name"));
        let second = options.open("name").unwrap_or_else(|error| panic!("{damage}: {error}"));
        assert!(!has(&second, 1), "{damage}");
        set(&second, 2);
        assert!(has(&second, 2) && second.bytes() == BYTES, "{damage}");
    }
}

#[test]
fn whatever_is_written_over_the_file_a_read_is_a_miss_or_what_was_stored() {
    for_a_while("cache", Duration::from_secs(2), 20, 8_000, cache::check);
}

#[test]
fn a_cache_that_is_mapped_lives_on_when_its_name_goes_to_another() {
    let folder = Folder::new();
    let options = folder.options(BYTES);
    let first = options.open("name").expect("a cache");
    set(&first, 1);
    assert!(options.remove("name").expect("it is removed") && !options.remove("name").expect("it is gone"));
    let second = options.open("name").expect("another cache");
    set(&second, 2);
    assert!(has(&first, 1) && !has(&first, 2) && !has(&second, 1) && has(&second, 2));
}

#[test]
fn a_file_is_used_with_the_size_that_it_has() {
    let folder = Folder::new();
    let first = folder.options(BYTES).open("name").expect("a cache");
    set(&first, 1);
    drop(first);
    let second = folder.options(8 * BYTES).items(5).open("name").expect("the same cache");
    assert!(has(&second, 1) && second.bytes() == BYTES);
}

#[test]
fn all_who_open_a_name_at_once_have_one_cache() {
    let folder = Folder::new();
    let start = Barrier::new(16);
    let caches: Vec<L1> = std::thread::scope(|scope| {
        let open = || {
            start.wait();
            folder.options(BYTES).open("name").expect("a cache")
        };
        let threads: Vec<_> = (0..16).map(|_| scope.spawn(open)).collect();
        threads.into_iter().map(|thread| thread.join().expect("it ends")).collect()
    });
    set(&caches[0], 1);
    assert!(caches.iter().all(|l1| has(l1, 1)));
}

/// A tmpfs of so many bytes, for root alone.
struct Tmpfs(Folder);

impl Tmpfs {
    fn new(bytes: u64) -> Option<Tmpfs> {
        let folder = Folder::new();
        let size = format!("size={bytes}");
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&folder.0).output();
        mount.is_ok_and(|output| output.status.success()).then_some(Tmpfs(folder))
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0.0).status();
    }
}

#[test]
fn a_full_file_system_is_an_error_and_half_of_a_small_one_is_taken() {
    let Some(tmpfs) = Tmpfs::new(8 << 20) else {
        println!("SKIPPED: only root can mount a tmpfs");
        return;
    };
    let options = tmpfs.0.options(64 << 20);
    let l1 = options.open("name").expect("half of it is enough");
    assert!((3 << 20..=4 << 20).contains(&l1.bytes()), "{}", l1.bytes());
    fs::write(tmpfs.0.0.join("other"), vec![1; 7 << 19]).expect("there is room");
    let error = error(&options, "second");
    assert!(error.contains("free some") && error.contains("/dev/shm"), "{error}");
    assert_eq!(fs::read_dir(tmpfs.0.caches()).expect("a folder").count(), 1, "nothing is left of it");
    // The cache has its room already: using all of it on the full file system ends nothing.
    (0..60_000).for_each(|key| set(&l1, key));
    assert!(l1.stats().evicted > 1_000);
}
