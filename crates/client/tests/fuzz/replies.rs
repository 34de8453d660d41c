//! Bytes that a server may send, whether it is one or not.

use larder_client::wire::{LINE_BYTES_MAX, Malformed, parse};

/// One input: lines, each of which is a reply, an error, or not all there.
pub fn check(data: &[u8]) {
    let mut rest = data;
    while let Some(used) = check_line(rest) {
        rest = &rest[used..];
    }
}

/// Checks the line at the front, and returns its length. A reply takes a whole line, within the bound; without the
/// end of a line there is only waiting, within the bound.
fn check_line(bytes: &[u8]) -> Option<usize> {
    let end = bytes.iter().position(|byte| *byte == b'\n').filter(|at| *at < LINE_BYTES_MAX);
    match parse(bytes) {
        Ok(Some((_, used))) => {
            assert_eq!(Some(used - 1), end);
            return Some(used);
        }
        Ok(None) => assert!(end.is_none() && bytes.len() < LINE_BYTES_MAX),
        Err(Malformed::LineTooLong) => assert!(end.is_none() && bytes.len() >= LINE_BYTES_MAX),
        Err(Malformed::Unknown(said) | Malformed::Number(said)) => assert!(said.len() <= 3 * LINE_BYTES_MAX),
        Err(other) => panic!("a line alone cannot be {other:?}"),
    }
    // A connection ends at the first line that is none; what is behind it is looked at all the same.
    end.map(|at| at + 1)
}
