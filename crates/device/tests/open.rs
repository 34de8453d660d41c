//! What may be opened, what is refused, and that a refusal leaves everything as it was. Never a queue.

mod support;

use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use larder_device::{Device, FileDevice, FileOptions, IoBuf, OpenError, Origin, PAGE_BYTES};
use rustix::fs::FallocateFlags;
use support::{MIB, Random, Scratch, open_small, small};

fn refused(options: &FileOptions) -> OpenError {
    let error = FileDevice::open(options).expect_err("a refusal");
    assert!(
        matches!(error, OpenError::BadShare { .. }) || error.to_string().contains(&shown(&options.path)),
        "{error}"
    );
    error
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn fill(device: &FileDevice, byte: u8) {
    let mut buf = IoBuf::zeroed(device.len() as usize);
    buf.fill(byte);
    assert_eq!(device.write_at(&buf, 0).expect("a write"), buf.len());
}

fn holds(device: &FileDevice, byte: u8) -> bool {
    let mut buf = IoBuf::zeroed(device.len() as usize);
    assert_eq!(device.read_at(&mut buf, 0).expect("a read"), buf.len());
    buf.iter().all(|&b| b == byte)
}

#[test]
fn a_new_file_is_created_private_and_allocated() {
    let scratch = Scratch::new();
    let path = scratch.path("new");
    let device = open_small(&path, 9 * MIB);
    assert_eq!(device.origin(), Origin::Created);
    assert_eq!(device.len(), 8 * MIB);
    let meta = fs::metadata(&path).expect("a file");
    assert_eq!(meta.permissions().mode() & 0o777, 0o600);
    assert_eq!(meta.len(), 9 * MIB);
    assert!(meta.blocks() * 512 >= 9 * MIB, "{} blocks", meta.blocks());
    assert!(PAGE_BYTES.is_multiple_of(device.alignment()));
    eprintln!("direct: {}, alignment {}", device.is_direct(), device.alignment());
}

#[test]
fn its_own_file_is_reopened_with_its_data_and_identity() {
    let scratch = Scratch::new();
    let path = scratch.path("own");
    let first = open_small(&path, 9 * MIB);
    let superblock = *first.superblock();
    assert_ne!(superblock.store_id, [0; 16]);
    fill(&first, 0xab);
    drop(first);
    for size in [Some(9 * MIB), None] {
        let again = FileDevice::open(&small(&path, size)).expect("its own file");
        assert_eq!((again.origin(), again.superblock()), (Origin::Reopened, &superblock));
        assert!(holds(&again, 0xab));
    }
}

#[test]
fn another_size_or_segment_size_empties_its_own_file() {
    let scratch = Scratch::new();
    let path = scratch.path("own");
    let id = open_small(&path, 9 * MIB).superblock().store_id;
    let grown = open_small(&path, 12 * MIB);
    assert_eq!((grown.origin(), grown.len()), (Origin::Reshaped, 11 * MIB));
    assert_ne!(grown.superblock().store_id, id);
    drop(grown);
    let shrunk = open_small(&path, 6 * MIB);
    assert_eq!((shrunk.origin(), shrunk.len()), (Origin::Reshaped, 5 * MIB));
    assert_eq!(fs::metadata(&path).expect("a file").len(), 12 * MIB, "what is beyond is left alone");
    drop(shrunk);
    let options = FileOptions { segment_bytes: MIB / 2, ..small(&path, Some(6 * MIB)) };
    assert_eq!(FileDevice::open(&options).expect("its own file").origin(), Origin::Reshaped);
}

#[test]
fn the_bytes_written_over_its_life_are_kept_whatever_becomes_of_the_content() {
    let scratch = Scratch::new();
    let path = scratch.path("own");
    let device = open_small(&path, 9 * MIB);
    assert_eq!(device.lifetime_written_bytes(), 0);
    let block = *device.superblock();
    for bytes in [1, 10, 1 << 45] {
        device.save_lifetime(bytes).expect("room");
    }
    fill(&device, 7);
    drop(device);
    let mut again = open_small(&path, 9 * MIB);
    assert_eq!((again.lifetime_written_bytes(), again.origin()), (1 << 45, Origin::Reopened));
    assert_eq!(*again.superblock(), block, "the identity is another page's");
    assert!(holds(&again, 7));
    again.renew().expect("a superblock");
    drop(again);
    let options = FileOptions { segment_bytes: MIB / 2, ..small(&path, Some(9 * MIB)) };
    let reshaped = FileDevice::open(&options).expect("its own file");
    assert_eq!((reshaped.lifetime_written_bytes(), reshaped.origin()), (1 << 45, Origin::Reshaped));
    drop(reshaped);
    assert_eq!(FileDevice::open(&options).expect("its own file").lifetime_written_bytes(), 1 << 45);
}

#[test]
fn a_renewed_device_has_another_identity_for_good() {
    let scratch = Scratch::new();
    let path = scratch.path("own");
    let mut device = open_small(&path, 9 * MIB);
    let before = device.superblock().store_id;
    let renewed = device.renew().expect("a superblock");
    assert_ne!(renewed, before);
    drop(device);
    let again = open_small(&path, 9 * MIB);
    assert_eq!((again.origin(), again.superblock().store_id), (Origin::Reopened, renewed));
}

#[test]
fn an_empty_file_is_accepted() {
    let scratch = Scratch::new();
    let (nothing, zeros) = (scratch.path("nothing"), scratch.path("zeros"));
    fs::File::create(&nothing).expect("a file");
    fs::File::create(&zeros).and_then(|file| file.set_len(9 * MIB)).expect("a file");
    assert_eq!(open_small(&nothing, 9 * MIB).origin(), Origin::Empty);
    assert_eq!(FileDevice::open(&small(&zeros, None)).expect("zeros").origin(), Origin::Empty);
    assert!(fs::metadata(&zeros).expect("a file").blocks() * 512 >= 9 * MIB, "a sparse file is filled in");
    let allocated = scratch.path("allocated");
    let file = fs::File::create(&allocated).expect("a file");
    if rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, 9 * MIB).is_ok() {
        assert_eq!(open_small(&allocated, 9 * MIB).origin(), Origin::Empty, "allocated and never written");
    }
}

