//! The file of a shared cache that is written over, behind the back of a process that uses it and between two of them:
//! every read is a miss, or what was stored.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::time::Duration;

use larder_client::{L1, L1Options};

use super::harness::Choices;
use super::rig::{Folder, entry, name, read, value};

const BYTES: u64 = 512 << 10;
const KEYS: usize = 300;

fn use_it(l1: &L1, choices: &mut Choices<'_>, buffer: &mut Vec<u8>) {
    let (key, version) = (choices.below(KEYS) as u64, choices.below(1 << 16) as u64);
    let len = [0, 5, 200, 3_000, 60_000][choices.below(5)];
    let key_name = name(key);
    match choices.below(12) {
        0 => drop(l1.delete(&key_name)),
        1 => {
            let ticket = l1.begin_fetch(&key_name);
            let _ = l1.fill(&ticket, &key_name, &entry(&value(key, version, len), version));
        }
        2 => drop(l1.touch(&l1.begin_fetch(&key_name), &key_name, version, u64::MAX)),
        3..7 => _ = l1.set(&key_name, &entry(&value(key, version, len), version)),
        7 if choices.one_in(20) => l1.clear(),
        8 if choices.one_in(20) => l1.revalidate_all(),
        _ => _ = read(l1, key, buffer),
    }
}

/// Writes over some bytes, most of them of the header and of the tables behind it.
fn scribble(file: &File, choices: &mut Choices<'_>) {
    let bound = [4096, 64 << 10, BYTES as usize][choices.below(3)];
    let (at, len) = (choices.below(bound) as u64, 1 + choices.below(16));
    let mut now = vec![0; len];
    if file.read_at(&mut now, at).is_err() {
        return;
    }
    let scribbled = match choices.below(4) {
        0 => vec![[0, 0xFF][choices.below(2)]; len],
        1 => {
            now[0] ^= 1 << choices.below(8);
            now
        }
        2 => {
            let other = choices.below(BYTES as usize) as u64;
            let _ = file.read_at(&mut now, other);
            now
        }
        _ => choices.bytes(len).to_vec(),
    };
    let len = scribbled.len().min((BYTES - at) as usize);
    file.write_all_at(&scribbled[..len], at).expect("inside");
}

/// One input: what is stored, read and written over.
pub fn check(data: &[u8]) {
    let mut choices = Choices::new(data);
    let folder = Folder::new();
    let options: L1Options = folder.options(BYTES).lock_patience(Duration::from_millis(1));
    let mut buffer = Vec::new();
    for _ in 0..3 {
        let l1 = options.open("name").expect("what cannot be used gives its name to another");
        let path = l1.path().expect("it has a file");
        let file = OpenOptions::new().read(true).write(true).open(path).expect("it is there");
        let is_over_written_meanwhile = choices.one_in(2);
        for _ in 0..400 {
            if choices.is_over() {
                break;
            }
            use_it(&l1, &mut choices, &mut buffer);
            if is_over_written_meanwhile && choices.one_in(20) {
                scribble(&file, &mut choices);
            }
        }
        drop(l1);
        for _ in 0..choices.below(20) {
            scribble(&file, &mut choices);
        }
    }
    let l1 = options.open("name").expect("as before");
    (0..KEYS as u64).for_each(|key| _ = read(&l1, key, &mut buffer));
}
