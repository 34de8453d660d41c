//! The lines of `-vv` on standard error: the line of each request behind `<` and the descriptor of its connection,
//! and the first line of its reply behind `>`, in memcached's manner. Values are not shown.

use larder_protocol::BINARY_HEADER_BYTES;

use crate::log;

/// The most bytes of a line that are shown.
const SHOWN_BYTES_MAX: usize = 1024;

/// Shows a request: its line, or opcode and key of a binary one.
#[cold]
pub fn request(connection: i32, bytes: &[u8]) {
    show(b'<', connection, bytes);
}

/// Shows the beginning of a reply; none is shown for a silent one.
#[cold]
pub fn reply(connection: i32, bytes: &[u8]) {
    if !bytes.is_empty() {
        show(b'>', connection, bytes);
    }
}

fn show(direction: u8, connection: i32, bytes: &[u8]) {
    log::echo(&line(direction, connection, bytes));
}

/// Returns the part of a request or a reply that is shown.
fn line(direction: u8, connection: i32, bytes: &[u8]) -> Vec<u8> {
    let mut line = vec![direction];
    line.extend_from_slice(connection.to_string().as_bytes());
    line.push(b' ');
    match bytes {
        [magic @ (0x80 | 0x81), opcode, ..] => {
            line.extend_from_slice(format!("binary opcode 0x{opcode:02x}").as_bytes());
            if let [_, _, high, low, extras, _, reserved @ ..] = bytes {
                match (magic, reserved) {
                    (0x81, [high, low, ..]) => {
                        line.extend_from_slice(format!(" status 0x{high:02x}{low:02x}").as_bytes());
                    }
                    _ => {
                        let start = BINARY_HEADER_BYTES + usize::from(*extras);
                        let end = start + usize::from(u16::from_be_bytes([*high, *low]));
                        if let Some(key) = bytes.get(start..end).filter(|key| !key.is_empty()) {
                            line.extend_from_slice(b" key ");
                            line.extend_from_slice(key);
                        }
                    }
                }
            }
        }
        _ => {
            let bytes = bytes.strip_prefix(b"\r\n").unwrap_or(bytes);
            let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
            let text = bytes.get(..end).unwrap_or_default();
            line.extend_from_slice(text.strip_suffix(b"\r").unwrap_or(text));
        }
    }
    line.truncate(SHOWN_BYTES_MAX);
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(direction: u8, bytes: &[u8]) -> String {
        String::from_utf8_lossy(&line(direction, 31, bytes)).into_owned()
    }

    #[test]
    fn a_line_is_shown_without_its_value() {
        assert_eq!(shown(b'<', b"set k 0 0 5\r\nhello\r\n"), "<31 set k 0 0 5");
        assert_eq!(shown(b'<', b"get a b\n"), "<31 get a b");
        assert_eq!(shown(b'>', b"VALUE k 0 5\r\nhello\r\nEND\r\n"), ">31 VALUE k 0 5");
        assert_eq!(shown(b'<', &[b'x'; 5000]).len(), SHOWN_BYTES_MAX);
    }

    #[test]
    fn a_binary_request_is_shown_by_opcode_and_key() {
        let mut request = vec![0; BINARY_HEADER_BYTES];
        (request[0], request[1], request[3], request[4]) = (0x80, 0x01, 3, 8);
        request.extend_from_slice(&[0; 8]);
        request.extend_from_slice(b"keyvalue");
        assert_eq!(shown(b'<', &request), "<31 binary opcode 0x01 key key");
        assert_eq!(shown(b'<', &request[..30]), "<31 binary opcode 0x01");
        assert_eq!(shown(b'>', &[0x81, 0x01, 0, 0, 0, 0, 0, 2]), ">31 binary opcode 0x01 status 0x0002");
        assert_eq!(shown(b'>', &[0x81]), ">31 \u{fffd}");
    }
}