#[test]
fn a_strangers_file_is_refused_untouched_until_formatted() {
    let scratch = Scratch::new();
    let mut random = Random(7);
    // Marks at the beginning, where ext4 has its own, at the end, where GPT and RAID have theirs, in the
    // middle, and beyond what is asked for.
    let places = [(0, 9), (1080, 9), (9 * MIB - 512, 9), (4 * MIB, 9), (10 * MIB, 12)];
    let places = places.map(|(at, mib)| (at, mib * MIB));
    for (at, size) in places.into_iter().chain([(100, 200)]) {
        let path = scratch.path(&format!("stranger-{at}-{size}"));
        let file = fs::File::create(&path).expect("a file");
        file.set_len(size).expect("a size");
        let mut mark = [0; 100];
        random.fill(&mut mark);
        file.write_all_at(&mark, at).expect("a mark");
        let before = fs::read(&path).expect("a file");
        let error = refused(&small(&path, Some(9 * MIB)));
        assert!(matches!(error, OpenError::NotOurs { .. }), "{error}");
        assert!(error.to_string().contains("--ssd-format"), "{error}");
        assert!(fs::read(&path).expect("a file") == before, "the refused file was changed");

        let format = FileOptions { format: true, ..small(&path, Some(9 * MIB)) };
        assert_eq!(FileDevice::open(&format).expect("leave to format").origin(), Origin::Formatted);
        let again = FileDevice::open(&format).expect("its own file");
        assert_eq!(again.origin(), Origin::Reopened, "formatting is for what is not ours");
    }
}

#[test]
fn a_file_of_written_zeros_is_somebodys() {
    let scratch = Scratch::new();
    let path = scratch.path("zeros");
    fs::write(&path, vec![0; 9 * MIB as usize]).expect("a file");
    let error = refused(&small(&path, None));
    assert!(matches!(error, OpenError::NotOurs { .. }), "{error}");
    assert_eq!(fs::metadata(&path).expect("a file").len(), 9 * MIB);
}

#[test]
fn a_link_to_a_strangers_file_is_refused_and_so_is_one_file_twice() {
    let scratch = Scratch::new();
    let (file, link) = (scratch.path("file"), scratch.path("link"));
    fs::write(&file, "dear diary").expect("a file");
    for make in [fs::hard_link, |from, to| std::os::unix::fs::symlink(from, to)] {
        make(file.as_path(), link.as_path()).expect("a link");
        let error = refused(&small(&link, Some(9 * MIB)));
        assert!(matches!(error, OpenError::NotOurs { .. }), "{error}");
        assert_eq!(fs::read(&file).expect("a file"), b"dear diary");
        fs::remove_file(&link).expect("a link");
    }
    fs::remove_file(&file).expect("a file");
    let _first = open_small(&file, 9 * MIB);
    fs::hard_link(&file, &link).expect("a link");
    assert!(matches!(refused(&small(&link, Some(9 * MIB))), OpenError::InUse { .. }));
}

