//! An executable without what only a debugger reads: a tenth of the bytes to send to a host.
//!
//! The system loads an ELF file by its segments. Symbols and lines for debuggers lie in sections behind the last
//! segment, with the table of sections at the end:
//!
//! ```text
//!   0      header | program headers | segments ... | symbols, debug information | section headers
//!                                                  ^ cut here, and name no section in the header
//! ```

use std::ops::Range;

const MAGIC: &[u8] = b"\x7fELF\x02\x01";
/// Places of a header's fields: where the program headers begin, their size and their number.
const PROGRAM_HEADERS: Range<usize> = 0x20..0x28;
const PROGRAM_HEADER_BYTES: Range<usize> = 0x36..0x38;
const PROGRAM_HEADER_COUNT: Range<usize> = 0x38..0x3a;
/// Where the section headers begin; their size, number, and which one holds their names.
const SECTION_HEADERS: Range<usize> = 0x28..0x30;
const SECTION_FIELDS: Range<usize> = 0x3a..0x40;
/// Places of a program header's fields: where the segment begins in the file, and its bytes there.
const OFFSET: Range<usize> = 0x08..0x10;
const FILE_BYTES: Range<usize> = 0x20..0x28;

/// Returns an executable cut behind its last segment; as it is, if it is no ELF file of 64 bits in little endian.
pub(super) fn stripped(mut program: Vec<u8>) -> Vec<u8> {
    if let Some(end) = end_of_segments(&program) {
        program.truncate(end);
        program[SECTION_HEADERS].fill(0);
        program[SECTION_FIELDS].fill(0);
    }
    program
}

/// Where the last segment ends; none if the headers do not say.
fn end_of_segments(program: &[u8]) -> Option<usize> {
    if !program.starts_with(MAGIC) || program.len() < SECTION_FIELDS.end {
        return None;
    }
    let first = number(program, PROGRAM_HEADERS)?;
    let bytes = number(program, PROGRAM_HEADER_BYTES)?;
    let count = number(program, PROGRAM_HEADER_COUNT)?;
    let mut end = first.checked_add(bytes.checked_mul(count)?)?.max(SECTION_FIELDS.end);
    for index in 0..count {
        let header = program.get(first + index * bytes..)?.get(..bytes)?;
        end = end.max(number(header, OFFSET)?.checked_add(number(header, FILE_BYTES)?)?);
    }
    (count > 0 && end <= program.len()).then_some(end)
}

/// A number in little endian of up to eight bytes.
fn number(bytes: &[u8], place: Range<usize>) -> Option<usize> {
    let digits = bytes.get(place)?.iter().rev();
    usize::try_from(digits.fold(0u64, |sum, digit| sum << 8 | u64::from(*digit))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{self, ErrorKind};
    use std::os::unix::fs::PermissionsExt;
    use std::process::{self, Command};

    type Output = io::Result<process::Output>;

    #[test]
    fn a_stripped_program_is_smaller_and_still_runs() {
        let path = std::env::current_exe().expect("this test is a program");
        let whole = std::fs::read(&path).expect("it can be read");
        let small = stripped(whole.clone());
        assert!(small.len() < whole.len(), "{} of {} bytes", small.len(), whole.len());
        let copy = path.with_extension(format!("stripped-{}", std::process::id()));
        std::fs::write(&copy, &small).expect("there is room beside it");
        std::fs::set_permissions(&copy, std::fs::Permissions::from_mode(0o700)).expect("it is ours");
        // A test beside this one that starts a program holds the file open for an instant.
        let list = || Command::new(&copy).args(["--list", "a_stripped_program"]).output();
        let is_busy =
            |listed: &Output| matches!(listed, Err(error) if error.kind() == ErrorKind::ExecutableFileBusy);
        let listed =
            (0..100).map(|_| list()).find(|listed| !is_busy(listed)).expect("nothing holds it open for long");
        std::fs::remove_file(&copy).expect("it is ours");
        let listed = listed.expect("it starts");
        assert!(listed.status.success() && listed.stdout.starts_with(b"transport::"), "{listed:?}");
    }

    #[test]
    fn what_is_no_whole_executable_stays_as_it_is() {
        let path = std::env::current_exe().expect("this test is a program");
        let whole = std::fs::read(&path).expect("it can be read");
        for other in
            [&b"#!/bin/sh\n"[..], b"", MAGIC, &whole[..64], &whole[..200], &whole[..whole.len() / 100]]
        {
            assert_eq!(stripped(other.to_vec()), other);
        }
    }
}