#[test]
fn other_versions_and_damage_are_refused() {
    let scratch = Scratch::new();
    for (at, expected) in [(8, "format version"), (20, "damaged")] {
        let path = scratch.path(expected);
        drop(open_small(&path, 9 * MIB));
        let file = fs::File::options().read(true).write(true).open(&path).expect("a file");
        file.write_all_at(&[0x77], at).expect("a write");
        let error = refused(&small(&path, Some(9 * MIB)));
        assert!(matches!(error, OpenError::Superblock { .. }), "{error}");
        assert!(
            error.to_string().contains(expected) && error.to_string().contains("--ssd-format"),
            "{error}"
        );
    }
}

fn share(path: &Path, size: u64, index: u32, count: u32) -> FileOptions {
    FileOptions { share: Some((index, count)), ..small(path, Some(size)) }
}

#[test]
fn shares_lie_side_by_side() {
    let scratch = Scratch::new();
    let path = scratch.path("shared");
    let size = 20 * MIB + 12_345;
    // The middle one first: no order is asked for.
    let shares = [2, 3, 1].map(|index| FileDevice::open(&share(&path, size, index, 3)).expect("a share"));
    for (device, byte) in shares.iter().zip(1..) {
        assert_eq!(device.len(), 5 * MIB);
        assert_eq!(device.len(), share(&path, size, 1, 3).data_bytes(size));
        fill(device, byte);
    }
    for (device, byte) in shares.iter().zip(1..) {
        assert!(holds(device, byte), "share {byte} was overwritten");
    }
    let mut ranges = shares.each_ref().map(|device| (device.base(), device.base() + device.len()));
    ranges.sort_unstable();
    assert!(ranges.windows(2).all(|two| two[0].1 <= two[1].0), "{ranges:?}");
    let ids = shares.each_ref().map(|device| device.superblock().store_id);
    assert!(ids[0] != ids[1] && ids[1] != ids[2]);
    drop(shares);
    let again = FileDevice::open(&share(&path, size, 2, 3)).expect("a share");
    assert_eq!(again.origin(), Origin::Reopened);
    assert!(holds(&again, 1));
}

#[test]
fn a_device_ends_where_its_slice_ends() {
    let scratch = Scratch::new();
    let path = scratch.path("shared");
    let devices = [1, 2].map(|index| FileDevice::open(&share(&path, 12 * MIB, index, 2)).expect("a share"));
    fill(&devices[1], 2);
    let (device, len) = (&devices[0], devices[0].len());
    let mut buf = IoBuf::zeroed(2 * PAGE_BYTES);
    assert_eq!(device.read_at(&mut buf, len - PAGE_BYTES as u64).expect("a read"), PAGE_BYTES);
    assert_eq!(device.read_at(&mut buf, len).expect("a read"), 0);
    for offset in [len - PAGE_BYTES as u64, len, len + 9 * MIB, u64::MAX - PAGE_BYTES as u64 + 1] {
        let error = device.write_at(&buf, offset).expect_err("a write past the end");
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
        assert!(device.discard(offset, 2 * PAGE_BYTES as u64).is_err());
    }
    assert!(holds(&devices[1], 2));
}

#[test]
fn one_that_fails_never_removes_the_file_of_one_that_does_not() {
    let scratch = Scratch::new();
    for round in 0..60 {
        let path = scratch.path(&format!("file-{round}"));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| refused(&small(&path, Some(MIB))));
            }
            let device = open_small(&path, 5 * MIB);
            assert_ne!(device.origin(), Origin::Reopened);
        });
        assert!(path.exists(), "the file is gone in round {round}");
    }
}

#[test]
fn a_range_has_one_user() {
    let scratch = Scratch::new();
    let path = scratch.path("shared");
    let first = FileDevice::open(&share(&path, 18 * MIB, 1, 3)).expect("a share");
    let second = FileDevice::open(&share(&path, 18 * MIB, 2, 3)).expect("a share");
    let error = refused(&share(&path, 18 * MIB, 1, 3));
    assert!(matches!(error, OpenError::InUse { share: Some((1, 3)), .. }), "{error}");
    let whole = FileOptions { format: true, ..small(&path, Some(18 * MIB)) };
    assert!(matches!(refused(&whole), OpenError::InUse { share: None, .. }));
    drop(first);
    drop(FileDevice::open(&share(&path, 18 * MIB, 1, 3)).expect("free again"));
    drop(second);
    let all = FileDevice::open(&whole).expect("free again");
    assert!(matches!(refused(&share(&path, 18 * MIB, 3, 3)), OpenError::InUse { .. }));
    drop(all);
}

#[test]
fn a_range_given_up_late_is_waited_for() {
    let scratch = Scratch::new();
    let path = scratch.path("own");
    let first = open_small(&path, 9 * MIB);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(150));
            drop(first);
        });
        assert_eq!(open_small(&path, 9 * MIB).origin(), Origin::Reopened);
    });
}

#[test]
fn shares_of_another_size_are_refused() {
    let scratch = Scratch::new();
    let path = scratch.path("shared");
    drop(FileDevice::open(&share(&path, 18 * MIB, 1, 2)).expect("a share"));
    for index in [1, 2] {
        let error = refused(&share(&path, 12 * MIB, index, 2));
        assert!(matches!(error, OpenError::OtherSize { .. }), "{error}");
    }
    assert_eq!(FileDevice::open(&share(&path, 18 * MIB, 1, 2)).expect("a share").origin(), Origin::Reopened);
}

#[test]
fn another_division_is_refused() {
    let scratch = Scratch::new();
    let path = scratch.path("shared");
    drop(FileDevice::open(&share(&path, 18 * MIB, 1, 3)).expect("a share"));
    for options in [small(&path, Some(18 * MIB)), share(&path, 18 * MIB, 1, 2), share(&path, 18 * MIB, 2, 2)]
    {
        let error = refused(&options);
        assert!(matches!(error, OpenError::OtherShare { found: (1, 3), .. }), "{error}");
        assert!(error.to_string().contains("1/3"), "{error}");
    }
    for (index, count) in [(0, 3), (4, 3), (1, 0), (1, 5000)] {
        let error = refused(&share(&path, 18 * MIB, index, count));
        assert!(matches!(error, OpenError::BadShare { .. }), "{error}");
    }
}

#[test]
fn shares_that_start_together_all_start() {
    let scratch = Scratch::new();
    let path = scratch.path("shared");
    let devices: Vec<FileDevice> = std::thread::scope(|scope| {
        let threads: Vec<_> = (1..=8)
            .map(|index| {
                let options = share(&path, 48 * MIB, index, 8);
                scope.spawn(move || FileDevice::open(&options).expect("a share"))
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    assert_eq!(devices.iter().filter(|device| device.origin() == Origin::Created).count(), 1);
}

#[test]
fn too_small_is_refused_and_creates_nothing() {
    let scratch = Scratch::new();
    let path = scratch.path("small");
    let error = refused(&small(&path, Some(5 * MIB - 1)));
    assert!(matches!(error, OpenError::TooSmall { bytes_min, .. } if bytes_min == 5 * MIB), "{error}");
    let error = refused(&share(&path, 14 * MIB, 1, 3));
    assert!(error.to_string().contains("each of 3 shares"), "{error}");
    let error = refused(&FileOptions { size_bytes: Some(64 * MIB), ..FileOptions::new(&path) });
    assert!(error.to_string().contains("65 MiB"), "{error}");
    assert!(matches!(refused(&small(&path, None)), OpenError::SizeMissing { .. }));
    assert!(!path.exists(), "a refused file was left behind");
}

#[test]
fn what_is_no_storage_is_refused() {
    let scratch = Scratch::new();
    let error = refused(&small(scratch.dir(), Some(9 * MIB)));
    assert!(matches!(error, OpenError::Directory { .. }), "{error}");
    assert!(matches!(refused(&small("/dev/null", Some(9 * MIB))), OpenError::NotStorage { .. }));
    let socket = scratch.path("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).expect("a socket");
    assert!(refused(&small(&socket, Some(9 * MIB))).to_string().contains("is a socket"));
}

#[test]
fn a_missing_directory_is_created_only_when_asked() {
    let scratch = Scratch::new();
    let path = scratch.path("a/b/larder.ssd");
    let error = refused(&small(&path, Some(9 * MIB)));
    assert!(matches!(&error, OpenError::MissingParent { parent, .. } if parent.ends_with("a/b")), "{error}");
    let options = FileOptions { create_parents: true, ..small(&path, Some(9 * MIB)) };
    FileDevice::open(&options).expect("a device");
    let mode = fs::metadata(scratch.path("a")).expect("a directory").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn a_dangling_link_is_refused() {
    let scratch = Scratch::new();
    let link = scratch.path("link");
    std::os::unix::fs::symlink(scratch.path("nowhere"), &link).expect("a link");
    assert!(matches!(refused(&small(&link, Some(9 * MIB))), OpenError::Io { .. }));
}

#[test]
fn a_file_on_tmpfs_is_used_buffered() {
    let Some(scratch) = Scratch::in_memory() else {
        return;
    };
    let device = open_small(scratch.path("file"), 9 * MIB);
    assert!(!device.is_direct());
    fill(&device, 0x3c);
    assert!(holds(&device, 0x3c));
}

#[test]
fn a_file_without_leave_is_refused() {
    let scratch = Scratch::new();
    let (file, locked) = (scratch.path("file"), scratch.path("locked"));
    fs::write(&file, "").expect("a file");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o400)).expect("a mode");
    fs::create_dir(&locked).expect("a directory");
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o500)).expect("a mode");
    let errors = std::thread::spawn(move || {
        if !become_nobody() {
            eprintln!("running as an ordinary user");
        }
        [&file, &locked.join("new")].map(|path| refused(&small(path, Some(9 * MIB))))
    });
    for error in errors.join().expect("no panic") {
        assert!(matches!(error, OpenError::Permission { .. }), "{error}");
    }
}

/// Gives up root's rights for the calling thread.
fn become_nobody() -> bool {
    // SAFETY: a system call on integers; the kernel changes the identity of the calling thread alone.
    unsafe { libc::syscall(libc::SYS_setresuid, 65_534, 65_534, 65_534) == 0 }
}

/// A mounted directory, unmounted when the value goes.
struct Mount(PathBuf);

impl Mount {
    fn new(dir: PathBuf, arguments: &[&str]) -> Option<Self> {
        fs::create_dir(&dir).expect("a directory");
        let dir_shown = shown(&dir);
        run("mount", &[arguments, &[dir_shown.as_str()]].concat()).map(|_| Mount(dir))
    }

    /// A tmpfs of 20 MiB.
    fn small(scratch: &Scratch) -> Option<Self> {
        Self::new(scratch.path("mount"), &["-t", "tmpfs", "-o", "size=20m", "tmpfs"])
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        run("umount", &[&shown(&self.0)]);
    }
}

/// Runs a command; `None`, said aloud, if it fails.
fn run(command: &str, arguments: &[&str]) -> Option<String> {
    match Command::new(command).args(arguments).output() {
        Ok(output) if output.status.success() => Some(String::from_utf8_lossy(&output.stdout).trim().into()),
        Ok(output) => {
            eprintln!("SKIPPED: {command}: {}", String::from_utf8_lossy(&output.stderr).trim());
            None
        }
        Err(error) => {
            eprintln!("SKIPPED: {command}: {error}");
            None
        }
    }
}

#[test]
fn a_full_disk_is_refused_and_nothing_is_left_behind() {
    let scratch = Scratch::new();
    let Some(disk) = Mount::small(&scratch) else {
        return;
    };
    let (new, old) = (disk.path("new"), disk.path("old"));
    let error = refused(&small(&new, Some(30 * MIB)));
    assert!(matches!(error, OpenError::DiskFull { .. }), "{error}");
    assert!(error.to_string().contains("30 MiB wanted, 20 MiB free"), "{error}");
    assert!(!new.exists());
    drop(open_small(&old, 9 * MIB));
    assert!(matches!(refused(&small(&old, Some(30 * MIB))), OpenError::DiskFull { .. }));
    assert_eq!(fs::metadata(&old).expect("a file").len(), 9 * MIB);
    assert_eq!(open_small(&old, 9 * MIB).origin(), Origin::Reopened);
}

#[test]
fn a_disk_that_turns_out_full_is_refused_all_the_same() {
    let scratch = Scratch::new();
    let image = scratch.path("image");
    fs::File::create(&image).and_then(|file| file.set_len(40 * MIB)).expect("an image");
    if run("mkfs.ext4", &["-q", "-m", "0", &shown(&image)]).is_none() {
        return;
    }
    let Some(disk) = Mount::new(scratch.path("mount"), &["-o", "loop", &shown(&image)]) else {
        return;
    };
    let path = disk.path("file");
    drop(open_small(&path, 5 * MIB));
    // Blocks beyond the end make the file look as if it had most of what is wanted.
    let file = fs::File::options().write(true).open(&path).expect("a file");
    rustix::fs::fallocate(&file, FallocateFlags::KEEP_SIZE, 20 * MIB, 8 * MIB).expect("blocks");
    let room = rustix::fs::statvfs(&path).expect("the free room");
    let filler = fs::File::create(disk.path("filler")).expect("a file");
    let fill_bytes = room.f_bavail * room.f_frsize - 10 * MIB;
    rustix::fs::fallocate(&filler, FallocateFlags::empty(), 0, fill_bytes).expect("blocks");

    let error = refused(&small(&path, Some(20 * MIB)));
    assert!(matches!(error, OpenError::DiskFull { .. }), "{error}");
    assert_eq!(fs::metadata(&path).expect("a file").len(), 5 * MIB, "it was left otherwise than it was");
    drop(file);
    assert_eq!(open_small(&path, 5 * MIB).origin(), Origin::Reopened);
}

#[test]
fn a_read_only_file_system_is_refused() {
    let scratch = Scratch::new();
    let Some(disk) = Mount::small(&scratch) else {
        return;
    };
    drop(open_small(disk.path("file"), 9 * MIB));
    if run("mount", &["-o", "remount,ro", &shown(&disk.0)]).is_none() {
        return;
    }
    for name in ["file", "new"] {
        let error = refused(&small(disk.path(name), Some(9 * MIB)));
        assert!(matches!(error, OpenError::ReadOnly { .. }), "{error}");
    }
}

/// A loop device over an image of zeros.
struct Loop {
    scratch: Scratch,
    path: String,
}

impl Loop {
    fn attach(bytes: u64) -> Option<Self> {
        let scratch = Scratch::new();
        let image = scratch.path("image");
        fs::File::create(&image).and_then(|file| file.set_len(bytes)).expect("an image");
        let path = run("losetup", &["--find", "--show", &shown(&image)])?;
        Some(Loop { scratch, path })
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        run("losetup", &["--detach", &self.path]);
    }
}

#[test]
fn a_block_device_is_used_whole_in_part_and_in_shares() {
    let Some(disk) = Loop::attach(24 * MIB) else {
        return;
    };
    let path = Path::new(&disk.path);
    let error = refused(&small(path, None));
    assert!(matches!(error, OpenError::Unmarked { .. }), "{error}");
    let format = FileOptions { format: true, ..small(path, None) };
    let device = FileDevice::open(&format).expect("leave to format");
    assert!(device.is_block_device());
    assert_eq!((device.origin(), device.len()), (Origin::Formatted, 23 * MIB));
    fill(&device, 0x42);
    assert!(holds(&device, 0x42));
    device.discard(0, 8 * MIB).expect("a discard");
    assert!(matches!(refused(&small(path, None)), OpenError::InUse { .. }));
    drop(device);
    assert_eq!(FileDevice::open(&small(path, None)).expect("its own disk").origin(), Origin::Reopened);
    assert!(matches!(refused(&small(path, Some(25 * MIB))), OpenError::BeyondDevice { .. }));
    assert!(matches!(refused(&share(path, 24 * MIB, 1, 2)), OpenError::OtherShare { .. }));
    let format = |index| FileOptions { format: true, ..share(path, 24 * MIB, index, 2) };
    let (one, two) =
        (FileDevice::open(&format(1)).expect("a share"), FileDevice::open(&format(2)).expect("a share"));
    fill(&one, 1);
    fill(&two, 2);
    assert!(holds(&one, 1) && holds(&two, 2));
    assert!(matches!(refused(&small(path, None)), OpenError::InUse { .. }));
}

#[test]
fn a_mounted_disk_is_refused_even_for_formatting() {
    let Some(disk) = Loop::attach(24 * MIB) else {
        return;
    };
    if run("mkfs.ext4", &["-q", &disk.path]).is_none() {
        return;
    }
    let path = Path::new(&disk.path);
    assert!(matches!(refused(&small(path, None)), OpenError::NotOurs { .. }));
    let Some(mount) = Mount::new(disk.scratch.path("mount"), &[&disk.path]) else {
        return;
    };
    let whole = refused(&FileOptions { format: true, ..small(path, None) });
    assert!(matches!(whole, OpenError::Claimed { .. }), "{whole}");
    let part = refused(&FileOptions { format: true, ..share(path, 24 * MIB, 1, 2) });
    assert!(matches!(part, OpenError::Claimed { .. }), "{part}");
    drop(mount);
    assert!(run("fsck.ext4", &["-n", &disk.path]).is_some(), "the refused disk was damaged");
}
